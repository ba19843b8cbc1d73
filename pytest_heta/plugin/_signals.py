"""What asks a process to end lets it write its report first."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import NoReturn

import pytest

__all__ = ["end_on_sigterm"]


def end_on_sigterm(config: pytest.Config) -> None:
    """Let SIGTERM end the session as Ctrl-C does, unless somebody else handles it."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)
        config.add_cleanup(_forget)


def _forget() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - of `signal`
    raise KeyboardInterrupt(signal.Signals(number).name)
