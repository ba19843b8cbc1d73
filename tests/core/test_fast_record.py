"""The quick way to the record of an ordinary sample says what the usual way says."""

from __future__ import annotations

import asyncio
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.core.fast_record import FastRecords
from pytest_heta.core.journal import ResultJournal
from pytest_heta.core.plan import BenchmarkPlan, CasePlan, Sample, UnitPlan, metric_spec
from pytest_heta.core.query import QueryOutcome
from pytest_heta.core.result import case_result, encode_result
from pytest_heta.core.score import Scorer
from pytest_heta.evaluators import MeasureEvaluator, as_evaluator
from pytest_heta.models import (
    BenchmarkCase,
    BenchmarkEvidence,
    BenchmarkExpected,
    BenchmarkManifest,
    QueryCitation,
    QueryResponse,
    QueryResult,
)

EVALUATORS = [
    as_evaluator("recall@2"),
    as_evaluator("ndcg@10"),
    MeasureEvaluator("mrr@10", threshold=0.5),
]
SAMPLE = Sample("bench", "recipe", "unit", "mode", "case")


def plan_of(evaluators, *, query="why?", case_id="case", **case):
    return BenchmarkPlan(
        suite_id="bench_x.py",
        label="bench@recipe",
        benchmark=BenchmarkManifest(name="bench"),
        recipe_name="recipe",
        recipe_manifest={},
        modes=("mode",),
        top_k=10,
        options={},
        units=(UnitPlan("unit", (), (case_id,)),),
        cases={case_id: CasePlan(case_id, query, **case)},
        metrics=tuple(metric_spec(evaluator) for evaluator in evaluators),
    )


def case_of(grades, query="why?", case_id="case"):
    evidence = tuple(
        BenchmarkEvidence(reference_id=document, metadata={"relevance": grade})
        for document, grade in grades.items()
    )
    return BenchmarkCase(
        case_id=case_id, query=query, expected=BenchmarkExpected(evidence=evidence)
    )


def both(response, case, plan, *, level="short", evaluators=EVALUATORS, latency_ms=1.25):
    """Return the record of the quick way, and the payload of the usual way."""
    scorer = Scorer(evaluators, plan.metrics, top_k=plan.top_k)
    outcome = QueryOutcome(response=response, latency_ms=latency_ms)
    sample = SAMPLE._replace(case=case.case_id)
    known = {"cold": True, "is_document": {"a", "b", "é"}.__contains__}
    scores = scorer.begin(case, plan.cases[case.case_id], response, None)
    asyncio.run(scorer.ask(scores, case, response))
    usual = case_result(
        sample,
        plan.cases[case.case_id],
        outcome,
        scores,
        level=level,
        metadata={"node_id": "bench_x.py::é[1]"},
        **known,
    )
    record = FastRecords(plan, scorer, level).record(
        sample,
        case,
        outcome,
        response.model_dump_json().encode(),
        node_id="bench_x.py::é[1]",
        **known,
    )
    return record, encode_result(plan.label, sample, usual)


ids = st.sampled_from(["a", "b", "c", "é", 'quote"', "back\\slash", "naïve 咖啡", "\x00", "\u2028"])
results = st.builds(
    QueryResult,
    id=ids,
    text=st.text(max_size=250),
    score=st.none() | st.floats(allow_nan=True),
    source=st.dictionaries(st.sampled_from(["document_id", "page_index", "x"]), ids, max_size=2),
    metadata=st.just({}) | st.just({"document_id": "b", "more": [1, {2: 3}]}),
)
responses = st.builds(
    QueryResponse,
    mode=st.just("mode"),
    results=st.lists(results, max_size=5).map(tuple),
    answer=st.none() | st.text(max_size=3000),
    metadata=st.just({}) | st.just({"warnings": ["odd"]}),
)


@given(
    response=responses,
    grades=st.dictionaries(ids, st.integers(-1, 3) | st.floats(0, 2), min_size=1, max_size=4),
    level=st.sampled_from(["ids", "short", "full"]),
    query=st.text(max_size=20),
    labels=st.dictionaries(ids, st.text(max_size=5) | st.integers() | st.none(), max_size=2),
    latency_ms=st.floats(0, 1e9),
)
def test_it_says_what_the_usual_way_says(response, grades, level, query, labels, latency_ms):
    plan = plan_of(EVALUATORS, query=query, labels=labels)
    record, usual = both(response, case_of(grades, query), plan, level=level, latency_ms=latency_ms)
    if record is not None:
        assert json.loads(record.payload) == json.loads(usual)
        assert list(json.loads(record.payload)) == ["label", "sample", "tally", "result"]


