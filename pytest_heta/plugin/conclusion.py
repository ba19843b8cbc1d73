"""The end of a run, on the controller: aggregates, gates and report files."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from traceback import format_exception
from typing import Any, Final

import pytest

from pytest_heta.codes import coded
from pytest_heta.core import _sync
from pytest_heta.core.aggregate import build_report, dataset_metadata, summarise_tallies
from pytest_heta.core.gates import ResolvedGate, decide_gates, gates_of_run
from pytest_heta.core.plan import BenchmarkPlan, Sample
from pytest_heta.core.snapshot import config_snapshot, git_commit, package_versions
from pytest_heta.errors import HetaError
from pytest_heta.models import EvaluationReport, GateResult, ModeSummary
from pytest_heta.plugin._phases import add_junit_property
from pytest_heta.plugin.collector import ResultCollector
from pytest_heta.plugin.execution import fail_on_of
from pytest_heta.plugin.fingerprints import fingerprints
from pytest_heta.plugin.gates import emit_errors, emit_gates, uncovered_errors
from pytest_heta.plugin.history import concurrency_of, facts_of_run, history_of, mixed_concurrency
from pytest_heta.plugin.options import refuse, source_of, usage_error
from pytest_heta.plugin.state import Run, will_run
from pytest_heta.plugin.withdrawal import withdraw_reports
from pytest_heta.reports import suite_properties, write_reports

__all__ = ["ConclusionPlugin"]

_ENDED_EARLY: Final = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)

_MOST_NAMED: Final = 100
"""Missing samples that a report names."""


class ConclusionPlugin:
    """Decides the gates once, makes the reports and writes them.

    Attributes:
        reports: The reports, in plan order, once the tests have run.
        gates: What came of the gates, also of those that are about no report.
        written: Report files that were written.
        problems: Why report files could not be written.
        missing: Samples that were selected and have no result.
        failed: Samples that have a result with an error.
    """

    def __init__(
        self, run: Run, collector: ResultCollector, targets: Sequence[tuple[str, Path]]
    ) -> None:
        self._run = run
        self._collector = collector
        self._targets = targets
        self._gates: tuple[ResolvedGate, ...] | None = None
        self._gates_counted = False
        self._interrupted: str | None = None
        self._is_collected = False
        self.reports: list[EvaluationReport] = []
        self.gates: tuple[GateResult, ...] = ()
        self.written: list[Path] = []
        self.problems: list[str] = []
        self.missing = 0
        self.failed = 0

    # -- before anything is built -----------------------------------------------

    def check_plans(self) -> None:
        """Check what the options say of benchmarks, now that these are known.

        Raises:
            pytest.UsageError: if a gate or ``--heta-show`` names what is not
                there, or the run to resume was about something else.
        """
        self._check_shown_case()
        if not self._run.options.no_gates and self._gates is None:
            self._resolve_gates()
        if self._run.fingerprints:
            self._run.recording.compare(self._run.fingerprints)
        if self._run.selected:
            paths = [path for _, path in self._targets]
            withdraw_reports(self._run, paths, "the run has not ended")

    def _check_shown_case(self) -> None:
        run, show = self._run, self._run.options.show
        cases = dict.fromkeys(case for plan in run.plans.values() for case in plan.cases)
        if show is None or show in {"misses", "all"} or show in cases or not cases:
            return
        close = get_close_matches(show, cases, n=3)
        hint = f"did you mean {' or '.join(map(repr, close))}? Give" if close else "give"
        refuse(
            source_of(run.config, "show"),
            f"no case {show!r} is planned; {hint} misses, all or the id of a planned case",
        )

    def _resolve_gates(self) -> None:
        run = self._run
        plans = list(run.plans.values())
        if not plans and any(gate.origin == "command line" for gate in run.gates):
            refuse("--heta-gate", "no benchmark is planned; name a suite file or a dataset folder")
        try:
            self._gates = gates_of_run(run.gates, plans, run.recipes)
        except HetaError as error:
            raise usage_error(error) from error

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Note that the tests are known, where workers collect them."""
        self._is_collected = True

    # Inside the terminal's own wrapper, which writes the last percentage.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Decide the gates when the tests have run, as tests of their own."""
        if session.config.option.collectonly:
            return (yield)
        self._is_collected = getattr(session.config.option, "dist", "no") == "no"
        if will_run(session):
            if self._run.entries:
                self._run.fingerprints = fingerprints(self._run, session)
            self.check_plans()
            self._count_gates(session)
        try:
            outcome = yield
        except pytest.UsageError:
            raise
        except BaseException as error:
            self._interrupted = str(error) or type(error).__name__
            self._conclude(session)
            raise
        if session.shouldfail or session.shouldstop:
            self._interrupted = str(session.shouldfail or session.shouldstop)
        self._conclude(session)
        return outcome

    # -- when the tests have run --------------------------------------------------

    def _count_gates(self, session: pytest.Session) -> None:
        """Let the terminal's percentage know that gates are tests too.

        The controller of a distributed run learns of the gates while the
        tests are running, so it counts them at the end.
        """
        if not self._gates_counted and self._gates:
            self._gates_counted = True
            session.testscollected += len(self._gates)

    def _conclude(self, session: pytest.Session) -> None:
        run = self._run
        self._to_disk()
        results = {label: self._collector.results(plan) for label, plan in run.plans.items()}
        summaries = {
            label: {
                mode: summarise_tallies(plan, mode, results[label].tallies) for mode in plan.modes
            }
            for label, plan in run.plans.items()
        }
        self.gates = gates = decide_gates(
            self._gates or (),
            summaries,
            subset=run.options.gate_subset,
            complete={
                (label, mode): (summary.total_cases, summary.planned_samples)
                for label, of_plan in summaries.items()
                for mode, summary in of_plan.items()
            },
        )
        commit = git_commit(run.config.rootpath) if run.plans else None
        finished_at = datetime.now(UTC)
        for label, plan in run.plans.items():
            own = tuple(
                gate
                for gate in gates
                if (gate.benchmark, gate.recipe) == (plan.benchmark.name, plan.recipe_name)
            )
            report = build_report(
                plan,
                results[label],
                unit_builds=self._collector.builds.get(label, {}).values(),
                gates=own,
                started_at=run.started_at,
                finished_at=finished_at,
                snapshot=self._snapshot(plan, commit),
                metadata=self._metadata(plan, summaries[label]),
                summaries=summaries[label],
            )
            self.reports.append(report)
            run.config.hook.pytest_heta_report(config=run.config, report=report)
        self._count_gates(session)
        self._emit(session, gates, summaries)

    def _to_disk(self) -> None:
        """Have all results on the disk before the report says that they are there."""
        _sync.sync()
        problem = _sync.take_problem()
        if problem is not None:
            text = f"what was written may not be on the disk itself: {problem}"
            self.problems.append(f"heta: {coded('results-not-kept', text)}")

    def _emit(
        self,
        session: pytest.Session,
        gates: Sequence[GateResult],
        summaries: dict[str, dict[str, ModeSummary]],
    ) -> None:
        run = self._run
        errors = [
            (plan, mode, text)
            for label, plan in run.plans.items()
            if self._interrupted is None and fail_on_of(run, plan) == "gate"
            for mode, summary in summaries[label].items()
            if (text := uncovered_errors(plan, mode, summary, gates)) is not None
        ]
        session.testscollected += len(errors)
        emit_gates(
            run.config,
            tuple(run.plans.values()),
            gates,
            required=run.options.require_gates,
        )
        for plan, mode, text in errors:
            emit_errors(run.config, plan, mode, text)

    # -- reports --------------------------------------------------------------

    def _snapshot(self, plan: BenchmarkPlan, commit: str | None) -> dict[str, Any]:
        dataset = self._collector.datasets.get(plan.label)
        return config_snapshot(
            plan,
            dataset_digest=dataset.digest if dataset else None,
            commit=commit,
            concurrency=concurrency_of(self._run.recording, plan.label),
            warmup=self._run.options.warmup,
        )

    def _metadata(
        self, plan: BenchmarkPlan, summaries: Mapping[str, ModeSummary]
    ) -> dict[str, Any]:
        run, label = self._run, plan.label
        dataset = self._collector.datasets.get(label)
        selected = {sample for known, sample in run.selected.values() if known == label}
        metadata: dict[str, Any] = {
            "label": label,
            "suite": plan.suite_id,
            "reduced": plan.reduced,
            "interrupted": self._interrupted,
            # Other plugins may repeat an item; its sample is the same.
            "selected_samples": len(selected),
            **self._missing_of(plan, selected),
            **history_of(run.recording, label, summaries),
            **dataset_metadata(plan, dataset, self._collector.closing.get(label, {})),
        }
        metadata["warnings"] += self._collector.warnings.get(label, {})
        mixed = mixed_concurrency(run.recording, label)
        metadata["warnings"] += [mixed] if mixed is not None else []
        overridden = self._collector.overridden.get(label, {})
        if overridden:
            metadata["overridden_units"] = list(overridden)
            metadata["warnings"].append(
                coded(
                    "fixture-overridden",
                    f"heta_kb is overridden for {len(overridden)} of {len(plan.units)} run units:"
                    " what was asked there is not what the recipe's manifest describes",
                )
            )
        return metadata

    def _missing_of(self, plan: BenchmarkPlan, selected: set[Sample]) -> dict[str, Any]:
        """Return what a report says of samples that were selected and have no result."""
        finished = self._collector.finished(plan)
        missing = [sample for sample in plan.samples() if sample in selected - finished.keys()]
        failed = [sample for sample in plan.samples() if finished.get(sample)]
        self.missing += len(missing)
        self.failed += len(failed)
        return {
            "missing_samples": len(missing),
            "missing": [_named(sample) for sample in missing[:_MOST_NAMED]],
        }

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int | pytest.ExitCode
    ) -> None:
        """Write the report files, and the aggregates into the JUnit file."""
        config = session.config
        if config.option.collectonly or exitstatus == pytest.ExitCode.USAGE_ERROR:
            return
        if not self._is_collected and exitstatus in _ENDED_EARLY:
            paths = [path for _, path in self._targets]
            withdraw_reports(self._run, paths, "it ended while tests were collected")
            return
        if not self._run.selected:
            # A run that was to ask nothing leaves the report of the last one alone.
            return
        for name, value in suite_properties(self.reports):
            add_junit_property(config, name, value)
        about = {
            "pytest_heta_version": package_versions().get("pytest-heta"),
            "started_at": self._run.started_at.isoformat(),
            "finished_at": datetime.now(UTC).isoformat(),
            "complete": bool(self.reports)
            and all(report.metadata["complete"] for report in self.reports),
            "interrupted": self._interrupted,
            "arguments": list(config.invocation_params.args),
            **facts_of_run(self._run.recording),
        }
        for _, path in self._targets:
            try:
                write_reports(path, about, self.reports)
            except HetaError as error:
                self.problems.append(str(error))
                if self._run.options.debug:
                    self.problems += "".join(format_exception(error)).splitlines()
                session.exitstatus = exitstatus or pytest.ExitCode.TESTS_FAILED
            else:
                self.written.append(path)
        self._run.recording.end(
            complete=not (self.missing or self.failed), interrupted=self._interrupted
        )


def _named(sample: Sample) -> str:
    """Return a sample as the benchmark, unit, mode and case of its node id."""
    repeat = f"-rep{sample.repeat}" if sample.repeat > 1 else ""
    return f"{sample.benchmark}::{sample.unit}::{sample.mode}[{sample.case}{repeat}]"
