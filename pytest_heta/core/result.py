"""The record of one sample, and how much of a response a report keeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from json import dumps
from typing import Any, Final, Literal

from pydantic_core import to_json

from pytest_heta.core._plain import is_plain_text, is_small_and_plain, plain, plain_text
from pytest_heta.core.plan import BenchmarkPlan, CasePlan, Sample
from pytest_heta.core.query import QueryOutcome
from pytest_heta.core.score import exemption, failed_score
from pytest_heta.evaluators import document_ids
from pytest_heta.models import (
    EvaluationCaseResult,
    EvaluationError,
    EvaluationScore,
    QueryCitation,
    QueryResponse,
    QueryResult,
)
from pytest_heta.models._strict_json import strict_json
from pytest_heta.models._tally import tally_data

__all__ = [
    "SNIPPET",
    "ResponseLevel",
    "case_result",
    "encode_result",
    "failed_result",
    "is_kept_whole",
    "trim_response",
]

ResponseLevel = Literal["ids", "short", "full"]
"""How much of a response is kept: no texts, the beginning of each, everything."""

SNIPPET: Final = 200
"""Characters of a text that the level ``short`` keeps."""

_PROVENANCE: Final = ("document_id", "document_ids")
_SOURCE_NODES: Final = 200
_METADATA_NODES: Final = 1_000


def case_result(
    sample: Sample,
    case: CasePlan,
    outcome: QueryOutcome,
    scores: Sequence[EvaluationScore],
    *,
    level: ResponseLevel = "short",
    cold: bool = False,
    metadata: Mapping[str, Any] | None = None,
    is_document: Callable[[str], bool] | None = None,
) -> EvaluationCaseResult:
    """Return the record of one sample.

    Args:
        sample: The sample.
        case: The planned case.
        outcome: What came of the query.
        scores: One score for each evaluator.
        level: How much of the response is kept.
        cold: Whether it was the first of its unit and mode in the process.
        metadata: Anything to add, such as the node id.
        is_document: Whether the benchmark has a document of some id. A
            response without any is noted: a recipe that loses the documents'
            ids scores 0 everywhere, and nobody would know why.
    """
    known: dict[str, Any] = {
        "unit_id": sample.unit,
        "repeat": sample.repeat,
        "cold": cold,
        "labels": plain(dict(case.labels)),
    }
    if outcome.attempts > 1:
        known["attempts"] = outcome.attempts
    response = outcome.response
    if response is not None:
        documents = document_ids(response)
        known["distinct_documents"] = len(documents)
        if documents and is_document is not None and not any(map(is_document, documents)):
            known["foreign_results"] = True
        response = trim_response(response, level)
    return EvaluationCaseResult.trusted(
        case_id=sample.case,
        query=plain_text(case.query),
        query_mode=sample.mode,
        scores=tuple(scores),
        response=response,
        latency_ms=outcome.latency_ms,
        error=outcome.error,
        metadata={**known, **(metadata or {})},
    )


def failed_result(
    plan: BenchmarkPlan,
    sample: Sample,
    error: EvaluationError,
    *,
    metadata: Mapping[str, Any] | None = None,
) -> EvaluationCaseResult:
    """Return the record of a sample that never came to its query.

    It needs the plan alone: the process that knew the benchmark may be gone.

    Args:
        plan: The plan.
        sample: The sample.
        error: Why it was not asked.
        metadata: Anything to add, such as the node id.
    """
    case = plan.cases[sample.case]
    scores = [
        exemption(metric, case, plan.top_k) or failed_score(metric.name, error)
        for metric in plan.metrics
    ]
    return case_result(sample, case, QueryOutcome(error=error), scores, metadata=metadata)


def encode_result(label: str, sample: Sample, result: EvaluationCaseResult) -> str:
    """Return the record of a sample as the one text that travels: its payload.

    It is the JSON object ``{"label", "sample", "tally", "result"}``, in this
    order and without spaces. ``result`` is written as it stands in a report
    file; ``tally`` has what aggregates need, so that nobody else has to parse
    the result. Whatever the record holds, the text can be encoded and read.

    Args:
        label: Label of the plan.
        sample: The sample.
        result: Its record.
    """
    head = {"label": label, "sample": sample, "tally": tally_data(result)}
    try:
        text = result.__pydantic_serializer__.to_json(result).decode()
    except ValueError:  # a lone surrogate, or an object that JSON has no word for
        text = strict_json(result).decode()
    try:
        begin = to_json(head, inf_nan_mode="null").decode()
    except ValueError:
        begin = dumps(head, separators=(",", ":"))
    return f'{begin[:-1]},"result":{text}}}'


def trim_response(response: QueryResponse, level: ResponseLevel = "short") -> QueryResponse:
    """Return the part of a response that a report keeps, as plain JSON data.

    ``ids`` keeps ids, retriever scores and sources; ``short`` also the first
    200 characters of each text and the answer; ``full`` everything. Numbers
    that are not finite become None.
    """
    full = level == "full"
    limit = {"ids": 0, "short": SNIPPET}.get(level)
    # Not validated again: all of it was when it came in.
    return response.replaced(
        mode=plain_text(response.mode),
        results=tuple([_trim_result(result, level, limit) for result in response.results]),
        answer=_answer(response.answer, level),
        citations=tuple([_trim_citation(citation, level) for citation in response.citations]),
        trace=tuple(plain(list(response.trace))) if full else (),
        metadata=plain(response.metadata, max_nodes=_METADATA_NODES),
    )


def _trim_result(result: QueryResult, level: ResponseLevel, limit: int | None) -> QueryResult:
    if is_kept_whole(result, limit):
        return result
    score = result.score
    metadata = _trim_metadata(result.metadata, level)
    if score is not None and not math.isfinite(score):
        metadata["non_finite_score"] = str(score)
        score = None
    return result.replaced(
        id=plain_text(result.id),
        text=_text(result.text, level) or "",
        score=score,
        kind=plain_text(result.kind),
        source=plain(result.source, max_nodes=_SOURCE_NODES),
        metadata=metadata,
    )


def is_kept_whole(result: QueryResult, limit: int | None) -> bool:
    """Whether nothing of a result is to be cut or mended, as of most results of most runs.

    Args:
        result: The result.
        limit: Characters of its text that are kept; None for all.
    """
    # A response has many: its attributes cost twice what entries of a dict do.
    fields = result.__dict__
    source, text, score = fields["source"], fields["text"], fields["score"]
    return (
        not fields["metadata"]
        and (not source or (type(source) is dict and is_small_and_plain(source)))
        and (not text or is_plain_text(text, limit))
        and (score is None or math.isfinite(score))
        and is_plain_text(fields["id"])
        and (fields["kind"] == "chunk" or is_plain_text(fields["kind"]))
    )


def _trim_citation(citation: QueryCitation, level: ResponseLevel) -> QueryCitation:
    result_id = citation.result_id
    return citation.replaced(
        id=plain_text(citation.id),
        result_id=plain_text(result_id) if result_id is not None else None,
        source=plain(citation.source, max_nodes=_SOURCE_NODES),
        text=_text(citation.text, level),
        metadata=_trim_metadata(citation.metadata, level),
    )


def _trim_metadata(metadata: dict[str, Any], level: ResponseLevel) -> dict[str, Any]:
    if not metadata:
        return {}
    if level != "full":
        # What says which document it is remains.
        metadata = {name: metadata[name] for name in _PROVENANCE if name in metadata}
    kept: dict[str, Any] = plain(metadata, max_nodes=_METADATA_NODES)
    return kept


def _text(text: str | None, level: ResponseLevel) -> str | None:
    if text is None or level == "ids":
        return None
    return plain_text(text, None if level == "full" else SNIPPET)


def _answer(answer: str | None, level: ResponseLevel) -> str | None:
    if answer is None or level == "ids":
        return None
    return plain_text(answer, None if level == "full" else 10 * SNIPPET)
