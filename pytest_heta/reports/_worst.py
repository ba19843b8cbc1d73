"""The cases of a report that did worst, with node ids to run them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappush, heappushpop
from typing import Final, NamedTuple

from pytest_heta.models import (
    Direction,
    EvaluationCaseResult,
    EvaluationReport,
    MetricSummary,
    PagedResults,
    SampleTally,
)
from pytest_heta.reports._inert import plain_text
from pytest_heta.reports._layout import shorten
from pytest_heta.reports._numbers import format_number
from pytest_heta.reports._scores import sample_error, score_error

__all__ = ["WorstCase", "worst_cases", "worst_cases_lines"]

_VALUE_WIDTH: Final = 7
_ERROR: Final = "ERROR"

_Place = tuple[bool, float, int]
"""Whether a sample errored, how bad its value is, and its negative index."""


class WorstCase(NamedTuple):
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
    metric = _primary_metric(report)
    direction = _direction(report, metric)
    modes = dict.fromkeys((*report.query_modes, *report.mode_summaries))
    worst = {mode: _Worst(direction, per_mode) for mode in modes}
    results = report.case_results
    for index, tally in enumerate(_tallies(results)):
        of_mode = worst.get(tally.mode)
        if of_mode is None:
            of_mode = worst[tally.mode] = _Worst(direction, per_mode)
        of_mode.see(index, tally, metric)
    return [
        _worst_case(results[index], metric) for mode in worst.values() for index in mode.indices()
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


def _tallies(results: Sequence[EvaluationCaseResult]) -> Iterable[SampleTally]:
    return results.tallies if isinstance(results, PagedResults) else map(SampleTally.of, results)


class _Worst:
    """The samples of one mode that did worst, as they are seen in order.

    Those with the best value there is are of interest only when values do
    not lie in 0..1, which is known at the end; so both ways are kept.
    """

    def __init__(self, direction: Direction, count: int) -> None:
        self._sign, self._best = (1.0, 1.0) if direction == "higher" else (-1.0, 0.0)
        self._count = count
        self._is_bounded = True
        self._all: list[_Place] = []
        self._improvable: list[_Place] = []

    def see(self, index: int, tally: SampleTally, metric: str | None) -> None:
        """Keep a sample if it is one of the worst so far."""
        score = next((score for score in tally.scores if score.name == metric), None)
        value: float | None = None
        if not tally.failed and (score is None or score.status != "errored"):
            if score is None or not isinstance(score.value, float | int):
                return
            value = float(score.value)
            self._is_bounded = self._is_bounded and 0 <= value <= 1
        # The least place is the best of the worst, the first to go.
        place = (value is None, -self._sign * (value or 0.0), -index)
        self._keep(self._all, place)
        if value != self._best:
            self._keep(self._improvable, place)

    def _keep(self, heap: list[_Place], place: _Place) -> None:
        if len(heap) < self._count:
            heappush(heap, place)
        elif heap:
            heappushpop(heap, place)

    def indices(self) -> list[int]:
        """Return where the worst are, from the worst on."""
        kept = self._improvable if self._is_bounded else self._all
        return [-index for _, _, index in sorted(kept, reverse=True)]


def _worst_case(result: EvaluationCaseResult, metric: str | None) -> WorstCase:
    score = next((score for score in result.scores if score.name == metric), None)
    value: float | None = None
    error: str | None = None
    if result.error is not None:
        error = sample_error(result)
    elif score is not None and score.status == "errored":
        error = score_error(score)
    elif score is not None and isinstance(score.value, float | int):
        value = float(score.value)
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
