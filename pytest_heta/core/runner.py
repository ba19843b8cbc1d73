"""A whole run, composed of the core's steps, told as events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_heta.core._calls import evaluation_error
from pytest_heta.core._plain import exception_text, portable_name
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
    resolve_gates,
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

__all__ = ["run_benchmark", "unit_workspace"]


def unit_workspace(root: Path, label: str, unit_id: str) -> Path:
    """Return the folder below ``root`` in which a unit's recipe may write."""
    return root / portable_name(label) / portable_name(unit_id)


@dataclass
class _Run:
    """What a run has got so far."""

    plan: BenchmarkPlan
    loaded: LoadedBenchmark
    evaluators: tuple[BenchmarkEvaluatorProtocol, ...]
    gates: tuple[ResolvedGate, ...]
    recipe: Any
    workspace: Path
    level: ResponseLevel
    warmup: int
    repository: Path | None
    started_at: datetime
    staged: StagedDocuments | None = None
    builds: list[UnitBuild] = field(default_factory=list)
    results: dict[Sample, EvaluationCaseResult] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def report(self, *, decided: bool) -> EvaluationReport:
        summaries = {
            mode: summarise_mode(self.plan, mode, self.results.values()) for mode in self.plan.modes
        }
        gates: tuple[GateResult, ...] = ()
        if decided:
            gates = decide_gates(
                self.gates, {self.plan.label: summaries}, subset="skip", complete=self._complete
            )
        staged = self.staged
        warnings = [*self.plan.warnings, *(staged.warnings if staged else ()), *self.warnings]
        return build_report(
            self.plan,
            self.results,
            unit_builds=self.builds,
            gates=gates,
            started_at=self.started_at,
            finished_at=datetime.now(UTC),
            snapshot=config_snapshot(
                self.plan,
                staged.dataset_digest if staged else None,
                repository=self.repository,
                warmup=self.warmup,
            ),
            metadata={
                "warnings": warnings,
                "dangling_gold_documents": list(staged.dangling) if staged else [],
                "document_count": staged.document_count if staged else 0,
            },
            summaries=summaries,
        )

    def _complete(self, _label: str, mode: str) -> tuple[int, int]:
        ran = sum(sample.mode == mode for sample in self.results)
        return ran, self.plan.samples_per_mode


