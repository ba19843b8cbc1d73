"""The pytest plugin: a thin shell over the steps of the core.

This module is imported by every pytest session of an environment. It imports
nothing of the package but the options; the rest comes in when a recipe is
given.
"""

from __future__ import annotations

import ast
import atexit
import gc
import os
import traceback
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pytest_heta.plugin.option_table import add_options
from pytest_heta.plugin.options import given_recipes, shows_tracebacks, wants_listing

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

MARKER: Final = (
    "heta(benchmark, recipe, unit, mode, **labels): put on every benchmark case by pytest-heta; "
    "select with -m \"heta(mode='hybrid_search')\"."
)
"""The marker, as ``--markers`` shows it."""

_PACKAGES: Final = ("pytest_heta", "heta_framework")
"""What a suite file imports: these packages' benchmarks are told by their shape."""

_GARBAGE_THRESHOLDS: Final = (20_000, 100, 10)
"""Of `gc`: a second look at what the first one left would be as dear as that."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that others may implement."""
    from pytest_heta.plugin import hookspecs  # noqa: PLC0415 - one small module of signatures

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Keep the session's own files out of datasets, before anyone asks where they go.

    What stops the session is one line, written by pytest; its traceback is
    shown here, if it is asked for.
    """
    try:
        if _is_active(config):
            _collect_garbage_less(config)
            from pytest_heta.plugin.datasets import keep_out_of_datasets  # noqa: PLC0415

            keep_out_of_datasets(config)
        return (yield)
    except pytest.UsageError:
        if _is_active(config) and shows_tracebacks(config):
            traceback.print_exc()
        raise


def pytest_configure(config: pytest.Config) -> None:
    """Bring in the plugin proper when a recipe is given, and a hint when not."""
    config.addinivalue_line("markers", MARKER)
    if _is_active(config):
        from pytest_heta.plugin.activation import activate  # noqa: PLC0415 - heavy, on purpose

        activate(config)
    else:
        config.pluginmanager.register(MissingRecipeHint(), "heta-missing-recipe-hint")


def _collect_garbage_less(config: pytest.Config) -> None:
    """Let the garbage collector pass over what lives as long as the session.

    Modules, items and cases are no garbage, and a case leaves objects by the
    hundred, but no cycles. By default they would be looked through again and
    again, twelve times at the end alone: a quarter of a run of 20,000 cases.
    """
    # Undone after everything else, because cleanups run in reverse.
    config.add_cleanup(gc.unfreeze)
    atexit.unregister(gc.freeze)  # of an earlier session in this process
    atexit.register(gc.freeze)
    gc.freeze()
    thresholds = gc.get_threshold()
    if 0 < thresholds[0] < _GARBAGE_THRESHOLDS[0]:
        config.add_cleanup(partial(gc.set_threshold, *thresholds))
        gc.set_threshold(*_GARBAGE_THRESHOLDS)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave the session's items out of the garbage collections that follow."""
    if _is_active(session.config):
        gc.freeze()


def _is_active(config: pytest.Config) -> bool:
    return bool(given_recipes(config)) or wants_listing(config)


def is_suite_name(path: Path) -> bool:
    """Whether a file has the name of a suite, ``bench_*.py``."""
    return path.suffix == ".py" and path.name.startswith("bench_")


def is_suite_file(path: Path) -> bool:
    """Whether a file is a suite: ``bench_*.py`` that imports a package of ours.

    A file is never imported to find out: one that is not a suite must behave
    as if this plugin were not installed.
    """
    if not is_suite_name(path):
        return False
    try:
        source = path.read_bytes()
    except OSError:
        return False
    return any(name.encode() in source for name in _PACKAGES) and _imports_ours(source)


def _imports_ours(source: bytes) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        # Its collection says what is wrong with it.
        return True
    return any(name.partition(".")[0] in _PACKAGES for name in _imported_modules(tree))


def _imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # As in pytest.importorskip("pytest_heta"); a sentence is not a name.
            yield node.value if node.value in _PACKAGES else ""


class MissingRecipeHint:
    """Says which option is missing when suites are met without a recipe."""

    def __init__(self) -> None:
        self._suites: dict[str, None] = {}

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> None:
        """Remember suite files; collect nothing.

        pytest also asks about the files beside one that is an argument.
        """
        if not is_suite_name(file_path):
            return
        named = any(map(parent.session.isinitpath, (file_path, *file_path.parents)))
        if named and is_suite_file(file_path):
            self._suites[os.path.relpath(file_path, parent.config.invocation_params.dir)] = None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand a worker's finds to the controller."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["heta_suites"] = list(self._suites)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Take the finds of a worker."""
        output = getattr(node, "workeroutput", None) or {}
        self._suites.update(dict.fromkeys(output.get("heta_suites", ())))

    @pytest.hookimpl(wrapper=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
        """Print the one line."""
        yield
        if self._suites:
            first, *rest = self._suites
            found = f"{first} and {len(rest)} more declare" if rest else f"{first} declares"
            terminalreporter.write_line(
                f"heta: {found} benchmarks; name a recipe to run them:"
                " --heta-recipe=NAME (or ini heta_recipe)"
            )
