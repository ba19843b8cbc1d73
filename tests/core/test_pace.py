"""Retries, back-off, rates, and how many calls a service gets at the same time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.error import HTTPError

import pytest

from pytest_heta.core._loop import Called, LoopThread
from pytest_heta.core.pace import MOST_GIVEN_UP, Pace, parse_rate


class RefusedError(Exception):
    """What a client raises: a status, and headers."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"status {status}")
        self.status_code = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def at_once(_attempt: int, _error: BaseException) -> float:
    return 0.0


def calls(*answers: Any) -> tuple[Callable[[int], Awaitable[Called]], list[int]]:
    """Return a call that gives the answers one by one, the last for ever, and its attempts."""
    made: list[int] = []

    async def call(_attempt: int) -> Called:
        answer = answers[min(len(made), len(answers) - 1)]
        made.append(len(made))
        if isinstance(answer, Exception):
            return Called(None, answer, 7.0)
        return Called(answer, None, 0.25)

    return call, made


def ask(pace: Pace, call: Callable[[int], Awaitable[Called]]) -> Called:
    return asyncio.run(pace.ask(call))


class TestRetries:
    @pytest.mark.parametrize(
        "error", [RefusedError(429), RefusedError(503), ConnectionResetError(), TimeoutError()]
    )
    def test_what_may_pass_is_asked_again(self, error):
        call, made = calls(error, error, "answer")
        called = ask(Pace(retries=2, pause=at_once), call)
        assert called == Called("answer", None, 0.25, attempts=3)
        assert len(made) == 3

    def test_the_last_error_is_what_came_of_it(self):
        call, made = calls(RefusedError(500), RefusedError(502), RefusedError(504))
        called = ask(Pace(retries=2, pause=at_once), call)
        assert str(called.error) == "status 504"
        assert called.attempts == len(made) == 3

    @pytest.mark.parametrize(
        "error", [ValueError("no"), RefusedError(400), RefusedError(404), KeyError(1)]
    )
    def test_what_does_not_pass_is_asked_once(self, error):
        call, made = calls(error, "answer")
        called = ask(Pace(retries=5, pause=at_once), call)
        assert called.error is error
        assert called.attempts == len(made) == 1

    def test_no_retries(self):
        call, made = calls(RefusedError(429), "answer")
        assert ask(Pace(retries=0, pause=at_once), call).attempts == len(made) == 1

    def test_who_wants_to_be_left_alone_for_long_is_not_waited_for(self):
        call, made = calls(RefusedError(429, Retry_After="3600"), "answer")
        called = ask(Pace(retries=5), call)
        assert isinstance(called.error, RefusedError)
        assert len(made) == 1

    def test_pauses_grow_and_are_at_least_what_the_service_says(self):
        asked: list[tuple[int, str]] = []

        def pause(attempt: int, error: BaseException) -> float:
            asked.append((attempt, str(error)))
            return 0.0

        call, _ = calls(RefusedError(500), RefusedError(429), "answer")
        ask(Pace(retries=2, pause=pause), call)
        assert asked == [(1, "status 500"), (2, "status 429")]

    def test_an_interrupt_goes_through(self):
        async def call(_attempt: int) -> Called:
            raise KeyboardInterrupt

        pace = Pace(retries=3, pause=at_once)
        with pytest.raises(KeyboardInterrupt):
            pace.ask(call).send(None)
        # Nothing is left of it: another call has its turn at once.
        assert ask(pace, calls("answer")[0]).value == "answer"

    def test_in_a_thread_without_a_loop(self):
        error = HTTPError("http://localhost/", 503, "busy", {}, None)  # type: ignore[arg-type]
        call, made = calls(error, "answer")
        loop = LoopThread()
        try:
            called = loop.drive(Pace(retries=1, pause=lambda *_: 0.001).ask(call))
        finally:
            loop.close()
        assert (called.value, called.attempts, len(made)) == ("answer", 2, 2)

    def test_who_is_gone_is_not_waited_for_by_everyone(self):
        pace = Pace(retries=1, pause=at_once)
        counts = []
        for _ in range(MOST_GIVEN_UP + 2):
            call, made = calls(ConnectionRefusedError())
            ask(pace, call)
            counts.append(len(made))
        assert counts == [2] * MOST_GIVEN_UP + [1, 1]
        ask(pace, calls("it is back")[0])
        call, made = calls(ConnectionRefusedError(), "answer")
        assert ask(pace, call).attempts == len(made) == 2


