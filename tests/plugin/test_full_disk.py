"""A file that cannot be written while a benchmark runs costs no result."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pytest_heta.core._appended import AppendedFile
from pytest_heta.core.spool import Spool


@pytest.fixture
def full(monkeypatch):
    """Let every write to a spool fail as on a full disk."""

    def write(self, line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Spool, "_write", write)


def test_results_are_whole_when_responses_cannot_be_spooled(world, full):
    result = world.run()
    result.assert_outcomes(passed=6)
    report = world.report()
    warnings = [text for text in report["metadata"]["warnings"] if "written down" in text]
    assert len(warnings) == 1
    assert "No space left on device" in warnings[0]
    assert len(report["case_results"]) == report["metadata"]["planned_samples"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
def test_results_are_whole_when_they_cannot_be_written(world, monkeypatch, workers):
    def make(self):
        self._file = Path("/dev/full").open("r+b", buffering=0)  # noqa: SIM115

    monkeypatch.setattr(AppendedFile, "_open", make)
    result = world.run("--heta-gate=overlap.recall@1 >= 1", *workers)
    result.assert_outcomes(passed=7)
    result.stdout.fnmatch_lines(["PASSED toys: overlap.recall@1 = 1 >= 1*"])
    report = world.report()
    warnings = [text for text in report["metadata"]["warnings"] if "in memory" in text]
    (warning,) = warnings
    assert warning == (
        "[results-not-kept] results are kept in memory, not written down:"
        " OSError: [Errno 28] No space left on device"
    )
    assert [case["case_id"] for case in report["case_results"]] == ["pie", "repair", "rain"] * 2


def test_nothing_is_said_of_a_disk_with_room(world):
    world.run().assert_outcomes(passed=6)
    assert world.report()["metadata"]["warnings"] == []
