"""The state of a session that uses the plugin, held in the config's stash."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from pytest_heta.core._loop import LoopThread
from pytest_heta.core._steps import GRACE_S
from pytest_heta.core._watchdog import Watchdog
from pytest_heta.core.cache import KnowledgeBaseCache
from pytest_heta.core.fast_record import FastRecords
from pytest_heta.core.gates import Gate, measures_of_gates
from pytest_heta.core.pace import DEFAULT_RETRIES
from pytest_heta.core.plan import (
    BenchmarkPlan,
    LoadedBenchmark,
    PlanSettings,
    Sample,
    Suite,
    load_benchmark,
    plan_benchmark,
)
from pytest_heta.core.score import Scorer
from pytest_heta.core.staging import StagedDocuments, stage_documents
from pytest_heta.errors import HetaError, PlanInvalidError
from pytest_heta.models import BenchmarkWorkspace, EvaluationReport
from pytest_heta.plugin.caching import open_cache
from pytest_heta.plugin.options import RunOptions
from pytest_heta.plugin.recording import Recording
from pytest_heta.protocols import BenchmarkEvaluatorProtocol

__all__ = ["RUN", "PlanEntry", "Run", "run_of", "will_run"]

T = TypeVar("T")


@dataclass
class PlanEntry:
    """A plan with what is needed to carry it out in this process."""

    plan: BenchmarkPlan
    loaded: LoadedBenchmark
    evaluators: tuple[BenchmarkEvaluatorProtocol, ...]
    recipe: Any
    asked: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of unit and mode that were asked in this process: the next is warm."""

    fast_records: FastRecords | None = None
    """What makes the records of ordinary samples; made when it is needed."""

    timeout_s: float | None = None
    """Seconds that an evaluator may take; None for any time."""

    retries: int = 0
    """How often an evaluator is asked again after an error that may pass."""

    @cached_property
    def scorer(self) -> Scorer:
        """What scores the plan's responses."""
        return Scorer(
            self.evaluators,
            self.plan.metrics,
            top_k=self.plan.top_k,
            timeout_s=self.timeout_s,
            retries=self.retries,
        )


