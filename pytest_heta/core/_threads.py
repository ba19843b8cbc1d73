"""Threads for functions that may never return."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from queue import SimpleQueue
from typing import Any

__all__ = ["DaemonPool", "DaemonThreads"]


class DaemonThreads(Executor):
    """Runs functions in threads that do not keep the process alive.

    Python waits at its end for the threads of a `ThreadPoolExecutor`: after an
    interrupt, for a query that never returns.

    Args:
        count: How many functions run at the same time.
        name: What the threads are called.
    """

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._threads: list[threading.Thread] = []
        self._abandoned: set[Future[Any]] = set()
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Let a thread call a function, as soon as one is free."""
        return self.carry_out(Future(), lambda: function(*args, **kwargs))

    def carry_out(self, future: Future[Any], work: Callable[[], Any]) -> Future[Any]:
        """Let a thread do some work, and give what comes of it to a future."""
        self._waiting.put((future, work))
        if len(self._threads) < self._count:
            thread = threading.Thread(
                target=self._serve, name=f"{self._name}_{len(self._threads)}", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        return future

    def abandon(self, future: Future[Any]) -> None:
        """Let another thread take the place of the one that is busy with a function."""
        self._abandoned.add(future)
        self._count += 1

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """Let the threads end when they have nothing to do; nobody waits for them."""
        for _ in self._threads:
            self._waiting.put(None)

    def _serve(self) -> None:
        while (work := self._waiting.get()) is not None:
            future, function = work
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 - raised where the future is awaited
                future.set_exception(error)
            if future in self._abandoned:
                return  # another has taken this one's place
            del work, future, function


class _Task(Future[Any]):
    """What is told when nobody waits for it any more."""

    def __init__(self, given_up: Callable[[Future[Any]], None]) -> None:
        super().__init__()
        self._given_up = given_up

    def cancel(self) -> bool:
        is_cancelled = super().cancel()
        if not is_cancelled:
            self._given_up(self)
        return is_cancelled


class DaemonPool(ThreadPoolExecutor):
    """An event loop's default executor that does not keep the process alive.

    An event loop takes no other class. What ``asyncio.to_thread`` has begun
    goes on when its waiter is cancelled: another thread takes its place then,
    and nobody waits for it at the end.
    """

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="heta-pool")
        self._daemons = DaemonThreads(self._max_workers, "heta-pool")
        self._pending: set[Future[Any]] = set()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Let a thread call a function, as soon as one is free."""
        future = _Task(self._give_up)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return self._daemons.carry_out(future, lambda: function(*args, **kwargs))

    def _give_up(self, future: Future[Any]) -> None:
        if future in self._pending:
            self._pending.discard(future)
            self._daemons.abandon(future)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Take no more, and wait for what has been begun and not given up."""
        super().shutdown(wait=False, cancel_futures=cancel_futures)
        self._daemons.shutdown()
        if wait:
            wait_for(tuple(self._pending))
