"""What aggregates need of a result, and little else: a run holds one for every sample."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from sys import intern
from typing import Any, Literal, NamedTuple, Self

from pytest_heta.models._result import EvaluationCaseResult, EvaluationScore, ScoreStatus

Reuse = Literal["result", "response"]
"""What an earlier session, or a process that died, had of a sample."""


class ScoreTally(NamedTuple):
    """One score as it is counted.

    Attributes:
        name: Name of the metric.
        value: Its value, None unless it was scored.
        passed: The evaluator's verdict, if there is one.
        status: Where the score stands in the denominators.
        reason: Why there is no value; None if it was scored.
    """

    name: str
    value: float | bool | str | None
    passed: bool | None
    status: ScoreStatus = "scored"
    reason: str | None = None

    @classmethod
    def of(cls, score: EvaluationScore) -> Self:
        """Return how a score is counted."""
        return cls(*_score_data(score))


class SampleTally(NamedTuple):
    """One result as it is counted.

    Attributes:
        mode: Mode the sample was asked in.
        case_id: Id of its case.
        failed: Whether it has an execution error.
        latency_ms: Milliseconds, if the sample succeeded and was really asked.
        cold: Whether it was the first of its unit and mode in a process.
        distinct: Distinct documents among the results, if that is known.
        returned: Results of the response that was kept, None without one.
        foreign: Whether no result names a document of the benchmark.
        warnings: What the knowledge base warned of in the response.
        scores: The scores, in the evaluators' order.
        reused: What of it was not asked for again: its ``result`` or ``response``.
        attempts: How often the sample was tried, over all sessions of the run.
    """

    mode: str
    case_id: str
    failed: bool
    latency_ms: float | None
    cold: bool
    distinct: int | None
    returned: int | None
    foreign: bool
    warnings: tuple[str, ...]
    scores: tuple[ScoreTally, ...]
    reused: Reuse | None = None
    attempts: int = 1

    @classmethod
    def of(cls, result: EvaluationCaseResult) -> Self:
        """Return how a result is counted."""
        return cls.from_data(result.query_mode, result.case_id, tally_data(result))

    @classmethod
    def from_data(cls, mode: str, case_id: str, data: Mapping[str, Any]) -> Self:
        """Return the tally of which the rest is ``data``, as `tally_data` made it."""
        return cls(
            mode,
            case_id,
            data["failed"],
            data["latency_ms"],
            data["cold"],
            data["distinct"],
            data["returned"],
            data["foreign"],
            tuple(data["warnings"]),
            # Every sample has the same few names: one text of each is kept.
            tuple([ScoreTally(intern(name), *rest) for name, *rest in data["scores"]]),
            data.get("reused"),
            data.get("attempts", 1),
        )


def tally_data(result: EvaluationCaseResult) -> dict[str, Any]:
    """Return how a result is counted as plain data, without its mode and case."""
    metadata, response = result.metadata, result.response
    failed = result.error is not None
    distinct = metadata.get("distinct_documents")
    return {
        "failed": failed,
        "latency_ms": None if failed or metadata.get("replayed") else result.latency_ms,
        "cold": bool(metadata.get("cold")),
        "distinct": distinct if isinstance(distinct, int) else None,
        "returned": None if response is None else len(response.results),
        "foreign": bool(metadata.get("foreign_results")),
        "warnings": _texts(response.metadata) if response is not None else [],
        "scores": [
            (score.name, score.value, score.passed)
            if type(score.value) is float and isfinite(score.value) and not score.metadata
            else _score_data(score)
            for score in result.scores
        ],
        **_history(metadata),
    }


def _history(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told only of samples that were not simply asked once."""
    attempts = metadata.get("attempts", 1)
    told: dict[str, Any] = {}
    if metadata.get("reused") or metadata.get("reused_response"):
        told["reused"] = "result" if metadata.get("reused") else "response"
    if isinstance(attempts, int) and attempts != 1:
        told["attempts"] = attempts
    return told


def _texts(metadata: Mapping[str, Any]) -> list[str]:
    warnings = metadata.get("warnings") if metadata else None
    return [t for t in warnings if isinstance(t, str)] if isinstance(warnings, list) else []


def _score_data(score: EvaluationScore) -> tuple[Any, ...]:
    value, status = score.value, score.status
    if status == "scored":
        if not isinstance(value, float) or isfinite(value):
            return score.name, value, score.passed
        status = "errored"  # JSON has no word for its value
    return score.name, None, score.passed, status, _reason(score.metadata, status)


def _reason(metadata: Mapping[str, Any], status: str) -> str:
    if status == "errored":
        error = metadata.get("error")
        return str(error.get("type", "error")) if isinstance(error, Mapping) else "no_value"
    return str(metadata.get("reason") or status)
