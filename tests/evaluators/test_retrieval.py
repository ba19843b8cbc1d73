"""Measures of responses: chunks become documents, judgments become grades."""

import asyncio
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_heta.errors import ConfigurationError, DatasetInvalidError, MeasureUnknownError
from pytest_heta.evaluators import BeirRetrievalMetric, MeasureEvaluator, score_measures
from pytest_heta.measures import Measure, measure_families
from pytest_heta.models import BenchmarkCase, EvaluationScore, QueryResponse

ALL = [f"{family}@{k}" for family in measure_families() for k in (1, 3, 10)]


def case_of(judgments):
    """Return a case with graded judgments."""
    evidence = [
        {"reference_id": document, "metadata": {"relevance": grade}}
        for document, grade in judgments.items()
    ]
    return BenchmarkCase(case_id="c", query="q", expected={"evidence": evidence})


def response_of(*documents, score=None):
    """Return a response with one chunk for each of ``documents``, best first."""
    return QueryResponse(
        mode="m",
        results=[
            {"id": f"chunk-{rank}", "score": score, "source": {"document_id": document}}
            for rank, document in enumerate(documents)
        ],
    )


def score(measure, judgments, response, threshold=None):
    evaluator = MeasureEvaluator(measure, threshold)
    return asyncio.run(evaluator.evaluate(case=case_of(judgments), response=response))


@pytest.mark.parametrize(
    ("gold", "retrieved", "recall", "precision"),
    [
        pytest.param("A", "AA", 1.0, 0.1, id="the only document in two chunks"),
        pytest.param("AB", "AA", 0.5, 0.1, id="one of two documents, twice"),
        pytest.param("AB", "AABBA", 1.0, 0.2, id="both documents, interleaved"),
        pytest.param("A", "", 0.0, 0.0, id="nothing retrieved"),
        pytest.param("A", "XY", 0.0, 0.0, id="nothing relevant retrieved"),
    ],
)
def test_chunks_of_one_document_count_once(gold, retrieved, recall, precision):
    judgments = dict.fromkeys(gold, 1)
    response = response_of(*retrieved)
    assert score("recall@10", judgments, response).value == recall
    assert score("precision@10", judgments, response).value == precision
    assert 0.0 <= score("ndcg@10", judgments, response).value <= 1.0


def test_k_counts_documents_not_chunks():
    response = response_of("X", "X", "X", "A")
    assert score("recall@2", {"A": 1}, response).value == 1.0
    assert score("mrr@2", {"A": 1}, response).value == 0.5


@settings(deadline=None)
@given(names=st.lists(st.text(min_size=1), min_size=3, max_size=3, unique=True))
def test_ids_do_not_decide_between_equal_scores(names):
    first, second, gold = names
    response = response_of(first, second, gold, score=1.0)
    assert score("mrr@10", {gold: 1}, response).value == pytest.approx(1 / 3)


def test_the_order_of_the_results_decides_not_their_scores():
    response = QueryResponse(
        mode="m", results=[{"id": "A", "score": 0.1}, {"id": "B", "score": 0.9}]
    )
    assert score("mrr@10", {"A": 1}, response).value == 1.0


def test_results_in_chunks_are_mapped_to_their_source_document():
    response = QueryResponse(
        mode="m",
        results=[{"id": f"node-{n}", "source": {"document_id": "d1"}} for n in range(3)],
    )
    assert score("recall@10", {"d1": 1}, response).value == 1.0
    assert score("recall@10", {"node-0": 1}, response).value == 0.0


def test_numbers_and_texts_are_the_same_id():
    response = QueryResponse(mode="m", results=[{"id": "x", "source": {"document_id": 7}}])
    assert score("ndcg@10", {7: 1}, response).value == 1.0
    assert score("ndcg@10", {"7": 1}, response).value == 1.0


def test_fractional_grades_are_kept():
    value = score("ndcg@10", {"a": 0.5, "b": 1.5}, response_of("a", "b")).value
    assert value == pytest.approx(0.7967, abs=5e-5)


def test_an_empty_result_list_is_an_honest_zero():
    assert score("ndcg@10", {"a": 1}, response_of()) == EvaluationScore(name="ndcg@10", value=0.0)


@pytest.mark.parametrize("judgments", [{}, {"a": 0}, {"a": 0, "b": -1}])
def test_a_case_without_positive_judgment_is_unjudged(judgments):
    given_score = score("ndcg@10", judgments, response_of("a"))
    assert (given_score.value, given_score.status) == (None, "unjudged")
    assert given_score.metadata["reason"] == "no positive judgment"
    assert not MeasureEvaluator("ndcg@10").applies(case_of(judgments))


