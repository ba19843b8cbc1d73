"""How results travel: from an item to its report."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import TypeVar

import pytest

from pytest_heta.core._calls import evaluation_error
from pytest_heta.core.build import build_error_type
from pytest_heta.core.result import encode_result, failed_result
from pytest_heta.errors import (
    BuildError,
    BuildTimeoutError,
    DocumentUnavailableError,
)
from pytest_heta.models import EvaluationCaseResult
from pytest_heta.plugin.asking import asking_of
from pytest_heta.plugin.collect import UnitNode, sample_of, unit_node_of
from pytest_heta.plugin.execution import (
    CLOSING,
    DATASET,
    DETAILS,
    IS_REPLAYED,
    LATENCY,
    PAYLOAD,
    RESULT,
    UNIT_BUILD,
    WAS_BUILT,
    fail_on_of,
    failure_message,
    note_result,
    show_details,
)
from pytest_heta.plugin.state import Run

__all__ = ["ReportPlugin"]

T = TypeVar("T")


class ReportPlugin:
    """Puts results on test reports, in the process that runs the items."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the unit's build to a setup report and the result to a call report."""
        report = yield
        unit = unit_node_of(item)
        if unit is None:
            return report
        if call.when == "setup":
            self._take_build_along(item, unit, report)
        if call.when == "teardown":
            self._take_closing_along(unit, report)
        else:
            self._take_result_along(item, unit, call, report)
        return report

    def _take_build_along(
        self, item: pytest.Item, unit: UnitNode, report: pytest.TestReport
    ) -> None:
        if report.passed and WAS_BUILT not in unit.stash and IS_REPLAYED not in item.stash:
            # Somebody's fixture: nothing is known of what is asked there.
            unit.stash[WAS_BUILT] = False
            report.heta_overridden = [unit.entry.plan.label, unit.unit.unit_id]  # type: ignore[attr-defined]
        build = _taken(unit.stash, UNIT_BUILD)
        if build is not None:
            report.heta_build = json.dumps(  # type: ignore[attr-defined]
                {
                    "label": unit.entry.plan.label,
                    "build": build.model_dump(mode="json"),
                    "dataset": unit.stash.get(DATASET, None),
                }
            )

    def _take_closing_along(self, unit: UnitNode, report: pytest.TestReport) -> None:
        problem = _taken(unit.stash, CLOSING)
        if problem is not None:
            report.heta_closing = [unit.entry.plan.label, unit.unit.unit_id, problem]  # type: ignore[attr-defined]
        warnings = asking_of(unit.config).take_problems()
        if warnings:
            report.heta_warnings = [unit.entry.plan.label, *warnings]  # type: ignore[attr-defined]

    def _take_result_along(
        self,
        item: pytest.Item,
        unit: UnitNode,
        call: pytest.CallInfo[None],
        report: pytest.TestReport,
    ) -> None:
        if call.excinfo is not None and report.failed and PAYLOAD not in item.stash:
            self._note_failure(item, unit, str(call.when), call.excinfo.value)
            if not self._run.options.debug:
                failed = item.stash[RESULT]
                report.longrepr = failure_message(failed, "error", traceback_hint=True)
        asking = asking_of(item.config)
        if asking.news is not None:
            report.heta_concurrency = list(asking.news)  # type: ignore[attr-defined]
            asking.news = None
        payload, latency_ms = _taken(item.stash, PAYLOAD), _taken(item.stash, LATENCY)
        result = _taken(item.stash, RESULT)
        if payload is None:
            return
        report.heta_result = payload  # type: ignore[attr-defined]
        details = _taken(item.stash, DETAILS)
        if details is not None:
            report.heta_details = details  # type: ignore[attr-defined]
        if latency_ms is not None:
            report.duration = latency_ms / 1000
        if report.failed and result is not None:
            self._expect_failure(unit, report, result)

    def _expect_failure(
        self, unit: UnitNode, report: pytest.TestReport, result: EvaluationCaseResult
    ) -> None:
        """Make a failure that only gates are to judge an expected one."""
        # Only what gates see is left to them: another plugin may fail the item, too.
        reason = failure_message(result, "gate")
        if reason and fail_on_of(self._run, unit.entry.plan) == "gate":
            report.outcome = "skipped"
            report.wasxfail = reason

    def _note_failure(
        self, item: pytest.Item, unit: UnitNode, when: str, error: BaseException
    ) -> None:
        """Record the failure of an item that never came to its result."""
        plan = unit.entry.plan
        sample = sample_of(item)
        failure = evaluation_error(error, _error_type(when, error))
        result = failed_result(plan, sample, failure, metadata={"node_id": item.nodeid})
        result = self._run.recording.with_attempts(plan.label, sample, result)
        note_result(item, result, encode_result(plan.label, sample, result))
        show_details(item, plan, unit.entry.loaded.cases[sample.case], result, None)


def _taken(stash: pytest.Stash, key: pytest.StashKey[T]) -> T | None:
    """Return what lies under a key, if anything, and leave nothing: it travels once."""
    value = stash.get(key, None)
    if value is not None:
        del stash[key]
    return value


def _error_type(when: str, error: BaseException) -> str:
    # pytest-timeout fails the test that takes too long, wherever it is.
    if isinstance(error, pytest.fail.Exception) and str(error).startswith("Timeout (>"):
        return "timeout"
    if isinstance(error, BuildError | BuildTimeoutError | DocumentUnavailableError):
        return build_error_type(error)
    return "build" if when == "setup" else "call"
