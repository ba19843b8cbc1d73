"""What reports carry, gathered in the process that writes the report."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_heta.codes import coded
from pytest_heta.core.journal import ResultJournal
from pytest_heta.core.plan import BenchmarkPlan, Sample
from pytest_heta.core.result import encode_result, failed_result
from pytest_heta.core.staging import DatasetFacts
from pytest_heta.errors import one_line
from pytest_heta.models import EvaluationError, PagedResults, SampleTally, UnitBuild
from pytest_heta.plugin.state import Run
from pytest_heta.reports import plain_text, sample_error

__all__ = ["ResultCollector"]

_PHASES = frozenset({"setup", "call", "teardown"})


class ResultCollector:
    """Gathers results and builds.

    Results go to the run's journal as the texts that they arrive as; nobody
    parses one before somebody wants to see it.

    Attributes:
        builds: Build of each unit, by plan label and unit id.
        datasets: What staging found out, by plan label.
        details: Lines to show after the run, by node id.
        overridden: Units whose ``heta_kb`` is somebody else's, by plan label.
        closing: Why knowledge bases could not be closed, by plan label and unit id.
        warnings: What else is to be said in the reports, by plan label.
        concurrency: Queries at the same time in one process, by plan label.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._journal: ResultJournal | None = None
        self.builds: dict[str, dict[str, UnitBuild]] = {}
        self.datasets: dict[str, DatasetFacts] = {}
        self.details: dict[str, list[str]] = {}
        self.overridden: dict[str, dict[str, None]] = {}
        self.closing: dict[str, dict[str, str]] = {}
        self.warnings: dict[str, dict[str, None]] = {}
        self.concurrency: dict[str, int] = {}

    @property
    def journal(self) -> ResultJournal:
        """The run's journal; its file is made with the first result."""
        if self._journal is None:
            self._journal = ResultJournal(self._run.recording.session_path / "results.jsonl")
            self._run.config.add_cleanup(self._journal.close)
        return self._journal

    def results(self, plan: BenchmarkPlan) -> PagedResults:
        """Return the results of a plan, in its order."""
        if self._journal is None:
            return PagedResults((), _nothing_to_read)
        return self._journal.results(plan.label, plan.samples())

    def finished(self, plan: BenchmarkPlan) -> dict[Sample, bool]:
        """Return the samples of a plan that have a result, and whether it has an error."""
        if self._journal is None:
            return {}
        return {
            sample: tally.failed or any(score.status == "errored" for score in tally.scores)
            for sample, tally in self._journal.tallies(plan.label).items()
        }

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a report carries."""
        carried: dict[str, Any] = report.__dict__
        # Pytest keeps every report to the end; the result is long.
        payload = carried.pop("heta_result", None)
        if payload is not None:
            self._take_result(report, payload, carried.pop("heta_known", None))
        elif report.when not in _PHASES:
            self._take_crash(report)
        self._take_facts_of_unit(carried)

    def _take_facts_of_unit(self, carried: dict[str, Any]) -> None:
        build = carried.get("heta_build")
        if build is not None:
            data = json.loads(build)
            unit_build = UnitBuild.model_validate(data["build"])
            builds = self.builds.setdefault(data["label"], {})
            # Of a unit that several workers share, the one that built it tells how long it took.
            if unit_build.load_seconds is None or unit_build.unit_id not in builds:
                builds[unit_build.unit_id] = unit_build
            if data["dataset"] is not None:
                facts = self.datasets[data["label"]] = DatasetFacts(**data["dataset"])
                self._run.recording.note_documents(data["label"], facts.digest)
        overridden = carried.get("heta_overridden")
        if overridden is not None:
            label, unit_id = overridden
            self.overridden.setdefault(label, {})[unit_id] = None
        closing = carried.get("heta_closing")
        if closing is not None:
            label, unit_id, problem = closing
            self.closing.setdefault(label, {})[unit_id] = problem
        warnings = carried.get("heta_warnings")
        if warnings is not None:
            label, *texts = warnings
            self.warnings.setdefault(label, {}).update(dict.fromkeys(texts))
        concurrency = carried.get("heta_concurrency")
        if concurrency is not None:
            label, at_once = concurrency
            if at_once > self.concurrency.get(label, 0):
                self.concurrency[label] = at_once
                self._run.recording.note_concurrency(label, at_once * self._run.concurrency)

    def _take_result(
        self,
        report: pytest.TestReport,
        payload: str,
        known: tuple[str, Sample, SampleTally] | None = None,
    ) -> None:
        """Keep a result; ``known`` is what a report of this process says without the text."""
        if known is None:
            label, sample = self.journal.take(payload)
        else:
            label, sample, tally = known
            self.journal.keep(label, sample, tally, payload)
        if self.journal.problem is not None:
            problem = f"results are kept in memory, not written down: {self.journal.problem}"
            text = coded("results-not-kept", problem)
            self.warnings.setdefault(label, {})[text] = None
        details = getattr(report, "heta_details", None)
        if details is not None:
            self.details[report.nodeid] = details
        hook = self._run.config.hook.pytest_heta_case_completed
        if hook.get_hookimpls():
            hook(config=self._run.config, result=self.journal.result(label, sample))

    def _take_crash(self, report: pytest.TestReport) -> None:
        """Record the sample that a worker was asking when it died."""
        selected = self._run.selected.get(report.nodeid)
        if selected is None:
            return
        label, sample = selected
        error = EvaluationError(
            message=one_line(report.longrepr or "the worker crashed"), error_type="crash"
        )
        metadata = {"node_id": report.nodeid}
        result = failed_result(self._run.plans[label], sample, error, metadata=metadata)
        result = self._run.recording.with_attempts(label, sample, result)
        report.longrepr = plain_text(sample_error(result))
        self._take_result(report, encode_result(label, sample, result))


def _nothing_to_read(index: int) -> bytes:
    raise IndexError(index)