def test_a_case_with_a_positive_judgment_applies():
    assert MeasureEvaluator("ndcg@10").applies(case_of({"a": 0, "b": 0.5}))


def test_passages_judge_no_document():
    case = BenchmarkCase(case_id="c", query="q", expected={"evidence": [{"text": "a passage"}]})
    assert not MeasureEvaluator("ndcg@10").applies(case)
    assert score_measures([MeasureEvaluator("hit@1")], case, response_of("a"))[0].status == (
        "unjudged"
    )


def test_a_grade_that_is_no_number_names_the_case():
    with pytest.raises(DatasetInvalidError, match="case c: relevance 'high' of the evidence 'a'"):
        MeasureEvaluator("ndcg@10").applies(case_of({"a": "high"}))


@pytest.mark.parametrize(
    ("threshold", "passed"),
    [(None, None), (0.5, True), (0.5 + 5e-10, True), (0.5 + 2e-9, False), (0, True), (1, False)],
)
def test_the_threshold_decides_whether_the_score_passes(threshold, passed):
    given_score = score("recall@1", {"a": 1, "b": 1}, response_of("a"), threshold)
    assert (given_score.name, given_score.value) == ("recall@1", 0.5)
    assert given_score.passed is passed


@pytest.mark.parametrize("threshold", [80, -0.1, 1.01, float("nan"), float("inf"), "0.8"])
def test_a_threshold_lies_between_0_and_1(threshold):
    with pytest.raises(ConfigurationError, match=r"threshold .* of 'recall@5' is not in 0\.\.1"):
        MeasureEvaluator("recall@5", threshold)


@settings(deadline=None)
@given(
    retrieved=st.lists(st.sampled_from("abcdefgh"), max_size=12),
    judgments=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-1, 3) | st.floats(0, 2)),
)
def test_one_pass_equals_one_by_one(retrieved, judgments):
    evaluators = [MeasureEvaluator(name, 0.5) for name in ALL]
    case, response = case_of(judgments), response_of(*retrieved)

    async def one_by_one():
        return [await each.evaluate(case=case, response=response) for each in evaluators]

    assert score_measures(evaluators, case, response) == asyncio.run(one_by_one())


def test_no_evaluators_give_no_scores():
    assert score_measures([], case_of({"a": 1}), response_of("a")) == []


def test_what_an_evaluator_says_of_itself():
    evaluator = MeasureEvaluator("ndcg@10", 0.25)
    assert (evaluator.name, evaluator.k, evaluator.direction) == ("ndcg@10", 10, "higher")
    assert (evaluator.worst, evaluator.bounded, evaluator.requires_judgment) == (0.0, True, True)
    assert repr(evaluator) == "MeasureEvaluator('ndcg@10', threshold=0.25)"
    assert MeasureEvaluator(Measure("map", 3)).name == "map@3"


@pytest.mark.parametrize("measure", ["recal@5", 5, None])
def test_a_wrong_measure_is_refused(measure):
    with pytest.raises(MeasureUnknownError):
        MeasureEvaluator(measure)


@pytest.mark.parametrize("metric", measure_families())
def test_a_beir_metric_is_the_measure_of_its_parts(metric):
    evaluator = BeirRetrievalMetric(metric, k=3, threshold=0.5)
    case, response = case_of({"a": 2, "b": 1}), response_of("x", "a")
    assert evaluator.name == f"{metric}@3"
    assert (
        score_measures([evaluator], case, response)
        == score_measures([MeasureEvaluator(f"{metric}@3", 0.5)], case, response)
        == [asyncio.run(evaluator.evaluate(case=case, response=response))]
    )


def test_a_beir_metric_looks_10_deep_by_default():
    assert BeirRetrievalMetric(metric="ndcg").name == "ndcg@10"


@pytest.mark.parametrize(("metric", "k"), [("NDCG", 10), ("ndcg", 0), ("f1", 10)])
def test_a_wrong_beir_metric_is_refused(metric, k):
    with pytest.raises(MeasureUnknownError):
        BeirRetrievalMetric(metric, k)


def test_importing_the_evaluators_loads_neither_numpy_nor_pytest():
    program = (
        "import sys, pytest_heta.evaluators, pytest_heta.stats;"
        "print(sorted({'numpy', 'pytest', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
