"""Summaries with exact denominators, and the report."""

import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.core.aggregate import build_report, score_summary, summarise_mode
from pytest_heta.core.plan import MetricSpec, PlanSettings, Sample
from pytest_heta.core.score import exempt_score, failed_score
from pytest_heta.models import (
    BenchmarkRunUnit,
    EvaluationScore,
    GateResult,
    ModeSummary,
    QueryResponse,
    QueryResult,
    UnitBuild,
)

HIT = MetricSpec("hit")
START = datetime(2026, 1, 2, tzinfo=UTC)


def errored(name="hit", kind="KeyError"):
    return EvaluationScore(name=name, metadata={"error": {"type": kind, "message": "x"}})


@pytest.fixture
def summarise(fakes, tmp_path):
    def run(*results, metrics=(HIT,), mode="exact", **options):
        names = dict.fromkeys(result.case_id for result in results)
        plan = fakes.plan(tmp_path, *names, metrics=metrics, **options)
        return summarise_mode(plan, mode, results)

    return run


class TestDenominators:
    def test_a_lost_score_counts_as_worst_and_is_told(self, summarise, fakes):
        hit = summarise(
            fakes.result("q1", {"hit": 1.0}), fakes.result("q2", {"hit": errored()})
        ).metrics["hit"]
        assert hit.mean == 0.5
        assert (hit.n, hit.n_scored, hit.n_errored) == (2, 1, 1)
        assert hit.reasons == {"KeyError": 1}

    def test_samples_that_failed_count_as_worst(self, summarise, fakes):
        results = [fakes.result(name, {"hit": 1.0}) for name in ("q1", "q2")]
        results += [
            fakes.result(name, {"hit": failed_score("hit", None)}, error="down")
            for name in ("q3", "q4")
        ]
        summary = summarise(*results)
        assert summary.metrics["hit"].mean == 0.5
        assert summary.failure_rate == 0.5
        assert (summary.total_cases, summary.successful_cases, summary.failed_cases) == (4, 2, 2)
        # The samples failed; the evaluators did not.
        assert summary.scoring_errors == 0

    def test_skipped_and_unjudged_are_in_no_mean(self, summarise, fakes):
        hit = summarise(
            fakes.result("q1", {"hit": 0.25}),
            fakes.result("q2", {"hit": exempt_score("hit", "skipped")}),
            fakes.result("q3", {"hit": exempt_score("hit", "unjudged")}),
            fakes.result("q4", {"hit": exempt_score("hit", "depth")}),
        ).metrics["hit"]
        assert hit.mean == 0.25
        assert (hit.n, hit.n_scored, hit.n_errored, hit.n_skipped, hit.n_unjudged) == (
            4,
            1,
            0,
            2,
            1,
        )
        assert hit.reasons == {"depth": 1, "no positive judgment": 1, "not applicable": 1}

    def test_an_honest_zero_stays_in_the_mean(self, summarise, fakes):
        results = [fakes.result(f"q{i}", {"hit": float(i != 1)}) for i in range(3)]
        assert summarise(*results).metrics["hit"].mean == pytest.approx(2 / 3, abs=1e-15)

    def test_the_mean_is_rounded_once(self, summarise, fakes):
        values = [0.1] * 10
        results = [fakes.result(f"q{i}", {"hit": value}) for i, value in enumerate(values)]
        assert summarise(*results).metrics["hit"].mean == 0.1
        big = [1e16, 1.0, -1e16]
        for order in (big, big[::-1]):
            results = [fakes.result(f"q{i}", {"hit": value}) for i, value in enumerate(order)]
            assert summarise(*results).metrics["hit"].mean == 1 / 3

    def test_a_worst_of_its_own_is_used(self, summarise, fakes):
        results = [fakes.result("q1", {"hit": 1.0}), fakes.result("q2", {"hit": errored()})]
        lower = MetricSpec("hit", "lower", 9.0)
        hit = summarise(*results, metrics=[lower]).metrics["hit"]
        assert (hit.mean, hit.direction, hit.worst) == (5.0, "lower", 9.0)

    def test_without_a_worst_a_lost_score_leaves_no_mean(self, summarise, fakes):
        metrics = [MetricSpec("hit", "lower", None)]
        lost = [fakes.result("q1", {"hit": 1.0}), fakes.result("q2", {"hit": errored()})]
        assert summarise(*lost, metrics=metrics).metrics["hit"].mean is None
        assert summarise(lost[0], metrics=metrics).metrics["hit"].mean == 1.0

    def test_nothing_scored_is_no_mean_and_not_zero(self, summarise, fakes):
        hit = summarise(fakes.result("q1", {"hit": exempt_score("hit", "unjudged")}))
        assert hit.metrics["hit"].mean is None

    def test_scores_of_other_modes_are_left_out(self, summarise, fakes):
        summary = summarise(
            fakes.result("q1", {"hit": 1.0}), fakes.result("q1", {"hit": 0.0}, mode="other")
        )
        assert summary.metrics["hit"].mean == 1.0
        assert summary.total_cases == 1

    @pytest.mark.parametrize("text", ["scored", "errored"])
    def test_scores_beyond_the_plan_are_left_out(self, summarise, fakes, text):
        extra = 1.0 if text == "scored" else errored("extra")
        summary = summarise(fakes.result("q1", {"hit": 1.0, "extra": extra}))
        assert list(summary.metrics) == ["hit"]
        assert summary.scoring_errors == 0