class Service:
    """Counts how many calls it gets at the same time, and refuses those beyond its limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.running = 0
        self.most = 0
        self.refused = 0

    async def answer(self, _attempt: int) -> Called:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0)
            if self.running > self.limit:
                self.refused += 1
                return Called(None, RefusedError(429), 0.0)
            return Called("answer", None, 0.0)
        finally:
            self.running -= 1


def ask_many(pace: Pace, service: Service, count: int) -> list[Called]:
    async def many() -> list[Called]:
        return await asyncio.gather(*(pace.ask(service.answer) for _ in range(count)))

    return asyncio.run(many())


class TestAdaptiveLimit:
    def test_there_is_none_while_all_goes_well(self):
        service = Service(limit=100)
        pace = Pace(retries=1, pause=at_once)
        ask_many(pace, service, 64)
        assert (service.most, service.refused, pace.limit) == (64, 0, None)

    def test_it_finds_what_the_service_can_take(self):
        service = Service(limit=4)
        pace = Pace(retries=10, pause=at_once)
        answers = ask_many(pace, service, 16)
        assert [called.value for called in answers] == ["answer"] * 16
        # The first 12 beyond its limit, and a few whenever one more is tried.
        assert service.refused < 24
        service.most = service.refused = 0
        for _ in range(20):
            ask_many(pace, service, 16)
        assert service.refused < 20 * 12

    def test_one_burst_of_refusals_halves_it_once(self):
        pace = Pace(retries=0, pause=at_once)
        ask_many(pace, Service(limit=0), 16)
        assert pace.limit == 8

    def test_it_never_falls_below_one(self):
        pace = Pace(retries=0, pause=at_once)
        for _ in range(8):
            ask_many(pace, Service(limit=0), 16)
        assert pace.limit == 1
        assert ask_many(pace, Service(limit=1), 3)[0].value == "answer"

    def test_it_recovers(self):
        pace = Pace(retries=3, pause=at_once)
        ask_many(pace, Service(limit=0), 8)
        healthy = Service(limit=100)
        for _ in range(10):
            ask_many(pace, healthy, 8)
        assert pace.limit is None
        healthy.most = 0
        ask_many(pace, healthy, 8)
        assert healthy.most == 8

    def test_who_waits_for_room_can_be_cancelled(self):
        async def scenario() -> int:
            pace = Pace(retries=0, pause=at_once)
            await asyncio.gather(*(pace.ask(Service(limit=0).answer) for _ in range(2)))
            assert pace.limit == 1
            gate = asyncio.Event()

            async def slow(_attempt: int) -> Called:
                await gate.wait()
                return Called("slow", None, 0.0)

            first = asyncio.ensure_future(pace.ask(slow))
            waiting = [asyncio.ensure_future(pace.ask(slow)) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            gate.set()
            came = await asyncio.gather(first, *waiting, return_exceptions=True)
            return sum(isinstance(one, Called) for one in came)

        assert asyncio.run(scenario()) == 3


class TestRate:
    def test_calls_begin_no_faster(self):
        async def begun_at() -> list[float]:
            pace, begun = Pace(per_second=50), []

            async def call(_attempt: int) -> Called:
                begun.append(time.monotonic())
                return Called("answer", None, 0.0)

            await asyncio.gather(*(pace.ask(call) for _ in range(6)))
            return begun

        begun = asyncio.run(begun_at())
        # It may take longer, never less: 5 intervals of 20 ms, but for the clock's grain.
        assert begun[-1] - begun[0] >= 5 * 0.02 - 0.002

    @pytest.mark.parametrize(
        ("text", "per_second"),
        [("10/s", 10.0), ("10", 10.0), ("0.5/s", 0.5), ("300/min", 5.0), ("3600/h", 1.0)],
    )
    def test_a_rate_is_read(self, text, per_second):
        assert parse_rate(text) == per_second

    @pytest.mark.parametrize(
        "text", ["", "/s", "0/s", "-1/s", "nan/s", "inf", "10/", "5/day", "x", "1e-300"]
    )
    def test_anything_else_is_none(self, text):
        assert parse_rate(text) is None
