"""Small benchmarks, recipes and plans to test the core with."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_heta.core.plan import (
    BenchmarkPlan,
    LoadedBenchmark,
    MetricSpec,
    PlanSettings,
    Suite,
    load_benchmark,
    plan_benchmark,
)
from pytest_heta.models import (
    BenchmarkCase,
    BenchmarkDocument,
    BenchmarkEvidence,
    BenchmarkExpected,
    BenchmarkManifest,
    BenchmarkRunUnit,
    BenchmarkWorkspace,
    EvaluationCaseResult,
    EvaluationError,
    EvaluationScore,
    PreparedBenchmark,
)


def document(document_id: str, text: str = "", **fields: Any) -> BenchmarkDocument:
    origin = {} if {"path", "source_uri"} & fields.keys() else {"data": text.encode()}
    fields.setdefault("name", f"{document_id}.txt")
    return BenchmarkDocument(document_id=document_id, **origin, **fields)


def case(case_id: str, query: str = "?", *gold: str, **grades: float) -> BenchmarkCase:
    """A case whose relevant documents are ``gold``, and others by grade."""
    judged = {**dict.fromkeys(gold, 1), **grades}
    evidence = tuple(
        BenchmarkEvidence(reference_id=name, metadata={"relevance": grade})
        for name, grade in judged.items()
    )
    return BenchmarkCase(
        case_id=case_id, query=query, expected=BenchmarkExpected(evidence=evidence)
    )


class FakeBenchmark:
    """A benchmark held in memory."""

    def __init__(
        self,
        documents: Sequence[Any] = (),
        cases: Sequence[BenchmarkCase] = (),
        units: Sequence[BenchmarkRunUnit] = (BenchmarkRunUnit(unit_id="all"),),
        evaluators: Sequence[Any] = ("ndcg@10",),
        name: str = "tiny",
        **manifest: Any,
    ) -> None:
        self.manifest = BenchmarkManifest(name=name, **manifest)
        self._documents, self._cases, self._units = documents, cases, units
        self._evaluators = evaluators
        self.documents_read = 0

    def resources(self) -> tuple[()]:
        return ()

    async def prepare(self, workspace: BenchmarkWorkspace) -> PreparedBenchmark:
        return PreparedBenchmark(manifest=self.manifest, root_dir=workspace.root_dir)

    async def documents(self, prepared: PreparedBenchmark) -> Any:
        for item in self._documents:
            await asyncio.sleep(0)
            self.documents_read += 1
            yield item

    async def cases(self, prepared: PreparedBenchmark) -> Any:
        for item in self._cases:
            await asyncio.sleep(0)
            yield item

    async def run_units(self, prepared: PreparedBenchmark) -> Any:
        for item in self._units:
            yield item

    def evaluators(self) -> Sequence[Any]:
        return self._evaluators


class FakeKnowledgeBase:
    """Answers with what a function of query and mode returns, or raises."""

    def __init__(self, answer: Callable[[str, str], Any], modes: Any = ("exact",)) -> None:
        self._answer = answer
        self.available_queries = modes
        self.closed = 0

    def query(self, text: str, *, mode: str, top_k: int, options: Mapping[str, Any]) -> Any:
        return self._answer(text, mode)

    def aclose(self) -> None:
        self.closed += 1


class FakeRecipe:
    """Finds the documents whose text is the query, or answers as it is told."""

    def __init__(
        self,
        answer: Callable[[str, str], Any] | None = None,
        *,
        name: str = "fake",
        modes: Sequence[str] = ("exact",),
        manifest: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.available_queries = modes
        self._answer, self._manifest = answer, manifest or {"kind": "fake"}
        self.built: list[FakeKnowledgeBase] = []
        self.calls: list[dict[str, Any]] = []

    def manifest(self) -> Mapping[str, Any]:
        return self._manifest

    def create(self, **given: Any) -> FakeKnowledgeBase:
        self.calls.append(given)
        objects = given["objects"]
        texts = {key: objects.get(key).decode() for key in given["source_keys"]}

        def find(query: str, mode: str) -> Any:
            found = [key for key, text in texts.items() if text == query]
            return hits(*(key.split("/")[-2] for key in found))

        knowledge_base = FakeKnowledgeBase(self._answer or find, self.available_queries)
        self.built.append(knowledge_base)
        return knowledge_base


def hits(*document_ids: str) -> dict[str, Any]:
    """A response that retrieves documents in this order."""
    return {
        "results": [
            {"id": f"chunk {rank}", "source": {"document_id": name}}
            for rank, name in enumerate(document_ids)
        ]
    }


def load(benchmark: Any, tmp_path: Any, **suite: Any) -> LoadedBenchmark:
    workspace = BenchmarkWorkspace(root_dir=tmp_path, cache_dir=tmp_path)
    return asyncio.run(load_benchmark(Suite(benchmark, **suite), workspace))


def plan(
    tmp_path: Any,
    *case_ids: str,
    metrics: Sequence[MetricSpec] | None = None,
    recipe: Any = None,
    settings: PlanSettings | None = None,
    several_recipes: bool = False,
    gated_measures: Sequence[str] = (),
    benchmark: Any = None,
    **suite: Any,
) -> BenchmarkPlan:
    """A plan of one unit, with the given metrics in place of the evaluators'."""
    if benchmark is None:
        benchmark = FakeBenchmark([document("d")], [case(name, "?", "d") for name in case_ids])
    loaded = load(benchmark, tmp_path, **suite)
    made, _ = plan_benchmark(
        loaded,
        recipe or FakeRecipe(),
        settings or PlanSettings(),
        suite_id="bench_tiny.py",
        several_recipes=several_recipes,
        gated_measures=gated_measures,
    )
    if metrics is None:
        return made
    return dataclasses.replace(made, metrics=tuple(metrics))


def result(
    case_id: str,
    scores: Mapping[str, Any] | None = None,
    *,
    latency: float | None = 1.0,
    error: str | None = None,
    mode: str = "exact",
    **metadata: Any,
) -> EvaluationCaseResult:
    """A result; a score is a value, or an `EvaluationScore` for more."""
    given = tuple(
        value if isinstance(value, EvaluationScore) else EvaluationScore(name=name, value=value)
        for name, value in (scores or {}).items()
    )
    return EvaluationCaseResult(
        case_id=case_id,
        query="?",
        query_mode=mode,
        scores=given,
        latency_ms=None if error else latency,
        error=EvaluationError(message=error, error_type="query") if error else None,
        metadata={"unit_id": "all", "repeat": 0, "cold": False, **metadata},
    )


@pytest.fixture(scope="session")
def fakes() -> SimpleNamespace:
    """The helpers of this module; test modules cannot import them."""
    return SimpleNamespace(
        Benchmark=FakeBenchmark,
        KnowledgeBase=FakeKnowledgeBase,
        Recipe=FakeRecipe,
        case=case,
        document=document,
        hits=hits,
        load=load,
        plan=plan,
        result=result,
    )
