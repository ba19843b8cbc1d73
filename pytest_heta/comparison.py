"""Comparing a value with a threshold: one rule for verdicts, for gates, and for what is printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pytest_heta.models import Operator

__all__ = ["TOLERANCE", "holds", "number_text", "relation_of", "value_text"]

TOLERANCE: Final = 1e-9
"""Values this close to a threshold are equal to it: 0.8 may come out as 0.7999999999999999."""

_OPPOSITE: Final[Mapping[Operator, str]] = {
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


def relation_of(operator: Operator, *, held: bool) -> str:
    """Return the sign that stands between a value and a threshold once they are compared."""
    return operator if held else _OPPOSITE[operator]


def number_text(value: float) -> str:
    """Return the shortest text of a number: ``1`` for 1.0, ``0.8``, ``1e-05``."""
    if value.is_integer() and abs(value) < _LARGEST_WRITTEN_OUT:
        return str(int(value))
    return repr(value)


def value_text(value: float, relation: str, threshold: float) -> str | None:
    """Return ``value`` with as many digits as it takes to read ``relation`` as true.

    There are at least four after the point, but none for whole numbers: a
    value of 0.79999 that is below 0.8 is never printed as 0.8000.

    Returns:
        The text, None if ``relation`` does not hold.
    """
    texts = [number_text(value)]
    if not value.is_integer() and abs(value) < _LARGEST_WRITTEN_OUT:
        digits = range(_FEWEST_DIGITS, _MOST_DIGITS + 1)
        texts = [*(f"{value:.{number}f}" for number in digits), repr(value)]
    return next((text for text in texts if _reads_true(float(text), relation, threshold)), None)


def _reads_true(value: float, relation: str, threshold: float) -> bool:
    if abs(value - threshold) <= TOLERANCE:
        # Such a value is shown as equal only where it counts as equal.
        return "=" in relation and relation != "!="
    return relation in {"!=", ">", ">="} if value > threshold else relation in {"!=", "<", "<="}
