"""The knowledge base that the local recipes build."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from pytest_heta.errors import ModeUnknownError, QueryError, did_you_mean
from pytest_heta.models import QueryResponse
from pytest_heta.protocols import RerankerProtocol
from pytest_heta.recipes._chunks import ChunkStore
from pytest_heta.recipes._fusion import fuse
from pytest_heta.recipes._legs import Leg, Notes
from pytest_heta.recipes._options import (
    HYBRID,
    LEG_DEPTH,
    QueryOptions,
    legs_of,
    parse_count,
    parse_options,
)
from pytest_heta.recipes._parsing import clean_surrogates
from pytest_heta.recipes._ranking import Hit, rank_chunks, spread

__all__ = ["LocalKnowledgeBase", "QuerySettings"]


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """What a recipe says about the queries to its knowledge bases.

    Attributes:
        modes: Query modes.
        options: Query options where a query gives none.
        reranker: Orders results anew.
    """

    modes: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    reranker: RerankerProtocol | None = None


@dataclass(slots=True)
class _Asked:
    """One query, checked."""

    text: str
    options: QueryOptions
    depth: int
    notes: Notes = field(default_factory=Notes)
    found_by: dict[int, dict[str, Any]] = field(default_factory=dict)


class LocalKnowledgeBase:
    """Chunks of documents with a lexical index, a vector index, or both.

    ``query`` changes nothing, so threads may ask at once.

    Attributes:
        name: Name of the knowledge base.
        chunks: Its chunks.
        legs: Its indexes, by the mode that searches the index alone.
    """

    def __init__(
        self,
        name: str,
        chunks: ChunkStore,
        legs: Mapping[str, Leg],
        settings: QuerySettings,
        manifest: Mapping[str, Any],
    ) -> None:
        self.name = name
        self.chunks = chunks
        self.legs = dict(legs)
        self._settings = settings
        self._manifest = dict(manifest)

    @property
    def available_queries(self) -> tuple[str, ...]:
        """The query modes."""
        return self._settings.modes

    def manifest(self) -> dict[str, Any]:
        """Return the recipe's manifest, with the counts and warnings of the build."""
        return dict(self._manifest)

    def query(
        self,
        text: str,
        *,
        mode: str,
        top_k: int = 10,
        options: Mapping[str, Any] | None = None,
        trace: bool = False,
    ) -> QueryResponse:
        """Return the chunks that answer ``text`` best.

        Chunks over ``chunks_per_document`` (1) of one document stand behind
        the first chunks of all others. So ``top_k`` results come from
        ``top_k`` documents if there are as many to find, and further chunks
        fill up what is left.

        Args:
            text: The query.
            mode: Query mode.
            top_k: Number of results, 1 or more.
            options: Query options, over those of the recipe.
            trace: Whether the response tells its steps.

        Raises:
            ModeUnknownError: if there is no such mode.
            QueryError: if an option is wrong, or a model returns nonsense.
        """
        asked = self._asked(text, mode, top_k, options)
        ranking = self._hybrid(asked) if mode == HYBRID else self._leg(mode, asked, asked.depth)
        scores = self._reranked(asked, ranking) if asked.options.rerank else {}
        results = []
        for hit in self._in_order(ranking, scores)[:top_k]:
            metadata = asked.found_by.get(hit.chunk, {})
            score = hit.score
            if hit.chunk in scores:
                metadata = {**metadata, "retrieval_score": hit.score}
                score = scores[hit.chunk]
            results.append(self.chunks.result(hit.chunk, score, metadata))
        notes = asked.notes
        return QueryResponse(
            mode=mode,
            results=tuple(results),
            trace=tuple(notes.trace) if trace else (),
            metadata={"warnings": notes.warnings} if notes.warnings else {},
        )

    def _asked(self, text: str, mode: str, top_k: int, options: Mapping[str, Any] | None) -> _Asked:
        settings = self._settings
        if mode not in settings.modes:
            raise ModeUnknownError(
                f"the knowledge base has no mode {mode!r}",
                hint=did_you_mean(str(mode), settings.modes),
            )
        if not isinstance(text, str):
            raise QueryError(f"a query is a string, not {type(text).__name__}")
        checked = parse_options(
            {**settings.options, **(options or {})},
            mode=mode,
            has_reranker=settings.reranker is not None,
        )
        depth = parse_count("top_k", top_k)
        if checked.rerank:
            depth = max(depth, checked.rerank_candidates)
        asked = _Asked(clean_surrogates(text), checked, depth)
        if not len(self.chunks):
            asked.notes.warnings.append("the knowledge base has no text")
        return asked

    def _leg(self, leg: str, asked: _Asked, depth: int) -> list[Hit]:
        threshold = asked.options.thresholds.get(leg)
        ranking = self.legs[leg].ranking(asked.text, threshold, asked.notes)
        per_document = asked.options.chunks_per_document
        hits = rank_chunks(ranking, depth, self.chunks.document_of, per_document)
        asked.notes.trace.append({"step": leg, "depth": depth, "found": len(hits)})
        return hits

    def _hybrid(self, asked: _Asked) -> list[Hit]:
        depth = max(asked.depth, LEG_DEPTH)
        legs = []
        for leg in legs_of(HYBRID):
            hits = self._leg(leg, asked, depth)
            legs.append(hits)
            for rank, hit in enumerate(hits, start=1):
                found = {"rank": rank, "score": hit.score}
                asked.found_by.setdefault(hit.chunk, {})[leg] = found
        documents = self.chunks.document_of
        options = asked.options
        fused = fuse(legs, documents, options.rrf_k)
        asked.notes.trace.append({"step": "fusion", "rrf_k": options.rrf_k, "found": len(fused)})
        return spread(fused, documents, options.chunks_per_document)[: asked.depth]

    def _reranked(self, asked: _Asked, ranking: list[Hit]) -> dict[int, float]:
        """Return the reranker's score of each candidate."""
        reranker = self._settings.reranker
        chunks = [hit.chunk for hit in ranking[: asked.options.rerank_candidates]]
        if reranker is None or not chunks:
            return {}
        returned = reranker.rerank(asked.text, [self.chunks.search_text(c) for c in chunks])
        scores = _finite_scores(returned, len(chunks), reranker.name)
        asked.notes.trace.append(
            {"step": "rerank", "model": reranker.name, "candidates": len(chunks)}
        )
        return dict(zip(chunks, scores, strict=True))

    @staticmethod
    def _in_order(ranking: list[Hit], scores: Mapping[int, float]) -> list[Hit]:
        """Return the candidates by the reranker's score, and the others behind them."""
        count = len(scores)
        return sorted(ranking[:count], key=lambda hit: -scores[hit.chunk]) + ranking[count:]


def _finite_scores(returned: Any, count: int, model: str) -> list[float]:
    scores = list(returned)
    if len(scores) != count:
        raise QueryError(f"reranker {model!r} returned {len(scores)} scores for {count} texts")
    for score in scores:
        if not isinstance(score, Real) or not math.isfinite(score):
            raise QueryError(f"reranker {model!r} returned {score!r}, not a finite number")
    return [float(score) for score in scores]
