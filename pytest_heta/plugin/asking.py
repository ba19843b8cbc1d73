"""How the samples of the current run unit are asked in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_heta.codes import coded
from pytest_heta.core import _sync
from pytest_heta.core._limited import LimitedCalls
from pytest_heta.core.concurrency import has_coroutine_query, query_concurrency
from pytest_heta.core.pace import Limits, Pace
from pytest_heta.core.prefetch import Prefetch
from pytest_heta.core.query import QueryOutcome, blocked_query, not_asked, query_limits
from pytest_heta.core.questions import Answer, Questions
from pytest_heta.core.sample import ask_sample
from pytest_heta.core.spool import MAIN_SLOT, FlightRecorder, Spool, suspects
from pytest_heta.errors import DocumentUnavailableError, LoopBlockedError
from pytest_heta.plugin import _phases
from pytest_heta.plugin._case_function import PARAMETER, CaseFunction
from pytest_heta.plugin.collect import UnitNode, sample_of, unit_node_of
from pytest_heta.plugin.state import PlanEntry, Run, run_of

__all__ = ["Asking", "asking_of", "stop_asking"]


class Asking:
    """Asks the samples of one run unit at a time, ahead of their tests where it may.

    Attributes:
        unit: The unit whose knowledge base is there, None between units.
        knowledge_base: That knowledge base.
        news: Plan label and number of queries at the same time, once for each
            unit, for the next report.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._prefetch: Prefetch | None = None
        self._paces: dict[str, Pace] = {}
        self._coming = Line(())
        self._all = Line(())
        folder, name = run.directory / "spool", run.worker_id or "main"
        self._spool = Spool(run.recording.session_path / "spool" / f"{name}.jsonl")
        self._problems: list[str] = []
        # Who would read it, if this process is the only one?
        self._recorder = self._begun_recorder(folder / f"{name}.flight") if run.is_worker else None
        self.unit: UnitNode | None = None
        self.knowledge_base: Any = None
        self.news: tuple[str, int] | None = None
        self._told_problem = False
        self._limited: LimitedCalls | None = None
        self._watched = ExitStack()

    def _begun_recorder(self, path: Path) -> FlightRecorder | None:
        try:
            return FlightRecorder(path)
        except OSError as error:
            problem = f"who killed a worker cannot be recorded: {error}"
            self._problems.append(coded("crash-not-traceable", problem))
            return None

    # -- asking -----------------------------------------------------------------

    def answer(self, item: pytest.Item, knowledge_base: Any) -> Answer:
        """Return what came of an item's sample, waiting for it.

        Raises:
            BaseException: what is no failure of the sample, but was raised by
                its code.
        """
        if self._run.is_worker and self._coming.place(item) is None:
            # It may have come from a worker that has died.
            self._run.recording.read_dead_workers()
        recorded = self.recorded_answer(item)
        if recorded is not None:
            return recorded
        missing = self._missing_document(item)
        if missing is not None:
            return Answer(outcome=not_asked(missing))
        unit = unit_node_of(item)
        if unit is not self.unit or knowledge_base is not self.knowledge_base:
            self.stop()
            self.unit, self.knowledge_base = unit, knowledge_base
            if self._run.options.timeout is not None:
                self._limited = query_limits(self._run.options.timeout)
        if self._coming.place(item) is None:
            self._look_ahead(item)
        index = self._coming.place(item)
        if index is not None and self._prefetch is not None:
            answer = self._prefetch.take(index)
            if answer is not None:
                return answer
        return self._ask_alone(item)

    def recorded_answer(self, item: pytest.Item) -> Answer | None:
        """Return what a query returned in an earlier session of the run, if it did."""
        recorded, unit = self._run.recording.recorded, unit_node_of(item)
        if recorded is None or unit is None:
            return None
        found = recorded.response(unit.entry.plan.label, sample_of(item))
        if found is None:
            return None
        outcome = QueryOutcome(
            response=found.response, latency_ms=found.latency_ms, attempts=found.attempts
        )
        return Answer(outcome=outcome, cold=found.cold, reused=True)

    def _missing_document(self, item: pytest.Item) -> DocumentUnavailableError | None:
        """Return why an item's case cannot be asked: what it looks for could not be staged."""
        unit = unit_node_of(item)
        staged = self._run.staged_or_none(unit.entry) if unit is not None else None
        return staged.problem_of(sample_of(item).case) if staged is not None else None

    def is_recorded(self, item: pytest.Item) -> bool:
        """Whether an item's query need not be asked: an earlier session of the run did."""
        recorded, unit = self._run.recording.recorded, unit_node_of(item)
        if recorded is None or unit is None:
            return False
        return recorded.is_known(unit.entry.plan.label, sample_of(item))

    def is_ready(self, item: pytest.Item) -> bool:
        """Whether `answer` has not to wait for an item's sample."""
        index = self._coming.place(item)
        return index is not None and self._prefetch is not None and self._prefetch.is_ready(index)

    def take_problems(self) -> list[str]:
        """Return what is not as expected, a line with a code each; once, for the next report."""
        if self._spool.problem is not None and not self._told_problem:
            self._told_problem = True
            problem = f"responses are not written down as they come: {self._spool.problem}"
            self._problems.append(coded("results-not-kept", problem))
        unsynced = _sync.take_problem()
        if unsynced is not None:
            problem = f"what was written may not be on the disk itself: {unsynced}"
            self._problems.append(coded("results-not-kept", problem))
        problems, self._problems = self._problems, []
        return problems

    @property
    def asks_here(self) -> bool:
        """Whether users' code may run in the thread that runs the tests."""
        return self._prefetch is None or self._prefetch.asks_here

    def stop(self) -> None:
        """Ask no more of the current unit: its knowledge base is about to be closed."""
        unit, self.unit, self.knowledge_base = self.unit, None, None
        limited, self._limited = self._limited, None
        self._coming = Line(())
        self._stop_looking_ahead()
        if unit is not None and limited is not None:
            self._problems += limited.warnings
            if unit.entry.scorer.limited is not None:
                unit.entry.scorer.limited.renew()

    def close(self) -> None:
        """Stop, and close the files."""
        self.stop()
        self._spool.close()
        if self._recorder is not None:
            self._recorder.close()

    @contextmanager
    def marked(self, item: pytest.Item) -> Iterator[None]:
        """Note meanwhile that an item's code runs in the thread of the tests."""
        if self._recorder is None:
            yield
            return
        self._recorder.slots[MAIN_SLOT] = self._position(item) + 1
        try:
            yield
        finally:
            self._recorder.slots[MAIN_SLOT] = 0

    def _ask_alone(self, item: pytest.Item) -> Answer:
        entry, sample, limited = self._entry(), sample_of(item), self._limited
        work = ask_sample(
            self.knowledge_base,
            entry.plan,
            sample,
            asked=entry.asked,
            warmup=self._run.options.warmup,
            limited=limited,
            pace=self._pace(),
        )
        with self.marked(item), self._run.watched(self._run.options.timeout):
            if limited is None:
                outcome, cold = self._run.wait_for(work)
            else:
                try:
                    # In the thread that an ordinary knowledge base was built in.
                    outcome, cold = self._run.loop.run(work)
                except LoopBlockedError:
                    outcome, cold = blocked_query(limited), False
        self._spool.add(entry.plan.label, sample, outcome, cold=cold)
        return Answer(outcome=outcome, cold=cold)

    def _pace(self) -> Pace:
        """Return how fast the unit's recipe is asked: each has a service of its own."""
        name, options = self._entry().plan.recipe_name, self._run.options
        pace = self._paces.get(name)
        if pace is None:
            per_second = options.rate
            pace = self._paces[name] = Pace(
                retries=self._run.retries,
                # Nobody knows how many of the workers are asking right now.
                per_second=per_second and per_second / self._run.worker_count,
            )
        return pace

    def _entry(self) -> PlanEntry:
        assert self.unit is not None  # noqa: S101 - for the type checker
        return self.unit.entry

    # -- looking ahead ------------------------------------------------------------

    def _look_ahead(self, item: pytest.Item) -> None:
        """Let the items that come next be asked with this one, if they may be."""
        self._stop_looking_ahead()
        if not self._may_look_ahead(item):
            self._coming = Line(())
            self.news = (self._entry().plan.label, 1)
            return
        items, numbers = self._coming_items(item)
        entry = self._entry()
        self._coming = Line(items)
        self._prefetch = Prefetch(
            self._run.loop,
            self.knowledge_base,
            Questions(
                plan=entry.plan,
                cases=entry.loaded.cases,
                scorer=entry.scorer,
                samples=[sample_of(coming) for coming in items],
                asked=entry.asked,
                warmup=self._run.options.warmup,
                numbers=numbers,
            ),
            concurrency=query_concurrency(
                self._run.options.concurrency,
                entry.recipe,
                coroutines=has_coroutine_query(self.knowledge_base),
            ),
            spool=self._spool,
            recorder=self._recorder,
            # Judges wait for somebody else, however queries are asked.
            scored_at_once=query_concurrency(
                self._run.options.concurrency, entry.recipe, coroutines=True
            ),
            # Without capturing, what is printed is to be seen at once.
            routes_output=item.config.getoption("capture", default="no") != "no",
            limits=Limits(timeout_s=self._run.options.timeout, pace=self._pace()),
        )
        self._watched.enter_context(self._run.watched(self._run.options.timeout))
        self.news = (entry.plan.label, self._prefetch.concurrency)

    def _stop_looking_ahead(self) -> None:
        prefetch, self._prefetch = self._prefetch, None
        if prefetch is not None:
            prefetch.close()
            self._problems += prefetch.warnings
        self._watched.close()

    def _may_look_ahead(self, item: pytest.Item) -> bool:
        if _phases.fixture_scope(item, "heta_kb") == "function":
            return False
        # Such a fixture may change what a query sees; who chooses a
        # concurrency knows that it does not.
        return self._run.options.concurrency is not None or not _phases.has_fixtures_per_test(item)

    def _coming_items(self, item: pytest.Item) -> tuple[list[pytest.Item], list[int]]:
        """Return the items of the unit that this process will run from ``item`` on.

        A sample that another worker may have died of is asked alone: if this
        one dies of it too, there is no doubt.
        """
        items = item.session.items
        indices: Any = None
        alone: frozenset[int] = frozenset()
        if self._run.is_worker:
            indices = _phases.coming_indices(item.config) or [self._position(item)]
            # Read after the queue: suspects are listed before they are sent.
            alone = suspects(self._run.directory / "spool")
        else:
            indices = range(self._position(item), len(items))
        coming: list[pytest.Item] = []
        numbers: list[int] = []
        for index in indices:
            if numbers and (index in alone or numbers[-1] in alone):
                break
            # Another parameter of a fixture may mean another knowledge base.
            if items[index].parent is not self.unit or _differ(items[index], item):
                break
            if self.is_recorded(items[index]) or self._missing_document(items[index]):
                continue
            coming.append(items[index])
            numbers.append(index)
        return (coming, numbers) if coming[:1] == [item] else ([item], [self._position(item)])

    def _position(self, item: pytest.Item) -> int:
        items = item.session.items
        if self._all.items is not items:
            self._all = Line(items)
        position = self._all.place(item)
        assert position is not None, "pytest runs items of the session"  # noqa: S101
        return position


