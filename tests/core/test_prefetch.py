"""Asking ahead: how many at once, how far, in which order, and what becomes of failures."""
# ruff: noqa: T201

import asyncio
import concurrent.futures
import inspect
import json
import queue
import sys
import threading

import pytest

from pytest_heta.core import _loop, prefetch
from pytest_heta.core._deadline import MOST_ABANDONED
from pytest_heta.core._loop import LoopThread
from pytest_heta.core.concurrency import LOOKAHEAD, query_concurrency, recipe_concurrency
from pytest_heta.core.pace import Limits
from pytest_heta.core.plan import PlanSettings, plan_benchmark
from pytest_heta.core.prefetch import Prefetch
from pytest_heta.core.questions import Questions
from pytest_heta.core.records import HEAD
from pytest_heta.core.score import Scorer
from pytest_heta.core.spool import FlightRecorder, Spool, executing
from pytest_heta.errors import RecipeInvalidError
from pytest_heta.models import EvaluationScore

DEADLOCK_S = 30
"""No test waits this long; one that would is stopped."""


def in_time(function, *args):
    """Call a function in a thread of its own, so that a deadlock is a failure."""
    came = queue.SimpleQueue()

    def run():
        try:
            came.put((function(*args), None))
        except BaseException as error:  # noqa: BLE001 - raised again below
            came.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        value, error = came.get(timeout=DEADLOCK_S)
    except queue.Empty:
        pytest.fail("a deadlock")
    if error is not None:
        raise error
    return value


async def many_turns():
    """Give everything on the loop that can go on the time to do so."""
    for _ in range(50):
        await asyncio.sleep(0)


def number_of(text):
    return int(text.removeprefix("q"))


class Judge:
    """An evaluator of users: a coroutine function, called with the case's number."""

    def __init__(self, judge, name="judge"):
        self.name = name
        self._judge = judge

    async def evaluate(self, *, case, response):
        return await self._judge(number_of(case.query))


class Counted:
    """Counts what is under way at the same time."""

    def __init__(self):
        self._lock = threading.Lock()
        self._now = self.most = 0

    def __enter__(self):
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)

    def __exit__(self, *_):
        with self._lock:
            self._now -= 1


@pytest.fixture
def ask(fakes, tmp_path):
    """Return a function that makes a `Prefetch` over cases ``q0``, ``q1``, …"""
    opened = []

    def make(
        query,
        count,
        *,
        concurrency,
        evaluators=(),
        modes=("exact",),
        warmup=0,
        asked=None,
        timeout_s=None,
        **arguments,
    ):
        class KnowledgeBase:
            available_queries = modes

        KnowledgeBase.query = staticmethod(query)
        cases = [fakes.case(f"c{n}", f"q{n}", "d") for n in range(count)]
        benchmark = fakes.Benchmark([fakes.document("d")], cases, evaluators=evaluators)
        recipe = fakes.Recipe(modes=modes)
        plan, made = plan_benchmark(fakes.load(benchmark, tmp_path), recipe, PlanSettings())
        samples = list(plan.samples())
        questions = Questions(
            plan=plan,
            cases={case.case_id: case for case in cases},
            scorer=Scorer(made, plan.metrics, top_k=plan.top_k, timeout_s=timeout_s),
            samples=samples,
            asked=set() if asked is None else asked,
            warmup=warmup,
            numbers=range(len(samples)),
        )
        loop = LoopThread()
        ahead = Prefetch(
            loop,
            KnowledgeBase(),
            questions,
            concurrency=concurrency,
            limits=Limits(timeout_s=timeout_s),
            **arguments,
        )
        opened.append((loop, ahead))
        return ahead

    before = sys.stdout, sys.stderr
    yield make
    for loop, ahead in opened:
        ahead.close()
        loop.close()
    assert (sys.stdout, sys.stderr) == before


def take_all(ahead, count):
    return [in_time(ahead.take, index) for index in range(count)]


def answered(answers):
    """Return the ids of the first results of answers."""
    return [answer.outcome.response.results[0].id for answer in answers]


def response(text):
    return {"results": [{"id": text, "source": {"document_id": "d"}}]}


# --- how queries are asked: the same for coroutines, threads, and this thread -----


def as_coroutine(function):
    async def query(text, *, mode):
        await asyncio.sleep(0)
        return function(text, mode)

    return query


def as_prompt_coroutine(function):
    async def query(text, *, mode):
        return function(text, mode)

    return query


def as_function(function):
    def query(text, *, mode):
        return function(text, mode)

    return query


def as_function_of_a_coroutine(function):
    def query(text, *, mode):
        return as_coroutine(function)(text, mode=mode)

    return query


WAYS = {
    "coroutines": (as_coroutine, 3),
    "prompt coroutines": (as_prompt_coroutine, 3),
    "one coroutine": (as_coroutine, 1),
    "threads": (as_function, 3),
    "functions that return coroutines": (as_function_of_a_coroutine, 3),
    "here": (as_function, 1),
    "here, returning coroutines": (as_function_of_a_coroutine, 1),
}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def way(request, ask):
    """Return a function that asks a function of text and mode in one of the ways there are."""
    wrap, concurrency = request.param

    def make(function, count, **arguments):
        return ask(wrap(function), count, concurrency=concurrency, **arguments)

    return make


