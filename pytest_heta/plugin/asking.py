"""How the samples of the current run unit are asked in this process."""

from __future__ import annotations

from typing import Any, Final

import pytest

from pytest_heta.core._loop import is_coroutine_function
from pytest_heta.core.prefetch import Answer, Prefetch, Questions, query_concurrency
from pytest_heta.core.sample import ask_sample
from pytest_heta.core.spool import MAIN_SLOT, FlightRecorder, Spool
from pytest_heta.plugin import _phases
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
        self._indices: dict[pytest.Item, int] = {}
        self._positions: dict[pytest.Item, int] = {}
        folder, name = run.directory / "spool", run.worker_id or "main"
        self._spool = Spool(folder / f"{name}.jsonl")
        # Who would read it, if this process is the only one?
        self._recorder = FlightRecorder(folder / f"{name}.flight") if run.is_worker else None
        self.unit: UnitNode | None = None
        self.knowledge_base: Any = None
        self.news: tuple[str, int] | None = None

    # -- asking -----------------------------------------------------------------

    def answer(self, item: pytest.Item, knowledge_base: Any) -> Answer:
        """Return what came of an item's sample, waiting for it.

        Raises:
            BaseException: what is no failure of the sample, but was raised by
                its code.
        """
        unit = unit_node_of(item)
        if unit is not self.unit or knowledge_base is not self.knowledge_base:
            self.stop()
            self.unit, self.knowledge_base = unit, knowledge_base
        if item not in self._indices:
            self._look_ahead(item)
        index = self._indices.get(item)
        if index is not None and self._prefetch is not None:
            answer = self._prefetch.take(index)
            if answer is not None:
                return answer
        return self._ask_alone(item)

    def is_ready(self, item: pytest.Item) -> bool:
        """Whether `answer` has not to wait for an item's sample."""
        index = self._indices.get(item)
        return index is not None and self._prefetch is not None and self._prefetch.is_ready(index)

    @property
    def asks_here(self) -> bool:
        """Whether users' code may run in the thread that runs the tests."""
        return self._prefetch is None or self._prefetch.asks_here

    def stop(self) -> None:
        """Ask no more of the current unit: its knowledge base is about to be closed."""
        prefetch, self._prefetch = self._prefetch, None
        self._indices = {}
        self.unit = self.knowledge_base = None
        if prefetch is not None:
            prefetch.close()

    def close(self) -> None:
        """Stop, and close the files."""
        self.stop()
        self._spool.close()
        if self._recorder is not None:
            self._recorder.close()

    def mark(self, item: pytest.Item | None) -> None:
        """Note that an item's code runs in the thread of the tests, or for None that none does."""
        if self._recorder is not None:
            position = -1 if item is None else self._position(item)
            self._recorder.slots[MAIN_SLOT] = position + 1

    def _ask_alone(self, item: pytest.Item) -> Answer:
        entry, sample = self._entry(), sample_of(item)
        self.mark(item)
        outcome, cold = self._run.wait_for(
            ask_sample(
                self.knowledge_base,
                entry.plan,
                sample,
                asked=entry.asked,
                warmup=self._run.options.warmup,
            )
        )
        self.mark(None)
        self._spool.add(entry.plan.label, sample, outcome, cold=cold)
        return Answer(outcome=outcome, cold=cold)

    def _entry(self) -> PlanEntry:
        assert self.unit is not None  # noqa: S101 - for the type checker
        return self.unit.entry

    # -- looking ahead ------------------------------------------------------------

    def _look_ahead(self, item: pytest.Item) -> None:
        """Let the items that come next be asked with this one, if they may be."""
        if self._prefetch is not None:
            self._prefetch.close()
            self._prefetch = None
        if not self._may_look_ahead(item):
            self._indices = {}
            self.news = (self._entry().plan.label, 1)
            return
        items, numbers = self._coming(item)
        entry = self._entry()
        self._indices = {coming: index for index, coming in enumerate(items)}
        function = getattr(self.knowledge_base, "query", None)
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
                coroutines=callable(function) and is_coroutine_function(function),
            ),
            spool=self._spool,
            recorder=self._recorder,
            # Without capturing, what is printed is to be seen at once.
            routes_output=item.config.getoption("capture") != "no",
        )
        self.news = (entry.plan.label, self._prefetch.concurrency)

    def _may_look_ahead(self, item: pytest.Item) -> bool:
        if _phases.fixture_scope(item, "heta_kb") == "function":
            return False
        # Such a fixture may change what a query sees; who chooses a
        # concurrency knows that it does not.
        return self._run.options.concurrency is not None or not _phases.has_fixtures_per_test(item)

    def _coming(self, item: pytest.Item) -> tuple[list[pytest.Item], list[int]]:
        """Return the items of the unit that this process will run from ``item`` on."""
        items = item.session.items
        indices: Any = None
        if self._run.is_worker:
            indices = _phases.coming_indices(item.config) or [self._position(item)]
        else:
            indices = range(self._position(item), len(items))
        coming, numbers = [], []
        for index in indices:
            if items[index].parent is not self.unit:
                break
            coming.append(items[index])
            numbers.append(index)
        return (coming, numbers) if coming[:1] == [item] else ([item], [self._position(item)])

    def _position(self, item: pytest.Item) -> int:
        items = item.session.items
        position = self._positions.get(item, -1)
        if not 0 <= position < len(items) or items[position] is not item:
            self._positions = {item: position for position, item in enumerate(items)}
            position = self._positions[item]
        return position


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