class TestMissingScores:
    """A crashed process leaves results without scores."""

    def test_they_count_as_the_plan_says(self, fakes, tmp_path):
        benchmark = fakes.Benchmark([], [fakes.case("judged", "?", "d"), fakes.case("unjudged")])
        plan = fakes.plan(
            tmp_path, benchmark=benchmark, evaluators=("recall@5", "recall@50"), top_k=10
        )
        results = [fakes.result(name, error="crash") for name in ("judged", "unjudged")]
        summary = summarise_mode(plan, "exact", results)
        shallow, deep = summary.metrics["recall@5"], summary.metrics["recall@50"]
        assert (shallow.mean, shallow.n_errored, shallow.n_unjudged) == (0.0, 1, 1)
        assert (deep.mean, deep.n_skipped, deep.n_unjudged) == (None, 1, 1)
        assert shallow.reasons == {"execution_error": 1, "no positive judgment": 1}
        assert summary.scoring_errors == 0

    def test_a_success_without_the_score_is_an_error_of_scoring(self, summarise, fakes):
        summary = summarise(fakes.result("q1"), fakes.result("q2", {"hit": 1.0}))
        assert summary.metrics["hit"].mean == 0.5
        assert summary.metrics["hit"].reasons == {"missing": 1}
        assert summary.scoring_errors == 1

    def test_a_case_that_is_not_planned_counts_as_well(self, fakes, tmp_path):
        plan = fakes.plan(tmp_path, "q1", metrics=[HIT])
        summary = summarise_mode(plan, "exact", [fakes.result("other", error="crash")])
        assert summary.metrics["hit"].n_errored == 1


class TestKindsOfValues:
    def test_truth_values_are_zeros_and_ones(self, summarise, fakes):
        results = [fakes.result(f"q{i}", {"hit": i < 3}) for i in range(4)]
        assert summarise(*results).metrics["hit"].mean == 0.75

    def test_labels_are_counted_by_value(self, summarise, fakes):
        labels = ["good", "bad", "good"]
        results = [fakes.result(f"q{i}", {"hit": label}) for i, label in enumerate(labels)]
        results.append(fakes.result("q9", {"hit": errored()}))
        hit = summarise(*results).metrics["hit"]
        assert hit.mean is None
        assert hit.value_counts == {"bad": 1, "good": 2}
        assert (hit.n_scored, hit.n_errored) == (3, 1)

    def test_verdicts_are_counted_beside_the_mean(self, summarise, fakes):
        verdicts = [True, False, True, None]
        results = [
            fakes.result(f"q{i}", {"hit": EvaluationScore(name="hit", value=0.5, passed=verdict)})
            for i, verdict in enumerate(verdicts)
        ]
        assert summarise(*results).metrics["hit"].n_passed == 2
        assert summarise(results[3]).metrics["hit"].n_passed is None
        assert summarise(results[1]).metrics["hit"].n_passed == 0

    def test_a_score_without_value_and_reason_is_errored(self, summarise, fakes):
        hit = summarise(fakes.result("q1", {"hit": None})).metrics["hit"]
        assert (hit.n_errored, hit.reasons) == (1, {"no_value": 1})


