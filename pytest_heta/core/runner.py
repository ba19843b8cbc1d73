"""A whole run, composed of the core's steps and told as events."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from pytest_heta.core._plain import exception_text, portable_name, safe_str
from pytest_heta.core.aggregate import build_report, summarise_mode
from pytest_heta.core.build import (
    BuiltKnowledgeBase,
    build_knowledge_base,
    close_knowledge_base,
    failed_build,
    knowledge_base_name,
)
from pytest_heta.core.gates import (
    Gate,
    ResolvedGate,
    decide_gates,
    gated_measures,
    parse_gate,
    resolve_gates,
    suite_gates,
)
from pytest_heta.core.plan import (
    BenchmarkPlan,
    LoadedBenchmark,
    PlanSettings,
    Sample,
    Suite,
    UnitPlan,
    load_benchmark,
    plan_benchmark,
    recipe_modes,
)
from pytest_heta.core.query import QueryOutcome, query_case
from pytest_heta.core.result import ResponseLevel, case_result
from pytest_heta.core.score import score_case
from pytest_heta.core.snapshot import config_snapshot
from pytest_heta.core.staging import StagedDocuments, stage_documents
from pytest_heta.errors import HetaError
from pytest_heta.events import (
    CaseCompleted,
    RunCancelled,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunStarted,
    UnitBuilt,
)
from pytest_heta.models import (
    BenchmarkWorkspace,
    EvaluationCaseResult,
    EvaluationReport,
    GateResult,
    UnitBuild,
)
from pytest_heta.protocols import BenchmarkEvaluatorProtocol

__all__ = ["RunOptions", "run_benchmark", "unit_workspace"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is made.

    Attributes:
        settings: What the run changes about the plan.
        gates: Gates beside the suite's.
        responses: How much of each response is kept.
        warmup: Queries of each unit and mode that are asked first, unmeasured.
        strict: Whether judged documents outside the corpus are an error.
        root: Folder whose git commit is noted; None for none.
    """

    settings: PlanSettings = field(default_factory=PlanSettings)
    gates: tuple[Gate, ...] = ()
    responses: ResponseLevel = "short"
    warmup: int = 0
    strict: bool = False
    root: Path | None = None


def unit_workspace(root: Path, label: str, unit_id: str) -> Path:
    """Return the folder below ``root`` in which a unit's recipe may write."""
    return root / "units" / portable_name(label) / portable_name(unit_id)