@given(response=responses, grades=st.dictionaries(ids, st.integers(1, 3), min_size=1, max_size=4))
def test_the_journal_counts_both_alike(tmp_path_factory, response, grades):
    plan, case = plan_of(EVALUATORS), case_of(grades)
    record, usual = both(response, case, plan)
    if record is None:
        return
    folder = tmp_path_factory.mktemp("journals")
    with ResultJournal(folder / "quick") as quick, ResultJournal(folder / "usual") as slow:
        quick.keep(plan.label, SAMPLE, record.tally, record.payload)
        slow.take(usual)
        assert quick.tallies(plan.label) == slow.tallies(plan.label)
        assert quick.result(plan.label, SAMPLE) == slow.result(plan.label, SAMPLE)


def ordinary(**changes):
    values = {"mode": "mode", "results": (QueryResult(id="a", text="short"),), **changes}
    return QueryResponse(**values)


def test_an_ordinary_sample_is_recorded():
    record, usual = both(ordinary(), case_of({"a": 1}), plan_of(EVALUATORS))
    assert json.loads(record.payload) == json.loads(usual)
    assert [score.value for score in record.tally.scores] == [1.0, 1.0, 1.0]
    assert record.missed is False


def test_a_score_below_its_threshold_is_missed():
    record, _ = both(ordinary(), case_of({"b": 1}), plan_of(EVALUATORS))
    assert record.missed is True


@pytest.mark.parametrize(
    "response",
    [
        ordinary(results=(QueryResult(id="a", text="x" * 201),)),
        ordinary(results=(QueryResult(id="a", score=math.nan),)),
        ordinary(results=(QueryResult(id="a", metadata={"x": 1}),)),
        ordinary(results=(QueryResult(id="a", source={"deep": {"x": 1}}),)),
        ordinary(results=(QueryResult(id="\ud800"),)),
        ordinary(answer="x" * 2001),
        ordinary(metadata={"tokens": 3}),
        ordinary(trace=("step",)),
        ordinary(citations=(QueryCitation(id="1"),)),
    ],
    ids=["long", "nan", "metadata", "deep", "surrogate", "answer", "tokens", "trace", "citations"],
)
def test_whatever_is_cut_or_mended_goes_the_usual_way(response):
    scorer = Scorer(EVALUATORS, plan_of(EVALUATORS).metrics, top_k=10)
    record = FastRecords(plan_of(EVALUATORS), scorer, "short").record(
        SAMPLE,
        case_of({"a": 1}),
        QueryOutcome(response=response, latency_ms=1.0),
        b"{}",
        cold=False,
        node_id="x",
        is_document=None,
    )
    assert record is None


class Own:
    name = "own"

    async def evaluate(self, *, case, response):
        return 1.0


@pytest.mark.parametrize("name", ["unit", "mode", "case"])
def test_a_lone_surrogate_in_an_id_goes_the_usual_way(name):
    plan = plan_of(EVALUATORS, case_id="\ud800" if name == "case" else "case")
    sample = SAMPLE._replace(**{name: "\ud800"})
    records = FastRecords(plan, Scorer(EVALUATORS, plan.metrics, top_k=10), "short")
    outcome = QueryOutcome(response=ordinary(), latency_ms=1.0)
    options = {"cold": False, "node_id": "x", "is_document": None}
    assert records.record(sample, case_of({"a": 1}), outcome, b"{}", **options) is None


@pytest.mark.parametrize(
    ("evaluators", "case"),
    [
        ([*EVALUATORS, Own()], {}),
        ([as_evaluator("recall@50")], {}),
        (EVALUATORS, {"exempt": {"recall@2": "unjudged"}}),
        (EVALUATORS, {"labels": {"types": ["x", "y"]}}),
        (EVALUATORS, {"query": "\ud800"}),
    ],
    ids=["evaluator", "depth", "exempt", "labels", "query"],
)
def test_other_cases_and_evaluators_go_the_usual_way(evaluators, case):
    record, _ = both(
        ordinary(), case_of({"a": 1}), plan_of(evaluators, **case), evaluators=evaluators
    )
    assert record is None


def test_a_failed_sample_goes_the_usual_way():
    plan = plan_of(EVALUATORS)
    records = FastRecords(plan, Scorer(EVALUATORS, plan.metrics, top_k=10), "short")
    options = {"cold": False, "node_id": "x", "is_document": None}
    assert records.record(SAMPLE, case_of({"a": 1}), QueryOutcome(), b"null", **options) is None
