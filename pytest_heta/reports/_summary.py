"""The table of a report: one row for each mode, every mean beside its denominators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from pytest_heta.models import EvaluationReport, MetricSummary, ModeSummary, UnitBuild
from pytest_heta.reports._inert import plain_text
from pytest_heta.reports._layout import Column, Group, shorten, table, wrap
from pytest_heta.reports._numbers import NOTHING, counted, format_ms, format_number, format_seconds

__all__ = ["report_label", "reuse_text", "summary_table"]

_SHOWN_LABELS: Final = 8
"""Labels of a metric that get a column of their own; the others share one."""

_LABEL_WIDTH: Final = 30
_SAME: Final = 1e-6

_COUNTS: Final[Sequence[tuple[str, Callable[[MetricSummary], int]]]] = (
    ("errored", lambda metric: metric.n_errored),
    ("skipped", lambda metric: metric.n_skipped),
    ("unjudged", lambda metric: metric.n_unjudged),
)


def report_label(report: EvaluationReport) -> str:
    """Return how the report is called: its benchmark, ``@`` its recipe if several ran."""
    return plain_text(report.metadata.get("label") or report.benchmark.name)


def summary_table(
    report: EvaluationReport, width: int, *, baseline: EvaluationReport | None = None
) -> list[str]:
    """Return the report's aggregates as lines of at most ``width`` columns.

    There is one row for each mode. Metrics with the same counts in all modes
    stand together before these counts: how many samples were scored and,
    where there are any, how many errored, were skipped or unjudged. The mean
    is over scored and errored ones. What does not fit beside goes below, with
    the modes repeated; names are never cut, so a very long one makes its line
    longer.

    Args:
        report: The report.
        width: Columns of the terminal.
        baseline: An earlier report. The difference of each mean to its mean
            stands in parentheses.
    """
    lines = wrap(_headline(report), width, indent="  ")
    modes = _modes(report)
    if any(mode.total_cases for mode in modes):
        key = Column("mode", tuple(plain_text(mode.mode) for mode in modes), right=False)
        groups = [*_metric_groups(modes, baseline), _outcome_group(modes), _latency_group(modes)]
        lines += ["", *table(key, groups, width)]
    notes = _notes(modes)
    if baseline is not None:
        notes.insert(0, f"in parentheses: the change since {baseline.finished_at:%Y-%m-%d %H:%M}")
    notes = [line for note in notes for line in wrap(note, width, indent="  ")]
    return [*lines, "", *notes] if notes else lines


def _modes(report: EvaluationReport) -> list[ModeSummary]:
    """Return the summaries in the order the modes were asked for."""
    summaries = report.mode_summaries
    names = dict.fromkeys((*report.query_modes, *summaries))
    return [summaries[name] for name in names if name in summaries]


# --- above the table ---------------------------------------------------------


def _headline(report: EvaluationReport) -> str:
    modes = _modes(report)
    cases = max((mode.distinct_cases for mode in modes), default=0)
    total = report.metadata.get("dataset_cases")
    shown = f"{cases} of {total} cases" if _exceeds(total, cases) else counted(cases, "case")
    parts = [f"{report_label(report)}: {shown}", counted(len(modes), "mode"), _builds(report)]
    parts.append(reuse_text([report]))
    if report.metadata.get("complete") is False:
        parts.append("INCOMPLETE")
    return ", ".join(part for part in parts if part)


def reuse_text(reports: Iterable[EvaluationReport]) -> str:
    """Return how many results and responses were taken over, empty if none were."""
    modes = [mode for report in reports for mode in report.mode_summaries.values()]
    counts = {
        "result": sum(mode.reused_samples for mode in modes),
        "response": sum(mode.reused_responses for mode in modes),
    }
    told = " and ".join(counted(count, what) for what, count in counts.items() if count)
    return f"{told} reused" if told else ""


def _exceeds(total: object, number: int) -> bool:
    return isinstance(total, int) and total > number


def _builds(report: EvaluationReport) -> str:
    builds = report.unit_builds
    reused = [build for build in builds if build.reused]
    built = [build for build in builds if build.error is None and not build.reused]
    total = counted(len(builds), "knowledge base")
    texts = []
    if len(built) + len(reused) < len(builds) or (built and reused):
        texts.append(f"{len(built)} of {total} built{_build_times(built)}")
    elif built:
        texts.append(f"{total} built{_build_times(built)}")
    if reused:
        what = str(len(reused)) if texts else total
        loading = format_seconds(sum(build.load_seconds or 0.0 for build in reused))
        building = format_seconds(sum(build.build_seconds or 0.0 for build in reused))
        texts.append(f"{what} loaded from the cache in {loading} (first built in {building})")
    return ", ".join(texts)


def _build_times(built: Sequence[UnitBuild]) -> str:
    timed = [
        (build.build_seconds, build.unit_id) for build in built if build.build_seconds is not None
    ]
    text = f" in {format_seconds(sum(seconds for seconds, _ in timed))}" if timed else ""
    if len(timed) > 1:
        seconds, unit = max(timed)
        text += f" (longest {format_seconds(seconds)}: {plain_text(unit)})"
    return text


# --- the table's columns -----------------------------------------------------


def _metric_groups(
    modes: Sequence[ModeSummary], baseline: EvaluationReport | None
) -> Iterator[Group]:
    """Yield the metrics, neighbours with the same counts as one group."""
    values: tuple[Column, ...] = ()
    counts: tuple[Column, ...] | None = None
    for name in dict.fromkeys(name for mode in modes for name in mode.metrics):
        own_counts = _count_columns(name, modes)
        if values and own_counts != counts:
            yield Group(values, counts or ())
            values = ()
        values += _value_columns(name, modes, baseline)
        counts = own_counts
    if values:
        yield Group(values, counts or ())


def _count_columns(name: str, modes: Sequence[ModeSummary]) -> tuple[Column, ...]:
    columns = [_column("scored", name, modes, lambda metric: metric.n_scored)]
    for header, count in _COUNTS:
        if any(name in mode.metrics and count(mode.metrics[name]) for mode in modes):
            columns.append(_column(header, name, modes, count))
    return tuple(columns)


def _value_columns(
    name: str, modes: Sequence[ModeSummary], baseline: EvaluationReport | None
) -> tuple[Column, ...]:
    summaries = [mode.metrics[name] for mode in modes if name in mode.metrics]
    shown = plain_text(name)
    columns: list[Column] = []
    if any(summary.value_counts is None for summary in summaries):
        columns.append(Column(shown, tuple(_mean_text(name, mode, baseline) for mode in modes)))
    if any(_verdicts_differ(summary) for summary in summaries):
        columns.append(_column(f"{shown} passed", name, modes, _passed))
    return (*columns, *_label_columns(name, modes, summaries))


def _mean_text(name: str, mode: ModeSummary, baseline: EvaluationReport | None) -> str:
    mean = mode.metrics[name].mean if name in mode.metrics else None
    if baseline is None or mean is None:
        return format_number(mean)
    before = baseline.score_summary.get(f"{mode.mode}.{name}")
    change = "new" if before is None else f"{mean - before:+.4f}"
    return f"{format_number(mean)} ({change})"


def _verdicts_differ(metric: MetricSummary) -> bool:
    """Whether the number of passed scores says something that the mean does not."""
    if metric.n_passed is None:
        return False
    total = (metric.mean or 0.0) * (metric.n_scored + metric.n_errored)
    return abs(total - metric.n_passed) > _SAME


def _passed(metric: MetricSummary) -> int | str:
    return NOTHING if metric.n_passed is None else metric.n_passed


def _label_columns(
    name: str, modes: Sequence[ModeSummary], summaries: Sequence[MetricSummary]
) -> Iterator[Column]:
    """Yield a column for each label, the most frequent first."""
    totals: Counter[str] = Counter()
    for summary in summaries:
        totals.update(summary.value_counts or {})
    labels = sorted(totals, key=lambda label: (-totals[label], label))
    for label in labels[:_SHOWN_LABELS]:
        header = f"{plain_text(name)}={shorten(plain_text(label), _LABEL_WIDTH)}"
        yield _column(header, name, modes, partial(_label_count, labels=[label]))
    if rest := labels[_SHOWN_LABELS:]:
        header = f"{plain_text(name)}: {counted(len(rest), 'other')}"
        yield _column(header, name, modes, partial(_label_count, labels=rest))


def _label_count(metric: MetricSummary, labels: Sequence[str]) -> int:
    counts = metric.value_counts or {}
    return sum(counts.get(label, 0) for label in labels)


def _column(
    header: str,
    name: str,
    modes: Sequence[ModeSummary],
    cell: Callable[[MetricSummary], int | str],
) -> Column:
    """Return a column of one metric; a mode without the metric has nothing to show."""
    cells = (str(cell(mode.metrics[name])) if name in mode.metrics else NOTHING for mode in modes)
    return Column(header, tuple(cells))


def _outcome_group(modes: Sequence[ModeSummary]) -> Group:
    failed = Column("failed", tuple(str(mode.failed_cases) for mode in modes))
    samples = (
        f"{mode.total_cases} of {mode.planned_samples}"
        if mode.planned_samples > mode.total_cases
        else str(mode.total_cases)
        for mode in modes
    )
    return Group((failed,), (Column("samples", tuple(samples)),))


def _latency_group(modes: Sequence[ModeSummary]) -> Group:
    return Group(
        (
            Column("p50 ms", tuple(format_ms(mode.latency.p50_ms) for mode in modes)),
            Column("p95 ms", tuple(format_ms(mode.latency.p95_ms) for mode in modes)),
        ),
        (Column("timed", tuple(str(mode.latency.n) for mode in modes)),),
    )


# --- below the table ---------------------------------------------------------


def _notes(modes: Sequence[ModeSummary]) -> list[str]:
    """Return what the numbers alone do not say, each thing once for all modes it holds for."""
    holders: dict[str, list[str]] = {}
    for mode in modes:
        for note in (*_missing_values(mode), *_folded_results(mode), *_more_attempts(mode)):
            holders.setdefault(note, []).append(plain_text(mode.mode))
    return [
        note if len(holders[note]) == len(modes) else f"{note} [{', '.join(holders[note])}]"
        for note in holders
    ]


def _missing_values(mode: ModeSummary) -> Iterator[str]:
    metrics: dict[str, list[str]] = {}
    for name, metric in mode.metrics.items():
        if metric.reasons:
            reasons = ", ".join(
                f"{plain_text(reason)} ({count})"
                for reason, count in sorted(metric.reasons.items())
            )
            metrics.setdefault(reasons, []).append(plain_text(name))
    for reasons, names in metrics.items():
        yield f"without a value: {', '.join(names)}: {reasons}"


def _more_attempts(mode: ModeSummary) -> Iterator[str]:
    if mode.attempts > mode.total_cases:
        yield f"asked again: {mode.attempts} attempts for {counted(mode.total_cases, 'sample')}"


def _folded_results(mode: ModeSummary) -> Iterator[str]:
    metrics: dict[float, list[str]] = {}
    for name, metric in mode.metrics.items():
        if metric.distinct_documents is not None:
            metrics.setdefault(metric.distinct_documents, []).append(plain_text(name))
    for documents, names in metrics.items():
        yield f"distinct documents: {documents:.1f} on average, for {', '.join(names)}"
