"""Collection: suite files and dataset folders become benchmarks, units and cases.

The tree is module → benchmark → run unit → one function per mode with one
parameter per case. A unit is a `pytest.Class`, so that class-scoped fixtures
are unit-scoped; its items are stock `pytest.Function` objects, so that every
other plugin sees what it knows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

import pytest

from pytest_heta.api import as_suite
from pytest_heta.benchmarks import benchmark_from_folder
from pytest_heta.core.plan import Sample, Suite, UnitPlan
from pytest_heta.errors import HetaError
from pytest_heta.plugin import is_suite_file
from pytest_heta.plugin.state import PlanEntry, Run, run_of

__all__ = [
    "BenchmarkNode",
    "CollectionPlugin",
    "DatasetFile",
    "SuiteModule",
    "UnitNode",
    "case_item_id",
    "unit_node_of",
    "unit_node_name",
]

_DATASET_FILES: Final = ("queries.jsonl", "cases.jsonl")
_MAX_ID_LENGTH: Final = 80
_NOT_IN_CASE_ID: Final = re.compile(r"::|[\s\x00-\x1f\x7f-\x9f]")
_NOT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def case_item_id(case_id: str) -> str:
    """Return a case id as it stands in a node id.

    ``::``, white space and control characters become ``_``; an id of more
    than 80 characters is cut and gets eight hexadecimal digits of its SHA-256.
    """
    text = _NOT_IN_CASE_ID.sub("_", case_id)
    if len(text) > _MAX_ID_LENGTH:
        text = f"{text[:_MAX_ID_LENGTH]}-{_digest(case_id)}"
    return text


def unit_node_name(unit_id: str) -> str:
    """Return a unit id as it stands in a node id, made of ``A-Z a-z 0-9 _ -``."""
    text = _NOT_IN_NAME.sub("_", unit_id)
    if text != unit_id or len(text) > _MAX_ID_LENGTH:
        text = f"{text[:_MAX_ID_LENGTH]}-{_digest(unit_id)}"
    return text


def _distinct(texts: Sequence[str], raw: Sequence[str]) -> list[str]:
    """Return ``texts`` with a digest of the raw id behind all but the first of equals."""
    seen: set[str] = set()
    result = []
    for text, raw_text in zip(texts, raw, strict=True):
        unique = text if text not in seen else f"{text}-{_digest(raw_text)}"
        seen.add(unique)
        result.append(unique)
    return result


class SuiteModule(pytest.Module):
    """A suite file: its benchmarks, and its ordinary tests."""

    def __repr__(self) -> str:
        return f"<Suite {self.name}>"


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
            raise self.CollectError(str(error)) from error
        units = entry.plan.units
        names = _distinct(
            [unit_node_name(unit.unit_id) for unit in units], [unit.unit_id for unit in units]
        )
        for unit, name in zip(units, names, strict=True):
            yield UnitNode.from_plan(self, name=name, entry=entry, unit=unit)


class UnitNode(pytest.Class):
    """One run unit: its class-scoped fixtures hold the knowledge base."""

    entry: PlanEntry
    unit: UnitPlan

    def __repr__(self) -> str:
        return f"<RunUnit {self.name}>"

    @classmethod
    def from_plan(
        cls, parent: BenchmarkNode, *, name: str, entry: PlanEntry, unit: UnitPlan
    ) -> UnitNode:
        """Return the node of a planned unit."""
        node: UnitNode = cls.from_parent(parent, name=name)
        node.entry, node.unit = entry, unit
        node.obj = type(
            "RunUnit",
            (),
            {
                "__module__": __name__,
                **{mode: _case_function(mode, node.path) for mode in entry.plan.modes},
            },
        )
        return node

    def funcnamefilter(self, name: str) -> bool:
        """Whether ``name`` is a test function: the modes are."""
        return name in self.entry.plan.modes

    def item_ids(self) -> list[str]:
        """Return the ids of the unit's cases, as they stand in node ids."""
        return _distinct([case_item_id(c) for c in self.unit.case_ids], self.unit.case_ids)

    def samples(self, mode: str) -> list[Sample]:
        """Return the samples of one mode, in the dataset's order."""
        plan = self.entry.plan
        return [
            Sample(plan.benchmark.name, plan.recipe_name, self.unit.unit_id, mode, case_id)
            for case_id in self.unit.case_ids
        ]


