"""Scheduling with pytest-xdist: run units stay together, and what a dead worker had is run."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol

import pytest
from xdist.report import report_collection_diff
from xdist.workermanage import parse_tx_spec_config

from pytest_heta.plugin._work import Progress, Unit, UnitsOfTests, Work

__all__ = ["UnitScheduling", "WorkerWatch"]

_LEAST_PENDING: Final = 2
"""A worker runs its last test only when it knows of the next, or of the end."""

_BUILD_ATTEMPTS: Final = 2
"""So many workers may die of building one unit; one may have died of a lack of memory."""

_NO_UNIT: Final = -1


class WorkerWatch(Protocol):
    """What the controller knows of its workers beside what the scheduler is told."""

    def units(self) -> UnitsOfTests:
        """Return which tests belong together; asked when all workers have collected."""

    def progress(self, node: Any) -> Progress | None:
        """Return how far a worker has come, None if it has set nothing up."""

    def executing(self, node: Any) -> Sequence[int]:
        """Return the tests whose code a dead worker was executing, the likeliest killer first."""

    def suspect(self, indices: Sequence[int]) -> None:
        """Have each of these tests run with no other at the same time from now on."""

    def forget(self, node: Any, node_id: str) -> None:
        """Take back what a dead worker reported of a test that another one runs."""

    def restarts_left(self) -> float:
        """Return how many more workers may die and be replaced; -1 if the last one is not."""

    def give_up(self, node: Any, node_ids: Sequence[str]) -> None:
        """Report the tests that are not run, because building their unit kills workers."""


@dataclass(slots=True)
class _Worker:
    """What a worker has been sent.

    Attributes:
        pending: Tests that it has not run, in order.
        collected: Whether it has the run's collection.
        unit: The unit of the last tests it was sent.
        low: It is sent more when it has fewer tests than these.
        is_gone: Whether it could not be sent anything: it has died, and the word
            of that is still to come.
    """

    pending: dict[int, None] = field(default_factory=dict)
    collected: bool = False
    is_gone: bool = False
    unit: Unit | None = None
    low: int = _LEAST_PENDING


class UnitScheduling:
    """Hands out run units, the largest first, then ordinary tests.

    It implements pytest-xdist's ``Scheduling`` protocol. Each test costs the
    scheduler the same however many there are.

    Args:
        config: pytest's config.
        log: What xdist wants its schedulers to log with.
        watch: What is known of the workers.
    """

    def __init__(self, config: pytest.Config, log: Any, watch: WorkerWatch) -> None:
        # Public, as with pytest-xdist's own: other plugins look for them.
        self.config = config
        self.log = log
        self._watch = watch
        self._failed_builds: Counter[Unit] = Counter()
        self._suspects: set[int] = set()
        self._worker_count = len(parse_tx_spec_config(config))
        self._collected = 0
        self._first: Any = None
        self._same = True
        self._workers: dict[Any, _Worker] = {}
        self._collection: list[str] = []
        self._scheduled = False
        self._units: list[Unit] = []
        self._unit_numbers: array[int] = array("l")
        self._work = Work({}, (), self._worker_count)

    # -- what xdist asks ------------------------------------------------------

    @property
    def nodes(self) -> list[Any]:
        """The workers."""
        return list(self._workers)

    @property
    def collection_is_completed(self) -> bool:
        """Whether every worker has collected."""
        return self._collected >= self._worker_count

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to hand out, and no worker waits for more."""
        # Asked after every event of every test.
        if self._work.size or self._collected < self._worker_count:
            return False
        for worker in self._workers.values():  # noqa: SIM110 - a generator costs twice that
            if len(worker.pending) >= _LEAST_PENDING:
                return False
        return True

    @property
    def has_pending(self) -> bool:
        """Whether any test has not run yet."""
        return self._work.size > 0 or any(worker.pending for worker in self._workers.values())

    def add_node(self, node: Any) -> None:
        """Take in a worker that has started."""
        self._workers[node] = _Worker()

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Take in what a worker has collected."""
        if self._first is None:
            self._first, self._collection = node, list(collection)
        elif list(collection) != self._collection:
            difference = report_collection_diff(
                self._collection, collection, self._first.gateway.id, node.gateway.id
            )
            self.log(difference)
            if self._scheduled:
                # A worker that replaces a dead one and sees other tests is of no use.
                node.shutdown()
                return
            self._same = False
            self.config.hook.pytest_collectreport(
                report=pytest.CollectReport(
                    nodeid=node.gateway.id, outcome="failed", longrepr=difference, result=[]
                )
            )
        self._collected += 1
        self._workers[node].collected = True

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:  # noqa: ARG002
        """Note that a worker has run a test, and feed it."""
        worker = self._workers[node]
        worker.pending.pop(item_index, None)
        while len(worker.pending) < worker.low and self._feed(node, worker):
            pass

    def mark_test_pending(self, item: str) -> None:
        """Run a test again; one of a unit goes where the rest of its unit goes next."""
        if self._scheduled:
            self._work.put_back(self._by_unit([self._index_of[item]]))
            self._feed_all()

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        """Answer to a theft of tests, which this scheduler never orders."""
        raise NotImplementedError

    def remove_node(self, node: Any) -> str | None:
        """Take out a worker that has ended, and hand its tests to others.

        Returns:
            The test that the worker died of, which is not run again. None if
            it had none, or may have died of any of several: nobody is blamed
            before those have been run one by one.
        """
        pending = self._workers.pop(node).pending
        if not pending:
            return None
        progress = self._watch.progress(node)
        marked = dict.fromkeys(self._watch.executing(node))
        executing = [index for index in marked if index in pending]
        crashed = self._crashed(pending, executing)
        groups = self._by_unit(
            index
            for index in pending
            # Its report may have come before the word that it is over.
            if index != crashed and progress != Progress(self._collection[index], has_result=True)
        )
        unit = None if crashed is None else self._unit_of(crashed)
        if unit is not None and not executing and self._unit_reached(progress) != unit:
            self._note_failed_build(node, unit, groups)
        self._forget_begun(node, progress, groups)
        if self._watch.restarts_left() >= 0:
            self._work.put_back(groups)
            self._feed_all()
        else:
            # Nobody comes for those who die of a suspect: it is run after all others.
            tests = [index for group in groups.values() for index in group]
            for suspected in (False, True):
                chosen = (index for index in tests if (index in self._suspects) is suspected)
                self._work.put_back(self._by_unit(chosen))
                self._hand_out_all()
        return None if crashed is None else self._collection[crashed]

    def _crashed(self, pending: Iterable[int], executing: Sequence[int]) -> int | None:
        """Return the test that a worker died of; None if that is to be found out.

        Args:
            pending: Its tests, at least one, the one that it was running first.
            executing: Those whose code it was executing, the likeliest first.
        """
        if not executing:
            return next(iter(pending))
        # Suspected twice is convicted, or a run might not end.
        known = next((index for index in executing if index in self._suspects), None)
        if known is not None or len(executing) == 1:
            return executing[0] if known is None else known
        self._suspects.update(executing)
        self._watch.suspect(executing)
        return None

    def _forget_begun(
        self, node: Any, progress: Progress | None, groups: dict[Unit | None, list[int]]
    ) -> None:
        """Take back what was reported of the test that a dead worker had only set up."""
        if progress is not None:
            index = self._index_of.get(progress.node_id)
            if any(index in tests for tests in groups.values()):
                self._watch.forget(node, progress.node_id)

    def _note_failed_build(
        self, node: Any, unit: Unit, groups: dict[Unit | None, list[int]]
    ) -> None:
        """Give up a unit that workers die of before its first query."""
        self._failed_builds[unit] += 1
        if self._failed_builds[unit] >= _BUILD_ATTEMPTS:
            given_up = [*groups.pop(unit, []), *self._work.drop(unit)]
            if given_up:
                self._watch.give_up(node, [self._collection[index] for index in given_up])

    def schedule(self) -> None:
        """Hand out the first tests, or feed a worker that came later."""
        if not self._scheduled:
            if not self._same:
                self.log("**Different tests collected, aborting run**")
                return
            self._scheduled = True
            stretches, splittable = self._watch.units()
            self._note_units(stretches)
            groups = self._by_unit(range(len(self._collection)))
            self._work = Work(groups, splittable, self._worker_count)
        self._feed_all()

    def left(self) -> list[str]:
        """Return the tests that nobody has run; none if the workers saw different ones."""
        if not self._scheduled:
            return self._collection if self._same else []
        pending = [index for worker in self._workers.values() for index in worker.pending]
        return [self._collection[index] for index in sorted([*self._work.left(), *pending])]

    # -- which tests belong together --------------------------------------------

    def _note_units(self, stretches: Iterable[tuple[Unit, int, int]]) -> None:
        numbers: dict[Unit, int] = {}
        self._unit_numbers = array("l", [_NO_UNIT]) * len(self._collection)
        for unit, start, count in stretches:
            number = numbers.setdefault(unit, len(numbers))
            self._unit_numbers[start : start + count] = array("l", [number]) * count
        self._units = list(numbers)

    def _unit_of(self, index: int) -> Unit | None:
        """Return the run unit of a test, None for an ordinary one."""
        number = self._unit_numbers[index]
        return None if number == _NO_UNIT else self._units[number]

    def _unit_reached(self, progress: Progress | None) -> Unit | None:
        """Return the unit whose knowledge base a worker had last."""
        index = None if progress is None else self._index_of.get(progress.node_id)
        return None if index is None else self._unit_of(index)

    @cached_property
    def _index_of(self) -> dict[str, int]:
        """Positions by node id; only those who lose workers need it."""
        return {node_id: index for index, node_id in enumerate(self._collection)}

    def _by_unit(self, indices: Iterable[int]) -> dict[Unit | None, list[int]]:
        groups: dict[Unit | None, list[int]] = {}
        for index in indices:
            groups.setdefault(self._unit_of(index), []).append(index)
        return groups

    # -- handing out ----------------------------------------------------------

    def _feed_all(self) -> None:
        """Send all workers what they need, in turn, so that the last get some too."""
        hungry = list(self._workers.items())
        while hungry:
            hungry = [
                (node, worker)
                for node, worker in hungry
                if len(worker.pending) < worker.low and self._feed(node, worker)
            ]

    def _hand_out_all(self) -> None:
        """Send out all that is left: who is asked to end later takes no more."""
        takers = {node: w for node, w in self._workers.items() if self._can_take(node, w)}
        while takers and self._work.size:
            node = min(takers, key=lambda node: len(takers[node].pending))
            if not self._send(node, takers[node]):
                del takers[node]

    def _can_take(self, node: Any, worker: _Worker) -> bool:
        return worker.collected and not worker.is_gone and not node.shutting_down

    def _feed(self, node: Any, worker: _Worker) -> bool:
        """Send a worker its next tests, or to its end; return whether it may want more."""
        if not self._scheduled or not self._can_take(node, worker):
            return False
        if len(worker.pending) >= _LEAST_PENDING and not self._work.has_more(worker.unit):
            worker.low = _LEAST_PENDING  # others have taken the rest of the unit
            return False
        if self._send(node, worker):
            return True
        # Where no other would come for a worker that dies, this one waits for what that
        # leaves; pytest-xdist itself ends workers when all is done.
        if self._watch.restarts_left() >= 1:
            node.shutdown()
        return False

    def _send(self, node: Any, worker: _Worker) -> bool:
        others = [
            other.unit
            for key, other in self._workers.items()
            if key is not node and self._can_take(key, other)
        ]
        chunk = self._work.take(worker.unit, others)
        if not chunk.tests:
            return False
        try:
            node.send_runtest_some(chunk.tests)
        except OSError:
            # It died while others were seen to: pytest-xdist tells of it later.
            worker.is_gone = True
            self._work.put_back({chunk.unit: chunk.tests})
            return False
        worker.unit = chunk.unit
        # The queries of a split unit go on overlapping only if its next shard comes in time.
        worker.low = max(_LEAST_PENDING, len(chunk.tests) // 2 if chunk.more else 0)
        worker.pending.update(dict.fromkeys(chunk.tests))
        return True
