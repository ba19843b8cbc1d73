"""Recall of places and passages."""

import asyncio

import pytest

from pytest_heta.errors import ConfigurationError, DatasetInvalidError
from pytest_heta.evaluators import EvidenceRecallAtK
from pytest_heta.evaluators.evidence import holds_evidence
from pytest_heta.models import BenchmarkCase, QueryResponse

KEY = "raw/benchmarks/b/test/d/d.txt"


def case_of(*evidence):
    return BenchmarkCase(case_id="c", query="q", expected={"evidence": list(evidence)})


def response_of(*results):
    return QueryResponse(
        mode="m", results=[{"id": f"r{rank}", **result} for rank, result in enumerate(results)]
    )


def recall(evidence, results, k=5):
    evidence = [evidence] if isinstance(evidence, dict) else evidence
    results = [results] if isinstance(results, dict) else results
    evaluator = EvidenceRecallAtK(k)
    scored = evaluator.evaluate(case=case_of(*evidence), response=response_of(*results))
    return asyncio.run(scored).value


@pytest.mark.parametrize(
    ("locator", "source", "matches"),
    [
        ({"document_id": "d"}, {"document_id": "d"}, True),
        ({"document_id": 7}, {"document_id": "7"}, True),
        ({"document_id": "d"}, {"source_key": KEY}, True),
        ({"document_id": "d"}, {"document_id": "e"}, False),
        ({"document_ids": ["c", "d"]}, {"document_id": "d"}, True),
        ({"source_key": KEY}, {"source_key": KEY}, True),
        ({"source_key": KEY}, {"object_key": KEY}, True),
        ({"object_key": KEY}, {"source_keys": ["x", KEY]}, True),
        ({"source_key": KEY}, {"origin": {"object_key": KEY}}, True),
        ({"source_key": KEY}, {"document_id": "d"}, True),
        ({"source_key": KEY}, {"source_key": "raw/benchmarks/b/test/e/d.txt"}, False),
        ({"source_key": "my/file.txt"}, {"source_key": "my/file.txt"}, True),
        ({"source_key": "my/file.txt"}, {"source_key": "my/file.txt2"}, False),
        ({"source_key_prefix": "raw/benchmarks/b/test/d/"}, {"source_key": KEY}, True),
        ({"source_key_prefix": "raw/benchmarks/b/test/d/"}, {"document_id": "d"}, True),
        ({"source_key_prefix": "raw/benchmarks/b/test/dd/"}, {"source_key": KEY}, False),
        ({"source_key_prefixes": ["x/", "my/"]}, {"source_key": "my/file.txt"}, True),
        ({"source_key_prefix": "my/"}, {"source_key": "file.txt"}, False),
        ({"page_index": 3}, {"page_index": 3}, True),
        ({"page_index": 3}, {"page_index": "3"}, True),
        ({"page_index": 3}, {"page_indices": [2, 3]}, True),
        ({"page_index": 3}, {"page_indexes": [2, 3]}, True),
        ({"page_indices": [3, 4]}, {"page_index": 4}, True),
        ({"page_index": 3}, {"origin": {"page_index": 3}}, True),
        ({"page_index": 3}, {"page_index": 30}, False),
        ({"page_index": 0}, {"page_index": 0}, True),
        ({"page_index": 0}, {}, False),
        ({"chunk_id": "r0"}, {}, True),
        ({"chunk_id": "k1"}, {"chunk_ids": ["k0", "k1"]}, True),
        ({"chunk_id": "k1"}, {"chunk_id": "k2"}, False),
        ({"table_id": "t"}, {"table_id": "t"}, True),
        ({"row_index": 2}, {"row_indices": [1, 2]}, True),
        ({"column": "price"}, {"columns": ["name", "price"]}, True),
        ({"column": "price"}, {"column": "Price"}, False),
        ({"document_id": "d", "page_index": 3}, {"document_id": "d", "page_index": 3}, True),
        ({"document_id": "d", "page_index": 3}, {"document_id": "d", "page_index": 4}, False),
        ({"document_id": "d", "page_index": 3}, {"document_id": "d"}, False),
        ({"document_id": "d", "page_index": None}, {"document_id": "d"}, True),
        ({"document_id": "d", "page_indices": []}, {"document_id": "d"}, True),
        ({"section": "2.1"}, {"section": "2.1"}, True),
        ({"bold": True}, {"bold": True}, True),
        ({"section": "2.1"}, {"section": "2.2"}, False),
        ({"document_id": "d", "section": "2.1"}, {"document_id": "d"}, False),
    ],
)
def test_every_field_of_a_locator_has_to_agree(locator, source, matches):
    assert recall({"locator": locator}, {"source": source}) == float(matches)


def test_a_benchmark_under_another_name_has_other_keys_for_the_same_documents():
    renamed = {"source": {"source_key": "raw/benchmarks/other/test/d/d.txt"}}
    assert recall({"locator": {"source_key": KEY}}, renamed) == 1.0
    assert recall({"locator": {"source_key_prefix": "raw/benchmarks/b/test/d/"}}, renamed) == 1.0
    assert recall({"locator": {"source_key_prefix": "raw/benchmarks/b/test/e/"}}, renamed) == 0.0


def test_a_reference_is_the_id_of_a_document():
    assert recall({"reference_id": "d"}, {"source": {"document_id": "d"}}) == 1.0
    assert recall({"reference_id": "d"}, {"source": {"source_key": KEY}}) == 1.0
    assert recall({"reference_id": "r0"}, {}) == 1.0
    # The id of a chunk is not the id of a document, though it may look like one.
    assert recall({"reference_id": "r0"}, {"source": {"document_id": "d"}}) == 0.0


