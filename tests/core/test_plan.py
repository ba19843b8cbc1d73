"""The plan: which samples there are."""

import asyncio
import math
import random
import re
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.core._loop import LoopThread
from pytest_heta.core.plan import (
    DEFAULT_MODE,
    BenchmarkPlan,
    MetricSpec,
    PlanSettings,
    Sample,
    Suite,
    load_benchmark,
    metric_spec,
    plan_benchmark,
    recipe_modes,
)
from pytest_heta.errors import (
    ConfigurationError,
    DuplicateIdError,
    ModeUnknownError,
    PlanInvalidError,
    RecipeInvalidError,
)
from pytest_heta.models import BenchmarkRunUnit, BenchmarkWorkspace

UNITS = (
    BenchmarkRunUnit(unit_id="u1", document_ids=("d",), case_ids=("q2", "q1")),
    BenchmarkRunUnit(unit_id="u2", document_ids=("d",), case_ids=("q3",)),
)


class Evaluator:
    def __init__(self, name, **attributes):
        self.name = name
        self.__dict__.update(attributes)

    async def evaluate(self, *, case, response): ...


@pytest.fixture
def three_cases(fakes):
    cases = [fakes.case(name, f"query of {name}", "d") for name in ("q1", "q2", "q3")]
    return fakes.Benchmark([fakes.document("d")], cases)