class Run:
    """One session of the plugin, in one process.

    Attributes:
        config: pytest's config.
        options: The checked options.
        recipes: The recipes, in order.
        gates: Gates of the command line and the ini file.
        baseline: Reports to show differences to, by report key.
        started_at: When the session began, in UTC.
        plans: What is planned, by plan label, in collection order.
        entries: The plans with what carries them out, by plan label; empty in
            the controller of a distributed run.
        selected: Samples of the selected items by node id.
        concurrency: Processes that ask at the same time.
        phases: Phases of a passed item whose reports the controller's plugins
            read; empty in the controller itself.
        refusals: Why suites cannot be run as they are declared, with tracebacks.
        recording: Where results are written down, and those of earlier sessions.
        fingerprints: What the plans are about, by plan label and part.
        watchdog: Ends the process if its interpreter does not come back; None
            if nobody wants that.
    """

    def __init__(
        self,
        config: pytest.Config,
        options: RunOptions,
        recipes: tuple[Any, ...],
        gates: tuple[Gate, ...],
        baseline: Mapping[str, EvaluationReport],
    ) -> None:
        self.config = config
        self.options = options
        self.recipes = recipes
        self.gates = gates
        self.baseline = baseline
        self.started_at = datetime.now(UTC)
        self.entries: dict[str, PlanEntry] = {}
        self.plans: dict[str, BenchmarkPlan] = {}
        self.selected: Mapping[str, tuple[str, Sample]] = {}
        self.refusals: dict[str, str] = {}
        self.fingerprints: dict[str, dict[str, str]] = {}
        self.concurrency = 1
        self.phases: tuple[str, ...] = tuple(self._worker_input.get("heta_phases", ()))
        self._loop: LoopThread | None = None
        self._directory: Path | None = None
        self._owns_directory = False
        self._loaded: dict[int, tuple[Suite, LoadedBenchmark | HetaError]] = {}
        self._staged: dict[str, StagedDocuments | HetaError] = {}
        self.watchdog: Watchdog | None = None
        self.recording = Recording(self, self._worker_input.get("heta_run", {}))

    # -- folders and the event loop -------------------------------------------

    @property
    def is_worker(self) -> bool:
        """Whether this process is a worker of pytest-xdist."""
        return hasattr(self.config, "workerinput")

    @property
    def worker_id(self) -> str:
        """Name of this worker; empty in the controller."""
        return str(self._worker_input.get("workerid", ""))

    @property
    def worker_count(self) -> int:
        """How many processes share the run's items."""
        return int(self._worker_input.get("workercount", 1))

    @property
    def retries(self) -> int:
        """How often a query or an evaluator is asked again after an error that may pass."""
        given = self.options.retries
        return DEFAULT_RETRIES if given is None else given

    @property
    def _worker_input(self) -> Mapping[str, Any]:
        """What the controller gave this worker; empty in the controller."""
        given: Mapping[str, Any] = getattr(self.config, "workerinput", {})
        return given

    @property
    def directory(self) -> Path:
        """Folder of the run, shared by all its processes, removed at its end."""
        if self._directory is None:
            if self.is_worker:
                self._directory = Path(self._worker_input["heta_directory"])
            else:
                self._directory = Path(tempfile.mkdtemp(prefix="pytest-heta-"))
                self._owns_directory = True
        return self._directory

    @cached_property
    def kb_cache(self) -> KnowledgeBaseCache | None:
        """Saved knowledge bases, None if none are kept."""
        return open_cache(self, self._worker_input.get("heta_cache", {}))

    @property
    def workspace(self) -> BenchmarkWorkspace:
        """Folders for benchmark adapters."""
        return BenchmarkWorkspace(
            root_dir=self.config.rootpath,
            cache_dir=self._datasets_dir,
            output_dir=self.directory,
        )

    @property
    def _datasets_dir(self) -> Path:
        """Folder of what adapters download: it outlives the session where pytest's cache does."""
        cache = getattr(self.config, "cache", None)  # not there without its plugin
        with suppress(OSError):
            if cache is not None:
                folder: Path = cache.mkdir("heta-datasets")
                return folder
        folder = self.directory / "cache"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def loop(self) -> LoopThread:
        """The plugin's own event loop."""
        if self._loop is None:
            self._loop = LoopThread()
        return self._loop

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Carry out a step of the core, on the plugin's own event loop where it needs one."""
        return self.loop.drive(coroutine)

    def leave_stuck_loop(self) -> None:
        """Do not wait for a coroutine that blocks the event loop: the session is at its end."""
        if self._loop is not None:
            self._loop.leave_if_stuck(GRACE_S)

    def watched(self, limit_s: float | None) -> AbstractContextManager[None]:
        """Watch meanwhile users' code that may take so many seconds; None for any time."""
        if limit_s is None or self.watchdog is None:
            return nullcontext()
        return self.watchdog.watch(limit_s)

    def close(self) -> None:
        """Stop the event loop and remove what only this session needs."""
        if not self.is_worker:
            self.recording.close()
        if self._loop is not None:
            self._loop.close()
            self._loop = None
        if self.options.timeout is not None:
            for entry in self.entries.values():
                entry.scorer.close()
        cache = self.__dict__.get("kb_cache")
        if cache is not None and not self.is_worker:
            cache.prune(all_runs=True)
        if self._owns_directory and self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    # -- plans ----------------------------------------------------------------

    def check_refusals(self) -> None:
        """Stop the session if a suite is declared wrongly.

        Raises:
            pytest.UsageError: with all that is wrong.
        """
        if self.refusals:
            error = pytest.UsageError(*self.refusals)
            for text in self.refusals.values():
                error.add_note(text)
            raise error

    def plan_suite(self, suite: Suite, suite_id: str, recipe: Any) -> PlanEntry:
        """Return the plan of a suite for one recipe, making it when asked first.

        Raises:
            HetaError: if the benchmark's data or the suite is wrong.
        """
        loaded = self._load(suite)
        plan, evaluators = plan_benchmark(
            loaded,
            recipe,
            self.plan_settings,
            suite_id=suite_id,
            several_recipes=len(self.recipes) > 1,
            gated_measures=measures_of_gates(self.gates, suite, loaded.manifest.name, recipe.name),
        )
        known = self.plans.get(plan.label)
        if known is not None and self.entries[plan.label].loaded is not loaded:
            raise PlanInvalidError(
                f"benchmark {plan.label!r} is declared in {known.suite_id} and in {suite_id}",
                hint="give one of them another name: suite(…, name=…)",
            )
        entry = PlanEntry(
            plan=plan,
            loaded=loaded,
            evaluators=evaluators,
            recipe=recipe,
            timeout_s=self.options.timeout,
            retries=self.retries,
        )
        self.entries[plan.label] = entry
        self.plans[plan.label] = plan
        return entry

    @property
    def plan_settings(self) -> PlanSettings:
        """What the options change about every plan."""
        options = self.options
        return PlanSettings(
            modes=options.modes,
            top_k=options.top_k,
            options=dict(options.query_options),
            limit=options.limit,
            sample=options.sample,
            seed=options.seed,
        )

    def _load(self, suite: Suite) -> LoadedBenchmark:
        known = self._loaded.get(id(suite.benchmark))
        if known is None or known[0] != suite:
            try:
                loaded: LoadedBenchmark | HetaError = self.wait_for(
                    load_benchmark(suite, self.workspace)
                )
            except HetaError as error:
                loaded = error
            known = (suite, loaded)
            self._loaded[id(suite.benchmark)] = known
        if isinstance(known[1], HetaError):
            raise known[1]
        return known[1]

    def staged(self, entry: PlanEntry) -> StagedDocuments:
        """Return the staged documents of a benchmark, staging them when asked first.

        Raises:
            HetaError: if a document cannot be staged; again on every call.
        """
        name = entry.plan.benchmark.name
        known = self._staged.get(name)
        if known is None:
            try:
                known = self.wait_for(
                    stage_documents(
                        entry.loaded,
                        self.directory / "stage",
                        # The folder is this run's own, and so is the name of a suite.
                        run_key=entry.plan.suite_id,
                        strict=self.options.strict,
                    )
                )
            except HetaError as error:
                known = error
            self._staged[name] = known
        if isinstance(known, HetaError):
            raise known
        return known

    def dataset_facts(self, entry: PlanEntry) -> dict[str, Any] | None:
        """Return what staging found out, None if it failed or was not asked for."""
        staged = self.staged_or_none(entry)
        return staged.facts._asdict() if staged is not None else None

    def staged_or_none(self, entry: PlanEntry) -> StagedDocuments | None:
        """Return the staged documents, None if staging failed or was not asked for."""
        staged = self._staged.get(entry.plan.benchmark.name)
        return staged if isinstance(staged, StagedDocuments) else None


RUN: Final = pytest.StashKey[Run]()


def will_run(session: pytest.Session) -> bool:
    """Whether pytest will run tests: there are some, and collecting them did not fail."""
    stops = session.testsfailed and not session.config.option.continue_on_collection_errors
    return bool(session.items) and not stops


def run_of(config: pytest.Config) -> Run:
    """Return the state of the session."""
    return config.stash[RUN]
