"""Asking several samples at once on one event loop, with the results in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from itertools import islice
from typing import Any, TypeVar

__all__ = ["in_order"]

T = TypeVar("T")


async def in_order(
    work: Iterable[Callable[[], Coroutine[Any, Any, T]]],
    *,
    at_once: int,
    ahead: int,
    cancelled: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[T, None]:
    """Yield what pieces of work return, in their order.

    What has been begun is cancelled when the iteration ends early, the last
    piece first.

    Args:
        work: Makes the coroutine of each piece.
        at_once: How many may run at the same time.
        ahead: How many may be begun before the first of them is done.
        cancelled: Asked before each piece begins; True ends the iteration
            after those that are done.
    """
    slots = asyncio.Semaphore(at_once)

    async def one(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with slots:
            if cancelled():
                raise asyncio.CancelledError
            return await begin()

    begun: deque[asyncio.Task[T]] = deque()
    pieces = iter(work)
    try:
        while True:
            if not cancelled():
                room = islice(pieces, ahead - len(begun))
                begun.extend(asyncio.create_task(one(piece)) for piece in room)
            if not begun or (cancelled() and not begun[0].done()):
                return
            if not begun[0].done():
                # Those that are done already would not let it wait.
                running = [task for task in begun if not task.done()]
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            while begun and begun[0].done():
                if begun[0].cancelled() and cancelled():
                    return
                yield await begun.popleft()
    finally:
        for task in reversed(begun):
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
