"""The lexical index: BM25 by bm25s."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pytest_heta.recipes._extras import import_extra
from pytest_heta.recipes._mapping import plain_view
from pytest_heta.recipes._ranking import Hit, Ranked, best

__all__ = ["LexicalIndex"]


class LexicalIndex:
    """Chunks ranked by BM25 (the variant of Lucene; Kamphuis et al., ECIR 2020).

    A chunk that has no term of the query is no result. A term that stands
    twice in the query counts twice. Searching changes nothing, so threads may
    search at once.

    Args:
        index: Index of bm25s, None if there is no term at all.
    """

    def __init__(self, index: Any | None) -> None:
        self._index = index

    @classmethod
    def build(cls, terms: Iterable[list[str]], *, k1: float, b: float) -> Self:
        """Index the terms of each chunk.

        Args:
            terms: Terms of each chunk, in the order of the chunks.
            k1: Saturation of the term frequency, 0 or more.
            b: Weight of the chunk's length, 0 to 1.
        """
        # Terms are numbered as they come: bm25s would number them in the order
        # of a set, which changes with the hash seed.
        vocabulary: dict[str, int] = {}
        numbers = [[vocabulary.setdefault(t, len(vocabulary)) for t in chunk] for chunk in terms]
        if not vocabulary:
            return cls(None)
        index = import_extra("bm25s").BM25(k1=k1, b=b, method="lucene", backend="numpy")
        index.index((numbers, vocabulary), create_empty_token=False, show_progress=False)
        return cls(index)

    @property
    def term_count(self) -> int:
        """Number of different terms."""
        return 0 if self._index is None else len(self._index.vocab_dict)

    def search(self, terms: list[str], threshold: float | None) -> _LexicalRanking:
        """Return the ranking of the chunks for a query.

        Args:
            terms: Terms of the query.
            threshold: Least score of a result, if any.
        """
        known = [] if self._index is None else self._index.get_tokens_ids(terms)
        if self._index is None or not known:
            return _LexicalRanking(np.empty(0, np.intp), np.empty(0, np.float32))
        scores = self._index.get_scores_from_ids(known)
        matching = scores > 0
        if threshold is not None:
            matching &= scores >= threshold
        chunks = np.flatnonzero(matching)
        return _LexicalRanking(chunks, scores[chunks])

    def save(self, folder: Path) -> None:
        """Write the index into a new folder; an index without terms is an empty one."""
        folder.mkdir()
        if self._index is not None:
            self._index.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the index that `save` wrote, its arrays memory-mapped."""
        if not any(folder.iterdir()):
            return cls(None)
        index = import_extra("bm25s").BM25.load(folder, mmap=True)
        scores = index.scores
        scores.update({name: plain_view(scores[name]) for name in ("data", "indices", "indptr")})
        return cls(index)


class _LexicalRanking:
    """The chunks with a term of one query."""

    def __init__(self, chunks: NDArray[np.intp], scores: NDArray[np.float32]) -> None:
        self._chunks = chunks
        self._scores = scores

    def __call__(self, count: int) -> Ranked:
        order = best(self._scores, count)
        chunks, scores = self._chunks[order].tolist(), self._scores[order].tolist()
        return Ranked(list(map(Hit, chunks, scores)), exhausted=count >= len(self._chunks))
