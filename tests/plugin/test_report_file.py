"""The report file of a run: complete, strict JSON, and the same with several workers."""

import json
import os
from datetime import datetime

import pytest

from pytest_heta.models import EvaluationReport, GateResult, ModeSummary
from pytest_heta.reports import read_reports

ODD_EVALUATORS = """
import datetime
import decimal
import math
import pathlib

import numpy


class Odd:
    def __init__(self, name, value, **metadata):
        self.name = name
        self.value = value
        self.metadata = metadata

    async def evaluate(self, *, case, response):
        return {"value": self.value, "metadata": self.metadata}


odd = [
    Odd("numpy_float", numpy.float64(0.5), array=numpy.arange(3), scalar=numpy.float32(0.5)),
    Odd("numpy_bool", numpy.bool_(True)),
    Odd("numpy_int", numpy.int64(1)),
    Odd("decimal", decimal.Decimal("0.25"), amount=decimal.Decimal("1.5")),
    Odd("path", pathlib.PurePosixPath("a/b"), path=pathlib.PurePosixPath("a/b")),
    Odd("date", datetime.datetime(2024, 1, 2), day=datetime.date(2024, 1, 2)),
    Odd("nan", math.nan, nan=math.nan),
    Odd("infinite", math.inf, members={3, 1, 2}),
    Odd("numpy_nan", numpy.float64("nan")),
    Odd("label", "good"),
    Odd("nothing", None),
]
"""

HARMFUL = "nul \x00 esc \x1b[31m fffe \ufffe lone \ud800 <b>&\"' 中 🚲"


def file_of(world):
    return json.loads((world.path / "report.json").read_text(encoding="utf-8"))


# --- what is in it -----------------------------------------------------------------


def test_the_file_has_a_version_the_run_and_its_reports(world):
    world.run("--heta-gate=overlap.recall@1 >= 0.5")
    file = file_of(world)
    assert list(file) == ["schema_version", "run", "reports"]
    assert set(file["run"]) == {
        "pytest_heta_version",
        "started_at",
        "finished_at",
        "complete",
        "interrupted",
        "arguments",
        "run_id",
        "session",
        "duration_seconds",
        "damaged_records",
    }
    assert file["run"]["complete"] is True
    assert file["run"]["interrupted"] is None
    assert "--heta-gate=overlap.recall@1 >= 0.5" in file["run"]["arguments"]


def test_a_report_has_all_fields_and_can_be_read_back(world):
    world.run("--heta-gate=overlap.recall@1 >= 0.5")
    report = world.report()
    assert list(report) == list(EvaluationReport.model_fields)
    (mode, _) = report["mode_summaries"].values()
    assert set(mode) == set(ModeSummary.model_fields)
    (gate,) = report["gates"]
    assert set(gate) == set(GateResult.model_fields)
    (read,) = read_reports(world.path / "report.json").reports
    assert read.model_dump(mode="json") == report


def test_counts_and_means_add_up(world):
    world.dataset(
        [
            {"case_id": "pie", "query": "apple pie", "evidence": ["apple"]},
            {"case_id": "fails", "query": "bike repair", "evidence": ["bike"]},
            {"case_id": "unjudged", "query": "rain"},
            {"case_id": "answer", "query": "drum", "evidence": ["drum"], "answers": ["tuning"]},
        ]
    )
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            if text == "bike repair":
                raise RuntimeError("no")
            return super().query(text, mode=mode, top_k=top_k)
    """)
    world.suite(evaluators='["recall@1", "ndcg@10", "answer_contains"]')
    world.run("--heta-mode=overlap", "--heta-top-k=5").assert_outcomes(passed=3, failed=1)
    summary = world.report()["mode_summaries"]["overlap"]

    def counts(metric):
        names = ("n", "n_scored", "n_errored", "n_skipped", "n_unjudged")
        return tuple(summary["metrics"][metric][name] for name in names)

    assert counts("recall@1") == (4, 2, 1, 0, 1)
    assert summary["metrics"]["recall@1"]["mean"] == pytest.approx(2 / 3)
    assert counts("ndcg@10") == (4, 0, 0, 3, 1)
    assert summary["metrics"]["ndcg@10"]["mean"] is None
    assert counts("answer_contains") == (4, 1, 0, 3, 0)
    assert summary["metrics"]["answer_contains"]["mean"] == 1
    assert summary["planned_samples"] == summary["total_cases"] == summary["distinct_cases"] == 4
    assert (summary["successful_cases"], summary["failed_cases"]) == (3, 1)
    assert summary["failure_rate"] == 0.25
    latency = summary["latency"]
    assert latency["n"] == 3
    assert latency["p50_ms"] <= latency["p95_ms"] <= latency["p99_ms"] <= latency["max_ms"]
    assert summary["cold_latency"]["n"] + summary["warm_latency"]["n"] == 3
    asked = [r["latency_ms"] for r in world.report()["case_results"] if r["error"] is None]
    assert latency["max_ms"] == max(asked)
    assert latency["mean_ms"] == pytest.approx(sum(asked) / 3)


def test_no_latency_is_null(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text):
            raise RuntimeError("down")
    """)
    world.run("--heta-mode=overlap")
    latency = world.report()["mode_summaries"]["overlap"]["latency"]
    assert latency == {
        "n": 0, "mean_ms": None, "p50_ms": None, "p95_ms": None, "p99_ms": None, "max_ms": None
    }  # fmt: skip


