"""Gates: the step that decides them.

`pytest_heta.core._gate_text` has the grammar and the aggregates,
`pytest_heta.core._gate_plan` finds the plans and modes that gates are about;
what others need of them is here as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from pytest_heta.comparison import holds, number_text, relation_of, value_text
from pytest_heta.core._gate_plan import (
    ResolvedGate,
    gated_measures,
    gates_of_run,
    measures_of_gates,
    resolve_gates,
    suite_gates,
)
from pytest_heta.core._gate_text import (
    AGGREGATES,
    METRIC_FUNCTIONS,
    OPERATORS,
    Gate,
    Measured,
    Threshold,
    parse_gate,
)
from pytest_heta.models import GateResult, MetricSummary, ModeSummary, Operator

__all__ = [
    "AGGREGATES",
    "METRIC_FUNCTIONS",
    "OPERATORS",
    "Gate",
    "Operator",
    "ResolvedGate",
    "Subset",
    "Threshold",
    "decide_gates",
    "gated_measures",
    "gates_of_run",
    "holds",
    "measures_of_gates",
    "parse_gate",
    "resolve_gates",
    "suite_gates",
]

Subset = Literal["skip", "decide", "fail"]
"""What becomes of a gate when not all of its planned samples ran."""

Completeness = Callable[[str, str], tuple[int, int]] | Mapping[tuple[str, str], tuple[int, int]]
"""How many samples ran and how many are planned, by plan label and mode."""


def decide_gates(
    resolved: Iterable[ResolvedGate],
    summaries: Mapping[str, Mapping[str, ModeSummary]],
    *,
    subset: Subset,
    complete: Completeness,
) -> tuple[GateResult, ...]:
    """Decide gates.

    Args:
        resolved: The gates.
        summaries: Summaries by plan label and mode.
        subset: What to do with a gate if not all of its planned samples ran:
            skip it, decide it on those that did, or fail it.
        complete: How many samples ran and how many are planned, for a plan
            label and a mode.

    Returns:
        One result for each gate. One without a value is ``undecided``, which
        is not passed.
    """
    return tuple(
        _decide(gate, summaries.get(gate.plan_label, {}).get(gate.mode), subset, complete)
        for gate in resolved
    )


def _decide(
    resolved: ResolvedGate, summary: ModeSummary | None, subset: Subset, complete: Completeness
) -> GateResult:
    if resolved.not_planned is not None:
        return _result(resolved, "skipped", resolved.not_planned)
    key = (resolved.plan_label, resolved.mode)
    ran, planned = complete(*key) if callable(complete) else complete.get(key, (0, 0))
    value, n = _measure(resolved, summary)
    partial = f"{ran} of {planned} samples ran" if ran < planned else None
    if partial is not None and subset != "decide":
        return _result(resolved, "skipped" if subset == "skip" else "failed", partial, value, n)
    if value is None:
        notes = [_why_no_value(resolved, summary), partial]
        return _result(resolved, "undecided", _joined(notes), None, n)
    threshold = resolved.gate.threshold.value
    passed = holds(value, resolved.gate.operator, threshold)
    comparison = _comparison(value, resolved.gate.operator, threshold, passed=passed)
    reason = _joined([comparison, resolved.population, partial])
    return _result(resolved, "passed" if passed else "failed", reason, value, n)


def _joined(notes: Iterable[str | None]) -> str:
    return ", ".join(note for note in notes if note is not None)


def _measure(resolved: ResolvedGate, summary: ModeSummary | None) -> Measured:
    """Return the value that a gate compares, and the samples behind it."""
    if summary is None or not summary.total_cases:
        return None, 0
    function = resolved.gate.function
    if function is None:
        return AGGREGATES[resolved.gate.metric](summary)
    metric = summary.metrics.get(resolved.gate.metric)
    return (None, 0) if metric is None else METRIC_FUNCTIONS[function](metric)


def _why_no_value(resolved: ResolvedGate, summary: ModeSummary | None) -> str:
    if summary is None or not summary.total_cases:
        return "no value: 0 samples"
    if resolved.gate.function is None:
        return "no value: no latency was measured"
    metric = summary.metrics.get(resolved.gate.metric)
    return f"no value: {_missing(metric) if metric is not None else 'no scores'}"


def _missing(metric: MetricSummary) -> str:
    if metric.value_counts is not None:
        return "the scores are labels"
    counts = {"skipped": metric.n_skipped, "unjudged": metric.n_unjudged}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no scores"


def _comparison(value: float, operator: Operator, threshold: float, *, passed: bool) -> str:
    relation = relation_of(operator, held=passed)
    return f"{value_text(float(value), relation, threshold)} {relation} {number_text(threshold)}"


def _result(
    resolved: ResolvedGate,
    status: Literal["passed", "failed", "skipped", "undecided"],
    reason: str,
    value: float | None = None,
    n: int = 0,
) -> GateResult:
    gate = resolved.gate
    return GateResult(
        gate=resolved.text,
        written=gate.written or gate.text,
        origin=gate.origin,
        benchmark=resolved.benchmark,
        recipe=resolved.recipe,
        mode=resolved.mode,
        aggregate=gate.aggregate,
        operator=gate.operator,
        threshold=gate.threshold.value,
        value=None if value is None else float(value),
        n=n,
        status=status,
        reason=reason,
    )
