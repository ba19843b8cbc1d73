"""Where users' code runs, and what its exceptions become."""

import asyncio
import concurrent.futures
import functools
import sqlite3
import threading

import pytest

from pytest_heta.core import _loop
from pytest_heta.core._loop import LoopThread, call, enter_loop, is_coroutine_function


@pytest.fixture
def loop_thread():
    thread = LoopThread()
    yield thread
    thread.close()


def on_a_loop():
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def answer():
    await asyncio.sleep(0)
    return 42


class Callable:
    async def __call__(self):
        return "called"


def test_coroutine_functions_are_told_from_ordinary_ones():
    assert is_coroutine_function(answer)
    assert is_coroutine_function(functools.partial(answer))
    assert is_coroutine_function(Callable())
    assert not is_coroutine_function(Callable)  # calling the class makes an object
    assert not is_coroutine_function(on_a_loop)
    assert not is_coroutine_function(lambda: None)


async def on_the_loop(function):
    await enter_loop()
    return await function()


class TestRun:
    def test_a_coroutine_runs_and_its_result_comes_back(self, loop_thread):
        assert loop_thread.run(answer()) == 42

    def test_every_coroutine_runs_on_the_same_loop_and_thread(self, loop_thread):
        async def where():
            return asyncio.get_running_loop(), threading.get_ident()

        first, second = loop_thread.run(where()), loop_thread.run(where())
        assert first == second
        assert first[1] != threading.get_ident()

    def test_it_works_inside_a_running_loop_and_leaves_that_one_alone(self, loop_thread):
        async def main():
            mine = asyncio.get_running_loop()
            assert loop_thread.run(answer()) == 42
            return asyncio.get_running_loop() is mine

        assert asyncio.run(main())

    def test_an_exception_comes_back(self, loop_thread):
        async def fail():
            raise KeyError("x")

        with pytest.raises(KeyError, match="x"):
            loop_thread.run(fail())

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
    def test_an_interrupt_inside_comes_back_and_the_loop_goes_on(self, loop_thread, kind):
        async def interrupt():
            raise kind

        with pytest.raises(kind):
            loop_thread.run(interrupt())
        assert loop_thread.run(answer()) == 42

    def test_an_interrupted_wait_cancels_the_coroutine(self, loop_thread, monkeypatch):
        started, cancelled = threading.Event(), threading.Event()

        async def wait():
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        submit = asyncio.run_coroutine_threadsafe

        def interrupted(work, loop):
            future = submit(work, loop)
            started.wait()
            monkeypatch.setattr(future, "result", interrupt)
            return future

        def interrupt(timeout=None):
            raise KeyboardInterrupt

        monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            loop_thread.run(wait())
        assert cancelled.wait(timeout=60)

    def test_a_closed_loop_refuses(self, loop_thread):
        loop_thread.run(answer())
        loop_thread.close()
        loop_thread.close()
        with pytest.raises(RuntimeError, match="closed"):
            loop_thread.run(answer())

    def test_waiting_for_itself_is_an_error_and_no_deadlock(self, loop_thread):
        async def nested():
            return loop_thread.run(answer())

        for how in (loop_thread.run, loop_thread.drive):
            with pytest.raises(RuntimeError, match="cannot wait for itself"):
                how(on_the_loop(nested))

    def test_closing_what_never_started_is_nothing(self):
        LoopThread().close()

    def test_closing_cancels_what_still_runs(self, loop_thread):
        events = []

        async def forever():
            try:
                await asyncio.Event().wait()
            finally:
                events.append("cancelled")

        async def begin():
            asyncio.get_running_loop().keep = asyncio.ensure_future(forever())
            await asyncio.sleep(0)

        loop_thread.run(begin())
        loop_thread.close()
        assert events == ["cancelled"]

    def test_closing_from_inside_does_not_wait_for_itself(self, loop_thread):
        async def close():
            loop_thread.close()
            return "closed"

        assert loop_thread.run(close()) == "closed"

    def test_a_loop_that_a_coroutine_blocks_is_left_behind(self, loop_thread):
        blocks, go_on = threading.Event(), threading.Event()

        async def block():
            blocks.set()
            go_on.wait(60)

        first = loop_thread.started()
        blocked = asyncio.run_coroutine_threadsafe(block(), first)
        assert blocks.wait(60)
        loop_thread.leave_if_stuck(0.01)
        assert loop_thread.has_left_loop
        assert loop_thread.started() is not first
        assert loop_thread.run(answer()) == 42
        go_on.set()
        blocked.result(60)

    def test_a_loop_that_has_time_is_kept(self, loop_thread):
        first = loop_thread.started()
        loop_thread.leave_if_stuck(60)
        assert loop_thread.started() is first
        assert not loop_thread.has_left_loop


