"""Reciprocal rank fusion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pytest_heta.recipes._ranking import Hit

__all__ = ["fuse"]


def fuse(legs: Sequence[Sequence[Hit]], documents: Sequence[int], rrf_k: float) -> list[Hit]:
    """Fuse rankings by reciprocal rank, 1 / (rrf_k + rank), ranks from 1.

    Ranks are those of documents, not of chunks: two legs that find a document
    by different chunks agree on it. The first chunk of a document in one leg
    is fused with its first in the other, the second with the second, and so
    on; which chunk stands for the document is decided by the chunks' own
    reciprocal ranks. Equal scores come in document order. For documents of one
    chunk this is the plain formula of Cormack, Clarke and Büttcher (SIGIR
    2009).

    Args:
        legs: The rankings, best first.
        documents: Document of each chunk.
        rrf_k: The constant k, 0 or more.
    """
    places: defaultdict[tuple[int, int], float] = defaultdict(float)
    chunks: defaultdict[int, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    for leg in legs:
        turns: defaultdict[int, int] = defaultdict(int)
        for rank, hit in enumerate(leg, start=1):
            document = documents[hit.chunk]
            share = 1.0 / (rrf_k + rank)
            places[document, turns[document]] += share
            chunks[document][hit.chunk] += share
            turns[document] += 1
    ordered = {
        document: sorted(shares, key=lambda chunk: (-shares[chunk], chunk))
        for document, shares in chunks.items()
    }
    ranked = sorted(places, key=lambda place: (-places[place], place))
    return [Hit(ordered[document][turn], places[document, turn]) for document, turn in ranked]
