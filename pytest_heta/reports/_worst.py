"""The cases of a report that did worst, with node ids to run them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from pytest_heta.models import (
    Direction,
    EvaluationCaseResult,
    EvaluationReport,
    MetricSummary,
)
from pytest_heta.reports._inert import plain_text
from pytest_heta.reports._layout import shorten
from pytest_heta.reports._numbers import format_number
from pytest_heta.reports._scores import error_line, missing_reason

__all__ = ["WorstCase", "worst_cases", "worst_cases_lines"]

_VALUE_WIDTH: Final = 7
_ERROR: Final = "ERROR"


@dataclass(frozen=True, slots=True)
class WorstCase:
    """A sample that is worth a look.

    Attributes:
        mode: Query mode it was asked in.
        case_id: Id of the case.
        node_id: Pytest node id that runs it again, None outside of pytest.
        query: Text of the query.
        metric: Metric it was chosen by.
        value: Its value, None if the sample errored.
        error: Why the sample or its score errored, None if it did not.
    """

    mode: str
    case_id: str
    node_id: str | None
    query: str
    metric: str | None
    value: float | None
    error: str | None


def worst_cases(report: EvaluationReport, per_mode: int = 5) -> list[WorstCase]:
    """Return the worst samples of each mode by the suite's first metric with numbers.

    Errored samples come first, then the values from the worst on; ties keep
    the benchmark's order. Samples without a value, and those as good as can
    be (1 of a metric whose values lie in 0..1; 0 if lower is better) are left
    out.
    """
    modes = dict.fromkeys((*report.query_modes, *report.mode_summaries))
    by_mode: dict[str, list[EvaluationCaseResult]] = {mode: [] for mode in modes}
    for result in report.case_results:
        by_mode.setdefault(result.query_mode, []).append(result)
    metric = _primary_metric(report)
    direction = _direction(report, metric)
    return [
        case
        for results in by_mode.values()
        for case in _worst_of_mode(results, metric, direction, per_mode)
    ]


def worst_cases_lines(
    report: EvaluationReport,
    width: int = 80,
    per_mode: int = 5,
    *,
    from_here: Callable[[str], str] = str,
) -> list[str]:
    """Return the worst cases as lines, an empty list if there are none.

    Queries and messages are shortened to ``width`` columns; node ids stand on
    lines of their own and are never cut, so that they can be copied. What
    ``from_here`` makes of a node id is what it is called where it is read.
    """
    lines: list[str] = []
    mode = None
    for case in worst_cases(report, per_mode):
        if case.mode != mode:
            mode = case.mode
            by = f" by {plain_text(case.metric)}" if case.metric else ""
            lines += [""] * bool(lines) + [f"{plain_text(mode)}{by}"]
        shown = _ERROR if case.value is None else format_number(case.value)
        name = case.case_id if case.node_id is None else from_here(case.node_id)
        lines.append(f"  {shown:<{_VALUE_WIDTH}} {plain_text(name)}")
        lines += [shorten(f"{'':{_VALUE_WIDTH + 3}}{text}", width) for text in _about(case)]
    return lines


def _about(case: WorstCase) -> Iterator[str]:
    if case.query.strip():
        yield plain_text(case.query).strip()
    if case.error is not None:
        yield plain_text(case.error).strip()


# --- choosing ----------------------------------------------------------------


def _summaries(report: EvaluationReport) -> Iterator[MetricSummary]:
    for mode in report.mode_summaries.values():
        yield from mode.metrics.values()


def _primary_metric(report: EvaluationReport) -> str | None:
    """Return the first metric with numbers."""
    numeric = (s.metric for s in _summaries(report) if s.value_counts is None)
    return next(numeric, None)


def _direction(report: EvaluationReport, metric: str | None) -> Direction:
    summaries = (summary for summary in _summaries(report) if summary.metric == metric)
    return next((summary.direction for summary in summaries), "higher")


def _worst_of_mode(
    results: Iterable[EvaluationCaseResult],
    metric: str | None,
    direction: Direction,
    count: int,
) -> list[WorstCase]:
    cases = [case for result in results if (case := _candidate(result, metric)) is not None]
    values = [case.value for case in cases if case.value is not None]
    sign, best = (1.0, 1.0) if direction == "higher" else (-1.0, 0.0)
    if all(0 <= value <= 1 for value in values):
        cases = [case for case in cases if case.value != best]
    return nsmallest(
        count,
        cases,
        key=lambda case: (case.value is not None, sign * (case.value or 0.0)),
    )


def _candidate(result: EvaluationCaseResult, metric: str | None) -> WorstCase | None:
    """Return the sample as one to choose from, None if it has nothing to show."""
    score = next((score for score in result.scores if score.name == metric), None)
    value: float | None = None
    if result.error is not None:
        error: str | None = error_line(result.error.error_type, result.error.message)
    elif score is not None and score.status == "errored":
        error = f"{score.name}: {missing_reason(score)}"
    elif score is not None and isinstance(score.value, float | int):
        value, error = float(score.value), None
    else:
        return None
    node_id = result.metadata.get("node_id")
    return WorstCase(
        mode=result.query_mode,
        case_id=result.case_id,
        node_id=node_id if isinstance(node_id, str) else None,
        query=result.query,
        metric=metric,
        value=value,
        error=error,
    )
