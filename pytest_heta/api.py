"""From names and import strings to objects, and a run in one call."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from pytest_heta.core._calls import place_of
from pytest_heta.core._loading import listed_evaluators
from pytest_heta.core._loop import LoopThread
from pytest_heta.core._plain import exception_text, portable_name
from pytest_heta.core._recipe_code import FILE_MODULE_PREFIX
from pytest_heta.core._size import DEFAULT_CACHE_BYTES
from pytest_heta.core.cache import KnowledgeBaseCache
from pytest_heta.core.gates import parse_gate
from pytest_heta.core.pace import DEFAULT_RETRIES, parse_rate
from pytest_heta.core.plan import PlanSettings, Suite, check_name, recipe_modes
from pytest_heta.core.result import ResponseLevel
from pytest_heta.core.suite import (
    as_suite,
    check_seconds,
    check_whole,
    is_benchmark_shaped,
    kind_of,
    listed_texts,
    suite,
)
from pytest_heta.errors import (
    ConfigurationError,
    ExtraMissingError,
    HetaError,
    RecipeInvalidError,
    RecipeNotFoundError,
    did_you_mean,
    from_here,
)
from pytest_heta.models import EvaluationReport
from pytest_heta.protocols import BenchmarkEvaluatorProtocol, BenchmarkProtocol

if TYPE_CHECKING:
    from pytest_heta.core.runner import RunnerOptions

__all__ = ["as_suite", "available_recipes", "data_dir", "load_recipe", "run", "suite"]

RECIPES: Final = "pytest_heta.recipes"
"""Entry-point group of recipes."""

_READ_THE_LINE: Final = "correct the line that is named"


def data_dir() -> Path | None:
    """Return the folder with public collections, None if there is none.

    It is named by the environment variable ``HETA_DATA_DIR``; the pytest
    plugin sets that from ini ``heta_data_dir`` when it is not set already.

    Raises:
        ConfigurationError: if the variable names something that is no folder:
            suites would be skipped without a word of the mistake.
    """
    value = os.environ.get("HETA_DATA_DIR")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise ConfigurationError(
            f"{value!r} is not a folder",
            where="HETA_DATA_DIR",
            hint="name the folder with the collections, or unset it",
        )
    return folder


# --- recipes -----------------------------------------------------------------


def available_recipes() -> dict[str, str]:
    """Return the recipes that are installed: name → where it is."""
    return {point.name: point.value for point in sorted(_entry_points())}


def _entry_points() -> list[EntryPoint]:
    return list(entry_points(group=RECIPES))


def load_recipe(spec: object, *, base: Path | None = None) -> Any:
    """Return the recipe that ``spec`` stands for.

    Args:
        spec: The name of an installed recipe, ``package.module:attribute``,
            ``path/file.py:attribute``, a recipe, or a class or function that
            makes one without arguments.
        base: Folder that a relative path starts from, and that modules are
            looked for in first; the current one by default.

    Raises:
        RecipeNotFoundError: if there is no such name, module, file or attribute.
        RecipeInvalidError: if importing fails, or the object is not a recipe.
        ExtraMissingError: if a built-in recipe needs packages that are not
            installed.
    """
    if not isinstance(spec, str):
        return _checked(_made(spec, kind_of(spec)), kind_of(spec))
    text = spec.strip()
    target, colon, attribute = text.rpartition(":")
    if text.endswith(".py") or (not colon and ("/" in text or "\\" in text)):
        raise RecipeNotFoundError(
            f"recipe {text!r} names a file but nothing in it", hint=f"write {text}:NAME"
        )
    if not colon:
        return _checked(_from_entry_point(text), text)
    folder = base if base is not None else Path.cwd()
    module = (
        _module_from_file(folder / target, text)
        if target.endswith(".py")
        else _module_from_name(target, folder, text)
    )
    return _checked(_made(_attribute(module, attribute, text), text), text)


def _from_entry_point(name: str) -> object:
    points = {point.name: point for point in _entry_points()}
    point = points.get(name)
    if point is None:
        raise RecipeNotFoundError(
            f"there is no recipe {name!r}",
            hint=f"{did_you_mean(name, sorted(points))}; or write package.module:attribute"
            " or path/file.py:attribute",
        )
    try:
        # Built-in factories import their optional packages when they are called.
        return _made(point.load(), name)
    except HetaError:
        raise
    except ImportError as error:
        if point.module.partition(".")[0] == "pytest_heta" and not _is_ours(error.name):
            raise ExtraMissingError(
                f"recipe {name!r} needs the package {error.name or 'of its extra'!r},"
                " which is not installed",
                hint="run: pip install 'pytest-heta[local]'",
            ) from error
        raise _import_failed(name, error, point.value) from error
    except Exception as error:
        raise _import_failed(name, error, point.value) from error


def _is_ours(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] == "pytest_heta"


def _import_failed(spec: str, error: Exception, where: str | None = None) -> RecipeInvalidError:
    places = [from_here(where)] if where else []
    place = place_of(error)
    if place is not None:
        # A line of the file says which file it is.
        places = [*(known for known in places if not place.startswith(known)), place]
    return RecipeInvalidError(
        f"recipe {spec!r} cannot be imported: {exception_text(error)}",
        where=", ".join(places) or None,
        hint=_READ_THE_LINE,
    )


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    """Let modules of ``folder`` be imported, for as long as this lasts."""
    entry = str(folder)
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.remove(entry)


def _module_from_file(path: Path, spec: str) -> ModuleType:
    if not path.is_file():
        raise RecipeNotFoundError(f"recipe {spec!r}: there is no file {path}")
    path = path.resolve()
    name = f"{FILE_MODULE_PREFIX}{portable_name(str(path)).rpartition('-')[2]}"
    loader = SourceFileLoader(name, str(path))
    found = ModuleSpec(name, loader, origin=str(path))
    found.has_location = True
    module = importlib.util.module_from_spec(found)
    # Dataclasses and pickles look their module up by name.
    sys.modules[name] = module
    try:
        with _first_on_path(path.parent):
            loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(name, None)
        raise _import_failed(spec, error, str(path)) from error
    return module


def _module_from_name(name: str, folder: Path, spec: str) -> ModuleType:
    try:
        with _first_on_path(folder):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name != missing and not name.startswith(f"{missing}."):
            raise _import_failed(spec, error) from error
        raise RecipeNotFoundError(
            f"recipe {spec!r}: there is no module {missing!r}",
            hint="write package.module:attribute or path/file.py:attribute",
        ) from error
    except Exception as error:
        raise _import_failed(spec, error) from error


def _attribute(module: ModuleType, attribute: str, spec: str) -> object:
    found: object = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            public = [name for name in vars(module) if not name.startswith("_")]
            raise RecipeNotFoundError(
                f"recipe {spec!r}: {module.__file__ or module.__name__} has no {attribute!r}",
                hint=did_you_mean(attribute, public),
            ) from None
    return found


def _made(obj: object, spec: str) -> object:
    """Return the recipe itself, or what the factory makes."""
    if not isinstance(obj, type) and (hasattr(obj, "create") or not callable(obj)):
        return obj
    try:
        return obj()
    except (HetaError, ImportError):
        raise
    except Exception as error:
        raise RecipeInvalidError(
            f"recipe {spec!r} cannot be made: {exception_text(error)}",
            where=place_of(error),
            hint="a factory takes no arguments",
        ) from error


def _checked(recipe: object, spec: str) -> object:
    try:
        create, name = getattr(recipe, "create", None), getattr(recipe, "name", None)
        recipe_modes(recipe)
    except HetaError:
        raise
    except Exception as error:
        raise RecipeInvalidError(
            f"recipe {spec!r} cannot be read: {exception_text(error)}",
            where=place_of(error),
            hint=_READ_THE_LINE,
        ) from error
    if not callable(create) or not isinstance(name, str):
        missing = "`create` method" if not callable(create) else "`name`"
        raise RecipeInvalidError(
            f"recipe {spec!r} gives {kind_of(recipe)}, which has no {missing}",
            hint="a recipe has a name and create(*, name, objects, source_keys, workspace)",
        )
    check_name("recipe", name)
    return recipe


# --- a run -------------------------------------------------------------------


def run(  # noqa: PLR0913 - one keyword for each option
    benchmark: object,
    recipe: object,
    *,
    modes: Sequence[str] = (),
    top_k: int | None = None,
    options: Mapping[str, Any] | None = None,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    repeat: int = 1,
    gates: Sequence[str] = (),
    evaluators: Sequence[BenchmarkEvaluatorProtocol | str] | None = None,
    warmup: int = 0,
    concurrency: int | None = None,
    retries: int = DEFAULT_RETRIES,
    rate: str | None = None,
    responses: ResponseLevel = "short",
    strict: bool = False,
    workspace: Path | None = None,
    cache_dir: Path | str | None = None,
    timeout: float | None = None,
    build_timeout: float | None = None,
) -> EvaluationReport:
    """Run one benchmark with one recipe and return the report.

    It runs on an event loop of its own, so it can be called with or without
    one running.

    Args:
        benchmark: A benchmark, a suite, or the path of a dataset folder.
        recipe: As for `load_recipe`.
        modes: Query modes to ask in place of the suite's.
        top_k: Depth to ask for in place of the suite's.
        options: Query options over the suite's.
        limit: Only the first so many cases.
        sample: Only so many cases, chosen by ``seed``.
        seed: Seed of that choice.
        repeat: How often each case is asked.
        gates: Gates beside the suite's.
        evaluators: Evaluators or measures in place of the suite's.
        warmup: Queries of each unit and mode that are asked first, unmeasured.
        concurrency: Queries at the same time; None for the recipe's
            ``max_concurrency``, else 8 for asynchronous and 1 for ordinary ones.
        retries: How often a query or an evaluator is asked again after an error that may pass.
        rate: Queries that may be begun in a time, such as ``10/s``; None for any number.
        responses: How much of each response the report keeps.
        strict: Whether what ``pytest-heta validate`` warns of is an error.
        workspace: Folder for the run's files; None for a temporary one, which
            is removed.
        cache_dir: Folder that keeps knowledge bases for later runs, if the
            recipe has ``save`` and ``load``; None to build all of them.
        timeout: Seconds that a query, and that an evaluator may take; None for
            any time. One that takes longer costs its sample, or one score. A
            coroutine is cancelled; an ordinary function runs in a thread of
            its own and is left behind there. What never lets go of Python's
            interpreter cannot be bounded here.
        build_timeout: Seconds that building a knowledge base may take; None
            for any time. The samples of one that takes longer have failed.

    Raises:
        LoopBlockedError: if a coroutine with a time limit blocks the event
            loop: it cannot be cancelled, and the run cannot go on.
        HetaError: if the benchmark, the recipe or an option is wrong. Failures
            of units and samples are in the report.
    """
    for name, value, least in (
        ("top_k", top_k, 1),
        ("limit", limit, 1),
        ("sample", sample, 1),
        ("repeat", repeat, 1),
        ("warmup", warmup, 0),
        ("concurrency", concurrency, 1),
        ("retries", retries, 0),
    ):
        check_whole(name, value, least, "run")
    check_seconds("timeout", timeout, "run")
    check_seconds("build_timeout", build_timeout, "run")
    if responses not in get_args(ResponseLevel):
        raise ConfigurationError(
            f"responses = {responses!r} is not allowed", where="run", hint="use ids, short or full"
        )
    declared = _suite_of(benchmark)
    if evaluators is not None:
        declared = replace(declared, evaluators=listed_evaluators(evaluators))
    settings = PlanSettings(
        modes=listed_texts("modes", modes, "run"),
        top_k=top_k,
        options=dict(options or {}),
        limit=limit,
        sample=sample,
        seed=seed,
        repeat=repeat,
    )
    from pytest_heta.core.runner import RunnerOptions  # noqa: PLC0415 - the plugin needs none of it

    run_options = RunnerOptions(
        settings=settings,
        gates=tuple(parse_gate(text, "run") for text in listed_texts("gates", gates, "run")),
        responses=responses,
        warmup=warmup,
        concurrency=concurrency,
        retries=retries,
        rate=_per_second(rate),
        strict=strict,
        root=Path.cwd(),
        cache=_cache_in(cache_dir),
        timeout_s=timeout,
        build_timeout_s=build_timeout,
    )
    made = load_recipe(recipe)
    loop = LoopThread()
    try:
        if workspace is not None:
            return loop.run(_report(declared, made, workspace, run_options))
        with tempfile.TemporaryDirectory(prefix="heta-", ignore_cleanup_errors=True) as folder:
            return loop.run(_report(declared, made, Path(folder), run_options))
    finally:
        loop.close()
        if run_options.cache is not None:
            run_options.cache.prune(all_runs=True)


def _per_second(rate: str | None) -> float | None:
    if rate is None:
        return None
    per_second = parse_rate(rate)
    if per_second is None:
        raise ConfigurationError(
            f"rate = {rate!r} is not a rate", where="run", hint="write 10/s, 300/min or 5000/h"
        )
    return per_second


def _cache_in(folder: Path | str | None) -> KnowledgeBaseCache | None:
    if folder is None:
        return None
    return KnowledgeBaseCache(Path(folder), max_bytes=DEFAULT_CACHE_BYTES)


async def _report(
    declared: Suite, recipe: Any, workspace: Path, options: RunnerOptions
) -> EvaluationReport:
    """Return the report that a run ends with."""
    report: EvaluationReport | None = None
    from pytest_heta.core.runner import run_benchmark  # noqa: PLC0415 - as above
    from pytest_heta.events import RunCompleted  # noqa: PLC0415

    events = run_benchmark(declared, recipe, workspace=workspace, options=options)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, RunCompleted):
                report = event.report
    assert report is not None, "a run that was not cancelled completes or raises"  # noqa: S101
    return report


def _suite_of(benchmark: object) -> Suite:
    if isinstance(benchmark, str | Path):
        from pytest_heta.benchmarks import benchmark_from_folder  # noqa: PLC0415 - as above

        folder = Path(benchmark)
        benchmark = benchmark_from_folder(folder)
        if benchmark is None:
            raise ConfigurationError(
                f"{str(folder)!r} is not the folder of a dataset",
                hint="a dataset has corpus.jsonl, queries.jsonl and qrels/, or cases.jsonl",
            )
    if isinstance(benchmark, Suite):
        return benchmark
    if not is_benchmark_shaped(benchmark):
        raise ConfigurationError(
            f"{kind_of(benchmark)} is not a benchmark",
            hint="give a benchmark, a suite or the path of a dataset folder",
        )
    return Suite(cast("BenchmarkProtocol", benchmark))
