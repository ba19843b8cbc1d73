"""The records of the vocabulary: what they take, refuse and keep."""

import json
import math
import sys
from collections import Counter
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_heta.errors import ModelInvalidError
from pytest_heta.models import (
    BenchmarkCase,
    BenchmarkDocument,
    BenchmarkEvidence,
    BenchmarkExpected,
    BenchmarkManifest,
    BenchmarkResource,
    BenchmarkRunUnit,
    EvaluationScore,
    QueryResponse,
    QueryResult,
    document_id_from_raw_key,
    normalise_id,
    raw_key,
)

# --- ids -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "identifier"),
    [
        *[("7", "7"), (7, "7"), (7.0, "7"), (-1, "-1"), ("7.0", "7.0"), ("007", "007")],
        *[(" a ", " a "), (np.int64(7), "7"), (np.float32(7), "7"), (10**30, "1" + "0" * 30)],
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_an_id_is_one_string(value, identifier):
    assert normalise_id(value) == identifier
    assert BenchmarkCase(case_id=value, query="q").case_id == identifier


@pytest.mark.parametrize("value", ["", True, 1.5, math.nan, math.inf, None, b"a", ["a"]])
def test_what_is_no_id_is_refused(value):
    with pytest.raises(ValueError, match="an id must"):
        normalise_id(value)
    with pytest.raises(ModelInvalidError, match=r"BenchmarkCase\.case_id"):
        BenchmarkCase(case_id=value, query="q")


# --- what does not fit -----------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (
            lambda: BenchmarkManifest(name="a b"),
            "BenchmarkManifest.name = 'a b': String should match pattern '^[A-Za-z0-9_-]+$'",
        ),
        (BenchmarkManifest, "BenchmarkManifest.name: a value is required"),
        (
            lambda: BenchmarkResource(name="n", uri="u", size_bytes=-1),
            "BenchmarkResource.size_bytes = -1: Input should be greater than or equal to 0",
        ),
        (
            lambda: BenchmarkManifest(name="a", licence="MIT"),
            "BenchmarkManifest.licence = 'MIT': Extra inputs are not permitted",
        ),
        (
            lambda: BenchmarkCase(query=5),
            "BenchmarkCase.case_id: a value is required (and 1 more)",
        ),
        (
            lambda: QueryResponse(mode="m", results=[{"id": "a"}, {"id": ""}]),
            "QueryResponse.results.1.id = '': an id must not be empty",
        ),
        (
            lambda: BenchmarkDocument(document_id="d", name="d.txt"),
            "BenchmarkDocument: document 'd' needs exactly one of data, path and source_uri, not 0",
        ),
        (
            lambda: BenchmarkDocument(document_id="d", name="d.txt", data=b"", path="d.txt"),
            "BenchmarkDocument: document 'd' needs exactly one of data, path and source_uri, not 2",
        ),
        (
            lambda: BenchmarkEvidence(text=""),
            "BenchmarkEvidence: a reference_id, a locator or a text is required",
        ),
        (
            lambda: BenchmarkManifest.model_validate([]),
            "BenchmarkManifest: Input should be a valid dictionary",
        ),
    ],
)
def test_what_does_not_fit_is_named_in_one_line(make, line):
    with pytest.raises(ModelInvalidError) as raised:
        make()
    assert str(raised.value).startswith(f"[model-invalid] {line}")
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    "validate",
    [
        lambda results: QueryResponse(mode="m", results=results),
        lambda results: QueryResponse.model_validate({"mode": "m", "results": results}),
        lambda results: QueryResponse.model_validate_json(
            json.dumps({"mode": "m", "results": results})
        ),
    ],
    ids=["init", "python", "json"],
)
def test_nested_models_are_validated_without_python(validate):
    """A call into Python for each result of each response is what a run would notice."""
    called = Counter()
    results = [{"id": str(number), "source": {"page_index": 1}} for number in range(10)]
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: called.update([frame.f_code] * (event == "call")))
    try:
        validate(results)
    finally:
        sys.setprofile(before)
    often = {code.co_name for code, count in called.items() if count >= len(results)}
    assert often == {"normalise_id"}


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (
            lambda: QueryResponse.model_validate_json('{"mode": "m", "results": [{}]}'),
            "QueryResponse.results.0.id: a value is required",
        ),
        (lambda: QueryResult.model_validate_json("{"), "QueryResult: Invalid JSON"),
        (
            lambda: QueryResponse.model_validate(
                SimpleNamespace(mode="m", results=[SimpleNamespace(id="a", score="high")])
            ),
            "QueryResponse.results.0.score = 'high': Input should be a valid number",
        ),
        (
            lambda: BenchmarkExpected(evidence=[{"text": ""}]),
            "BenchmarkEvidence: a reference_id, a locator or a text is required",
        ),
    ],
)
def test_what_does_not_fit_inside_is_named_too(make, line):
    with pytest.raises(ModelInvalidError) as raised:
        make()
    assert str(raised.value).startswith(f"[model-invalid] {line}")
    assert raised.value.__cause__ is None


def test_what_is_trusted_is_the_same_as_what_is_validated():
    values = {"name": "hit", "value": 0.5, "passed": None, "metadata": {}}
    made, validated = EvaluationScore.trusted(**values), EvaluationScore(**values)
    assert made == validated
    assert made.model_fields_set == validated.model_fields_set
    assert made.model_dump_json() == validated.model_dump_json()
    assert repr(made) == repr(validated)
    with pytest.raises(ValidationError, match="frozen"):
        made.value = 1.0


