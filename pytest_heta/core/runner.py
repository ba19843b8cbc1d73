"""A whole run, composed of the core's steps and told as events."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from pytest_heta.core._calls import error_text, evaluation_error
from pytest_heta.core._deadline import close_within, closing_limit
from pytest_heta.core._in_order import in_order
from pytest_heta.core._loop import call_in_threads
from pytest_heta.core._plain import portable_name
from pytest_heta.core._threads import DaemonThreads
from pytest_heta.core.aggregate import build_report, dataset_metadata, summarise_mode
from pytest_heta.core.build import (
    BuiltKnowledgeBase,
    build_error_type,
    build_knowledge_base,
    close_knowledge_base,
    failed_build,
    knowledge_base_name,
)
from pytest_heta.core.cache import KnowledgeBaseCache, is_cacheable
from pytest_heta.core.concurrency import (
    LOOKAHEAD,
    has_coroutine_query,
    query_concurrency,
    recipe_concurrency,
)
from pytest_heta.core.gates import (
    Gate,
    ResolvedGate,
    decide_gates,
    gates_of_run,
    measures_of_gates,
)
from pytest_heta.core.pace import DEFAULT_RETRIES, Pace
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
from pytest_heta.core.query import QueryOutcome, not_asked, query_limits
from pytest_heta.core.result import ResponseLevel, failed_result
from pytest_heta.core.sample import ask_sample, score_sample, warm_up
from pytest_heta.core.score import Scorer
from pytest_heta.core.snapshot import config_snapshot, git_commit
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
    UnitBuild,
)
from pytest_heta.protocols import BenchmarkEvaluatorProtocol

__all__ = ["RunnerOptions", "run_benchmark", "unit_workspace"]


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """How a run is made.

    Attributes:
        settings: What the run changes about the plan.
        gates: Gates beside the suite's.
        responses: How much of each response is kept.
        warmup: Queries of each unit and mode that are asked first, unmeasured.
        concurrency: Queries at the same time; None for what the recipe says.
        retries: How often a query or an evaluator is asked again after an error that may pass.
        rate: Queries that may be begun in a second; None for any number.
        strict: Whether what ``pytest-heta validate`` warns of is an error.
        root: Folder whose git commit is noted; None for none.
        cache: Saved knowledge bases of other runs; None to build all.
        timeout_s: Seconds that a query, and that an evaluator may take; None
            for any time.
        build_timeout_s: Seconds that building a unit's knowledge base may
            take; None for any time.
    """

    settings: PlanSettings = field(default_factory=PlanSettings)
    gates: tuple[Gate, ...] = ()
    responses: ResponseLevel = "short"
    warmup: int = 0
    concurrency: int | None = None
    retries: int = DEFAULT_RETRIES
    rate: float | None = None
    strict: bool = False
    root: Path | None = None
    cache: KnowledgeBaseCache | None = None
    timeout_s: float | None = None
    build_timeout_s: float | None = None


def unit_workspace(root: Path, label: str, unit_id: str) -> Path:
    """Return the folder below ``root`` in which a unit's recipe may write."""
    return root / "units" / portable_name(label) / portable_name(unit_id)


