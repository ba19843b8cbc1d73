"""One case in full: what was asked and expected, what came back, how it scored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pytest_heta.codes import EVALUATOR_FAILED, sample_code
from pytest_heta.errors import ModelInvalidError
from pytest_heta.evaluators.evidence import holds_evidence
from pytest_heta.evaluators.provenance import result_document_ids
from pytest_heta.models import (
    BenchmarkEvidence,
    BenchmarkExpected,
    EvaluationCaseResult,
    EvaluationScore,
    QueryResult,
)
from pytest_heta.reports._inert import plain_text
from pytest_heta.reports._layout import Column, display_width, shorten, wrap
from pytest_heta.reports._numbers import counted, format_ms, format_number, format_score
from pytest_heta.reports._scores import error_line, missing_reason, sample_error

__all__ = ["case_details"]

_NAME_WIDTH: Final = 11
_SHOWN_EVIDENCE: Final = 10
_SHOWN_RESULTS: Final = 10
_LEAST_SNIPPET: Final = 20
_TEXT_WIDTH: Final = 200


def case_details(
    result: EvaluationCaseResult, expected: BenchmarkExpected | None, width: int
) -> list[str]:
    """Return everything about one sample as lines for a person.

    Queries, answers and messages are wrapped. Each result has a line: rank,
    ``*`` if it is what was expected, id, document id where that differs,
    score, and as much of the text as fits. Ids are never cut. Of a long list
    the first ten are shown, and what was expected further down.

    Args:
        result: What came of the sample.
        expected: What was expected of it; None if that is not at hand, and
            then no result is marked.
        width: Columns of the terminal.
    """
    lines = _named("query", [plain_text(result.query)], width)
    if expected is not None:
        lines += _named("expected", list(_expected_lines(expected)) or ["nothing"], width)
    response = result.response
    if response is not None:
        if response.answer is not None:
            lines += _named("answer", [plain_text(response.answer)], width)
        lines += _retrieved(response.results, expected, width)
    lines += _named("scores", [_score_text(score) for score in result.scores], width)
    if result.latency_ms is not None:
        lines += _named("latency", [f"{format_ms(result.latency_ms)} ms"], width)
    if result.error is not None:
        lines += _named("error", [plain_text(sample_error(result))], width)
    lines += _named("before", list(_history_lines(result.metadata)), width)
    return lines


def _history_lines(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield what earlier sessions of the run had, and what they tried in vain."""
    if metadata.get("reused"):
        yield "result of an earlier session"
    elif metadata.get("reused_response"):
        yield "response of an earlier session or worker, scored now"
    for attempt in metadata.get("earlier_attempts", ()):
        kind = str(attempt["error_type"])
        code = EVALUATOR_FAILED if kind == "scoring" else sample_code(kind)
        text = error_line(code, attempt["message"])
        yield plain_text(f"session {attempt['session']}: {text}")


def _named(name: str, texts: Sequence[str], width: int) -> list[str]:
    """Return texts beside their name, wrapped below each other."""
    lines = [line for text in texts for line in wrap(text, width - _NAME_WIDTH)]
    return [
        f"{name if index == 0 else '':<{_NAME_WIDTH}}{line}".rstrip()
        for index, line in enumerate(lines)
    ]


# --- expectations ------------------------------------------------------------


def _expected_lines(expected: BenchmarkExpected) -> Iterator[str]:
    if expected.answers:
        yield "answers: " + " | ".join(_quoted(answer) for answer in expected.answers)
    if expected.evidence:
        # A stable sort: what is relevant first, best first.
        ordered = sorted(expected.evidence, key=lambda evidence: -max(0.0, _grade(evidence)))
        shown = [_evidence_text(evidence) for evidence in ordered[:_SHOWN_EVIDENCE]]
        if hidden := len(ordered) - len(shown):
            shown.append(f"... and {hidden} more")
        yield "evidence: " + ", ".join(shown)
    if expected.value is not None:
        yield f"value: {_short(str(expected.value))}"


