"""The folder of a run: what it is about, and what came of it so far.

A run is worked on in *sessions*: the first, and those that go on with it. Each
session has a folder of its own and never writes into an earlier one's, so that
no session can harm what another has finished.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from filelock import BaseFileLock

from pytest_heta.core._old_runs import prune_runs
from pytest_heta.core._plain import exception_text
from pytest_heta.core._run_file import (
    FILE,
    FORMAT,
    check_format,
    files_of,
    held,
    last_written,
    read_run,
    runs_below,
    seconds_between,
)
from pytest_heta.core._sync import sync_folder
from pytest_heta.errors import RunError, RunNotFoundError

__all__ = ["RunFolder"]


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
            "format": FORMAT,
            "run_id": run_id,
            "started_at": _now(),
            "fingerprints": {},
            "sessions": [],
        }
        try:
            path.mkdir(parents=True)
            folder = cls(path, held(path), data)
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
            RunFormatError: if another version of this package wrote it.
            RunInUseError: if another process works on it.
        """
        if read_run(path) is None:
            check_format(path)
            raise RunNotFoundError("there is no run", where=str(path))
        try:
            lock = held(path)
        except OSError as error:
            raise RunError(
                f"the folder of the run cannot be used: {exception_text(error)}", where=str(path)
            ) from error
        data = read_run(path)  # whoever held it until now may have written
        if data is None:
            lock.release()
            raise RunNotFoundError("there is no run any more", where=str(path))
        return cls(path, lock, data)

    @staticmethod
    def runs(parent: Path) -> list[Path]:
        """Return the folders of all runs below a folder, the newest first.

        Those of other versions are among them: `open` says that they are.
        """
        return [path for path, _ in runs_below(parent)]

    @staticmethod
    def prune(parent: Path, keep: int = 10) -> None:
        """Remove old runs that nobody works on.

        The ``keep`` newest stay. So do as many older ones that did not finish, one of
        each selection of samples: theirs are results that nothing else has. Runs of
        other versions are not touched.

        Args:
            parent: Folder of the runs.
            keep: How many stay, of either kind.
        """
        prune_runs(parent, keep)

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
    def sessions(self) -> list[dict[str, Any]]:
        """What is known of the sessions, in order.

        Each has ``number``, ``started_at``, ``ended_at`` (None if it was killed, or is
        the current one), ``seconds`` that it took, as far as is known, ``interrupted``
        (``killed`` if nobody noted its end) and ``concurrency`` by plan label.
        """
        return [
            self._told(number, session)
            for number, session in enumerate(self._data["sessions"], start=1)
        ]

    def _told(self, number: int, session: Mapping[str, Any]) -> dict[str, Any]:
        started_at = session.get("started_at")
        ended_at = session.get("ended_at")
        until = ended_at
        if number == self.session and until is None:
            until = _now()
        is_killed = until is None
        if is_killed:
            until = last_written(self._path_of(number))
        return {
            "number": number,
            "started_at": started_at,
            "ended_at": ended_at,
            "seconds": seconds_between(started_at, until),
            "interrupted": session.get("interrupted") or ("killed" if is_killed else None),
            "concurrency": session.get("concurrency", {}),
        }

    @property
    def fingerprints(self) -> dict[str, dict[str, str]]:
        """What the run is about, by plan label and part; empty before it is known."""
        known: dict[str, dict[str, str]] = self._data["fingerprints"]
        return known

    @property
    def told_damage(self) -> int:
        """How many damaged records earlier sessions have told of."""
        counts = [session.get("damaged") for session in self._data["sessions"][:-1]]
        return max((count for count in counts if isinstance(count, int)), default=0)

    def _path_of(self, number: int) -> Path:
        return self.path / f"session-{number}"

    # -- what becomes of it -----------------------------------------------------------

    def begin_session(self) -> None:
        """Note that a session begins, and make its folder.

        Raises:
            RunError: if that fails.
        """
        session = {"number": self.session + 1, "started_at": _now(), "ended_at": None}
        self._data["sessions"].append(
            {**session, "complete": None, "interrupted": None, "concurrency": {}}
        )
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

    def note_concurrency(self, label: str, at_once: int) -> None:
        """Note how many queries of a plan this session asks at the same time.

        Raises:
            RunError: if it cannot be written.
        """
        self._data["sessions"][-1]["concurrency"][label] = at_once
        self._write()

    def drop_session(self) -> None:
        """Take back a session in which nothing was written down, but for the first.

        Raises:
            RunError: if that fails.
        """
        if self.session > 1 and not files_of(self.session_path):
            shutil.rmtree(self.session_path, ignore_errors=True)
            self._data["sessions"].pop()
            self._write()

    def end_session(self, *, complete: bool, interrupted: str | None, damaged: int = 0) -> None:
        """Note how the session ended.

        Args:
            complete: Whether every sample has a result without an error.
            interrupted: Why it ended early, None if it did not.
            damaged: Records that could not be read, of which it tells.

        Raises:
            RunError: if it cannot be written.
        """
        self._data["sessions"][-1].update(
            ended_at=_now(), complete=complete, interrupted=interrupted, damaged=damaged
        )
        self._write()

    def release(self) -> None:
        """Let others work on the run; may be called twice."""
        self._lock.release()

    def _write(self) -> None:
        path = self.path / FILE
        unfinished = path.with_suffix(".unfinished")
        try:
            with unfinished.open("w", encoding="ascii") as file:
                json.dump(self._data, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            sync_folder(self.path)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> RunError:
        return RunError(
            f"the folder of the run cannot be written: {exception_text(error)}",
            where=str(self.path),
        )


def _now() -> str:
    return datetime.now(UTC).isoformat()
