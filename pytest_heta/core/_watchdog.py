"""The end of a process whose interpreter does not come back.

A function written in C may hold on to the interpreter: no thread runs any more
Python then, no limit can be enforced, and no signal is handled. Python's fault
handler has a timer that does without the interpreter. It ends the process; a
thread winds it up again as long as there is Python to run.
"""

from __future__ import annotations

import faulthandler
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pytest_heta.core._steps import GRACE_S

__all__ = ["Watchdog"]

_BEAT_S: Final = 1.0


class Watchdog:
    """Ends the process if no Python has run for longer than users' code may take.

    The process has only one such timer. It shows where all threads are, and
    ends the process with status 1, without any cleaning up. A process that is
    stopped and goes on later looks the same to it.

    Args:
        file: Descriptor of the file in which is shown where all threads are.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._limits: list[float] = []
        self._ended = threading.Event()

    @contextmanager
    def watch(self, limit_s: float) -> Iterator[None]:
        """Watch meanwhile code that may take so many seconds; of several limits the longest."""
        self._begin(limit_s)
        try:
            yield
        finally:
            self._end(limit_s)

    def _begin(self, limit_s: float) -> None:
        with self._lock:
            longest = max(self._limits, default=0.0)
            self._limits.append(limit_s)
            if limit_s > longest:
                self._wind_up()
            if len(self._limits) == 1:
                self._ended = threading.Event()
                threading.Thread(
                    target=self._beat, args=(self._ended,), name="heta-watchdog", daemon=True
                ).start()

    def _end(self, limit_s: float) -> None:
        with self._lock:
            self._limits.remove(limit_s)
            if not self._limits:
                self._ended.set()
                faulthandler.cancel_dump_traceback_later()
            elif limit_s > max(self._limits):
                self._wind_up()

    def _beat(self, ended: threading.Event) -> None:
        while not ended.wait(_BEAT_S):
            with self._lock:
                if not ended.is_set():
                    self._wind_up()

    def _wind_up(self) -> None:
        # Up to a beat may have passed already when a call begins.
        timeout = max(self._limits) + GRACE_S + _BEAT_S
        faulthandler.dump_traceback_later(timeout, exit=True, file=self._file)