def _evidence_text(evidence: BenchmarkEvidence) -> str:
    parts = []
    if evidence.reference_id is not None:
        parts.append(plain_text(evidence.reference_id))
    if evidence.locator:
        parts.append(plain_text(json.dumps(evidence.locator, ensure_ascii=False, default=str)))
    if evidence.text:
        parts.append(_quoted(evidence.text))
    if evidence.metadata.get("relevance") is not None:
        parts.append(f"(grade {_grade(evidence):g})")
    return " ".join(parts)


def _grade(evidence: BenchmarkEvidence) -> float:
    """Return the grade; one that is no number is an error elsewhere, and 0 here."""
    try:
        return evidence.grade
    except ModelInvalidError:
        return 0.0


def _quoted(text: str) -> str:
    return f'"{_short(text)}"'


def _short(text: str) -> str:
    return shorten(" ".join(plain_text(text).split()), _TEXT_WIDTH)


# --- results -----------------------------------------------------------------


def _retrieved(
    results: Sequence[QueryResult], expected: BenchmarkExpected | None, width: int
) -> list[str]:
    if not results:
        return _named("retrieved", ["nothing"], width)
    summary = counted(len(results), "result")
    hits: set[int] | None = None
    if expected is not None and expected.evidence:
        hits = {rank for rank, result in enumerate(results, 1) if _is_hit(result, expected)}
        summary += f", {len(hits)} of them expected (*)"
    shown = {
        rank: result
        for rank, result in enumerate(results, 1)
        if rank <= _SHOWN_RESULTS or rank in (hits or ())
    }
    lines = [*_named("retrieved", [summary], width), *_result_lines(shown, hits, width)]
    if hidden := len(results) - len(shown):
        lines.append(f"  ... and {hidden} more")
    return lines


def _result_lines(
    results: Mapping[int, QueryResult], hits: set[int] | None, width: int
) -> list[str]:
    """Return a header and the line of each result, by rank."""
    ids = tuple(plain_text(result.id) for result in results.values())
    documents = tuple(
        ", ".join(map(plain_text, result_document_ids(result))) for result in results.values()
    )
    columns = [Column("rank", tuple(map(str, results)))]
    if hits is not None:
        columns.append(Column("", tuple("*" if rank in hits else "" for rank in results)))
    columns.append(Column("id", ids, right=False))
    if documents != ids:
        columns.append(Column("document", documents, right=False))
    scores = tuple(format_number(result.score) for result in results.values())
    columns.append(Column("score", scores))
    header, *rows = ("  ".join(row) for row in zip(*(c.lines() for c in columns), strict=True))
    lines = [f"  {header}  text"]
    for row, result in zip(rows, results.values(), strict=True):
        lines += _with_snippet(f"  {row}", result.text, width)
    return lines


def _is_hit(result: QueryResult, expected: BenchmarkExpected) -> bool:
    return any(
        _grade(evidence) > 0 and holds_evidence(result, evidence) for evidence in expected.evidence
    )


def _with_snippet(row: str, text: str, width: int) -> list[str]:
    """Return a result's line, its text below if there is no room beside it."""
    snippet = " ".join(plain_text(text).split())
    if not snippet:
        return [row.rstrip()]
    room = width - display_width(row) - 2
    if room >= _LEAST_SNIPPET:
        return [f"{row}  {shorten(snippet, room)}"]
    return [row.rstrip(), shorten(f"        {snippet}", width)]


# --- scores ------------------------------------------------------------------


def _score_text(score: EvaluationScore) -> str:
    if score.status != "scored":
        return plain_text(f"{score.name}: {score.status}: {missing_reason(score)}")
    verdict = {True: " (passed)", False: " (not passed)", None: ""}[score.passed]
    return f"{plain_text(score.name)} = {_short(format_score(score.value))}{verdict}"