def _case_function(mode: str, path: Path) -> Callable[..., None]:
    """Return the test function of one mode, placed in the suite's file.

    pytest tells users where a test is from its code object; a test that is
    declared by a suite file is in that file.
    """

    def ask(self: object, heta_case: Any, heta_kb: Any) -> None:  # noqa: ARG001 - a method
        heta_case.run(heta_kb)

    code = ask.__code__.replace(co_filename=str(path), co_firstlineno=1, co_name=mode)
    function = FunctionType(code, ask.__globals__, mode, None, ask.__closure__)
    function.__qualname__ = mode
    function.__doc__ = "Ask one case and score the response."
    function.__annotations__ = {}
    return function


def unit_node_of(item: pytest.Item) -> UnitNode | None:
    """Return the run unit of an item, None for an ordinary test."""
    parent = item.parent
    return parent if isinstance(parent, UnitNode) else None


class CollectionPlugin:
    """The hooks that collect benchmarks."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._added_pattern = False

    # -- files ----------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> Iterator[Any]:
        """Collect suite files in folders, though ``python_files`` does not match them.

        pytest itself collects a Python file that is named on the command line
        or matches ``python_files``; this adds the others and a dataset
        folder's file, so that nothing is collected twice.
        """
        collected: list[pytest.Collector] = yield
        if collected:
            return collected
        if is_suite_file(file_path):
            module = parent.session.gethookproxy(file_path).pytest_pycollect_makemodule(
                module_path=file_path, parent=parent
            )
            return [module]
        if file_path.name in _DATASET_FILES:
            return self._dataset_file(file_path, parent)
        return collected

    def _dataset_file(self, path: Path, parent: pytest.Collector) -> list[DatasetFile]:
        session = parent.session
        if not (session.isinitpath(path) or session.isinitpath(path.parent)):
            return []
        try:
            benchmark = benchmark_from_folder(path.parent)
        except HetaError as error:
            raise pytest.UsageError(str(error)) from error
        if benchmark is None:
            return []
        return [DatasetFile.from_suite(parent, path=path, suite=Suite(benchmark))]

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makemodule(
        self, module_path: Path, parent: pytest.Collector
    ) -> pytest.Module | None:
        """Return a suite's module."""
        if is_suite_file(module_path):
            module: pytest.Module = SuiteModule.from_parent(parent, path=module_path)
            return module
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(
        self, collector: pytest.Module | pytest.Class, name: str, obj: object
    ) -> list[BenchmarkNode] | None:
        """Turn a benchmark declared at module level into nodes."""
        if not isinstance(collector, SuiteModule) or name.startswith("__"):
            return None
        suite = as_suite(obj)
        return None if suite is None else benchmark_nodes(collector, suite)

    # -- items ----------------------------------------------------------------

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each mode of a unit one item per case."""
        unit = metafunc.definition.parent
        if not isinstance(unit, UnitNode):
            return
        mode = metafunc.function.__name__
        plan = unit.entry.plan
        parameters = [
            pytest.param(
                sample,
                marks=pytest.mark.heta(
                    **{
                        **_labels_as_keywords(plan.cases[sample.case].labels),
                        "benchmark": plan.label,
                        "unit": unit.unit.unit_id,
                        "mode": mode,
                    }
                ),
                id=item_id,
            )
            for sample, item_id in zip(unit.samples(mode), unit.item_ids(), strict=True)
        ]
        metafunc.parametrize("heta_case", parameters, indirect=True)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Let ``-k`` see raw case ids and labels."""
        unit = unit_node_of(item)
        if unit is None:
            return
        sample = sample_of(item)
        keywords = {sample.case, sample.unit}
        for value in unit.entry.plan.cases[sample.case].labels.values():
            values = value if isinstance(value, list | tuple) else [value]
            keywords.update(str(part) for part in values)
        item.extra_keyword_matches.update(keywords)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Bring the items of a unit together again when another plugin shuffled them.

        A knowledge base is built once per unit only when the unit's items
        follow each other.
        """
        by_unit: dict[object, list[pytest.Item]] = {}
        for item in items:
            by_unit.setdefault(unit_node_of(item) or item, []).append(item)
        items[:] = [item for group in by_unit.values() for item in group]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note which samples were selected."""
        for item in session.items:
            unit = unit_node_of(item)
            if unit is not None:
                self._run.selected[item.nodeid] = (unit.entry.plan.label, sample_of(item))


def sample_of(item: pytest.Item) -> Sample:
    """Return the sample that an item of a unit asks."""
    sample: Sample = item.callspec.params["heta_case"]  # type: ignore[attr-defined]
    return sample


def _labels_as_keywords(labels: Any) -> dict[str, Any]:
    """Return the labels that ``-m`` can match: identifiers with scalar values."""
    return {
        str(name): value
        for name, value in labels.items()
        if str(name).isidentifier() and isinstance(value, str | int | bool | None)
    }
