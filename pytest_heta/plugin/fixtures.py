"""The fixtures of a run unit; users override them by name in a conftest file."""

from __future__ import annotations

import shutil
from asyncio import AbstractEventLoop
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from pytest_heta.core._deadline import close_within, closing_limit, took_longer
from pytest_heta.core._plain import exception_text, portable_name
from pytest_heta.core.build import (
    BuiltKnowledgeBase,
    build_knowledge_base,
    close_knowledge_base,
    closes_on_loop,
    failed_build,
    knowledge_base_name,
)
from pytest_heta.core.cache import is_cacheable
from pytest_heta.errors import BuildError, BuildTimeoutError, HetaError, LoopBlockedError
from pytest_heta.models import BenchmarkManifest, UnitBuild
from pytest_heta.plugin.collect import UnitNode
from pytest_heta.plugin.execution import CLOSING, DATASET, UNIT_BUILD, WAS_BUILT, CaseItem
from pytest_heta.plugin.state import Run, run_of
from pytest_heta.protocols import ObjectStore

__all__ = ["RunUnit", "heta_case", "heta_kb", "heta_recipe", "heta_unit"]

T = TypeVar("T")

_PYTESTS_OWN: Final = (
    Exception,
    KeyboardInterrupt,
    pytest.skip.Exception,
    pytest.fail.Exception,
)
"""What pytest itself knows how to take from a fixture."""


class RunUnit:
    """The run unit that a knowledge base is built for.

    Attributes:
        benchmark: Manifest of the benchmark.
        unit_id: Id of the unit.
        document_ids: Ids of its documents; empty means all of the benchmark.
        case_ids: Ids of the cases that will be asked.
        metadata: What the adapter says of the unit.
    """

    def __init__(self, run: Run, node: UnitNode) -> None:
        self._run = run
        self._node = node
        self._opened: list[tuple[BuiltKnowledgeBase, AbstractEventLoop | None]] = []
        self.benchmark: BenchmarkManifest = node.entry.plan.benchmark
        self.unit_id = node.unit.unit_id
        self.document_ids = node.unit.document_ids
        self.case_ids = node.unit.case_ids
        self.metadata = node.unit.metadata
        self._folder: Path = run.directory / "units" / portable_name(node.nodeid)

    @property
    def recipe(self) -> Any:
        """The recipe of the benchmark."""
        return self._node.entry.recipe

    @property
    def workspace(self) -> Path:
        """A folder of its own, made when it is asked for and removed after the unit."""
        # There may be thousands of units, and most recipes write nothing.
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    @property
    def source_keys(self) -> tuple[str, ...]:
        """Raw keys of the unit's documents, in the benchmark's order."""
        return self._run.staged(self._node.entry).keys(self.document_ids)

    @property
    def objects(self) -> ObjectStore:
        """The object store, which holds the unit's documents and no others."""
        return self._run.staged(self._node.entry).store(self.source_keys)

    def build(self, recipe: Any) -> Any:
        """Build a knowledge base with a recipe; it is closed after the unit.

        Asynchronous recipes run on the plugin's own event loop, where the
        knowledge base is also asked and closed.

        Raises:
            BuildError: if the documents cannot be staged or the recipe fails.
        """
        keys: tuple[str, ...] = ()
        try:
            staged = self._run.staged(self._node.entry)
            keys = staged.keys(self.document_ids)
            name = knowledge_base_name(
                self.benchmark.name, self.unit_id, self._node.entry.plan.recipe_name
            )
            cache, key = self._run.kb_cache if is_cacheable(recipe) else None, None
            if cache is not None:
                key = cache.key_of(
                    recipe,
                    name=name,
                    benchmark=self.benchmark.name,
                    unit_id=self.unit_id,
                    documents=staged.digest_of(keys),
                )
            built = self._wait_for(
                build_knowledge_base(
                    recipe,
                    name=name,
                    unit_id=self.unit_id,
                    objects=staged.store(keys),
                    source_keys=keys,
                    workspace=self._folder,
                    cache=cache,
                    key=key,
                    limit_s=self._run.options.build_timeout,
                )
            )
        except HetaError as error:
            self._note(failed_build(self.unit_id, error, len(keys)))
            raise
        except _PYTESTS_OWN:
            raise
        except BaseException as error:
            # pytest would not remember that its fixture failed by sys.exit() or the like.
            failure = BuildError(exception_text(error), where=f"run unit {self.unit_id}")
            self._note(failed_build(self.unit_id, failure, len(keys)))
            raise failure from error
        self._opened.append((built, self._run.loop.current))
        self._note(built.build)
        return built.knowledge_base

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Carry out a build within its time, where an ordinary one can be left behind."""
        options = self._run.options
        limit_s = options.build_timeout
        if limit_s is None and options.timeout is None:
            return self._run.wait_for(work)
        with self._run.watched(limit_s):
            try:
                return self._run.loop.run(work)
            except LoopBlockedError as error:
                raise BuildTimeoutError(
                    took_longer("building", limit_s or 0.0, blocks=True),
                    where=f"run unit {self.unit_id}",
                    hint=error.hint,
                ) from error

    def _close(self, knowledge_base: Any, loop: AbstractEventLoop | None) -> str | None:
        """Close a knowledge base where it was built, within its time.

        Where its thread was left behind with a call that took too long, an
        ordinary one is closed in another thread.
        """
        options = self._run.options
        limit_s = closing_limit(options.timeout, options.build_timeout)
        is_left = self._run.loop.has_left_loop
        if limit_s is not None:  # else only the end of an interrupted session leaves a loop
            is_left = is_left and loop is not self._run.loop.current
        if is_left and closes_on_loop(knowledge_base):
            return "its event loop is blocked by a coroutine"
        if limit_s is None:
            return self._run.wait_for(close_knowledge_base(knowledge_base))
        work = close_within(close_knowledge_base(knowledge_base), limit_s)
        with self._run.watched(limit_s):
            try:
                return self._run.loop.run(work)
            except LoopBlockedError:
                return took_longer("closing", limit_s, blocks=True)

    def _note(self, build: UnitBuild) -> None:
        """Leave the build with the unit's node, for the next report."""
        if self._run.is_worker:
            metadata = {**build.metadata, "worker": self._run.worker_id}
            build = build.model_copy(update={"metadata": metadata})
        self._node.stash[UNIT_BUILD] = build
        self._node.stash[WAS_BUILT] = True
        facts = self._run.dataset_facts(self._node.entry)
        if facts is not None:
            self._node.stash[DATASET] = facts
            self._run.recording.keep_documents(self._node.entry.plan.label, facts["digest"])

    def close(self) -> None:
        """Close what was built, and remove the workspace."""
        opened, self._opened = self._opened, []
        try:
            for built, loop in reversed(opened):
                problem = self._close(built.knowledge_base, loop)
                if problem is not None:
                    self._node.stash[CLOSING] = problem
        finally:
            for built, _ in opened:  # also those that an interrupt has left open
                built.release()
            if self._folder.exists():
                shutil.rmtree(self._folder, ignore_errors=True)


