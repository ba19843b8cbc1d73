"""Which plans and modes gates are about."""

import pytest

from pytest_heta.core.gates import (
    gated_measures,
    gates_of_run,
    measures_of_gates,
    parse_gate,
    resolve_gates,
    suite_gates,
)
from pytest_heta.core.plan import MetricSpec, PlanSettings, Suite
from pytest_heta.errors import GateInvalidError

NDCG = MetricSpec("ndcg@10", "higher", 0.0, 10, bounded=True)
COST = MetricSpec("cost", "lower", 9.0)
METRICS = (NDCG, COST, MetricSpec("toxicity", "lower", None))


@pytest.fixture
def make_plan(fakes, tmp_path):
    def make(name="tiny", recipe="fake", modes=("fts", "hybrid"), metrics=METRICS, **options):
        benchmark = fakes.Benchmark(
            [], [fakes.case("q1", "?", "d"), fakes.case("q2", "?", "d")], name=name
        )
        return fakes.plan(
            tmp_path,
            benchmark=benchmark,
            recipe=fakes.Recipe(name=recipe, modes=modes),
            metrics=metrics,
            **options,
        )

    return make


def resolve(text, *plans, origin="command line", **options):
    return resolve_gates([parse_gate(text, origin)], plans, **options)


def refusal(text, *plans, **options):
    with pytest.raises(GateInvalidError) as raised:
        resolve(text, *plans, **options)
    return str(raised.value)


class TestPatterns:
    def test_an_explicit_gate_is_about_one_mode(self, make_plan):
        (only,) = resolve("tiny:fts.ndcg@10 >= 0.5", make_plan())
        assert only.text == "tiny:fts.ndcg@10 >= 0.5"
        assert only.key == "tiny:fts.ndcg@10"
        assert (only.plan_label, only.benchmark, only.recipe, only.mode) == (
            "tiny",
            "tiny",
            "fake",
            "fts",
        )
        assert only.population is None

    def test_a_pattern_stands_for_every_plan_and_mode(self, make_plan):
        plans = [make_plan(), make_plan("other", modes=("fts",))]
        found = resolve("*.failure_rate <= 0", *plans)
        assert [gate.key for gate in found] == [
            "tiny:fts.failure_rate",
            "tiny:hybrid.failure_rate",
            "other:fts.failure_rate",
        ]
        assert [gate.key for gate in resolve("hybrid.ndcg@10 > 0", *plans)] == [
            "tiny:hybrid.ndcg@10"
        ]

    def test_plans_without_the_metric_are_left_out_of_a_pattern(self, make_plan):
        plans = [make_plan(), make_plan("other", metrics=(NDCG,))]
        assert {gate.benchmark for gate in resolve("*.cost <= 3", *plans)} == {"tiny"}

    def test_several_recipes_stand_in_the_label(self, make_plan):
        plans = [make_plan(recipe=name, several_recipes=True) for name in ("a", "b")]
        assert [g.key for g in resolve("fts.ndcg@10 > 0", *plans)] == [
            "tiny@a:fts.ndcg@10",
            "tiny@b:fts.ndcg@10",
        ]
        (only,) = resolve("*@b:fts.ndcg@10 > 0", *plans)
        assert (only.recipe, only.text) == ("b", "tiny@b:fts.ndcg@10 > 0")

    def test_gates_on_the_same_thing_all_apply(self, make_plan):
        plan = make_plan()
        gates = [
            parse_gate("fts.ndcg@10 >= 0.5", "command line"),
            parse_gate("fts.ndcg@10 >= 0.4", "ini"),
            parse_gate("fts.ndcg@10 >= 0.5", "suite"),
        ]
        found = resolve_gates(gates, [plan])
        assert [(gate.gate.origin, gate.gate.threshold.value) for gate in found] == [
            ("command line", 0.5),
            ("ini", 0.4),
            ("suite", 0.5),
        ]

    def test_a_reduced_plan_is_named(self, make_plan):
        (only,) = resolve("fts.ndcg@10 > 0", make_plan(settings=PlanSettings(limit=1)))
        assert only.population == "on 1 of 2 cases"

    def test_without_plans_there_is_nothing_to_resolve(self):
        assert resolve("fts.ndcg@10 > 0") == ()

    def test_zero_is_a_threshold(self, make_plan):
        for text in ("fts.ndcg@10 >= 0", "fts.scoring_errors <= 0", "fts.n_errored(cost) == 0"):
            (only,) = resolve(text, make_plan())
            assert only.gate.threshold.value == 0