def test_a_result_says_what_was_asked_and_what_came_back(world):
    world.run("--heta-mode=overlap")
    first = world.report()["case_results"][0]
    assert (first["case_id"], first["query"], first["query_mode"]) == (
        "pie",
        "apple pie",
        "overlap",
    )
    assert first["metadata"]["unit_id"] == "corpus"
    assert first["metadata"]["labels"] == {"kind": "food"}
    assert first["metadata"]["node_id"] == "bench_toys.py::toys::corpus::overlap[pie]"
    assert first["response"]["results"][0]["source"] == {
        "source_key": "raw/benchmarks/toys/test/apple/apple.txt"
    }


def test_the_snapshot_has_what_is_needed_to_compare_runs(world):
    world.run("--heta-option=rrf_k=30")
    snapshot = world.report()["config_snapshot"]
    assert {
        "benchmark", "recipe", "embedding", "modes", "top_k", "options", "metrics", "warmup",
        "concurrency", "packages", "python", "platform", "git_commit",
    } <= set(snapshot)  # fmt: skip
    assert snapshot["benchmark"]["name"] == "toys"
    assert len(snapshot["benchmark"]["dataset_sha256"]) == 64
    assert snapshot["benchmark"]["version"]
    assert snapshot["recipe"]["name"] == "toy"
    assert snapshot["recipe"]["manifest"] == {"kind": "word overlap"}
    assert len(snapshot["recipe"]["fingerprint"]) == 64
    assert snapshot["modes"] == ["overlap", "backwards"]
    assert snapshot["options"] == {"rrf_k": 30}
    assert snapshot["metrics"] == ["recall@1", "ndcg@10"]
    assert {"pytest-heta", "pydantic", "numpy", "pytest"} <= set(snapshot["packages"])
    assert snapshot["git_commit"] is None


def test_the_dataset_hash_follows_the_dataset_and_the_fingerprint_the_recipe(world):
    def hashes():
        world.run("--heta-limit=1")
        snapshot = world.report()["config_snapshot"]
        return snapshot["benchmark"]["dataset_sha256"], snapshot["recipe"]["fingerprint"]

    dataset, recipe = hashes()
    assert hashes() == (dataset, recipe)
    world.dataset(documents=[{"document_id": "apple", "text": "other"}])
    world.extend_recipe("Recipe.manifest = lambda self: {'kind': 'other'}")
    other_dataset, other_recipe = hashes()
    assert other_dataset != dataset
    assert other_recipe != recipe


def test_the_embedding_of_the_recipe_stands_in_the_snapshot(world):
    embedding = {"model": "tiny", "version": "1.2", "dimension": 8}
    world.extend_recipe(f"Recipe.manifest = lambda self: {{'embedding': {embedding}}}")
    world.run("--heta-limit=1")
    assert world.report()["config_snapshot"]["embedding"] == embedding


def test_times_are_utc_and_in_order(world):
    world.run("--heta-limit=1")
    report = world.report()
    started, finished = (datetime.fromisoformat(report[f"{e}_at"]) for e in ("started", "finished"))
    assert started.utcoffset().total_seconds() == 0
    assert started <= finished


def test_a_build_has_its_time_and_size(world):
    world.run("--heta-limit=1")
    (build,) = world.report()["unit_builds"]
    assert build["build_seconds"] >= 0
    assert build["document_count"] == 4
    assert build["error"] is None


def test_the_report_is_written_when_tests_fail(world):
    world.suite(extra="def test_plain(): assert False")
    world.run().assert_outcomes(passed=6, failed=1)
    assert world.report()["metadata"]["complete"] is True