class TestHowManyAtOnce:
    @pytest.mark.parametrize("concurrency", [1, 2, 5])
    def test_coroutines(self, ask, concurrency):
        barrier = asyncio.Barrier(concurrency)
        counted = Counted()

        async def query(text):
            with counted:
                # Goes on when so many are here, and gives one more the time to come.
                await barrier.wait()
                await many_turns()
            return response(text)

        take_all(ask(query, concurrency * 4, concurrency=concurrency), concurrency * 4)
        assert counted.most == concurrency

    @pytest.mark.parametrize("concurrency", [2, 5])
    def test_ordinary_functions_in_threads(self, ask, concurrency):
        barrier = threading.Barrier(concurrency, timeout=DEADLOCK_S)
        counted = Counted()
        threads = set()

        def query(text):
            with counted:
                barrier.wait()
                threads.add(threading.get_ident())
                barrier.wait()
            return response(text)

        count = concurrency * 4
        ahead = ask(query, count, concurrency=concurrency)
        assert answered(take_all(ahead, count)) == [f"q{n}" for n in range(count)]
        assert counted.most == concurrency
        assert len(threads) == concurrency
        assert threading.get_ident() not in threads

    def test_an_ordinary_function_alone_stays_in_the_taking_thread(self, ask):
        def query(text):
            return response(str(threading.get_ident()))

        ahead = ask(query, 3, concurrency=1)
        assert ahead.asks_here
        assert not ahead.is_ready(0)
        assert answered(ahead.take(n) for n in range(3)) == [str(threading.get_ident())] * 3

    def test_it_asks_nothing_ahead_that_nobody_waits_for(self, ask):
        asked = []

        def query(text):
            asked.append(text)
            return response(text)

        ahead = ask(query, 10, concurrency=1)
        ahead.take(0)
        ahead.take(4)
        assert asked == ["q0", "q4"]

    def test_an_ordinary_function_sees_no_event_loop(self, ask):
        def query(text):
            return response(asyncio.run(asyncio.sleep(0, text)))

        for concurrency in (1, 2):
            assert answered(take_all(ask(query, 3, concurrency=concurrency), 3)) == [
                "q0",
                "q1",
                "q2",
            ]


class TestOrder:
    def test_answers_come_in_order_although_queries_finish_in_reverse(self, ask):
        count = 6
        finished = []
        done = [asyncio.Event() for _ in range(count + 1)]
        done[count].set()

        async def query(text):
            number = number_of(text)
            await done[number + 1].wait()
            finished.append(text)
            done[number].set()
            return response(text)

        answers = take_all(ask(query, count, concurrency=count), count)
        assert answered(answers) == [f"q{n}" for n in range(count)]
        assert finished == [f"q{n}" for n in reversed(range(count))]

    def test_threads_that_finish_in_reverse(self, ask):
        count = 4
        done = [threading.Event() for _ in range(count + 1)]
        done[count].set()

        def query(text):
            number = number_of(text)
            assert done[number + 1].wait(DEADLOCK_S)
            done[number].set()
            return response(text)

        answers = take_all(ask(query, count, concurrency=count), count)
        assert answered(answers) == [f"q{n}" for n in range(count)]

    def test_each_mode_is_asked_in_its_own_name(self, way):
        modes = ("exact", "other")
        ahead = way(lambda text, mode: response(mode + text), 3, modes=modes)
        answers = take_all(ahead, 6)
        assert answered(answers) == [f"{mode}q{n}" for mode in modes for n in range(3)]
        assert [answer.outcome.response.mode for answer in answers] == ["exact"] * 3 + ["other"] * 3


class TestWindow:
    def test_it_holds_sixteen_for_each_query_at_the_same_time(self):
        # With fewer, one slow query stops the others.
        assert LOOKAHEAD == 16

    @pytest.mark.parametrize("concurrency", [1, 3])
    def test_it_reaches_exactly_as_far_as_it_says(self, ask, concurrency):
        window = LOOKAHEAD * concurrency
        last_of_window = asyncio.Event()
        asked = []

        async def query(text):
            number = number_of(text)
            asked.append(number)
            if number == window - 1:
                await many_turns()
                last_of_window.set()
            if number == 0 and concurrency > 1:
                await last_of_window.wait()
                asked.append("the first is done")
            return response(text)

        ahead = ask(query, window * 3, concurrency=concurrency)
        in_time(ahead.take, 0)
        if concurrency > 1:
            assert sorted(asked[: asked.index("the first is done")]) == list(range(window))

    @pytest.mark.parametrize("concurrency", [1, 3])
    @pytest.mark.parametrize("step", [1, 7, 40])
    def test_nothing_beyond_it_is_begun(self, ask, concurrency, step):
        window = LOOKAHEAD * concurrency
        taking = 0
        beyond = []

        async def query(text):
            # A sample that is taken can no longer be taken: the next may begin.
            if number_of(text) >= taking + 1 + window:
                beyond.append((text, taking))
            await asyncio.sleep(0)
            return response(text)

        count = window * 5
        ahead = ask(query, count, concurrency=concurrency)
        for taking in range(0, count, step):
            (answer,) = answered([in_time(ahead.take, taking)])
            assert answer == f"q{taking}"
        assert beyond == []

    def test_nor_where_evaluators_leave_time_for_queries(self, ask):
        taking = 0
        begun = []
        go_on = threading.Event()

        def query(text):
            begun.append((number_of(text), taking))
            if number_of(text) == LOOKAHEAD - 1:
                go_on.set()
            return response(text)

        async def judge(number):
            # No judge is done before the queries have come as far as they may.
            await asyncio.to_thread(go_on.wait, DEADLOCK_S)
            return 1.0

        ahead = ask(query, LOOKAHEAD * 3, concurrency=1, evaluators=[Judge(judge)])
        for taking in range(LOOKAHEAD * 3):
            in_time(ahead.take, taking)
        assert (LOOKAHEAD - 1, 0) in begun
        assert all(number < taken + LOOKAHEAD for number, taken in begun)

    @pytest.mark.parametrize("taken", [[0, 299], [299], [150, 151, 298], [5, 200, 260]])
    def test_samples_that_are_never_taken_stop_nobody(self, way, taken):
        ahead = way(lambda text, mode: response(text), 300)
        answers = [in_time(ahead.take, index) for index in taken]
        assert answered(answers) == [f"q{index}" for index in taken]

    def test_a_sample_is_taken_once(self, way):
        ahead = way(lambda text, mode: response(text), 5)
        take_all(ahead, 3)
        assert [in_time(ahead.take, index) for index in (2, 0, 2)] == [None] * 3
        assert ahead.is_ready(2)
        assert answered([in_time(ahead.take, 3)]) == ["q3"]

    def test_one_that_was_passed_over_is_gone(self, way):
        ahead = way(lambda text, mode: response(text), 5)
        in_time(ahead.take, 3)
        assert in_time(ahead.take, 1) is None


