"""The two indexes as a query sees them: from its text to a ranking of chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from pytest_heta.errors import BuildError, QueryError
from pytest_heta.protocols import EmbeddingProtocol
from pytest_heta.recipes._analysis import Analyzer
from pytest_heta.recipes._embedding import unit_vectors
from pytest_heta.recipes._lexical import LexicalIndex
from pytest_heta.recipes._ranking import Ranked
from pytest_heta.recipes._vectors import VectorIndex

__all__ = ["Leg", "LexicalLeg", "Notes", "VectorLeg"]

_EMBEDDED_AT_ONCE: Final = 1024


@dataclass(slots=True)
class Notes:
    """What is noted while a query is answered.

    Attributes:
        warnings: What the asker should know.
        trace: The steps.
    """

    warnings: list[str] = field(default_factory=list)
    trace: list[dict[str, Any]] = field(default_factory=list)


class Leg(Protocol):
    """An index with what makes its queries."""

    def ranking(self, text: str, threshold: float | None, notes: Notes) -> Callable[[int], Ranked]:
        """Return what ranks the best n chunks for a query.

        Args:
            text: The query.
            threshold: Least score of a result, if any.
            notes: Where steps and warnings go.
        """
        ...

    def manifest(self) -> dict[str, Any]:
        """Return the size of the index."""
        ...

    def save(self, folder: Path) -> None:
        """Write the index into a new folder."""
        ...


class LexicalLeg:
    """Full-text search."""

    def __init__(self, analyzer: Analyzer, index: LexicalIndex) -> None:
        self._analyzer = analyzer
        self._index = index

    @classmethod
    def build(cls, analyzer: Analyzer, texts: Iterable[str], *, k1: float, b: float) -> LexicalLeg:
        """Index the texts of the chunks."""
        terms = map(analyzer.document_terms, texts)
        return cls(analyzer, LexicalIndex.build(terms, k1=k1, b=b))

    @classmethod
    def load(cls, analyzer: Analyzer, folder: Path) -> LexicalLeg:
        """Return the leg whose index `save` wrote."""
        return cls(analyzer, LexicalIndex.load(folder))

    def ranking(self, text: str, threshold: float | None, notes: Notes) -> Callable[[int], Ranked]:
        """Return what ranks the best n chunks by BM25."""
        terms = self._analyzer.query_terms(text)
        if not terms:
            notes.warnings.append("query has no searchable tokens")
        notes.trace.append({"step": "analysis", "terms": terms})
        return self._index.search(terms, threshold)

    def manifest(self) -> dict[str, Any]:
        """Return the number of terms."""
        return {"terms": self._index.term_count}

    def save(self, folder: Path) -> None:
        """Write the index into a new folder."""
        self._index.save(folder)


class VectorLeg:
    """Vector search."""

    def __init__(self, embedding: EmbeddingProtocol, index: VectorIndex) -> None:
        self._embedding = embedding
        self._index = index

    @classmethod
    def build(cls, embedding: EmbeddingProtocol, texts: Iterable[str], count: int) -> VectorLeg:
        """Embed the texts of the chunks.

        Args:
            embedding: The model.
            texts: The texts.
            count: How many they are.

        Raises:
            BuildError: if the model returns something else than vectors.
        """
        dimension = int(embedding.dimension)
        matrix = np.zeros((count, dimension), np.float32)
        row = 0
        for block in _blocks(texts):
            rows = unit_vectors(
                embedding.embed_documents(block),
                len(block),
                dimension,
                model=embedding.name,
                error=BuildError,
            )
            matrix[row : row + len(block)] = rows
            row += len(block)
        return cls(embedding, VectorIndex(matrix))

    @classmethod
    def load(cls, embedding: EmbeddingProtocol, folder: Path) -> VectorLeg:
        """Return the leg whose index `save` wrote, with its model as ready as after a build."""
        warm_up = getattr(embedding, "warm_up", None)
        if callable(warm_up):
            warm_up()
        return cls(embedding, VectorIndex.load(folder))

    def ranking(self, text: str, threshold: float | None, notes: Notes) -> Callable[[int], Ranked]:
        """Return what ranks the best n chunks by cosine.

        Raises:
            QueryError: if the model returns something else than a vector.
        """
        vector = self._vector(text) if text.strip() and len(self._index) else None
        if vector is not None and vector.any():
            return self._index.search(vector, threshold)
        if len(self._index):
            notes.warnings.append("query has no vector")
        return _nothing

    def manifest(self) -> dict[str, Any]:
        """Return the number of vectors."""
        return {"vectors": len(self._index)}

    def save(self, folder: Path) -> None:
        """Write the index into a new folder."""
        self._index.save(folder)

    def _vector(self, text: str) -> NDArray[np.float32]:
        model = self._embedding
        returned = model.embed_queries([text])
        rows = unit_vectors(returned, 1, self._index.dimension, model=model.name, error=QueryError)
        return rows.reshape(-1)


def _nothing(count: int) -> Ranked:  # noqa: ARG001 - the ranking of no chunk
    return Ranked([], exhausted=True)


def _blocks(texts: Iterable[str]) -> Iterator[Sequence[str]]:
    iterator = iter(texts)
    while block := list(islice(iterator, _EMBEDDED_AT_ONCE)):
        yield block
