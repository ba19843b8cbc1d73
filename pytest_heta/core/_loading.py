"""Loading: a benchmark is prepared, its cases and run units are read and checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pytest_heta.codes import coded
from pytest_heta.core._loop import enter_loop
from pytest_heta.errors import ConfigurationError, DuplicateIdError, PlanInvalidError, shown
from pytest_heta.evaluators import as_evaluator
from pytest_heta.models import (
    BenchmarkCase,
    BenchmarkManifest,
    BenchmarkRunUnit,
    BenchmarkWorkspace,
    PreparedBenchmark,
)
from pytest_heta.protocols import BenchmarkEvaluatorProtocol, BenchmarkProtocol

__all__ = [
    "FailOn",
    "LoadedBenchmark",
    "Suite",
    "check_name",
    "listed_evaluators",
    "load_benchmark",
]

FailOn = Literal["error", "miss", "gate"]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Suite:
    """A benchmark with what its suite file says about running it.

    Attributes:
        benchmark: The adapter.
        name: Name to use in place of the manifest's.
        modes: Query modes to ask; empty means all that the recipe has.
        top_k: Depth to ask for; None means the deepest k needed, at least 10.
        gates: Gates as text.
        fail_on: What fails a test item; None leaves it to the options.
        evaluators: Evaluators or measure strings; None means the adapter's.
        options: Query options.
    """

    benchmark: BenchmarkProtocol
    name: str | None = None
    modes: tuple[str, ...] = ()
    top_k: int | None = None
    gates: tuple[str, ...] = ()
    fail_on: FailOn | None = None
    evaluators: tuple[BenchmarkEvaluatorProtocol | str, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadedBenchmark:
    """A benchmark that was prepared and read, but for its documents.

    Attributes:
        suite: What the suite file says.
        manifest: Manifest, its name replaced by the suite's.
        prepared: What the adapter's ``prepare`` returned.
        cases: All cases in the dataset's order, by id.
        units: All run units, their case ids filled in.
        evaluators: The evaluators, in order.
        warnings: What is odd about the benchmark.
        workspace: Folders that it was prepared with; None if it was made by hand.
    """

    suite: Suite
    manifest: BenchmarkManifest
    prepared: PreparedBenchmark
    cases: Mapping[str, BenchmarkCase]
    units: tuple[BenchmarkRunUnit, ...]
    evaluators: tuple[BenchmarkEvaluatorProtocol, ...]
    warnings: tuple[str, ...] = ()
    workspace: BenchmarkWorkspace | None = None


def check_name(kind: str, name: str) -> str:
    """Return ``name`` if it may stand in node ids.

    Raises:
        ConfigurationError: if it holds other characters than A-Z a-z 0-9 _ -.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{kind} name {name!r} is not allowed", hint="use A-Z, a-z, 0-9, _ and -"
        )
    return name


async def load_benchmark(suite: Suite, workspace: BenchmarkWorkspace) -> LoadedBenchmark:
    """Prepare a benchmark and read its cases and run units.

    Raises:
        BenchmarkError: if the adapter's data is wrong, or cases and units do
            not fit together.
        ConfigurationError: if an evaluator of the suite is wrong.
    """
    await enter_loop()  # adapters may wait for anything
    benchmark = suite.benchmark
    manifest = BenchmarkManifest.model_validate(benchmark.manifest)
    if suite.name is not None:
        manifest = manifest.model_copy(update={"name": check_name("benchmark", suite.name)})
    prepared = await benchmark.prepare(workspace)
    cases: dict[str, BenchmarkCase] = {}
    field_sets: dict[frozenset[str], set[str]] = {}
    async for raw_case in benchmark.cases(prepared):
        # A case that was made as one is right: to look at it again finds nothing.
        is_case = type(raw_case) is BenchmarkCase
        case = raw_case if is_case else BenchmarkCase.model_validate(raw_case)
        if case.case_id in cases:
            raise DuplicateIdError(
                f"case id {case.case_id!r} stands twice",
                where=f"benchmark {manifest.name}",
                hint="case ids are unique within a benchmark",
            )
        cases[case.case_id] = case
        _share_field_sets(case, field_sets)
    declared = [
        BenchmarkRunUnit.model_validate(unit) async for unit in benchmark.run_units(prepared)
    ]
    warnings: list[str] = []
    units = _fill_units(declared, cases, manifest, benchmark, warnings)
    given = suite.evaluators if suite.evaluators is not None else benchmark.evaluators()
    evaluators = tuple(as_evaluator(evaluator) for evaluator in listed_evaluators(given))
    _check_evaluator_names(evaluators, manifest.name)
    return LoadedBenchmark(
        suite=suite,
        manifest=manifest,
        prepared=prepared,
        cases=cases,
        units=units,
        evaluators=evaluators,
        warnings=tuple(warnings),
        workspace=workspace,
    )


