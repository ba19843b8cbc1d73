"""The query options of the local recipes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Final

from pytest_heta.errors import QueryError, did_you_mean

__all__ = [
    "FULL_TEXT",
    "HYBRID",
    "LEG_DEPTH",
    "MODES",
    "VECTOR",
    "QueryOptions",
    "legs_of",
    "parse_count",
    "parse_options",
]

FULL_TEXT: Final = "full_text_search"
VECTOR: Final = "vector_search"
HYBRID: Final = "hybrid_search"
MODES: Final = (FULL_TEXT, VECTOR, HYBRID)

LEG_DEPTH: Final = 100
"""Least depth of a leg of the hybrid mode."""

_THRESHOLD_RANGES: Final = {FULL_TEXT: (0.0, math.inf), VECTOR: (-1.0, 1.0)}


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """The options of one query, checked.

    Attributes:
        rrf_k: Constant of reciprocal rank fusion.
        thresholds: Least score of a result of each leg that has one.
        rerank: Whether the reranker orders the results.
        rerank_candidates: How many results it is given.
        chunks_per_document: Chunks of one document that keep their place.
    """

    rrf_k: float = 60.0
    thresholds: Mapping[str, float] = field(default_factory=dict)
    rerank: bool = False
    rerank_candidates: int = 50
    chunks_per_document: int = 1


def legs_of(mode: str) -> tuple[str, ...]:
    """Return the indexes that a mode searches."""
    return (FULL_TEXT, VECTOR) if mode == HYBRID else (mode,)


def parse_options(options: Mapping[str, Any], *, mode: str, has_reranker: bool) -> QueryOptions:
    """Return the options of a query, checked; an option that is None is not given.

    Args:
        options: The options by name.
        mode: Query mode.
        has_reranker: Whether there is a reranker, which is used unless
            ``rerank`` is false.

    Raises:
        QueryError: if one does not exist, or is of a wrong type or range.
    """
    for name in options:
        if name not in _PARSERS:
            raise QueryError(
                f"there is no query option {name!r}", hint=did_you_mean(str(name), _PARSERS)
            )
    given: dict[str, Any] = {"rerank": has_reranker}
    for name, value in options.items():
        if value is None:
            continue
        if name == "score_threshold":
            given["thresholds"] = _thresholds(value, mode)
        else:
            given[name] = _PARSERS[name](name, value)
    if given["rerank"] and not has_reranker:
        raise QueryError(
            "option rerank = True, but no reranker is configured",
            hint="build the recipe with LocalRecipe(reranker=...)",
        )
    return QueryOptions(**given)


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return value


def parse_count(name: str, value: Any) -> int:
    """Return a value that counts something.

    Raises:
        QueryError: naming it, if it is no integer of 1 or more.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise _wrong(name, value, "an integer of 1 or more")
    return int(value)


def _constant(name: str, value: Any) -> float:
    number = _finite(value)
    if number is None or number < 0:
        raise _wrong(name, value, "a number of 0 or more")
    return number


def _thresholds(value: Any, mode: str) -> dict[str, float]:
    if isinstance(value, Mapping):
        for leg in value:
            if leg not in _THRESHOLD_RANGES:
                raise QueryError(
                    f"option score_threshold has no index {leg!r}",
                    hint=did_you_mean(str(leg), _THRESHOLD_RANGES),
                )
        given = {leg: number for leg, number in value.items() if number is not None}
    else:
        given = dict.fromkeys(legs_of(mode), value)
    return {leg: _threshold(leg, number) for leg, number in given.items()}


def _threshold(leg: str, value: Any) -> float:
    least, most = _THRESHOLD_RANGES[leg]
    number = _finite(value)
    if number is None or not least <= number <= most:
        span = "0 or more" if most == math.inf else f"{least:g} to {most:g}"
        raise _wrong(
            "score_threshold",
            value,
            f"a number of {span} for {leg}, or a mapping of {FULL_TEXT} and {VECTOR} to one each",
        )
    return number


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _wrong(name: str, value: Any, allowed: str) -> QueryError:
    return QueryError(f"{name} = {value!r:.60} is not allowed", hint=f"it is {allowed}")


_PARSERS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "rrf_k": _constant,
    "score_threshold": _thresholds,
    "rerank": _boolean,
    "rerank_candidates": parse_count,
    "chunks_per_document": parse_count,
}
