"""What the processes of a distributed run tell each other, beside the reports.

The controller of pytest-xdist collects nothing. The first worker that has
collected writes the plans, and which samples its items ask, into the run's
folder; the controller reads them there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from filelock import FileLock

from pytest_heta.codes import coded
from pytest_heta.core.cache import is_cacheable
from pytest_heta.core.plan import BenchmarkPlan
from pytest_heta.core.spool import add_suspects, executing
from pytest_heta.errors import first_of
from pytest_heta.plugin._orphans import tell_workers_to_end
from pytest_heta.plugin._phases import fixture_is_ours, forget_in_junit
from pytest_heta.plugin._selection import SelectedSamples, Stretch, digest_of_ids, stretches_of
from pytest_heta.plugin._work import Progress, Unit, UnitsOfTests
from pytest_heta.plugin.caching import facts_for_worker
from pytest_heta.plugin.collect import UnitNode, unit_node_of
from pytest_heta.plugin.datasets import names_paths
from pytest_heta.plugin.fingerprints import fingerprints, selected_samples
from pytest_heta.plugin.protocol import listened_phases
from pytest_heta.plugin.state import Run, will_run
from pytest_heta.reports import plain_text

if TYPE_CHECKING:
    from pytest_heta.plugin.scheduler import UnitScheduling

__all__ = ["ControllerPlugin", "WorkerPlugin"]

_PLANS: Final = "plans.json"

_OWN_FIXTURES: Final = ("heta_kb", "heta_unit", "heta_recipe")
"""Fixtures that stand between a unit's recipe and the knowledge base that is asked."""

_SHOWN_IDS: Final = 5


class WorkerPlugin:
    """In a worker: writes the plans down."""

    def __init__(self, run: Run) -> None:
        self._run = run

    # Before xdist's own hook, which tells the controller that collection is over.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write the plans, unless another worker has."""
        path = self._run.directory / _PLANS
        with FileLock(path.with_suffix(".lock")):
            if path.exists():
                return
            unfinished = path.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(self._facts(session)), encoding="ascii")
            unfinished.replace(path)

    def _facts(self, session: pytest.Session) -> dict[str, Any]:
        run = self._run
        return {
            "refusals": run.refusals,
            "will_run": will_run(session),
            "plans": [plan.as_json() for plan in run.plans.values()],
            "collection": digest_of_ids(item.nodeid for item in session.items),
            "selected": stretches_of(selected_samples(session), run.plans),
            "fingerprints": fingerprints(run, session) if will_run(session) else {},
            "splittable": [] if run.options.split == "never" else list(_splittable(session)),
        }


def _splittable(session: pytest.Session) -> Iterator[Unit]:
    """Yield the units that several workers may work on: what one built, another can load."""
    last: UnitNode | None = None
    for item in session.items:
        unit = unit_node_of(item)
        if unit is None or unit is last:
            continue
        last = unit
        if is_cacheable(unit.entry.recipe) and all(
            fixture_is_ours(item, name) for name in _OWN_FIXTURES
        ):
            yield unit.entry.plan.label, unit.unit.unit_id


