"""What evaluators return, as a score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from pytest_heta.core._plain import plain, plain_text
from pytest_heta.models import EvaluationScore

__all__ = ["as_score", "errored_score"]

_METADATA_NODES: Final = 1_000


def errored_score(
    name: str, kind: str, message: str, metadata: Mapping[str, Any] | None = None
) -> EvaluationScore:
    """Return a score that was lost, and counts as the worst value.

    Args:
        name: Name of the metric.
        kind: Stable kind of error, or the class of an exception.
        message: One line for people.
        metadata: Anything to add.
    """
    error = {"type": kind, "message": message}
    return EvaluationScore(name=name, metadata={**(metadata or {}), "error": error})


def as_score(returned: Any, name: str) -> EvaluationScore:
    """Return what an evaluator returned as a score called ``name``.

    Understood are an `EvaluationScore`, a mapping or an object of its shape,
    and a bare number, truth value or label. What is none of them is an
    errored score, never a number.
    """
    if isinstance(returned, Mapping) and "value" in returned:
        value, passed = returned["value"], returned.get("passed")
        metadata = returned.get("metadata")
    elif hasattr(returned, "value") and hasattr(returned, "metadata"):
        value, passed = returned.value, getattr(returned, "passed", None)
        metadata = returned.metadata
    else:
        value, passed, metadata = returned, None, None
        if value is None:
            return errored_score(name, "wrong_type", "the evaluator returned None")
    known = plain(metadata, max_nodes=_METADATA_NODES)
    return _checked(name, value, passed, known if isinstance(known, dict) else {})


def _checked(name: str, value: Any, passed: Any, metadata: dict[str, Any]) -> EvaluationScore:
    if metadata.get("error"):
        error = metadata["error"]
        if not isinstance(error, dict):
            metadata["error"] = {"type": "evaluator", "message": str(error)}
        return EvaluationScore(name=name, metadata=metadata)
    if metadata.get("skipped") or metadata.get("unjudged"):
        return EvaluationScore(name=name, metadata=metadata)
    if value is None:
        return errored_score(name, "no_value", "a score without value and reason", metadata)
    number, problem = _value(value)
    verdict, odd_verdict = _verdict(passed)
    problem = problem or odd_verdict
    if problem is not None:
        return errored_score(name, *problem, metadata)
    if verdict is None and isinstance(number, bool):
        verdict = number
    return EvaluationScore(name=name, value=number, passed=verdict, metadata=metadata)


def _value(value: Any) -> tuple[float | bool | str | None, tuple[str, str] | None]:
    """Return the value as Python's own type, or what is wrong with it."""
    value = _unwrapped(value)
    if isinstance(value, bool):
        return value, None
    if isinstance(value, str):
        return plain_text(value, 1_000), None
    try:
        number = float(value) if not isinstance(value, bytes | bytearray) else None
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        number = None
    if number is None:
        kind = type(value).__name__
        return None, ("wrong_type", f"a score is a number, a bool or a label, not a {kind}")
    if not math.isfinite(number):
        return None, ("non_finite", f"the score is {number}")
    return number, None


def _verdict(passed: Any) -> tuple[bool | None, tuple[str, str] | None]:
    passed = _unwrapped(passed)
    if passed is None or isinstance(passed, bool):
        return passed, None
    return None, ("wrong_type", f"passed is true, false or None, not a {type(passed).__name__}")


def _unwrapped(value: Any) -> Any:
    """Return numpy's and torch's scalars as Python's; everything else as it is."""
    item = getattr(value, "item", None)
    if not callable(item) or isinstance(value, type):
        return value
    try:
        return item()
    except (TypeError, ValueError):  # an array of several values
        return value
