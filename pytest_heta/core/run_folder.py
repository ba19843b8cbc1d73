"""The folder of a run: what it is about, and what came of it so far.

A run is worked on in *sessions*: the first, and those that go on with it. Each
session has a folder of its own and never writes into an earlier one's, so that
no session can harm what another has finished.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from filelock import BaseFileLock, Timeout

from pytest_heta.core._locks import file_lock
from pytest_heta.core._plain import exception_text
from pytest_heta.errors import RunError, RunInUseError, RunNotFoundError

__all__ = ["RunFolder"]

_FORMAT: Final = 1
_FILE: Final = "run.json"
_LOCK: Final = "run.lock"


class RunFolder:
    """A run's folder, held by the process that works on the run.

    The kernel lets go of it when that process is killed.

    Args:
        path: The folder.
        lock: Its lock, acquired.
        data: Content of its ``run.json``.

    Attributes:
        path: The folder.
    """

    def __init__(self, path: Path, lock: BaseFileLock, data: dict[str, Any]) -> None:
        self.path = path
        self._lock = lock
        self._data = data

    # -- finding ----------------------------------------------------------------

    @classmethod
    def create(cls, parent: Path, *, run_id: str) -> Self:
        """Make the folder of a new run, and begin its first session.

        Raises:
            RunError: if that fails.
        """
        path = parent / run_id
        data = {
            "format": _FORMAT,
            "run_id": run_id,
            "started_at": _now(),
            "fingerprints": {},
            "sessions": [],
        }
        try:
            path.mkdir(parents=True)
            folder = cls(path, _held(path), data)
        except OSError as error:
            raise RunError(
                f"the folder of the run cannot be made: {exception_text(error)}", where=str(path)
            ) from error
        try:
            folder.begin_session()
        except RunError:
            folder.release()
            raise
        return folder

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the folder of a run of before.

        Raises:
            RunNotFoundError: if there is no run in it, or not a readable one.
            RunInUseError: if another process works on it.
        """
        if _read(path) is None:
            raise RunNotFoundError("there is no run", where=str(path))
        try:
            lock = _held(path)
        except OSError as error:
            raise RunError(
                f"the folder of the run cannot be used: {exception_text(error)}", where=str(path)
            ) from error
        data = _read(path)  # whoever held it until now may have written
        if data is None:
            lock.release()
            raise RunNotFoundError("there is no run any more", where=str(path))
        return cls(path, lock, data)

    @staticmethod
    def runs(parent: Path) -> list[Path]:
        """Return the folders of all runs below a folder, the newest first."""
        found = [(data["started_at"], path) for path, data in _runs_below(parent)]
        return [path for _, path in sorted(found, reverse=True)]

    @classmethod
    def prune(cls, parent: Path, keep: int = 10) -> None:
        """Remove the oldest runs that nobody works on, so that ``keep`` are left."""
        for path in cls.runs(parent)[keep:]:
            with suppress(OSError, RunInUseError):
                lock = _held(path)
                try:
                    # Without this file it is no run: nobody opens what is being removed.
                    (path / _FILE).unlink()
                    shutil.rmtree(path, ignore_errors=True)
                finally:
                    lock.release()

    # -- what it is ----------------------------------------------------------------

    @property
    def run_id(self) -> str:
        """Id of the run."""
        return str(self._data["run_id"])

    @property
    def started_at(self) -> datetime:
        """When the first session began, in UTC."""
        return datetime.fromisoformat(self._data["started_at"])

    @property
    def session(self) -> int:
        """Number of the current session, from 1."""
        return len(self._data["sessions"])

    @property
    def session_path(self) -> Path:
        """Folder of what the current session writes."""
        return self._path_of(self.session)

    @property
    def earlier_sessions(self) -> list[Path]:
        """Folders of the sessions before this one, in order."""
        return [self._path_of(number) for number in range(1, self.session)]

    @property
    def fingerprints(self) -> dict[str, dict[str, str]]:
        """What the run is about, by plan label and part; empty before it is known."""
        known: dict[str, dict[str, str]] = self._data["fingerprints"]
        return known

    def _path_of(self, number: int) -> Path:
        return self.path / f"session-{number}"

    # -- what becomes of it -----------------------------------------------------------

    def begin_session(self) -> None:
        """Note that a session begins, and make its folder.

        Raises:
            RunError: if that fails.
        """
        session = {"number": self.session + 1, "started_at": _now(), "ended_at": None}
        self._data["sessions"].append({**session, "complete": None, "interrupted": None})
        try:
            # One that was killed before it was noted has left an empty folder.
            self.session_path.mkdir(exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from error
        self._write()

    def set_fingerprints(self, fingerprints: Mapping[str, Mapping[str, str]]) -> None:
        """Note what the run is about.

        Raises:
            RunError: if it cannot be written.
        """
        self._data["fingerprints"] = {label: dict(parts) for label, parts in fingerprints.items()}
        self._write()

    def end_session(self, *, complete: bool, interrupted: str | None) -> None:
        """Note how the session ended.

        Args:
            complete: Whether every sample has a result without an error.
            interrupted: Why it ended early, None if it did not.

        Raises:
            RunError: if it cannot be written.
        """
        self._data["sessions"][-1].update(
            ended_at=_now(), complete=complete, interrupted=interrupted
        )
        self._write()

    def release(self) -> None:
        """Let others work on the run; may be called twice."""
        self._lock.release()

    def _write(self) -> None:
        path = self.path / _FILE
        unfinished = path.with_suffix(".unfinished")
        try:
            with unfinished.open("w", encoding="ascii") as file:
                json.dump(self._data, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> RunError:
        return RunError(
            f"the folder of the run cannot be written: {exception_text(error)}",
            where=str(self.path),
        )


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _held(path: Path) -> BaseFileLock:
    lock = file_lock(path / _LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise RunInUseError(
            "another process is working on this run",
            where=str(path),
            hint="wait for it, or begin a new run",
        ) from error
    return lock


def _runs_below(parent: Path) -> Collection[tuple[Path, dict[str, Any]]]:
    try:
        folders = list(parent.iterdir())
    except OSError:
        return []
    read = ((folder, _read(folder)) for folder in folders)
    return [(folder, data) for folder, data in read if data is not None]


def _read(path: Path) -> dict[str, Any] | None:
    """Return what stands in a run's file, None if it is not one."""
    try:
        data = json.loads((path / _FILE).read_bytes())
    except (OSError, ValueError):
        return None
    return data if _is_run(data) else None


def _is_run(data: Any) -> bool:
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
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
        and all(isinstance(session, dict) for session in sessions)
    )
