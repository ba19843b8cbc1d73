"""How results travel: from an item to its report, and from reports to the run."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any, TypeVar

import pytest

from pytest_heta.core._calls import evaluation_error
from pytest_heta.core.plan import BenchmarkPlan, Sample
from pytest_heta.core.result import failed_result
from pytest_heta.core.staging import DatasetFacts
from pytest_heta.errors import BuildError, HetaError, one_line
from pytest_heta.models import EvaluationCaseResult, EvaluationError, UnitBuild
from pytest_heta.plugin.collect import UnitNode, sample_of, unit_node_of
from pytest_heta.plugin.execution import (
    CLOSING,
    DATASET,
    DETAILS,
    PAYLOAD,
    RESULT,
    UNIT_BUILD,
    WAS_BUILT,
    fail_on_of,
    failure_message,
    note_result,
    show_details,
)
from pytest_heta.plugin.options import VERY_VERBOSE
from pytest_heta.plugin.state import Run
from pytest_heta.reports import plain_text

__all__ = ["ReportPlugin", "ResultCollector"]

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
            self._take_build_along(unit, report)
        if call.when == "teardown":
            self._take_closing_along(unit, report)
        else:
            self._take_result_along(item, unit, call, report)
        return report

    def _take_build_along(self, unit: UnitNode, report: pytest.TestReport) -> None:
        if report.passed and WAS_BUILT not in unit.stash:
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

    def _take_result_along(
        self,
        item: pytest.Item,
        unit: UnitNode,
        call: pytest.CallInfo[None],
        report: pytest.TestReport,
    ) -> None:
        if call.excinfo is not None and report.failed:
            error = call.excinfo.value
            if PAYLOAD not in item.stash:
                self._note_failure(item, unit, str(call.when), error)
            if isinstance(error, HetaError) and self._run.config.get_verbosity() < VERY_VERBOSE:
                report.longrepr = plain_text(error)
        payload, result = _taken(item.stash, PAYLOAD), _taken(item.stash, RESULT)
        if payload is None or result is None:
            return
        report.heta_result = payload  # type: ignore[attr-defined]
        details = _taken(item.stash, DETAILS)
        if details is not None:
            report.heta_details = details  # type: ignore[attr-defined]
        if result.latency_ms is not None:
            report.duration = result.latency_ms / 1000
        # Only what gates see is left to them: another plugin may fail the item, too.
        reason = failure_message(result, "gate")
        if report.failed and reason and fail_on_of(self._run, unit.entry.plan) == "gate":
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
        note_result(item, plan, sample, result)
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
    return "build" if isinstance(error, BuildError) or when == "setup" else "call"


class ResultCollector:
    """Gathers results and builds, in the process that writes the report.

    Attributes:
        results: Result of each sample, by plan label.
        builds: Build of each unit, by plan label and unit id.
        datasets: What staging found out, by plan label.
        details: Lines to show after the run, by node id.
        overridden: Units whose ``heta_kb`` is somebody else's, by plan label.
        closing: Why knowledge bases could not be closed, by plan label and unit id.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.results: dict[str, dict[Sample, EvaluationCaseResult]] = {}
        self.builds: dict[str, dict[str, UnitBuild]] = {}
        self.datasets: dict[str, DatasetFacts] = {}
        self.details: dict[str, list[str]] = {}
        self.overridden: dict[str, dict[str, None]] = {}
        self.closing: dict[str, dict[str, str]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a report carries."""
        build = getattr(report, "heta_build", None)
        if build is not None:
            data = json.loads(build)
            unit_build = UnitBuild.model_validate(data["build"])
            self.builds.setdefault(data["label"], {})[unit_build.unit_id] = unit_build
            if data["dataset"] is not None:
                self.datasets[data["label"]] = DatasetFacts(**data["dataset"])
        overridden = getattr(report, "heta_overridden", None)
        if overridden is not None:
            label, unit_id = overridden
            self.overridden.setdefault(label, {})[unit_id] = None
        closing = getattr(report, "heta_closing", None)
        if closing is not None:
            label, unit_id, problem = closing
            self.closing.setdefault(label, {})[unit_id] = problem
        payload = getattr(report, "heta_result", None)
        if payload is not None:
            self._take_result(report, json.loads(payload))
            del report.heta_result  # pytest keeps every report to the end
        elif report.when not in {"setup", "call", "teardown"}:
            self._take_crash(report)

    def _take_result(self, report: pytest.TestReport, data: dict[str, Any]) -> None:
        sample = Sample(*data["sample"])
        result = EvaluationCaseResult.model_validate(data["result"])
        self._keep(data["label"], sample, result)
        details = getattr(report, "heta_details", None)
        if details is not None:
            self.details[report.nodeid] = details

    def _take_crash(self, report: pytest.TestReport) -> None:
        """Record the sample that a worker was asking when it died."""
        selected = self._run.selected.get(report.nodeid)
        if selected is None:
            return
        label, sample = selected
        plan: BenchmarkPlan = self._run.plans[label]
        error = EvaluationError(
            message=one_line(report.longreprtext) or "the worker crashed", error_type="crash"
        )
        metadata = {"node_id": report.nodeid}
        self._keep(label, sample, failed_result(plan, sample, error, metadata=metadata))

    def _keep(self, label: str, sample: Sample, result: EvaluationCaseResult) -> None:
        self.results.setdefault(label, {})[sample] = result
        self._run.config.hook.pytest_heta_case_completed(config=self._run.config, result=result)