class TestScoringErrors:
    def test_they_are_counted_and_leave_the_latency_in(self, summarise, fakes):
        metrics = [MetricSpec("hit"), MetricSpec("other")]
        summary = summarise(
            fakes.result("q1", {"hit": errored(), "other": errored("other")}),
            fakes.result("q2", {"hit": 1.0, "other": 1.0}),
            metrics=metrics,
        )
        assert summary.scoring_errors == 2
        assert summary.failed_cases == 0
        assert summary.latency.n == 2


class TestLatency:
    def test_percentiles_interpolate_linearly(self, summarise, fakes):
        results = [fakes.result(f"q{ms}", {}, latency=float(ms)) for ms in range(20, 0, -1)]
        latency = summarise(*results, metrics=[]).latency
        assert latency.n == 20
        assert latency.mean_ms == 10.5
        assert latency.p50_ms == 10.5
        assert latency.p95_ms == pytest.approx(19.05, abs=1e-12)
        assert latency.p99_ms == pytest.approx(19.81, abs=1e-12)
        assert latency.max_ms == 20.0

    @pytest.mark.parametrize(
        ("latencies", "p50", "p95"), [([3.0], 3.0, 3.0), ([1.0, 2.0], 1.5, 1.95)]
    )
    def test_few_samples_are_few(self, summarise, fakes, latencies, p50, p95):
        results = [fakes.result(f"q{ms}", {}, latency=ms) for ms in latencies]
        latency = summarise(*results, metrics=[]).latency
        assert latency.n == len(latencies)
        assert latency.p50_ms == p50
        assert latency.p95_ms == pytest.approx(p95, abs=1e-12)

    def test_no_samples_have_no_latency(self, summarise, fakes):
        latency = summarise(fakes.result("q1", {}, error="down"), metrics=[]).latency
        assert latency.model_dump() == {
            "n": 0,
            "mean_ms": None,
            "p50_ms": None,
            "p95_ms": None,
            "p99_ms": None,
            "max_ms": None,
        }

    def test_only_what_was_really_asked_counts_and_cold_stands_beside_warm(self, summarise, fakes):
        summary = summarise(
            fakes.result("q1", {}, latency=100.0, cold=True),
            fakes.result("q2", {}, latency=2.0),
            fakes.result("q3", {}, latency=4.0),
            fakes.result("q4", {}, latency=50.0, replayed=True),
            fakes.result("q5", {}, latency=6.0, resumed=True),
            fakes.result("q6", {}, error="down"),
            fakes.result("q7", {}, latency=None),
            metrics=[],
        )
        assert (summary.latency.n, summary.latency.mean_ms) == (4, 28.0)
        assert (summary.cold_latency.n, summary.cold_latency.max_ms) == (1, 100.0)
        assert (summary.warm_latency.n, summary.warm_latency.mean_ms) == (3, 4.0)


class TestCounts:
    def test_no_samples_have_no_failure_rate(self, summarise, fakes, tmp_path):
        plan = fakes.plan(tmp_path, "q1", metrics=[HIT])
        summary = summarise_mode(plan, "exact", [])
        assert summary.failure_rate is None
        assert (summary.planned_samples, summary.total_cases) == (1, 0)
        assert summary.metrics["hit"].n == 0

    def test_cases_are_counted_once_however_often_asked(self, fakes, tmp_path):
        plan = fakes.plan(tmp_path, "q1", "q2", metrics=[HIT], settings=PlanSettings(repeat=2))
        results = [
            fakes.result(name, {"hit": 1.0}, repeat=repeat)
            for name in ("q1", "q2")
            for repeat in range(2)
        ]
        summary = summarise_mode(plan, "exact", results)
        assert (summary.planned_samples, summary.total_cases, summary.distinct_cases) == (4, 4, 2)