class TestMisspelt:
    @pytest.mark.parametrize("origin", ["command line", "ini", "suite", "run"])
    @pytest.mark.parametrize("text", ["fts.ndgc@10 > 0", "*.ndgc@10 > 0", "*.n(ndgc@10) > 0"])
    def test_a_metric_gets_a_suggestion(self, make_plan, origin, text):
        line = refusal(text, make_plan(), origin=origin)
        assert "no metric 'ndgc@10' is planned; did you mean 'ndcg@10'? Known: ndcg@10, " in line
        assert "failure_rate" in line

    def test_an_aggregate_gets_a_suggestion(self, make_plan):
        assert "did you mean 'failure_rate' or 'failed_cases'?" in refusal(
            "*.failurerate <= 0", make_plan()
        )

    @pytest.mark.parametrize("text", ["*.recal@5 > 0", "*.Recall@5 > 0", "*.recall5 > 0"])
    def test_a_measure_that_would_be_computed_is_suggested(self, make_plan, text):
        assert "did you mean 'recall@5'" in refusal(text, make_plan())

    def test_what_is_like_nothing_gets_the_list(self, make_plan):
        line = refusal("*.zzz <= 0", make_plan())
        assert "did you mean" not in line
        assert "known: ndcg@10, cost, toxicity, ndcg@k, " in line

    def test_a_measure_that_is_not_planned_is_an_error(self, make_plan):
        assert "no metric 'recall@5' is planned" in refusal("fts.recall@5 > 0", make_plan())

    def test_a_mode_gets_a_suggestion(self, make_plan):
        for origin in ("command line", "ini", "suite"):
            line = refusal("hybird.ndcg@10 > 0", make_plan(), origin=origin)
            assert "mode 'hybird' is not planned; did you mean 'hybrid'?" in line

    def test_a_benchmark_or_recipe_on_the_command_line_gets_a_suggestion(self, make_plan):
        line = refusal("tinny:fts.ndcg@10 > 0", make_plan())
        assert "benchmark 'tinny' is not planned; did you mean 'tiny'?" in line
        line = refusal("tiny@fakes:fts.ndcg@10 > 0", make_plan())
        assert "recipe 'fakes' is not planned; did you mean 'fake'?" in line
        line = refusal("*@fakes:fts.ndcg@10 > 0", make_plan())
        assert "recipe 'fakes' is not planned" in line


class TestLeftOutOfTheRun:
    def test_a_known_mode_of_a_suite_or_ini_gate_is_skipped(self, make_plan):
        plan = make_plan(settings=PlanSettings(modes=("fts",)))
        known = {"tiny": ("fts", "hybrid")}
        for origin in ("suite", "ini"):
            (only,) = resolve("hybrid.ndcg@10 > 0", plan, origin=origin, known_modes=known)
            assert only.not_planned == "mode not in this run"
            assert only.text == "tiny:hybrid.ndcg@10 > 0"

    def test_on_the_command_line_it_is_an_error(self, make_plan):
        plan = make_plan(settings=PlanSettings(modes=("fts",)))
        line = refusal("hybrid.ndcg@10 > 0", plan, known_modes={"tiny": ("fts", "hybrid")})
        assert "mode 'hybrid' is not planned" in line

    def test_its_metric_and_threshold_are_checked_all_the_same(self, make_plan):
        plan = make_plan(settings=PlanSettings(modes=("fts",)))
        options = {"origin": "suite", "known_modes": {"tiny": ("fts", "hybrid")}}
        assert "no metric 'ndgc@10'" in refusal("hybrid.ndgc@10 > 0", plan, **options)
        assert "80 does not" in refusal("hybrid.ndcg@10 > 80", plan, **options)

    def test_a_benchmark_or_recipe_of_an_ini_gate_is_skipped(self, make_plan):
        (only,) = resolve("other:fts.ndcg@10 > 0", make_plan(), origin="ini")
        assert only.not_planned == "benchmark not in this run"
        assert only.text == "other:fts.ndcg@10 > 0"
        (only,) = resolve("tiny@other:fts.ndcg@10 > 0", make_plan(), origin="ini")
        assert only.not_planned == "recipe not in this run"
        assert only.text == "tiny@other:fts.ndcg@10 > 0"
        (only,) = resolve("*@other:fts.ndcg@10 > 0", make_plan(), origin="ini")
        assert only.text == "*@other:fts.ndcg@10 > 0"


