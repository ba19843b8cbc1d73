"""One sample from its query to its record."""

import asyncio

from pytest_heta.core.plan import PlanSettings
from pytest_heta.core.sample import ask_sample, score_sample
from pytest_heta.core.score import Scorer


def asked_in_order(fakes, plan, *, warmup):
    """Ask all samples of a plan; return the queries, and which samples were cold."""
    queries = []

    def answer(text, mode):
        queries.append((mode, text))
        return fakes.hits("d")

    knowledge_base = fakes.KnowledgeBase(answer, modes=plan.modes)
    asked = set()
    cold = [
        asyncio.run(ask_sample(knowledge_base, plan, sample, asked=asked, warmup=warmup))[1]
        for sample in plan.samples()
    ]
    return queries, cold


class TestAsking:
    def test_the_first_of_each_mode_is_cold(self, fakes, tmp_path):
        recipe = fakes.Recipe(modes=("exact", "other"))
        plan = fakes.plan(tmp_path, "q1", "q2", recipe=recipe)
        queries, cold = asked_in_order(fakes, plan, warmup=0)
        assert cold == [True, False, True, False]
        assert queries == [("exact", "?")] * 2 + [("other", "?")] * 2

    def test_the_warm_up_goes_round_the_unit_and_leaves_none_cold(self, fakes, tmp_path):
        benchmark = fakes.Benchmark([fakes.document("d")], [fakes.case(n, n) for n in ("a", "b")])
        plan = fakes.plan(tmp_path, benchmark=benchmark)
        queries, cold = asked_in_order(fakes, plan, warmup=3)
        assert [text for _, text in queries] == ["a", "b", "a", "a", "b"]
        assert cold == [False, False]


def test_the_record_has_scores_and_identity(fakes, tmp_path):
    case = fakes.case("q1", "?", "d")
    benchmark = fakes.Benchmark([fakes.document("d")], [case], evaluators=())
    plan = fakes.plan(tmp_path, benchmark=benchmark, settings=PlanSettings(repeat=2))
    sample = list(plan.samples())[1]
    knowledge_base = fakes.KnowledgeBase(lambda text, mode: fakes.hits("d"))
    outcome, cold = asyncio.run(ask_sample(knowledge_base, plan, sample, asked=set()))
    scorer = Scorer((), (), top_k=plan.top_k)
    record = asyncio.run(
        score_sample(
            scorer, plan, sample, case=case, outcome=outcome, cold=cold, metadata={"node_id": "n"}
        )
    )
    assert (record.case_id, record.query_mode, record.scores) == ("q1", "exact", ())
    assert record.latency_ms == outcome.latency_ms
    kept = {name: record.metadata[name] for name in ("unit_id", "repeat", "cold", "node_id")}
    assert kept == {"unit_id": "all", "repeat": 1, "cold": True, "node_id": "n"}
