"""Evaluator that looks for expected evidence among the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pytest_heta.errors import ConfigurationError
from pytest_heta.evaluators.judgments import (
    checked_threshold,
    evidence_grade,
    reaches,
    unjudged,
)
from pytest_heta.evaluators.provenance import (
    DOCUMENT_FIELDS,
    document_id_of_key,
    document_id_of_prefix,
    field_of,
    field_values,
    result_document_ids,
    scopes_of,
)
from pytest_heta.evaluators.wording import folded
from pytest_heta.models import (
    BenchmarkCase,
    BenchmarkEvidence,
    Direction,
    EvaluationScore,
    QueryResponse,
    QueryResult,
)

__all__ = ["EvidenceRecallAtK", "holds_evidence"]


class EvidenceRecallAtK:
    """Share of the expected evidence that is found in the first k results.

    Evidence with a grade above 0 is expected. A result matches a piece of
    evidence if it agrees with everything that the evidence says:

    * ``locator``: every field has a value in common with the same field of
      the result's source or of its origin, in singular or plural form.
      ``document_id`` is compared with the documents the result comes from
      (see `result_document_ids`), and so is the document of a raw key;
      ``source_key_prefix`` with the beginnings of the result's keys;
      ``chunk_id`` also with the result's own id.
    * ``reference_id``: the result comes from that document. It is not looked
      at when the locator names a document.
    * ``text``: the result's text contains it, both in Unicode NFKC,
      case-folded, with white space folded. The result has to contain the
      evidence, not the other way round: a chunk of two words is no evidence.

    Args:
        k: Number of results to look at; chunks of one document count each.
        threshold: Value in 0..1 that ``passed`` asks for; without one the
            evaluator gives no verdict.

    Raises:
        ConfigurationError: if ``k`` is not a whole number above 0, or the
            threshold is not in 0..1.
    """

    direction: ClassVar[Direction] = "higher"
    worst: ClassVar[float] = 0.0
    bounded: ClassVar[bool] = True
    requires_judgment: ClassVar[bool] = True

    def __init__(self, k: int = 5, threshold: float | None = None) -> None:
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise ConfigurationError(
                f"k of evidence_recall@k is {k!r}", hint="it must be a whole number above 0"
            )
        self.k = k
        self.threshold = checked_threshold(threshold, self.name)

    def __repr__(self) -> str:
        """Return the call that makes an equal evaluator."""
        return f"EvidenceRecallAtK({self.k!r}, threshold={self.threshold!r})"

    @property
    def name(self) -> str:
        """Name of the evaluator: ``evidence_recall@k``."""
        return f"evidence_recall@{self.k}"

    def applies(self, case: BenchmarkCase) -> bool:
        """Whether the case has evidence with a grade above 0."""
        return bool(_expected(case))

    async def evaluate(self, *, case: BenchmarkCase, response: QueryResponse) -> EvaluationScore:
        """Return the score."""
        return self.score(case=case, response=response)

    def score(self, *, case: BenchmarkCase, response: QueryResponse) -> EvaluationScore:
        """Return the share of evidence found, or "unjudged"."""
        expected = [_Wanted(evidence) for evidence in _expected(case)]
        if not expected:
            return unjudged(self.name)
        results = [_Found(result) for result in response.results[: self.k]]
        matched = sum(any(map(wanted.is_in, results)) for wanted in expected)
        value = matched / len(expected)
        return EvaluationScore(
            name=self.name,
            value=value,
            passed=reaches(value, self.threshold),
            metadata={"matched": matched, "expected": len(expected)},
        )


def holds_evidence(result: QueryResult, evidence: BenchmarkEvidence) -> bool:
    """Whether a result matches a piece of evidence, by the rules of `EvidenceRecallAtK`."""
    return _Wanted(evidence).is_in(_Found(result))


def _expected(case: BenchmarkCase) -> list[BenchmarkEvidence]:
    return [evidence for evidence in case.expected.evidence if evidence_grade(evidence, case) > 0]


class _Found:
    """What a result says about where it comes from."""

    def __init__(self, result: QueryResult) -> None:
        self.scopes = scopes_of(result.source)
        self.id = result.id
        self.documents = result_document_ids(result)
        self.keys = field_values(self.scopes, "source_key")
        self.text = folded(result.text)


class _Wanted:
    """What a piece of evidence asks of a result."""

    def __init__(self, evidence: BenchmarkEvidence) -> None:
        self.fields = _locator_fields(evidence.locator)
        self.text = folded(evidence.text or "")
        if evidence.reference_id is not None and not DOCUMENT_FIELDS & self.fields.keys():
            self.fields["document_id"] = [evidence.reference_id]

    def is_in(self, found: _Found) -> bool:
        """Whether ``found`` agrees with everything; nothing agrees with nothing."""
        if not self.fields and not self.text:
            return False
        return self.text in found.text and all(
            _agrees(found, field, values) for field, values in self.fields.items()
        )


def _locator_fields(locator: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the values of each field of a locator; without a value it is none."""
    fields = dict.fromkeys(map(field_of, locator))
    return {field: values for field in fields if (values := field_values((locator,), field))}


def _agrees(found: _Found, field: str, values: list[str]) -> bool:
    """Whether a field of a locator and the result have a value in common."""
    if field == "source_key":
        return any(_has_key(found, value) for value in values)
    if field == "source_key_prefix":
        return any(_has_prefix(found, value) for value in values)
    if field == "document_id":
        actual = found.documents
    else:
        actual = field_values(found.scopes, field)
        if field == "chunk_id":
            actual = [found.id, *actual]
    return any(value in actual for value in values)


# A suite may run a benchmark under another name, and names are part of the
# keys: a raw key, or its beginning, means its document all the same.


def _has_key(found: _Found, key: str) -> bool:
    return key in found.keys or document_id_of_key(key) in found.documents


def _has_prefix(found: _Found, prefix: str) -> bool:
    return (
        any(key.startswith(prefix) for key in found.keys)
        or document_id_of_prefix(prefix) in found.documents
    )
