"""What a case expects: graded judgments, and what becomes of cases without any."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_heta.comparison import holds
from pytest_heta.errors import ConfigurationError, DatasetInvalidError, ModelInvalidError
from pytest_heta.evaluators.provenance import locator_document_ids
from pytest_heta.models import BenchmarkCase, BenchmarkEvidence, EvaluationScore
from pytest_heta.models._benchmark import LARGEST_GRADE

__all__ = [
    "checked_threshold",
    "evidence_grade",
    "grades",
    "judges_a_document",
    "reaches",
    "unjudged",
]


def grades(case: BenchmarkCase) -> dict[str, float]:
    """Return the grade of each judged document of a case.

    A piece of evidence judges the documents that its locator names (by raw
    key or ``document_id``), else the one that its ``reference_id`` names.
    Where a document is judged more than once, the highest grade counts.
    Fractions are kept, and grades below 0 become 0.

    Raises:
        DatasetInvalidError: if a grade is not a number.
    """
    judged: dict[str, float] = {}
    for evidence in case.expected.evidence:
        # A case has many: its attributes cost twice what entries of a dict do.
        fields = evidence.__dict__
        grade = fields["metadata"].get("relevance")
        if type(grade) is not int or not -LARGEST_GRADE <= grade <= LARGEST_GRADE:
            grade = evidence_grade(evidence, case)
        grade = max(0.0, grade)
        for document_id in _judged_documents(evidence):
            if grade > judged.get(document_id, -1.0):
                judged[document_id] = grade
    return judged


def judges_a_document(case: BenchmarkCase) -> bool:
    """Whether some document of the case has a grade above 0.

    Raises:
        DatasetInvalidError: if a grade before the first one above 0 is not a
            number.
    """
    for evidence in case.expected.evidence:
        grade = evidence.__dict__["metadata"].get("relevance")
        if type(grade) is not int or not -LARGEST_GRADE <= grade <= LARGEST_GRADE:
            grade = evidence_grade(evidence, case)
        if grade > 0 and _judged_documents(evidence):
            return True
    return False


def _judged_documents(evidence: BenchmarkEvidence) -> Sequence[str]:
    fields = evidence.__dict__
    named = locator_document_ids(fields["locator"]) if fields["locator"] else ()
    reference_id = fields["reference_id"]
    return named if named or reference_id is None else (reference_id,)


def evidence_grade(evidence: BenchmarkEvidence, case: BenchmarkCase) -> float:
    """Return the grade of a piece of evidence; an error names its case."""
    try:
        return evidence.grade
    except ModelInvalidError as error:
        raise DatasetInvalidError(
            error.message, where=f"case {case.case_id}", hint=error.hint
        ) from None


# --- scores ------------------------------------------------------------------


def unjudged(name: str) -> EvaluationScore:
    """Return the score of a case that has no positive judgment."""
    return EvaluationScore(name=name, metadata={"unjudged": True, "reason": "no positive judgment"})


def checked_threshold(threshold: float | None, name: str) -> float | None:
    """Return ``threshold``.

    Raises:
        ConfigurationError: if it is not in 0..1.
    """
    if threshold is None or (isinstance(threshold, int | float) and 0 <= threshold <= 1):
        return threshold
    raise ConfigurationError(
        f"threshold {threshold!r} of {name!r} is not in 0..1", hint="write 80 % as 0.8"
    )


def reaches(value: float, threshold: float | None) -> bool | None:
    """Whether ``value`` is at least ``threshold``; None without a threshold."""
    return None if threshold is None else holds(value, ">=", threshold)
