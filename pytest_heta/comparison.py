"""Comparing a value with a threshold: one rule for verdicts, for gates, and for what is printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pytest_heta.models import Operator

__all__ = ["TOLERANCE", "Relation", "holds", "number_text", "relation_of", "value_text"]

Relation = Operator | Literal["!="]
"""What stands between a value and its threshold when they are shown."""

TOLERANCE: Final = 1e-9
"""Values this close to a threshold are equal to it: 0.8 may come out as 0.7999999999999999."""

_OPPOSITE: Final[Mapping[Operator, Relation]] = {
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "<": ">=",
    "==": "!=",
}
_FEWEST_DIGITS: Final = 4
_MOST_DIGITS: Final = 17
_LARGEST_WRITTEN_OUT: Final = 1e15


def holds(value: float, operator: Operator, threshold: float) -> bool:
    """Whether ``value`` compares to ``threshold`` as ``operator`` says.

    A value within 1e-9 of the threshold is equal to it: ``>=`` holds for
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


def relation_of(operator: Operator, *, held: bool) -> Relation:
    """Return the sign that stands between a value and a threshold once they are compared."""
    return operator if held else _OPPOSITE[operator]


def number_text(value: float) -> str:
    """Return the shortest text of a number: ``1`` for 1.0, ``0.8``, ``1e-05``."""
    if value.is_integer() and abs(value) < _LARGEST_WRITTEN_OUT:
        return str(int(value))
    return repr(value)


def value_text(value: float, relation: Relation, threshold: float) -> str | None:
    """Return ``value`` with as many digits as it takes to read ``relation`` as true.

    There are at least four after the point, but none for whole numbers: a
    value of 0.79999 that is below 0.8 is never printed as 0.8000.

    Returns:
        The text, None if ``relation`` does not hold.
    """
    if not _is_true(value, relation, threshold):
        return None
    if value.is_integer() or abs(value) >= _LARGEST_WRITTEN_OUT:
        return number_text(value)
    digits = range(_FEWEST_DIGITS, _MOST_DIGITS + 1)
    texts = (f"{value:.{number}f}" for number in digits)
    return next((text for text in texts if _is_true(float(text), relation, threshold)), repr(value))


def _is_true(value: float, relation: Relation, threshold: float) -> bool:
    if relation == "!=":
        return not holds(value, "==", threshold)
    return holds(value, relation, threshold)