def _unit_node(request: pytest.FixtureRequest) -> UnitNode:
    node = request.node
    unit = node if isinstance(node, UnitNode) else node.getparent(UnitNode)
    if unit is None:
        raise BuildError(
            f"fixture {request.fixturename!r} is only there for benchmark cases",
            where=request.node.nodeid,
            hint="use it in fixtures that override heta_kb, not in ordinary tests",
        )
    return unit


@pytest.fixture(scope="class")
def heta_unit(request: pytest.FixtureRequest) -> Iterator[RunUnit]:
    """The current run unit: its documents, and ``build(recipe)``."""
    unit = RunUnit(run_of(request.config), _unit_node(request))
    yield unit
    unit.close()


@pytest.fixture(scope="class")
def heta_recipe(heta_unit: RunUnit) -> Any:
    """The knowledge recipe of the current benchmark."""
    # Not by ``request``: pytest makes one anew for each test of the unit.
    return heta_unit.recipe


@pytest.fixture(scope="class")
def heta_kb(heta_unit: RunUnit, heta_recipe: Any) -> Any:
    """The knowledge base of the current run unit, built once.

    Override it to ask something else, for example a deployed system::

        @pytest.fixture(scope="class")
        def heta_kb(heta_unit):
            return heta_unit.build(MyRecipe(chunk_size=heta_unit.metadata["chunk_size"]))
    """
    return heta_unit.build(heta_recipe)


@pytest.fixture
def heta_case(request: pytest.FixtureRequest) -> CaseItem:
    """The current case: ``case``, ``mode``, and ``run(knowledge_base)``."""
    return CaseItem(run_of(request.config), request.node, _unit_node(request).entry, request.param)
