"""What a knowledge base answers."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pytest_heta.models._base import HetaModel, Identifier, Metadata


class QueryResult(HetaModel):
    """One retrieved piece of a response; results are in rank order.

    Attributes:
        id: Id of the piece, often a chunk.
        text: Its text.
        score: The retriever's own score. The order of the results decides the
            rank, never this number.
        kind: Kind of piece, such as ``chunk`` or ``document``.
        source: Where it comes from: ``document_id``, ``source_key``,
            ``page_index`` and so on, also below ``origin``.
        metadata: Anything else.
    """

    id: Identifier
    text: str = ""
    score: float | None = None
    kind: str = "chunk"
    source: Metadata = Field(default_factory=dict)
    metadata: Metadata = Field(default_factory=dict)


class QueryCitation(HetaModel):
    """A source that an answer cites.

    Attributes:
        id: Id of the citation.
        result_id: Id of the result that is cited.
        source: Where the cited text comes from, as in `QueryResult.source`.
        text: The cited text.
        metadata: Anything else.
    """

    id: Identifier
    result_id: Identifier | None = None
    source: Metadata = Field(default_factory=dict)
    text: str | None = None
    metadata: Metadata = Field(default_factory=dict)


class QueryResponse(HetaModel):
    """What a knowledge base returns for one query.

    Attributes:
        mode: Query mode that answered.
        results: Retrieved pieces, best first. An empty list is an honest
            answer and scores 0.
        answer: Generated answer, if the mode makes one.
        citations: Sources that the answer cites.
        trace: Steps of the query, for people to read.
        metadata: Anything else, such as token counts.
    """

    mode: str
    results: tuple[QueryResult, ...] = ()
    answer: str | None = None
    citations: tuple[QueryCitation, ...] = ()
    trace: tuple[Any, ...] = ()
    metadata: Metadata = Field(default_factory=dict)
