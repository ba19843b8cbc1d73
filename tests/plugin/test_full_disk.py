"""A file that cannot be written while a benchmark runs costs no result."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pytest_heta.core import _sync
from pytest_heta.core._appended import AppendedFile
from pytest_heta.core.run_folder import RunFolder
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


def test_each_thing_that_is_not_written_down_is_a_line_of_its_own(world, full, monkeypatch):
    found = iter(["OSError: [Errno 5] Input/output error"])
    monkeypatch.setattr(_sync, "take_problem", lambda: next(found, None))
    world.run().assert_outcomes(passed=6)
    full_disk, bad_disk = world.report()["metadata"]["warnings"]
    assert full_disk.startswith("[results-not-kept] responses are not written down as they come: ")
    assert bad_disk == (
        "[results-not-kept] what was written may not be on the disk itself:"
        " OSError: [Errno 5] Input/output error"
    )


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


class TestTheFileOfTheRun:
    """Nothing but resuming is lost where ``run.json`` cannot be written."""

    @pytest.fixture
    def failing(self, monkeypatch):
        """Let every write fail from the one on that notes what the run is about."""

        def set_fingerprints(self, fingerprints, real=RunFolder.set_fingerprints):
            monkeypatch.setattr(os, "fsync", _full)
            real(self, fingerprints)

        monkeypatch.setattr(RunFolder, "set_fingerprints", set_fingerprints)
        yield
        monkeypatch.undo()

    @pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
    def test_the_run_goes_on_and_says_so(self, world, failing, workers):
        result = world.run("--heta-runs-dir=runs", *workers)
        result.assert_outcomes(passed=6)
        told = [line for line in result.outlines if "[run-not-kept]" in line]
        assert len(told) == 1
        assert "No space left on device" in told[0]

    def test_it_is_not_taken_over_unseen(self, world, failing, monkeypatch):
        world.run("--heta-runs-dir=runs")
        monkeypatch.undo()
        monkeypatch.chdir(world.path)
        result = world.run("--heta-runs-dir=runs", "--heta-resume")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        text = "\n".join(result.errlines)
        assert "[resume-refused]" in text
        assert "what it was about could not be written down" in text


def _full(descriptor):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
