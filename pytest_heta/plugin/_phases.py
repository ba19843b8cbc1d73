"""Private parts of pytest and pytest-xdist that running items needs.

The plugin can do without any of them: where one is missing or is not what it
was, a function here says so, and the plugin takes pytest's ordinary way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

import pytest

# ruff: noqa: SLF001

__all__ = [
    "PassedDots",
    "add_junit_property",
    "call_phase",
    "capturing",
    "coming_indices",
    "fixture_is_ours",
    "fixture_scope",
    "forget_in_junit",
    "has_fixtures_per_test",
    "junit_file",
    "light_report",
    "runs_phases_alone",
    "tear_down",
]

_OURS: Final = "pytest_heta."

_KEYWORDS: Final[dict[str, Literal[1]]] = {"heta": 1}
"""One for all reports: pytest keeps them to the end."""


# --- fixtures ----------------------------------------------------------------


def fixture_is_ours(item: pytest.Item, name: str) -> bool:
    """Whether the plugin's own fixture of this name serves an item; True if nobody knows."""
    function = getattr(_fixture(item, name), "func", None)
    return function is None or str(function.__module__).startswith(_OURS)


def fixture_scope(item: pytest.Item, name: str) -> str | None:
    """Return the scope of the fixture of this name that serves an item, None if nobody knows."""
    scope = getattr(_fixture(item, name), "scope", None)
    return scope if isinstance(scope, str) else None


def has_fixtures_per_test(item: pytest.Item) -> bool:
    """Whether an item has fixtures that are set up anew for every test, beside the plugin's own.

    True if nobody knows.
    """
    found = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", None)
    if not isinstance(found, dict):
        return True
    return any(
        definitions
        and definitions[-1].scope == "function"
        and not str(getattr(definitions[-1].func, "__module__", "")).startswith(_OURS)
        for definitions in found.values()
    )


def _fixture(item: pytest.Item, name: str) -> Any:
    found = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", None)
    definitions = found.get(name) if isinstance(found, dict) else None
    return definitions[-1] if definitions else None


# --- phases of an item ---------------------------------------------------------


def runs_phases_alone(config: pytest.Config) -> bool:
    """Whether `call_phase`, `tear_down` and `capturing` find what they were written for."""
    try:
        from _pytest.logging import caplog_handler_key, caplog_records_key  # noqa: PLC0415
        from _pytest.runner import call_and_report  # noqa: PLC0415
    except ImportError:
        return False
    capture = config.pluginmanager.getplugin("capturemanager")
    return (
        callable(call_and_report)
        and all(
            isinstance(key, pytest.StashKey) for key in (caplog_handler_key, caplog_records_key)
        )
        and (capture is None or callable(getattr(capture, "item_capture", None)))
    )


def call_phase(item: pytest.Item) -> pytest.TestReport:
    """Run the call phase of an item that was not set up, and report it."""
    from _pytest.logging import caplog_handler_key, caplog_records_key  # noqa: PLC0415
    from _pytest.runner import call_and_report  # noqa: PLC0415

    # What the setup phase would leave for the call phase.
    item.stash[caplog_records_key] = {}
    try:
        return call_and_report(item, "call")
    finally:
        del item.stash[caplog_records_key]
        if caplog_handler_key in item.stash:
            del item.stash[caplog_handler_key]


def tear_down(item: pytest.Item, nextitem: pytest.Item | None) -> pytest.TestReport:
    """Run the teardown phase of an item that was not set up, and report it.

    Whatever the next item does not need is torn down.
    """
    from _pytest.logging import caplog_handler_key, caplog_records_key  # noqa: PLC0415
    from _pytest.runner import call_and_report  # noqa: PLC0415

    # What the teardown phase takes away.
    item.stash[caplog_records_key] = {}
    try:
        return call_and_report(item, "teardown", nextitem=nextitem)
    finally:
        if caplog_records_key in item.stash:
            del item.stash[caplog_records_key]
        if caplog_handler_key in item.stash:
            del item.stash[caplog_handler_key]


@contextmanager
def capturing(item: pytest.Item) -> Iterator[None]:
    """Capture what is printed, for the sections of an item."""
    capture: Any = item.config.pluginmanager.getplugin("capturemanager")
    if capture is None:
        yield
        return
    with capture.item_capture("call", item):
        yield


def light_report(
    item: pytest.Item,
    when: str,
    *,
    duration: float,
    start: float,
    stop: float,
    is_read: bool = False,
) -> pytest.TestReport:
    """Return the report of a phase that passed, without keywords unless somebody reads it."""
    sections: Sequence[tuple[str, str, str]] = getattr(item, "_report_sections", ())
    return pytest.TestReport(
        getattr(item, "id", item.nodeid),
        item.location,
        dict.fromkeys(item.keywords, 1) if is_read else _KEYWORDS,
        "passed",
        None,
        when,  # type: ignore[arg-type]
        [(f"Captured {name} {phase}", text) for phase, name, text in sections],
        duration,
        start,
        stop,
        item.user_properties,
    )


