"""Bringing the plugin in: reading options, finding recipes, registering hooks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_heta.api import load_recipe
from pytest_heta.core._calls import place_of
from pytest_heta.core._plain import exception_text
from pytest_heta.core.concurrency import recipe_concurrency
from pytest_heta.core.gates import Gate, parse_gate
from pytest_heta.core.plan import check_name, recipe_modes
from pytest_heta.errors import HetaError, ModeUnknownError, RecipeInvalidError, did_you_mean
from pytest_heta.models import EvaluationReport
from pytest_heta.plugin import fixtures
from pytest_heta.plugin._orphans import EndOfWorker
from pytest_heta.plugin._signals import end_on_sigterm
from pytest_heta.plugin._watching import make_watchdog
from pytest_heta.plugin.caching import check_cache_dir
from pytest_heta.plugin.collect import CollectionPlugin
from pytest_heta.plugin.collector import ResultCollector
from pytest_heta.plugin.conclusion import ConclusionPlugin
from pytest_heta.plugin.datasets import place_for_files
from pytest_heta.plugin.listing import ListingPlugin
from pytest_heta.plugin.options import (
    RunOptions,
    data_dir_of_ini,
    ini_folder,
    read_options,
    refuse,
    source_of,
    usage_error,
)
from pytest_heta.plugin.protocol import ProtocolPlugin
from pytest_heta.plugin.replay import ReplayPlugin
from pytest_heta.plugin.results import ReportPlugin
from pytest_heta.plugin.state import RUN, Run
from pytest_heta.plugin.terminal import TerminalPlugin
from pytest_heta.plugin.tracebacks import InternalErrors
from pytest_heta.plugin.workers import ControllerPlugin, WorkerPlugin
from pytest_heta.reports import ReportTarget, check_writable, parse_report_option, read_reports

__all__ = ["activate"]


def activate(config: pytest.Config) -> None:
    """Check the options and register the plugin's parts.

    Raises:
        pytest.UsageError: if an option, a recipe, a gate or a report is wrong.
    """
    options = read_options(config)
    register = config.pluginmanager.register
    if not options.debug:
        register(InternalErrors(), "heta-internal-errors")
    _export_data_dir(config)
    if options.offline:
        _set_in_environment(config, "HETA_OFFLINE", "1")
    if options.debug:
        _set_in_environment(config, "HETA_DEBUG", "1")
    recipes = _load_recipes(config, options)
    _check_modes(config, options, recipes)
    gates = _parse_gates(options)
    baseline = _read_baseline(config, options)
    targets = _report_targets(config, options)
    check_cache_dir(config, options)
    run = Run(config, options, recipes, gates, baseline)
    config.stash[RUN] = run
    run.watchdog = make_watchdog(config, options)
    config.add_cleanup(run.close)
    if options.list_only:
        # Nothing is run; a distributed run would list once per worker.
        config.option.numprocesses = None
        config.option.dist = "no"
        config.option.tx = []
        register(ListingPlugin(run), "heta-listing")
        return
    register(fixtures, "heta-fixtures")
    register(CollectionPlugin(run), "heta-collection")
    register(ReportPlugin(run), "heta-reports")
    register(ProtocolPlugin(run), "heta-protocol")
    if run.recording.resumes:
        register(ReplayPlugin(run), "heta-replay")  # after it, so that it comes first
    if run.is_worker:
        register(WorkerPlugin(run), "heta-worker")
        register(EndOfWorker(config, run.directory), "heta-end-of-worker")
        return
    _check_targets(config, targets)
    run.recording.check()
    end_on_sigterm(config)
    collector = ResultCollector(run)
    conclusion = ConclusionPlugin(run, collector, targets)
    register(collector, "heta-results")
    register(conclusion, "heta-conclusion")
    register(ControllerPlugin(run, conclusion.check_plans), "heta-controller")
    register(TerminalPlugin(run, collector, conclusion), "heta-terminal")


def _export_data_dir(config: pytest.Config) -> None:
    """Let suite files see ini ``heta_data_dir`` where they look: in the environment."""
    data_dir = data_dir_of_ini(config)
    if data_dir is None or os.environ.get("HETA_DATA_DIR"):
        return
    _set_in_environment(config, "HETA_DATA_DIR", str(data_dir))


def _set_in_environment(config: pytest.Config, name: str, value: str) -> None:
    environment = pytest.MonkeyPatch()
    environment.setenv(name, value)
    config.add_cleanup(environment.undo)


@contextmanager
def _blaming(source: str) -> Iterator[None]:
    """Turn an error into a usage error that names the option it came by."""
    try:
        yield
    except HetaError as error:
        raise usage_error(error, source) from error


def _load_recipes(config: pytest.Config, options: RunOptions) -> tuple[Any, ...]:
    source = source_of(config, "recipe")
    base = ini_folder(config) if source == "heta_recipe" else None
    recipes: dict[str, Any] = {}
    for spec in options.recipes:
        recipe = _load_recipe(spec, base, source)
        if recipe.name in recipes:
            refuse(source, f"two recipes are named {recipe.name!r}; give one another name")
        recipes[recipe.name] = recipe
    return tuple(recipes.values())


def _load_recipe(spec: str, base: Path | None, source: str) -> Any:
    try:
        with _blaming(source):
            recipe = load_recipe(spec, base=base)
            recipe_concurrency(recipe)
            return recipe
    except (pytest.UsageError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # An attribute that raises, sys.exit() in a recipe's module, or pytest.importorskip().
        message = f"recipe {spec!r} cannot be loaded: {exception_text(error)}"
        found = RecipeInvalidError(message, where=place_of(error))
        raise usage_error(found, source) from error


def _check_modes(config: pytest.Config, options: RunOptions, recipes: tuple[Any, ...]) -> None:
    """Refuse a mode that no knowledge base can have, or not one of a recipe that says its modes."""
    source = source_of(config, "mode")
    for mode in options.modes:
        with _blaming(source):
            check_name("mode", mode)
        for recipe in recipes:
            known = recipe_modes(recipe)
            if known and mode not in known:
                hint = did_you_mean(mode, known)
                message = f"recipe {recipe.name!r} has no mode {mode!r}"
                raise usage_error(ModeUnknownError(message, hint=hint), source)


def _parse_gates(options: RunOptions) -> tuple[Gate, ...]:
    gates = []
    for text, origin in options.gates:
        with _blaming("heta_gate" if origin == "ini" else "--heta-gate"):
            gates.append(parse_gate(text, origin))
    return tuple(gates)


def _read_baseline(config: pytest.Config, options: RunOptions) -> Mapping[str, EvaluationReport]:
    if options.baseline is None:
        return {}
    source = source_of(config, "baseline")
    base = ini_folder(config) if source == "heta_baseline" else Path()
    with _blaming(source):
        file = read_reports(base / options.baseline)
    # Only aggregates are compared; the results of a large run would stay in memory.
    return {
        report.report_key: report.model_copy(update={"case_results": ()}) for report in file.reports
    }


def _report_targets(config: pytest.Config, options: RunOptions) -> list[ReportTarget]:
    """Return the report files; nobody has to name one to keep it out of a dataset."""
    named = config.getoption("heta_report") or config.getini("heta_report")
    place = config.invocation_params.dir if named else place_for_files(config)
    with _blaming(source_of(config, "report")):
        targets = [parse_report_option(text) for text in options.reports]
    # A shell leaves the tilde in json:~/report.json alone.
    return [target._replace(path=place / target.path.expanduser()) for target in targets]


def _check_targets(config: pytest.Config, targets: list[ReportTarget]) -> None:
    if config.option.collectonly:
        return
    with _blaming(source_of(config, "report")):
        for _, path in targets:
            check_writable(path)
