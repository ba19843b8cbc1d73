"""The grammar of gates: from text to `Gate` and back.

    [benchmark[@recipe]:]mode.metric[{label=value}] OP threshold

    OP         >=  >  <=  <  ==
    metric     a metric, function(metric), or an aggregate of the mode
    threshold  number | baseline | baseline + x | baseline - x% | baseline ± x

Spaces are free around every part. The mode ends at the first dot; what is
between it and the operator is the metric. ``*`` stands for every planned
benchmark, recipe, mode or label value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from pytest_heta.comparison import number_text
from pytest_heta.errors import GateInvalidError, did_you_mean
from pytest_heta.models import MetricSummary, ModeSummary, Operator

__all__ = [
    "AGGREGATES",
    "METRIC_FUNCTIONS",
    "OPERATORS",
    "UNBUILT_FUNCTIONS",
    "Gate",
    "Measured",
    "Threshold",
    "gate_invalid",
    "parse_gate",
]

Sign = Literal["+", "-", "±"]

Measured = tuple[float | None, int]
"""The value of an aggregate, and the number of samples behind it."""

OPERATORS: Final[tuple[Operator, ...]] = get_args(Operator)

AGGREGATES: Final[Mapping[str, Callable[[ModeSummary], Measured]]] = {
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

METRIC_FUNCTIONS: Final[Mapping[str, Callable[[MetricSummary], Measured]]] = {
    "mean": lambda m: (m.mean, m.n_scored + m.n_errored),
    "n": lambda m: (m.n, m.n),
    "n_scored": lambda m: (m.n_scored, m.n),
    "n_errored": lambda m: (m.n_errored, m.n),
    "n_skipped": lambda m: (m.n_skipped, m.n),
    "n_unjudged": lambda m: (m.n_unjudged, m.n),
}
"""Aggregates of a metric, written ``function(metric)``; the metric alone is its mean."""

UNBUILT_FUNCTIONS: Final = ("ci_low", "ci_high")
"""Parsed, and refused when gates are resolved."""

_AMOUNT: Final = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_NUMBER: Final = re.compile(rf"(?P<number>[+-]?{_AMOUNT})\s*(?P<percent>%)?", re.ASCII)
_BASELINE: Final = re.compile(
    rf"baseline(?:\s*(?P<sign>\+/-|[-+±−])\s*(?P<amount>{_AMOUNT})\s*(?P<percent>%)?)?", re.ASCII
)
_SIGNS: Final[Mapping[str, Sign]] = {"+": "+", "-": "-", "−": "-", "±": "±", "+/-": "±"}
_OPERATOR: Final = re.compile(r"[<>=!~≤≥≠]+")
_PATTERN: Final = re.compile(r"\*|[A-Za-z0-9_-]+")
_METRIC: Final = re.compile(r"[\w@.+/%-]+(?: [\w@.+/%-]+)*")
_CALL: Final = re.compile(r"(?P<function>\w+)\s*\((?P<metric>[^()]*)\)")
_LABEL: Final = re.compile(r"(?P<name>[\w.-]+)\s*=\s*(?P<value>[^{}]*[^{}\s])")
_EXAMPLE: Final = "write a gate like 'hybrid_search.ndcg@10 >= 0.30' or '*.failure_rate <= 0.01'"
_LABEL_FORM: Final = "a label is written {label=value}, behind the metric"
_OPERATOR_HINT: Final = f"the operators are {' '.join(OPERATORS)}"


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a gate compares with.

    Attributes:
        value: The number; or the distance from the baseline, 0 for the
            baseline itself.
        baseline: Side of the baseline that the threshold is on; None for a
            plain number.
        relative: Whether ``value`` is a percentage of the baseline's value.
    """

    value: float
    baseline: Sign | None = None
    relative: bool = False

    def __str__(self) -> str:
        if self.baseline is None:
            return number_text(self.value)
        if not self.value:
            return "baseline"
        return f"baseline {self.baseline} {number_text(self.value)}{'%' if self.relative else ''}"