class TestFailures:
    def test_an_error_is_a_value_of_its_own_sample(self, way):
        def answer(text, mode):
            if text == "q1":
                raise KeyError("no such index")
            return {"nothing": 1} if text == "q3" else response(text)

        answers = take_all(way(answer, 5), 5)
        assert [answer.outcome.error is None for answer in answers] == [
            *(True, False, True, False, True)
        ]
        assert answers[1].outcome.error.error_type == "query"
        assert isinstance(answers[1].outcome.exception, KeyError)
        assert answers[3].outcome.error.error_type == "response_invalid"
        assert answers[1].outcome.latency_ms is None

    def test_a_stop_iteration_is_one_too(self, way):
        answers = take_all(way(lambda text, mode: next(iter(())), 2), 2)
        assert {answer.outcome.error.error_type for answer in answers} == {"query"}

    @pytest.mark.parametrize(
        "kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit]
    )
    def test_what_is_no_failure_is_raised_where_its_sample_is_taken(self, way, kind):
        def answer(text, mode):
            if text == "q2":
                raise kind
            return response(text)

        ahead = way(answer, 6)
        assert answered(take_all(ahead, 2)) == ["q0", "q1"]
        # A cancelled future is reported by concurrent.futures' own class.
        with pytest.raises((kind, concurrent.futures.CancelledError)):
            in_time(ahead.take, 2)
        # It was taken: whoever runs it again has to ask again.
        assert in_time(ahead.take, 2) is None
        assert answered(in_time(ahead.take, index) for index in (3, 4, 5)) == ["q3", "q4", "q5"]

    def test_it_is_raised_nowhere_else_where_its_sample_is_passed_over(self, way):
        def answer(text, mode):
            if text == "q2":
                raise SystemExit
            return response(text)

        ahead = way(answer, 6)
        assert answered(in_time(ahead.take, index) for index in (0, 3, 5)) == ["q0", "q3", "q5"]

    def test_an_exit_of_a_query_that_was_asked_ahead_waits_for_its_sample(self, ask):
        asked_ahead = threading.Event()

        def query(text):
            if text == "q1":
                asked_ahead.set()
                raise SystemExit
            return response(text)

        async def judge(number):
            await asyncio.to_thread(asked_ahead.wait, DEADLOCK_S)
            return 1.0

        ahead = ask(query, 3, concurrency=1, evaluators=[Judge(judge)])
        assert answered([in_time(ahead.take, 0)]) == ["q0"]
        with pytest.raises(SystemExit):
            in_time(ahead.take, 1)
        assert answered([in_time(ahead.take, 2)]) == ["q2"]

    def test_a_query_that_cancels_its_own_task(self, ask):
        async def query(text):
            if number_of(text) % 2:
                asyncio.current_task().cancel()
                await asyncio.sleep(0)
            return response(text)

        ahead = ask(query, 6, concurrency=2)
        for index in range(6):
            if index % 2:
                with pytest.raises(asyncio.CancelledError):
                    in_time(ahead.take, index)
            else:
                assert answered([in_time(ahead.take, index)]) == [f"q{index}"]

    def test_a_query_that_leaves_its_own_task_cancelled_harms_no_other(self, ask):
        async def query(text):
            if number_of(text) % 5 == 0:
                asyncio.current_task().cancel()
            return response(text)

        count = LOOKAHEAD * 4
        taken = in_time(
            lambda: (
                [_taken_or_cancelled(ask_ahead, index) for index in range(count)]
                if (ask_ahead := ask(query, count, concurrency=1))
                else None
            )
        )
        assert [number for number in range(count) if taken[number] == f"q{number}"] == list(
            range(count)
        )

    def test_a_query_that_cancels_its_task_before_others_wait_harms_none(self, ask):
        async def query(text):
            if number_of(text) == 1:
                asyncio.current_task().cancel()
            else:
                await asyncio.sleep(0)
            return response(text)

        ahead = ask(query, 6, concurrency=1)
        answers = take_all(ahead, 6)
        assert answered(answers) == [f"q{number}" for number in range(6)]

    @pytest.mark.parametrize("timeout_s", [None, 60])
    def test_a_coroutine_that_comes_after_it_was_closed_is_never_begun(self, ask, timeout_s):
        go_on, blocks = threading.Event(), threading.Event()
        threads, coroutines = [], []

        async def answer(text):
            return response(text)

        def query(text):
            coroutine = answer(text)
            if number_of(text) == 1:
                threads.append(threading.current_thread())
                coroutines.append(coroutine)
                blocks.set()
                go_on.wait(DEADLOCK_S)
            return coroutine

        ahead = ask(query, 2, concurrency=2, timeout_s=timeout_s)
        in_time(ahead.take, 0)
        assert blocks.wait(DEADLOCK_S)
        in_time(ahead.close)
        go_on.set()
        threads[0].join(DEADLOCK_S)
        # Else Python complains about it, wherever it happens to be collected.
        assert [inspect.getcoroutinestate(each) for each in coroutines] == [inspect.CORO_CLOSED]

    def test_nothing_is_asked_after_it_was_closed_though_a_query_blocks(self, ask):
        begun, go_on, asked = threading.Event(), threading.Event(), []

        async def query(text):
            asked.append(text)
            begun.set()
            go_on.wait(DEADLOCK_S)
            return response(text)

        ahead = ask(query, 40, concurrency=2)
        taking = threading.Thread(target=lambda: in_time(ahead.take, 0), daemon=True)
        taking.start()
        assert begun.wait(DEADLOCK_S)
        closing = threading.Thread(target=ahead.close, daemon=True)
        ahead._is_closing = True  # what close() does first, before it waits for the loop
        go_on.set()
        closing.start()
        closing.join(DEADLOCK_S)
        assert len(asked) <= 2

    def test_what_is_there_is_taken_though_a_later_query_blocks_the_loop(self, ask):
        go_on = threading.Event()

        async def query(text):
            if text == "q3":
                go_on.wait(DEADLOCK_S)
            return response(text)

        ahead = ask(query, 4, concurrency=8)
        assert answered(take_all(ahead, 3)) == ["q0", "q1", "q2"]
        go_on.set()
        assert answered([in_time(ahead.take, 3)]) == ["q3"]

    def test_a_query_that_will_not_be_cancelled_is_the_last(self, ask):
        asked, waiting = [], threading.Event()

        async def query(text):
            asked.append(text)
            waiting.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return response(text)

        ahead = ask(query, 40, concurrency=1)
        threading.Thread(target=lambda: ahead.take(0), daemon=True).start()
        assert waiting.wait(DEADLOCK_S)
        in_time(ahead.close)
        assert asked == ["q0"]

    def test_a_mode_that_there_is_not(self, ask):
        async def query(text):
            return response(text)

        ahead = ask(query, 2, concurrency=2, modes=("exact",))
        ahead.knowledge_base.available_queries = ("another",)
        questions = ahead._questions
        again = Prefetch(ahead._thread, ahead.knowledge_base, questions, concurrency=2)
        answers = take_all(again, 2)
        again.close()
        assert {answer.outcome.error.error_type for answer in answers} == {"query"}

    def test_queries_that_took_too_long_and_ended_do_not_stop_the_unit(self, ask):
        count = MOST_ABANDONED + 3
        begun = [threading.Event() for _ in range(count)]

        def query(text, *, mode):
            number = number_of(text)
            begun[number].set()
            if number + 1 < count:
                begun[number + 1].wait()
            return response(text)

        # The next one begins when the one before is left behind.
        came = take_all(ask(query, count, concurrency=1, timeout_s=0.05), count)
        assert [answer.outcome.error.error_type for answer in came[:-1]] == ["timeout"] * (
            count - 1
        )
        assert answered(came[-1:]) == [f"q{count - 1}"]


