"""Locks of files that several processes and several tasks of one loop wait for."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from filelock import BaseFileLock, FileLock, Timeout

from pytest_heta.core._loop import on_loop

__all__ = ["acquire", "file_lock", "is_held"]

_POLL_S: Final = 0.02


def file_lock(path: Path) -> BaseFileLock:
    """Return the lock of a file, whose folder is made; any thread may release it.

    Raises:
        OSError: if the folder cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(path, thread_local=False)


async def acquire(lock: BaseFileLock) -> None:
    """Acquire a lock, asking for it again and again.

    Waiting for it would stop the loop, and its holder may be another task there.
    """
    while True:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            if on_loop():
                await asyncio.sleep(_POLL_S)
            else:
                time.sleep(_POLL_S)  # noqa: ASYNC251 - there is no loop to stop
        else:
            return


def is_held(lock: BaseFileLock) -> bool:
    """Whether another holds a lock; nobody waits for it."""
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    lock.release()
    return False
