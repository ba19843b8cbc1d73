"""Users' code that takes too long: what its caller gets, and what becomes of it."""

import asyncio
import inspect
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from pytest_heta.core import _deadline, _steps
from pytest_heta.core._deadline import (
    MOST_ABANDONED,
    bounded,
    build_within,
    close_within,
    closing_limit,
)
from pytest_heta.core._limited import LimitedCalls
from pytest_heta.core._loop import LoopThread, own_thread
from pytest_heta.core._threads import DaemonThreads
from pytest_heta.errors import BuildTimeoutError, LoopBlockedError, QueryTimeoutError

SHORT_S = 0.05
LONG_S = 60


@pytest.fixture
def loop():
    """An event loop on a thread of its own."""
    thread = LoopThread()
    yield thread
    thread.close()


@pytest.fixture
def hurry(monkeypatch):
    """Give users' code next to no time to end after its time is over."""
    monkeypatch.setattr(_steps, "GRACE_S", SHORT_S)
    monkeypatch.setattr(_deadline, "GRACE_S", SHORT_S)


@pytest.fixture
def gate():
    """An event that is set at the end: no thread stays behind."""
    event = threading.Event()
    yield event
    event.set()


async def returned(value):
    await asyncio.sleep(0)
    return value


async def for_ever():
    await asyncio.Event().wait()


class TestBounded:
    def test_what_ends_in_time_is_returned(self):
        assert asyncio.run(bounded(returned("value"), LONG_S)) == "value"

    @pytest.mark.parametrize("kind", [ValueError, TimeoutError, asyncio.CancelledError])
    def test_what_it_raises_goes_through(self, kind):
        error = kind("its own")

        async def fails():
            raise error

        async def run():
            with pytest.raises(kind) as raised:
                await bounded(fails(), LONG_S)
            return raised.value

        assert str(asyncio.run(run())) == "its own"

    def test_what_takes_longer_is_cancelled_before_its_caller_hears_of_it(self):
        cancelled = []

        async def query():
            try:
                await for_ever()
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

        with pytest.raises(TimeoutError):
            asyncio.run(bounded(query(), SHORT_S))
        assert cancelled == [True]

    @pytest.mark.usefixtures("hurry")
    def test_what_swallows_its_cancellation_is_left_behind(self):
        async def run():
            let_go = asyncio.Event()
            ended = asyncio.Event()

            async def stubborn():
                while not let_go.is_set():
                    try:
                        await let_go.wait()
                    except asyncio.CancelledError:
                        continue
                ended.set()
                raise ValueError("nobody waits for it any more")

            with pytest.raises(TimeoutError):
                await bounded(stubborn(), SHORT_S)
            assert not ended.is_set()
            let_go.set()
            await asyncio.wait_for(ended.wait(), LONG_S)

        asyncio.run(run())

    def test_the_work_is_cancelled_with_its_caller(self):
        async def run():
            begun, cancelled = asyncio.Event(), asyncio.Event()

            async def work():
                begun.set()
                try:
                    await for_ever()
                finally:
                    cancelled.set()

            task = asyncio.create_task(bounded(work(), LONG_S))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(cancelled.wait(), LONG_S)

        asyncio.run(run())


class TestSteps:
    def test_what_waits_blocks_nothing(self, loop):
        begun = threading.Event()

        async def waits():
            begun.set()
            await asyncio.sleep(10 * SHORT_S)

        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(loop.run, bounded(waits(), LONG_S))
            assert begun.wait(LONG_S)
            assert loop.leave_if_blocked() is None
            assert running.result(LONG_S) is None

    @pytest.mark.usefixtures("hurry")
    def test_what_blocks_the_loop_is_seen_and_the_next_has_another(self, loop, gate):
        async def blocks():
            gate.wait()

        first = loop.started()
        with pytest.raises(LoopBlockedError, match=r"\[loop-blocked\] a coroutine blocks"):
            loop.run(bounded(blocks(), SHORT_S))
        assert loop.run(returned("value")) == "value"
        assert not loop.serves(first)
        assert loop.serves(loop.started())

    @pytest.mark.usefixtures("hurry")
    def test_a_loop_that_was_left_behind_ends_when_it_can(self, loop):
        gate, threads = threading.Event(), []

        async def blocks():
            threads.append(threading.current_thread())
            gate.wait()

        with pytest.raises(LoopBlockedError):
            loop.run(bounded(blocks(), SHORT_S))
        gate.set()
        threads[0].join(LONG_S)
        assert not threads[0].is_alive()

    @pytest.mark.usefixtures("hurry")
    def test_it_is_told_who_blocks_the_loop(self, loop, gate):
        begun = threading.Event()

        async def blocks():
            begun.set()
            gate.wait()

        asyncio.run_coroutine_threadsafe(bounded(blocks(), SHORT_S, who="me"), loop.started())
        assert begun.wait(LONG_S)
        blocker = None
        while blocker is None:
            blocker = loop.leave_if_blocked()
        assert (blocker.who, blocker.limit_s) == ("me", SHORT_S)