def test_a_reference_is_a_mere_name_when_the_locator_names_the_document():
    evidence = {"reference_id": "table 3", "locator": {"document_id": "d"}}
    assert recall(evidence, {"source": {"document_id": "d"}}) == 1.0


def test_an_empty_field_is_no_field():
    evidence = {"reference_id": "d", "locator": {"document_id": ""}}
    assert recall(evidence, {"source": {"document_id": "d"}}) == 1.0
    assert recall(evidence, {"source": {"document_id": "e"}}) == 0.0


def test_a_reference_and_a_place_have_to_agree_both():
    evidence = {"reference_id": "d", "locator": {"page_index": 3}}
    assert recall(evidence, {"source": {"document_id": "d", "page_index": 3}}) == 1.0
    assert recall(evidence, {"source": {"document_id": "e", "page_index": 3}}) == 0.0
    assert recall(evidence, {"source": {"document_id": "d", "page_index": 4}}) == 0.0


@pytest.mark.parametrize(
    ("wanted", "found", "matches"),
    [
        ("tin roof", "a tin roof, rusted", True),
        ("Tin  Roof", "a TIN\n roof", True),
        ("ﬁne café", "FINE CAFE\u0301", True),
        ("Ｔｉｎ", "tin", True),
        ("山地车", "如何维修山地车", True),
        ("tin roof", "tin", False),
        ("tin roof", "", False),
        ("tin roof", "roof of tin", False),
        ("  ", "anything", False),
    ],
)
def test_the_result_has_to_contain_the_evidence(wanted, found, matches):
    assert recall({"text": wanted}, {"text": found}) == float(matches)


def test_text_and_place_have_to_agree_both():
    evidence = {"reference_id": "d", "text": "tin roof"}
    assert recall(evidence, {"text": "tin roof", "source": {"document_id": "d"}}) == 1.0
    assert recall(evidence, {"text": "tin roof", "source": {"document_id": "e"}}) == 0.0
    assert recall(evidence, {"text": "roof", "source": {"document_id": "d"}}) == 0.0


def test_evidence_that_says_nothing_is_found_nowhere():
    assert recall({"locator": {"page_index": None}}, {"text": "anything"}) == 0.0


def test_recall_is_the_share_of_the_evidence_found_in_the_first_k_results():
    evidence = [{"reference_id": document} for document in "abcd"]
    results = [{"source": {"document_id": document}} for document in "axxbc"]
    assert recall(evidence, results, k=1) == 0.25
    assert recall(evidence, results, k=4) == 0.5
    assert recall(evidence, results, k=5) == 0.75
    assert recall(evidence, results, k=100) == 0.75
    assert recall(evidence, [], k=5) == 0.0


def test_one_result_may_hold_several_pieces_of_evidence():
    evidence = [{"text": "tin"}, {"text": "roof"}, {"text": "wall"}]
    assert recall(evidence, {"text": "tin roof"}) == pytest.approx(2 / 3)


def test_one_result_against_one_piece_of_evidence():
    response = response_of({"text": "tin roof"}, {"text": "wall"})
    (evidence,) = case_of({"text": "roof"}).expected.evidence
    assert [holds_evidence(result, evidence) for result in response.results] == [True, False]


def test_evidence_of_grade_0_is_not_expected():
    evidence = [
        {"reference_id": "a"},
        {"reference_id": "b", "metadata": {"relevance": 0}},
        {"reference_id": "c", "metadata": {"relevance": -1}},
    ]
    assert recall(evidence, {"source": {"document_id": "a"}}) == 1.0


def test_a_case_without_expected_evidence_is_unjudged():
    evaluator = EvidenceRecallAtK()
    for case in (case_of(), case_of({"reference_id": "a", "metadata": {"relevance": 0}})):
        score = asyncio.run(evaluator.evaluate(case=case, response=response_of()))
        assert (score.value, score.status) == (None, "unjudged")
        assert not evaluator.applies(case)
    assert evaluator.applies(case_of({"text": "a"}))


def test_a_grade_that_is_no_number_names_the_case():
    with pytest.raises(
        DatasetInvalidError, match="case c: relevance 'x' of the evidence 'passage'"
    ):
        EvidenceRecallAtK().applies(case_of({"text": "passage", "metadata": {"relevance": "x"}}))


@pytest.mark.parametrize(("threshold", "passed"), [(None, None), (0.5, True), (0.6, False)])
def test_the_score(threshold, passed):
    evaluator = EvidenceRecallAtK(k=3, threshold=threshold)
    case = case_of({"reference_id": "a"}, {"reference_id": "b"})
    response = response_of({"source": {"document_id": "a"}})
    score = asyncio.run(evaluator.evaluate(case=case, response=response))
    assert (score.name, score.value, score.passed) == ("evidence_recall@3", 0.5, passed)
    assert score.metadata == {"matched": 1, "expected": 2}


def test_what_the_evaluator_says_of_itself():
    evaluator = EvidenceRecallAtK()
    assert (evaluator.name, evaluator.k) == ("evidence_recall@5", 5)
    assert (evaluator.direction, evaluator.worst, evaluator.bounded) == ("higher", 0.0, True)
    assert repr(evaluator) == "EvidenceRecallAtK(5, threshold=None)"


@pytest.mark.parametrize("k", [0, -1, 2.5, "5", True, None])
def test_k_is_a_whole_number_above_0(k):
    with pytest.raises(ConfigurationError, match=r"k of evidence_recall@k is .*above 0"):
        EvidenceRecallAtK(k)


def test_a_threshold_lies_between_0_and_1():
    with pytest.raises(ConfigurationError, match=r"not in 0\.\.1"):
        EvidenceRecallAtK(5, 80)
