"""Calling the queries of one run unit, several at the same time, each within its time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from types import coroutine
from typing import Any, NamedTuple

from pytest_heta.core._deadline import MOST_ABANDONED, bounded, query_timeout
from pytest_heta.core._loop import Called, await_timed, call_timed, own_thread
from pytest_heta.core._output import Printed, print_to
from pytest_heta.core._threads import DaemonThreads
from pytest_heta.core.query import PreparedQuery
from pytest_heta.core.spool import LOOP_SLOT
from pytest_heta.errors import QueryTimeoutError

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
        self._concurrency = concurrency
        self._slots = slots
        self._routes_output = routes_output
        self._timeout_s = timeout_s
        self._abandoned = 0  # calls that were left behind in their threads
        self._threads: DaemonThreads | None = None

    def close(self) -> None:
        """Let the threads end; may be called twice."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()

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
        if query.is_coroutine_function:
            return await self._awaited(await_timed(function, args, kwargs), code, keep)
        if self._timeout_s is not None and self._abandoned >= MOST_ABANDONED:
            error = QueryTimeoutError(
                f"not asked: {self._abandoned} queries that took too long are still running",
                hint="ask fewer cases, or make `query` give up by itself",
            )
            return Called(None, error, 0.0)
        called = await self._in_thread(code, function, args, kwargs)
        if called.error is None and inspect.isawaitable(called.value):
            work = await_timed(lambda: called.value, (), {})
            awaited = await self._awaited(work, code)
            return awaited._replace(seconds=awaited.seconds + called.seconds)
        return called

    async def _awaited(
        self, work: Coroutine[Any, Any, Any], code: SampleCode, keep: Keep | None = None
    ) -> Called:
        step = self.step(work, code)
        if self._timeout_s is None:
            called: Called = await step
            return called
        try:
            return await self._within(self._kept(step, keep), code)
        finally:
            if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()  # cancelled before it began: Python would complain about it

    async def _kept(self, work: Any, keep: Keep | None) -> Called:
        called: Called = await work
        if keep is not None and called.error is None and not self._is_late(called):
            keep(called)
        return called

    async def _in_thread(
        self,
        code: SampleCode,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Called:
        if self._routes_output:
            print_to(code.printed)
        pool = self._pool()
        future = pool.submit(copy_context().run, self._call_in_thread, code, function, args, kwargs)
        if self._timeout_s is None:
            return await asyncio.wrap_future(future)
        called = await self._within(asyncio.wrap_future(future), code)
        if not future.done():
            self._abandoned += 1
            pool.abandon(future)
        return called

    async def _within(self, work: Any, code: SampleCode) -> Called:
        """Return what comes of a call, a `QueryTimeoutError` if it takes too long."""
        assert self._timeout_s is not None  # noqa: S101 - for the type checker
        try:
            came: Called = await bounded(work, self._timeout_s, code.place)
        except TimeoutError:
            return Called(None, query_timeout(self._timeout_s), self._timeout_s)
        if came.error is None and self._is_late(came):
            return came._replace(error=query_timeout(self._timeout_s))
        return came

    def _is_late(self, called: Called) -> bool:
        """Whether a call came back late, while nobody could look at the clock."""
        return self._timeout_s is not None and called.seconds > self._timeout_s

    def _pool(self) -> DaemonThreads:
        if self._timeout_s is not None and self._concurrency == 1:
            return own_thread()  # where an ordinary `create` ran
        if self._threads is None:
            self._threads = DaemonThreads(self._concurrency, "heta-query")
        return self._threads

    def _call_in_thread(
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

    @coroutine
    def step(self, work: Coroutine[Any, Any, Any], code: SampleCode) -> Generator[Any, Any, Any]:
        """Run a sample's coroutine, and note whose code runs while it does."""
        sent: Any = None
        thrown: BaseException | None = None
        while True:
            if self._routes_output:
                print_to(code.printed)
            self._slots[LOOP_SLOT] = code.number
            try:
                waits_for = work.send(sent) if thrown is None else work.throw(thrown)
            except StopIteration as stop:
                return stop.value
            finally:
                self._slots[LOOP_SLOT] = 0
            thrown = None
            try:
                sent = yield waits_for
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:  # noqa: BLE001 - passed on to the coroutine
                thrown = error
