"""How numbers are written for people."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["counted", "format_ms", "format_number", "format_score", "format_seconds"]

NOTHING: Final = "-"
"""Stands where there is no number."""

_LARGE: Final = 10_000
_SMALL: Final = 0.00005


def format_number(value: float | None) -> str:
    """Return a mean with four digits after the point.

    Large numbers get fewer, and numbers that would be rounded to nothing are
    written with an exponent.
    """
    if value is None:
        return NOTHING
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= _LARGE:
        return f"{value:.6g}"
    return f"{value:.1e}" if 0 < abs(value) < _SMALL else f"{value:.4f}"


def format_score(value: float | bool | str | None) -> str:  # noqa: FBT001 - a score, not a switch
    """Return the value of one score: truth values as yes or no, labels as they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else format_number(value)


def format_ms(value: float | None) -> str:
    """Return milliseconds with three digits that count."""
    if value is None:
        return NOTHING
    if not math.isfinite(value):
        return str(value)
    decimals = next((n for n, limit in ((2, 9.995), (1, 99.95)) if value < limit), 0)
    return f"{value:.{decimals}f}"


def format_seconds(value: float) -> str:
    """Return seconds with their unit, in milliseconds if there are few."""
    return f"{value:.2f} s" if value >= 1 else f"{format_ms(value * 1000)} ms"


def counted(number: int, noun: str) -> str:
    """Return ``1 case``, ``2 cases``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