def _taken_or_cancelled(ahead, index):
    try:
        answer = ahead.take(index)
    except asyncio.CancelledError:
        return "cancelled"
    return answer.outcome.response.results[0].id


class TestColdAndWarm:
    def test_the_first_of_each_mode_is_cold(self, way):
        ahead = way(lambda text, mode: response(text), 3, modes=("exact", "other"))
        answers = take_all(ahead, 6)
        assert [answer.cold for answer in answers] == [True, False, False] * 2

    def test_unless_it_was_asked_in_this_process_before(self, way):
        ahead = way(lambda text, mode: response(text), 2, asked={("all", "exact")})
        assert [answer.cold for answer in take_all(ahead, 2)] == [False, False]

    @pytest.mark.parametrize("warmup", [1, 3])
    def test_the_warm_up_ends_before_any_measured_query_of_its_mode(self, way, warmup):
        log = []

        def answer(text, mode):
            log.append((mode, text))
            return response(text)

        ahead = way(answer, 2, modes=("exact", "other"), warmup=warmup)
        answers = take_all(ahead, 4)
        assert [answer.cold for answer in answers] == [False] * 4
        texts = ["q0", "q1", "q0"][:warmup]
        for mode in ("exact", "other"):
            asked = [text for asked_mode, text in log if asked_mode == mode]
            assert asked[:warmup] == texts
            assert sorted(asked[warmup:]) == ["q0", "q1"]

    def test_what_a_warm_up_prints_and_dies_of_is_its_first_samples(self, way, tmp_path):
        path = tmp_path / "main.flight"
        recorder, seen = FlightRecorder(path), []

        def answer(text, mode):
            seen.append((mode, text, executing(path)))
            print(f"{mode}:{text}")
            return response(text)

        ahead = way(answer, 2, modes=("exact", "other"), warmup=1, recorder=recorder)
        answers = take_all(ahead, 4)
        warmups = [numbers for mode, text, numbers in seen if mode == "other"]
        assert 2 in warmups[0]
        texts = ["".join(text for _, text in given.printed) for given in answers]
        assert texts[2].startswith("other:q0\n") or texts[2] == ""
        assert "other" not in texts[0] + texts[1]
        in_time(ahead.close)
        recorder.close()

    def test_samples_wait_for_a_warm_up_that_waits(self, ask):
        log = []

        async def query(text):
            log.append("begun")
            await many_turns()
            log.append("done")
            return response(text)

        take_all(ask(query, 4, concurrency=4, warmup=2), 4)
        assert log[:4] == ["begun", "done"] * 2
        assert log[4:] == ["begun"] * 4 + ["done"] * 4

    def test_a_failing_warm_up_spoils_nothing(self, way):
        calls = []

        def answer(text, mode):
            calls.append(text)
            if len(calls) <= 2:
                raise RuntimeError
            return response(text)

        assert answered(take_all(way(answer, 3, warmup=2), 3)) == ["q0", "q1", "q2"]

    def test_an_exit_of_the_warm_up_is_raised_with_the_first_sample_of_its_mode(self, way):
        calls = []

        def answer(text, mode):
            calls.append(text)
            if len(calls) == 1:
                raise SystemExit
            return response(text)

        ahead = way(answer, 3, warmup=1)
        with pytest.raises(SystemExit):
            in_time(ahead.take, 0)
        assert answered(in_time(ahead.take, index) for index in (1, 2)) == ["q1", "q2"]

    def test_an_exit_of_a_warm_up_that_was_asked_ahead_waits_for_its_sample(self, ask):
        asked_ahead = threading.Event()

        def query(text, *, mode):
            if mode == "other" and not asked_ahead.is_set():
                asked_ahead.set()
                raise SystemExit
            return response(text)

        async def judge(number):
            await asyncio.to_thread(asked_ahead.wait, DEADLOCK_S)
            return 1.0

        ahead = ask(
            *(query, 2),
            concurrency=1,
            modes=("exact", "other"),
            warmup=1,
            evaluators=[Judge(judge)],
        )
        assert answered(in_time(ahead.take, index) for index in (0, 1)) == ["q0", "q1"]
        with pytest.raises(SystemExit):
            in_time(ahead.take, 2)
        assert answered([in_time(ahead.take, 3)]) == ["q1"]


