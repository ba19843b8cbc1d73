"""Names and values for the properties of a JUnit file: plain strings, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pytest_heta.models import (
    EvaluationCaseResult,
    EvaluationReport,
    EvaluationScore,
    MetricSummary,
    ModeSummary,
    SampleTally,
)
from pytest_heta.reports._gates import gate_line
from pytest_heta.reports._inert import plain_text
from pytest_heta.reports._layout import shorten
from pytest_heta.reports._scores import missing_reason
from pytest_heta.reports._summary import report_label

__all__ = ["case_properties", "suite_properties", "tally_properties"]

_TEXT_WIDTH: Final = 200

Property = tuple[str, str]


def suite_properties(reports: Iterable[EvaluationReport]) -> list[Property]:
    """Return the aggregates of reports, by names that begin with the report's label.

    ``label.mode.metric`` is the mean, left out when there is none; its counts
    are ``label.mode.metric.n``, ``….n_scored`` and so on, the counts of labels
    ``label.mode.metric[value]``. Of the mode itself there are total_cases,
    failed_cases, failure_rate, scoring_errors and the latencies, and
    planned_samples where not all of them have a result: such means are those
    of a part; reused_samples and attempts where a run was gone on with. Each gate
    is ``label.gate[…]`` with the line that the terminal shows.
    """
    return [
        (plain_text(name), plain_text(value))
        for report in reports
        for name, value in _report_properties(report)
    ]


def _report_properties(report: EvaluationReport) -> Iterator[Property]:
    label = report_label(report)
    for mode, summary in report.mode_summaries.items():
        for name, metric in summary.metrics.items():
            yield from _metric_properties(f"{label}.{mode}.{name}", metric)
        yield from _mode_properties(f"{label}.{mode}", summary)
    # The same gate may be written in the suite and on the command line.
    yield from {f"{label}.gate[{gate.gate}]": gate_line(gate) for gate in report.gates}.items()


def _metric_properties(name: str, metric: MetricSummary) -> Iterator[Property]:
    if metric.mean is not None:
        yield name, _text(metric.mean)
    for field in ("n", "n_scored", "n_errored", "n_skipped", "n_unjudged"):
        yield f"{name}.{field}", _text(getattr(metric, field))
    for value, count in sorted((metric.value_counts or {}).items()):
        yield f"{name}[{_shown(value)}]", _text(count)


def _mode_properties(name: str, summary: ModeSummary) -> Iterator[Property]:
    latency = summary.latency
    partial = summary.planned_samples > summary.total_cases
    values = {
        "total_cases": summary.total_cases,
        "planned_samples": summary.planned_samples if partial else None,
        "failed_cases": summary.failed_cases,
        "failure_rate": summary.failure_rate,
        "scoring_errors": summary.scoring_errors,
        "reused_samples": summary.reused_samples or None,
        "attempts": summary.attempts if summary.attempts > summary.total_cases else None,
        "p50_latency_ms": latency.p50_ms,
        "p95_latency_ms": latency.p95_ms,
        "n_latency": latency.n,
    }
    for key, value in values.items():
        if value is not None:
            yield f"{name}.{key}", _text(value)


def case_properties(result: EvaluationCaseResult) -> list[Property]:
    """Return the scores of a sample by metric, and its latency.

    A score without a value gives ``metric.reason`` in its place, and a sample
    that failed an ``error_type``. What an earlier session of the run had is told
    by ``heta_reused``, ``result`` or ``response``, and samples that were tried
    several times by ``heta_attempts``.
    """
    properties = [_score_property(score) for score in result.scores]
    if result.latency_ms is not None:
        properties.append(("latency_ms", f"{result.latency_ms:.3f}"))
    if result.error is not None:
        properties.append(("error_type", result.error.error_type))
    properties += _history(result.metadata)
    return [(plain_text(name), plain_text(value)) for name, value in properties]


def _history(metadata: Mapping[str, object]) -> Iterator[Property]:
    if metadata.get("reused"):
        yield "heta_reused", "result"
    elif metadata.get("reused_response"):
        yield "heta_reused", "response"
    attempts = metadata.get("attempts", 1)
    if attempts != 1:
        yield "heta_attempts", str(attempts)


def tally_properties(tally: SampleTally) -> list[Property]:
    """Return what `case_properties` returns of a sample that succeeded, and scored numbers only."""
    properties = [(plain_text(score.name), str(score.value)) for score in tally.scores]
    if tally.latency_ms is not None:
        properties.append(("latency_ms", f"{tally.latency_ms:.3f}"))
    return properties


def _score_property(score: EvaluationScore) -> Property:
    if score.status == "scored" and score.value is not None:
        return score.name, _text(score.value)
    return f"{score.name}.reason", _shown(missing_reason(score))


def _text(value: float | bool | str) -> str:  # noqa: FBT001 - a score, not a switch
    """Return numbers in full, truth values as 0 and 1: as they are averaged."""
    if isinstance(value, str):
        return _shown(value)
    return str(int(value) if isinstance(value, bool) else value)


def _shown(text: str) -> str:
    return shorten(plain_text(text), _TEXT_WIDTH)