class ControllerPlugin:
    """In the controller: reads the plans, and tells the scheduler what it knows of workers."""

    def __init__(self, run: Run, when_planned: Callable[[], None]) -> None:
        self._run = run
        self._when_planned = when_planned
        self._facts: Mapping[str, Any] | None = None
        self._units = UnitsOfTests()
        self._scheduler: UnitScheduling | None = None
        self._progress: dict[Any, Progress] = {}
        self._deaths = 0
        self._not_run: Sequence[str] = ()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[object]) -> None:
        """Note how many workers there will be."""
        self._run.concurrency = len(specs)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where the run's folder is, and what it cannot see in its arguments."""
        node.workerinput["heta_directory"] = str(self._run.directory)
        node.workerinput["heta_run"] = self._run.recording.for_worker()
        node.workerinput["heta_names_paths"] = names_paths(self._run.config)
        node.workerinput["heta_cache"] = facts_for_worker(self._run)
        node.workerinput["heta_phases"] = listened_phases(self._run.config)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Let the workers end at once, unless it is a failure that ends the session."""
        if excinfo.type is KeyboardInterrupt:
            tell_workers_to_end(self._run.directory)

    # -- the plans ----------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Read the plans when the first worker has collected."""
        first = self._facts is None
        facts = self._facts = self._facts or self._read_facts()
        if not self._run.selected and facts["collection"] == digest_of_ids(ids):
            self._note_selected(facts, ids)
        if first and facts["will_run"]:
            self._when_planned()

    def _read_facts(self) -> dict[str, Any]:
        path: Path = self._run.directory / _PLANS
        facts: dict[str, Any] = json.loads(path.read_text(encoding="ascii"))
        self._run.refusals = facts["refusals"]
        self._run.check_refusals()
        self._run.fingerprints = facts.pop("fingerprints")
        for text in facts.pop("plans"):
            plan = BenchmarkPlan.from_json(text)
            self._run.plans[plan.label] = plan
        return facts

    def _note_selected(self, facts: Mapping[str, Any], ids: Sequence[str]) -> None:
        stretches = [Stretch(*row) for row in facts["selected"]]
        self._run.selected = SelectedSamples(ids, stretches, self._run.plans)
        self._units = UnitsOfTests(
            [((s.label, s.unit), s.position, s.length) for s in stretches],
            {(label, unit) for label, unit in facts["splittable"]},
        )

    # -- scheduling -----------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Take the place of the plain ``-n N`` scheduler."""
        if config.getoption("dist") != "load":
            return None
        # It imports pytest-xdist, which other sessions do without.
        from pytest_heta.plugin.scheduler import UnitScheduling  # noqa: PLC0415

        self._scheduler = UnitScheduling(config, log, self)
        return self._scheduler

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how far a worker has come."""
        if report.when != "teardown" and hasattr(report, "node"):
            has_result = report.when != "setup" or not report.passed
            self._progress[report.node] = Progress(report.nodeid, has_result)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        """Count the workers that died, before their tests are handed to others."""
        if error:
            self._deaths += 1
            self._run.recording.note_death(node.gateway.id)

    def units(self) -> UnitsOfTests:
        """Return which tests belong together."""
        return self._units

    def progress(self, node: Any) -> Progress | None:
        """Return how far a worker has come."""
        return self._progress.get(node)

    def executing(self, node: Any) -> Sequence[int]:
        """Return the tests whose code a dead worker was executing."""
        return executing(self._run.directory / "spool" / f"{node.gateway.id}.flight")

    def suspect(self, indices: Sequence[int]) -> None:
        """Let workers ask these tests' samples alone from now on."""
        # Without the file, who is suspected a second time is the one.
        with suppress(OSError):
            add_suspects(self._run.directory / "spool", indices)

    def forget(self, node: Any, node_id: str) -> None:
        """Take back what was reported of a test that another worker runs."""
        forget_in_junit(self._run.config, node_id, node)

    def restarts_left(self) -> float:
        """Return how many more workers may die and be replaced; -1 if the last one is not."""
        from xdist.dsession import get_default_max_worker_restart  # noqa: PLC0415 - as above

        most = get_default_max_worker_restart(self._run.config)
        return inf if most is None else most - self._deaths

    def give_up(self, node: Any, node_ids: Sequence[str]) -> None:
        """Report tests that are not run, because building their unit kills workers.

        They look like the one that pytest-xdist reports when a worker crashes.
        """
        for node_id in node_ids:
            path = node_id.partition("::")[0]
            report = pytest.TestReport(
                nodeid=node_id,
                location=(path, None, node_id),
                keywords={},
                outcome="failed",
                longrepr=f"not run: worker {node.gateway.id!r} crashed while it built the"
                " run unit's knowledge base, like another before it",
                when="???",  # type: ignore[arg-type]
            )
            report.node = node  # type: ignore[attr-defined]
            self._run.config.hook.pytest_runtest_logreport(report=report)

    # -- tests that nobody ran --------------------------------------------------------

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Note which tests were not run because no worker was left."""
        outcome = yield
        if self._scheduler is not None:
            self._not_run = self._scheduler.left()
        return outcome

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let a session that did not run all tests fail."""
        if self._not_run and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the tests that were not run."""
        if self._not_run:
            count = len(self._not_run)
            line = (
                f"{count} {'tests were' if count > 1 else 'test was'} not run, because no worker"
                f" was left to run them: {first_of(self._not_run, _SHOWN_IDS)}"
            )
            terminalreporter.write_line(plain_text(coded("tests-not-run", line)), red=True)