def _share_field_sets(case: BenchmarkCase, known: dict[frozenset[str], set[str]]) -> None:
    """Let cases share what pydantic notes of each model: which fields were given.

    These sets are a third of the memory of a case, and nearly all are equal. A
    frozen model never changes its own, and a copy of a model has another.
    """
    for model in (case, case.expected, *case.expected.evidence):
        given = model.model_fields_set
        shared = known.setdefault(frozenset(given), given)
        if shared is not given:
            object.__setattr__(model, "__pydantic_fields_set__", shared)


def listed_evaluators(given: object) -> tuple[BenchmarkEvaluatorProtocol | str, ...]:
    """Return evaluators as they were given in a list, a set, or one text.

    Raises:
        ConfigurationError: for anything else.
    """
    if isinstance(given, str):
        return (given,)
    if isinstance(given, set | frozenset):
        # Its own order differs between processes.
        return tuple(sorted(given, key=lambda item: str(getattr(item, "name", item))))
    if not isinstance(given, Iterable):
        raise ConfigurationError(
            f"evaluators = {shown(given)} is no list", hint='write evaluators=["ndcg@10"]'
        )
    return tuple(given)


def _check_evaluator_names(
    evaluators: Sequence[BenchmarkEvaluatorProtocol], benchmark: str
) -> None:
    seen: set[str] = set()
    for evaluator in evaluators:
        if evaluator.name in seen:
            raise ConfigurationError(
                f"evaluator {evaluator.name!r} stands twice",
                where=f"benchmark {benchmark}",
                hint="one evaluator gives one score; give the second another name",
            )
        seen.add(evaluator.name)


def _fill_units(
    declared: Sequence[BenchmarkRunUnit],
    cases: Mapping[str, BenchmarkCase],
    manifest: BenchmarkManifest,
    benchmark: BenchmarkProtocol,
    warnings: list[str],
) -> tuple[BenchmarkRunUnit, ...]:
    """Return the units with "all" spelt out for cases, checked against the cases."""
    where = f"benchmark {manifest.name}"
    if not declared:
        raise PlanInvalidError("no run units", where=where, hint="yield at least one")
    # Its adapters give empty tuples the meaning "all" also beside other units.
    lenient = type(benchmark).__module__.split(".")[0] == "heta_framework"
    known = {case_id: case_id for case_id in cases}
    units: list[BenchmarkRunUnit] = []
    seen: set[str] = set()
    for unit in declared:
        if unit.unit_id in seen:
            raise DuplicateIdError(f"run unit {unit.unit_id!r} stands twice", where=where)
        seen.add(unit.unit_id)
        empty = [name for name in ("case_ids", "document_ids") if not getattr(unit, name)]
        if empty and len(declared) > 1:
            message = (
                f"run unit {unit.unit_id!r} has empty {' and '.join(empty)}, which means all"
                f" only in a benchmark with a single unit"
            )
            if not lenient:
                raise PlanInvalidError(message, where=where, hint="name them")
            warnings.append(coded("unit-means-all", message))
        _check_unit_cases(unit, cases, where)
        # The cases' own texts: an adapter may have made others of the same ids.
        case_ids = tuple(map(known.__getitem__, unit.case_ids)) or tuple(cases)
        units.append(unit.model_copy(update={"case_ids": case_ids}))
    covered = {case_id for unit in units for case_id in unit.case_ids}
    missing = [case_id for case_id in cases if case_id not in covered]
    if missing:
        raise PlanInvalidError(
            f"{len(missing)} of {len(cases)} cases are in no run unit, the first is {missing[0]!r}",
            where=where,
            hint="add them to a run unit",
        )
    return tuple(units)


def _check_unit_cases(
    unit: BenchmarkRunUnit, cases: Mapping[str, BenchmarkCase], where: str
) -> None:
    for case_id in unit.case_ids:
        if case_id not in cases:
            raise PlanInvalidError(
                f"run unit {unit.unit_id!r} names case {case_id!r}, which does not exist",
                where=where,
            )
    if len(set(unit.case_ids)) != len(unit.case_ids):
        raise DuplicateIdError(f"run unit {unit.unit_id!r} names a case twice", where=where)
