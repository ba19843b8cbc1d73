"""Calls of users' functions that end, for the caller, at a limit."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import copy_context
from typing import Any
from weakref import WeakKeyDictionary

from pytest_heta.core._deadline import MOST_ABANDONED, bounded, too_many, took_longer
from pytest_heta.core._loop import (
    Called,
    await_returned,
    await_timed,
    call_timed,
    enter_loop,
    is_coroutine_function,
    leave_returned,
    on_loop,
    own_thread,
)
from pytest_heta.core._threads import DaemonThreads

__all__ = ["LimitedCalls"]

Step = Callable[[Coroutine[Any, Any, Any]], Any]
"""Wraps a coroutine of users, to note whose it is while it runs."""

Run = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Called]
"""Calls an ordinary function of users with its arguments, and measures the time inside."""


class LimitedCalls:
    """Calls functions of either kind for one run unit, each within a limit.

    At the limit a coroutine is cancelled; an ordinary function is left behind
    in a daemon thread, and another thread takes its place. Of functions that
    were left behind and still run there may be `MOST_ABANDONED`.

    Args:
        limit_s: Seconds that a call may take.
        what: What is called, for messages: ``query``, ``evaluator``.
        error: Makes the exception of a call that took too long.
        threads: Where ordinary functions are called; None for the event
            loop's own thread.
        one_at_a_time: Whether ordinary functions are called one after another.

    Attributes:
        limit_s: Seconds that a call may take.
        warnings: What is to be told of calls whose results nobody sees.
    """

    def __init__(
        self,
        limit_s: float,
        *,
        what: str,
        error: Callable[[str], Exception],
        threads: DaemonThreads | None = None,
        one_at_a_time: bool = False,
    ) -> None:
        self.limit_s = limit_s
        self.warnings: list[str] = []
        self._what = what
        self._error = error
        self._threads = threads
        self._one_at_a_time = one_at_a_time
        self._behind: dict[object, list[Future[Any]]] = {}
        # An ordinary function's time begins when its thread has time for it. A
        # lock of a loop that is blocked is of no use for the next loop.
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    async def call(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        who: object = None,
        sample: object = None,
        step: Step | None = None,
        run: Run = call_timed,
    ) -> Called:
        """Call a function, as `core._loop.call` does, for as long as it may take.

        Args:
            function: A coroutine function or an ordinary one.
            args: Its positional arguments.
            kwargs: Its keyword arguments.
            who: Whose calls count together, of those that are left behind.
            sample: What it is called for, for who finds the loop blocked by it.
            step: Wraps the coroutine, if there is one.
            run: Calls an ordinary function in its thread, as `call_timed` does.

        Returns:
            What came of it; a call that took too long has an error.
        """
        keywords = dict(kwargs or {})
        if is_coroutine_function(function):
            await enter_loop()
            return await self._await(await_timed(function, args, keywords), sample, step)
        called = await self._call_in_thread(who, run, function, args, keywords)
        return await await_returned(called, lambda work: self._await(work, sample, step))

    def blocked(self) -> Exception:
        """Return the error of a call that blocks the event loop."""
        return self._error(took_longer(f"the {self._what}", self.limit_s, blocks=True))

    def renew(self) -> None:
        """Begin anew for the next run unit; what was left behind stays there."""
        self._behind.clear()

    async def _await(
        self, work: Coroutine[Any, Any, Called], sample: object, step: Step | None
    ) -> Called:
        try:
            came: Called = await bounded(work if step is None else step(work), self.limit_s, sample)
        except TimeoutError:
            return self._late()
        finally:
            if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()  # cancelled before it began: Python would complain about it
        return self._in_time(came)

    async def _call_in_thread(self, who: object, *call: Any) -> Called:
        problem = self._too_many_behind(who)
        if problem is not None:
            return Called(None, problem, 0.0)
        if self._threads is None:
            await enter_loop()
        if not on_loop():
            # Nobody else waits here: neither a loop nor a turn is needed.
            future = self._submit(*call)
            wait((future,), self.limit_s)
            return self._came(future, who)
        async with self._turn():
            future = self._submit(*call)
            try:
                await bounded(asyncio.wrap_future(future), self.limit_s)
            except TimeoutError:
                pass
            except asyncio.CancelledError:
                leave_returned(future)
                raise
            return self._came(future, who)

    def _submit(self, *call: Any) -> Future[Called]:
        threads = self._threads or own_thread()
        return threads.submit(copy_context().run, *call)

    def _came(self, future: Future[Called], who: object) -> Called:
        """Return what came of a call, leaving it behind if nothing did."""
        if future.done() and not future.cancelled():
            return self._in_time(future.result())
        if future.cancel() or future.cancelled():
            return self._late()  # no thread had time for it
        self._behind.setdefault(who, []).append(future)
        leave_returned(future)
        (self._threads or own_thread()).abandon(future)
        return self._late()

    def _too_many_behind(self, who: object) -> Exception | None:
        behind = [future for future in self._behind.pop(who, ()) if not future.done()]
        if behind:
            self._behind[who] = behind
        if len(behind) < MOST_ABANDONED:
            return None
        return self._error(too_many(self._what, len(behind)))

    def _turn(self) -> AbstractAsyncContextManager[Any]:
        if not self._one_at_a_time:
            return nullcontext()
        return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def is_late(self, called: Called) -> bool:
        """Whether a call came back late, while nobody looked at the clock."""
        return called.seconds > self.limit_s

    def _in_time(self, called: Called) -> Called:
        return self._late() if called.error is None and self.is_late(called) else called

    def _late(self) -> Called:
        message = took_longer(f"the {self._what}", self.limit_s)
        return Called(None, self._error(message), self.limit_s)
