"""Time limits for users' code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final

from pytest_heta.errors import QueryTimeoutError

__all__ = ["GRACE_S", "MOST_ABANDONED", "bounded", "query_timeout"]

GRACE_S: Final = 1.0
"""Seconds that a cancelled coroutine gets to end."""

MOST_ABANDONED: Final = 16
"""Calls of one unit that may be left behind in threads of their own."""


async def bounded(work: Awaitable[Any], limit_s: float) -> Any:
    """Return what comes of some work, or cancel it at its limit.

    What does not end when it is cancelled is left behind.

    Args:
        work: A coroutine or a future.
        limit_s: Seconds that it may take.

    Raises:
        TimeoutError: if it takes longer; what the work itself raises goes
            through, also a `TimeoutError` of its own.
    """
    task = asyncio.ensure_future(work if asyncio.isfuture(work) else _awaited(work))
    try:
        done, _ = await asyncio.wait({task}, timeout=limit_s)
        if not done:
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_S)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        return task.result()
    task.add_done_callback(_look_at)
    raise TimeoutError


def _look_at(task: asyncio.Future[Any]) -> None:
    """Take what nobody waits for any more: asyncio would complain about it."""
    if not task.cancelled():
        task.exception()


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


def query_timeout(limit_s: float) -> QueryTimeoutError:
    """Return the error of a query that took longer than it may."""
    return QueryTimeoutError(f"the query took longer than {limit_s:g} s")
