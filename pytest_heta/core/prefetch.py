"""Asking ahead: the queries of a run unit at the same time, the answers in order.

The samples of a unit are taken one by one, in order, by the thread that runs
the tests. Meanwhile a number of pullers ask those that come next: coroutines
on the event loop's thread, ordinary functions in threads of their own. How far
they go ahead is bounded by a window, which moves with what is taken, so that a
sample that is never taken (its test was skipped) stops nobody.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from pytest_heta.core._caller import Caller, SampleCode
from pytest_heta.core._deadline import took_longer
from pytest_heta.core._loop import Called, LoopThread
from pytest_heta.core._output import Printed, print_to, stop_routing
from pytest_heta.core.concurrency import LOOKAHEAD
from pytest_heta.core.pace import Limits
from pytest_heta.core.plan import Sample
from pytest_heta.core.query import PreparedQuery, QueryOutcome
from pytest_heta.core.questions import Answer, Questions
from pytest_heta.core.sample import is_first, late_warmup, warmup_cases
from pytest_heta.core.spool import (
    FIRST_THREAD_SLOT,
    LOOP_SLOT,
    MAIN_SLOT,
    SLOTS,
    FlightRecorder,
    Spool,
)
from pytest_heta.errors import QueryTimeoutError
from pytest_heta.models import EvaluationScore

__all__ = ["Prefetch"]

_BEGIN_TIMEOUT_S: Final = 0.02
_LOOK_AGAIN_S: Final = 0.05
_CLOSE_TIMEOUT_S: Final = 2.0


class Prefetch:
    """Asks the samples of a unit ahead of those that are taken.

    Args:
        loop: Where coroutines run.
        knowledge_base: The knowledge base.
        questions: What to ask it.
        concurrency: Queries at the same time.
        spool: Where responses are written as soon as they are there.
        recorder: Where it is noted whose code is running.
        scored_at_once: Samples whose asynchronous evaluators may wait at the
            same time; None for as many as queries.
        routes_output: Whether what a sample's code prints is kept with its
            answer, rather than printed at once.
        limits: How long queries may take, and how fast and how often is asked; None for no
            limits, and once.

    Attributes:
        knowledge_base: The knowledge base.
        concurrency: Queries at the same time.
        asks_here: Whether queries run in the thread that takes the answers.
        warnings: What is to be told of queries whose results nobody sees.
    """

    def __init__(
        self,
        loop: LoopThread,
        knowledge_base: Any,
        questions: Questions,
        *,
        concurrency: int,
        spool: Spool | None = None,
        recorder: FlightRecorder | None = None,
        scored_at_once: int | None = None,
        routes_output: bool = True,
        limits: Limits | None = None,
    ) -> None:
        plan = questions.plan
        self.knowledge_base = knowledge_base
        self.concurrency = concurrency
        self._thread = loop
        self._questions = questions
        self._samples = questions.samples
        self._queries = {
            mode: PreparedQuery(knowledge_base, mode=mode, top_k=plan.top_k, options=plan.options)
            for mode in plan.modes
        }
        self._spool = spool
        self._routes_output = routes_output
        limits = limits or Limits()
        self._pace = limits.pace
        self._timeout_s = limits.timeout_s
        self._has_lost_loop = False
        self._blocker: object = None  # the sample whose query blocks it
        self._open: dict[int, Answer] = {}  # they are being asked
        self._half: dict[int, Answer] = {}  # the evaluators are at it
        self.warnings: list[str] = []
        self._scored_at_once = scored_at_once or concurrency
        self._slots: Any = recorder.slots if recorder is not None else [0] * SLOTS
        self._caller = Caller(
            concurrency, slots=self._slots, routes_output=routes_output, timeout_s=self._timeout_s
        )
        self._lookahead = LOOKAHEAD * concurrency
        # Ordinary functions that nobody says may run at the same time stay in
        # the thread that they were always called in.
        self.asks_here = (
            concurrency == 1
            and self._timeout_s is None  # nobody could leave this thread
            and not any(query.is_coroutine_function for query in self._queries.values())
        )
        self._answers: list[Answer | None] = [None] * len(self._samples)
        self._next = 0  # the first sample that nobody has begun
        self._base = 0  # the first sample that can still be taken
        self._wanted = -1
        self._arrived = threading.Event()
        self._begun = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: dict[asyncio.Task[None], int] = {}
        self._room: asyncio.Event
        self._scoring: asyncio.Semaphore
        self._room_made = False
        self._stopped = 0  # pullers that wait for the window to move
        self._notified = True
        self._is_closing = False
        self._warm: dict[tuple[str, str], asyncio.Task[None]] = {}

    # -- the thread that takes ------------------------------------------------

    def take(self, index: int) -> Answer | None:
        """Return what came of a sample, waiting for it; None if it was taken before.

        Samples are taken in order. Those that are passed over are given up.

        Raises:
            BaseException: what is no failure of the sample, but was raised by
                its code.
        """
        if index < self._base:
            return None
        self._answers[self._base : index] = [None] * (index - self._base)
        self._base = index
        try:
            answer = self._answers[index] or self._wait_for(index)
        finally:
            # Also where this was interrupted: whoever comes again asks again.
            self._answers[index] = None
            self._base = index + 1
        if self._stopped and self._next - self._base <= self._lookahead // 2:
            self._make_room()
            # Let the pullers begin undisturbed: two threads that compute at
            # the same time cost more than one after the other.
            self._begun.wait(_BEGIN_TIMEOUT_S)
        if answer.raised is not None:
            raise answer.raised
        return answer

    def is_ready(self, index: int) -> bool:
        """Whether `take` has not to wait for this sample."""
        return index < self._base or self._answers[index] is not None

    def _wait_for(self, index: int) -> Answer:
        self._wanted = index
        if self._has_lost_loop:
            return self._without_loop(index)
        if self.asks_here:
            self._next = max(self._next, index)
            # What an evaluator waits for leaves time for the queries that come next.
            while self._answers[index] is None and self._may_begin(self._next):
                self._ask_here(self._next)
        elif self._loop is None:
            self._start()
        elif self._stopped:
            self._make_room()
        while True:
            self._arrived.clear()
            answer = self._answers[index]
            if answer is not None:
                return answer
            # A query that blocks the loop keeps it from saying what is there.
            self._arrived.wait(_LOOK_AGAIN_S)
            if self._timeout_s is not None and self._lost_loop():
                return self._answers[index] or self._without_loop(index)

    def _lost_loop(self) -> bool:
        """Whether a coroutine blocks the loop, so that it was left behind."""
        if not self._has_lost_loop and self._loop is not None:
            blocker = self._thread.leave_if_blocked()
            self._blocker = blocker.who if blocker is not None else None
            self._has_lost_loop = not self._thread.serves(self._loop)
            if self._has_lost_loop:
                self._stopped = 0
        return self._has_lost_loop

    def _without_loop(self, index: int) -> Answer:
        """Return what there is of a sample, for which the blocked loop will do nothing more."""
        answer, limit_s = self._half.get(index), self._timeout_s or 0.0
        if answer is not None:
            scores = answer.scores or self._begun_scores(index, answer)
            return replace(answer, scores=[*self._questions.scorer.without_loop(scores)])
        if self._blocker == index:
            message = took_longer("the query", limit_s, blocks=True)
        else:
            message = "not answered: another query or an evaluator blocks the event loop"
        error = QueryTimeoutError(message, hint="await what takes long: `asyncio.to_thread`")
        query = self._queries[self._samples[index].mode]
        return Answer(outcome=query.outcome(Called(None, error, limit_s)))

    def close(self) -> None:
        """Cancel what is under way, the last that was begun first; may be called twice."""
        self._is_closing = True
        if self._tasks and self._loop is not None and self._thread.serves(self._loop):
            # A query that blocks the loop cannot be ended; a loop that ends ends its tasks.
            with suppress(TimeoutError, RuntimeError):
                self._thread.run(self._cancel(), timeout_s=2 * _CLOSE_TIMEOUT_S)
        self._caller.close()
        stop_routing()

    async def _cancel(self) -> None:
        tasks = sorted(self._tasks, key=lambda task: self._tasks[task], reverse=True)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_TIMEOUT_S)

    def _start(self) -> None:
        self._loop = self._thread.started()
        self._loop.call_soon_threadsafe(self._begin)

    def _make_room(self) -> None:
        # Waking the loop is not cheap: once until the pullers have seen it.
        if self._loop is not None and not self._room_made and not self._has_lost_loop:
            self._room_made = True
            self._begun.clear()
            self._loop.call_soon_threadsafe(self._let_pullers_begin)

    # -- ordinary functions in this thread --------------------------------------

    def _may_begin(self, index: int) -> bool:
        return index < len(self._samples) and index < self._base + self._lookahead

    def _ask_here(self, index: int) -> None:
        self._next = index + 1
        sample = self._samples[index]
        query = self._queries[sample.mode]
        answer = Answer(cold=self._is_cold(sample))
        ahead = index != self._wanted
        # Another sample's test is running; what this one prints is not its own.
        if ahead and self._routes_output:
            print_to(answer.printed)
        self._slots[MAIN_SLOT] = self._number(index)
        try:
            if answer.cold:
                for text in self._warmup_texts(sample):
                    self._thread.drive(query.ask(text, pace=self._pace))
                answer.cold = not self._questions.warmup
            outcome = self._thread.drive(query.ask(self._text(sample.case), pace=self._pace))
        except KeyboardInterrupt:
            self._next = index  # not asked yet
            raise
        except BaseException as error:
            if not ahead:
                raise
            self._store(index, Answer(raised=error))
        else:
            self._keep(index, answer, outcome)
        finally:
            self._slots[MAIN_SLOT] = 0
            print_to(None)

    # -- the loop's thread --------------------------------------------------------

    def _begin(self) -> None:
        self._room = asyncio.Event()
        self._scoring = asyncio.Semaphore(self._scored_at_once)
        self._notified = False
        if self._is_closing:
            return
        for number in range(min(self.concurrency, len(self._samples))):
            slot = FIRST_THREAD_SLOT + number % (SLOTS - FIRST_THREAD_SLOT)
            self._watch(self._pull(slot), number)

    def _watch(self, work: Coroutine[Any, Any, None], index: int) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = index
        task.add_done_callback(self._tasks.pop)
        return task

    async def _pull(self, slot: int) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - for the type checker: a puller is a task
        while not self._is_cancelled():
            index = self._next = max(self._next, self._base)
            if index >= len(self._samples):
                return
            try:
                if not self._may_begin(index):
                    await self._wait_for_room()
                    continue
                self._next = index + 1
                self._tasks[task] = index
                await self._ask(index, slot)
                if task.cancelling():
                    await self._forget_cancelling(task)
            except asyncio.CancelledError:
                # A query may leave its task cancelled, which is not ours to obey.
                if self._is_cancelled():
                    raise

    async def _forget_cancelling(self, task: asyncio.Task[Any]) -> None:
        """Undo that a query cancelled its own task: the next sample would have to pay for it."""
        while task.cancelling():
            task.uncancel()
        # The request itself stands until the task waits.
        await asyncio.sleep(0)

    def _let_pullers_begin(self) -> None:
        self._room.set()
        # In the loop's next turn, behind the pullers.
        asyncio.get_running_loop().call_soon(self._begun.set)

    async def _wait_for_room(self) -> None:
        self._room.clear()
        self._room_made = False
        self._stopped += 1
        # Whoever moves the window looks at `_stopped` after that, and this
        # looks at the window after it has set `_stopped`: one sees the other.
        try:
            if not self._may_begin(max(self._next, self._base)):
                await self._room.wait()
        finally:
            self._stopped -= 1

    async def _ask(self, index: int, slot: int) -> None:
        sample = self._samples[index]
        query = self._queries[sample.mode]
        answer = Answer(cold=self._is_cold(sample))
        try:
            if query.function is None:
                self._keep(index, answer, query.problem or QueryOutcome())
                return
            if self._questions.warmup:
                await self._warm_up(index, answer, slot)
            text = self._text(sample.case)
            self._open[index] = answer
            called = await self._call(text, index, answer.printed, slot)
        except asyncio.CancelledError as error:
            if self._is_cancelled():
                raise
            self._store(index, Answer(raised=error))
        except BaseException as error:  # noqa: BLE001 - raised again where the sample is taken
            self._store(index, Answer(raised=error))
        else:
            # At once: code that runs in the same turn of the loop may end the process.
            if index in self._open:
                self._returned(index, answer, called)
        self._open.pop(index, None)

    def _is_cancelled(self) -> bool:
        """Whether it was not the sample's own code that cancelled a task."""
        return self._is_closing or self._thread.is_closing

    async def _call(self, text: str, index: int, printed: Printed, slot: int) -> Called:
        """Ask a text for a sample, again if need be; return what came of it."""
        query = self._queries[self._samples[index].mode]
        code = SampleCode(index, self._number(index), slot, printed)

        async def attempt(number: int) -> Called:
            return await self._caller.call(query, text, code, partial(self._kept, index, number))

        called: Called = await self._pace.ask(attempt)
        return called

    def _kept(self, index: int, attempt: int, called: Called) -> None:
        """Keep a response before any other code runs, which may end the process."""
        answer = self._open.pop(index, None)
        if answer is not None:  # else it was a warm-up
            self._returned(index, answer, called._replace(attempts=attempt))

    def _returned(self, index: int, answer: Answer, called: Called) -> None:
        try:
            outcome = self._queries[self._samples[index].mode].outcome(called)
            self._keep(index, answer, outcome)
        except BaseException as error:  # noqa: BLE001 - raised again where the sample is taken
            self._store(index, Answer(raised=error))

    # -- what came back -----------------------------------------------------------

    def _keep(self, index: int, answer: Answer, outcome: QueryOutcome) -> None:
        """Write down what a query returned, and let the evaluators that wait begin."""
        questions, sample = self._questions, self._samples[index]
        answer.outcome = outcome
        if self._spool is not None:
            answer.response_json = self._spool.add(
                questions.plan.label, sample, outcome, cold=answer.cold
            )
        if not questions.scorer.has_coroutines or outcome.response is None:
            self._store(index, answer)
            return
        if self._timeout_s is not None:
            self._half[index] = answer
        if self.asks_here:
            self._score_elsewhere(index, answer)
        else:
            self._begin_scoring(index, answer)

    def _score_elsewhere(self, index: int, answer: Answer) -> None:
        if self._loop is None:
            self._loop = self._thread.started()
            self._scoring = asyncio.Semaphore(self._scored_at_once)
            self._notified = False
        self._loop.call_soon_threadsafe(self._begin_scoring, index, answer)

    def _begin_scoring(self, index: int, answer: Answer) -> None:
        if not self._is_closing:
            self._watch(self._score(index, answer), index)

    def _begun_scores(self, index: int, answer: Answer) -> list[EvaluationScore | None]:
        questions, sample = self._questions, self._samples[index]
        case, case_plan = questions.cases[sample.case], questions.plan.cases[sample.case]
        return questions.scorer.begin(case, case_plan, answer.outcome.response, None)

    async def _score(self, index: int, answer: Answer) -> None:
        questions, response = self._questions, answer.outcome.response
        assert response is not None  # noqa: S101 - for the type checker: it was looked at before
        case, scorer = questions.cases[self._samples[index].case], questions.scorer
        try:
            async with self._scoring:
                scores = answer.scores = self._begun_scores(index, answer)
                code = SampleCode(index, self._number(index), LOOP_SLOT, answer.printed)
                if scorer.limited is None:
                    work = scorer.ask_coroutines(scores, case, response)
                    await self._caller.step(work, code)
                else:
                    step = partial(self._caller.step, code=code)
                    await scorer.ask_coroutines(scores, case, response, step=step)
        except asyncio.CancelledError as error:
            if self._is_cancelled():
                raise
            answer = Answer(raised=error)
        except BaseException as error:  # noqa: BLE001 - raised again where the sample is taken
            answer = Answer(raised=error)
        self._half.pop(index, None)
        self._store(index, answer)

    def _store(self, index: int, answer: Answer) -> None:
        if index >= self._base:
            self._answers[index] = answer
        if self.asks_here:
            self._arrived.set()
        elif not self._notified:
            # Once for all that come in the same turn of the loop: to change
            # threads costs more than to ask a query that is there already.
            self._notified = True
            asyncio.get_running_loop().call_soon(self._notify)

    def _notify(self) -> None:
        self._notified = False
        if self._wanted < self._base or self._answers[self._wanted] is not None:
            self._arrived.set()

    # -- texts, warm-up ------------------------------------------------------------

    def _number(self, index: int) -> int:
        numbers = self._questions.numbers
        return numbers[index] + 1 if numbers else 0

    def _text(self, case_id: str) -> str:
        return self._questions.plan.cases[case_id].query

    def _is_cold(self, sample: Sample) -> bool:
        return is_first(sample, self._questions.asked)

    def _warmup_texts(self, sample: Sample) -> list[str]:
        questions = self._questions
        return [self._text(c) for c in warmup_cases(questions.plan, sample, questions.warmup)]

    async def _warm_up(self, index: int, answer: Answer, slot: int) -> None:
        """Ask the warm-up of a unit and mode once, and let its samples wait for it."""
        sample = self._samples[index]
        pair = (sample.unit, sample.mode)
        if answer.cold:
            answer.cold = False
            work = self._ask_warmup(index, answer.printed, slot)
            self._warm[pair] = self._watch(work, index)
            await asyncio.shield(self._warm[pair])
        elif pair in self._warm:
            # What it raises, if anything, is the first sample's.
            await asyncio.wait([self._warm[pair]])

    async def _ask_warmup(self, index: int, printed: Printed, slot: int) -> None:
        sample = self._samples[index]
        for text in self._warmup_texts(sample):
            called = await self._call(text, index, printed, slot)
            if isinstance(called.error, QueryTimeoutError):
                self.warnings.append(late_warmup(sample, called.error))
