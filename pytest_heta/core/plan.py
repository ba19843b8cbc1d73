"""The plan of a run: which samples there are, and what is computed for each.

A plan is made of one benchmark and one recipe, before anything is built. It
is a plain value: xdist workers write it down and the controller reads it.
`pytest_heta.core._loading` reads the benchmark that is planned; what others
need of it is here as well.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from numbers import Integral, Real
from typing import Any, Final, NamedTuple, TypeGuard, get_args

from pytest_heta.core._loading import (
    FailOn,
    LoadedBenchmark,
    Suite,
    check_name,
    load_benchmark,
)
from pytest_heta.core._plain import exception_text, plain
from pytest_heta.errors import (
    ConfigurationError,
    ModeUnknownError,
    RecipeInvalidError,
    did_you_mean,
    shown,
)
from pytest_heta.evaluators import as_evaluator
from pytest_heta.models import BenchmarkCase, BenchmarkManifest, BenchmarkRunUnit, Direction
from pytest_heta.protocols import BenchmarkEvaluatorProtocol

__all__ = [
    "DEFAULT_MODE",
    "UNKNOWN_WHETHER_APPLIES",
    "BenchmarkPlan",
    "CasePlan",
    "FailOn",
    "LoadedBenchmark",
    "MetricSpec",
    "PlanSettings",
    "Sample",
    "Suite",
    "UnitPlan",
    "check_name",
    "load_benchmark",
    "metric_spec",
    "plan_benchmark",
    "recipe_modes",
]

DEFAULT_MODE: Final = "default"
"""Mode of a recipe that does not say its modes before the build: the knowledge base's only one."""

DEFAULT_TOP_K: Final = 10

_NOTHING: Final[Mapping[str, str]] = {}
"""What most cases are exempt from, and the like: they share it."""

UNKNOWN_WHETHER_APPLIES: Final = "unknown"
"""What stands for an evaluator that raised when it was asked whether it applies to a case."""


class Sample(NamedTuple):
    """Identity of one question that is asked: ids, never a position."""

    benchmark: str
    recipe: str
    unit: str
    mode: str
    case: str
    repeat: int = 0


class PlanSettings(NamedTuple):
    """What the options of a run change about every plan.

    Attributes:
        modes: Query modes to ask in place of the suites'.
        top_k: Depth to ask for in place of the suites'.
        options: Query options over the suites'.
        limit: Only the first so many cases of each benchmark.
        sample: Only so many cases of each benchmark, chosen by ``seed``.
        seed: Seed of that choice.
        repeat: How often each case is asked.
    """

    modes: tuple[str, ...] = ()
    top_k: int | None = None
    options: Mapping[str, Any] = _NOTHING
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    repeat: int = 1


class MetricSpec(NamedTuple):
    """What aggregates and gates need to know of an evaluator.

    Attributes:
        name: Name of the metric.
        direction: Whether higher or lower is better.
        worst: Value that an errored sample counts as; None if there is none.
        k: Depth the metric looks at, None if it has none.
        bounded: Whether its values lie in 0..1.
    """

    name: str
    direction: Direction = "higher"
    worst: float | None = 0.0
    k: int | None = None
    bounded: bool = False


class CasePlan(NamedTuple):
    """A planned case without its expectations.

    Attributes:
        case_id: Id of the case.
        query: Text of the query.
        labels: Labels of the case.
        exempt: Metrics that do not apply, ``skipped`` or ``unjudged``, and
            those that cannot say so, `UNKNOWN_WHETHER_APPLIES`.
    """

    case_id: str
    query: str
    labels: Mapping[str, Any] = _NOTHING
    exempt: Mapping[str, str] = _NOTHING


class UnitPlan(NamedTuple):
    """A planned run unit: only units with planned cases are in a plan."""

    unit_id: str
    document_ids: tuple[str, ...]
    case_ids: tuple[str, ...]
    metadata: Mapping[str, Any] = _NOTHING


