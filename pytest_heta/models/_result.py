"""What comes of one sample: scores, errors, results."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pytest_heta.models._base import HetaModel, Identifier, Metadata
from pytest_heta.models._response import QueryResponse

ScoreStatus = Literal["scored", "errored", "skipped", "unjudged"]
"""Where a score stands in the denominators; every score has exactly one."""


class EvaluationScore(HetaModel):
    """What one evaluator says about one response.

    Attributes:
        name: The evaluator's name.
        value: A number, a truth value, or a label; None when there is none.
        passed: The evaluator's own verdict, if it gives one.
        metadata: Anything else. ``skipped`` (with ``reason``), ``unjudged``
            and ``error`` say why there is no value.
    """

    name: str
    value: float | bool | str | None = None
    passed: bool | None = None
    metadata: Metadata = Field(default_factory=dict)

    @property
    def status(self) -> ScoreStatus:
        """Where the score stands in the denominators."""
        if self.metadata.get("error"):
            return "errored"
        if self.metadata.get("unjudged"):
            return "unjudged"
        if self.metadata.get("skipped"):
            return "skipped"
        return "errored" if self.value is None else "scored"


class EvaluationError(HetaModel):
    """Why a sample could not be run.

    Attributes:
        message: One line for people.
        error_type: Stable kind of error: ``build``, ``query``,
            ``response_invalid``, ``document_unavailable``, ``timeout``,
            ``rate_limited`` or ``crash``.
        retryable: Whether another attempt may succeed.
        metadata: Anything else, such as the exception's type.
    """

    message: str
    error_type: str
    retryable: bool = False
    metadata: Metadata = Field(default_factory=dict)


class EvaluationCaseResult(HetaModel):
    """What came of one sample: one case asked in one mode.

    Attributes:
        case_id: Id of the case.
        query: Text of the query.
        query_mode: Mode it was asked in.
        scores: One score for each evaluator, in the evaluators' order.
        response: The response, None when the sample failed.
        latency_ms: Milliseconds inside the knowledge base's ``query`` alone;
            None when the sample failed.
        error: Why the sample failed, None when it succeeded.
        metadata: ``unit_id``, ``repeat``, ``labels``, ``cold``,
            ``distinct_documents``, ``node_id``.
    """

    case_id: Identifier
    query: str
    query_mode: str
    scores: tuple[EvaluationScore, ...] = ()
    response: QueryResponse | None = None
    latency_ms: float | None = None
    error: EvaluationError | None = None
    metadata: Metadata = Field(default_factory=dict)