def test_a_report_that_cannot_be_written_in_the_end_fails_the_run(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            (pathlib.Path(__file__).parent / "late.json").mkdir(exist_ok=True)
            return super().query(text, mode=mode, top_k=top_k)
    """)
    result = world.run("--heta-report=json:late.json", "--heta-report=json:other.json")
    result.assert_outcomes(passed=6)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*report-invalid* *late.json: the path is a folder*"])
    assert world.report("other.json")["metadata"]["complete"] is True


# --- what users' code returns ----------------------------------------------------------


@pytest.fixture
def odd(world):
    world.suite(before=ODD_EVALUATORS, evaluators="odd")


def test_odd_values_become_numbers_or_errors_with_a_reason(world, odd):
    world.run("--heta-mode=overlap", "--heta-limit=1").assert_outcomes(failed=1)
    (result,) = world.report()["case_results"]
    scores = {score["name"]: score for score in result["scores"]}
    values = {name: score["value"] for name, score in scores.items()}
    assert values == {
        "numpy_float": 0.5,
        "numpy_bool": True,
        "numpy_int": 1.0,
        "decimal": 0.25,
        "path": None,
        "date": None,
        "nan": None,
        "infinite": None,
        "numpy_nan": None,
        "label": "good",
        "nothing": None,
    }
    reasons = {
        name: score["metadata"]["error"]["type"]
        for name, score in scores.items()
        if "error" in score["metadata"]
    }
    assert reasons == {
        "path": "wrong_type",
        "date": "wrong_type",
        "nan": "non_finite",
        "infinite": "non_finite",
        "numpy_nan": "non_finite",
        "nothing": "no_value",
    }
    assert scores["numpy_float"]["metadata"] == {"array": [0, 1, 2], "scalar": 0.5}
    assert scores["decimal"]["metadata"] == {"amount": 1.5}
    assert scores["infinite"]["metadata"]["members"] == [1, 2, 3]
    assert scores["nan"]["metadata"]["nan"] is None
    assert scores["path"]["metadata"]["path"] == "a/b"
    assert scores["date"]["metadata"]["day"] == "2024-01-02"


def test_what_is_not_finite_counts_as_worst_and_labels_are_counted(world, odd):
    world.run("--heta-mode=overlap")
    metrics = world.report()["mode_summaries"]["overlap"]["metrics"]
    assert (metrics["nan"]["mean"], metrics["nan"]["n_errored"]) == (0, 3)
    assert metrics["nan"]["reasons"] == {"non_finite": 3}
    assert metrics["label"]["value_counts"] == {"good": 3}
    assert metrics["label"]["mean"] is None
    assert metrics["numpy_bool"]["mean"] == 1


def test_odd_values_are_the_same_with_two_workers(world, odd, comparable):
    serial = world.run("--junitxml=serial.xml")
    (one,) = world.reports()
    parallel = world.run("-n2", "--junitxml=parallel.xml")
    (two,) = world.reports()
    serial.assert_outcomes(failed=6)
    parallel.assert_outcomes(failed=6)
    assert comparable(one) == comparable(two)


def test_a_score_of_a_result_that_is_not_finite_is_null(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            response = super().query(text, mode=mode, top_k=top_k)
            response["results"][0]["score"] = float("nan")
            response["metadata"] = {"cost": float("inf")}
            return response
    """)
    world.run("--heta-mode=overlap", "--heta-limit=1").assert_outcomes(passed=1)
    response = world.report()["case_results"][0]["response"]
    assert response["results"][0]["score"] is None
    assert response["metadata"] == {"cost": None}


def test_harmful_characters_leave_the_file_strict_and_in_utf_8(world, harmful_cases):
    world.suite(before=harmful_cases)
    world.extend_recipe(f"""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            if mode == "backwards":
                raise RuntimeError({HARMFUL!a})
            response = super().query(text, mode=mode, top_k=top_k)
            response["results"][0]["text"] = response["answer"] = {HARMFUL!a}
            response["metadata"] = {{{HARMFUL!a}: {HARMFUL!a}}}
            return response
    """)
    world.run("--heta-show=all").assert_outcomes(passed=3, failed=3)
    (good, *_, bad) = world.report()["case_results"]
    assert good["query"].endswith("中 🚲")
    assert good["case_id"].startswith("pie nul \x00")
    assert "\x1b[31m" in good["query"]
    assert "\x1b" in bad["error"]["message"]
    assert good["response"]["answer"].endswith("中 🚲")


@pytest.mark.skipif(os.name == "nt", reason="there is no such locale")
def test_the_file_is_utf_8_whatever_the_locale(world, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
    world.dataset([{"case_id": "bike", "query": "naïve 咖啡 🚲", "evidence": ["bike"]}])
    result = world.pytester.runpytest_subprocess(
        "-p", "no:randomly", "-p", "no:cacheprovider", "--heta-recipe=recipe.py:recipe",
        "--heta-mode=overlap", "--heta-show=all", "--junitxml=j.xml",
    )  # fmt: skip
    assert result.ret == 0
    assert world.report()["case_results"][0]["query"] == "naïve 咖啡 🚲"
