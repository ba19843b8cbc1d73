"""What the processes of a distributed run tell each other, beside the reports.

The controller of pytest-xdist collects nothing. The first worker that has
collected writes the plans and the selected samples into the run's folder, and
the controller reads them there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from filelock import FileLock

from pytest_heta.core.plan import BenchmarkPlan, Sample
from pytest_heta.plugin.datasets import names_paths
from pytest_heta.plugin.scheduler import UnitScheduling
from pytest_heta.plugin.state import Run, will_run

__all__ = ["ControllerPlugin", "WorkerPlugin"]

_PLANS: Final = "plans.json"


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
            data = {
                "refusals": self._run.refusals,
                "will_run": will_run(session),
                "plans": [plan.as_json() for plan in self._run.plans.values()],
                "selected": [
                    [node_id, label, *sample]
                    for node_id, (label, sample) in self._run.selected.items()
                ],
            }
            unfinished = path.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(data), encoding="ascii")
            unfinished.replace(path)


class ControllerPlugin:
    """In the controller: reads the plans and hands out whole units."""

    def __init__(self, run: Run, when_planned: Callable[[], None]) -> None:
        self._run = run
        self._when_planned = when_planned
        self._planned = False
        self._set_up: dict[Any, str] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[object]) -> None:
        """Note how many workers there will be."""
        self._run.concurrency = len(specs)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where the run's folder is, and what it cannot see in its arguments."""
        node.workerinput["heta_directory"] = str(self._run.directory)
        node.workerinput["heta_names_paths"] = names_paths(self._run.config)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Read the plans when the first worker has collected."""
        if self._planned:
            return
        self._planned = True
        path: Path = self._run.directory / _PLANS
        data = json.loads(path.read_text(encoding="ascii"))
        self._run.refusals = data["refusals"]
        self._run.check_refusals()
        for text in data["plans"]:
            plan = BenchmarkPlan.from_json(text)
            self._run.plans[plan.label] = plan
        for node_id, label, *sample in data["selected"]:
            self._run.selected[node_id] = (label, Sample(*sample))
        if data["will_run"]:
            self._when_planned()

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Take the place of the plain ``-n N`` scheduler."""
        if config.getoption("dist") != "load":
            return None
        return UnitScheduling(
            config, log, selected=self._run.selected, set_up=self._set_up, give_up=self._give_up
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how far a worker has come."""
        if report.when == "setup" and hasattr(report, "node"):
            self._set_up[report.node] = report.nodeid

    def _give_up(self, node: Any, node_ids: Sequence[str]) -> None:
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
