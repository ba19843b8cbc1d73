"""What a run is about: every change of it is seen, and nothing else."""

import os
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from pytest_heta.core.fingerprint import changed_parts, fingerprints_of
from pytest_heta.core.plan import PlanSettings, plan_benchmark
from pytest_heta.evaluators import EvidenceRecallAtK, MeasureEvaluator


class Judge:
    name = "judge"

    def __init__(self, limit=1):
        self.limit = limit

    async def evaluate(self, *, case, response):
        return 1.0


class JudgeOfClient(Judge):
    def __init__(self, limit=1):
        super().__init__(limit)
        self.client = threading.Lock()  # nobody can tell what is in it


def _judge(code):
    judge = Judge()
    judge.rule = eval(code)
    return judge


JUDGES = (Judge(),)


@pytest.fixture
def made(fakes, tmp_path):
    """Return a function that makes a fingerprint, of which parts may be changed."""

    def make(*, text="what", gold="d", evaluators=JUDGES, metadata=None, **changes):
        case = fakes.case("q1", text, gold)
        if metadata is not None:
            case = case.model_copy(update={"metadata": metadata})
        benchmark = fakes.Benchmark([fakes.document("d")], [case], evaluators=evaluators)
        loaded = fakes.load(benchmark, tmp_path)
        plan, found = plan_benchmark(loaded, fakes.Recipe(), PlanSettings())
        known = {"responses": "short", "warmup": 0, "selected_digest": "x"}
        of_plan = {name: changes.pop(name) for name in ("top_k", "options") if name in changes}
        return fingerprints_of(
            replace(plan, **of_plan), found, fakes.Recipe(), cases=loaded.cases, **known | changes
        )

    return make


def test_nothing_changed(made):
    assert changed_parts(made(), made()) == []


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"text": "who"}, "dataset"),
        ({"gold": "e"}, "dataset"),
        ({"text": "x" * 100_000 + "y"}, "dataset"),
        ({"evaluators": (Judge(2),)}, "evaluators"),
        ({"evaluators": (JudgeOfClient(2),)}, "evaluators"),
        ({"top_k": 3}, "top_k"),
        ({"options": {"rrf_k": 1}}, "options"),
        ({"responses": "full"}, "options"),
        ({"warmup": 2}, "options"),
        ({"selected_digest": "y"}, "selection"),
    ],
)
def test_a_change_is_of_one_part(made, change, part):
    before, now = made(), made(**change)
    assert {name for name in now if now[name] != before[name]} == {part}
    assert len(changed_parts(before, now)) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (MeasureEvaluator("recall@5"), MeasureEvaluator("recall@5", 0.8)),
        (EvidenceRecallAtK(5, threshold=0.1), EvidenceRecallAtK(5, threshold=0.2)),
        (EvidenceRecallAtK(5), EvidenceRecallAtK(6)),
        (JudgeOfClient(1), JudgeOfClient(2)),
        (JudgeOfClient(1), Judge(1)),
        (_judge("lambda case: 1"), _judge("lambda case: 2")),
    ],
)
def test_a_parameter_of_an_evaluator_counts(made, one, other):
    before, now, again = (made(evaluators=(judge,)) for judge in (one, other, one))
    assert changed_parts(before, now) == ["the evaluators"]
    assert changed_parts(before, again) == []


@pytest.mark.parametrize("limit", [1, 2])
def test_what_cannot_be_told_of_a_recipe_hides_nothing_else(fakes, tmp_path, limit):
    loaded = fakes.load(fakes.Benchmark([fakes.document("d")], [fakes.case("q1")]), tmp_path)

    def of(limit):
        recipe = fakes.Recipe()
        recipe.client, recipe.limit = threading.Lock(), limit
        plan, found = plan_benchmark(loaded, recipe, PlanSettings())
        known = {"responses": "short", "warmup": 0, "selected_digest": "x"}
        return fingerprints_of(plan, found, recipe, cases=loaded.cases, **known)

    assert changed_parts(of(1), of(limit)) == (["the recipe"] if limit == 2 else [])


def test_a_long_text_counts_to_its_end(made):
    assert made(text="x" * 300_000 + "y") != made(text="x" * 300_000 + "z")


def test_where_an_object_lies_in_memory_does_not_count(made):
    assert made(options={"client": object()}) == made(options={"client": object()})


def test_it_is_the_same_in_every_process():
    code = (
        "from pytest_heta.core.fingerprint import _described;"
        "print(_described({'tags': {'a', 'b', 'c', 'd'}, 'x': {1.5, 2.5}}))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1


def test_people_are_told_what_changed():
    before = {"recipe": "a", "top_k": "10", "documents": "x"}
    assert changed_parts(before, {**before, "documents": "y", "top_k": "5"}) == [
        "the documents",
        "top_k",
    ]
