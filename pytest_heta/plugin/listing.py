"""``--heta-list``: what there is to run, and with what."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from pytest_heta.api import available_recipes
from pytest_heta.core.plan import Suite, recipe_modes
from pytest_heta.evaluators import evaluator_names
from pytest_heta.plugin import is_suite_file
from pytest_heta.plugin.collect import declarations_of, declared_suites
from pytest_heta.plugin.datasets import DATASET_FILES, named_dataset
from pytest_heta.plugin.state import Run
from pytest_heta.reports import plain_text

__all__ = ["ListingPlugin"]


class ListingModule(pytest.Module):
    """A suite file that is read for its benchmarks only."""

    found: dict[str, Suite]

    def collect(self) -> Iterator[pytest.Item]:
        """Note the benchmarks; yield nothing."""
        with declarations_of(self):
            for suite in declared_suites(self.obj).values():
                self.found.setdefault(_name(suite), suite)
        yield from ()


class ListingPlugin:
    """Reads suite files to list their benchmarks; no item is collected."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._found: dict[str, dict[str, Suite]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """Take in suite files, and dataset folders named on the command line.

        pytest also collects a suite file that is named or matches
        ``python_files``; it would be read twice, and what is wrong said twice.
        """
        collected = yield
        if is_suite_file(file_path):
            module: ListingModule = ListingModule.from_parent(parent, path=file_path)
            module.found = self._found.setdefault(module.nodeid, {})
            return [module]
        if file_path.name in DATASET_FILES:
            benchmark = named_dataset(parent.session, file_path)
            if benchmark is not None:
                self._found[str(file_path.parent)] = {benchmark.manifest.name: Suite(benchmark)}
        return collected

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run nothing."""
        items.clear()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Listing is a success though no test ran."""
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the lists."""
        terminalreporter.section("heta list")
        for line in self._lines():
            terminalreporter.write_line(plain_text(line))

    def _lines(self) -> Iterator[str]:
        yield "recipes (--heta-recipe):"
        for name, value in sorted(available_recipes().items()):
            yield f"  {name}  ({value})"
        for recipe in self._run.recipes:
            modes = recipe_modes(recipe)
            yield f"modes of {recipe.name} (--heta-mode):"
            yield f"  {', '.join(modes) or 'known only once a knowledge base is built'}"
        yield "measures (in suites and gates):"
        yield f"  {', '.join(evaluator_names())}"
        yield "benchmarks:"
        for where, suites in sorted(self._found.items()):
            for name, suite in suites.items():
                yield f"  {name}  ({where})"
                for gate in suite.gates:
                    yield f"    gate {gate}"
        if not any(self._found.values()):
            yield "  none in the given paths"


def _name(suite: Suite) -> str:
    return suite.name or str(suite.benchmark.manifest.name)
