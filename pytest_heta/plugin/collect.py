"""Collection: suite files and dataset folders become benchmarks, units and cases.

The tree is module → benchmark → run unit → one function per mode with one
parameter per case. A unit is a `pytest.Class`, so that class-scoped fixtures
are unit-scoped; its items are `pytest.Function` objects, so that every other
plugin sees what it knows. `pytest_heta.plugin._case_function` makes them where
it can, pytest itself where it cannot.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

import pytest

from pytest_heta.api import as_suite
from pytest_heta.core._calls import place_of
from pytest_heta.core.plan import Sample, Suite, UnitPlan
from pytest_heta.errors import HetaError
from pytest_heta.plugin import is_suite_file, is_suite_name
from pytest_heta.plugin._case_function import (
    PARAMETER,
    CaseFunction,
    extra_keywords,
    heta_mark,
    light_items,
)
from pytest_heta.plugin._selection import SelectedItems
from pytest_heta.plugin.datasets import DATASET_FILES, named_dataset
from pytest_heta.plugin.ids import distinct_item_ids, unit_node_name
from pytest_heta.plugin.state import PlanEntry, Run, run_of
from pytest_heta.plugin.tracebacks import adapter_error, collect_error, declarations_of

__all__ = [
    "BenchmarkNode",
    "CollectionPlugin",
    "DatasetFile",
    "SuiteModule",
    "UnitNode",
    "declarations_of",
    "declared_suites",
    "unit_node_of",
]

_SUITES: Final = pytest.StashKey[dict[str, Suite]]()
"""The suites that a module declares."""


class SuiteModule(pytest.Module):
    """A suite file: its benchmarks, and its ordinary tests."""

    def __repr__(self) -> str:
        return f"<Suite {self.name}>"

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Import the file; say in one line what it declares wrongly."""
        with declarations_of(self):
            return super().collect()


class DatasetFile(pytest.Module):
    """The file that stands for a dataset folder named on the command line."""

    suite: Suite

    def __repr__(self) -> str:
        return f"<Dataset {self.name}>"

    @classmethod
    def from_suite(cls, parent: pytest.Collector, *, path: Path, suite: Suite) -> DatasetFile:
        """Return the node for a folder's benchmark."""
        node: DatasetFile = cls.from_parent(parent, path=path)
        node.suite = suite
        # The module that a Python file would be; nothing is imported.
        node.obj = ModuleType(path.stem)
        return node

    def collect(self) -> Iterator[pytest.Collector]:
        """Yield the folder's benchmark for each recipe."""
        yield from benchmark_nodes(self, self.suite)


def declared_suites(module: ModuleType) -> dict[str, Suite]:
    """Return the suites of a module by the names they are declared under.

    Left out are names that begin with ``_``, a benchmark that a suite of the
    module wraps, and second names of the same object.
    """
    declared = {
        name: (obj, suite)
        for name, obj in vars(module).items()
        if not name.startswith("_") and (suite := as_suite(obj)) is not None
    }
    known = {id(suite.benchmark) for obj, suite in declared.values() if obj is suite}
    suites = {}
    for name, (obj, suite) in declared.items():
        if id(obj) not in known:
            known.add(id(obj))
            suites[name] = suite
    return suites


def benchmark_nodes(parent: pytest.Module, suite: Suite) -> list[BenchmarkNode]:
    """Return one node for each recipe of the run."""
    run = run_of(parent.config)
    name = suite.name or getattr(suite.benchmark.manifest, "name", "benchmark")
    nodes = []
    for recipe in run.recipes:
        label = f"{name}@{recipe.name}" if len(run.recipes) > 1 else name
        node: BenchmarkNode = BenchmarkNode.from_parent(parent, name=label)
        node.suite, node.recipe = suite, recipe
        nodes.append(node)
    return nodes