async def run_benchmark(
    suite: Suite,
    recipe: Any,
    *,
    workspace: Path,
    options: RunnerOptions | None = None,
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
        run = await _begin(suite, recipe, workspace, options or RunnerOptions())
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
        code = error.code if isinstance(error, HetaError) else "error"
        yield RunFailed(code=code, message=error_text(error))
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
    options: RunnerOptions
    started_at: datetime
    staged: StagedDocuments | None = None
    builds: list[UnitBuild] = field(default_factory=list)
    results: dict[Sample, EvaluationCaseResult] = field(default_factory=dict)
    closing: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    concurrency: int = 1
    pace: Pace = field(default_factory=Pace)

    @property
    def is_complete(self) -> bool:
        return len(self.results) == self.plan.samples_per_mode * len(self.plan.modes)

    async def report(self) -> EvaluationReport:
        """Return the report; gates are decided where all samples ran."""
        plan = self.plan
        dataset = self.staged.facts if self.staged is not None else None
        results = self.results.values()
        summaries = {mode: summarise_mode(plan, mode, results) for mode in plan.modes}
        ran = Counter(sample.mode for sample in self.results)
        gates = decide_gates(
            self.gates,
            {plan.label: summaries},
            subset="skip",
            complete=lambda _, mode: (ran[mode], plan.samples_per_mode),
        )
        metadata = dataset_metadata(plan, dataset, self.closing)
        root = self.options.root
        snapshot = config_snapshot(
            plan,
            dataset.digest if dataset is not None else None,
            commit=await asyncio.to_thread(git_commit, root) if root is not None else None,
            warmup=self.options.warmup,
            concurrency=self.concurrency,
        )
        return build_report(
            plan,
            self.results,
            unit_builds=self.builds,
            gates=gates,
            started_at=self.started_at,
            finished_at=datetime.now(UTC),
            snapshot=snapshot,
            metadata={**metadata, "warnings": [*metadata["warnings"], *self.warnings]},
            summaries=summaries,
        )


async def _begin(suite: Suite, recipe: Any, workspace: Path, options: RunnerOptions) -> _Run:
    started_at = datetime.now(UTC)
    recipe_concurrency(recipe)  # refused before anything is built
    loaded = await load_benchmark(suite, _folders(workspace))
    recipe_name = str(getattr(recipe, "name", ""))
    plan, evaluators = plan_benchmark(
        loaded,
        recipe,
        options.settings,
        gated_measures=measures_of_gates(options.gates, suite, loaded.manifest.name, recipe_name),
    )
    return _Run(
        plan=plan,
        loaded=loaded,
        evaluators=evaluators,
        gates=gates_of_run(options.gates, [plan], [recipe]),
        recipe=recipe,
        workspace=workspace,
        options=options,
        started_at=started_at,
        pace=Pace(retries=options.retries, per_second=options.rate),
    )


def _folders(workspace: Path) -> BenchmarkWorkspace:
    cache = workspace / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    return BenchmarkWorkspace(root_dir=Path.cwd(), cache_dir=cache, output_dir=workspace)


async def _run_unit(
    run: _Run, unit: UnitPlan, staged: StagedDocuments, cancelled: Callable[[], bool]
) -> AsyncGenerator[RunEvent, None]:
    keys: tuple[str, ...] = ()
    try:
        keys = staged.keys(unit.document_ids)
        benchmark = run.plan.benchmark.name
        name = knowledge_base_name(benchmark, unit.unit_id, run.plan.recipe_name)
        cache, key = run.options.cache if is_cacheable(run.recipe) else None, None
        if cache is not None:
            key = cache.key_of(
                run.recipe,
                name=name,
                benchmark=benchmark,
                unit_id=unit.unit_id,
                documents=staged.digest_of(keys),
            )
        built = await build_knowledge_base(
            run.recipe,
            name=name,
            unit_id=unit.unit_id,
            objects=staged.store(keys),
            source_keys=keys,
            workspace=unit_workspace(run.workspace, run.plan.label, unit.unit_id),
            cache=cache,
            key=key,
            limit_s=run.options.build_timeout_s,
        )
    except HetaError as error:
        failure = evaluation_error(error, build_error_type(error))
        build = failed_build(unit.unit_id, error, len(keys))
        run.builds.append(build)
        yield UnitBuilt(build=build)
        for sample in _samples(run.plan, unit):
            if cancelled():
                break
            yield _keep(run, sample, failed_result(run.plan, sample, failure))
        return
    run.builds.append(built.build)
    try:
        yield UnitBuilt(build=built.build)
        async with aclosing(_ask_unit(run, unit, built, cancelled)) as events:
            async for event in events:
                yield event
    finally:
        try:
            problem = await close_within(
                close_knowledge_base(built.knowledge_base),
                closing_limit(run.options.timeout_s, run.options.build_timeout_s),
            )
        finally:
            built.release()
        if problem is not None:
            run.closing[unit.unit_id] = problem


async def _ask_unit(
    run: _Run, unit: UnitPlan, built: BuiltKnowledgeBase, cancelled: Callable[[], bool]
) -> AsyncGenerator[RunEvent, None]:
    at_once = query_concurrency(
        run.options.concurrency,
        run.recipe,
        coroutines=has_coroutine_query(built.knowledge_base),
    )
    run.concurrency = max(run.concurrency, at_once)
    threads = DaemonThreads(at_once, "heta-query") if at_once > 1 else None
    asking = _AskingUnit(run, built.knowledge_base, threads)
    work = [partial(asking.ask, sample) for sample in _samples(run.plan, unit)]
    results = in_order(work, at_once=at_once, ahead=at_once * LOOKAHEAD, cancelled=cancelled)
    try:
        async with aclosing(results):
            async for sample, result in results:
                yield _keep(run, sample, result)
    finally:
        asking.close()


class _AskingUnit:
    """Asks the samples of one unit, several at once."""

    def __init__(self, run: _Run, knowledge_base: Any, threads: DaemonThreads | None) -> None:
        limit_s, plan = run.options.timeout_s, run.plan
        self._run = run
        self._knowledge_base = knowledge_base
        self._threads = threads
        self._limited = query_limits(limit_s, threads) if limit_s is not None else None
        self._scorer = Scorer(
            run.evaluators,
            plan.metrics,
            top_k=plan.top_k,
            timeout_s=limit_s,
            retries=run.options.retries,
        )
        self._asked: set[tuple[str, str]] = set()
        self._warming = asyncio.Lock()

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
        self._scorer.close()
        if self._limited is not None:
            self._run.warnings += self._limited.warnings

    async def ask(self, sample: Sample) -> tuple[Sample, EvaluationCaseResult]:
        run = self._run
        missing = run.staged.problem_of(sample.case) if run.staged is not None else None
        if missing is not None:
            outcome, cold = not_asked(missing), False
        else:
            outcome, cold = await self._outcome(sample)
        result = await score_sample(
            self._scorer,
            run.plan,
            sample,
            case=run.loaded.cases[sample.case],
            outcome=outcome,
            level=run.options.responses,
            cold=cold,
            is_document=run.staged.knows if run.staged is not None else None,
        )
        return sample, result

    async def _outcome(self, sample: Sample) -> tuple[QueryOutcome, bool]:
        run = self._run
        if run.options.warmup:
            async with self._warming:
                await self._warm_up(sample)
        with call_in_threads(self._threads):
            return await ask_sample(
                self._knowledge_base,
                run.plan,
                sample,
                asked=self._asked,
                limited=self._limited,
                pace=run.pace,
            )

    async def _warm_up(self, sample: Sample) -> None:
        await warm_up(
            self._knowledge_base,
            self._run.plan,
            sample,
            asked=self._asked,
            warmup=self._run.options.warmup,
            limited=self._limited,
            pace=self._run.pace,
        )


def _samples(plan: BenchmarkPlan, unit: UnitPlan) -> Iterator[Sample]:
    """Yield the samples of a unit in the report's order."""
    return replace(plan, units=(unit,)).samples()


def _keep(run: _Run, sample: Sample, result: EvaluationCaseResult) -> CaseCompleted:
    run.results[sample] = result
    return CaseCompleted(result=result)
