"""Reports to print and to write, made without running anything."""

from datetime import UTC, datetime

import pytest

from pytest_heta.models import (
    BenchmarkManifest,
    EvaluationCaseResult,
    EvaluationReport,
    EvaluationScore,
    GateResult,
    LatencySummary,
    MetricSummary,
    ModeSummary,
)

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _metric(name, mean, n=62, errored=0, skipped=0, unjudged=0, **rest):
    return MetricSummary(
        metric=name,
        mean=mean,
        n=n,
        n_scored=n - errored - skipped - unjudged,
        n_errored=errored,
        n_skipped=skipped,
        n_unjudged=unjudged,
        **rest,
    )


def _mode(name, metrics, samples=62, failed=0, p50=1.234, p95=12.345, **rest):
    timed = samples - failed
    values = {
        "planned_samples": samples,
        "total_cases": samples,
        "successful_cases": timed,
        "failed_cases": failed,
        "distinct_cases": samples,
        "failure_rate": failed / samples if samples else None,
        "latency": LatencySummary(n=timed, p50_ms=p50, p95_ms=p95) if timed else LatencySummary(),
    }
    return ModeSummary(
        mode=name, metrics={metric.metric: metric for metric in metrics}, **(values | rest)
    )


def _report(modes=(), label="handbook", **rest):
    summaries = {mode.mode: mode for mode in modes}
    values = {
        "report_id": "run-1",
        "report_key": "handbook-local",
        "benchmark": BenchmarkManifest(name="handbook"),
        "knowledge_base_name": "handbook",
        "query_modes": tuple(summaries),
        "mode_summaries": summaries,
        "started_at": START,
        "finished_at": START,
        "metadata": {"label": label},
    }
    return EvaluationReport(**(values | rest))


def _result(case_id, *scores, mode="fts", **rest):
    metadata = {"unit_id": "all", "node_id": f"bench.py::handbook::all::{mode}[{case_id}]"}
    values = {"case_id": case_id, "query": f"What is {case_id}?", "query_mode": mode}
    return EvaluationCaseResult(scores=scores, **(values | {"metadata": metadata} | rest))


def _gate(value, operator=">=", threshold=0.75, status="passed", **rest):
    aggregate = rest.get("aggregate", "ndcg@10")
    text = f"handbook:fts.{aggregate} {operator} {threshold}"
    values = {
        "gate": text,
        "written": text,
        "origin": "suite",
        "benchmark": "handbook",
        "recipe": "local",
        "mode": "fts",
        "aggregate": aggregate,
        "operator": operator,
        "threshold": threshold,
        "value": value,
        "n": 62,
        "status": status,
    }
    return GateResult(**(values | rest))


@pytest.fixture(scope="session")
def make_metric():
    return _metric


@pytest.fixture(scope="session")
def make_mode():
    return _mode


@pytest.fixture(scope="session")
def make_report():
    return _report


@pytest.fixture(scope="session")
def make_result():
    return _result


@pytest.fixture(scope="session")
def make_gate():
    return _gate


@pytest.fixture(scope="session")
def make_score():
    def score(name="ndcg@10", value=None, passed=None, **metadata):
        return EvaluationScore(name=name, value=value, passed=passed, metadata=metadata)

    return score
