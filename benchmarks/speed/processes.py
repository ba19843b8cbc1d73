"""Runs commands side by side and measures each from outside. Standard library only."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

QUIET: Final = {"CI": "1", "COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "", "PYTEST_ADDOPTS": ""}
"""The environment of every command, beside the caller's own."""

TOLERANCE: Final = 1e-9
"""How far a report's means may be from the workload's own."""

_POLL_SECONDS: Final = 0.002
_TAIL_BYTES: Final = 2_000


class MeasuringError(Exception):
    """A command failed, or reported something else than it was asked for."""


@dataclass(frozen=True)
class Figures:
    """What one run of a command took.

    Attributes:
        wall: Seconds by a monotonic clock.
        cpu: Seconds of user and system time, of the process and what it waited for.
        peak: MiB of the largest one process.
        notes: Numbers that the command's own output told.
    """

    wall: float
    cpu: float
    peak: float
    notes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Peer:
    """A command to measure.

    Attributes:
        name: How the table calls it.
        command: The command; ``{py}`` is its interpreter.
        python: The interpreter.
        environment: Variables on top of the row's.
        prepare: Is given the command's fresh folder before each run.
        read: Is given the folder after each run; returns numbers to keep.
        exit_codes: Exit codes that are right.
        checked: Whether the run leaves the workload's report, to be checked.
    """

    name: str
    command: str
    python: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], None] | None = None
    read: Callable[[Path], Mapping[str, float]] | None = None
    exit_codes: tuple[int, ...] = (0,)
    checked: bool = True


@dataclass(frozen=True)
class Workload:
    """The workload of a row: what the peers are told by environment variables.

    Attributes:
        folder: The peers, with the module ``workload``; None where a row needs none.
        suite: Our suite for it, copied beside them as ``own``.
        cases: Number of cases.
        units: Number of run units.
        build_ms: CPU milliseconds of each build.
    """

    folder: Path | None
    suite: Path
    cases: int = 1
    units: int = 1
    build_ms: float = 0.0

    def environment(self) -> dict[str, str]:
        return {
            "PERF_CASES": str(self.cases),
            "PERF_UNITS": str(self.units),
            "PERF_BUILD_MS": str(self.build_ms),
            "PERF_CONC": "8",
            "PERF_LAT": "none",
        }

    def copy_to(self, folder: Path) -> None:
        folder.mkdir()
        if self.folder is not None:
            unwanted = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(self.folder, folder, ignore=unwanted, dirs_exist_ok=True)
            shutil.copytree(self.suite, folder / "own", ignore=unwanted)
        (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")

    def expected_means(self) -> tuple[float, float]:
        """Return the right recall and nDCG.

        Another process computes them: the peak of a command begins at the
        size of the process that starts it.
        """
        code = "import workload; print(*map(repr, workload.expected_means()))"
        environment = {**os.environ, **self.environment(), "PYTHONPATH": str(self.folder)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, check=True
        )
        recall, ndcg = map(float, done.stdout.split())
        return recall, ndcg


def measure(
    workload: Workload, peers: Sequence[Peer], *, rounds: int, warmup: int = 1
) -> dict[str, list[Figures]]:
    """Run the peers in turn, A B A B, so that a slow spell of the machine hits all of them.

    Args:
        workload: What they work on.
        peers: The commands.
        rounds: Runs of each that count.
        warmup: Runs of each before, that do not.

    Raises:
        MeasuringError: if one fails or its report is wrong.
    """
    expected = workload.expected_means() if any(peer.checked for peer in peers) else (0.0, 0.0)
    figures: dict[str, list[Figures]] = {peer.name: [] for peer in peers}
    for number in range(warmup + rounds):
        for peer in peers:
            measured = _run(workload, peer, expected)
            if number >= warmup:
                figures[peer.name].append(measured)
    return figures


def median(figures: Sequence[Figures]) -> Figures:
    """Return the medians of several runs, each number by itself."""
    notes = {
        name: statistics.median(run.notes[name] for run in figures) for name in figures[0].notes
    }
    wall, cpu, peak = (
        statistics.median(getattr(run, name) for run in figures) for name in ("wall", "cpu", "peak")
    )
    return Figures(wall, cpu, peak, notes)


def _run(workload: Workload, peer: Peer, expected: tuple[float, float]) -> Figures:
    with tempfile.TemporaryDirectory(prefix="heta-speed-") as temporary:
        place = Path(temporary)
        folder, report, log = place / "peers", place / "report.json", place / "log"
        workload.copy_to(folder)
        if peer.prepare is not None:
            peer.prepare(folder)
        environment = {
            **os.environ,
            **QUIET,
            **workload.environment(),
            **peer.environment,
            "PERF_OUT": str(report),
            "PYTHONPATH": str(folder),
            "PATH": f"{peer.python.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": temporary,
        }
        command = shlex.split(peer.command.format(py=shlex.quote(str(peer.python))))
        wall, exit_code, usage = _waited_for(command, folder, environment, log)
        if exit_code not in peer.exit_codes:
            tail = log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
            raise MeasuringError(f"{peer.name}: exit code {exit_code}\n{tail}")
        if peer.checked:
            _check(peer, report, workload.cases, expected)
        notes = peer.read(folder) if peer.read is not None else {}
    return Figures(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, notes)


def _waited_for(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path
) -> tuple[float, int, object]:
    with log.open("wb") as output:
        start = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        while True:
            # Popen's own waiting would leave no account of what the process used.
            done, status, usage = os.wait4(process.pid, os.WNOHANG)
            if done:
                break
            time.sleep(_POLL_SECONDS)
        wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    return wall, process.returncode, usage


def _check(peer: Peer, report: Path, cases: int, expected: tuple[float, float]) -> None:
    if not report.is_file():
        raise MeasuringError(f"{peer.name}: it wrote no report")
    told = json.loads(report.read_text(encoding="utf-8"))
    means = (told["recall@5"], told["ndcg@10"])
    wrong = any(abs(a - b) > TOLERANCE for a, b in zip(means, expected, strict=True))
    if told["n"] != cases or wrong:
        raise MeasuringError(
            f"{peer.name}: it reports {told['n']} cases with {means}, not {cases} with {expected}"
        )