class TestFoldedDocuments:
    def results(self, fakes, distinct, returned=10):
        response = QueryResponse(
            mode="exact", results=tuple(QueryResult(id=str(i)) for i in range(returned))
        )
        return [
            fakes.result(f"q{i}", {"recall@5": 1.0}, distinct_documents=count).model_copy(
                update={"response": response}
            )
            for i, count in enumerate(distinct)
        ]

    def mean(self, summarise, results):
        metrics = [MetricSpec("recall@5", k=5)]
        return summarise(*results, metrics=metrics).metrics["recall@5"].distinct_documents

    def test_the_mean_is_shown_when_results_fold_to_fewer_than_k(self, summarise, fakes):
        assert self.mean(summarise, self.results(fakes, [3, 10])) == 6.5

    def test_it_is_not_when_there_are_enough(self, summarise, fakes):
        assert self.mean(summarise, self.results(fakes, [5, 10])) is None

    def test_few_results_are_no_folding(self, summarise, fakes):
        assert self.mean(summarise, self.results(fakes, [2, 2], returned=2)) is None

    def test_a_response_that_was_not_kept_is_judged_by_its_documents(self, summarise, fakes):
        result = fakes.result("q", {"recall@5": 1.0}, distinct_documents=3)
        assert self.mean(summarise, [result]) == 3

    def test_a_metric_without_depth_has_none(self, summarise, fakes):
        result = fakes.result("q", {"hit": 1.0}, distinct_documents=3)
        assert summarise(result).metrics["hit"].distinct_documents is None


kinds = st.sampled_from(["scored", "errored", "skipped", "unjudged", "failed", "missing"])


@given(st.lists(st.tuples(kinds, st.floats(0, 1)), max_size=30), st.randoms())
def test_every_sample_is_in_exactly_one_denominator(fakes, samples, shuffler):
    plan = fakes.plan(".", "q0", metrics=[HIT])
    made = {
        "errored": errored(),
        "skipped": exempt_score("hit", "skipped"),
        "unjudged": exempt_score("hit", "unjudged"),
        "failed": failed_score("hit", None),
    }
    results = []
    for number, (kind, value) in enumerate(samples):
        scores = {"hit": made.get(kind, value)} if kind != "missing" else {}
        error = "down" if kind == "failed" else None
        results.append(fakes.result(f"q{number}", scores, error=error))
    summary = summarise_mode(plan, "exact", results)
    hit = summary.metrics["hit"]
    assert hit.n == len(samples) == summary.total_cases
    assert hit.n == hit.n_scored + hit.n_errored + hit.n_skipped + hit.n_unjudged
    assert sum(hit.reasons.values()) == hit.n - hit.n_scored
    assert summary.total_cases == summary.successful_cases + summary.failed_cases
    if hit.mean is not None:
        assert 0 <= hit.mean <= 1
        assert (hit.mean == 1) <= (hit.n_errored == 0)
    assert (hit.mean is None) == (hit.n_scored + hit.n_errored == 0)
    shuffler.shuffle(results)
    assert summarise_mode(plan, "exact", results) == summary


