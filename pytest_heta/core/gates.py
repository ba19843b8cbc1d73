"""Gates: their grammar, and the step that decides them.

    [benchmark[@recipe]:]mode.metric[{label=value}] OP threshold

    OP         >=  >  <=  <  ==
    metric     a metric, mean(metric), n(metric) …, or an aggregate of the mode
    threshold  number | baseline | baseline + x | baseline - x% | baseline ± x
    *          stands for every planned benchmark, mode or label value

Spaces are free around every part. The mode ends at the first dot; everything
up to the operator is the metric. This module is the only one that knows the
grammar, what the aggregates are, and how values are compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final, Literal, cast

from pytest_heta.core.plan import BenchmarkPlan, MetricSpec, did_you_mean
from pytest_heta.errors import GateInvalidError, MeasureUnknownError
from pytest_heta.measures import measure_families, parse_measure
from pytest_heta.models import GateResult, MetricSummary, ModeSummary

__all__ = [
    "AGGREGATES",
    "METRIC_FUNCTIONS",
    "OPERATORS",
    "Gate",
    "Operator",
    "ResolvedGate",
    "Threshold",
    "decide_gates",
    "gated_measures",
    "holds",
    "parse_gate",
    "resolve_gates",
    "suite_gates",
]

Operator = Literal[">=", ">", "<=", "<", "=="]
Subset = Literal["skip", "decide", "fail"]

OPERATORS: Final[tuple[Operator, ...]] = (">=", ">", "<=", "<", "==")

TOLERANCE: Final = 1e-9
"""Values this close to a threshold are equal to it."""

# Each gives the value and the number of samples behind it.
_Measured = tuple[float | None, int]

AGGREGATES: Final[Mapping[str, Callable[[ModeSummary], _Measured]]] = {
    "failure_rate": lambda s: (s.failure_rate, s.total_cases),
    "failed_cases": lambda s: (s.failed_cases, s.total_cases),
    "successful_cases": lambda s: (s.successful_cases, s.total_cases),
    "total_cases": lambda s: (s.total_cases, s.total_cases),
    "distinct_cases": lambda s: (s.distinct_cases, s.total_cases),
    "scoring_errors": lambda s: (s.scoring_errors, s.total_cases),
    "mean_latency_ms": lambda s: (s.latency.mean_ms, s.latency.n),
    "p50_latency_ms": lambda s: (s.latency.p50_ms, s.latency.n),
    "p95_latency_ms": lambda s: (s.latency.p95_ms, s.latency.n),
    "p99_latency_ms": lambda s: (s.latency.p99_ms, s.latency.n),
    "max_latency_ms": lambda s: (s.latency.max_ms, s.latency.n),
}
"""Aggregates of a mode, written without a metric."""

METRIC_FUNCTIONS: Final[Mapping[str, Callable[[MetricSummary], _Measured]]] = {
    "mean": lambda m: (m.mean, m.n_scored + m.n_errored),
    "n": lambda m: (m.n, m.n),
    "n_scored": lambda m: (m.n_scored, m.n),
    "n_errored": lambda m: (m.n_errored, m.n),
    "n_skipped": lambda m: (m.n_skipped, m.n),
    "n_unjudged": lambda m: (m.n_unjudged, m.n),
}
"""Aggregates of a metric, written ``function(metric)``; the metric alone is its mean."""

_NOT_BUILT: Final = ("ci_low", "ci_high")
_BOUNDED_AGGREGATES: Final = frozenset({"failure_rate"})

_OPERATOR: Final = re.compile(r"[<>=!~≤≥≠]+")
_PATTERN: Final = re.compile(r"\*|[A-Za-z0-9_-]+")
_METRIC: Final = re.compile(r"[\w@.+/%-]+(?: [\w@.+/%-]+)*")
_CALL: Final = re.compile(r"(?P<function>\w+)\s*\((?P<metric>[^()]*)\)")
_LABEL: Final = re.compile(r"(?P<name>[\w.-]+)\s*=\s*(?P<value>[^{}]*[^{}\s])")
_NUMBER: Final = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_ABSOLUTE: Final = re.compile(_NUMBER)
_PERCENT: Final = re.compile(rf"{_NUMBER}\s*%")
_BASELINE: Final = re.compile(
    r"baseline(?:\s*(?P<sign>\+/-|[+±−-])\s*(?P<amount>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)"
    r"\s*(?P<percent>%)?)?"
)
_SIGNS: Final = {"+/-": "±", "−": "-"}
_EXAMPLE: Final = "write a gate like 'hybrid_search.ndcg@10 >= 0.30' or '*.failure_rate <= 0.01'"
_LARGEST_PLAIN: Final = 1e15


# --- the parsed form ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a gate compares with.

    Attributes:
        value: The number, or the distance from the baseline; 0 for the
            baseline itself.
        baseline: ``+``, ``-`` or ``±`` when the threshold is the baseline
            moved by ``value``; None for a plain number.
        relative: Whether ``value`` is a percentage of the baseline's value.
    """

    value: float
    baseline: Literal["+", "-", "±"] | None = None
    relative: bool = False

    def __str__(self) -> str:
        if self.baseline is None:
            return _number_text(self.value)
        if not self.value:
            return "baseline"
        return f"baseline {self.baseline} {_number_text(self.value)}{'%' if self.relative else ''}"


