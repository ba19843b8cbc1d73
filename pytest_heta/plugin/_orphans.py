"""Workers do not outlive the process that gives them their tests."""

from __future__ import annotations

import os
import threading
from typing import Final

import pytest

__all__ = ["end_as_orphan"]

_LOOK_S: Final = 1.0
"""Seconds between two looks at who the parent is."""

_GRACE_S: Final = 7.0
"""Seconds in which execnet may end an orphan: it interrupts a running test after five."""


def end_as_orphan(config: pytest.Config) -> None:
    """End this worker when its parent was killed, also if a query does not let it end.

    What has returned until then is written down. Code that never releases the
    interpreter cannot be ended this way.
    """
    ended = threading.Event()
    thread = threading.Thread(
        target=_watch, args=(os.getppid(), ended), name="heta-orphan", daemon=True
    )
    thread.start()
    config.add_cleanup(ended.set)


def _watch(parent: int, ended: threading.Event) -> None:
    # An orphan is given another parent. Where systems do not do that, nothing happens.
    while os.getppid() == parent:
        if ended.wait(_LOOK_S):
            return
    if not ended.wait(_GRACE_S):
        os._exit(1)