def test_a_copy_has_other_values_and_leaves_the_original():
    original = QueryResult(id="a", text="t")
    copy = original.replaced(text="other", score=0.5)
    assert copy == QueryResult(id="a", text="other", score=0.5)
    assert copy.model_fields_set == {"id", "text", "score"}
    assert original == QueryResult(id="a", text="t")
    assert original.model_fields_set == {"id", "text"}
    with pytest.raises(ValidationError, match="frozen"):
        copy.text = "third"


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(ModelInvalidError) as raised:
        BenchmarkCase(case_id="c", query=["x" * 10_000])
    assert len(str(raised.value)) < 200


def test_a_set_of_ids_has_one_order():
    ids = {f"c{number}" for number in range(20)}
    unit = BenchmarkRunUnit(unit_id="u", document_ids={2, 10, 1}, case_ids=frozenset(ids))
    assert unit.document_ids == ("1", "10", "2")
    assert unit.case_ids == tuple(sorted(ids))
    assert BenchmarkExpected(answers=ids).answers == tuple(sorted(ids))


def test_a_record_does_not_change():
    case = BenchmarkCase(case_id="c", query="q")
    with pytest.raises(ValidationError, match="frozen"):
        case.query = "other"
    assert case.query == "q"


def test_objects_of_the_same_shape_are_taken_in():
    result = SimpleNamespace(id=7, text="t", score=None, kind="chunk", source={}, metadata={})
    response = SimpleNamespace(
        mode="m", results=[result], answer=None, citations=[], trace=[], metadata={}
    )
    taken = QueryResponse.model_validate(response, from_attributes=True)
    assert taken.results == (QueryResult(id="7", text="t"),)


# --- grades ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "grade"),
    [
        ({}, 1.0),
        ({"relevance": None}, 1.0),
        ({"relevance": 0}, 0.0),
        ({"relevance": -1}, -1.0),
        ({"relevance": 0.5}, 0.5),
        ({"relevance": "2"}, 2.0),
        ({"relevance": 1e15}, 1e15),
    ],
)
def test_the_grade_of_evidence(metadata, grade):
    assert BenchmarkEvidence(reference_id="d", metadata=metadata).grade == grade


@pytest.mark.parametrize(
    "relevance",
    ["high", math.nan, -math.inf, 2e15, pytest.param(10**400, id="huge"), [1], {}],
)
def test_what_is_no_grade_names_the_evidence(relevance):
    evidence = BenchmarkEvidence(text="a passage", metadata={"relevance": relevance})
    with pytest.raises(
        ModelInvalidError, match=r"relevance .* of the evidence 'a passage' is no grade; a grade is"
    ):
        _ = evidence.grade


# --- scores ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "metadata", "status"),
    [
        (0.0, {}, "scored"),
        (False, {}, "scored"),
        ("label", {}, "scored"),
        (None, {}, "errored"),
        (None, {"skipped": True}, "skipped"),
        (None, {"unjudged": True}, "unjudged"),
        (None, {"error": {"type": "x"}}, "errored"),
        # A value beside a reason to have none does not count.
        (0.0, {"skipped": True, "reason": "depth"}, "skipped"),
        (1.0, {"error": "lost"}, "errored"),
        (1.0, {"skipped": True, "error": "lost"}, "errored"),
        (1.0, {"skipped": False, "error": None}, "scored"),
    ],
)
def test_a_score_has_one_place_in_the_denominators(value, metadata, status):
    assert EvaluationScore(name="n", value=value, metadata=metadata).status == status


# --- raw keys ------------------------------------------------------------------------


def document(document_id, name="text.md"):
    return BenchmarkDocument(document_id=document_id, name=name, data=b"")


@pytest.mark.parametrize(
    ("document_id", "name", "end"),
    [
        ("d1", "text.md", "d1/text.md"),
        ("a/b", "c\\d", "a%2Fb/c%5Cd"),
        ("50%", "a.b", "50%25/a.b"),
        ("..", ".", "%2E%2E/%2E"),
        ("a\n", "名", "a%0A/名"),
    ],
)
def test_a_raw_key_has_one_segment_for_each_part(document_id, name, end):
    manifest = BenchmarkManifest(name="b", split="dev")
    assert raw_key(manifest, document(document_id, name)) == f"raw/benchmarks/b/dev/{end}"


@given(
    document_id=st.text(st.characters(codec="utf-8"), min_size=1),
    name=st.text(st.characters(codec="utf-8"), min_size=1),
)
def test_a_raw_key_leads_back_to_its_document(document_id, name):
    key = raw_key(BenchmarkManifest(name="b"), document(document_id, name))
    assert key.count("/") == 5
    assert document_id_from_raw_key(key) == document_id
    assert document_id_from_raw_key(f"s3://bucket/{key}") == document_id


@pytest.mark.parametrize(
    "key", ["", "d1", "raw/benchmarks/b/test/d1", "raw/benchmarks/b/test/d1/a/b", "draw/benchmarks"]
)
def test_other_keys_lead_to_no_document(key):
    assert document_id_from_raw_key(key) is None
