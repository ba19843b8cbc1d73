"""From what a suite writes to an evaluator."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeGuard

from pytest_heta.errors import ConfigurationError
from pytest_heta.evaluators.answer import AnswerContains, AnswerExactMatch
from pytest_heta.evaluators.evidence import EvidenceRecallAtK
from pytest_heta.evaluators.retrieval import MeasureEvaluator
from pytest_heta.measures import Measure, measure_families, parse_at_k
from pytest_heta.protocols import BenchmarkEvaluatorProtocol

__all__ = ["BuiltInEvaluator", "as_evaluator", "evaluator_names", "is_built_in"]

BuiltInEvaluator = AnswerContains | AnswerExactMatch | EvidenceRecallAtK
"""An evaluator of ours that looks at one response by itself."""

_EVIDENCE_RECALL: Final = "evidence_recall"
_PLAIN: Final[dict[str, Callable[[], BenchmarkEvaluatorProtocol]]] = {
    "answer_contains": AnswerContains,
    "answer_exact_match": AnswerExactMatch,
}
_WITH_THRESHOLD: Final = re.compile(
    r"(?P<name>[^<>=!≤≥]*?)\s*(?P<operator>[<>=!≤≥]+)\s*(?P<threshold>.*)", re.DOTALL
)


def evaluator_names() -> tuple[str, ...]:
    """Return how the built-in evaluators are written, ``k`` standing for a depth."""
    return (*(f"{family}@k" for family in _families()), *_PLAIN)


def is_built_in(evaluator: object) -> TypeGuard[BuiltInEvaluator]:
    """Whether an evaluator is exactly one of ours, which ``score`` without waiting."""
    return type(evaluator) in {AnswerContains, AnswerExactMatch, EvidenceRecallAtK}


def as_evaluator(spec: str | object) -> BenchmarkEvaluatorProtocol:
    """Return the evaluator that ``spec`` stands for.

    Args:
        spec: A measure (``ndcg@10``), a measure with the value that a case
            has to reach (``recall@5>=0.8``), ``evidence_recall@k`` (likewise),
            ``answer_contains``, ``answer_exact_match``, or an object with
            ``name`` and ``evaluate``, which is returned as it is.

    Raises:
        MeasureUnknownError: if a name is not known.
        ConfigurationError: if a threshold is wrong, or the object is not an
            evaluator.
    """
    if isinstance(spec, str):
        return _from_text(spec.strip())
    if isinstance(spec, type):
        raise ConfigurationError(
            f"evaluator {spec.__name__} is a class", hint=f"write {spec.__name__}(...)"
        )
    evaluator: Any = spec
    name = getattr(evaluator, "name", None)
    if isinstance(name, str) and name and callable(getattr(evaluator, "evaluate", None)):
        checked: BenchmarkEvaluatorProtocol = evaluator
        return checked
    raise ConfigurationError(
        f"{spec!r} is not an evaluator",
        hint="write an object with `name` and `evaluate`, or one of "
        + ", ".join(evaluator_names()),
    )


def _families() -> tuple[str, ...]:
    return (*measure_families(), _EVIDENCE_RECALL)


def _from_text(text: str) -> BenchmarkEvaluatorProtocol:
    match = _WITH_THRESHOLD.fullmatch(text)
    if match is None:
        return _from_name(text, None)
    if match["operator"] != ">=":
        raise ConfigurationError(
            f"evaluator {text!r}: {match['operator']!r} is not a threshold's operator",
            hint="only '>=' is, as in 'recall@5>=0.8'; gates have the others",
        )
    try:
        threshold = float(match["threshold"])
    except ValueError:
        raise ConfigurationError(
            f"evaluator {text!r}: threshold {match['threshold']!r} is not a number",
            hint="write a number in 0..1, as in 'recall@5>=0.8'",
        ) from None
    return _from_name(match["name"], threshold)


def _from_name(name: str, threshold: float | None) -> BenchmarkEvaluatorProtocol:
    make = _PLAIN.get(name)
    if make is not None:
        if threshold is not None:
            raise ConfigurationError(
                f"evaluator {name!r} is true or false and has no threshold", hint=f"write {name!r}"
            )
        return make()
    family, k = parse_at_k(name, _families(), tuple(_PLAIN))
    if family == _EVIDENCE_RECALL:
        return EvidenceRecallAtK(k, threshold)
    return MeasureEvaluator(Measure(family, k), threshold)
