"""Retrieval measures: the only place where they are named and computed.

A measure is written ``family@k`` and means what trec_eval means by it, but
for ties: the order of the ranking is taken as it is, never changed by document
ids. A document is relevant if its grade is above 0. ``R`` is the number of
relevant documents, retrieved or not; ``g(i)`` is the grade of the document at
rank ``i``, 0 if it is not relevant or not judged.

==============  ==============================================================
``ndcg@k``      Σ g(i) / log2(i + 1) over the first k, divided by the same sum
                of all grades above 0 in their best order (Järvelin and
                Kekäläinen 2002, with linear gain)
``ndcg_exp@k``  the same with the gain 2^g − 1 (Burges et al. 2005)
``map@k``       Σ precision@i over the ranks i ≤ k of relevant documents, / R
``recall@k``    relevant documents among the first k, / R
``precision@k`` relevant documents among the first k, / k
``mrr@k``       1 / rank of the first relevant document, 0 if it is deeper than k
``hit@k``       1 if a relevant document is among the first k, else 0
==============  ==============================================================

Everything is 0 when nothing is retrieved or nothing is relevant.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import compress, count, islice
from operator import mul, truediv
from typing import Final

from pytest_heta.errors import MeasureUnknownError, did_you_mean, shown

__all__ = [
    "Measure",
    "MeasureSet",
    "likely_measure",
    "measure_families",
    "parse_at_k",
    "parse_measure",
]

_Formula = Callable[[list[int], list[float], list[float], int], float]
"""Called with the ranks of the retrieved relevant documents (ascending, from
1), their grades, all grades above 0 (descending, never empty), and k."""


# --- formulas ----------------------------------------------------------------

_BLOCK: Final = 1024


@lru_cache(maxsize=16)
def _discounts(blocks: int) -> tuple[float, ...]:
    """Return 1 / log2(rank + 1) at index ``rank``; rank 0 does not exist."""
    return (0.0, *(1 / math.log2(rank + 1) for rank in range(1, blocks * _BLOCK)))


def _ndcg(ranks: list[int], gains: list[float], ideal: list[float], k: int) -> float:
    found = bisect_right(ranks, k)
    if not found:
        return 0.0
    discount = _discounts(max(ranks[-1], len(ideal)) // _BLOCK + 1)
    dcg: float = sum(map(mul, gains, map(discount.__getitem__, ranks[:found])))
    best: float = sum(map(mul, ideal[:k], islice(discount, 1, None)))
    # No order beats the best one; only rounding may say so.
    return min(1.0, dcg / best)


def _ndcg_exp(ranks: list[int], gains: list[float], ideal: list[float], k: int) -> float:
    largest = ideal[0]

    def gain(grade: float) -> float:
        # (2^grade − 1) / 2^largest: the divisor cancels out in the quotient, and
        # this form neither overflows nor loses the digits of small grades.
        return -math.expm1(-grade * math.log(2)) * math.exp2(grade - largest)

    return _ndcg(ranks, [gain(g) for g in gains], [gain(g) for g in ideal], k)


def _map(ranks: list[int], _gains: list[float], ideal: list[float], k: int) -> float:
    found = bisect_right(ranks, k)
    total: float = sum(map(truediv, range(1, found + 1), ranks))
    return total / len(ideal)


def _recall(ranks: list[int], _gains: list[float], ideal: list[float], k: int) -> float:
    return bisect_right(ranks, k) / len(ideal)


def _precision(ranks: list[int], _gains: list[float], _ideal: list[float], k: int) -> float:
    return bisect_right(ranks, k) / k


def _mrr(ranks: list[int], _gains: list[float], _ideal: list[float], k: int) -> float:
    return 1 / ranks[0] if ranks and ranks[0] <= k else 0.0


def _hit(ranks: list[int], _gains: list[float], _ideal: list[float], k: int) -> float:
    return 1.0 if ranks and ranks[0] <= k else 0.0


_FORMULAS: Final[Mapping[str, _Formula]] = {
    "ndcg": _ndcg,
    "map": _map,
    "recall": _recall,
    "precision": _precision,
    "mrr": _mrr,
    "hit": _hit,
    "ndcg_exp": _ndcg_exp,
}


# --- names -------------------------------------------------------------------

_ALIASES: Final = {
    "p": "precision",
    "r": "recall",
    "ap": "map",
    "map_cut": "map",
    "average_precision": "map",
    "rr": "mrr",
    "recip_rank": "mrr",
    "reciprocal_rank": "mrr",
    "ndcg_cut": "ndcg",
    "success": "hit",
    "hit_rate": "hit",
    "hits": "hit",
}
"""What other tools call the families: for suggestions alone."""

_AT_K: Final = re.compile(r"(?P<family>[a-z_]+)@(?P<k>[1-9][0-9]{0,8})")
_K_RANGE: Final = "a whole number from 1 to 999999999"
_LOOSE_AT_K: Final = re.compile(r"(?P<family>.*?)[_.-]?(?P<k>[0-9]+)")


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure: a family, and how deep it looks.

    Attributes:
        family: One of `measure_families`.
        k: Number of documents it looks at, from the top.

    Raises:
        MeasureUnknownError: if there is no such family, or ``k`` is not a
            whole number above 0.
    """

    family: str
    k: int

    def __post_init__(self) -> None:
        parse_at_k(self.name, measure_families())

    @property
    def name(self) -> str:
        """The measure as it is written, such as ``ndcg@10``."""
        return f"{self.family}@{self.k}"


