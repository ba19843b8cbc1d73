"""How fast results become a summary."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from pytest_heta.core.aggregate import summarise_mode, summarise_tallies
from pytest_heta.core.plan import BenchmarkPlan, CasePlan, MetricSpec, UnitPlan
from pytest_heta.models import (
    BenchmarkManifest,
    EvaluationCaseResult,
    EvaluationScore,
    SampleTally,
)

CASE_COUNT = 20_000
METRICS = ("recall@5", "ndcg@10")


@pytest.fixture(scope="module")
def plan() -> BenchmarkPlan:
    cases = {name: CasePlan(name, name) for name in (f"c{n:05d}" for n in range(CASE_COUNT))}
    return BenchmarkPlan(
        suite_id="bench_speed.py",
        label="speed",
        benchmark=BenchmarkManifest(name="speed"),
        recipe_name="speed",
        recipe_manifest={},
        modes=("default",),
        top_k=10,
        options={},
        units=(UnitPlan("u0", (), tuple(cases)),),
        cases=cases,
        metrics=tuple(MetricSpec(name, k=int(name.partition("@")[2])) for name in METRICS),
        case_count=CASE_COUNT,
    )


@pytest.fixture(scope="module")
def results(plan: BenchmarkPlan) -> list[EvaluationCaseResult]:
    choice = random.Random(9)
    return [
        EvaluationCaseResult(
            case_id=case_id,
            query=case_id,
            query_mode="default",
            scores=tuple(EvaluationScore(name=name, value=choice.random()) for name in METRICS),
            latency_ms=choice.lognormvariate(3, 0.6),
            metadata={"unit_id": "u0", "repeat": 0, "cold": False, "distinct_documents": 10},
        )
        for case_id in plan.cases
    ]


def test_summary_of_twenty_thousand_results(
    benchmark: Callable[..., Any], plan: BenchmarkPlan, results: list[EvaluationCaseResult]
) -> None:
    summary = benchmark(summarise_mode, plan, "default", results)

    assert summary.total_cases == CASE_COUNT
    assert summary.metrics["ndcg@10"].n_scored == CASE_COUNT


def test_summary_of_twenty_thousand_tallies(
    benchmark: Callable[..., Any], plan: BenchmarkPlan, results: list[EvaluationCaseResult]
) -> None:
    tallies = [SampleTally.of(result) for result in results]

    summary = benchmark(summarise_tallies, plan, "default", tallies)

    assert summary == summarise_mode(plan, "default", results)
