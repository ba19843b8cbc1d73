"""How fast, and how often, the service behind users' functions is asked.

A call that failed in a way that may pass is made again after a while. Where a
service says that it is asked too much, all calls wait for as long as it says,
and fewer are made at the same time: half as many after each such answer, one
more after each round of calls that went well (additive increase,
multiplicative decrease, as TCP does it; Chiu and Jain, 1989).
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from pytest_heta.core._loop import Called, on_loop
from pytest_heta.core.retries import (
    LONGEST_RETRY_AFTER_S,
    is_retryable,
    is_throttling,
    pause_s,
    retry_after_s,
)

__all__ = ["DEFAULT_RETRIES", "MOST_GIVEN_UP", "Limits", "Pace", "parse_rate"]

DEFAULT_RETRIES: Final = 3
"""How often a call is made again, if nobody says."""

MOST_GIVEN_UP: Final = 25
"""After so many calls in a row that failed for good, calls are made only once."""


_SECONDS: Final = {"s": 1.0, "min": 60.0, "h": 3600.0}
_SLOWEST: Final = 1e-9
"""Calls per second; clocks cannot wait much longer between two."""


class Pace:
    """Makes calls of one service in this process, at the pace that it can take.

    Calls may be made on one event loop, several at the same time, and in a
    thread without one, where waiting blocks.

    Args:
        retries: How often a call that failed is made again.
        per_second: Calls that may be begun in a second; None for any number.
        pause: Returns how many seconds to wait after the nth attempt of a
            call failed with some error.
    """

    def __init__(
        self,
        *,
        retries: int = 0,
        per_second: float | None = None,
        pause: Callable[[int, BaseException], float] = pause_s,
    ) -> None:
        self._retries = retries
        self._interval_s = 1.0 / per_second if per_second else 0.0
        self._pause = pause
        self._lock = threading.Lock()
        self._next_at = 0.0  # when the next call may begin, for the rate
        self._resumes_at = 0.0  # when the service wants to be asked again
        self._running = 0
        self._limit: float | None = None  # calls at the same time; None for any number
        self._most = 0  # as many were running before the service complained
        self._slowdowns = 0
        self._given_up = 0  # calls in a row that failed for good
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int | None:
        """How many calls may be made at the same time; None for any number."""
        return None if self._limit is None else int(self._limit)

    async def ask(self, call: Callable[[int], Awaitable[Called]]) -> Called:
        """Make a call, again if need be, and return what came of its last attempt.

        Args:
            call: Makes the nth attempt. An `Exception` is a value of what it returns.
        """
        attempt = 0
        while True:
            attempt += 1
            await self._turn()
            slowdowns = self._slowdowns
            try:
                called = await call(attempt)
            finally:
                self._leave()
            if called.error is None:
                self._given_up = 0
                self._speed_up()
                break
            wait_s = self._wait_after(called.error, attempt, slowdowns)
            if wait_s is None:
                break
            await _wait(wait_s)
        return called if attempt == 1 else called._replace(attempts=attempt)

    # -- before a call ----------------------------------------------------------

    async def _turn(self) -> None:
        """Wait until a call may begin, and count it as running."""
        while self._limit is not None and self._running >= int(self._limit) and on_loop():
            room = asyncio.get_running_loop().create_future()
            self._waiting.append(room)
            try:
                await room
            except asyncio.CancelledError:
                self._wake()  # it may have been given the room of another
                raise
        self._running += 1
        if self._waiting:
            self._wake()  # there may be room for more than one
        if not self._interval_s and not self._resumes_at:
            return
        try:
            while (wait_s := self._resumes_at - time.monotonic()) > 0:
                await _wait(wait_s)
            await _wait(self._reserve() - time.monotonic())
        except BaseException:
            self._leave()
            raise

    def _reserve(self) -> float:
        """Return when the next call may begin, which is nobody else's time then."""
        with self._lock:
            begins_at = max(time.monotonic(), self._next_at)
            self._next_at = begins_at + self._interval_s
            return begins_at

    def _leave(self) -> None:
        self._running -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and (self._limit is None or self._running < int(self._limit)):
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.get_loop().call_soon_threadsafe(_let_go, waiter)
                if self._limit is not None:
                    return  # the next one when this one has begun, or there is room again

    # -- after a call -------------------------------------------------------------

    def _wait_after(self, error: BaseException, attempt: int, slowdowns: int) -> float | None:
        """Return how many seconds to wait before another attempt, None if there is none."""
        throttled = is_throttling(error)
        if throttled and slowdowns == self._slowdowns:
            # Not once for each call that was under way: they all met the same limit.
            self._slowdowns += 1
            self._slow_down()
        if not is_retryable(error):
            self._speed_up()  # the service had time to look at it
            return None
        asked_to_wait_s = retry_after_s(error) or 0.0
        is_hopeless = self._given_up >= MOST_GIVEN_UP or asked_to_wait_s > LONGEST_RETRY_AFTER_S
        if attempt > self._retries or is_hopeless:
            self._given_up += 1
            return None
        wait_s = self._pause(attempt, error)
        if throttled:
            self._resumes_at = max(self._resumes_at, time.monotonic() + wait_s)
        return wait_s

    def _speed_up(self) -> None:
        if self._limit is None:
            return
        self._limit += 1 / self._limit
        if self._limit >= self._most:
            self._limit, self._resumes_at = None, 0.0
        self._wake()

    def _slow_down(self) -> None:
        running = self._running + 1  # with the one that has just returned
        if self._limit is None:
            self._most = max(self._most, running)
        self._limit = max(1.0, min(running, self._limit or running) / 2)


def _let_go(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def parse_rate(text: str) -> float | None:
    """Return a rate such as ``10/s``, ``300/min`` or ``5000/h`` per second, None if it is none."""
    number, slash, unit = text.partition("/")
    try:
        count = float(number)
    except ValueError:
        return None
    seconds = _SECONDS.get(unit.strip() if slash else "s")
    if not seconds or not 0 < count < math.inf:
        return None
    rate = count / seconds
    return rate if rate >= _SLOWEST else None


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the calls of a user's function.

    Attributes:
        timeout_s: Seconds that one attempt may take; None for any time.
        pace: How fast and how often it is called.
    """

    timeout_s: float | None = None
    pace: Pace = field(default_factory=Pace)


async def _wait(seconds: float) -> None:
    if seconds <= 0:
        return
    if on_loop():
        await asyncio.sleep(seconds)
    else:
        time.sleep(seconds)  # noqa: ASYNC251 - there is no loop that it could hold up
