"""What a case's evidence says about documents."""

import pytest

from pytest_heta.errors import DatasetInvalidError
from pytest_heta.evaluators import grades
from pytest_heta.models import BenchmarkCase


def grades_of(*evidence):
    return grades(BenchmarkCase(case_id="c1", query="q", expected={"evidence": list(evidence)}))


def judged(document, relevance):
    return {"reference_id": document, "metadata": {"relevance": relevance}}


@pytest.mark.parametrize(
    ("relevance", "grade"),
    [(1, 1.0), (3, 3.0), (0, 0.0), (-1, 0.0), (0.5, 0.5), ("2", 2.0), (True, 1.0), (None, 1.0)],
)
def test_the_grade_of_a_judgment(relevance, grade):
    assert grades_of(judged("a", relevance)) == {"a": grade}


def test_evidence_without_a_grade_has_grade_1():
    assert grades_of({"reference_id": "a"}) == {"a": 1.0}


@pytest.mark.parametrize("order", [1, -1])
def test_the_higher_grade_of_two_judgments_counts(order):
    assert grades_of(*[judged("a", 1), judged("a", 2.5)][::order]) == {"a": 2.5}


@pytest.mark.parametrize(
    "relevance",
    ["high", "nan", float("nan"), float("inf"), pytest.param(10**400, id="huge"), 1e200, [1], {}],
)
def test_a_grade_is_a_finite_number(relevance):
    with pytest.raises(DatasetInvalidError, match=r"case c1: relevance .* of the evidence 'a'"):
        grades_of(judged("a", relevance))


def test_the_error_of_a_grade_is_short():
    evidence = {"text": "long " * 1000, "metadata": {"relevance": "high" * 1000}}
    with pytest.raises(DatasetInvalidError) as raised:
        grades_of(evidence)
    assert len(str(raised.value)) < 250


@pytest.mark.parametrize(
    ("locator", "document"),
    [
        ({"document_id": "d"}, "d"),
        ({"document_id": 7, "page_index": 3}, "7"),
        ({"source_key": "raw/benchmarks/b/test/d/d.txt"}, "d"),
        ({"object_keys": ["raw/benchmarks/b/test/d/d.txt"]}, "d"),
        ({"source_key_prefix": "raw/benchmarks/b/test/d/"}, "d"),
    ],
)
def test_a_locator_names_the_judged_document(locator, document):
    assert grades_of({"locator": locator}) == {document: 1.0}
    # It says more exactly what is meant than a reference does.
    assert grades_of({"locator": locator, "reference_id": "table 3"}) == {document: 1.0}


@pytest.mark.parametrize(
    "locator", [{}, {"page_index": 3}, {"source_key_prefix": "raw/"}, {"source_key_prefix": 1}]
)
def test_a_reference_names_the_document_if_no_locator_does(locator):
    assert grades_of({"locator": locator, "reference_id": "d"}) == {"d": 1.0}


def test_evidence_may_judge_no_document():
    assert grades_of({"text": "a passage"}, {"locator": {"page_index": 3}}) == {}
    assert grades_of() == {}


def test_a_locator_may_name_several_documents():
    assert grades_of({"locator": {"document_ids": ["d", "e"]}, "metadata": {"relevance": 2}}) == {
        "d": 2.0,
        "e": 2.0,
    }
