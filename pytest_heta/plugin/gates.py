"""Gates as test cases of the session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

import pytest

from pytest_heta.codes import coded
from pytest_heta.core.plan import BenchmarkPlan
from pytest_heta.models import GateResult, ModeSummary
from pytest_heta.reports import gate_line

__all__ = ["emit_errors", "emit_gates", "gate_node_id", "uncovered_errors"]

_Outcome = Literal["passed", "failed", "skipped"]
_AT_MOST: Final = ("<=", "<", "==")
_AT_LEAST: Final = (">=", ">", "==")
_PHASES: Final = ("setup", "call", "teardown")


def gate_node_id(suite_id: str, label: str, gate: GateResult) -> str:
    """Return the node id of a gate, which does not change with its threshold."""
    return f"{suite_id}::{label}::gate[{gate.mode}.{gate.aggregate} {gate.operator}]"


def emit_gates(
    config: pytest.Config,
    plans: Sequence[BenchmarkPlan],
    gates: Sequence[GateResult],
    *,
    required: bool,
) -> None:
    """Report each gate as a test: passed, failed, or skipped when it was not decided.

    Args:
        config: pytest's config.
        plans: The plans of the run.
        gates: What came of the gates.
        required: Whether a gate that was not decided fails. One that is about
            a recipe which is not in this run never does.
    """
    recipes = {"*", *(plan.recipe_name for plan in plans)}
    times: Counter[str] = Counter()
    for gate in gates:
        suite_id, label = _home_of(gate, plans)
        node_id = gate_node_id(suite_id, label, gate)
        times[node_id] += 1
        if times[node_id] > 1:
            # The same aggregate with another threshold, from another origin.
            node_id = f"{node_id.removesuffix(']')} #{times[node_id]}]"
        outcome: _Outcome
        if gate.status == "passed":
            outcome = "passed"
        elif gate.status == "skipped" and not (required and gate.recipe in recipes):
            outcome = "skipped"
        else:
            outcome = "failed"
        # The outcome says PASSED or FAILED already.
        text = gate_line(gate).partition(" ")[2]
        if outcome == "failed" and gate.status == "skipped":
            text += ", and --heta-require-gates asks for a decision"
            text = coded("gate-undecided", text)
        elif outcome == "failed":
            text = coded("gate-failed", text)
        _emit(config, suite_id, node_id, outcome, text)


def _home_of(gate: GateResult, plans: Sequence[BenchmarkPlan]) -> tuple[str, str]:
    """Return suite and label of a gate; those of a gate that is not planned are the nearest."""
    for plan in plans:
        if (gate.benchmark, gate.recipe) == (plan.benchmark.name, plan.recipe_name):
            return plan.suite_id, plan.label
    same = [plan for plan in plans if plan.benchmark.name == gate.benchmark]
    return (same or plans)[0].suite_id, f"{gate.benchmark}@{gate.recipe}"


def uncovered_errors(
    plan: BenchmarkPlan, mode: str, summary: ModeSummary, gates: Sequence[GateResult]
) -> str | None:
    """Return which errors, that ``fail_on = "gate"`` let pass, no decided gate covers."""
    lines = []
    if summary.failed_cases and not _covers_errors(gates, plan, mode, "failed_cases"):
        lines.append(f"{summary.failed_cases} of {summary.total_cases} samples failed")
    if summary.scoring_errors and not _covers_errors(gates, plan, mode, "scoring_errors"):
        scores = "score was" if summary.scoring_errors == 1 else "scores were"
        lines.append(f"{summary.scoring_errors} {scores} lost to evaluators' errors")
    if not lines:
        return None
    text = f"{plan.label}: {mode}: {'; '.join(lines)}, and no decided gate covers that"
    return coded("errors-uncovered", text)


def emit_errors(config: pytest.Config, plan: BenchmarkPlan, mode: str, text: str) -> None:
    """Fail the run for errors that no decided gate covers."""
    suite_id = plan.suite_id
    _emit(config, suite_id, f"{suite_id}::{plan.label}::errors[{mode}]", "failed", text)


def _covers_errors(
    gates: Sequence[GateResult], plan: BenchmarkPlan, mode: str, aggregate: str
) -> bool:
    """Whether a decided gate limits the number of errors of a mode."""
    limits = {
        "failed_cases": {
            "failed_cases": _AT_MOST,
            "failure_rate": _AT_MOST,
            "successful_cases": _AT_LEAST,
        },
        "scoring_errors": {"scoring_errors": _AT_MOST},
    }[aggregate]
    return any(
        gate.status in {"passed", "failed"}
        and (gate.benchmark, gate.recipe, gate.mode)
        == (plan.benchmark.name, plan.recipe_name, mode)
        and gate.operator in limits.get(gate.aggregate, ())
        for gate in gates
    )


def _emit(config: pytest.Config, path: str, node_id: str, outcome: _Outcome, text: str) -> None:
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
            when=phase,
            sections=[("heta gate", text)] if phase == "call" and own == "passed" else [],
            start=0,
            stop=0,
        )
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=node_id, location=location)