# --- the terminal ----------------------------------------------------------------


class PassedDots:
    """Shows passed items as the terminal does, several at a time.

    Args:
        terminal: pytest's terminal reporter; see `find`.
        report: Tells everybody else of a report.
    """

    def __init__(self, terminal: Any, report: Callable[..., Any]) -> None:
        self._terminal = terminal
        self._report = report
        self._waiting: list[pytest.TestReport] = []
        self._since = 0.0

    @classmethod
    def find(cls, config: pytest.Config, hooks: Any) -> PassedDots | None:
        """Return how passed items can be shown together, None if they cannot.

        Args:
            config: pytest's config.
            hooks: The hooks of the items.
        """
        terminal: Any = config.pluginmanager.getplugin("terminalreporter")
        if (
            hooks is not config.hook
            or type(terminal) is not pytest.TerminalReporter
            or config.get_verbosity("test_cases") > 0
            or not all(hasattr(terminal, name) for name in _OF_TERMINAL)
            or not isinstance(terminal._progress_nodeids_reported, set)
        ):
            return None
        name = "pytest_runtest_logreport"
        return cls(terminal, config.pluginmanager.subset_hook_caller(name, [terminal]))

    def add(self, report: pytest.TestReport, now: float) -> None:
        """Tell of a passed item; it is shown with the next ones, in a moment."""
        self._report(report=report)
        self._waiting.append(report)
        if len(self._waiting) == 1:
            self._since = now
        if len(self._waiting) >= _MOST_DOTS or now - self._since > _LONGEST_WAIT_S:
            self.flush()

    def flush(self) -> None:
        """Show what waits."""
        if not self._waiting:
            return
        reports, self._waiting = self._waiting, []
        terminal = self._terminal
        terminal._tests_ran = True
        terminal._add_stats("passed", reports)
        while reports:
            count = self._room() if terminal._show_progress_info else len(reports)
            shown, reports = reports[:count], reports[count:]
            terminal._progress_nodeids_reported.update(
                getattr(report, "id", report.nodeid) for report in shown
            )
            terminal._tw.write("." * len(shown), green=True)
            if terminal._show_progress_info and not terminal._is_last_item:
                terminal._write_progress_information_if_past_edge()
        terminal.flush()

    def _room(self) -> int:
        """Return how many dots go on the line before the percentage."""
        if self._terminal._show_progress_info != "progress":
            return 1
        writer = self._terminal._tw
        left: int = writer.fullwidth - writer.width_of_current_line - len(" [100%]") - 1
        return max(1, left)


_MOST_DOTS: Final = 32
_LONGEST_WAIT_S: Final = 0.1
_OF_TERMINAL: Final = (
    *("_tests_ran", "_add_stats", "_progress_nodeids_reported", "_tw", "_show_progress_info"),
    *("_is_last_item", "_write_progress_information_if_past_edge", "flush"),
)


# --- pytest-xdist ----------------------------------------------------------------


def coming_indices(config: pytest.Config) -> list[int] | None:
    """Return the items that this worker will run, from the current one on.

    Returns:
        Positions in ``session.items``, in order; None if nobody knows.
    """
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            return _coming(plugin)
    return None


def _coming(interactor: Any) -> list[int] | None:
    try:
        with interactor.torun.lock() as queued:
            waiting = [interactor.item_index, interactor.nextitem_index, *queued]
    except (AttributeError, TypeError):
        return None
    # The end of the run stands in the queue as well.
    return [index for index in waiting if isinstance(index, int)]


# --- JUnit -----------------------------------------------------------------------


def junit_file(config: pytest.Config) -> Any:
    """Return what writes the JUnit file, None if nothing does or nobody knows."""
    try:
        from _pytest.junitxml import xml_key  # noqa: PLC0415
    except ImportError:
        return None
    return config.stash.get(xml_key, None)


def add_junit_property(config: pytest.Config, name: str, value: str) -> None:
    """Add a property of the suite to the JUnit file, if there is one.

    ``record_testsuite_property`` does nothing on the controller of a
    distributed run, so a private name of pytest is used here.
    """
    add = getattr(junit_file(config), "add_global_property", None)
    if add is not None:
        add(name, value)


def forget_in_junit(config: pytest.Config, node_id: str, node: object) -> None:
    """Take a test that a dead worker only began out of the JUnit file.

    It would stand there without a name, beside the one that another worker runs.

    Args:
        config: pytest's config.
        node_id: Node id of the test.
        node: pytest-xdist's controller of the dead worker.
    """
    xml = junit_file(config)
    reporters = getattr(xml, "node_reporters", {})
    in_order = getattr(xml, "node_reporters_ordered", [])
    for key in [key for key in reporters if key[1] is node and str(key[0]) == node_id]:
        reporter = reporters.pop(key)
        if reporter in in_order:
            in_order.remove(reporter)
