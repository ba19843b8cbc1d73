"""Items whose result an earlier session of the run has: they are reported, not run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_heta.core.plan import FailOn
from pytest_heta.models import EvaluationCaseResult
from pytest_heta.plugin import _phases
from pytest_heta.plugin.collect import UnitNode, sample_of, unit_node_of
from pytest_heta.plugin.execution import (
    IS_REPLAYED,
    CaseOutcome,
    fail_on_of,
    failure_message,
    note_result,
    show_details,
)
from pytest_heta.plugin.state import Run

__all__ = ["ReplayPlugin"]


class ReplayPlugin:
    """Reports recorded results again, so that counts, JUnit and gates are of the whole run.

    Nothing of such an item is set up: a run unit of which nothing is missing
    is not built.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    # Before the short path, which would ask.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Report the recorded result of an item, if it has one."""
        unit, recorded = unit_node_of(item), self._run.recording.recorded
        if unit is None or recorded is None:
            return None
        payload = recorded.result(unit.entry.plan.label, sample_of(item))
        if payload is None:
            return None
        hooks = item.ihook
        hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        self._report_setup(item)
        self._report_call(item, unit, payload)
        self._tear_down(item, nextitem)
        hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @staticmethod
    def _report_setup(item: pytest.Item) -> None:
        item.stash[IS_REPLAYED] = True  # no fixture of it was set up
        # Plugins such as pytest-rerunfailures begin their notes about an item with this report.
        call = pytest.CallInfo.from_call(lambda: None, when="setup")
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        item.ihook.pytest_runtest_logreport(report=report)

    def _report_call(self, item: pytest.Item, unit: UnitNode, payload: bytes) -> None:
        plan = unit.entry.plan
        outcome = reused_outcome(payload, fail_on_of(self._run, plan))

        def conclude() -> None:
            note_result(item, outcome.result, outcome.payload)
            case = unit.entry.loaded.cases[sample_of(item).case]
            show_details(item, plan, case, outcome.result, outcome.result.response)
            if outcome.message is not None:
                pytest.fail(outcome.message, pytrace=False)

        call = pytest.CallInfo.from_call(conclude, when="call")
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        item.ihook.pytest_runtest_logreport(report=report)

    @staticmethod
    def _tear_down(item: pytest.Item, nextitem: pytest.Item | None) -> None:
        session = item.session
        if session.shouldfail or session.shouldstop:
            nextitem = None  # the run ends here
        # What the last item that was run needed, and the next one does not.
        _phases.tear_down(item, nextitem)


def reused_outcome(payload: bytes, fail_on: FailOn) -> CaseOutcome:
    """Return what came of a sample in an earlier session, marked as such."""
    data: dict[str, Any] = json.loads(payload)
    data["result"]["metadata"]["reused"] = True
    data["tally"]["reused"] = "result"
    result = EvaluationCaseResult.model_validate(data["result"])
    text = json.dumps(data, separators=(",", ":"))
    return CaseOutcome(result, text, None, None, failure_message(result, fail_on))
