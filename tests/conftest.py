"""What all tests share."""

from __future__ import annotations

import tempfile

# Inner runs of pytester forget modules that they import first. Modules with
# state of their own (stash keys, extension modules) must be here before.
import numpy as np  # noqa: F401
import pytest
from hypothesis import settings

import pytest_heta.benchmarks
import pytest_heta.core.runner
import pytest_heta.plugin.activation
import pytest_heta.plugin.scheduler  # noqa: F401

# A deadline would assert a time; the same examples in every run make a failure
# one that everybody sees.
settings.register_profile("heta", deadline=None, derandomize=True)
settings.load_profile("heta")


@pytest.fixture(autouse=True)
def _temporary_folders_go_with_the_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Keep runs that could be resumed out of the machine's own temporary folder."""
    folder = str(tmp_path_factory.mktemp("temporary"))
    monkeypatch.setattr(tempfile, "tempdir", folder)
    monkeypatch.setenv("TMPDIR", folder)


@pytest.fixture(autouse=True)
def _inner_sessions_are_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide from inner pytest sessions that the outer one may be distributed."""
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID"):
        monkeypatch.delenv(name, raising=False)