class TestBuildAndClose:
    def test_without_a_limit_nothing_changes(self):
        assert asyncio.run(build_within(returned("built"), None)) == "built"
        assert asyncio.run(close_within(returned(None), None)) is None

    def test_a_build_that_takes_longer_is_an_error_of_its_unit(self):
        with pytest.raises(BuildTimeoutError) as raised:
            asyncio.run(build_within(for_ever(), SHORT_S, "run unit u"))
        line = "[build-timeout] run unit u: building took longer than 0.05 s"
        assert str(raised.value) == line

    def test_what_comes_after_it_has_another_thread(self, gate):
        async def run():
            thread = own_thread()
            work = asyncio.get_running_loop().run_in_executor(thread, gate.wait)

            async def build():
                await work

            with pytest.raises(BuildTimeoutError):
                await build_within(build(), SHORT_S)
            assert own_thread() is not thread
            call = asyncio.get_running_loop().run_in_executor(own_thread(), threading.get_ident)
            assert await asyncio.wait_for(call, LONG_S)
            own_thread().shutdown()

        asyncio.run(run())

    def test_closing_that_takes_longer_is_told(self):
        why = asyncio.run(close_within(for_ever(), SHORT_S))
        assert why == "closing took longer than 0.05 s"

    @pytest.mark.parametrize(
        ("query", "build", "limit"),
        [(None, None, None), (None, 3, 3), (1, None, 10), (20, None, 20), (20, 3, 3)],
    )
    def test_closing_may_take_as_long_as_building(self, query, build, limit):
        assert closing_limit(query, build) == limit