@dataclass(frozen=True, slots=True)
class Gate:
    """A parsed gate.

    Attributes:
        mode: Query mode, or ``*``.
        metric: Name of the metric, or of the aggregate when ``function`` is
            None.
        function: Aggregate of the metric; None for an aggregate of the mode.
        operator: How the value is compared with the threshold.
        threshold: What it is compared with.
        benchmark: Name of the benchmark; None stands for all.
        recipe: Name of the recipe; None stands for all.
        label: Name and value of the label that selects the samples.
        origin: Where it was written: ``command line``, ``ini`` or ``suite``.
        written: How it was written.
    """

    mode: str
    metric: str
    function: str | None
    operator: Operator
    threshold: Threshold
    benchmark: str | None = None
    recipe: str | None = None
    label: tuple[str, str] | None = None
    origin: str = "suite"
    written: str = ""

    @property
    def aggregate(self) -> str:
        """The aggregate as text: a bare metric stands for its mean."""
        if self.function is None or (self.function == "mean" and self.metric not in AGGREGATES):
            return self.metric
        return f"{self.function}({self.metric})"

    @property
    def text(self) -> str:
        """The one way to write this gate; parsing it gives the same gate."""
        return f"{self.subject} {self.operator} {self.threshold}"

    @property
    def subject(self) -> str:
        """The gate without operator and threshold: what it is about."""
        prefix = ""
        if self.benchmark is not None or self.recipe is not None:
            recipe = f"@{self.recipe}" if self.recipe is not None else ""
            prefix = f"{self.benchmark or '*'}{recipe}:"
        label = f"{{{self.label[0]}={self.label[1]}}}" if self.label is not None else ""
        return f"{prefix}{self.mode}.{self.aggregate}{label}"


@dataclass(frozen=True, slots=True)
class ResolvedGate:
    """A gate for one plan and one mode.

    Attributes:
        gate: The gate as parsed.
        plan_label: Label of the plan.
        benchmark: Name of the benchmark.
        recipe: Name of the recipe.
        mode: Query mode.
        metric: Name of the metric as the plan has it; the aggregate's when
            the gate has no metric.
        population: What a reduced plan is, such as ``on 50 of 225 cases``.
        not_planned: Why it cannot be decided in this run, if it cannot.
    """

    gate: Gate
    plan_label: str
    benchmark: str
    recipe: str
    mode: str
    metric: str
    population: str | None = None
    not_planned: str | None = None

    @property
    def text(self) -> str:
        """The gate with its plan and mode in place of patterns."""
        return f"{self.key} {self.gate.operator} {self.gate.threshold}"

    @property
    def key(self) -> str:
        """What the gate is about, without operator and threshold: the same for any threshold."""
        bound = replace(self.gate, mode=self.mode, metric=self.metric, benchmark=None, recipe=None)
        return f"{self.plan_label}:{bound.subject}"


