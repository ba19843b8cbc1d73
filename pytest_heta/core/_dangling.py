"""Judgments on documents that a case's knowledge base cannot have."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from pytest_heta.errors import DatasetInvalidError, HetaError
from pytest_heta.evaluators import grades
from pytest_heta.models import BenchmarkCase, BenchmarkRunUnit

__all__ = ["Dangling", "dangling_documents", "relevant_documents", "unjudged_cases"]


class Dangling(NamedTuple):
    """Relevant documents that no retriever can find; they cap the scores.

    Attributes:
        absent: Ids that are not in the corpus.
        outside: Documents of the corpus outside the run unit of the case, as
            ``ID (case ID)``.
    """

    absent: tuple[str, ...]
    outside: tuple[str, ...]


def dangling_documents(
    cases: Iterable[BenchmarkCase], units: Sequence[BenchmarkRunUnit], corpus: Container[str]
) -> Dangling:
    """Find relevant documents that are not where they are looked for.

    Args:
        cases: All cases.
        units: All run units, their case ids filled in.
        corpus: Ids of all documents.
    """
    relevant = {case.case_id: relevant_documents(case) for case in cases}
    absent = {name: None for ids in relevant.values() for name in ids if name not in corpus}
    outside: dict[str, None] = {}
    for unit in units:
        inside = frozenset(unit.document_ids)
        if inside:
            for case_id in unit.case_ids:
                missing = [name for name in relevant[case_id] if name not in inside]
                outside |= {f"{n} (case {case_id})": None for n in missing if n in corpus}
    return Dangling(tuple(absent), tuple(outside))


def unjudged_cases(cases: Iterable[BenchmarkCase]) -> list[str]:
    """Return the ids of cases that expect nothing by which a response could be judged."""
    return [case.case_id for case in cases if not _is_judged(case)]


def _is_judged(case: BenchmarkCase) -> bool:
    expected = case.expected
    if expected.answers or expected.value is not None or expected.metadata:
        return True
    try:
        return any(evidence.grade > 0 for evidence in expected.evidence)
    except HetaError:  # the scores of the case say so
        return True


def relevant_documents(case: BenchmarkCase) -> list[str]:
    """Return the documents with a grade above 0; none if a grade is no number."""
    try:
        return [name for name, grade in grades(case).items() if grade > 0]
    except DatasetInvalidError:  # the scores of the case say so
        return []
