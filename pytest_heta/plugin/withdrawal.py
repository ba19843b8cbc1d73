"""Report files of earlier runs, which must not be taken for that of a run without one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pytest_heta.core.snapshot import package_versions
from pytest_heta.errors import ReportError
from pytest_heta.plugin.state import Run
from pytest_heta.reports import write_reports

__all__ = ["withdraw_reports"]


def withdraw_reports(run: Run, paths: Iterable[Path], why: str) -> None:
    """Put a file that says that this run has no report in the place of an older one.

    Who looks only at the file, as CI may after a run that was killed, would find the
    green report of another run.

    Args:
        run: The session.
        paths: Report files; where there is none, none is made.
        why: Why there is no report.
    """
    about = {
        "pytest_heta_version": package_versions().get("pytest-heta"),
        "started_at": run.started_at.isoformat(),
        "finished_at": None,
        "complete": False,
        "interrupted": why,
        "arguments": list(run.config.invocation_params.args),
    }
    for path in paths:
        if path.is_file():
            with suppress(ReportError):  # the end of the run says so, too
                write_reports(path, about, ())
