"""Where users' code runs: coroutines on an event loop, ordinary functions off it.

A knowledge base may be written either way. Its coroutines need a running event
loop, always the same one; its ordinary functions must not see one, because
many of them are wrappers that call ``asyncio.run`` themselves.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from time import monotonic, perf_counter
from types import coroutine
from typing import Any, Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from pytest_heta.core._steps import Step, overdue
from pytest_heta.core._threads import DaemonPool, DaemonThreads
from pytest_heta.errors import LoopBlockedError

__all__ = [
    "Called",
    "LoopThread",
    "await_returned",
    "await_timed",
    "call",
    "call_in_threads",
    "call_timed",
    "enter_loop",
    "is_coroutine_function",
    "leave_own_thread",
    "leave_returned",
    "on_loop",
    "own_thread",
]

T = TypeVar("T")

_ENTER_LOOP: Final = object()
_CLOSE_TIMEOUT_S: Final = 3.0
_LOOK_AGAIN_S: Final = 0.25


class Called(NamedTuple):
    """What came of a call: the value or the exception, seconds inside, and attempts made."""

    value: Any
    error: Exception | None
    seconds: float
    attempts: int = 1


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether calling ``function`` gives a coroutine, also for a callable object."""
    if inspect.iscoroutinefunction(function):
        return True
    return inspect.iscoroutinefunction(type(function).__call__)


@coroutine
def _suspend() -> Generator[object, None, None]:
    yield _ENTER_LOOP


async def enter_loop() -> None:
    """Make sure that the rest of the coroutine runs on an event loop.

    Nothing happens on a loop. In a coroutine that `LoopThread.drive` has begun
    in the caller's thread, the rest moves to the loop's thread.
    """
    if not on_loop():
        await _suspend()


def on_loop() -> bool:
    """Whether the caller runs on an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# One thread for each loop, so that what an ordinary `create` opens (an SQLite
# connection, say) is used in the thread it was opened in.
_THREADS: WeakKeyDictionary[asyncio.AbstractEventLoop, DaemonThreads] = WeakKeyDictionary()


# What `call_in_threads` chose for the current task.
_CHOSEN_THREADS: ContextVar[DaemonThreads | None] = ContextVar("heta_threads", default=None)


@contextmanager
def call_in_threads(threads: DaemonThreads | None) -> Iterator[None]:
    """Let `call` run ordinary functions in these threads; None for the loop's single one."""
    token = _CHOSEN_THREADS.set(threads)
    try:
        yield
    finally:
        _CHOSEN_THREADS.reset(token)


def own_thread() -> DaemonThreads:
    """Return the single thread of the running loop for ordinary functions."""
    loop = asyncio.get_running_loop()
    thread = _THREADS.get(loop)
    if thread is None:
        thread = _THREADS[loop] = DaemonThreads(1, "heta-sync")
    return thread


def leave_own_thread() -> None:
    """Let the running loop's ordinary functions have a new thread: theirs does not come back."""
    thread = _THREADS.pop(asyncio.get_running_loop(), None)
    if thread is not None:
        thread.shutdown()


async def call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Called:
    """Call a user's function of either kind, and measure the time inside it.

    An `Exception` is returned as a value; anything else, such as
    `KeyboardInterrupt` and `asyncio.CancelledError`, goes through.
    """
    if is_coroutine_function(function):
        await enter_loop()
        return await await_timed(function, args, kwargs)
    if on_loop():
        threads = _CHOSEN_THREADS.get() or own_thread()
        called = await asyncio.get_running_loop().run_in_executor(
            threads, call_timed, function, args, kwargs
        )
    else:
        called = call_timed(function, args, kwargs)
    return await await_returned(called)


async def await_returned(
    called: Called, wrap: Callable[[Coroutine[Any, Any, Called]], Awaitable[Called]] | None = None
) -> Called:
    """Await what an ordinary function returned, if it is awaitable; else return it.

    Args:
        called: What came of calling the function.
        wrap: Wraps the coroutine that awaits it, to bound it, say.

    Returns:
        What came of both, with the seconds inside both.
    """
    if called.error is not None or not inspect.isawaitable(called.value):
        return called
    await enter_loop()
    work = await_timed(lambda: called.value, (), {})
    awaited = await (work if wrap is None else wrap(work))
    return awaited._replace(seconds=awaited.seconds + called.seconds)


def leave_returned(future: Future[Called]) -> None:
    """Let nobody await what an ordinary function returns, be it returned already or not."""
    future.add_done_callback(_close_returned)


def _close_returned(future: Future[Called]) -> None:
    if future.cancelled() or future.exception() is not None:
        return
    value = future.result().value
    if inspect.iscoroutine(value):
        value.close()  # Python would complain that it was never awaited