class TestThresholds:
    @pytest.mark.parametrize(
        ("text", "hint"),
        [
            ("fts.ndcg@10 >= 80", "ndcg@10 lies in 0..1, and 80 does not; write 0.8"),
            ("fts.mean(ndcg@10) >= 12.5", "write 0.125"),
            ("fts.ndcg@10 >= 1.01", "write 0.0101"),
            ("fts.ndcg@10 >= -0.1", "write a number in 0..1"),
            ("fts.ndcg@10 >= 800", "write a number in 0..1"),
            ("fts.failure_rate <= 5", "failure_rate lies in 0..1, and 5 does not; write 0.05"),
        ],
    )
    def test_one_that_a_metric_cannot_reach_is_refused(self, make_plan, text, hint):
        assert hint in refusal(text, make_plan())

    @pytest.mark.parametrize(
        "text",
        [
            "fts.ndcg@10 >= 1",
            "fts.ndcg@10 >= 0",
            "fts.cost <= 80",
            "fts.n_scored(ndcg@10) >= 80",
            "fts.p95_latency_ms <= 250",
            "fts.n(toxicity) >= 1",
        ],
    )
    def test_others_are_taken(self, make_plan, text):
        assert resolve(text, make_plan())

    def test_a_metric_without_worst_cannot_be_gated(self, make_plan):
        line = refusal("fts.toxicity <= 1", make_plan())
        assert "metric 'toxicity' has no finite worst value" in line

    @pytest.mark.parametrize("text", ["fts.deep >= 0.5", "fts.n_skipped(deep) == 0"])
    def test_a_metric_that_looks_deeper_than_is_asked_cannot_be_gated(self, make_plan, text):
        deep = MetricSpec("deep", k=20)
        line = refusal(text, make_plan(metrics=[deep], top_k=10))
        assert "top_k = 10 is below the k of 'deep'; ask for at least 20 results" in line
        assert resolve(text, make_plan(metrics=[deep], top_k=20))

    @pytest.mark.parametrize(
        ("text", "form"),
        [
            ("fts.ci_low(ndcg@10) >= 0.3", "ci_low(…)"),
            ("fts.ci_high(ndcg@10) >= 0.3", "ci_high(…)"),
            ("fts.ndcg@10{type=a} >= 0.3", "a label"),
            ("fts.ndcg@10 >= baseline", "a baseline as threshold"),
            ("fts.ndcg@10 >= baseline - 5%", "a baseline as threshold"),
        ],
    )
    def test_forms_that_are_not_built_are_refused(self, make_plan, text, form):
        for plans in ((make_plan(),), ()):
            assert f"{form} is not available yet" in refusal(text, *plans)


class TestSuites:
    def test_their_gates_are_about_their_own_benchmark(self, make_plan):
        plans = [
            make_plan("one", gates=("fts.ndcg@10 > 0", "fts.ndcg@10 > 0")),
            make_plan("two", gates=("two:*.failure_rate <= 0",)),
        ]
        gates = suite_gates(plans)
        assert [gate.text for gate in gates] == [
            "one:fts.ndcg@10 > 0",
            "one:fts.ndcg@10 > 0",
            "two:*.failure_rate <= 0",
        ]
        assert {gate.origin for gate in gates} == {"suite"}
        assert [gate.key for gate in resolve_gates(gates, plans)] == [
            "one:fts.ndcg@10",
            "one:fts.ndcg@10",
            "two:fts.failure_rate",
            "two:hybrid.failure_rate",
        ]

    def test_with_several_recipes_they_stand_once_and_hold_for_each(self, make_plan):
        plans = [
            make_plan(recipe=name, several_recipes=True, gates=("fts.ndcg@10 > 0",))
            for name in ("a", "b")
        ]
        gates = suite_gates(plans)
        assert len(gates) == 1
        assert [gate.recipe for gate in resolve_gates(gates, plans)] == ["a", "b"]

    def test_one_about_another_benchmark_is_refused(self, make_plan):
        with pytest.raises(GateInvalidError, match="suite 'tiny' is about another benchmark"):
            suite_gates([make_plan(gates=("other:fts.ndcg@10 > 0",))])

    def test_one_that_is_no_gate_is_refused(self, make_plan):
        with pytest.raises(GateInvalidError, match="there is no operator"):
            suite_gates([make_plan(gates=("fts.ndcg@10",))])


def test_measures_that_gates_name_are_known():
    gates = [
        parse_gate(text)
        for text in (
            "*.ndcg@10 > 0",
            "tiny:fts.recall@5 > 0",
            "tiny@fake:fts.n_errored(map@100) == 0",
            "other:fts.mrr@10 > 0",
            "tiny@other:fts.hit@1 > 0",
            "*.ndcg@10 > 0.1",
            "*.recal@5 > 0",
            "*.failure_rate <= 0",
        )
    ]
    assert gated_measures(gates, "tiny", "fake") == ("ndcg@10", "recall@5", "map@100")


def test_measures_of_a_run_are_those_of_its_gates_and_of_its_suites(fakes):
    suite = Suite(fakes.Benchmark(), gates=("exact.map@7 > 0", "exact.ndcg@10 > 0"))
    gates = [parse_gate("*.recall@3 > 0"), parse_gate("*.ndcg@10 > 0.5")]
    assert measures_of_gates(gates, suite, "tiny", "fake") == ("recall@3", "ndcg@10", "map@7")
    with pytest.raises(GateInvalidError, match="there is no operator"):
        measures_of_gates((), Suite(fakes.Benchmark(), gates=("exact.map@7",)), "tiny", "fake")


def test_gates_of_a_run_know_the_modes_that_its_recipes_have(make_plan, fakes):
    plan = make_plan(gates=("later.failure_rate <= 0",))
    recipe = fakes.Recipe(modes=("fts", "hybrid", "later"))
    own, suites = gates_of_run([parse_gate("fts.failure_rate <= 0")], [plan], [recipe])
    assert (own.key, own.not_planned) == ("tiny:fts.failure_rate", None)
    assert (suites.key, suites.not_planned) == ("tiny:later.failure_rate", "mode not in this run")
    # A recipe that does not say its modes has those that are planned.
    with pytest.raises(GateInvalidError, match="mode 'later' is not planned"):
        gates_of_run((), [plan], [object()])
