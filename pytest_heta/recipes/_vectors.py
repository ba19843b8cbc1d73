"""The vector index: exact cosine similarity in numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from pytest_heta.recipes._mapping import mapped_array
from pytest_heta.recipes._ranking import Hit, Ranked, best

__all__ = ["VectorIndex"]

_MARGIN: Final = 1e-4
"""What float32 and BLAS may add to or take from a cosine, generously."""


class VectorIndex:
    """Chunks ranked by the cosine of their vector and the query's.

    Candidates are found by one matrix product in float32 and then scored
    again in float64, one by one: the rounding of the product depends on where
    a row stands, and equal vectors must have equal scores. Searching changes
    nothing, so threads may search at once.

    Args:
        matrix: Array of shape (chunks, dimension), float32, rows of length 1
            or 0.
    """

    def __init__(self, matrix: NDArray[np.float32]) -> None:
        self._matrix = matrix

    def __len__(self) -> int:
        return len(self._matrix)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self._matrix.shape[1])

    def search(self, query: NDArray[np.float32], threshold: float | None) -> _VectorRanking:
        """Return the ranking of the chunks for a query.

        Args:
            query: Array of shape (dimension,), of length 1.
            threshold: Least cosine of a result, if any.
        """
        return _VectorRanking(self._matrix, query, threshold)

    def save(self, folder: Path) -> None:
        """Write the index into a new folder."""
        folder.mkdir()
        np.save(folder / "matrix.npy", self._matrix, allow_pickle=False)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the index that `save` wrote, memory-mapped."""
        return cls(mapped_array(folder / "matrix.npy"))


class _VectorRanking:
    """The cosines of all chunks and one query."""

    def __init__(
        self, matrix: NDArray[np.float32], query: NDArray[np.float32], threshold: float | None
    ) -> None:
        self._matrix = matrix
        self._query = query.astype(np.float64)
        self._rough = matrix @ query
        self._threshold = -1.0 if threshold is None else threshold

    def __call__(self, count: int) -> Ranked:
        rough = self._rough
        if count < len(rough):
            lowest = np.partition(rough, -count)[-count]
            chunks = np.flatnonzero(rough >= lowest - _MARGIN)
        else:
            chunks = np.arange(len(rough))
        exact = np.clip((self._matrix[chunks] * self._query).sum(axis=1), -1.0, 1.0)
        order = best(exact, count)
        order = order[exact[order] >= self._threshold]
        hits = list(map(Hit, chunks[order].tolist(), exact[order].tolist()))
        return Ranked(hits, exhausted=len(hits) < count or count >= len(rough))
