"""What loading keeps of a large benchmark: equal parts once."""

import asyncio

import pytest

from pytest_heta.core.plan import PlanSettings, Suite, load_benchmark, plan_benchmark
from pytest_heta.models import (
    BenchmarkCase,
    BenchmarkEvidence,
    BenchmarkExpected,
    BenchmarkManifest,
    BenchmarkRunUnit,
    BenchmarkWorkspace,
    PreparedBenchmark,
)


class Memory:
    """A benchmark of cases a to d in one unit, which names them by texts of its own."""

    manifest = BenchmarkManifest(name="mem")

    def __init__(self, *, named=True):
        self.named = named

    async def prepare(self, workspace):
        return PreparedBenchmark(manifest=self.manifest, root_dir=workspace.root_dir)

    async def documents(self, prepared):
        return
        yield

    async def cases(self, prepared):
        expected = BenchmarkExpected(evidence=(BenchmarkEvidence(reference_id="d"),))
        for name in ("case-a", "case-b"):
            yield BenchmarkCase(case_id=name, query=name, expected=expected)
        yield BenchmarkCase(case_id="case-c", query="c", expected=expected, labels={"kind": "x"})
        yield BenchmarkCase(case_id="case-d", query="d")

    async def run_units(self, prepared):
        names = [f"case-{letter}" for letter in "dabc"] if self.named else []
        yield BenchmarkRunUnit(unit_id="unit", document_ids=("d",), case_ids=tuple(names))

    def evaluators(self):
        return ("recall@5", "ndcg@10", "answer_exact_match")


@pytest.fixture
def load(tmp_path):
    workspace = BenchmarkWorkspace(root_dir=tmp_path, cache_dir=tmp_path)
    return lambda benchmark: asyncio.run(load_benchmark(Suite(benchmark), workspace))


def test_equal_sets_of_given_fields_are_one(load):
    a, b, c, d = load(Memory()).cases.values()
    assert a.__pydantic_fields_set__ is b.__pydantic_fields_set__
    assert a.model_fields_set == {"case_id", "query", "expected"}
    assert c.model_fields_set == {"case_id", "query", "expected", "labels"}
    assert d.model_fields_set == {"case_id", "query"}
    assert a.expected.evidence[0].model_fields_set == {"reference_id"}


def test_copies_of_a_case_do_not_change_the_others(load):
    a, b, *_ = load(Memory()).cases.values()
    copied = a.model_copy(update={"labels": {"kind": "y"}})
    assert copied.model_fields_set == {"case_id", "query", "expected", "labels"}
    assert a.model_fields_set == b.model_fields_set == {"case_id", "query", "expected"}
    assert a == BenchmarkCase.model_validate(a.model_dump())


@pytest.mark.parametrize(("named", "order"), [(True, "dabc"), (False, "abcd")])
def test_units_have_the_texts_of_the_cases(load, named, order):
    loaded = load(Memory(named=named))
    (unit,) = loaded.units
    assert unit.case_ids == tuple(f"case-{letter}" for letter in order)
    own = {id(case.case_id) for case in loaded.cases.values()} | {id(name) for name in loaded.cases}
    assert {id(name) for name in unit.case_ids} <= own


class Recipe:
    name = "recipe"


def test_each_function_is_asked_once_about_a_case(load, monkeypatch):
    asked = []

    class Own:
        def __init__(self, name):
            self.name = name

        def applies(self, case):
            asked.append((self.name, case.case_id))
            if case.case_id == "case-b":
                raise ValueError("cannot say")
            return case.case_id != "case-c"

    benchmark = Memory()
    one, two = Own("one"), Own("two")
    shared = one.applies
    two.applies = shared
    third = Own("three")
    third.applies = shared
    one.applies = shared
    monkeypatch.setattr(benchmark, "evaluators", lambda: (one, "recall@5", two, "mrr@10", third))
    monkeypatch.setattr(Own, "evaluate", lambda self, *, case, response: None, raising=False)
    plan, _ = plan_benchmark(load(benchmark), Recipe(), PlanSettings())
    assert asked == [("one", f"case-{letter}") for letter in "abcd"]
    own = ("one", "two", "three")
    assert {case_id: dict(case.exempt) for case_id, case in plan.cases.items()} == {
        "case-a": {},
        "case-b": dict.fromkeys(own, "unknown"),
        "case-c": dict.fromkeys(own, "skipped"),
        "case-d": {"recall@5": "unjudged", "mrr@10": "unjudged"},
    }
