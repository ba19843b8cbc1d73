"""Gates are decided on what was shown, or not at all."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.core.gates import (
    OPERATORS,
    ResolvedGate,
    decide_gates,
    holds,
    parse_gate,
)
from pytest_heta.models import LatencySummary, MetricSummary, ModeSummary


def resolved(text, **fields):
    gate = parse_gate(text, "command line")
    known = {
        "gate": gate,
        "plan_label": "tiny",
        "benchmark": "tiny",
        "recipe": "fake",
        "mode": "fts",
    }
    return ResolvedGate(**{**known, **fields})


def summary(mean=0.7966, **fields):
    metric = MetricSummary(metric="ndcg@10", mean=mean, n=225, n_scored=220, n_errored=5)
    known = {
        "mode": "fts",
        "planned_samples": 225,
        "total_cases": 225,
        "successful_cases": 223,
        "failed_cases": 2,
        "distinct_cases": 75,
        "failure_rate": 2 / 225,
        "scoring_errors": 3,
        "metrics": {"ndcg@10": metric},
        "latency": LatencySummary(
            n=223, mean_ms=10.0, p50_ms=9.0, p95_ms=19.05, p99_ms=19.81, max_ms=20.0
        ),
    }
    return ModeSummary(**{**known, **fields})


def decide(text, made=None, *, subset="skip", ran=(225, 225), **fields):
    summaries = {"tiny": {"fts": made if made is not None else summary()}}
    complete = {("tiny", "fts"): ran}
    (only,) = decide_gates([resolved(text, **fields)], summaries, subset=subset, complete=complete)
    return only


class TestComparison:
    @pytest.mark.parametrize(
        ("value", "operator", "threshold", "expected"),
        [
            (0.5, ">=", 0.5, True),
            (0.5, ">", 0.5, False),
            (0.5, "<=", 0.5, True),
            (0.5, "<", 0.5, False),
            (0.5, "==", 0.5, True),
            (0.7966, ">=", 0.80, False),
            (0.1 + 0.2, "==", 0.3, True),
            (0.8 - 5e-10, ">=", 0.8, True),
            (0.8 - 2e-9, ">=", 0.8, False),
            (0.8 + 5e-10, ">", 0.8, False),
            (0.8 + 2e-9, ">", 0.8, True),
            (0.8 + 5e-10, "<=", 0.8, True),
            (0.8 + 2e-9, "<=", 0.8, False),
            (0.8 - 5e-10, "<", 0.8, False),
            (0.8 - 2e-9, "<", 0.8, True),
            (0.8 + 2e-9, "==", 0.8, False),
        ],
    )
    def test_values_close_to_the_threshold_are_equal_to_it(
        self, value, operator, threshold, expected
    ):
        assert holds(value, operator, threshold) is expected

    @given(st.floats(-10, 10), st.floats(-10, 10))
    def test_the_operators_fit_together(self, value, threshold):
        verdict = {operator: holds(value, operator, threshold) for operator in OPERATORS}
        assert verdict[">="] == (verdict[">"] or verdict["=="])
        assert verdict["<="] == (verdict["<"] or verdict["=="])
        assert [verdict["<"], verdict["=="], verdict[">"]].count(True) == 1


class TestAggregates:
    @pytest.mark.parametrize(
        ("aggregate", "value", "n"),
        [
            ("ndcg@10", 0.7966, 225),
            ("mean(ndcg@10)", 0.7966, 225),
            ("n(ndcg@10)", 225, 225),
            ("n_scored(ndcg@10)", 220, 225),
            ("n_errored(ndcg@10)", 5, 225),
            ("n_skipped(ndcg@10)", 0, 225),
            ("n_unjudged(ndcg@10)", 0, 225),
            ("failure_rate", 2 / 225, 225),
            ("failed_cases", 2, 225),
            ("successful_cases", 223, 225),
            ("total_cases", 225, 225),
            ("distinct_cases", 75, 225),
            ("scoring_errors", 3, 225),
            ("mean_latency_ms", 10.0, 223),
            ("p50_latency_ms", 9.0, 223),
            ("p95_latency_ms", 19.05, 223),
            ("p99_latency_ms", 19.81, 223),
            ("max_latency_ms", 20.0, 223),
        ],
    )
    def test_each_is_read_from_the_summary(self, aggregate, value, n):
        below, above = decide(f"fts.{aggregate} >= {value}"), decide(f"fts.{aggregate} > {value}")
        assert (below.value, below.n, below.status) == (value, n, "passed")
        assert above.status == "failed"
        assert below.aggregate == aggregate.removeprefix("mean(").removesuffix(
            ")" if aggregate.startswith("mean(") else ""
        )

    def test_a_threshold_of_zero_is_applied(self):
        assert decide("fts.scoring_errors <= 0").status == "failed"
        assert decide("fts.scoring_errors <= 0", summary(scoring_errors=0)).status == "passed"
        assert decide("fts.ndcg@10 > 0", summary(mean=0.0)).status == "failed"
        assert decide("fts.ndcg@10 >= 0", summary(mean=0.0)).status == "passed"


class TestRecord:
    def test_it_says_everything(self):
        made = decide("fts.ndcg@10 >= 0.80")
        assert made.model_dump() == {
            "gate": "tiny:fts.ndcg@10 >= 0.8",
            "written": "fts.ndcg@10 >= 0.80",
            "origin": "command line",
            "benchmark": "tiny",
            "recipe": "fake",
            "mode": "fts",
            "aggregate": "ndcg@10",
            "operator": ">=",
            "threshold": 0.8,
            "value": 0.7966,
            "n": 225,
            "status": "failed",
            "reason": "0.7966 < 0.8",
        }

    @pytest.mark.parametrize(
        ("text", "mean", "reason"),
        [
            ("fts.ndcg@10 >= 0.8", 0.8123, "0.8123 >= 0.8"),
            ("fts.ndcg@10 >= 0.8", 0.79996, "0.79996 < 0.8"),
            ("fts.ndcg@10 >= 0.8", 0.799999998, "0.799999998 < 0.8"),
            ("fts.ndcg@10 >= 0.8", 0.8 - 5e-10, "0.8000 >= 0.8"),
            ("fts.ndcg@10 > 0.8", 0.8 + 5e-10, "0.8000 <= 0.8"),
            ("fts.ndcg@10 > 0.8", 0.80001, "0.80001 > 0.8"),
            ("fts.ndcg@10 <= 0.8", 0.80001, "0.80001 > 0.8"),
            ("fts.ndcg@10 < 0.8", 0.8, "0.8000 >= 0.8"),
            ("fts.ndcg@10 < 0.8", 0.5, "0.5000 < 0.8"),
            ("fts.ndcg@10 == 0.8", 0.80001, "0.80001 != 0.8"),
            ("fts.ndcg@10 == 0.8", 0.8, "0.8000 == 0.8"),
            ("fts.ndcg@10 >= 0.79996", 0.799957, "0.799957 < 0.79996"),
            ("fts.ndcg@10 >= 1", 1.0, "1 >= 1"),
            ("fts.ndcg@10 >= 1", 0.99999, "0.99999 < 1"),
            ("fts.ndcg@10 >= 0", 0.0, "0 >= 0"),
            ("fts.cost <= 1e20", 3e20, "3e+20 > 1e+20"),
            ("fts.cost > 1e-30", 0.5, "0.5000 > 1e-30"),
        ],
    )
    def test_the_digits_show_what_was_decided(self, text, mean, reason):
        metric = MetricSummary(metric="cost", mean=mean, n=1, n_scored=1)
        made = summary(mean=mean, metrics={"cost": metric, "ndcg@10": metric})
        assert decide(text, made).reason == reason

    @given(st.floats(0, 1), st.floats(0, 1), st.sampled_from(OPERATORS))
    def test_what_is_shown_never_contradicts_what_was_decided(self, mean, threshold, operator):
        made = decide(f"fts.ndcg@10 {operator} {threshold!r}", summary(mean=mean))
        shown = re.fullmatch(r"(\S+) (\S+) (\S+)", made.reason)
        value, relation, bound = float(shown[1]), shown[2], float(shown[3])
        assert bound == pytest.approx(threshold, abs=0)
        assert (relation == operator) == (made.status == "passed")
        if relation == "!=":
            assert value != bound
        else:
            assert holds(value, relation, bound)

    def test_a_reduced_plan_is_decided_and_named(self):
        made = decide("fts.ndcg@10 >= 0.5", population="on 50 of 225 cases")
        assert (made.status, made.reason) == ("passed", "0.7966 >= 0.5, on 50 of 225 cases")


class TestSubsets:
    def test_it_is_skipped_by_default(self):
        made = decide("fts.ndcg@10 >= 0.5", ran=(127, 225))
        assert (made.status, made.reason) == ("skipped", "127 of 225 samples ran")

    def test_it_can_fail(self):
        made = decide("fts.ndcg@10 >= 0.5", ran=(127, 225), subset="fail")
        assert (made.status, made.reason) == ("failed", "127 of 225 samples ran")

    def test_it_can_be_decided_on_what_ran_and_says_so(self):
        made = decide("fts.ndcg@10 >= 0.5", ran=(127, 225), subset="decide")
        assert (made.status, made.reason) == ("passed", "0.7966 >= 0.5, 127 of 225 samples ran")
        made = decide("fts.ndcg@10 >= 0.9", ran=(127, 225), subset="decide")
        assert made.status == "failed"

    @pytest.mark.parametrize("subset", ["skip", "decide", "fail"])
    def test_a_complete_run_is_decided_whatever_was_asked_for(self, subset):
        assert decide("fts.ndcg@10 >= 0.5", subset=subset).status == "passed"

    def test_how_much_ran_may_be_asked_of_a_function(self):
        asked = []

        def complete(label, mode):
            asked.append((label, mode))
            return 1, 2

        (only,) = decide_gates(
            [resolved("fts.ndcg@10 > 0")],
            {"tiny": {"fts": summary()}},
            subset="skip",
            complete=complete,
        )
        assert only.reason == "1 of 2 samples ran"
        assert asked == [("tiny", "fts")]

    @pytest.mark.parametrize("subset", ["skip", "decide", "fail"])
    def test_one_outside_the_run_is_skipped(self, subset):
        made = decide("fts.ndcg@10 > 0", not_planned="mode not in this run", subset=subset)
        assert (made.status, made.reason) == ("skipped", "mode not in this run")
        assert made.value is None


class TestNoValue:
    """What was not measured is never green."""

    @pytest.mark.parametrize("subset", ["skip", "decide", "fail"])
    @pytest.mark.parametrize("aggregate", ["ndcg@10", "failed_cases", "n(ndcg@10)", "total_cases"])
    def test_a_mode_without_samples_is_undecided(self, aggregate, subset):
        empty = ModeSummary(mode="fts")
        made = decide(f"fts.{aggregate} >= 0", empty, ran=(0, 0), subset=subset)
        assert (made.status, made.reason) == ("undecided", "no value: 0 samples")
        assert (made.value, made.n) == (None, 0)

    def test_a_mode_without_summary_is_undecided(self):
        (only,) = decide_gates([resolved("fts.ndcg@10 >= 0")], {}, subset="skip", complete={})
        assert (only.status, only.reason) == ("undecided", "no value: 0 samples")

    def test_deciding_a_subset_of_nothing_is_undecided(self):
        made = decide("fts.total_cases >= 0", ModeSummary(mode="fts"), ran=(0, 9), subset="decide")
        assert made.status == "undecided"
        assert made.reason == "no value: 0 samples, 0 of 9 samples ran"

    @pytest.mark.parametrize(
        ("counts", "reason"),
        [
            ({"n": 9, "n_unjudged": 9}, "no value: 9 unjudged"),
            ({"n": 9, "n_skipped": 4, "n_unjudged": 5}, "no value: 4 skipped, 5 unjudged"),
            ({"n": 9, "n_scored": 9, "value_counts": {"a": 9}}, "no value: the scores are labels"),
            ({"n": 9, "n_errored": 9}, "no value: no scores"),
        ],
    )
    def test_a_metric_without_mean_is_undecided(self, counts, reason):
        metric = MetricSummary(metric="ndcg@10", **counts)
        made = decide("fts.ndcg@10 >= 0", summary(metrics={"ndcg@10": metric}))
        assert (made.status, made.reason) == ("undecided", reason)

    def test_a_metric_that_is_not_there_is_undecided(self):
        made = decide("fts.other >= 0")
        assert (made.status, made.reason) == ("undecided", "no value: no scores")

    def test_a_latency_that_was_not_measured_is_undecided(self):
        made = decide("fts.p95_latency_ms <= 250", summary(latency=LatencySummary()))
        assert (made.status, made.reason) == ("undecided", "no value: no latency was measured")
