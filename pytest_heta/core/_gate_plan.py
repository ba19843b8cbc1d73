"""Which plans and modes gates are about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final

from pytest_heta.comparison import number_text
from pytest_heta.core._gate_text import (
    AGGREGATES,
    UNBUILT_FUNCTIONS,
    Gate,
    gate_invalid,
    parse_gate,
)
from pytest_heta.core.plan import BenchmarkPlan, MetricSpec, Suite, recipe_modes
from pytest_heta.errors import ConfigurationError, GateInvalidError, did_you_mean
from pytest_heta.evaluators import as_evaluator
from pytest_heta.measures import likely_measure, measure_families

__all__ = [
    "ResolvedGate",
    "gated_measures",
    "gates_of_run",
    "measures_of_gates",
    "resolve_gates",
    "suite_gates",
]

_BOUNDED_AGGREGATES: Final = frozenset({"failure_rate"})


@dataclass(frozen=True, slots=True)
class ResolvedGate:
    """A gate for one plan and one mode.

    Attributes:
        gate: The gate as parsed.
        plan_label: Label of the plan.
        benchmark: Name of the benchmark.
        recipe: Name of the recipe.
        mode: Query mode.
        population: What a reduced plan covers, such as ``on 50 of 225 cases``.
        not_planned: Why it cannot be decided in this run, if it cannot.
    """

    gate: Gate
    plan_label: str
    benchmark: str
    recipe: str
    mode: str
    population: str | None = None
    not_planned: str | None = None

    @property
    def key(self) -> str:
        """What the gate is about; the same for every operator and threshold."""
        bound = replace(self.gate, mode=self.mode, benchmark=None, recipe=None)
        return f"{self.plan_label}:{bound.subject}"

    @property
    def text(self) -> str:
        """The gate with the names of plan and mode in place of patterns."""
        return f"{self.key} {self.gate.operator} {self.gate.threshold}"


# --- what gates ask for ------------------------------------------------------


def suite_gates(plans: Iterable[BenchmarkPlan]) -> tuple[Gate, ...]:
    """Return the gates that the suites of ``plans`` declare.

    A suite's gates are about its own benchmark, with every recipe.

    Raises:
        GateInvalidError: if one is not a gate, or names another benchmark.
    """
    gates: list[Gate] = []
    seen: set[str] = set()
    for plan in plans:
        name = plan.benchmark.name
        if name in seen:  # the same suite, with another recipe
            continue
        seen.add(name)
        for text in plan.gates:
            gate = parse_gate(text, "suite")
            if gate.benchmark not in {None, name}:
                raise gate_invalid(
                    text,
                    f"a gate of the suite {name!r} is about another benchmark",
                    "leave the benchmark out",
                )
            gates.append(replace(gate, benchmark=name))
    return tuple(gates)


def measures_of_gates(
    gates: Iterable[Gate], suite: Suite, benchmark: str, recipe: str
) -> tuple[str, ...]:
    """Return the measures that a plan has to have for the gates of its run and its suite.

    Args:
        gates: Gates of the run.
        suite: The suite.
        benchmark: Name of the suite's benchmark.
        recipe: Name of the recipe.

    Raises:
        GateInvalidError: if a gate of the suite is not one.
    """
    written = [*gates, *(parse_gate(text, "suite") for text in suite.gates)]
    return gated_measures(written, benchmark, recipe)


def gates_of_run(
    gates: Iterable[Gate], plans: Sequence[BenchmarkPlan], recipes: Iterable[Any]
) -> tuple[ResolvedGate, ...]:
    """Bind the gates of a run and of its suites to the plans and modes that they are about.

    Args:
        gates: Gates of the run.
        plans: The plans of the run.
        recipes: Its recipes.

    Raises:
        GateInvalidError: as `resolve_gates` and `suite_gates` say.
    """
    modes = {str(getattr(recipe, "name", "")): recipe_modes(recipe) for recipe in recipes}
    known_modes = {plan.label: modes.get(plan.recipe_name) or plan.modes for plan in plans}
    return resolve_gates([*gates, *suite_gates(plans)], plans, known_modes=known_modes)


def gated_measures(gates: Iterable[Gate], benchmark: str, recipe: str) -> tuple[str, ...]:
    """Return the measures that gates name for a benchmark and a recipe.

    They are computed whether or not the suite has evaluators for them.
    """
    names: dict[str, None] = {}
    for gate in gates:
        if _is_about(gate, benchmark, recipe) and gate.function is not None:
            name = _measure_name(gate.metric)
            if name is not None:
                names[name] = None
    return tuple(names)


def _is_about(gate: Gate, benchmark: str, recipe: str) -> bool:
    return gate.benchmark in {None, benchmark} and gate.recipe in {None, recipe}


def _measure_name(text: str) -> str | None:
    try:
        return as_evaluator(text).name
    except ConfigurationError:
        return None


# --- resolving ---------------------------------------------------------------


def resolve_gates(
    gates: Iterable[Gate],
    plans: Sequence[BenchmarkPlan],
    *,
    known_modes: Mapping[str, Sequence[str]] | None = None,
) -> tuple[ResolvedGate, ...]:
    """Bind gates to the plans and modes that they are about.

    A pattern gives one resolved gate for each plan and mode that it matches
    and that has the metric; a gate without benchmark is a pattern. A gate of
    the ini file or of a suite whose benchmark, recipe or mode is not part of
    this run is kept, to be reported as skipped; one from the command line is
    an error then.

    Args:
        gates: The gates. Several about the same thing all apply.
        plans: The plans of the run; without any, nothing is resolved.
        known_modes: All modes that the recipe of a plan has, by plan label.

    Raises:
        GateInvalidError: if a gate is about nothing that is planned, has a
            threshold that its metric cannot reach, or a form that is not
            built.
    """
    resolved: list[ResolvedGate] = []
    for gate in gates:
        _refuse_unbuilt(gate)
        if plans:
            resolved += _resolve(gate, plans, known_modes or {})
    return tuple(resolved)


def _refuse_unbuilt(gate: Gate) -> None:
    form = None
    if gate.function in UNBUILT_FUNCTIONS:
        form = f"{gate.function}(…)"
    elif gate.label is not None:
        form = "a label"
    elif gate.threshold.baseline is not None:
        form = "a baseline as threshold"
    if form is not None:
        hint = "leave the label out" if gate.label is not None else "compare with a number"
        raise _invalid(gate, f"{form} is not available yet", hint)


def _invalid(gate: Gate, problem: str, hint: str) -> GateInvalidError:
    return gate_invalid(gate.written or gate.text, problem, hint)


def _resolve(
    gate: Gate, plans: Sequence[BenchmarkPlan], known_modes: Mapping[str, Sequence[str]]
) -> list[ResolvedGate]:
    matching = [p for p in plans if _is_about(gate, p.benchmark.name, p.recipe_name)]
    if not matching:
        return [_plan_not_in_run(gate, plans)]
    measured = [plan for plan in matching if _has_metric(plan, gate)]
    if not measured:
        raise _unknown_metric(gate, matching)
    found = [
        _bind(gate, plan, mode)
        for plan in measured
        for mode in plan.modes
        if gate.mode in {"*", mode}
    ]
    return found or [_mode_not_in_run(gate, measured, known_modes)]


def _may_be_left_out(gate: Gate) -> bool:
    """Whether a gate was written for more than this one run."""
    return gate.origin in {"ini", "suite"}


def _plan_not_in_run(gate: Gate, plans: Sequence[BenchmarkPlan]) -> ResolvedGate:
    kind, name = "benchmark", gate.benchmark
    known = [plan.benchmark.name for plan in plans]
    if name is None or name in known:
        kind, name = "recipe", gate.recipe
        known = [plan.recipe_name for plan in plans]
    if not _may_be_left_out(gate):
        raise _invalid(
            gate, f"{kind} {name!r} is not planned", did_you_mean(str(name), dict.fromkeys(known))
        )
    benchmark, recipe = gate.benchmark or "*", gate.recipe or "*"
    return ResolvedGate(
        gate=gate,
        plan_label=benchmark if gate.recipe is None else f"{benchmark}@{recipe}",
        benchmark=benchmark,
        recipe=recipe,
        mode=gate.mode,
        not_planned=f"{kind} not in this run",
    )


def _mode_not_in_run(
    gate: Gate,
    candidates: Sequence[BenchmarkPlan],
    known_modes: Mapping[str, Sequence[str]],
) -> ResolvedGate:
    if _may_be_left_out(gate):
        for plan in candidates:
            if gate.mode in known_modes.get(plan.label, ()):
                bound = _bind(gate, plan, gate.mode)
                return replace(bound, not_planned="mode not in this run")
    planned = dict.fromkeys(mode for plan in candidates for mode in plan.modes)
    hint = did_you_mean(gate.mode, planned)
    if gate.origin == "suite":
        hint += f"; a gate for one recipe is written *@RECIPE:{gate.mode}.{gate.aggregate}"
    raise _invalid(gate, f"mode {gate.mode!r} is not planned", hint)


def _has_metric(plan: BenchmarkPlan, gate: Gate) -> bool:
    return gate.function is None or any(metric.name == gate.metric for metric in plan.metrics)


def _unknown_metric(gate: Gate, plans: Sequence[BenchmarkPlan]) -> GateInvalidError:
    planned = dict.fromkeys(metric.name for plan in plans for metric in plan.metrics)
    close = get_close_matches(gate.metric, [*planned, *AGGREGATES], n=2, cutoff=0.6)
    measure = likely_measure(gate.metric)
    likely = [name for name in dict.fromkeys([measure, *close]) if name not in {None, gate.metric}]
    known = [*planned, *(f"{family}@k" for family in measure_families()), *AGGREGATES]
    hint = did_you_mean(gate.metric, known, likely)
    return _invalid(gate, f"no metric {gate.metric!r} is planned", hint)


def _bind(gate: Gate, plan: BenchmarkPlan, mode: str) -> ResolvedGate:
    if gate.function is None:
        bounded = gate.metric in _BOUNDED_AGGREGATES
    else:
        metric = next(metric for metric in plan.metrics if metric.name == gate.metric)
        _check_metric(gate, metric, plan.top_k)
        bounded = gate.function == "mean" and metric.bounded
    if bounded:
        _check_share(gate)
    return ResolvedGate(
        gate=gate,
        plan_label=plan.label,
        benchmark=plan.benchmark.name,
        recipe=plan.recipe_name,
        mode=mode,
        population=f"on {len(plan.cases)} of {plan.case_count} cases" if plan.reduced else None,
    )


def _check_metric(gate: Gate, metric: MetricSpec, top_k: int) -> None:
    if metric.k is not None and metric.k > top_k:
        raise _invalid(
            gate,
            f"top_k = {top_k} is below the k of {metric.name!r}",
            f"ask for at least {metric.k} results or gate a smaller k",
        )
    if gate.function == "mean" and metric.worst is None:
        raise _invalid(
            gate,
            f"metric {metric.name!r} has no finite worst value that a lost score counts as",
            "give its evaluator a `worst`",
        )


def _check_share(gate: Gate) -> None:
    """Refuse a threshold that a value in 0..1 cannot reach."""
    threshold = gate.threshold.value
    share = threshold / 100
    if not 0 <= threshold <= 1:
        raise _invalid(
            gate,
            f"{gate.aggregate} lies in 0..1, and {number_text(threshold)} does not",
            f"write {number_text(share)}" if 0 <= share <= 1 else "write a number in 0..1",
        )