class TestLoading:
    def test_a_single_unit_may_mean_all_cases(self, fakes, three_cases, tmp_path):
        loaded = fakes.load(three_cases, tmp_path)
        assert loaded.units[0].case_ids == ("q1", "q2", "q3")
        assert list(loaded.cases) == ["q1", "q2", "q3"]
        assert [evaluator.name for evaluator in loaded.evaluators] == ["ndcg@10"]

    def test_adapters_that_wait_can_be_driven(self, three_cases, tmp_path):
        workspace = BenchmarkWorkspace(root_dir=tmp_path, cache_dir=tmp_path)
        thread = LoopThread()
        try:
            assert thread.drive(load_benchmark(Suite(three_cases), workspace)).cases
        finally:
            thread.close()

    def test_the_suite_can_give_another_name_and_other_evaluators(
        self, fakes, three_cases, tmp_path
    ):
        loaded = fakes.load(three_cases, tmp_path, name="other", evaluators=("recall@3",))
        assert loaded.manifest.name == "other"
        assert [evaluator.name for evaluator in loaded.evaluators] == ["recall@3"]

    def test_a_name_that_cannot_stand_in_an_id_is_refused(self, fakes, three_cases, tmp_path):
        with pytest.raises(ConfigurationError, match=r"'a\.b' is not allowed"):
            fakes.load(three_cases, tmp_path, name="a.b")

    def test_a_case_id_twice_is_an_error(self, fakes, tmp_path):
        twice = fakes.Benchmark([], [fakes.case("q1"), fakes.case("q1")])
        with pytest.raises(DuplicateIdError, match="case id 'q1' stands twice"):
            fakes.load(twice, tmp_path)

    def test_an_evaluator_twice_is_an_error(self, fakes, three_cases, tmp_path):
        with pytest.raises(ConfigurationError, match="'ndcg@10' stands twice"):
            fakes.load(three_cases, tmp_path, evaluators=("ndcg@10", "ndcg@10"))

    @pytest.mark.parametrize(
        ("units", "kind", "message"),
        [
            ((), PlanInvalidError, "no run units"),
            ((UNITS[0], UNITS[0]), DuplicateIdError, "run unit 'u1' stands twice"),
            (UNITS[:1], PlanInvalidError, "1 of 3 cases are in no run unit, the first is 'q3'"),
            (
                (*UNITS, BenchmarkRunUnit(unit_id="u3", document_ids=("d",), case_ids=("q9",))),
                PlanInvalidError,
                "'u3' names case 'q9', which does not exist",
            ),
            (
                (*UNITS, BenchmarkRunUnit(unit_id="u3", document_ids=("d",))),
                PlanInvalidError,
                "'u3' has empty case_ids",
            ),
            (
                (*UNITS, BenchmarkRunUnit(unit_id="u3", case_ids=("q1",))),
                PlanInvalidError,
                "'u3' has empty document_ids",
            ),
            (
                (BenchmarkRunUnit(unit_id="u", document_ids=("d",), case_ids=("q1", "q1")),),
                DuplicateIdError,
                "names a case twice",
            ),
        ],
    )
    def test_units_have_to_fit_the_cases(self, fakes, three_cases, tmp_path, units, kind, message):
        three_cases._units = units
        with pytest.raises(kind, match=message):
            fakes.load(three_cases, tmp_path)

    def test_adapters_of_heta_framework_may_mean_all_beside_other_units(
        self, fakes, three_cases, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(fakes.Benchmark, "__module__", "heta_framework.evaluation.benchmarks")
        three_cases._units = (UNITS[0], BenchmarkRunUnit(unit_id="all"))
        loaded = fakes.load(three_cases, tmp_path)
        assert loaded.units[1].case_ids == ("q1", "q2", "q3")
        assert "empty case_ids and document_ids" in loaded.warnings[0]


class TestSamples:
    def test_they_come_by_unit_mode_case_and_repeat(self, fakes, three_cases, tmp_path):
        three_cases._units = UNITS
        plan = fakes.plan(
            tmp_path,
            benchmark=three_cases,
            recipe=fakes.Recipe(modes=("b", "a")),
            settings=PlanSettings(repeat=2),
        )
        samples = list(plan.samples())
        assert samples[:4] == [
            Sample("tiny", "fake", "u1", "b", "q2", 0),
            Sample("tiny", "fake", "u1", "b", "q2", 1),
            Sample("tiny", "fake", "u1", "b", "q1", 0),
            Sample("tiny", "fake", "u1", "b", "q1", 1),
        ]
        assert samples[-1] == Sample("tiny", "fake", "u2", "a", "q3", 1)
        assert len(samples) == len(set(samples)) == 12
        assert plan.samples_per_mode == 6

    def test_a_limit_keeps_the_first_cases_and_no_empty_unit(self, fakes, three_cases, tmp_path):
        three_cases._units = UNITS
        plan = fakes.plan(tmp_path, benchmark=three_cases, settings=PlanSettings(limit=2))
        assert list(plan.cases) == ["q1", "q2"]
        assert [unit.unit_id for unit in plan.units] == ["u1"]
        assert plan.units[0].case_ids == ("q2", "q1")
        assert plan.reduced
        assert plan.case_count == 3

    def test_a_sample_is_the_same_for_the_same_seed(self, fakes, tmp_path):
        names = [f"q{number}" for number in range(50)]
        chosen = [
            tuple(fakes.plan(tmp_path, *names, settings=PlanSettings(sample=5, seed=seed)).cases)
            for seed in (1, 1, 2)
        ]
        assert chosen[0] == chosen[1] != chosen[2]
        assert list(chosen[0]) == sorted(chosen[0], key=names.index)
        assert len(chosen[0]) == 5

    def test_sampling_leaves_the_random_module_alone(self, fakes, tmp_path):
        random.seed(7)
        before = random.getstate()
        fakes.plan(tmp_path, "q1", "q2", settings=PlanSettings(sample=1))
        assert random.getstate() == before

    def test_a_sample_and_a_limit_beyond_the_cases_change_nothing(self, fakes, tmp_path):
        plan = fakes.plan(tmp_path, "q1", "q2", settings=PlanSettings(sample=9, limit=9))
        assert list(plan.cases) == ["q1", "q2"]
        assert not plan.reduced


class TestModes:
    @pytest.mark.parametrize(
        ("settings", "suite", "declared", "modes"),
        [
            ((), (), ("a", "b"), ("a", "b")),
            ((), ("b",), ("a", "b"), ("b",)),
            (("a",), ("b",), ("a", "b"), ("a",)),
            (("a", "a"), (), ("a", "b"), ("a",)),
            ((), (), (), (DEFAULT_MODE,)),
            ((), (), {"b", "a", "c"}, ("a", "b", "c")),
            (("x",), (), (), ("x",)),
        ],
    )
    def test_the_options_win_over_the_suite_over_the_recipe(
        self, fakes, tmp_path, settings, suite, declared, modes
    ):
        plan = fakes.plan(
            tmp_path,
            "q1",
            recipe=fakes.Recipe(modes=declared),
            settings=PlanSettings(modes=settings),
            modes=suite,
        )
        assert plan.modes == modes

    def test_a_mode_that_the_recipe_lacks_is_refused_with_a_suggestion(self, fakes, tmp_path):
        with pytest.raises(ModeUnknownError, match="did you mean 'exact'"):
            fakes.plan(tmp_path, "q1", settings=PlanSettings(modes=("exat",)))

    def test_a_mode_that_cannot_stand_in_an_id_is_refused(self, fakes, tmp_path):
        with pytest.raises(ConfigurationError, match="mode name 'a b' is not allowed"):
            fakes.plan(
                tmp_path, "q1", recipe=fakes.Recipe(modes=()), settings=PlanSettings(modes=("a b",))
            )

    def test_a_recipe_class_with_a_property_says_nothing_before_it_is_made(self):
        class Recipe:
            def available_queries(self): ...

        assert recipe_modes(Recipe()) == ()

    def test_one_text_is_one_mode_and_not_its_letters(self):
        assert recipe_modes(SimpleNamespace(available_queries="exact")) == ("exact",)

    @pytest.mark.parametrize("declared", [5, ["exact", 2], [b"exact"], iter(["exact"])])
    def test_what_is_no_list_of_names_is_refused(self, declared):
        recipe = SimpleNamespace(name="mine", available_queries=declared)
        with pytest.raises(RecipeInvalidError, match="'mine': `available_queries` is "):
            recipe_modes(recipe)


class TestDepth:
    @pytest.mark.parametrize(
        ("evaluators", "gated", "depth"),
        [
            (("ndcg@5",), (), 10),
            (("ndcg@5", "recall@100"), (), 100),
            (("ndcg@5",), ("map@50",), 50),
        ],
    )
    def test_it_is_the_deepest_that_is_needed(self, fakes, tmp_path, evaluators, gated, depth):
        plan = fakes.plan(tmp_path, "q1", evaluators=evaluators, gated_measures=gated)
        assert plan.top_k == depth

    def test_an_explicit_one_counts_options_first(self, fakes, tmp_path):
        assert fakes.plan(tmp_path, "q1", top_k=3).top_k == 3
        assert fakes.plan(tmp_path, "q1", top_k=3, settings=PlanSettings(top_k=4)).top_k == 4

    def test_one_below_a_gated_k_is_refused(self, fakes, tmp_path):
        with pytest.raises(ConfigurationError, match="below the k of the gated metric 'ndcg@10'"):
            fakes.plan(tmp_path, "q1", top_k=3, gated_measures=("ndcg@10",))


class TestMetrics:
    def test_gated_measures_get_an_evaluator_once(self, fakes, tmp_path):
        loaded = fakes.load(fakes.Benchmark([], [fakes.case("q", "?", "d")]), tmp_path)
        plan, evaluators = plan_benchmark(
            loaded,
            fakes.Recipe(),
            PlanSettings(),
            gated_measures=("ndcg@10", "map@5", "map@5"),
        )
        assert [metric.name for metric in plan.metrics] == ["ndcg@10", "map@5"]
        assert [evaluator.name for evaluator in evaluators] == ["ndcg@10", "map@5"]
        assert plan.metrics[1] == MetricSpec("map@5", "higher", 0.0, 5, bounded=True)

    @pytest.mark.parametrize(
        ("attributes", "direction", "worst"),
        [
            ({}, "higher", 0.0),
            ({"direction": "lower"}, "lower", None),
            ({"direction": "lower", "worst": 9}, "lower", 9.0),
            ({"worst": None}, "higher", None),
            ({"worst": float("inf")}, "higher", None),
            ({"worst": float("nan")}, "higher", None),
            ({"worst": -1}, "higher", -1.0),
            ({"worst": Decimal("0.5")}, "higher", 0.5),
        ],
    )
    def test_what_a_lost_score_counts_as(self, attributes, direction, worst):
        spec = metric_spec(Evaluator("e", **attributes))
        assert (spec.direction, spec.worst) == (direction, worst)

    @pytest.mark.parametrize(
        ("attributes", "message"),
        [
            ({"direction": "minimize"}, "direction = 'minimize' is not allowed; use higher or"),
            ({"direction": None}, "direction = None is not allowed"),
            ({"k": "5"}, "k = '5' is not allowed; use a whole number from 1"),
            ({"k": 0}, "k = 0 is not allowed"),
            ({"k": True}, "k = True is not allowed"),
        ],
    )
    def test_what_cannot_be_meant_is_refused(self, attributes, message):
        with pytest.raises(ConfigurationError, match=re.escape(f"evaluator 'e': {message}")):
            metric_spec(Evaluator("e", **attributes))

    def test_what_does_not_apply_is_known_before_the_query(self, fakes, tmp_path):
        evaluators = (
            "ndcg@10",
            Evaluator("never", applies=lambda case: False),
            Evaluator("always"),
        )
        two_cases = fakes.Benchmark(
            [], [fakes.case("judged", "?", "d"), fakes.case("unjudged", "?", d=0)]
        )
        plan = fakes.plan(tmp_path, benchmark=two_cases, evaluators=evaluators)
        assert plan.cases["judged"].exempt == {"never": "skipped"}
        assert plan.cases["unjudged"].exempt == {"ndcg@10": "unjudged", "never": "skipped"}

    def test_an_evaluator_that_cannot_say_whether_it_applies_is_noted(self, fakes, tmp_path):
        evaluators = (Evaluator("broken", applies=lambda case: 1 / 0),)
        plan = fakes.plan(tmp_path, "q1", evaluators=evaluators)
        assert plan.cases["q1"].exempt == {"broken": "unknown"}

    @pytest.mark.parametrize("applies", [True, asyncio.sleep])
    def test_one_that_cannot_be_asked_is_refused(self, fakes, tmp_path, applies):
        with pytest.raises(ConfigurationError, match="evaluator 'odd': applies = "):
            fakes.plan(tmp_path, "q1", evaluators=(Evaluator("odd", applies=applies),))


class TestText:
    def test_a_plan_survives_being_written_and_read(self, fakes, three_cases, tmp_path):
        three_cases._units = UNITS
        plan = fakes.plan(
            tmp_path,
            benchmark=three_cases,
            settings=PlanSettings(limit=2, repeat=3, options={"rrf_k": 60}),
            gates=("*.ndcg@10 >= 0.5",),
            fail_on="miss",
            several_recipes=True,
        )
        assert plan.label == "tiny@fake"
        assert BenchmarkPlan.from_json(plan.as_json()) == plan

    def test_what_json_lacks_becomes_plain_data(self, fakes, tmp_path):
        endless = {}
        endless["again"] = endless
        case = fakes.case("q1", "?", "d").model_copy(update={"labels": {"spans": {(1, 2): "x"}}})
        odd = fakes.Benchmark([fakes.document("d")], [case])
        odd._units = (BenchmarkRunUnit(unit_id="u", metadata={"index": object(), "of": {1: 2}}),)
        plan = fakes.plan(tmp_path, benchmark=odd, options={("a", 1): endless, "n": math.nan})
        read = BenchmarkPlan.from_json(plan.as_json())
        assert read.options == {"('a', 1)": {"again": "…"}, "n": None}
        assert read.cases["q1"].labels == {"spans": {"(1, 2)": "x"}}
        assert read.units[0].metadata["of"] == {"1": 2}
        assert list(read.samples()) == list(plan.samples())

    def test_a_manifest_that_is_no_mapping_is_kept_as_text(self, fakes, tmp_path):
        recipe = fakes.Recipe()
        recipe.manifest = lambda: "version 3"
        assert fakes.plan(tmp_path, "q1", recipe=recipe).recipe_manifest == {
            "manifest": "version 3"
        }
        del recipe.manifest
        recipe.manifest = None
        assert fakes.plan(tmp_path, "q1", recipe=recipe).recipe_manifest == {}

    def test_a_manifest_may_be_an_attribute(self, fakes, tmp_path):
        recipe = fakes.Recipe()
        recipe.manifest = {"version": 3}
        assert fakes.plan(tmp_path, "q1", recipe=recipe).recipe_manifest == {"version": 3}

    def test_a_manifest_becomes_plain_data(self, fakes, tmp_path):
        recipe = fakes.Recipe()
        recipe.manifest = lambda: {1: Path("model.bin"), "cutoff": float("nan")}
        plan = fakes.plan(tmp_path, "q1", recipe=recipe)
        assert plan.recipe_manifest == {"1": "model.bin", "cutoff": None}

    def test_an_asynchronous_manifest_is_refused(self, fakes, tmp_path):
        async def manifest():
            return {}

        recipe = fakes.Recipe()
        recipe.manifest = manifest
        with pytest.raises(RecipeInvalidError, match="'fake': `manifest` is asynchronous"):
            fakes.plan(tmp_path, "q1", recipe=recipe)

    def test_a_manifest_that_cannot_be_had_is_an_error_of_the_recipe(self, fakes, tmp_path):
        recipe = fakes.Recipe()
        recipe.manifest = lambda: 1 / 0
        with pytest.raises(RecipeInvalidError, match="'fake': `manifest` fails: ZeroDivisionError"):
            fakes.plan(tmp_path, "q1", recipe=recipe)

    def test_a_recipe_name_that_cannot_stand_in_an_id_is_refused(self, fakes, tmp_path):
        with pytest.raises(ConfigurationError, match="recipe name 'a b' is not allowed"):
            fakes.plan(tmp_path, "q1", recipe=fakes.Recipe(name="a b"))


@given(st.lists(st.text(min_size=1), min_size=1, max_size=8, unique=True), st.data())
def test_a_limited_plan_keeps_order_and_identity(fakes, names, data):
    limit = data.draw(st.integers(0, 9))
    cases = [fakes.case(name) for name in names]
    loaded = fakes.load(fakes.Benchmark([], cases), ".")
    plan, _ = plan_benchmark(loaded, fakes.Recipe(), PlanSettings(limit=limit))
    assert [sample.case for sample in plan.samples()] == names[:limit]
