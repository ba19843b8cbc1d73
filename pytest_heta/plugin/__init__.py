"""The pytest plugin: a thin shell over the steps of the core.

This module is imported by every pytest session of an environment. It imports
nothing of the package but the options; the rest comes in when a recipe is
given.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_heta.plugin.options import add_options, given_recipes

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that others may implement."""
    from pytest_heta.plugin import hookspecs  # noqa: PLC0415 - one small module of signatures

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Bring in the plugin proper when a recipe is given, and a hint when not."""
    config.addinivalue_line(
        "markers",
        "heta(benchmark, unit, mode, **labels): put on every benchmark case by pytest-heta; "
        "select with -m \"heta(mode='hybrid_search')\".",
    )
    if given_recipes(config) or config.getoption("heta_list"):
        from pytest_heta.plugin.activation import activate  # noqa: PLC0415 - heavy, on purpose

        activate(config)
    else:
        config.pluginmanager.register(MissingRecipeHint(), "heta-missing-recipe-hint")


def is_suite_file(path: Path) -> bool:
    """Whether a file is a suite: ``bench_*.py`` whose text names heta.

    A file is never imported to find out: one that is not a suite must behave
    as if this plugin were not installed.
    """
    if path.suffix != ".py" or not path.name.startswith("bench_"):
        return False
    try:
        return b"heta" in path.read_bytes()
    except OSError:
        return False


class MissingRecipeHint:
    """Says which option is missing when suites are met without a recipe."""

    def __init__(self) -> None:
        self._suites: dict[str, None] = {}

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> None:
        """Remember suite files; collect nothing."""
        if is_suite_file(file_path):
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
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Iterator[None]:
        """Print the one line."""
        yield
        if self._suites:
            first, *rest = self._suites
            more = f" and {len(rest)} more" if rest else ""
            terminalreporter.write_line(
                f"heta: {first}{more} declares benchmarks; name a recipe to run them:"
                " --heta-recipe=NAME (or ini heta_recipe)"
            )