class TestDrive:
    def test_ordinary_functions_run_in_the_callers_thread_without_a_loop(self, loop_thread):
        async def work():
            called = await call(lambda: (threading.get_ident(), on_a_loop()))
            return called.value

        assert loop_thread.drive(work()) == (threading.get_ident(), False)
        assert loop_thread._thread is None

    def test_a_function_that_calls_asyncio_run_works(self, loop_thread):
        async def work():
            return await call(lambda: asyncio.run(answer()))

        assert loop_thread.drive(work()).value == 42
        assert loop_thread.run(work()).value == 42

    def test_a_coroutine_function_moves_the_rest_to_the_loop(self, loop_thread):
        async def work():
            first = (await call(threading.get_ident)).value
            second = await call(answer)
            return first, second.value, on_a_loop()

        assert loop_thread.drive(work()) == (threading.get_ident(), 42, True)

    def test_under_a_running_loop_it_is_like_run(self, loop_thread):
        async def work():
            return on_a_loop()

        async def main():
            return loop_thread.drive(work())

        assert asyncio.run(main())
        assert loop_thread.drive(work()) is False

    def test_exceptions_come_back(self, loop_thread):
        async def fail():
            raise KeyError("x")

        with pytest.raises(KeyError):
            loop_thread.drive(fail())

    def test_waiting_before_entering_the_loop_is_an_error(self, loop_thread):
        with pytest.raises(RuntimeError, match="did not enter the loop"):
            loop_thread.drive(answer())

    def test_entering_the_loop_first_is_enough(self, loop_thread):
        async def work():
            await enter_loop()
            await enter_loop()
            return await answer()

        assert loop_thread.drive(work()) == 42


class TestCall:
    @pytest.mark.parametrize("how", ["run", "drive"])
    def test_exceptions_are_values(self, loop_thread, how):
        async def coroutine_function():
            raise KeyError("x")

        def function():
            raise KeyError("x")

        def makes_coroutine():
            return coroutine_function()

        for kind in (coroutine_function, function, makes_coroutine):
            called = getattr(loop_thread, how)(call(kind))
            assert isinstance(called.error, KeyError)
            assert called.value is None
            assert called.seconds >= 0

    @pytest.mark.parametrize("how", ["run", "drive"])
    def test_a_stop_iteration_is_a_value_too(self, loop_thread, how):
        called = getattr(loop_thread, how)(call(lambda: next(iter(()))))
        assert isinstance(called.error, StopIteration)

    @pytest.mark.parametrize("how", ["run", "drive"])
    @pytest.mark.parametrize("kind", [KeyboardInterrupt, asyncio.CancelledError])
    def test_what_is_no_exception_goes_through(self, loop_thread, how, kind):
        async def coroutine_function():
            raise kind

        def function():
            raise kind

        for broken in (coroutine_function, function):
            # A cancelled future is reported by concurrent.futures' own class.
            with pytest.raises((kind, concurrent.futures.CancelledError)):
                getattr(loop_thread, how)(call(broken))

    @pytest.mark.parametrize("how", ["run", "drive"])
    def test_what_an_ordinary_function_returns_is_awaited(self, loop_thread, how):
        def made_elsewhere():
            return answer()

        class Later:
            def __await__(self):
                return answer().__await__()

        for kind in (functools.partial(answer), made_elsewhere, Later):
            assert getattr(loop_thread, how)(call(kind)).value == 42

    def test_arguments_are_handed_on(self, loop_thread):
        called = loop_thread.run(call(lambda a, *, function: (a, function), 1, function=2))
        assert called.value == (1, 2)

    def test_the_seconds_are_those_inside(self, loop_thread, monkeypatch):
        ticks = iter([1.0, 1.5, 10.0, 12.0])
        monkeypatch.setattr(_loop, "perf_counter", lambda: next(ticks))

        def begin():
            return answer()

        # Half a second until the coroutine is there, and two inside it.
        assert loop_thread.drive(call(begin)).seconds == 2.5

    def test_on_a_loop_ordinary_functions_share_one_other_thread(self, loop_thread):
        async def work():
            opened = (await call(sqlite3.connect, ":memory:")).value
            one = await call(opened.execute, "select 1")
            row = (await call(one.value.fetchone)).value
            await call(opened.close)
            return row, (await call(threading.get_ident)).value

        row, thread = loop_thread.run(work())
        assert row == (1,)
        assert thread not in {threading.get_ident(), loop_thread._thread.ident}

    def test_on_somebody_elses_loop_it_works_as_well(self):
        assert asyncio.run(call(on_a_loop)).value is False
