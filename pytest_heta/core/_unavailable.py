"""Documents that a dataset names and nobody can read, and the cases that fail for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pytest_heta.core._dangling import relevant_documents
from pytest_heta.errors import DocumentUnavailableError, first_of
from pytest_heta.models import BenchmarkCase, BenchmarkRunUnit

__all__ = ["affected_cases", "unavailable_error", "unavailable_gold"]

_SHOWN: Final = 5


def unavailable_gold(
    cases: Iterable[BenchmarkCase], problems: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the relevant documents of each case that cannot be read, of cases that have some.

    Args:
        cases: All cases.
        problems: Why a document cannot be read, by its id.
    """
    found: dict[str, tuple[str, ...]] = {}
    for case in cases if problems else ():
        gold = tuple(name for name in relevant_documents(case) if name in problems)
        if gold:
            found[case.case_id] = gold
    return found


def affected_cases(
    gold: Mapping[str, Sequence[str]],
    units: Iterable[BenchmarkRunUnit],
    problems: Mapping[str, str],
) -> set[str]:
    """Return the cases that cannot be asked: for their gold, or a document of their run unit.

    Args:
        gold: What `unavailable_gold` returned.
        units: All run units, their case ids filled in.
        problems: Why a document cannot be read, by its id.
    """
    affected = set(gold)
    for unit in units if problems else ():
        if not problems.keys().isdisjoint(unit.document_ids):
            affected.update(unit.case_ids)
    return affected


def unavailable_error(
    document_ids: Sequence[str], problems: Mapping[str, str], where: str | None = None
) -> DocumentUnavailableError:
    """Return the error that documents cannot be read, with the reason of the first.

    Args:
        document_ids: Documents that cannot be read, at least one.
        problems: Why a document cannot be read, by its id.
        where: Who needs them.
    """
    first, *others = document_ids
    also = f" (nor can {first_of(others, _SHOWN)})" if others else ""
    return DocumentUnavailableError(
        f"document {first!r} cannot be read: {problems[first]}{also}",
        where=where,
        hint="put the file there, or take the document out of the dataset",
    )
