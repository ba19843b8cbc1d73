"""Workers do not outlive the process that gives them their tests, nor its interruption."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

__all__ = ["EndOfWorker", "tell_workers_to_end"]

_LOOK_S: Final = 0.5
"""Seconds between two looks at who the parent is, and whether it was interrupted."""

_GRACE_S: Final = 6.0
"""Seconds in which an interrupted worker may stop asking and close what it has built."""

_TOLD: Final = "interrupted"


def tell_workers_to_end(folder: Path) -> None:
    """Let workers end because the controller was interrupted, alone perhaps.

    By itself execnet would let them go on for 5 s, and for 15 s if a query
    does not let them end.

    Args:
        folder: The run's folder.
    """
    with suppress(OSError):  # then it takes that long
        (folder / _TOLD).touch()


class EndOfWorker:
    """Ends a worker when its parent was killed or interrupted, also if a query does not let it.

    The worker is interrupted like any other session, and ended for good if
    that takes too long. What has returned until then is written down. Code
    that never releases the interpreter cannot be ended this way.
    """

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self._ended = threading.Event()
        self._is_ending = False
        config.add_cleanup(self._ended.set)
        told = folder / _TOLD
        parent = os.getppid()
        # An orphan is given another parent. Where systems do not do that, it is not noticed.
        self._watch(lambda: os.getppid() != parent or told.exists())

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Remember that this session ends without being interrupted again."""
        self._is_ending = True

    def _watch(self, must_end: Callable[[], bool]) -> None:
        def watch() -> None:
            while not must_end():
                if self._ended.wait(_LOOK_S):
                    return
            if not self._is_ending:
                _interrupt()
            if not self._ended.wait(_GRACE_S):
                os._exit(1)

        threading.Thread(target=watch, name="heta-orphan", daemon=True).start()


def _interrupt() -> None:
    """Interrupt the main thread as Ctrl-C does, also where it waits for the system."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # somebody else's affair
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
