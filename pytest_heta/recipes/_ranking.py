"""The order of results: best first, ties in document order, documents spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Hit", "Ranked", "best", "rank_chunks", "spread"]


class Hit(NamedTuple):
    """A chunk, by its number, with its score."""

    chunk: int
    score: float


class Ranked(NamedTuple):
    """The best hits of an index.

    Attributes:
        hits: Best first.
        exhausted: Whether there are no others.
    """

    hits: list[Hit]
    exhausted: bool


def best(scores: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Return the positions of the ``count`` highest scores, best first.

    Equal scores come in the order of their positions, also at the cut. There
    must be no NaN.

    Args:
        scores: Array of shape (n,).
        count: At least 1; may exceed n.
    """
    if count >= len(scores):
        return np.argsort(-scores, kind="stable")
    lowest = np.partition(scores, -count)[-count]
    candidates = np.flatnonzero(scores >= lowest)
    return candidates[np.argsort(-scores[candidates], kind="stable")][:count]


def spread(hits: Sequence[Hit], documents: Sequence[int], per_document: int) -> list[Hit]:
    """Return the hits, those over ``per_document`` of one document behind the others.

    Args:
        hits: Best first.
        documents: Document of each chunk.
        per_document: Hits of one document that keep their place.
    """
    first, later = _turns(hits, documents, per_document)
    return first + later


def rank_chunks(
    ranking: Callable[[int], Ranked], count: int, documents: Sequence[int], per_document: int
) -> list[Hit]:
    """Return the ``count`` best hits, spread over documents.

    Args:
        ranking: Returns the best n hits, for any n.
        count: How many hits are wanted.
        documents: Document of each chunk.
        per_document: As for `spread`.
    """
    depth = max(64, 2 * count)
    while True:
        hits, exhausted = ranking(depth)
        first, later = _turns(hits, documents, per_document)
        if exhausted or len(first) >= count:
            return (first + later)[:count]
        depth *= 4


def _turns(
    hits: Sequence[Hit], documents: Sequence[int], per_document: int
) -> tuple[list[Hit], list[Hit]]:
    seen: dict[int, int] = {}
    first: list[Hit] = []
    later: list[Hit] = []
    for hit in hits:
        document = documents[hit.chunk]
        seen[document] = seen.get(document, 0) + 1
        (first if seen[document] <= per_document else later).append(hit)
    return first, later
