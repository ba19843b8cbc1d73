"""Statistics over many samples: means and percentiles.

Plain Python on purpose: importing or using this module loads nothing heavy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

__all__ = ["mean", "percentile"]


def mean(values: Iterable[float]) -> float | None:
    """Return the arithmetic mean, None of nothing.

    The sum is exact before it is rounded once (`math.fsum`), so the order of
    the values does not matter.
    """
    items = list(values)
    if not items:
        return None
    try:
        return math.fsum(items) / len(items)
    except OverflowError:  # the mean of finite numbers is one, their sum may not be
        return math.fsum(item / len(items) for item in items)


def percentile(values: Iterable[float], q: float) -> float | None:
    """Return the ``q``-th percentile, None of nothing.

    Interpolates linearly between order statistics: numpy's default method,
    type 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", The
    American Statistician 50 (1996). 1, 2, …, 20 have the 95th percentile 19.05.

    Args:
        values: Finite numbers in any order.
        q: Percentage, 0 to 100.

    Raises:
        ValueError: if ``q`` is not in 0..100.
    """
    if not 0 <= q <= 100:  # noqa: PLR2004 - a percentage
        raise ValueError(f"a percentile lies in 0..100, not {q!r}")
    ordered = sorted(values)
    if not ordered:
        return None
    position = (len(ordered) - 1) * (q / 100)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    share = position - below
    # Convex form: it never leaves the two values, and is exact where they are equal.
    low, high = float(ordered[below]), float(ordered[above])
    return low + (high - low) * share if share < 1 / 2 else high - (high - low) * (1 - share)