async def run_benchmark(
    suite: Suite,
    recipe: Any,
    *,
    workspace: Path,
    settings: PlanSettings | None = None,
    gates: Sequence[Gate] = (),
    level: ResponseLevel = "short",
    warmup: int = 0,
    strict: bool = False,
    repository: Path | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> AsyncIterator[RunEvent]:
    """Run one benchmark with one recipe.

    Args:
        suite: The benchmark, with what its suite says.
        recipe: The recipe.
        workspace: Folder for the run's files; it is made.
        settings: What the run changes about the plan.
        gates: Gates beside the suite's.
        level: How much of each response is kept.
        warmup: Queries of each unit and mode that are asked first, unmeasured.
        strict: Whether judged documents outside the corpus are an error.
        repository: Folder whose git commit is noted.
        cancelled: Asked between samples; True ends the run.

    Yields:
        The run's events. `RunFailed` is the last one before an exception.

    Raises:
        HetaError: if the run cannot begin: the benchmark, the recipe or a gate
            is wrong.
    """
    try:
        run = await _begin(
            suite, recipe, workspace, settings or PlanSettings(), gates, level, warmup, repository
        )
        yield RunStarted(
            benchmark=run.plan.benchmark.name,
            recipe=run.plan.recipe_name,
            query_modes=run.plan.modes,
            planned_samples=run.plan.samples_per_mode * len(run.plan.modes),
            unit_count=len(run.plan.units),
        )
        run.staged = await stage_documents(run.loaded, workspace / "documents", strict=strict)
        for unit in run.plan.units:
            async with aclosing(_run_unit(run, unit, run.staged, cancelled)) as events:
                async for event in events:
                    yield event
            if cancelled():
                yield RunCancelled(report=run.report(decided=False))
                return
        yield RunCompleted(report=run.report(decided=True))
    except Exception as error:
        known = isinstance(error, HetaError)
        yield RunFailed(
            code=error.code if isinstance(error, HetaError) else "error",
            message=str(error) if known else exception_text(error),
        )
        raise


async def _begin(
    suite: Suite,
    recipe: Any,
    workspace: Path,
    settings: PlanSettings,
    gates: Sequence[Gate],
    level: ResponseLevel,
    warmup: int,
    repository: Path | None,
) -> _Run:
    from pytest_heta.core.gates import parse_gate

    started_at = datetime.now(UTC)
    folders = BenchmarkWorkspace(
        root_dir=workspace, cache_dir=workspace / "cache", output_dir=workspace / "output"
    )
    workspace.mkdir(parents=True, exist_ok=True)
    loaded = await load_benchmark(suite, folders)
    name = loaded.manifest.name
    all_gates = [*gates, *(parse_gate(text, "suite") for text in suite.gates)]
    measures = gated_measures(all_gates, name, str(getattr(recipe, "name", "")))
    plan, evaluators = plan_benchmark(loaded, recipe, settings, gated_measures=measures)
    return _Run(
        plan=plan,
        loaded=loaded,
        evaluators=evaluators,
        gates=resolve_gates(all_gates, [plan]),
        recipe=recipe,
        workspace=workspace,
        level=level,
        warmup=warmup,
        repository=repository,
        started_at=started_at,
    )


async def _run_unit(
    run: _Run, unit: UnitPlan, staged: StagedDocuments, cancelled: Callable[[], bool]
) -> AsyncIterator[RunEvent]:
    built: BuiltKnowledgeBase | None = None
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
        build = built.build
    except HetaError as error:
        build = failed_build(unit.unit_id, error, len(unit.document_ids))
    run.builds.append(build)
    yield UnitBuilt(build=build)
    try:
        for mode in run.plan.modes:
            async with aclosing(_run_mode(run, unit, mode, built, build, cancelled)) as results:
                async for result in results:
                    yield CaseCompleted(result=result)
    finally:
        if built is not None:
            problem = await close_knowledge_base(built.knowledge_base)
            if problem is not None:
                run.warnings.append(f"run unit {unit.unit_id}: close failed: {problem}")


async def _run_mode(
    run: _Run,
    unit: UnitPlan,
    mode: str,
    built: BuiltKnowledgeBase | None,
    build: UnitBuild,
    cancelled: Callable[[], bool],
) -> AsyncIterator[EvaluationCaseResult]:
    plan = run.plan
    cold = True
    if built is not None:
        for case_id in unit.case_ids[: run.warmup]:
            await _ask(run, built, plan.cases[case_id].query, mode)
            cold = False
    for case_id in unit.case_ids:
        for repeat in range(plan.repeat):
            if cancelled():
                return
            outcome = QueryOutcome(error=build.error)
            if built is not None:
                outcome = await _ask(run, built, plan.cases[case_id].query, mode)
            scores = await score_case(
                run.evaluators,
                case=run.loaded.cases[case_id],
                response=outcome.response,
                error=outcome.error,
                top_k=plan.top_k,
                metrics=plan.metrics,
            )
            sample = Sample(
                plan.benchmark.name, plan.recipe_name, unit.unit_id, mode, case_id, repeat
            )
            result = case_result(
                sample, plan.cases[case_id], outcome, scores, level=run.level, cold=cold
            )
            cold = False
            run.results[sample] = result
            yield result


async def _ask(run: _Run, built: BuiltKnowledgeBase, query: str, mode: str) -> QueryOutcome:
    return await query_case(
        built.knowledge_base,
        query=query,
        mode=mode,
        top_k=run.plan.top_k,
        options=run.plan.options,
    )