# --- parsing -----------------------------------------------------------------


def parse_gate(text: str, origin: str = "suite") -> Gate:
    """Return the gate that ``text`` stands for.

    Forms that are not built yet are parsed too; `resolve_gates` refuses them.

    Raises:
        GateInvalidError: if ``text`` is not a gate.
    """
    subject, operator, threshold = _split(text)
    subject, label = _split_label(subject, text)
    prefix, colon, rest = subject.rpartition(":")
    benchmark, recipe = _parse_prefix(prefix, text) if colon else (None, None)
    mode, dot, metric = (part.strip() for part in rest.partition("."))
    if not dot or not metric:
        raise _invalid(text, "a mode and a metric, joined by a dot, stand before the operator")
    if not _PATTERN.fullmatch(mode):
        raise _invalid(text, f"{mode!r} is not the name of a mode")
    function, name = _parse_aggregate(metric, text)
    return Gate(
        mode=mode,
        metric=name,
        function=function,
        operator=operator,
        threshold=_parse_threshold(threshold, text),
        benchmark=benchmark,
        recipe=recipe,
        label=label,
        origin=origin,
        written=text,
    )


def _invalid(text: str, problem: str, hint: str = _EXAMPLE) -> GateInvalidError:
    return GateInvalidError(f"gate {text!r}: {problem}", hint=hint)


def _split(text: str) -> tuple[str, Operator, str]:
    """Return what stands before the operator, the operator, and what is behind it."""
    # The "=" of a label is no operator.
    start = text.find("}") + 1
    match = _OPERATOR.search(text, start)
    if match is None:
        raise _invalid(text, f"no operator; the operators are {' '.join(OPERATORS)}")
    if match[0] not in OPERATORS:
        raise _invalid(
            text,
            f"{match[0]!r} is not an operator",
            f"the operators are {' '.join(OPERATORS)}",
        )
    subject, threshold = text[: match.start()].strip(), text[match.end() :].strip()
    if not threshold:
        raise _invalid(text, "no threshold behind the operator")
    return subject, cast("Operator", match[0]), threshold


def _split_label(subject: str, text: str) -> tuple[str, tuple[str, str] | None]:
    if "{" not in subject and "}" not in subject:
        return subject, None
    head, _, tail = subject.partition("{")
    match = _LABEL.fullmatch(tail[:-1].strip()) if tail.endswith("}") else None
    if match is None:
        raise _invalid(text, "a label is written {label=value} behind the metric")
    return head.strip(), (match["name"], match["value"].strip())


def _parse_prefix(prefix: str, text: str) -> tuple[str | None, str | None]:
    benchmark, at, recipe = (part.strip() for part in prefix.partition("@"))
    for kind, name in (("benchmark", benchmark), *((("recipe", recipe),) if at else ())):
        if not _PATTERN.fullmatch(name):
            raise _invalid(text, f"{name!r} is not the name of a {kind}")
    return (
        None if benchmark == "*" else benchmark,
        None if not at or recipe == "*" else recipe,
    )


def _parse_aggregate(metric: str, text: str) -> tuple[str | None, str]:
    call = _CALL.fullmatch(metric)
    if call is not None:
        functions = (*METRIC_FUNCTIONS, *_NOT_BUILT)
        if call["function"] not in functions:
            raise _invalid(
                text,
                f"{call['function']!r} is not an aggregate of a metric",
                did_you_mean(call["function"], functions),
            )
        function, metric = call["function"], call["metric"].strip()
    else:
        function = None if metric in AGGREGATES else "mean"
    metric = " ".join(metric.split())
    if not _METRIC.fullmatch(metric):
        raise _invalid(text, f"{metric!r} is not the name of a metric")
    return function, metric


