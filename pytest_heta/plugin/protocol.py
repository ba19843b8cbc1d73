"""The short path of the cases inside a run unit.

The first case of a unit sets up what the unit needs; the others need no setup,
and but for the last no teardown. Where no other plugin looks at the phases,
these cases are reported without them, many inside one call of pytest's
protocol. Whatever is out of the ordinary takes pytest's own way:
results are the same on both.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Sequence
from time import time
from typing import Any, Final, NamedTuple

import pytest

from pytest_heta.core.fast_record import Record
from pytest_heta.core.plan import Sample
from pytest_heta.core.questions import Answer
from pytest_heta.models import SampleTally
from pytest_heta.plugin import _phases
from pytest_heta.plugin._case_function import CaseFunction
from pytest_heta.plugin._harmless import foreign
from pytest_heta.plugin.asking import Asking, asking_of, stop_asking
from pytest_heta.plugin.collect import UnitNode, sample_of, unit_node_of
from pytest_heta.plugin.execution import CaseItem, CaseOutcome
from pytest_heta.plugin.state import Run
from pytest_heta.reports import case_properties, tally_properties

__all__ = ["ProtocolPlugin", "foreign_hooks", "listened_phases"]

_PHASE_HOOKS: Final = (
    "pytest_runtest_protocol",
    "pytest_runtest_logstart",
    "pytest_runtest_setup",
    "pytest_runtest_call",
    "pytest_runtest_teardown",
    "pytest_runtest_makereport",
    "pytest_pyfunc_call",
)
"""What another plugin may hook to see every item."""

_INTERACTIVE: Final = ("usepdb", "trace", "setupshow", "setuponly", "setupplan", "log_cli_level")


def _ini(config: pytest.Config, name: str) -> Any:
    """Return an ini option of a plugin, None if there is no such plugin."""
    try:
        return config.getini(name)
    except ValueError:
        return None


def foreign_hooks(hooks: Any, names: Sequence[str] = _PHASE_HOOKS) -> list[str]:
    """Return which hooks are implemented by others than pytest and this plugin, and by whom."""
    return [
        f"{name} of {implementation.plugin_name}"
        for name in names
        for implementation in foreign(getattr(hooks, name))
    ]


def hears_starts(config: pytest.Config, hooks: Any) -> bool:
    """Whether anybody does something where a case of a unit starts or is finished."""
    listeners = {
        implementation.function.__module__
        for name in ("pytest_runtest_logstart", "pytest_runtest_logfinish")
        for implementation in getattr(hooks, name).get_hookimpls()
    }
    # The terminal writes the file's name, which stands there since the first case.
    idle = {"_pytest.terminal", "_pytest.logging"}
    return config.get_verbosity() > 0 or not listeners <= idle


def listened_phases(config: pytest.Config) -> tuple[str, ...]:
    """Return the phases of a passed item whose reports somebody reads."""
    counts_setups = _ini(config, "console_output_style") == "times"
    if counts_setups or foreign_hooks(config.hook, ["pytest_runtest_logreport"]):
        return ("setup", "call", "teardown")
    if getattr(config.option, "xmlpath", None):
        return ("call", "teardown")
    return ("call",)


class FileFacts(NamedTuple):
    """Who sees the items of one file.

    Attributes:
        hooks: The hooks of its items: to find them for each is not cheap.
        is_plain: Whether nobody looks at the phases of single items.
        phases: Phases of a passed item whose reports somebody reads.
        hears_starts: Whether somebody does something where an item starts.
        dots: How passed items are shown together, None if they are not.
    """

    hooks: Any = None
    is_plain: bool = False
    phases: tuple[str, ...] = ()
    hears_starts: bool = True
    dots: _phases.PassedDots | None = None


Known = tuple[str, Sample, SampleTally]
"""Plan label, sample and tally of a result."""


class ProtocolPlugin:
    """Runs the inner cases of run units on the short path."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._by_path: dict[object, FileFacts] = {}
        self._by_unit: tuple[UnitNode | None, bool] = (None, False)
        self._plain_fixtures: dict[int, bool] = {}
        self._facts = FileFacts()
        self._ran = 1
        self._position = -1

    # -- the loop over the items ----------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Keep the garbage collector away from what lives as long as the session."""
        collected = yield
        gc.freeze()
        return collected

    @pytest.hookimpl(tryfirst=True, specname="pytest_runtestloop")
    def pytest_runtestloop_over_units(self, session: pytest.Session) -> bool | None:
        """Run the items as pytest does, but for those that were run along with another."""
        if not self._may_loop(session):
            return None
        self._position = 0
        while self._position < len(session.items):
            self._ran = 1
            item, nextitem = self._pair(session.items, self._position)
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            self._position += self._ran
        return True

    def _may_loop(self, session: pytest.Session) -> bool:
        """Whether the loop would be pytest's own, and has tests to run."""
        config = session.config
        stops = session.testsfailed and not config.option.continue_on_collection_errors
        if stops or config.option.collectonly or self._run.options.protocol == "pytest":
            return False
        others = [
            implementation
            for implementation in config.hook.pytest_runtestloop.get_hookimpls()
            if not (implementation.wrapper or implementation.hookwrapper)
            and implementation.plugin is not self
        ]
        return [other.function.__module__ for other in others] == ["_pytest.main"]

    @staticmethod
    def _pair(items: list[pytest.Item], position: int) -> tuple[pytest.Item, pytest.Item | None]:
        after = position + 1
        return items[position], items[after] if after < len(items) else None

    # -- one item ---------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run an inner case of a unit, and those that follow it if nobody sees the difference."""
        asking = asking_of(item.config) if self._run.options.protocol == "auto" else None
        if asking is None or not self._is_inner(item, asking):
            return None
        if self._runs_users_code_here(asking):
            self._run_call_phase(item, nextitem)
            return True
        try:
            self._run_light_from(item, nextitem, asking)
        finally:
            self._show_dots()
        return True

    def _run_light_from(
        self, item: pytest.Item, nextitem: pytest.Item | None, asking: Asking
    ) -> None:
        """Run an item, and those that follow it as long as they are like it."""
        session = item.session
        while True:
            self._run_light(item, nextitem, asking)
            ends = self._position < 0 or session.shouldfail or session.shouldstop
            if ends or nextitem is None or not self._is_inner(nextitem, asking):
                return
            item, nextitem = self._pair(session.items, self._position + self._ran)
            self._ran += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Ask no more when the unit ends: its knowledge base is closed after this."""
        unit = unit_node_of(item)
        if unit is not None and (nextitem is None or unit_node_of(nextitem) is not unit):
            stop_asking(item.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Stop what is still under way in an interrupted run."""
        self._run.leave_stuck_loop()
        stop_asking(session.config)

    def _is_inner(self, item: pytest.Item, asking: Asking) -> bool:
        """Whether an item may leave out its setup: what the unit needs is there."""
        unit = asking.unit
        return (
            unit is not None
            and item.parent is unit
            and not asking.is_recorded(item)
            and self._is_plain_unit(unit)
            and self._is_plain(item)
        )

    def _is_plain_unit(self, unit: UnitNode) -> bool:
        if self._by_unit[0] is not unit:
            path = unit.path
            if path not in self._by_path:
                self._by_path[path] = self._facts_of(unit.ihook)
            self._facts = self._by_path[path]
            marked = any(node.own_markers for node in unit.listchain())
            self._by_unit = (unit, self._facts.is_plain and not marked)
        return self._by_unit[1]

    def _facts_of(self, hooks: Any) -> FileFacts:
        config = self._run.config
        listened = {*self._run.phases, *listened_phases(config)}
        dots = None
        if not foreign_hooks(hooks, ["pytest_report_teststatus"]) and not self._run.is_worker:
            dots = _phases.PassedDots.find(config, hooks)
        return FileFacts(
            hooks=hooks,
            is_plain=(
                not any(config.getoption(name, default=False) for name in _INTERACTIVE)
                and not _ini(config, "log_cli")
                # It would take many cases for one that takes long.
                and float(_ini(config, "faulthandler_timeout") or 0) <= 0
                and not foreign_hooks(hooks)
                and _phases.runs_phases_alone(config)
            ),
            phases=tuple(phase for phase in ("setup", "call", "teardown") if phase in listened),
            hears_starts=hears_starts(config, hooks),
            dots=dots,
        )

    def _is_plain(self, item: pytest.Item) -> bool:
        """Whether others gave an item no marker, fixture or parameter of its own."""
        names: Any = getattr(item, "fixturenames", None)
        plain = self._plain_fixtures.get(id(names))
        if plain is None:
            plain = not _phases.has_fixtures_per_test(item)
            self._plain_fixtures[id(names)] = plain
        if isinstance(item, CaseFunction) and item.index not in item.group.marked:
            # Nobody has seen its marks, let alone added one.
            return plain
        parameters: Any = getattr(getattr(item, "callspec", None), "params", ())
        return plain and len(parameters) == 1 and len(item.own_markers) == 1

    @staticmethod
    def _runs_users_code_here(asking: Asking) -> bool:
        scorer = asking.unit.entry.scorer if asking.unit is not None else None
        return asking.asks_here or scorer is None or scorer.has_functions

    # -- running ----------------------------------------------------------------

    def _run_call_phase(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Run only the call phase: users' code runs in it, in this thread."""
        start = time()
        self._facts.hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        case = self._case(item)
        item.funcargs = {"heta_case": case, "heta_kb": asking_of(item.config).knowledge_base}  # type: ignore[attr-defined]
        self._report_phase(item, "setup", start, start)
        try:
            _phases.call_phase(item)
        finally:
            # Otherwise every item keeps its knowledge base.
            item.funcargs = {}  # type: ignore[attr-defined]
        self._finish(item, nextitem)
        self._facts.hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _run_light(self, item: pytest.Item, nextitem: pytest.Item | None, asking: Asking) -> None:
        """Report what came of an item whose code runs elsewhere."""
        start = time()
        if self._facts.hears_starts:
            self._facts.hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        self._report_phase(item, "setup", start, start)
        case = self._case(item)
        outcome: CaseOutcome | None = None
        raised: BaseException | None = None
        try:
            answer = self._answer(item, asking)
            record = case.record(answer)
            if record is None:
                outcome = case.conclude(answer, asking)
        except (KeyboardInterrupt, pytest.exit.Exception):
            raise
        except BaseException as error:  # noqa: BLE001 - reported below, as pytest does
            record, raised = None, error
        if record is not None:
            self._report_record(item, record, start)
        elif outcome is not None and outcome.message is None and not self._run.options.show:
            item.user_properties.extend(case_properties(outcome.result))
            latency_ms = outcome.result.latency_ms
            self._report_passed(item, outcome.payload, latency_ms, start)
        else:
            self._report_by_hooks(item, case, outcome, raised)
        self._finish(item, nextitem)
        if self._facts.hears_starts:
            self._facts.hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _answer(self, item: pytest.Item, asking: Asking) -> Answer:
        if asking.is_ready(item):
            return asking.answer(item, asking.knowledge_base)
        self._show_dots()
        with _phases.capturing(item):
            return asking.answer(item, asking.knowledge_base)

    def _report_record(self, item: pytest.Item, record: Record, start: float) -> None:
        if len(self._facts.phases) > 1:
            # Otherwise nobody is there to read them.
            item.user_properties.extend(tally_properties(record.tally))
        known: Known | None = None
        unit = unit_node_of(item)
        if unit is not None and not self._run.is_worker:
            known = (unit.entry.plan.label, sample_of(item), record.tally)
        self._report_passed(item, record.payload, record.tally.latency_ms, start, known)

    def _report_passed(
        self,
        item: pytest.Item,
        payload: str,
        latency_ms: float | None,
        start: float,
        known: Known | None = None,
    ) -> None:
        report = self._light_report(item, "call", (latency_ms or 0.0) / 1000, start, time())
        report.heta_result = payload  # type: ignore[attr-defined]
        if known is not None:
            # The collector is in this process: it need not read the text.
            report.heta_known = known  # type: ignore[attr-defined]
        if self._facts.dots is None:
            self._facts.hooks.pytest_runtest_logreport(report=report)
        else:
            self._facts.dots.add(report, report.stop)

    def _show_dots(self) -> None:
        """Show what has passed before something else is shown, or waited for."""
        if self._facts.dots is not None:
            self._facts.dots.flush()

    def _report_by_hooks(
        self,
        item: pytest.Item,
        case: CaseItem,
        outcome: CaseOutcome | None,
        raised: BaseException | None,
    ) -> None:
        """Report an item that fails, or has more to show, as pytest does."""

        def conclude() -> None:
            if outcome is None:
                raise raised or AssertionError
            case.finish(outcome)

        self._show_dots()
        call = pytest.CallInfo.from_call(conclude, when="call")
        report = self._facts.hooks.pytest_runtest_makereport(item=item, call=call)
        self._facts.hooks.pytest_runtest_logreport(report=report)
        if report.failed and call.excinfo is not None:
            self._facts.hooks.pytest_exception_interact(node=item, call=call, report=report)

    def _case(self, item: pytest.Item) -> CaseItem:
        unit = unit_node_of(item)
        assert unit is not None  # noqa: S101 - for the type checker: an inner case has one
        return CaseItem(self._run, item, unit.entry, sample_of(item))

    def _report_phase(self, item: pytest.Item, when: str, start: float, stop: float) -> None:
        if when in self._facts.phases:
            report = self._light_report(item, when, 0.0, start, stop)
            self._facts.hooks.pytest_runtest_logreport(report=report)

    def _light_report(
        self, item: pytest.Item, when: str, duration: float, start: float, stop: float
    ) -> pytest.TestReport:
        is_read = "setup" in self._facts.phases
        return _phases.light_report(
            item, when, duration=duration, start=start, stop=stop, is_read=is_read
        )

    def _finish(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        session = item.session
        if session.shouldfail or session.shouldstop:
            nextitem = None  # the run ends here
        if nextitem is None or nextitem.parent is not item.parent:
            # What the unit opened is closed, and that is reported.
            self._show_dots()
            _phases.tear_down(item, nextitem)
        else:
            now = time()
            self._report_phase(item, "teardown", now, now)