def _differ(item: pytest.Item, other: pytest.Item) -> bool:
    """Whether two items of a unit have different parameters beside their samples."""
    if isinstance(item, CaseFunction):
        return False  # its sample is all that it has
    return _parameters(item) != _parameters(other)


def _parameters(item: pytest.Item) -> dict[str, int]:
    parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    # By identity: a parameter may be anything.
    return {name: id(value) for name, value in parameters.items() if name != PARAMETER}


class Line:
    """Items in the order in which they are run; mostly the next one is looked for.

    A dict of all would take more memory than many an item does.
    """

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        self.items = items
        self._last = 0

    def place(self, item: pytest.Item) -> int | None:
        """Return the place of an item, None if it is not there."""
        for guess in (self._last, self._last + 1):
            if guess < len(self.items) and self.items[guess] is item:
                self._last = guess
                return guess
        # Later ones first: items are seldom run again.
        for start in (self._last, 0):
            try:
                self._last = self.items.index(item, start)
            except ValueError:
                continue
            return self._last
        return None


ASKING: Final = pytest.StashKey[Asking]()


def asking_of(config: pytest.Config) -> Asking:
    """Return how this process asks; made when it is first asked for."""
    asking = config.stash.get(ASKING, None)
    if asking is None:
        asking = config.stash[ASKING] = Asking(run_of(config))
        config.add_cleanup(asking.close)
    return asking


def stop_asking(config: pytest.Config) -> None:
    """Ask no more of the current unit, if anything was asked."""
    asking = config.stash.get(ASKING, None)
    if asking is not None:
        asking.stop()
