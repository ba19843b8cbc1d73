"""Gates as test cases of the session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

import pytest

from pytest_heta.core.plan import BenchmarkPlan
from pytest_heta.models import GateResult, ModeSummary
from pytest_heta.reports import gate_line

__all__ = ["emit_errors", "emit_gates", "gate_node_id"]

_Outcome = Literal["passed", "failed", "skipped"]
_PHASES: Final = ("setup", "call", "teardown")


def gate_node_id(plan: BenchmarkPlan, gate: GateResult) -> str:
    """Return the node id of a gate, which does not change with its threshold."""
    return f"{plan.suite_id}::{plan.label}::gate[{gate.mode}.{gate.aggregate} {gate.operator}]"


def emit_gates(
    config: pytest.Config,
    gates: Sequence[tuple[BenchmarkPlan, GateResult]],
    *,
    required: bool,
) -> None:
    """Report each gate as a test: passed, failed, or skipped when it was not decided."""
    times: Counter[str] = Counter()
    for plan, gate in gates:
        node_id = gate_node_id(plan, gate)
        times[node_id] += 1
        if times[node_id] > 1:
            # The same aggregate with another threshold, from another origin.
            node_id = f"{node_id.removesuffix(']')} #{times[node_id]}]"
        _emit_gate(config, plan, node_id, gate, required=required)


def _emit_gate(
    config: pytest.Config, plan: BenchmarkPlan, node_id: str, gate: GateResult, *, required: bool
) -> None:
    outcome: _Outcome
    if gate.status == "passed":
        outcome = "passed"
    elif gate.status == "skipped" and not required:
        outcome = "skipped"
    else:
        outcome = "failed"
    # The outcome says PASSED or FAILED already.
    text = gate_line(gate).partition(" ")[2]
    _emit(config, plan, node_id, outcome, text)


def emit_errors(
    config: pytest.Config,
    plan: BenchmarkPlan,
    mode: str,
    summary: ModeSummary,
    gates: Sequence[GateResult],
) -> None:
    """Fail the run for errors that ``fail_on = "gate"`` let pass and no decided gate covers."""
    lines = []
    if summary.failed_cases and not covers_errors(gates, plan, mode, "failed_cases"):
        lines.append(f"{summary.failed_cases} of {summary.total_cases} samples failed")
    if summary.scoring_errors and not covers_errors(gates, plan, mode, "scoring_errors"):
        scores = "score was" if summary.scoring_errors == 1 else "scores were"
        lines.append(f"{summary.scoring_errors} {scores} lost to evaluators' errors")
    if lines:
        text = f"{plan.label}: {mode}: {'; '.join(lines)}, and no decided gate covers that"
        _emit(config, plan, f"{plan.suite_id}::{plan.label}::errors[{mode}]", "failed", text)


def covers_errors(
    gates: Sequence[GateResult], plan: BenchmarkPlan, mode: str, aggregate: str
) -> bool:
    """Whether a decided gate judges the number of errors of a mode."""
    judging = {
        "failed_cases": ("failed_cases", "failure_rate", "successful_cases"),
        "scoring_errors": ("scoring_errors",),
    }[aggregate]
    return any(
        gate.status in {"passed", "failed"}
        and (gate.benchmark, gate.recipe, gate.mode)
        == (plan.benchmark.name, plan.recipe_name, mode)
        and gate.aggregate.startswith(judging)
        for gate in gates
    )


def _emit(
    config: pytest.Config, plan: BenchmarkPlan, node_id: str, outcome: _Outcome, text: str
) -> None:
    path = plan.suite_id
    location = (path, 0, node_id.partition("::")[2].replace("::", "."))
    hook = config.hook
    hook.pytest_runtest_logstart(nodeid=node_id, location=location)
    for phase in _PHASES:
        own: _Outcome = outcome if phase == "call" else "passed"
        longrepr: str | tuple[str, int, str] | None = None
        if own == "failed":
            longrepr = text
        elif own == "skipped":
            longrepr = (path, 0, text)
        report = pytest.TestReport(
            nodeid=node_id,
            location=location,
            keywords={},
            outcome=own,
            longrepr=longrepr,
            when=phase,  # type: ignore[arg-type]
            sections=[("heta gate", text)] if phase == "call" and own == "passed" else [],
            start=0,
            stop=0,
        )
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=node_id, location=location)