class TestReport:
    def report(self, plan, results, **options):
        options.setdefault("unit_builds", ())
        return build_report(
            plan,
            results,
            started_at=START,
            finished_at=START,
            snapshot={"top_k": 10},
            metadata={"label": plan.label},
            **options,
        )

    def test_results_are_joined_by_identity_and_come_in_the_plans_order(self, fakes, tmp_path):
        names = [f"q{number}" for number in range(10)]
        plan = fakes.plan(tmp_path, *names, metrics=[HIT])
        # Each case's score says which case it belongs to; they finish in any order.
        finished = {
            sample: fakes.result(sample.case, {"hit": int(sample.case[1:]) / 10})
            for sample in plan.samples()
            if sample.case != "q4"
        }
        failed = Sample("tiny", "fake", "all", "exact", "q4", 0)
        finished[failed] = fakes.result("q4", error="down")
        shuffled = list(finished.items())
        random.Random(3).shuffle(shuffled)
        for order in (shuffled, shuffled[::-1]):
            report = self.report(plan, dict(order))
            assert [result.case_id for result in report.case_results] == names
            for result in report.case_results:
                if result.case_id != "q4":
                    assert result.scores[0].value == int(result.case_id[1:]) / 10
            assert report.score_summary == {"exact.hit": pytest.approx(4.1 / 10, abs=1e-15)}
            assert report.metadata["complete"] is True

    def test_units_come_in_the_plans_order(self, fakes, tmp_path):
        units = tuple(
            BenchmarkRunUnit(unit_id=name, document_ids=("d",), case_ids=(case,))
            for name, case in (("b", "q1"), ("a", "q2"))
        )
        benchmark = fakes.Benchmark([], [fakes.case("q1"), fakes.case("q2")], units)
        plan = fakes.plan(tmp_path, benchmark=benchmark)
        builds = [
            UnitBuild(unit_id="a", build_seconds=1.0, knowledge_base_manifest={"of": "a"}),
            UnitBuild(unit_id="b", error={"message": "no", "error_type": "build"}),
        ]
        report = self.report(plan, {}, unit_builds=builds)
        assert [build.unit_id for build in report.unit_builds] == ["b", "a"]
        assert report.knowledge_base_manifest == {"of": "a"}
        assert report.knowledge_base_name == "tiny"

    def test_it_says_what_ran(self, fakes, tmp_path):
        plan = fakes.plan(tmp_path, "q1", "q2", "q3", metrics=[HIT], settings=PlanSettings(limit=2))
        sample = next(plan.samples())
        report = self.report(plan, {sample: fakes.result("q1", {"hit": 1.0})})
        assert report.metadata == {
            "complete": False,
            "planned_samples": 2,
            "finished_samples": 1,
            "planned_cases": 2,
            "dataset_cases": 3,
            "knowledge_bases": {"built": 0, "reused": 0, "failed": 0},
            "warnings": [],
            "label": "tiny",
        }
        assert report.mode_summaries["exact"].planned_samples == 2

    def test_it_repeats_what_knowledge_bases_warn_of(self, fakes, tmp_path):
        plan = fakes.plan(tmp_path, *(f"q{number}" for number in range(12)))
        warned = [["no tokens"], ["no tokens", 3], "no list", None]
        results = {
            sample: fakes.result(sample.case).model_copy(
                update={"response": QueryResponse(mode="exact", metadata={"warnings": given})}
            )
            for sample, given in zip(plan.samples(), warned, strict=False)
        }
        build = UnitBuild(unit_id="all", knowledge_base_manifest={"warnings": ["1 empty text"]})
        report = self.report(plan, results, unit_builds=[build])
        assert report.metadata["warnings"] == [
            "[recipe-warning] run unit all: 1 empty text",
            "[recipe-warning] exact: no tokens (2 samples)",
        ]

    def test_it_repeats_not_too_many_warnings(self, fakes, tmp_path):
        plan = fakes.plan(tmp_path, "q1")
        texts = [f"odd {number}" for number in range(12)]
        build = UnitBuild(unit_id="all", knowledge_base_manifest={"warnings": texts})
        warnings = self.report(plan, {}, unit_builds=[build]).metadata["warnings"]
        assert warnings[9:] == ["[recipe-warning] run unit all: odd 9", "and 2 more"]

    def test_its_id_is_new_and_its_key_the_same(self, fakes, tmp_path):
        plan = fakes.plan(tmp_path, "q1")
        one, two = self.report(plan, {}), self.report(plan, {})
        assert one.report_id != two.report_id
        assert one.report_key == two.report_key == "tiny-test@fake"
        assert one.knowledge_base_name.startswith("tiny-all-")
        assert one.recipe_manifest == {"kind": "fake"}
        assert one.query_modes == ("exact",)

    def test_it_takes_over_summaries_and_gates(self, fakes, tmp_path):
        plan = fakes.plan(tmp_path, "q1")
        gate = GateResult(
            gate="g",
            written="g",
            origin="suite",
            benchmark="tiny",
            recipe="fake",
            mode="exact",
            aggregate="hit",
            operator=">=",
            threshold=0.0,
            status="passed",
        )
        summaries = {"exact": ModeSummary(mode="exact", total_cases=7)}
        report = self.report(plan, {}, gates=[gate], summaries=summaries)
        assert report.gates == (gate,)
        assert report.mode_summaries == summaries

    def test_metrics_without_a_mean_are_in_no_summary(self, summarise, fakes):
        summary = summarise(fakes.result("q1", {"hit": exempt_score("hit", "skipped")}))
        assert score_summary({"exact": summary}) == {}