def _parse_threshold(threshold: str, text: str) -> Threshold:
    if _ABSOLUTE.fullmatch(threshold):
        value = float(threshold)
        if not math.isfinite(value):
            raise _invalid(text, f"the threshold {threshold} is too large")
        return Threshold(value + 0.0)
    if _PERCENT.fullmatch(threshold):
        share = float(threshold.rstrip("% ")) / 100
        raise _invalid(
            text,
            f"{threshold!r} is not a threshold",
            f"write {_number_text(share)}; a percentage stands only behind 'baseline'",
        )
    match = _BASELINE.fullmatch(threshold)
    if match is None:
        raise _invalid(
            text,
            f"{threshold!r} is not a threshold",
            "write a number, 'baseline', 'baseline - 0.02' or 'baseline - 5%'",
        )
    amount = float(match["amount"] or 0)
    if not math.isfinite(amount):
        raise _invalid(text, f"the distance {match['amount']} is too large")
    if not amount:
        return Threshold(0.0, "±")
    sign = cast('Literal["+", "-", "±"]', _SIGNS.get(match["sign"], match["sign"]))
    return Threshold(amount, sign, relative=bool(match["percent"]))


def _number_text(value: float) -> str:
    if value.is_integer() and abs(value) < _LARGEST_PLAIN:
        return str(int(value))
    return repr(value)


def suite_gates(plans: Iterable[BenchmarkPlan]) -> tuple[Gate, ...]:
    """Return the gates that the suites of ``plans`` declare, each once.

    A suite's gates hold for its own benchmark, with every recipe.

    Raises:
        GateInvalidError: if one is not a gate.
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
            gates.append(gate if gate.benchmark else replace(gate, benchmark=name))
    return tuple(gates)


def gated_measures(gates: Iterable[Gate], benchmark: str, recipe: str) -> tuple[str, ...]:
    """Return the measures that gates name for a benchmark and a recipe.

    These are computed whether or not the suite has evaluators for them.
    """
    names: dict[str, None] = {}
    for gate in gates:
        if _is_for(gate, benchmark, recipe) and gate.function is not None:
            name = _measure_name(gate.metric)
            if name is not None:
                names[name] = None
    return tuple(names)


def _is_for(gate: Gate, benchmark: str, recipe: str) -> bool:
    return gate.benchmark in {None, benchmark} and gate.recipe in {None, recipe}


def _measure_name(text: str) -> str | None:
    try:
        return parse_measure(text).name
    except MeasureUnknownError:
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
    and that has the metric. A gate of the ini file or of a suite whose
    benchmark, recipe or mode exists but is not part of this run is kept, to be
    reported as skipped; one from the command line is an error then.

    Args:
        gates: The gates; several about the same thing all apply.
        plans: The plans of the run.
        known_modes: All modes that the recipe of a plan has, by plan label.

    Raises:
        GateInvalidError: if a gate is about nothing that is planned, has a
            threshold that its metric cannot have, or a form that is not built.
    """
    resolved: list[ResolvedGate] = []
    for gate in gates:
        _refuse_unbuilt(gate)
        if plans:
            resolved += _resolve(gate, plans, known_modes or {})
    return tuple(resolved)


def _refuse_unbuilt(gate: Gate) -> None:
    form = None
    if gate.function in _NOT_BUILT:
        form = f"{gate.function}(…)"
    elif gate.label is not None:
        form = "{label=value}"
    elif gate.threshold.baseline is not None:
        form = "a baseline as threshold"
    if form is not None:
        raise _invalid(gate.written or gate.text, f"{form} is not available yet", "use a number")


def _resolve(
    gate: Gate, plans: Sequence[BenchmarkPlan], known_modes: Mapping[str, Sequence[str]]
) -> list[ResolvedGate]:
    matching = [p for p in plans if _is_for(gate, p.benchmark.name, p.recipe_name)]
    if not matching:
        return [_not_in_run(gate, plans)]
    with_metric = [(p, metric) for p in matching if (metric := _planned_metric(gate, p))]
    if not with_metric:
        raise _unknown_metric(gate, matching)
    found = [
        _bind(gate, plan, mode, metric)
        for plan, metric in with_metric
        for mode in plan.modes
        if gate.mode in {"*", mode}
    ]
    return found or [_mode_not_in_run(gate, with_metric, known_modes)]