class BenchmarkNode(pytest.Collector):
    """One benchmark with one recipe."""

    suite: Suite
    recipe: Any
    functions: Mapping[str, Callable[..., None]]
    """The test function of each mode, which all units share."""

    def __repr__(self) -> str:
        return f"<Benchmark {self.name}>"

    def collect(self) -> Iterator[UnitNode]:
        """Yield the run units that have planned cases."""
        run = run_of(self.config)
        parent = self.getparent(pytest.Module)
        suite_id = parent.nodeid if parent is not None else self.nodeid
        try:
            entry = run.plan_suite(self.suite, suite_id, self.recipe)
        except HetaError as error:
            # An adapter that raises is in a file of the user.
            source = place_of(error) or (None if error.where else self.nodeid)
            raise collect_error(self.config, error, source) from error
        except Exception as error:
            found = adapter_error(error)
            source = place_of(error) or self.nodeid
            raise collect_error(self.config, found, source) from error
        self.functions = {mode: _case_function(mode, self.path) for mode in entry.plan.modes}
        declared = {unit.unit_id: unit.case_ids for unit in entry.loaded.units}
        for unit in entry.plan.units:
            yield UnitNode.from_plan(
                self, entry=entry, unit=unit, declared_case_ids=declared[unit.unit_id]
            )


class UnitNode(pytest.Class):
    """One run unit: its class-scoped fixtures hold the knowledge base."""

    entry: PlanEntry
    unit: UnitPlan
    declared_case_ids: Sequence[str]
    parent: BenchmarkNode

    _only_first = False

    def __repr__(self) -> str:
        return f"<RunUnit {self.name}>"

    @classmethod
    def from_plan(
        cls,
        parent: BenchmarkNode,
        *,
        entry: PlanEntry,
        unit: UnitPlan,
        declared_case_ids: Sequence[str],
    ) -> UnitNode:
        """Return the node of a planned unit, which may have more cases than planned."""
        node: UnitNode = cls.from_parent(parent, name=unit_node_name(unit.unit_id))
        node.entry, node.unit, node.declared_case_ids = entry, unit, declared_case_ids
        return node

    @cached_property
    def obj(self) -> type:
        """The test class: one function per mode."""
        return type("RunUnit", (), {"__module__": __name__, **self.parent.functions})

    def collect(self) -> Sequence[pytest.Item]:
        """Return the items, the modes one after the other."""
        items = light_items(self)
        if items is None:
            items = self._items_of_pytest()
            for item in items:
                item.extra_keyword_matches.update(extra_keywords(self, sample_of(item)))
        return items

    def first_items(self) -> list[pytest.Item]:
        """Return what pytest makes of the first case alone."""
        self._only_first = True
        try:
            return self._items_of_pytest()
        finally:
            self._only_first = False

    def _items_of_pytest(self) -> list[Any]:
        return list(super().collect())

    def funcnamefilter(self, name: str) -> bool:
        """Whether ``name`` is a test function: the modes are."""
        return name in self.entry.plan.modes

    @cached_property
    def item_ids(self) -> list[str]:
        """The ids of the unit's cases, as they stand in node ids.

        They are told apart among all cases of the unit, so that a limit or a
        sample gives no case another name.
        """
        names = distinct_item_ids(self.declared_case_ids)
        return [names[case_id] for case_id in self.unit.case_ids]

    def samples(self, mode: str) -> Iterator[Sample]:
        """Yield the samples of one mode, in the dataset's order."""
        plan = self.entry.plan
        benchmark, recipe, unit_id = plan.benchmark.name, plan.recipe_name, self.unit.unit_id
        for case_id in self.unit.case_ids:
            yield Sample(benchmark, recipe, unit_id, mode, case_id)

    def parameters(self, mode: str) -> Iterator[Any]:
        """Yield what one mode is parametrized with: of the first case, or of all."""
        cases = zip(self.samples(mode), self.item_ids, strict=True)
        for sample, item_id in islice(cases, 1 if self._only_first else None):
            yield pytest.param(sample, marks=heta_mark(self, sample), id=item_id)


def _case_function(mode: str, path: Path) -> Callable[..., None]:
    """Return the test function of one mode, placed in the suite's file.

    pytest tells users where a test is from its code object; a test that is
    declared by a suite file is in that file.
    """

    def ask(self: object, heta_case: Any, heta_kb: Any) -> None:  # noqa: ARG001 - a method
        __tracebackhide__ = True
        heta_case.run(heta_kb)

    code = ask.__code__.replace(co_filename=str(path), co_firstlineno=1, co_name=mode)
    function = FunctionType(code, ask.__globals__, mode, None, ask.__closure__)
    function.__qualname__ = mode
    function.__doc__ = "Ask one case and score the response."
    function.__annotations__ = {}
    return function


