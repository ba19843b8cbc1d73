"""The file that says what a run is about, and the lock of who works on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from filelock import BaseFileLock, Timeout

from pytest_heta.core._locks import file_lock
from pytest_heta.errors import RunFormatError, RunInUseError

__all__ = [
    "FILE",
    "FORMAT",
    "LOCK",
    "check_format",
    "files_of",
    "held",
    "is_run",
    "last_written",
    "read_run",
    "runs_below",
    "seconds_between",
]

FORMAT: Final = 1
"""Of the file's content. What another format means is not guessed."""

FILE: Final = "run.json"
LOCK: Final = "run.lock"


def held(path: Path) -> BaseFileLock:
    """Return the lock of a run's folder, acquired.

    Raises:
        RunInUseError: if another process has it.
        OSError: if the folder cannot be used.
    """
    lock = file_lock(path / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise RunInUseError(
            "another process is working on this run",
            where=str(path),
            hint="wait for it, name another run, or begin a new one",
        ) from error
    return lock


def runs_below(parent: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Return the folders of runs and what stands in their files, the newest first."""
    try:
        folders = list(parent.iterdir())
    except OSError:
        return []
    read = [(folder, _parsed(folder)) for folder in folders]
    dated = [(folder, data) for folder, data in read if isinstance(data.get("started_at"), str)]
    known = [(f, d) for f, d in dated if is_run(d) or _other_format(d) is not None]
    return sorted(known, key=lambda run: (run[1]["started_at"], run[0].name), reverse=True)


def read_run(path: Path) -> dict[str, Any] | None:
    """Return what stands in a run's file, None if it is not one."""
    data = _parsed(path)
    return data if is_run(data) else None


def _parsed(path: Path) -> dict[str, Any]:
    """Return the object in a folder's file, an empty one if there is none."""
    try:
        data = json.loads((path / FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _other_format(data: Mapping[str, Any]) -> int | None:
    """Return the format of a file that is not of this version, None if it is no run's."""
    found = data.get("format")
    is_other = type(found) is int and found != FORMAT
    return found if is_other else None


def check_format(path: Path) -> None:
    """Refuse a run that another version of this package wrote.

    Raises:
        RunFormatError: if it is one.
    """
    found = _other_format(_parsed(path))
    if found is not None:
        raise RunFormatError(
            f"the run is in format {found}, and this version of pytest-heta goes on with runs"
            f" in format {FORMAT}",
            where=str(path),
            hint="use the version that began it, or begin a new run",
        )


def is_run(data: Mapping[str, Any]) -> bool:
    """Whether data are those of a run, in this version's format."""
    if data.get("format") != FORMAT:
        return False
    try:
        datetime.fromisoformat(data["started_at"])
        fingerprints = data["fingerprints"]
    except (KeyError, TypeError, ValueError):
        return False
    sessions = data.get("sessions")
    return (
        isinstance(data.get("run_id"), str)
        and isinstance(fingerprints, dict)
        and all(isinstance(parts, dict) for parts in fingerprints.values())
        and isinstance(sessions, list)
        and len(sessions) > 0
        and all(isinstance(session, dict) for session in sessions)
    )


def files_of(session: Path) -> list[Path]:
    """Return what a session has written down."""
    return [path for path in session.rglob("*") if path.is_file()]


def last_written(session: Path) -> str | None:
    """Return when a session wrote last, None if it wrote nothing."""
    times = [path.stat().st_mtime for path in files_of(session)]
    return datetime.fromtimestamp(max(times), UTC).isoformat() if times else None


def seconds_between(begin: object, end: object) -> float | None:
    """Return the seconds between two times as they stand in the file, None if one is no time."""
    if not isinstance(begin, str) or not isinstance(end, str):
        return None
    try:
        seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()
    except (ValueError, TypeError):
        return None
    return round(max(0.0, seconds), 3)