def _lenient(gate: Gate) -> bool:
    """Whether a gate may be about something that this run leaves out."""
    return gate.origin in {"ini", "suite"}


def _not_in_run(gate: Gate, plans: Sequence[BenchmarkPlan]) -> ResolvedGate:
    benchmarks = list(dict.fromkeys(plan.benchmark.name for plan in plans))
    kind, name, known = "benchmark", gate.benchmark, benchmarks
    if name is None or name in benchmarks:
        kind, name = "recipe", gate.recipe
        known = list(dict.fromkeys(plan.recipe_name for plan in plans))
    if not _lenient(gate):
        raise _invalid(
            gate.written or gate.text,
            f"no {kind} {name!r} is planned",
            did_you_mean(str(name), known),
        )
    benchmark, recipe = gate.benchmark or "*", gate.recipe or "*"
    label = benchmark if gate.recipe is None else f"{benchmark}@{recipe}"
    return ResolvedGate(
        gate, label, benchmark, recipe, gate.mode, gate.metric, None, f"{kind} not in this run"
    )


def _mode_not_in_run(
    gate: Gate,
    candidates: Sequence[tuple[BenchmarkPlan, str]],
    known_modes: Mapping[str, Sequence[str]],
) -> ResolvedGate:
    planned = list(dict.fromkeys(mode for plan, _ in candidates for mode in plan.modes))
    if _lenient(gate):
        for plan, metric in candidates:
            if gate.mode in known_modes.get(plan.label, ()):
                bound = _bind(gate, plan, gate.mode, metric)
                return replace(bound, not_planned="mode not in this run")
    raise _invalid(
        gate.written or gate.text,
        f"mode {gate.mode!r} is not planned",
        did_you_mean(gate.mode, planned),
    )


def _planned_metric(gate: Gate, plan: BenchmarkPlan) -> str | None:
    """Return the name that a plan has for the gate's metric, None if it has none."""
    if gate.function is None:
        return gate.metric
    names = {metric.name for metric in plan.metrics}
    if gate.metric in names:
        return gate.metric
    name = _measure_name(gate.metric)
    return name if name in names else None


def _unknown_metric(gate: Gate, plans: Sequence[BenchmarkPlan]) -> GateInvalidError:
    metrics = list(dict.fromkeys(metric.name for plan in plans for metric in plan.metrics))
    families = [f"{family}@k" for family in measure_families()]
    close = get_close_matches(gate.metric, [*metrics, *AGGREGATES], n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(repr(name) for name in close)}? " if close else ""
    known = ", ".join([*metrics, *families, *AGGREGATES])
    return _invalid(
        gate.written or gate.text, f"no metric {gate.metric!r} is planned", f"{hint}Known: {known}"
    )


def _bind(gate: Gate, plan: BenchmarkPlan, mode: str, metric: str) -> ResolvedGate:
    spec = next((m for m in plan.metrics if m.name == metric), None)
    _check_threshold(gate, spec)
    population = f"on {len(plan.cases)} of {plan.case_count} cases" if plan.reduced else None
    return ResolvedGate(
        gate, plan.label, plan.benchmark.name, plan.recipe_name, mode, metric, population
    )


def _check_threshold(gate: Gate, spec: MetricSpec | None) -> None:
    written = gate.written or gate.text
    threshold = gate.threshold.value
    bounded = gate.function is None and gate.metric in _BOUNDED_AGGREGATES
    if gate.function == "mean" and spec is not None:
        bounded = spec.bounded
        if spec.worst is None:
            raise _invalid(
                written,
                f"metric {spec.name!r} has no finite worst value, so lost scores cannot count",
                "give its evaluator a `worst`",
            )
    if bounded and not 0 <= threshold <= 1:
        share = threshold / 100
        hint = f"write {_number_text(share)} for {_number_text(threshold)} %"
        raise _invalid(
            written,
            f"the threshold {_number_text(threshold)} is outside 0..1, where {gate.aggregate} lies",
            hint if 0 <= share <= 1 else "write a number in 0..1",
        )


