"""Scheduling with pytest-xdist: a run unit goes to one worker as a whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from xdist.report import report_collection_diff
from xdist.workermanage import parse_tx_spec_config

from pytest_heta.core.plan import Sample

__all__ = ["UnitScheduling"]

_LEAST_PENDING: Final = 2
"""A worker runs its last test only when it knows of the next, or of the end."""


class UnitScheduling:
    """Hands out whole run units, the largest first, then ordinary tests.

    It implements pytest-xdist's ``Scheduling`` protocol. Each test costs the
    scheduler the same however many there are.
    """

    def __init__(
        self,
        config: pytest.Config,
        log: Any,
        selected: Mapping[str, tuple[str, Sample]],
    ) -> None:
        self._config = config
        self._log = log
        self._selected = selected
        self._worker_count = len(parse_tx_spec_config(config))
        self._collections: dict[Any, list[str]] = {}
        self._pending_of: dict[Any, dict[int, None]] = {}
        self._collection: list[str] | None = None
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
        if self._collection is not None and list(collection) != self._collection:
            # A worker that replaces a dead one and sees other tests is of no use.
            other = next(iter(self._collections))
            self._log(
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
        """Run a test again."""
        if self._collection is not None:
            self._tests.appendleft(self._collection.index(item))
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
        if not pending or self._collection is None:
            return None
        crashed, *rest = pending
        if rest:
            self._units.appendleft(rest)
        self._feed_all()
        return self._collection[crashed]

    def schedule(self) -> None:
        """Hand out the first tests, or feed a worker that came later."""
        if self._collection is None:
            if not self._same_collections():
                self._log("**Different tests collected, aborting run**")
                return
            self._collection = next(iter(self._collections.values()))
            self._group(self._collection)
        self._feed_all()

    # -- handing out ----------------------------------------------------------

    def _group(self, collection: Sequence[str]) -> None:
        units: dict[tuple[str, str], list[int]] = {}
        for index, node_id in enumerate(collection):
            selected = self._selected.get(node_id)
            if selected is None:
                self._tests.append(index)
            else:
                label, sample = selected
                units.setdefault((label, sample.unit), []).append(index)
        # Largest first keeps the last worker from ending long after the others.
        self._units.extend(sorted(units.values(), key=len, reverse=True))

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
                self._log(difference)
                self._config.hook.pytest_collectreport(
                    report=pytest.CollectReport(
                        nodeid=node.gateway.id, outcome="failed", longrepr=difference, result=[]
                    )
                )
        return same
