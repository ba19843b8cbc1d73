"""What was written gets to the disk itself every few seconds, and nobody waits for it.

A killed process loses nothing that the operating system has. This is for a machine
that loses its power: it may lose what came in the last `INTERVAL_S` seconds. A disk
that fails is told of: the operating system forgets it with the first that asks.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pytest_heta.core._plain import exception_text

__all__ = ["INTERVAL_S", "forget", "note", "sync", "sync_folder", "take_problem"]

INTERVAL_S: Final = 2.0
"""Seconds from a write to when the disk is told, at most."""


class _Syncer:
    """Descriptors with something new, and the thread that tells the disk of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: set[int] = set()
        self._has_noted = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem: str | None = None
        self._is_told = False

    def note(self, descriptor: int) -> None:
        # One that is noted still will be taken after this write: no lock is needed.
        if descriptor in self._noted:
            return
        with self._lock:
            self._noted.add(descriptor)
            self._has_noted.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="heta-sync", daemon=True)
                with suppress(RuntimeError):  # no more threads, or the process ends
                    self._thread.start()

    def forget(self, descriptor: int) -> None:
        with self._lock:
            self._noted.discard(descriptor)

    def sync(self) -> None:
        # A descriptor may be closed, and its number be another file's, while the disk is
        # busy: the copies are of this file in any case.
        copies = []
        with self._lock:
            self._has_noted.clear()
            while self._noted:
                with self._failures_noted():
                    copies.append(os.dup(self._noted.pop()))
        for copy in copies:
            with self._failures_noted():
                os.fsync(copy)
            os.close(copy)

    @contextmanager
    def _failures_noted(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._problem = self._problem or exception_text(error)

    def take_problem(self) -> str | None:
        if self._problem is None or self._is_told:
            return None
        self._is_told = True
        return self._problem

    def _run(self) -> None:
        while True:
            self._has_noted.wait()
            time.sleep(INTERVAL_S)
            self.sync()


_syncer = _Syncer()


def _after_fork() -> None:
    """Begin anew in a forked process: the thread is not there, and the lock may be held."""
    global _syncer  # noqa: PLW0603 - one of a process
    _syncer = _Syncer()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def note(descriptor: int) -> None:
    """Let the disk be told, within `INTERVAL_S`, of what was just written.

    The first call of a process starts a thread.
    """
    _syncer.note(descriptor)


def forget(descriptor: int) -> None:
    """Leave a descriptor alone from now on: it is about to be closed."""
    _syncer.forget(descriptor)


def sync() -> None:
    """Tell the disk now of all that was noted."""
    _syncer.sync()


def take_problem() -> str | None:
    """Return the first failure to tell the disk, once in a process; None if all is well."""
    return _syncer.take_problem()


def sync_folder(path: Path) -> None:
    """Tell the disk that a folder has a new file, where the system knows how to."""
    with suppress(OSError):  # not every system opens folders, nor every disk syncs them
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