# --- deciding ----------------------------------------------------------------


def holds(value: float, operator: Operator, threshold: float) -> bool:
    """Whether ``value`` compares to ``threshold`` as ``operator`` says.

    Values within 1e-9 of the threshold are equal to it: ``>=`` holds for
    value ≥ threshold − 1e-9, ``>`` for value > threshold + 1e-9.
    """
    if operator == ">=":
        return value >= threshold - TOLERANCE
    if operator == ">":
        return value > threshold + TOLERANCE
    if operator == "<=":
        return value <= threshold + TOLERANCE
    if operator == "<":
        return value < threshold - TOLERANCE
    return abs(value - threshold) <= TOLERANCE


Completeness = Callable[[str, str], tuple[int, int]] | Mapping[tuple[str, str], tuple[int, int]]


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
        subset: What to do with a gate if not all planned samples ran: skip
            it, decide it on those that did, or fail it.
        complete: For a plan label and mode, how many samples ran and how many
            are planned.
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
        status: Literal["skipped", "failed"] = "skipped" if subset == "skip" else "failed"
        return _result(resolved, status, partial, value, n)
    if value is None:
        return _result(resolved, "undecided", _why_no_value(resolved, summary), None, n)
    threshold = resolved.gate.threshold.value
    passed = holds(value, resolved.gate.operator, threshold)
    notes = [_comparison(value, resolved.gate.operator, threshold, passed=passed)]
    notes += [note for note in (resolved.population, partial) if note is not None]
    return _result(resolved, "passed" if passed else "failed", ", ".join(notes), value, n)


def _measure(resolved: ResolvedGate, summary: ModeSummary | None) -> _Measured:
    """Return the value that a gate compares, and the samples behind it."""
    if summary is None or not summary.total_cases:
        return None, 0
    function = resolved.gate.function
    if function is None:
        return AGGREGATES[resolved.metric](summary)
    metric = summary.metrics.get(resolved.metric)
    return METRIC_FUNCTIONS[function](metric) if metric is not None else (None, 0)


def _why_no_value(resolved: ResolvedGate, summary: ModeSummary | None) -> str:
    if summary is None or not summary.total_cases:
        return "no value: 0 samples"
    metric = summary.metrics.get(resolved.metric)
    if resolved.gate.function is None or metric is None:
        return "no value: no sample succeeded"
    if metric.value_counts:
        return "no value: the scores are labels"
    parts = [
        f"{count} {name}"
        for name, count in (("skipped", metric.n_skipped), ("unjudged", metric.n_unjudged))
        if count
    ]
    return f"no value: {', '.join(parts) or 'nothing was scored'}"


_OPPOSITE: Final[Mapping[Operator, str]] = {
    ">=": "<", ">": "<=", "<=": ">", "<": ">=", "==": "!=",
}  # fmt: skip


def _comparison(value: float, operator: Operator, threshold: float, *, passed: bool) -> str:
    shown = operator if passed else _OPPOSITE[operator]
    return f"{_shown_value(value, shown, threshold)} {shown} {_number_text(threshold)}"


def _shown_value(value: float, shown: str, threshold: float) -> str:
    """Return the value with as many digits as it takes to read ``shown`` as true."""
    value = float(value)
    if value.is_integer() or abs(value) >= _LARGEST_PLAIN:
        return _number_text(value)
    for digits in range(4, 18):
        text = f"{value:.{digits}f}"
        if _reads_true(float(text), shown, threshold):
            return text
    return repr(value)


def _reads_true(value: float, shown: str, threshold: float) -> bool:
    if shown in {">", "<", "!="}:
        return {">": value > threshold, "<": value < threshold, "!=": value != threshold}[shown]
    if abs(value - threshold) <= TOLERANCE:
        return True
    return value > threshold if shown == ">=" else shown == "<=" and value < threshold


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
        aggregate=replace(gate, metric=resolved.metric).aggregate,
        operator=gate.operator,
        threshold=gate.threshold.value,
        value=float(value) if value is not None else None,
        n=n,
        status=status,
        reason=reason,
    )
