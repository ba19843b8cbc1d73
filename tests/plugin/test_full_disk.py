"""A file that cannot be written while a benchmark runs costs no result."""

from __future__ import annotations

import errno
import os

import pytest

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