def _rewrite_assertions(path: Path) -> None:
    """Let pytest explain failed assertions in a file that ``python_files`` does not match.

    pytest asks for a module's name, which depends on its import mode: some
    part of the path with dots.
    """
    parts = [part.replace(".", "_") for part in path.with_suffix("").parts[1:]]
    names = {".".join(parts[start:]) for start in range(len(parts))}
    pytest.register_assert_rewrite(*sorted(names - sys.modules.keys()))


def unit_node_of(item: pytest.Item) -> UnitNode | None:
    """Return the run unit of an item, None for an ordinary test."""
    parent = item.parent
    return parent if isinstance(parent, UnitNode) else None


class CollectionPlugin:
    """The hooks that collect benchmarks."""

    def __init__(self, run: Run) -> None:
        self._run = run

    # -- files ----------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """Collect suite files in folders, though ``python_files`` does not match them.

        pytest itself collects a Python file that is named on the command line
        or matches ``python_files``; this adds the others and a dataset
        folder's file, so that nothing is collected twice.
        """
        collected = yield
        if file_path.name in DATASET_FILES:
            benchmark = named_dataset(parent.session, file_path)
            if benchmark is not None:
                suite = Suite(benchmark)
                return [*collected, DatasetFile.from_suite(parent, path=file_path, suite=suite)]
        if is_suite_file(file_path) and not any(
            isinstance(node, SuiteModule) for node in collected
        ):
            module = parent.session.gethookproxy(file_path).pytest_pycollect_makemodule(
                module_path=file_path, parent=parent
            )
            return [*collected, module]
        return collected

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makemodule(
        self, module_path: Path, parent: pytest.Collector
    ) -> pytest.Module | None:
        """Return a suite's module."""
        if is_suite_file(module_path):
            _rewrite_assertions(module_path)
            module: pytest.Module = SuiteModule.from_parent(parent, path=module_path)
            return module
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(
        self, collector: pytest.Module | pytest.Class, name: str
    ) -> list[BenchmarkNode] | None:
        """Turn a benchmark declared at module level into nodes.

        A file that pytest collects by itself may also get its benchmarks from
        a module that is not ours.
        """
        if not isinstance(collector, pytest.Module) or not is_suite_name(collector.path):
            return None
        # pytest asks once for every name of the module.
        if _SUITES not in collector.stash:
            collector.stash[_SUITES] = declared_suites(collector.obj)
        suite = collector.stash[_SUITES].get(name)
        return None if suite is None else benchmark_nodes(collector, suite)

    # -- items ----------------------------------------------------------------

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each mode of a unit one item per case."""
        unit = metafunc.definition.parent
        if not isinstance(unit, UnitNode):
            return
        parameters = list(unit.parameters(metafunc.function.__name__))
        metafunc.parametrize(PARAMETER, parameters, indirect=True)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Bring the items of a unit together again when another plugin shuffled them.

        A knowledge base is built once per unit only when the unit's items
        follow each other. The unit whose item comes first is first, so that
        ``--ff`` begins with the units that have failed cases.
        """
        yield
        by_unit: dict[object, list[pytest.Item]] = {}
        for item in items:
            by_unit.setdefault(unit_node_of(item) or item, []).append(item)
        items[:] = [item for group in by_unit.values() for item in group]

    # A wrapper comes before the hook of a worker that writes this down.
    @pytest.hookimpl(wrapper=True)
    def pytest_collection_finish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Note which samples were selected, or stop if a suite is declared wrongly."""
        items = [item for item in session.items if unit_node_of(item) is not None]
        self._run.selected = SelectedItems(items, _known_of)
        if not self._run.is_worker:
            self._run.check_refusals()
        yield


def _known_of(item: pytest.Item) -> tuple[str, Sample]:
    unit = unit_node_of(item)
    assert unit is not None  # noqa: S101 - for the type checker: items of units were chosen
    return unit.entry.plan.label, sample_of(item)


def sample_of(item: pytest.Item) -> Sample:
    """Return the sample that an item of a unit asks."""
    if isinstance(item, CaseFunction):
        return item.sample
    sample: Sample = item.callspec.params[PARAMETER]  # type: ignore[attr-defined]
    return sample
