"""Time limits for users' code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, Final, TypeVar

from pytest_heta.core._loop import leave_own_thread
from pytest_heta.core._steps import GRACE_S, noted
from pytest_heta.errors import BuildTimeoutError

__all__ = [
    "GRACE_S",
    "MOST_ABANDONED",
    "bounded",
    "build_within",
    "close_within",
    "closing_limit",
    "too_many",
    "took_longer",
]

T = TypeVar("T")

MOST_ABANDONED: Final = 16
"""Calls of one unit that may be left behind in threads of their own."""

_LEAST_CLOSING_S: Final = 10.0


async def bounded(work: Awaitable[Any], limit_s: float, who: object = None) -> Any:
    """Return what comes of some work, or cancel it at its limit.

    What does not end when it is cancelled is left behind.

    Args:
        work: A coroutine or a future.
        limit_s: Seconds that it may take.
        who: Whose it is, for another thread that finds the loop blocked by it.

    Raises:
        TimeoutError: if it takes longer; what the work itself raises goes
            through, also a `TimeoutError` of its own.
    """
    task: asyncio.Future[Any]
    task = work if asyncio.isfuture(work) else asyncio.ensure_future(_noted(work, limit_s, who))
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


async def _noted(work: Awaitable[Any], limit_s: float, who: object) -> Any:
    return await noted(_awaited(work), limit_s, who)


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


def took_longer(what: str, limit_s: float, *, blocks: bool = False) -> str:
    """Return the message of what took longer than it may, or even blocks the event loop."""
    return f"{what} took longer than {limit_s:g} s{' and blocks the event loop' if blocks else ''}"


def too_many(what: str, count: int) -> str:
    """Return why something is not called any more, and what to do about it."""
    return (
        f"not called: {count} calls of the {what} that took too long are still running;"
        f" let the {what} give up by itself"
    )


async def build_within(
    work: Coroutine[Any, Any, T], limit_s: float | None, where: str | None = None
) -> T:
    """Return what a build returns, if it ends within its limit.

    Args:
        work: The build.
        limit_s: Seconds that it may take; None for any time.
        where: Whose build it is, for the error.

    Raises:
        BuildTimeoutError: if it takes longer. An ordinary function goes on in
            its thread, and nothing else runs there.
    """
    if limit_s is None:
        return await work
    try:
        built: T = await bounded(work, limit_s, "build")
    except TimeoutError as error:
        leave_own_thread()
        raise BuildTimeoutError(took_longer("building", limit_s), where=where) from error
    return built


def closing_limit(timeout_s: float | None, build_timeout_s: float | None) -> float | None:
    """Return the seconds that closing a knowledge base may take, None for any time.

    It is part of a knowledge base's life, as building is. A limit of queries
    alone says little about it, only that nobody wants to wait for ever.
    """
    if build_timeout_s is not None:
        return build_timeout_s
    return None if timeout_s is None else max(timeout_s, _LEAST_CLOSING_S)


async def close_within(work: Coroutine[Any, Any, str | None], limit_s: float | None) -> str | None:
    """Close a knowledge base, and return why it could not be closed within its limit."""
    if limit_s is None:
        return await work
    try:
        problem: str | None = await bounded(work, limit_s, "close")
    except TimeoutError:
        leave_own_thread()
        return took_longer("closing", limit_s)
    return problem
