"""Scheduling with pytest-xdist: a run unit goes to one worker as a whole."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pytest
from xdist.report import report_collection_diff
from xdist.workermanage import parse_tx_spec_config

from pytest_heta.core.plan import Sample

__all__ = ["UnitScheduling"]

_LEAST_PENDING: Final = 2
"""A worker runs its last test only when it knows of the next, or of the end."""

_BUILD_ATTEMPTS: Final = 2
"""So many workers may die of building one unit; one may have died of a lack of memory."""

Unit = tuple[str, str]
"""Plan label and unit id."""


class UnitScheduling:
    """Hands out whole run units, the largest first, then ordinary tests.

    It implements pytest-xdist's ``Scheduling`` protocol. Each test costs the
    scheduler the same however many there are.

    Args:
        config: pytest's config.
        log: What xdist wants its schedulers to log with.
        selected: Plan label and sample of the benchmarks' tests, by node id.
        set_up: For each worker the last test that it has set up.
        give_up: Reports the tests that will not be run, because of a worker
            that died.
    """

    def __init__(
        self,
        config: pytest.Config,
        log: Any,
        *,
        selected: Mapping[str, tuple[str, Sample]],
        set_up: Mapping[Any, str],
        give_up: Callable[[Any, Sequence[str]], None],
    ) -> None:
        # Public, as with pytest-xdist's own: other plugins look for them.
        self.config = config
        self.log = log
        self._selected = selected
        self._set_up = set_up
        self._give_up = give_up
        self._failed_builds: Counter[Unit] = Counter()
        self._worker_count = len(parse_tx_spec_config(config))
        self._collections: dict[Any, list[str]] = {}
        self._pending_of: dict[Any, dict[int, None]] = {}
        self._collection: list[str] = []
        self._scheduled = False
        self._units: deque[list[int]] = deque()
        self._tests: deque[int] = deque()

    # -- what xdist asks ------------------------------------------------------

    @property
    def nodes(self) -> list[Any]:
        """The workers."""
        return list(self._pending_of)

    @property
    def collection_is_completed(self) -> bool:
        """Whether every worker has collected."""
        return len(self._collections) >= self._worker_count

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to hand out, and no worker waits for more."""
        if not self.collection_is_completed or self._units or self._tests:
            return False
        return all(len(pending) < _LEAST_PENDING for pending in self._pending_of.values())

    @property
    def has_pending(self) -> bool:
        """Whether any test has not run yet."""
        return bool(self._units or self._tests or any(self._pending_of.values()))

    def add_node(self, node: Any) -> None:
        """Take in a worker that has started."""
        self._pending_of[node] = {}

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Take in what a worker has collected."""
        if self._scheduled and list(collection) != self._collection:
            # A worker that replaces a dead one and sees other tests is of no use.
            other = next(iter(self._collections))
            self.log(
                report_collection_diff(
                    self._collection, collection, other.gateway.id, node.gateway.id
                )
            )
            node.shutdown()
            return
        self._collections[node] = list(collection)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:  # noqa: ARG002
        """Note that a worker has run a test, and feed it."""
        self._pending_of[node].pop(item_index, None)
        self._feed(node)

    def mark_test_pending(self, item: str) -> None:
        """Run a test again; one of a unit goes where the rest of its unit goes next."""
        if self._scheduled:
            index = self._collection.index(item)
            if self._unit_of(item) is None:
                self._tests.appendleft(index)
            else:
                self._units.appendleft([index])
            self._feed_all()

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        """Answer to a theft of tests, which this scheduler never orders."""
        raise NotImplementedError

    def remove_node(self, node: Any) -> str | None:
        """Take out a worker that has ended, and hand its tests to others.

        Returns:
            The test that the worker was running, if it died of it. That test
            is not run again.
        """
        pending = list(self._pending_of.pop(node))
        if not pending:
            return None
        crashed, *rest = pending
        node_id = self._collection[crashed]
        units = self._by_unit(rest)
        unit = self._unit_of(node_id)
        if unit is not None and unit in units and self._set_up.get(node) != node_id:
            self._failed_builds[unit] += 1
            if self._failed_builds[unit] >= _BUILD_ATTEMPTS:
                self._give_up(node, [self._collection[index] for index in units.pop(unit)])
        self._tests.extendleft(reversed(units.pop(None, [])))
        self._units.extendleft(reversed(units.values()))
        self._feed_all()
        return node_id

    def schedule(self) -> None:
        """Hand out the first tests, or feed a worker that came later."""
        if not self._scheduled:
            if not self._same_collections():
                self.log("**Different tests collected, aborting run**")
                return
            self._scheduled = True
            self._collection = next(iter(self._collections.values()))
            units = self._by_unit(range(len(self._collection)))
            self._tests.extend(units.pop(None, []))
            # Largest first keeps the last worker from ending long after the others.
            self._units.extend(sorted(units.values(), key=len, reverse=True))
        self._feed_all()

    # -- handing out ----------------------------------------------------------

    def _unit_of(self, node_id: str) -> Unit | None:
        """Return the run unit of a test, None for an ordinary one."""
        selected = self._selected.get(node_id)
        return None if selected is None else (selected[0], selected[1].unit)

    def _by_unit(self, indices: Iterable[int]) -> dict[Unit | None, list[int]]:
        groups: dict[Unit | None, list[int]] = {}
        for index in indices:
            groups.setdefault(self._unit_of(self._collection[index]), []).append(index)
        return groups

    def _feed_all(self) -> None:
        for node in list(self._pending_of):
            self._feed(node)

    def _feed(self, node: Any) -> None:
        if node.shutting_down or node not in self._collections:
            return
        pending = self._pending_of[node]
        while len(pending) < _LEAST_PENDING:
            chunk = self._next_chunk()
            if not chunk:
                node.shutdown()
                return
            pending.update(dict.fromkeys(chunk))
            node.send_runtest_some(chunk)

    def _next_chunk(self) -> list[int]:
        if self._units:
            return self._units.popleft()
        share = len(self._tests) // max(1, len(self._pending_of)) // 4
        count = min(len(self._tests), max(_LEAST_PENDING, share))
        return [self._tests.popleft() for _ in range(count)]

    def _same_collections(self) -> bool:
        (first, collection), *others = self._collections.items()
        same = True
        for node, other in others:
            difference = report_collection_diff(
                collection, other, first.gateway.id, node.gateway.id
            )
            if difference:
                same = False
                self.log(difference)
                self.config.hook.pytest_collectreport(
                    report=pytest.CollectReport(
                        nodeid=node.gateway.id, outcome="failed", longrepr=difference, result=[]
                    )
                )
        return same