class TestLimitedCalls:
    @pytest.fixture
    def threads(self):
        threads = DaemonThreads(1, "limited")
        yield threads
        threads.shutdown()

    @pytest.fixture
    def limited(self, threads):
        return LimitedCalls(SHORT_S, what="query", error=QueryTimeoutError, threads=threads)

    @staticmethod
    def alone(work):
        """Run a coroutine that needs no event loop."""
        with pytest.raises(StopIteration) as stop:
            work.send(None)
        return stop.value.value

    def test_off_the_loop_nobody_starts_one(self, limited):
        called = self.alone(limited.call(str.upper, ("text",)))
        assert (called.value, called.error) == ("TEXT", None)

    def test_on_and_off_the_loop_a_late_call_is_an_error(self, limited, gate):
        for called in (
            self.alone(limited.call(gate.wait)),
            asyncio.run(limited.call(gate.wait)),
            asyncio.run(limited.call(for_ever)),
        ):
            assert isinstance(called.error, QueryTimeoutError)
            assert called.error.message == "the query took longer than 0.05 s"
            assert called.seconds == SHORT_S

    def test_what_a_function_raises_is_its_own(self, limited):
        called = self.alone(limited.call(int, ("no number",)))
        assert isinstance(called.error, ValueError)

    def test_an_ordinary_function_may_return_a_coroutine(self, limited):
        works = [returned("value"), for_ever()]
        called = asyncio.run(limited.call(works.pop, (0,)))
        assert called.value == "value"
        called = asyncio.run(limited.call(works.pop))
        assert isinstance(called.error, QueryTimeoutError)

    def test_a_coroutine_that_comes_back_too_late_is_closed(self, gate):
        futures, closed = [], threading.Event()

        class Threads(DaemonThreads):
            def submit(self, *arguments):
                futures.append(super().submit(*arguments))
                return futures[-1]

        work = returned("value")

        def query():
            gate.wait()
            return work

        threads = Threads(1, "limited")
        limited = LimitedCalls(SHORT_S, what="query", error=QueryTimeoutError, threads=threads)
        assert isinstance(self.alone(limited.call(query)).error, QueryTimeoutError)
        futures[0].add_done_callback(lambda _: closed.set())
        gate.set()
        assert closed.wait(LONG_S)
        assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
        threads.shutdown()

    def test_so_many_are_left_behind_and_then_none_is_called(self, limited, gate):
        begun = []

        def query():
            begun.append(True)
            gate.wait()

        for _ in range(MOST_ABANDONED + 3):
            called = self.alone(limited.call(query, who="a"))
        assert len(begun) == MOST_ABANDONED
        assert called.error.message == (
            "not called: 16 calls of the query that took too long are still running;"
            " let the query give up by itself"
        )
        assert self.alone(limited.call(str, who="b")).error is None, "others count for themselves"
        limited.renew()
        assert self.alone(limited.call(str, who="a")).error is None

    def test_those_that_have_ended_do_not_count(self, limited, threads):
        for _ in range(MOST_ABANDONED + 3):
            gate, ended = threading.Event(), threading.Event()

            def query(gate=gate, ended=ended):
                gate.wait()
                ended.set()

            called = self.alone(limited.call(query))
            assert called.error.message == "the query took longer than 0.05 s"
            gate.set()
            assert ended.wait(LONG_S)
            threads.submit(str).result(LONG_S)

    def test_one_that_came_back_late_unseen_is_late(self, threads):
        # Its clock says so, not the caller's.
        limited = LimitedCalls(1e-9, what="query", error=QueryTimeoutError, threads=threads)
        assert isinstance(asyncio.run(limited.call(lambda: 1)).error, QueryTimeoutError)
        assert isinstance(asyncio.run(limited.call(returned, (1,))).error, QueryTimeoutError)

    def test_one_at_a_time_has_its_whole_time(self):
        # One that waited for a thread would have waited in its own time.
        waiting = []

        class Threads(DaemonThreads):
            def submit(self, *arguments):
                waiting.append(sum(not future.done() for future in futures))
                futures.append(super().submit(*arguments))
                return futures[-1]

        futures = []
        threads = Threads(1, "limited")

        async def run(**arguments):
            limited = LimitedCalls(
                LONG_S, what="query", error=QueryTimeoutError, threads=threads, **arguments
            )
            return await asyncio.gather(*(limited.call(str) for _ in range(8)))

        called = asyncio.run(run(one_at_a_time=True))
        assert [call.error for call in called] == [None] * 8
        assert waiting == [0] * 8
        threads.shutdown()


ENDS = """
import asyncio, threading
from pytest_heta.core._loop import LoopThread
from pytest_heta.core._deadline import bounded

loop = LoopThread()
try:
    loop.run(bounded(asyncio.to_thread(threading.Event().wait), 0.05))
except TimeoutError:
    print("late")
"""


def test_a_process_does_not_wait_for_what_was_cancelled_in_a_thread():
    done = subprocess.run(
        [sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=LONG_S, check=True
    )
    assert (done.stdout, done.stderr) == ("late\n", "")


def test_what_was_cancelled_in_a_thread_leaves_its_place_to_others(loop, gate):
    async def run():
        for _ in range(100):  # more than there are threads
            with pytest.raises(TimeoutError):
                await bounded(asyncio.to_thread(gate.wait), 0.001)
        return await bounded(asyncio.to_thread(str), LONG_S)

    assert loop.run(run()) == ""


def test_what_a_coroutine_has_begun_in_a_thread_ends_before_its_loop(loop):
    serving = loop.started()
    begun, gate, closed = threading.Event(), threading.Event(), []

    def work():
        begun.set()
        gate.wait(LONG_S)
        closed.append(serving.is_closed())

    async def begin():
        asyncio.get_running_loop().run_in_executor(None, work)

    loop.run(begin())
    assert begun.wait(LONG_S)
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(loop.close)
        wait([closing], timeout=10 * SHORT_S)
        gate.set()
        closing.result(LONG_S)
    assert closed == [False]