def measure_families() -> tuple[str, ...]:
    """Return the names of all families, without ``@k``."""
    return tuple(_FORMULAS)


def parse_measure(text: str) -> Measure:
    """Return the measure that ``text`` names.

    Args:
        text: ``family@k``, exactly: lower case, no white space.

    Raises:
        MeasureUnknownError: if it names none; the hint has the likely one.
    """
    return Measure(*parse_at_k(text, measure_families()))


def parse_at_k(text: str, families: Sequence[str], plain: Sequence[str] = ()) -> tuple[str, int]:
    """Split ``family@k`` into its parts.

    Args:
        text: What was written.
        families: Names that are allowed before ``@k``.
        plain: Names without ``@k`` that may have been meant: for the hint.

    Raises:
        MeasureUnknownError: if it is not one of ``families`` with a k.
    """
    match = _AT_K.fullmatch(text) if isinstance(text, str) else None
    if match and match["family"] in families:
        return match["family"], int(match["k"])
    raise _unknown(str(text), families, plain)


def likely_measure(text: str) -> str | None:
    """Return the measure that a wrong name was probably meant to be, if there is one."""
    return _likely(*_meant(text, measure_families()))


def _unknown(text: str, families: Sequence[str], plain: Sequence[str]) -> MeasureUnknownError:
    """Return the error that says what is wrong with ``text``, and what was meant."""
    measure = f"measure {shown(text)}"
    meant, depth = _meant(text, families, plain)
    likely = meant if meant in plain else _likely(meant, depth)
    if meant is None or likely is not None:
        known = [*(f"{family}@k" for family in families), *plain]
        hint = did_you_mean(text, known, [likely] if likely else [])
        return MeasureUnknownError(f"{measure} is unknown", hint=hint)
    example = f"write {meant}@k, such as '{meant}@10'"
    if not depth:
        return MeasureUnknownError(f"{measure} does not say how deep it looks", hint=example)
    return MeasureUnknownError(f"the k of {measure} must be {_K_RANGE}", hint=example)


def _meant(text: str, families: Sequence[str], plain: Sequence[str] = ()) -> tuple[str | None, str]:
    """Return the known name that ``text`` probably means, and the k as it is written there."""
    folded = "".join(unicodedata.normalize("NFKC", text).casefold().split())
    name, at, depth = folded.partition("@")
    loose = None if at or name in plain else _LOOSE_AT_K.fullmatch(folded)
    if loose:
        name, depth = loose["family"], loose["k"]
    aliases = {alias: family for alias, family in _ALIASES.items() if family in families}
    targets = aliases | {known: known for known in (*families, *plain)}
    close = [name] if name in targets else get_close_matches(name, targets, n=1)
    return (targets[close[0]] if close else None), depth


def _likely(family: str | None, depth: str) -> str | None:
    measure = f"{family}@{depth.lstrip('0')}"
    return measure if family is not None and _AT_K.fullmatch(measure) else None


# --- computing ---------------------------------------------------------------


class MeasureSet:
    """Several measures, computed in one pass over a ranking.

    Args:
        measures: The measures; their order is the order of the values.
    """

    __slots__ = ("_compiled", "_depth", "measures")

    def __init__(self, measures: Iterable[Measure]) -> None:
        self.measures = tuple(measures)
        self._compiled = [(_FORMULAS[measure.family], measure.k) for measure in self.measures]
        self._depth = max((measure.k for measure in self.measures), default=0)

    def compute(self, ranked: Sequence[str], grades: Mapping[str, float]) -> list[float]:
        """Return the value of each measure, in 0..1.

        Args:
            ranked: Ids of the retrieved documents, best first, each once.
            grades: Grade of each judged document; those of 0 and below say
                "not relevant", as does a missing one.
        """
        relevant = {document: grade for document, grade in grades.items() if grade > 0}
        if not relevant:
            return [0.0] * len(self.measures)
        if len(ranked) > self._depth:
            ranked = ranked[: self._depth]
        # All loops over the ranking run in C; Python only sees the few relevant ones.
        ranks = list(compress(count(1), map(relevant.__contains__, ranked)))
        if not ranks:
            return [0.0] * len(self.measures)
        gains = [relevant[ranked[rank - 1]] for rank in ranks]
        ideal = sorted(relevant.values(), reverse=True)
        return [formula(ranks, gains, ideal, k) for formula, k in self._compiled]
