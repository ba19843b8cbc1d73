"""What a person reads at the end of a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_heta.codes import coded
from pytest_heta.plugin.collector import ResultCollector
from pytest_heta.plugin.conclusion import ConclusionPlugin
from pytest_heta.plugin.history import damage_line, keeping_line
from pytest_heta.plugin.state import Run
from pytest_heta.reports import (
    gate_line,
    plain_text,
    reuse_text,
    summary_table,
    worst_cases_lines,
)

__all__ = ["TerminalPlugin"]


class TerminalPlugin:
    """Prints recipe, tables, gates, worst cases and where the report is."""

    def __init__(self, run: Run, collector: ResultCollector, conclusion: ConclusionPlugin) -> None:
        self._run = run
        self._collector = collector
        self._conclusion = conclusion

    def pytest_report_header(self) -> str:
        """Name the recipes."""
        return f"heta recipes: {', '.join(recipe.name for recipe in self._run.recipes)}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the results."""
        reports = self._conclusion.reports
        if not reports:
            return
        width = self._run.config.get_terminal_writer().fullwidth
        self._write_details(terminalreporter)
        self._write_tables(terminalreporter, width)
        self._write_gates(terminalreporter)
        if terminalreporter.verbosity >= 0:
            self._write_worst_cases(terminalreporter, width)
        for path in self._conclusion.written:
            terminalreporter.write_line(f"heta report: {self._shown(path)}")
        for problem in self._conclusion.problems:
            terminalreporter.write_line(plain_text(problem), red=True)
        self._write_how_to_resume(terminalreporter)

    def _write_tables(self, terminalreporter: pytest.TerminalReporter, width: int) -> None:
        write = terminalreporter.write_line
        terminalreporter.section("heta results")
        for report in self._conclusion.reports:
            baseline = self._run.baseline.get(report.report_key)
            for line in summary_table(report, width, baseline=baseline):
                write(line)
            for warning in report.metadata["warnings"]:
                write(f"warning: {plain_text(warning)}", yellow=True)
            if baseline is None and self._run.options.baseline is not None:
                text = f"the baseline has no report {report.report_key}"
                write(f"warning: {coded('baseline-incomplete', text)}", yellow=True)
            write("")

    def _write_gates(self, terminalreporter: pytest.TerminalReporter) -> None:
        gates = self._conclusion.gates
        if gates:
            terminalreporter.section("heta gates")
            for gate in gates:
                colour = {"passed": "green", "skipped": "yellow"}.get(gate.status, "red")
                terminalreporter.write_line(gate_line(gate), **{colour: True})

    def _write_how_to_resume(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was taken over, what is missing, and how to go on with it."""
        write, recording, end = terminalreporter.write_line, self._run.recording, self._conclusion
        if recording.place is None:
            return
        reused = reuse_text(end.reports)
        if reused:
            whose = "earlier sessions" if recording.resumes else "workers that died"
            write(f"heta: {reused} from {whose} of run {recording.run_id}")
        for warning in (keeping_line(recording), damage_line(recording)):
            if warning is not None:
                write(f"heta: warning: {plain_text(warning)}", yellow=True)
        if end.missing or end.failed:
            counts = [(end.missing, "missing"), (end.failed, "failed by an error")]
            told = " and ".join(f"{count} {what}" for count, what in counts if count)
            write(
                f"heta: {told} in run {recording.run_id}; to run only those, repeat the command"
                f" with --heta-resume={recording.place}",
                yellow=True,
            )

    def _write_worst_cases(self, terminalreporter: pytest.TerminalReporter, width: int) -> None:
        for report in self._conclusion.reports:
            lines = worst_cases_lines(report, width, from_here=self._from_here)
            if lines:
                terminalreporter.section(f"heta worst cases: {report.metadata['label']}")
                for line in lines:
                    terminalreporter.write_line(line)

    def _write_details(self, terminalreporter: pytest.TerminalReporter) -> None:
        details = self._collector.details
        if not details:
            return
        order = {node_id: position for position, node_id in enumerate(self._run.selected)}
        terminalreporter.section("heta cases")
        for node_id in sorted(details, key=lambda n: order.get(n, len(order))):
            terminalreporter.write_line(plain_text(self._from_here(node_id)), bold=True)
            for line in details[node_id]:
                terminalreporter.write_line(f"  {line}")

    def _from_here(self, node_id: str) -> str:
        """Return a node id as pytest takes it in the current folder, not in the root folder."""
        config = self._run.config
        if config.invocation_params.dir == config.rootpath:
            return node_id
        path, separator, rest = node_id.partition("::")
        path = os.path.relpath(config.rootpath / path, config.invocation_params.dir)
        return f"{path}{separator}{rest}"

    def _shown(self, path: Path) -> Path:
        """Return a path as it is typed in the current folder, if it is in there."""
        here = self._run.config.invocation_params.dir
        return path.relative_to(here) if path.is_relative_to(here) else path