@dataclass(frozen=True, slots=True)
class BenchmarkPlan:
    """Everything that one run asks of one benchmark and one recipe.

    Attributes:
        suite_id: Node id of the suite file (or another name of its origin).
        label: ``benchmark``, or ``benchmark@recipe`` when there are several
            recipes: how the plan is called in node ids and gates.
        benchmark: Manifest, its name replaced by the suite's.
        recipe_name: Name of the recipe.
        recipe_manifest: What the recipe says of itself.
        modes: Query modes, in order.
        top_k: Depth that is asked for.
        options: Query options.
        units: Units in the benchmark's order.
        cases: Planned cases in the dataset's order, by id.
        metrics: Metrics in the evaluators' order.
        gates: Gates of the suite, as text.
        fail_on: What fails an item, as the suite says it.
        repeat: How often each case is asked.
        case_count: Cases of the whole dataset.
        reduced: Whether a limit or a sample made the plan smaller.
        warnings: What is odd about the benchmark.
    """

    suite_id: str
    label: str
    benchmark: BenchmarkManifest
    recipe_name: str
    recipe_manifest: Mapping[str, Any]
    modes: tuple[str, ...]
    top_k: int
    options: Mapping[str, Any]
    units: tuple[UnitPlan, ...]
    cases: Mapping[str, CasePlan]
    metrics: tuple[MetricSpec, ...]
    gates: tuple[str, ...] = ()
    fail_on: FailOn | None = None
    repeat: int = 1
    case_count: int = 0
    reduced: bool = False
    warnings: tuple[str, ...] = ()

    def samples(self) -> Iterator[Sample]:
        """Yield every sample in the report's order: unit, mode, case, repeat."""
        for unit in self.units:
            for mode, case_id, repeat in product(self.modes, unit.case_ids, range(self.repeat)):
                yield Sample(
                    self.benchmark.name, self.recipe_name, unit.unit_id, mode, case_id, repeat
                )

    @property
    def samples_per_mode(self) -> int:
        """Number of planned samples of each mode."""
        return self.repeat * sum(len(unit.case_ids) for unit in self.units)

    def as_json(self) -> str:
        """Return the plan as JSON text; values that JSON lacks become plain data."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        data["benchmark"] = plain(self.benchmark)
        data["options"] = plain(self.options)
        data["units"] = [
            {
                "unit_id": unit.unit_id,
                "document_ids": unit.document_ids,
                "case_ids": unit.case_ids,
                "metadata": plain(unit.metadata),
            }
            for unit in self.units
        ]
        data["cases"] = [
            [case.case_id, case.query, plain(case.labels), case.exempt]
            for case in self.cases.values()
        ]
        data["metrics"] = [metric._asdict() for metric in self.metrics]
        return json.dumps(data, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> BenchmarkPlan:
        """Return the plan that `as_json` wrote."""
        data = json.loads(text)
        data["benchmark"] = BenchmarkManifest.model_validate(data["benchmark"])
        data["units"] = tuple(
            UnitPlan(
                unit["unit_id"],
                tuple(unit["document_ids"]),
                tuple(unit["case_ids"]),
                unit["metadata"],
            )
            for unit in data["units"]
        )
        data["cases"] = {row[0]: CasePlan(*row) for row in data["cases"]}
        data["metrics"] = tuple(MetricSpec(**metric) for metric in data["metrics"])
        for name in ("modes", "gates", "warnings"):
            data[name] = tuple(data[name])
        return cls(**data)


# --- planning ----------------------------------------------------------------


def recipe_modes(recipe: object) -> tuple[str, ...]:
    """Return the modes that a recipe says it has before the build, or ().

    Raises:
        RecipeInvalidError: if what it says are no names.
    """
    declared = getattr(recipe, "available_queries", None)
    if declared is None or callable(declared):
        return ()
    if isinstance(declared, str):
        return (declared,)
    # An iterator could be asked once only.
    if not isinstance(declared, Collection) or not all(isinstance(m, str) for m in declared):
        raise RecipeInvalidError(
            f"recipe {getattr(recipe, 'name', '?')!r}: `available_queries` is {shown(declared)}",
            hint="give a list of mode names",
        )
    # A set has no order of its own, and workers must agree on one.
    return tuple(sorted(declared) if isinstance(declared, set | frozenset) else declared)


def metric_spec(evaluator: BenchmarkEvaluatorProtocol) -> MetricSpec:
    """Return what aggregates and gates need to know of an evaluator.

    Raises:
        ConfigurationError: if it declares something that cannot be meant.
    """
    direction: Any = getattr(evaluator, "direction", "higher")
    if direction not in get_args(Direction):
        raise _wrong_attribute(evaluator, "direction", "use higher or lower")
    k = getattr(evaluator, "k", None)
    if k is not None and (isinstance(k, bool) or not isinstance(k, Integral) or k < 1):
        raise _wrong_attribute(evaluator, "k", "use a whole number from 1")
    worst = getattr(evaluator, "worst", 0.0 if direction == "higher" else None)
    return MetricSpec(
        name=evaluator.name,
        direction=direction,
        worst=float(worst) if _is_finite(worst) else None,
        k=None if k is None else int(k),
        bounded=bool(getattr(evaluator, "bounded", False)),
    )


def _wrong_attribute(
    evaluator: BenchmarkEvaluatorProtocol, name: str, hint: str
) -> ConfigurationError:
    value = shown(getattr(evaluator, name))
    message = f"evaluator {evaluator.name!r}: {name} = {value} is not allowed"
    return ConfigurationError(message, hint=hint)


def _is_finite(value: object) -> TypeGuard[Real | Decimal]:
    return isinstance(value, Real | Decimal) and math.isfinite(value)


def plan_benchmark(
    loaded: LoadedBenchmark,
    recipe: object,
    settings: PlanSettings,
    *,
    suite_id: str = "",
    several_recipes: bool = False,
    gated_measures: Sequence[str] = (),
) -> tuple[BenchmarkPlan, tuple[BenchmarkEvaluatorProtocol, ...]]:
    """Plan the samples of one benchmark and one recipe.

    Args:
        loaded: The benchmark.
        recipe: The recipe.
        settings: What the options change.
        suite_id: Node id of the suite file.
        several_recipes: Whether the run has more than one recipe.
        gated_measures: Measures that gates name; those without an evaluator
            get one.

    Returns:
        The plan, and the evaluators of its metrics in the same order.

    Raises:
        ConfigurationError: if a mode does not exist, or ``top_k`` is below a
            gated k.
    """
    suite = loaded.suite
    name = loaded.manifest.name
    recipe_name = check_name("recipe", str(getattr(recipe, "name", "")))
    evaluators = list(loaded.evaluators)
    known = {evaluator.name for evaluator in evaluators}
    evaluators += [as_evaluator(m) for m in dict.fromkeys(gated_measures) if m not in known]
    metrics = tuple(metric_spec(evaluator) for evaluator in evaluators)
    applicability = _applicability(evaluators)
    case_ids = _select_cases(tuple(loaded.cases), settings)
    plan = BenchmarkPlan(
        suite_id=suite_id,
        label=f"{name}@{recipe_name}" if several_recipes else name,
        benchmark=loaded.manifest,
        recipe_name=recipe_name,
        recipe_manifest=_manifest_of(recipe),
        modes=_select_modes(suite, recipe, settings),
        top_k=_select_top_k(suite, settings, metrics, frozenset(gated_measures)),
        options={**suite.options, **settings.options},
        units=_select_units(loaded.units, frozenset(case_ids)),
        cases={case_id: _case_plan(loaded.cases[case_id], applicability) for case_id in case_ids},
        metrics=metrics,
        gates=suite.gates,
        fail_on=suite.fail_on,
        repeat=settings.repeat,
        case_count=len(loaded.cases),
        reduced=len(case_ids) < len(loaded.cases),
        warnings=loaded.warnings,
    )
    return plan, tuple(evaluators)


def _manifest_of(recipe: object) -> dict[str, Any]:
    manifest = getattr(recipe, "manifest", None)
    try:
        value = manifest() if callable(manifest) else manifest
    except Exception as error:
        raise RecipeInvalidError(
            f"recipe {getattr(recipe, 'name', '?')!r}: `manifest` fails: {exception_text(error)}"
        ) from error
    if value is None:
        return {}
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise RecipeInvalidError(
            f"recipe {getattr(recipe, 'name', '?')!r}: `manifest` is asynchronous",
            hint="make it an ordinary method: it is asked before anything runs",
        )
    value = plain(value)
    return value if isinstance(value, dict) else {"manifest": value}


def _select_cases(case_ids: tuple[str, ...], settings: PlanSettings) -> tuple[str, ...]:
    if settings.sample is not None and settings.sample < len(case_ids):
        chosen = set(random.Random(f"heta {settings.seed}").sample(case_ids, settings.sample))  # noqa: S311
        case_ids = tuple(case_id for case_id in case_ids if case_id in chosen)
    return case_ids if settings.limit is None else case_ids[: settings.limit]


def _select_units(
    units: Sequence[BenchmarkRunUnit], chosen: frozenset[str]
) -> tuple[UnitPlan, ...]:
    return tuple(
        UnitPlan(unit.unit_id, unit.document_ids, kept, unit.metadata)
        for unit in units
        if (kept := tuple(case_id for case_id in unit.case_ids if case_id in chosen))
    )


def _select_modes(suite: Suite, recipe: object, settings: PlanSettings) -> tuple[str, ...]:
    declared = recipe_modes(recipe)
    modes = settings.modes or suite.modes or declared or (DEFAULT_MODE,)
    for mode in modes:
        check_name("mode", mode)
        if declared and mode not in declared:
            raise ModeUnknownError(
                f"recipe {getattr(recipe, 'name', '?')!r} has no mode {mode!r}",
                hint=did_you_mean(mode, declared),
            )
    return tuple(dict.fromkeys(modes))


def _select_top_k(
    suite: Suite, settings: PlanSettings, metrics: Sequence[MetricSpec], gated: frozenset[str]
) -> int:
    explicit = settings.top_k if settings.top_k is not None else suite.top_k
    if explicit is None:
        return max([DEFAULT_TOP_K, *(metric.k for metric in metrics if metric.k is not None)])
    for metric in metrics:
        if metric.name in gated and metric.k is not None and metric.k > explicit:
            raise ConfigurationError(
                f"top_k = {explicit} is below the k of the gated metric {metric.name!r}",
                hint=f"ask for at least {metric.k} results or gate a smaller k",
            )
    return explicit


class _Applicability(NamedTuple):
    """Whom to ask whether metrics apply to a case, and what they are called if not."""

    applies: Callable[[BenchmarkCase], object]
    why_not: dict[str, str]


def _case_plan(case: BenchmarkCase, applicability: Sequence[_Applicability]) -> CasePlan:
    exempt: Mapping[str, str] = _NOTHING
    for applies, why_not in applicability:
        try:
            if applies(case):
                continue
            exempt = {**exempt, **why_not}
        except Exception:  # noqa: BLE001 - the score of the case will say so
            exempt = {**exempt, **dict.fromkeys(why_not, UNKNOWN_WHETHER_APPLIES)}
    return CasePlan(case.case_id, case.query, case.labels, exempt)


def _applicability(
    evaluators: Sequence[BenchmarkEvaluatorProtocol],
) -> tuple[_Applicability, ...]:
    """Return whom to ask about which metrics: a function that many share is asked once."""
    known: dict[int, _Applicability] = {}
    for evaluator in evaluators:
        applies = getattr(evaluator, "applies", None)
        if applies is None:
            continue
        if not callable(applies) or inspect.iscoroutinefunction(applies):
            hint = "write an ordinary method that takes the case"
            raise _wrong_attribute(evaluator, "applies", hint)
        why = "unjudged" if getattr(evaluator, "requires_judgment", False) else "skipped"
        known.setdefault(id(applies), _Applicability(applies, {})).why_not[evaluator.name] = why
    return tuple(known.values())
