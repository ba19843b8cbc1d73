"""Calling the queries of one run unit ahead of their tests, and noting whose code runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple

from pytest_heta.core._limited import LimitedCalls
from pytest_heta.core._loop import Called, await_returned, await_timed, call_timed, leave_returned
from pytest_heta.core._output import Printed, print_to
from pytest_heta.core._steps import stepped
from pytest_heta.core._threads import DaemonThreads
from pytest_heta.core.query import PreparedQuery, query_limits
from pytest_heta.core.spool import LOOP_SLOT

__all__ = ["Caller", "SampleCode"]


Keep = Callable[[Called], None]


class SampleCode(NamedTuple):
    """Whose code a call executes.

    Attributes:
        place: The sample's place among those that are asked.
        number: What the flight recorder calls the sample.
        slot: Where it is noted while the code runs in a thread of its own.
        printed: Where what the code prints is kept.
    """

    place: int
    number: int
    slot: int
    printed: Printed


class Caller:
    """Calls queries on behalf of samples: coroutines on the loop, functions in threads.

    Args:
        concurrency: Calls at the same time.
        slots: Where it is noted whose code is running.
        routes_output: Whether what a sample's code prints is kept.
        timeout_s: Seconds that a query may take; None for any time.
    """

    def __init__(
        self, concurrency: int, *, slots: Any, routes_output: bool, timeout_s: float | None
    ) -> None:
        self._slots = slots
        self._routes_output = routes_output
        self._threads = DaemonThreads(concurrency, "heta-query")  # begun with the first call
        self._limited: LimitedCalls | None = None
        if timeout_s is not None:
            # Those that are asked one by one are where an ordinary `create` ran.
            self._limited = query_limits(timeout_s, self._threads if concurrency > 1 else None)

    def close(self) -> None:
        """Let the threads end; may be called twice."""
        self._threads.shutdown()

    async def call(self, query: PreparedQuery, text: str, code: SampleCode, keep: Keep) -> Called:
        """Ask a text; return what came of it. To be awaited on the loop.

        Args:
            query: Whom to ask.
            text: What to ask.
            code: Whose code it is.
            keep: Given an answer of a coroutine that came in time, where there is
                a limit, before any other code runs.
        """
        function = query.function
        assert function is not None  # noqa: S101 - for the type checker: it was looked at before
        args, kwargs = query.arguments(text)
        if not query.is_coroutine_function and self._routes_output:
            print_to(code.printed)
        if self._limited is not None:
            return await self._call_limited(
                self._limited, query, (function, args, kwargs), code, keep
            )
        step = partial(self.step, code=code)
        if query.is_coroutine_function:
            called: Called = await step(await_timed(function, args, kwargs))
            return called
        future = self._threads.submit(
            copy_context().run, self._call_noted, code, function, args, kwargs
        )
        try:
            returned = await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            leave_returned(future)
            raise
        return await await_returned(returned, step)

    async def _call_limited(
        self,
        limited: LimitedCalls,
        query: PreparedQuery,
        call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]],
        code: SampleCode,
        keep: Keep,
    ) -> Called:
        step = partial(self.step, code=code)
        return await limited.call(
            *call,
            sample=code.place,
            # Of what an ordinary function returned, this is not all the time.
            step=partial(_kept, limited, step, keep) if query.is_coroutine_function else step,
            run=partial(self._call_noted, code),
        )

    def _call_noted(
        self,
        code: SampleCode,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Called:
        self._slots[code.slot] = code.number
        try:
            return call_timed(function, args, kwargs)
        finally:
            # A call that was left behind has given its slot to another.
            if self._slots[code.slot] == code.number:
                self._slots[code.slot] = 0

    def step(self, work: Coroutine[Any, Any, Any], code: SampleCode) -> Awaitable[Any]:
        """Run a sample's coroutine, and note whose code runs while it does."""

        def begin() -> None:
            if self._routes_output:
                print_to(code.printed)
            self._slots[LOOP_SLOT] = code.number

        def end() -> None:
            self._slots[LOOP_SLOT] = 0

        return stepped(work, begin, end)


async def _kept(
    limited: LimitedCalls,
    step: Callable[[Coroutine[Any, Any, Called]], Awaitable[Called]],
    keep: Keep,
    work: Coroutine[Any, Any, Called],
) -> Called:
    called = await step(work)
    if called.error is None and not limited.is_late(called):
        keep(called)
    return called