class Waiting:
    """A knowledge base whose queries but the first wait for ever."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.log = []

    async def query(self, text):
        if text == "q0":
            return response(text)
        self.begun.release()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.log.append(f"cancelled {text}")
            await many_turns()
            self.log.append(f"cleaned up {text}")
            raise

    def wait_for(self, count):
        for _ in range(count):
            assert self.begun.acquire(timeout=DEADLOCK_S)


class TestClosing:
    def test_the_last_that_was_begun_is_cancelled_first_and_all_are_waited_for(self, ask):
        waiting = Waiting()
        ahead = ask(waiting.query, 50, concurrency=3)
        in_time(ahead.take, 0)
        waiting.wait_for(3)
        in_time(ahead.close)
        assert waiting.log[:3] == ["cancelled q3", "cancelled q2", "cancelled q1"]
        assert sorted(waiting.log[3:]) == ["cleaned up q1", "cleaned up q2", "cleaned up q3"]

    def test_evaluators_that_wait_are_cancelled_too(self, ask):
        log = []
        begun = threading.Semaphore(0)

        async def judge(number):
            if number == 0:
                return 1.0
            begun.release()
            try:
                await asyncio.Event().wait()
            finally:
                log.append(number)

        for query in (as_coroutine, as_function):
            log.clear()
            ahead = ask(
                query(lambda text, mode: response(text)),
                *(3,),
                concurrency=1,
                evaluators=[Judge(judge)],
            )
            taker = threading.Thread(target=lambda: (ahead.take(0), ahead.take(1)), daemon=True)  # noqa: B023
            taker.start()
            assert begun.acquire(timeout=DEADLOCK_S)
            in_time(ahead.close)
            assert 1 in log

    def test_it_may_be_closed_twice_and_before_it_began(self, way):
        ahead = way(lambda text, mode: response(text), 3)
        in_time(ahead.close)
        in_time(ahead.close)
        ahead = way(lambda text, mode: response(text), 3)
        in_time(ahead.take, 0)
        in_time(ahead.close)
        in_time(ahead.close)

    def test_nothing_is_asked_after_it(self, ask):
        waiting = Waiting()
        ahead = ask(waiting.query, 50, concurrency=2)
        in_time(ahead.take, 0)
        waiting.wait_for(2)
        in_time(ahead.close)
        ahead._thread.run(many_turns())
        assert not waiting.begun.acquire(blocking=False)

    def test_a_query_that_blocks_the_loop_is_not_waited_for_for_ever(self, ask, monkeypatch):
        monkeypatch.setattr(prefetch, "_CLOSE_TIMEOUT_S", 0.01)
        blocked, free = threading.Event(), threading.Event()

        async def query(text):
            if text == "q1":
                blocked.set()
                free.wait(DEADLOCK_S)
            return response(text)

        ahead = ask(query, 3, concurrency=1)
        taker = threading.Thread(target=ahead.take, args=(0,), daemon=True)
        taker.start()
        assert blocked.wait(DEADLOCK_S)
        in_time(ahead.close)
        assert not free.is_set()
        free.set()

    def test_a_query_that_will_not_be_cancelled_is_not_waited_for_for_ever(self, ask, monkeypatch):
        monkeypatch.setattr(prefetch, "_CLOSE_TIMEOUT_S", 0.01)
        begun, free = threading.Event(), asyncio.Event()

        async def query(text):
            while text == "q1" and not free.is_set():
                begun.set()
                try:
                    await free.wait()
                except asyncio.CancelledError:
                    continue
            return response(text)

        ahead = ask(query, 3, concurrency=1)
        in_time(ahead.take, 0)
        assert begun.wait(DEADLOCK_S)
        in_time(ahead.close)

        async def let_go():
            free.set()

        ahead._thread.run(let_go())


class TestEvaluators:
    @pytest.mark.parametrize("wrap", [as_coroutine, as_prompt_coroutine, as_function])
    def test_judges_wait_at_the_same_time(self, ask, wrap):
        at_once = 4
        barrier = asyncio.Barrier(at_once)

        async def judge(number):
            await barrier.wait()
            return number / 10

        concurrency = 1 if wrap is as_function else at_once
        ahead = ask(
            wrap(lambda text, mode: response(text)),
            *(8,),
            concurrency=concurrency,
            scored_at_once=at_once,
            evaluators=[Judge(judge)],
        )
        answers = take_all(ahead, 8)
        assert [answer.scores[0].value for answer in answers] == [n / 10 for n in range(8)]

    @pytest.mark.parametrize(("wrap", "of_queries"), [(as_coroutine, 3), (as_function, 1)])
    @pytest.mark.parametrize("at_once", [None, 5])
    def test_no_more_of_them_than_is_said_or_else_than_queries(
        self, ask, wrap, of_queries, at_once
    ):
        counted = Counted()

        async def judge(number):
            with counted:
                await many_turns()
            return 1.0

        ahead = ask(
            wrap(lambda text, mode: response(text)),
            *(20,),
            concurrency=of_queries,
            scored_at_once=at_once,
            evaluators=[Judge(judge)],
        )
        take_all(ahead, 20)
        assert counted.most <= (at_once or of_queries)

    def test_an_error_lands_on_its_own_sample(self, way):
        async def judge(number):
            if number == 1:
                raise ValueError("no verdict")
            return EvaluationScore(name="judge", value=1.0, passed=True)

        ahead = way(lambda text, mode: response(text), 3, evaluators=["recall@1", Judge(judge)])
        answers = take_all(ahead, 3)
        assert [answer.scores[0].value for answer in answers] == [1.0] * 3
        assert [answer.scores[1].status for answer in answers] == ["scored", "errored", "scored"]
        assert answers[1].scores[1].metadata["error"]["message"] == "ValueError: no verdict"

    @pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
    def test_an_exit_of_one_is_raised_with_its_own_sample(self, way, kind):
        async def judge(number):
            if number == 1:
                raise kind
            return 1.0

        ahead = way(lambda text, mode: response(text), 4, evaluators=[Judge(judge)])
        in_time(ahead.take, 0)
        with pytest.raises(kind):
            in_time(ahead.take, 1)
        assert [in_time(ahead.take, n).scores[0].value for n in (2, 3)] == [1.0, 1.0]

    def test_they_are_not_asked_about_a_failed_query(self, way):
        judged = []

        async def judge(number):
            judged.append(number)
            return 1.0

        def answer(text, mode):
            if text == "q1":
                raise RuntimeError
            return response(text)

        answers = take_all(way(answer, 3, evaluators=[Judge(judge)]), 3)
        assert answers[1].scores is None
        assert sorted(judged) == [0, 2]

    def test_ordinary_functions_are_left_to_the_thread_that_takes(self, ask):
        class Length:
            name = "length"

            def evaluate(self, *, case, response):
                raise AssertionError

        async def judge(number):
            return 0.5

        async def query(text):
            return response(text)

        ahead = ask(query, 2, concurrency=2, evaluators=[Length(), Judge(judge)])
        for answer in take_all(ahead, 2):
            assert answer.scores[0] is None
            assert answer.scores[1].value == 0.5

    def test_without_coroutines_scoring_has_not_begun(self, way):
        answers = take_all(way(lambda text, mode: response(text), 2, evaluators=["recall@1"]), 2)
        assert [answer.scores for answer in answers] == [None, None]


class TestOutput:
    @staticmethod
    def printed(answer):
        """Return what an answer holds of each stream."""
        return {
            name: "".join(text for stream, text in answer.printed if stream == name)
            for name in ("stdout", "stderr")
        }

    @pytest.mark.parametrize("wrap", [as_coroutine, as_prompt_coroutine, as_function])
    def test_it_is_kept_with_the_answer(self, ask, capsys, wrap):
        def answer(text, mode):
            print("out", text)
            sys.stderr.writelines(["err ", text])
            return response(text)

        answers = take_all(ask(wrap(answer), 6, concurrency=3), 6)
        assert [self.printed(answer) for answer in answers] == [
            {"stdout": f"out q{n}\n", "stderr": f"err q{n}"} for n in range(6)
        ]
        assert capsys.readouterr() == ("", "")

    def test_also_of_tasks_threads_and_evaluators(self, ask, capsys):
        meet = asyncio.Barrier(3)

        async def child(text):
            await meet.wait()
            print("task", text)
            await asyncio.to_thread(print, "thread", text)

        async def query(text):
            print("before", text)
            await asyncio.create_task(child(text))
            print("after", text)
            return response(text)

        async def judge(number):
            print("judge", number)
            await asyncio.sleep(0)
            print("verdict", number)
            return 1.0

        ahead = ask(query, 6, concurrency=3, evaluators=[Judge(judge)])
        for number, answer in enumerate(take_all(ahead, 6)):
            words = ("before q", "task q", "thread q", "after q", "judge ", "verdict ")
            assert self.printed(answer)["stdout"].splitlines() == [
                f"{word}{number}" for word in words
            ]
        assert capsys.readouterr() == ("", "")

    def test_what_the_taking_thread_prints_goes_its_way(self, ask, capsys):
        async def query(text):
            print("query")
            return response(text)

        ahead = ask(query, 3, concurrency=3)
        in_time(ahead.take, 0)
        print("test")
        assert capsys.readouterr().out == "test\n"

    def test_a_query_of_the_taking_thread_prints_at_once(self, ask, capsys):
        def query(text):
            print("asked", text)
            return response(text)

        ahead = ask(query, 2, concurrency=1)
        assert ahead.take(0).printed == []
        assert capsys.readouterr().out == "asked q0\n"

    def test_but_not_where_it_is_asked_ahead(self, ask, capsys):
        asked_ahead = threading.Event()

        def query(text):
            print("asked", text)
            if text == "q1":
                asked_ahead.set()
            return response(text)

        async def judge(number):
            await asyncio.to_thread(asked_ahead.wait, DEADLOCK_S)
            return 1.0

        ahead = ask(query, 2, concurrency=1, evaluators=[Judge(judge)])
        ahead.take(0)
        assert capsys.readouterr().out == "asked q0\n"
        assert self.printed(ahead.take(1))["stdout"] == "asked q1\n"
        assert capsys.readouterr().out == ""

    @pytest.mark.parametrize("wrap", [as_coroutine, as_function])
    def test_it_can_be_left_alone(self, ask, capsys, wrap):
        def answer(text, mode):
            print(text)
            return response(text)

        before = sys.stdout
        answers = take_all(ask(wrap(answer), 3, concurrency=3, routes_output=False), 3)
        assert [answer.printed for answer in answers] == [[], [], []]
        assert sorted(capsys.readouterr().out.split()) == ["q0", "q1", "q2"]
        assert sys.stdout is before

    def test_the_streams_are_put_back_when_it_closes(self, ask):
        before = sys.stdout, sys.stderr

        async def query(text):
            print(text)
            return response(text)

        ahead = ask(query, 2, concurrency=2)
        in_time(ahead.take, 0)
        ahead.close()
        assert (sys.stdout, sys.stderr) == before

    def test_a_stream_that_somebody_puts_in_place_meanwhile_is_served(self, ask, capsys):
        go_on = asyncio.Event()
        waits = threading.Event()

        async def query(text):
            print("one", text)
            if text == "q1":
                waits.set()
                await go_on.wait()
            print("two", text)
            return response(text)

        ahead = ask(query, 2, concurrency=1)
        in_time(ahead.take, 0)
        assert waits.wait(DEADLOCK_S)
        # As pytest does between two tests.
        sys.stdout = sys.stdout.stream

        async def let_go():
            go_on.set()

        ahead._thread.run(let_go())
        assert self.printed(in_time(ahead.take, 1))["stdout"] == "one q1\ntwo q1\n"
        assert capsys.readouterr().out == ""


class TestLatency:
    @pytest.fixture
    def clock(self, monkeypatch):
        """A clock of each thread that goes on by as much as it is told."""

        class Clock(threading.local):
            now = 0.0

            def go_on(self, seconds):
                self.now += seconds

        clock = Clock()
        monkeypatch.setattr(_loop, "perf_counter", lambda: clock.now)
        return clock

    @pytest.mark.parametrize(
        ("wrap", "concurrency"),
        [(as_prompt_coroutine, 1), (as_prompt_coroutine, 3), (as_function, 1), (as_function, 3)],
    )
    def test_it_is_the_time_inside_query_alone(self, ask, clock, wrap, concurrency):
        def answer(text, mode):
            clock.go_on(2 + number_of(text))
            return response(text)

        async def judge(number):
            clock.go_on(1_000)
            return 1.0

        judges = [Judge(judge)]
        ahead = ask(wrap(answer), 4, concurrency=concurrency, evaluators=judges)
        answers = take_all(ahead, 4)
        assert [answer.outcome.latency_ms for answer in answers] == [2_000, 3_000, 4_000, 5_000]

    def test_it_is_what_queries_under_way_together_measure_themselves(self, ask, clock):
        measured = {}
        meet = asyncio.Barrier(3)

        async def query(text):
            start = clock.now
            clock.go_on(1)
            await meet.wait()
            clock.go_on(number_of(text))
            await many_turns()
            measured[text] = clock.now - start
            return response(text)

        async def judge(number):
            clock.go_on(1_000)
            await asyncio.sleep(0)
            return 1.0

        answers = take_all(ask(query, 9, concurrency=3, evaluators=[Judge(judge)]), 9)
        assert [answer.outcome.latency_ms for answer in answers] == [
            measured[f"q{n}"] * 1_000 for n in range(9)
        ]

    @pytest.mark.parametrize("timeout_s", [None, DEADLOCK_S])
    def test_what_returned_is_on_disk_before_other_code_of_the_turn_runs(
        self, ask, tmp_path, timeout_s
    ):
        """Queries that wake up in the same turn: the last one may end the process."""
        path = tmp_path / "spool.jsonl"
        release = asyncio.Event()
        begun, seen = [], []

        async def query(text):
            begun.append(text)
            if len(begun) == 3:
                release.set()
            await release.wait()
            seen.append(len(path.read_bytes().splitlines()) if path.exists() else 0)
            return response(text)

        take_all(ask(query, 3, concurrency=3, spool=Spool(path), timeout_s=timeout_s), 3)
        assert seen == [0, 1, 2]


class TestSpool:
    def test_every_response_is_on_disk_before_its_sample_is_taken(self, way, tmp_path):
        path = tmp_path / "spool" / "main.jsonl"
        spool = Spool(path)

        def answer(text, mode):
            if text == "q1":
                raise KeyError("x")
            return response(text)

        ahead = way(answer, 4, spool=spool)
        for number in range(4):
            in_time(ahead.take, number)
            lines = [
                json.loads(line[HEAD:]) for line in path.read_text(encoding="utf-8").splitlines()
            ]
            (line,) = [line for line in lines if line["sample"][4] == f"c{number}"]
            assert line["label"] == "tiny"
            assert line["sample"] == ["tiny", "fake", "all", "exact", f"c{number}", 0]
            assert ("error" if number == 1 else "response") in line
        spool.close()
        assert len(lines) == 4

    def test_and_before_it_is_judged_while_others_wait(self, ask, tmp_path):
        path = tmp_path / "main.jsonl"
        free = asyncio.Event()
        seen = []

        async def query(text):
            if text == "q0":
                await free.wait()
            return response(text)

        async def judge(number):
            if number == 1:
                seen.append(
                    [json.loads(line[HEAD:])["sample"][4] for line in path.read_text().splitlines()]
                )
                free.set()
            return 1.0

        spool = Spool(path)
        in_time(ask(query, 2, concurrency=2, evaluators=[Judge(judge)], spool=spool).take, 0)
        spool.close()
        assert seen == [["c1"]]

    def test_a_spool_that_cannot_be_written_is_no_secret(self, way, tmp_path):
        (tmp_path / "file").touch()
        spool = Spool(tmp_path / "file" / "below")
        ahead = way(lambda text, mode: response(text), 2, spool=spool)
        for number in range(2):
            assert in_time(ahead.take, number).outcome.error is None
        assert "file" in spool.problem


class TestFlightRecorder:
    def test_it_holds_the_sample_whose_code_runs(self, way, tmp_path):
        path = tmp_path / "main.flight"
        recorder = FlightRecorder(path)
        seen = []

        def answer(text, mode):
            seen.append(number_of(text) in executing(path))
            return response(text)

        ahead = way(answer, 7, recorder=recorder)
        take_all(ahead, 7)
        assert seen == [True] * 7
        in_time(ahead.close)
        assert executing(path) == ()
        recorder.close()

    @pytest.mark.parametrize("timeout_s", [None, DEADLOCK_S])
    def test_of_those_that_wait_on_the_loop_none_is_held(self, ask, tmp_path, timeout_s):
        path = tmp_path / "main.flight"
        recorder = FlightRecorder(path)
        meet = asyncio.Barrier(3)
        seen = []

        async def query(text):
            seen.append((number_of(text), executing(path)))
            await meet.wait()
            seen.append((number_of(text), executing(path)))
            return response(text)

        async def judge(number):
            seen.append((number, executing(path)))
            return 1.0

        given = {"recorder": recorder, "timeout_s": timeout_s}
        take_all(ask(query, 6, concurrency=3, evaluators=[Judge(judge)], **given), 6)
        recorder.close()
        assert len(seen) == 18
        assert all(held == (number,) for number, held in seen)

    def test_all_that_run_in_threads_are_held(self, ask, tmp_path):
        path = tmp_path / "main.flight"
        recorder = FlightRecorder(path)
        meet = threading.Barrier(3, timeout=DEADLOCK_S)
        seen = []

        def query(text):
            meet.wait()
            seen.append(executing(path))
            meet.wait()
            return response(text)

        take_all(ask(query, 6, concurrency=3, recorder=recorder), 6)
        # What was begun last comes first.
        assert seen == [(2, 1, 0)] * 3 + [(5, 4, 3)] * 3
        recorder.close()

    def test_one_that_was_left_behind_does_not_forget_the_next(self, ask, tmp_path):
        path = tmp_path / "main.flight"
        recorder = FlightRecorder(path)
        gate, threads = threading.Event(), []
        seen = []

        def query(text):
            if text == "q0":
                threads.append(threading.current_thread())
                gate.wait(DEADLOCK_S)
            else:
                gate.set()
                threads[0].join(DEADLOCK_S)
                seen.append(executing(path))
            return response(text)

        take_all(ask(query, 2, concurrency=1, recorder=recorder, timeout_s=0.5), 2)
        recorder.close()
        assert not threads[0].is_alive()
        assert seen == [(1,)]


class TestConcurrency:
    @pytest.mark.parametrize(
        ("chosen", "of_recipe", "coroutines", "expected"),
        [
            (None, None, True, 8),
            (None, None, False, 1),
            (None, 3, True, 3),
            (None, 3, False, 3),
            (5, 3, True, 5),
            (1, 3, False, 1),
            (1, None, True, 1),
        ],
    )
    def test_the_user_comes_before_the_recipe(self, chosen, of_recipe, coroutines, expected):
        class Recipe:
            max_concurrency = of_recipe

        assert query_concurrency(chosen, Recipe(), coroutines=coroutines) == expected

    def test_a_recipe_need_not_say_anything(self):
        assert recipe_concurrency(object()) is None

    @pytest.mark.parametrize("wrong", [0, -1, 2.0, "4", True, float("nan")])
    def test_what_is_no_whole_number_from_one_is_refused(self, wrong):
        class Recipe:
            name = "mine"
            max_concurrency = wrong

        with pytest.raises(RecipeInvalidError, match=r"'mine': max_concurrency = .* whole number"):
            recipe_concurrency(Recipe())
