"""Several samples at once on one loop, with the results in order."""

import asyncio
from functools import partial

import pytest

from pytest_heta.core._in_order import in_order


async def many_turns():
    for _ in range(50):
        await asyncio.sleep(0)


async def listed(work, **arguments):
    return [value async for value in in_order(work, **arguments)]


def run(work, **arguments):
    async def all_of_it():
        async with asyncio.timeout(30):
            return await listed(work, **arguments)

    return asyncio.run(all_of_it())


class Log:
    """Pieces of work that note what becomes of them."""

    def __init__(self):
        self.begun = []
        self.done = []
        self.cancelled = []

    async def piece(self, number):
        self.begun.append(number)
        await asyncio.sleep(0)
        self.done.append(number)
        return number

    async def waiting(self, number, until=None):
        self.begun.append(number)
        try:
            await (until or asyncio.Event()).wait()
        except asyncio.CancelledError:
            self.cancelled.append(number)
            await many_turns()
            raise
        self.done.append(number)
        return number


@pytest.fixture
def log():
    return Log()


@pytest.mark.parametrize(("at_once", "ahead"), [(1, 1), (1, 16), (3, 3), (3, 48), (100, 100)])
def test_results_come_in_order(log, at_once, ahead):
    work = [partial(log.piece, number) for number in range(60)]
    assert run(work, at_once=at_once, ahead=ahead) == list(range(60))


def test_nothing_gives_nothing():
    assert run([], at_once=3, ahead=9) == []


def test_results_come_in_order_although_pieces_finish_in_reverse(log):
    async def work():
        done = [asyncio.Event() for _ in range(6)]
        done[5].set()

        async def piece(number):
            await done[number].wait()
            log.done.append(number)
            if number:
                done[number - 1].set()
            return number

        return await listed([partial(piece, n) for n in range(6)], at_once=6, ahead=6)

    assert asyncio.run(work()) == list(range(6))
    assert log.done == [5, 4, 3, 2, 1, 0]


def test_so_many_run_at_once_and_no_more():
    now = most = 0

    async def work():
        barrier = asyncio.Barrier(4)

        async def piece():
            nonlocal now, most
            now += 1
            most = max(most, now)
            await barrier.wait()
            await many_turns()
            now -= 1

        await listed([piece] * 20, at_once=4, ahead=16)

    asyncio.run(work())
    assert most == 4


def test_no_more_than_the_window_is_begun_before_the_first_is_done(log):
    async def work():
        first = asyncio.Event()
        pieces = [partial(log.waiting, 0, first), *(partial(log.piece, n) for n in range(1, 30))]
        results = in_order(pieces, at_once=2, ahead=8)
        taking = asyncio.create_task(anext(results))
        await many_turns()
        begun = list(log.begun)
        first.set()
        await taking
        await results.aclose()
        return begun

    assert asyncio.run(work()) == list(range(8))


def test_waiting_for_the_first_costs_nothing_while_others_are_done(log):
    async def work():
        first = asyncio.Event()
        asked = 0

        def cancelled():
            nonlocal asked
            asked += 1
            return False

        pieces = [partial(log.waiting, 0, first), *(partial(log.piece, n) for n in range(1, 4))]
        results = in_order(pieces, at_once=4, ahead=4, cancelled=cancelled)
        taking = asyncio.create_task(anext(results))
        await many_turns()
        assert log.done == [1, 2, 3]
        before = asked
        await many_turns()
        after = asked
        first.set()
        await taking
        await results.aclose()
        return after - before

    assert asyncio.run(work()) == 0


def test_pieces_are_made_as_they_are_begun(log):
    made = []

    def pieces():
        for number in range(10):
            made.append(number)
            yield partial(log.piece, number)

    async def work():
        results = in_order(pieces(), at_once=1, ahead=2)
        await anext(results)
        await results.aclose()

    asyncio.run(work())
    assert len(made) <= 3


def test_an_exception_is_raised_in_its_place_and_cancels_the_rest(log):
    async def fail():
        raise KeyError("x")

    async def work():
        got = []
        pieces = [partial(log.piece, 0), fail, *(partial(log.waiting, n) for n in (2, 3, 4))]
        with pytest.raises(KeyError):  # noqa: PT012
            async for value in in_order(pieces, at_once=5, ahead=5):
                got.append(value)  # noqa: PERF401 - what came before the exception counts
        return got

    assert asyncio.run(work()) == [0]
    assert log.cancelled == [4, 3, 2]


def test_a_piece_that_is_cancelled_by_its_own_code_is_no_end(log):
    async def cancels():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run([partial(log.piece, 0), cancels, partial(log.piece, 2)], at_once=1, ahead=2)


def test_whoever_stops_early_cancels_the_last_piece_first_and_waits_for_all(log):
    async def work():
        pieces = [partial(log.piece, 0), *(partial(log.waiting, n) for n in (1, 2, 3))]
        results = in_order(pieces, at_once=4, ahead=4)
        await anext(results)
        await results.aclose()
        return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert asyncio.run(work()) == []
    assert log.cancelled == [3, 2, 1]


class TestCancelling:
    def test_before_the_first_piece_nothing_begins(self, log):
        work = [partial(log.piece, number) for number in range(5)]
        assert run(work, at_once=2, ahead=4, cancelled=lambda: True) == []
        assert log.begun == []

    def test_what_is_done_still_comes(self, log):
        async def work():
            got = []
            pieces = [partial(log.piece, number) for number in range(20)]
            results = in_order(pieces, at_once=1, ahead=4, cancelled=lambda: len(log.begun) >= 3)
            async for value in results:
                got.append(value)  # noqa: PERF401
            return got

        got = asyncio.run(work())
        assert got == log.done
        assert log.begun == [0, 1, 2]

    def test_what_waits_is_cancelled(self, log):
        stop = False

        async def stops():
            nonlocal stop
            stop = True
            return "stopped"

        pieces = [partial(log.waiting, 0), stops, partial(log.piece, 2)]
        assert run(pieces, at_once=2, ahead=3, cancelled=lambda: stop) == []
        assert log.cancelled == [0]
        assert log.begun == [0]