@dataclass(frozen=True, slots=True)
class Gate:
    """A parsed gate.

    Attributes:
        mode: Query mode, or ``*``.
        metric: Name of the metric; of the mode's aggregate if ``function`` is
            None.
        function: Aggregate of the metric; None for an aggregate of the mode.
        operator: How the value is compared with the threshold.
        threshold: What it is compared with.
        benchmark: Name of the benchmark; None stands for all.
        recipe: Name of the recipe; None stands for all.
        label: Name and value of the label that selects the samples.
        origin: Where it was written: ``command line``, ``ini``, ``suite`` or
            ``run``.
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
        """The aggregate as text: a metric alone stands for its mean."""
        if self.function is None or (self.function == "mean" and self.metric not in AGGREGATES):
            return self.metric
        return f"{self.function}({self.metric})"

    @property
    def subject(self) -> str:
        """What the gate is about: its text without operator and threshold."""
        prefix = ""
        if self.benchmark is not None or self.recipe is not None:
            recipe = "" if self.recipe is None else f"@{self.recipe}"
            prefix = f"{self.benchmark or '*'}{recipe}:"
        label = "" if self.label is None else f"{{{self.label[0]}={self.label[1]}}}"
        return f"{prefix}{self.mode}.{self.aggregate}{label}"

    @property
    def text(self) -> str:
        """The one way to write this gate; parsing it gives the same gate."""
        return f"{self.subject} {self.operator} {self.threshold}"


def gate_invalid(text: str, problem: str, hint: str = _EXAMPLE) -> GateInvalidError:
    """Return the error of a gate written as ``text``."""
    return GateInvalidError(f"gate {text!r}: {problem}", hint=hint)


def parse_gate(text: str, origin: str = "suite") -> Gate:
    """Return the gate that ``text`` stands for.

    Forms that are not built yet are parsed too; resolving refuses them.

    Raises:
        GateInvalidError: if ``text`` is not a gate.
    """
    subject, operator, threshold = _split(text)
    subject, label = _split_label(subject, text)
    prefix, colon, rest = subject.partition(":")
    benchmark, recipe = _parse_prefix(prefix, text) if colon else (None, None)
    mode, dot, metric = (part.strip() for part in (rest if colon else subject).partition("."))
    if not dot or not mode or not metric:
        raise gate_invalid(text, "before the operator stand a mode, a dot and a metric")
    if not _PATTERN.fullmatch(mode):
        raise gate_invalid(text, f"{mode!r} is not the name of a mode")
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


def _split(text: str) -> tuple[str, Operator, str]:
    """Return what stands before the operator, the operator, and what is behind it."""
    if text.count("{") > text.count("}"):
        raise gate_invalid(text, _LABEL_FORM)
    # The "=" in a label is no operator.
    match = _OPERATOR.search(text, text.find("}") + 1)
    if match is None:
        raise gate_invalid(text, "there is no operator", _OPERATOR_HINT)
    operator = next((known for known in OPERATORS if known == match[0]), None)
    if operator is None:
        raise gate_invalid(text, f"{match[0]!r} is not an operator", _OPERATOR_HINT)
    threshold = text[match.end() :].strip()
    if not threshold:
        raise gate_invalid(text, "there is no threshold behind the operator")
    return text[: match.start()].strip(), operator, threshold


def _split_label(subject: str, text: str) -> tuple[str, tuple[str, str] | None]:
    if "{" not in subject and "}" not in subject:
        return subject, None
    head, _, tail = subject.partition("{")
    match = _LABEL.fullmatch(tail[:-1].strip()) if tail.endswith("}") else None
    if match is None:
        raise gate_invalid(text, _LABEL_FORM)
    return head.strip(), (match["name"], " ".join(match["value"].split()))


def _parse_prefix(prefix: str, text: str) -> tuple[str | None, str | None]:
    benchmark, at, recipe = (part.strip() for part in prefix.partition("@"))
    for kind, name in (("benchmark", benchmark), ("recipe", recipe if at else "*")):
        if not _PATTERN.fullmatch(name):
            raise gate_invalid(text, f"{name!r} is not the name of a {kind}")
    return (
        None if benchmark == "*" else benchmark,
        None if not at or recipe == "*" else recipe,
    )


def _parse_aggregate(metric: str, text: str) -> tuple[str | None, str]:
    """Return the function and the metric; no function for a mode's aggregate."""
    function: str | None = None
    match = _CALL.fullmatch(metric)
    if match is not None:
        function, metric = match["function"], match["metric"]
        functions = (*METRIC_FUNCTIONS, *UNBUILT_FUNCTIONS)
        if function not in functions:
            raise gate_invalid(
                text,
                f"{function!r} is not an aggregate of a metric",
                did_you_mean(function, functions),
            )
    metric = " ".join(metric.split())
    if not _METRIC.fullmatch(metric):
        raise gate_invalid(text, f"{metric!r} is not the name of a metric")
    if function is None and metric not in AGGREGATES:
        function = "mean"
    return function, metric


def _parse_threshold(threshold: str, text: str) -> Threshold:
    number = _NUMBER.fullmatch(threshold)
    if number is not None:
        return Threshold(_absolute(number, text))
    match = _BASELINE.fullmatch(threshold)
    if match is None:
        raise gate_invalid(
            text,
            f"{threshold!r} is not a threshold",
            "write a number, 'baseline', 'baseline - 0.02' or 'baseline - 5%'",
        )
    amount = _finite(match["amount"] or "0", text)
    if not amount:
        return Threshold(0.0, "±")
    return Threshold(amount, _SIGNS[match["sign"]], relative=match["percent"] is not None)


def _absolute(match: re.Match[str], text: str) -> float:
    value = _finite(match["number"], text)
    if match["percent"] is None:
        return value
    raise gate_invalid(
        text,
        f"{match[0]!r} is not a threshold",
        f"write {number_text(value / 100)}; a percentage stands only behind 'baseline'",
    )


def _finite(number: str, text: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise gate_invalid(text, f"{number} is too large for a threshold")
    return value + 0.0  # which makes -0.0 an ordinary 0.0