async def run_benchmark(
    suite: Suite,
    recipe: Any,
    *,
    workspace: Path,
    options: RunOptions | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[RunEvent, None]:
    """Run one benchmark with one recipe.

    Args:
        suite: The benchmark, with what its suite says.
        recipe: The recipe.
        workspace: Folder for the run's files; it is made.
        options: How the run is made.
        cancelled: Asked before each build and each query; True ends the run.

    Yields:
        The run's events. `RunFailed` is the last one before an exception.

    Raises:
        HetaError: if the run cannot begin: the benchmark, the recipe, an
            option or a gate is wrong. Failures of units and samples are
            results.
    """
    try:
        run = await _begin(suite, recipe, workspace, options or RunOptions())
        yield RunStarted(
            benchmark=run.plan.benchmark.name,
            recipe=run.plan.recipe_name,
            query_modes=run.plan.modes,
            planned_samples=run.plan.samples_per_mode * len(run.plan.modes),
            unit_count=len(run.plan.units),
        )
        staged = await stage_documents(run.loaded, workspace / "stage", strict=run.options.strict)
        run.staged = staged
        for unit in run.plan.units:
            if not cancelled():
                async with aclosing(_run_unit(run, unit, staged, cancelled)) as events:
                    async for event in events:
                        yield event
        if run.is_complete:
            yield RunCompleted(report=await run.report())
        else:
            yield RunCancelled(report=await run.report())
    except Exception as error:
        known = isinstance(error, HetaError)
        yield RunFailed(
            code=error.code if isinstance(error, HetaError) else "error",
            message=safe_str(error) if known else exception_text(error),
        )
        raise


@dataclass
class _Run:
    """What a run has got so far."""

    plan: BenchmarkPlan
    loaded: LoadedBenchmark
    evaluators: tuple[BenchmarkEvaluatorProtocol, ...]
    gates: tuple[ResolvedGate, ...]
    recipe: Any
    workspace: Path
    options: RunOptions
    started_at: datetime
    staged: StagedDocuments | None = None
    builds: list[UnitBuild] = field(default_factory=list)
    results: dict[Sample, EvaluationCaseResult] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return len(self.results) == self.plan.samples_per_mode * len(self.plan.modes)

    async def report(self) -> EvaluationReport:
        """Return the report; gates are decided where all samples ran."""
        plan, staged = self.plan, self.staged
        results = self.results.values()
        summaries = {mode: summarise_mode(plan, mode, results) for mode in plan.modes}
        ran = Counter(sample.mode for sample in self.results)
        gates: tuple[GateResult, ...] = decide_gates(
            self.gates,
            {plan.label: summaries},
            subset="skip",
            complete=lambda _, mode: (ran[mode], plan.samples_per_mode),
        )
        snapshot = await asyncio.to_thread(
            config_snapshot,
            plan,
            staged.dataset_digest if staged is not None else None,
            root=self.options.root,
            warmup=self.options.warmup,
        )
        found = staged.warnings if staged is not None else ()
        return build_report(
            plan,
            self.results,
            unit_builds=self.builds,
            gates=gates,
            started_at=self.started_at,
            finished_at=datetime.now(UTC),
            snapshot=snapshot,
            metadata={
                "warnings": [*plan.warnings, *found, *self.warnings],
                "dangling_ids": list(staged.dangling) if staged is not None else [],
                "dataset_documents": staged.document_count if staged is not None else None,
            },
            summaries=summaries,
        )


async def _begin(suite: Suite, recipe: Any, workspace: Path, options: RunOptions) -> _Run:
    started_at = datetime.now(UTC)
    loaded = await load_benchmark(suite, _folders(workspace))
    written = (*options.gates, *(parse_gate(text, "suite") for text in suite.gates))
    recipe_name = str(getattr(recipe, "name", ""))
    plan, evaluators = plan_benchmark(
        loaded,
        recipe,
        options.settings,
        gated_measures=gated_measures(written, loaded.manifest.name, recipe_name),
    )
    gates = (*options.gates, *suite_gates([plan]))
    known_modes = {plan.label: recipe_modes(recipe) or plan.modes}
    return _Run(
        plan=plan,
        loaded=loaded,
        evaluators=evaluators,
        gates=resolve_gates(gates, [plan], known_modes=known_modes),
        recipe=recipe,
        workspace=workspace,
        options=options,
        started_at=started_at,
    )


def _folders(workspace: Path) -> BenchmarkWorkspace:
    cache = workspace / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    return BenchmarkWorkspace(root_dir=Path.cwd(), cache_dir=cache, output_dir=workspace)


async def _run_unit(
    run: _Run, unit: UnitPlan, staged: StagedDocuments, cancelled: Callable[[], bool]
) -> AsyncGenerator[RunEvent, None]:
    try:
        keys = staged.keys(unit.document_ids)
        built = await build_knowledge_base(
            run.recipe,
            name=knowledge_base_name(run.plan.benchmark.name, unit.unit_id, run.plan.recipe_name),
            unit_id=unit.unit_id,
            objects=staged.store(keys),
            source_keys=keys,
            workspace=unit_workspace(run.workspace, run.plan.label, unit.unit_id),
        )
    except HetaError as error:
        build = failed_build(unit.unit_id, error, len(unit.document_ids))
        run.builds.append(build)
        yield UnitBuilt(build=build)
        for sample in _samples(run.plan, unit):
            if not cancelled():
                yield await _record(run, sample, QueryOutcome(error=build.error), cold=False)
        return
    run.builds.append(built.build)
    try:
        yield UnitBuilt(build=built.build)
        async with aclosing(_ask_unit(run, unit, built, cancelled)) as events:
            async for event in events:
                yield event
    finally:
        problem = await close_knowledge_base(built.knowledge_base)
        if problem is not None:
            run.warnings.append(f"run unit {unit.unit_id} could not be closed: {problem}")


async def _ask_unit(
    run: _Run, unit: UnitPlan, built: BuiltKnowledgeBase, cancelled: Callable[[], bool]
) -> AsyncGenerator[RunEvent, None]:
    asked: set[str] = set()
    for sample in _samples(run.plan, unit):
        if cancelled():
            return
        if sample.mode not in asked:
            for case_id in islice(cycle(unit.case_ids), run.options.warmup):
                await _ask(run, built, case_id, sample.mode)
        cold = sample.mode not in asked and not run.options.warmup
        asked.add(sample.mode)
        outcome = await _ask(run, built, sample.case, sample.mode)
        yield await _record(run, sample, outcome, cold=cold)


def _samples(plan: BenchmarkPlan, unit: UnitPlan) -> Iterator[Sample]:
    """Yield the samples of a unit in the report's order."""
    return replace(plan, units=(unit,)).samples()


async def _ask(run: _Run, built: BuiltKnowledgeBase, case_id: str, mode: str) -> QueryOutcome:
    return await query_case(
        built.knowledge_base,
        query=run.plan.cases[case_id].query,
        mode=mode,
        top_k=run.plan.top_k,
        options=run.plan.options,
    )


async def _record(run: _Run, sample: Sample, outcome: QueryOutcome, *, cold: bool) -> CaseCompleted:
    scores = await score_case(
        run.evaluators,
        case=run.loaded.cases[sample.case],
        response=outcome.response,
        error=outcome.error,
        top_k=run.plan.top_k,
        metrics=run.plan.metrics,
    )
    result = case_result(
        sample,
        run.plan.cases[sample.case],
        outcome,
        scores,
        level=run.options.responses,
        cold=cold,
    )
    run.results[sample] = result
    return CaseCompleted(result=result)