def call_timed(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Called:
    """Call an ordinary function here and measure the time inside; an `Exception` is a value."""
    # Exceptions become values here, in the function's own thread: a future
    # cannot carry a StopIteration.
    start = perf_counter()
    try:
        value = function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - the boundary to users' code
        return Called(None, error, perf_counter() - start)
    return Called(value, None, perf_counter() - start)


async def await_timed(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Called:
    """Await what a function returns, as `call_timed` calls one."""
    start = perf_counter()
    try:
        value = await function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - the boundary to users' code
        return Called(None, error, perf_counter() - start)
    return Called(value, None, perf_counter() - start)


class LoopThread:
    """An event loop on a background thread of its own.

    The loop starts with the first coroutine and stops with `close`. Coroutines
    can be run from any thread, also from one whose own loop is running.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closing = False
        self._has_left = False

    @property
    def has_left_loop(self) -> bool:
        """Whether a loop was left behind, with what blocks it."""
        return self._has_left

    @property
    def is_closing(self) -> bool:
        """Whether `close` has been called."""
        return self._closing

    def run(self, work: Coroutine[Any, Any, T], *, timeout_s: float | None = None) -> T:
        """Run a coroutine on the loop and return its result.

        An interrupt of the waiting thread cancels the coroutine. If a
        coroutine with a time limit blocks the loop, the loop is left behind;
        the next coroutine gets another one.

        Args:
            work: The coroutine.
            timeout_s: Seconds to wait for it; None for ever.

        Raises:
            RuntimeError: if the loop is closed, or this is its own thread.
            TimeoutError: if it takes longer.
            LoopBlockedError: if the loop is blocked.
            BaseException: what the coroutine raises.
        """
        try:
            loop = self.started()
        except RuntimeError:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return self._result(future, loop, timeout_s)
        except BaseException:
            future.cancel()
            raise

    def _result(
        self, future: Future[T], loop: asyncio.AbstractEventLoop, timeout_s: float | None
    ) -> T:
        ends = None if timeout_s is None else monotonic() + timeout_s
        while True:
            left = _LOOK_AGAIN_S if ends is None else min(_LOOK_AGAIN_S, ends - monotonic())
            try:
                return future.result(max(left, 0.0))
            except TimeoutError:
                if future.done():
                    return future.result()
                if ends is not None and monotonic() >= ends:
                    raise
            if self.leave_if_blocked() is not None or not self.serves(loop):
                raise LoopBlockedError(
                    "a coroutine blocks the event loop for longer than it may take",
                    hint="await what takes long: `asyncio.sleep`, `asyncio.to_thread`",
                )

    def leave_if_blocked(self) -> Step | None:
        """Leave the loop behind if a coroutine blocks it for longer than it may take.

        It ends by itself, if what blocks it ever ends.

        Returns:
            What blocks it, None if nothing does.
        """
        blocker = overdue(self._thread)
        if blocker is None:
            return None
        self._leave()
        return blocker

    def leave_if_stuck(self, patience_s: float) -> None:
        """Leave the loop behind if nothing else gets a turn on it within so many seconds.

        For the end of a session that was interrupted: nothing may wait for a
        coroutine then that never waits itself.
        """
        loop, has_turned = self._loop, threading.Event()
        if loop is None:
            return
        with suppress(RuntimeError):  # it has just been closed
            loop.call_soon_threadsafe(has_turned.set)
            if not has_turned.wait(patience_s):
                self._leave()

    def _leave(self) -> None:
        with self._lock:
            loop, self._loop, self._thread = self._loop, None, None
            self._has_left = True
        if loop is not None:
            with suppress(RuntimeError):  # it has just been closed
                loop.call_soon_threadsafe(loop.stop)

    @property
    def current(self) -> asyncio.AbstractEventLoop | None:
        """The loop that coroutines run on, None if there is none yet."""
        return self._loop

    def serves(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether coroutines still run on a loop that `started` has returned."""
        return self._loop is loop

    def drive(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in this thread for as long as it needs no event loop.

        A step of the core (`build`, `query`, `score`) moves to the loop when
        it meets a coroutine function; ordinary functions run right here, so
        that debuggers, signals and `asyncio.run` work in them as usual, and
        no time goes into changing threads.
        """
        if on_loop():
            return self.run(work)
        try:
            asked = work.send(None)
        except StopIteration as stop:
            result: T = stop.value
            return result
        if asked is not _ENTER_LOOP:
            work.close()
            raise RuntimeError("the coroutine did not enter the loop before it waited")
        return self.run(work)

    def close(self) -> None:
        """Cancel what is still running and stop the loop; may be called twice."""
        with self._lock:
            is_first, self._closing = not self._closing, True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or loop.is_closed():
            return
        if is_first:  # a second one would stop what the thread does at its end
            loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            # A query that blocks the loop cannot be ended; the thread is a
            # daemon, so it does not keep the process alive.
            thread.join(_CLOSE_TIMEOUT_S)

    def started(self) -> asyncio.AbstractEventLoop:
        """Return the loop, starting it if need be.

        Raises:
            RuntimeError: if it is closed, or this is its own thread.
        """
        with self._lock:
            if self._closing:
                raise RuntimeError("the event loop is closed")
            if threading.current_thread() is self._thread:
                raise RuntimeError("the event loop cannot wait for itself")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop.set_default_executor(DaemonPool())
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop,), name="heta-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            while self.serves(loop) and not self._closing:
                try:
                    loop.run_forever()
                except (KeyboardInterrupt, SystemExit):
                    # Raised by a coroutine: its waiter gets it from the future
                    # once the loop goes round again.
                    continue
            _cancel_all(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    thread = _THREADS.pop(loop, None)
    if thread is not None:
        thread.shutdown(wait=False, cancel_futures=True)
