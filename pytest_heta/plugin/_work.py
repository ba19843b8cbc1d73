"""What a distributed run still has to hand out, and who gets which of it.

Three kinds of work: whole run units, which one worker runs from the first
test to the last; split units, which several workers run in shards; and
ordinary tests, which belong to nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

__all__ = ["Chunk", "Progress", "Unit", "UnitsOfTests", "Work"]

Unit = tuple[str, str]
"""Plan label and unit id."""

_LEAST_SHARD: Final = 16
"""Tests of a shard: enough to keep the queries of a worker overlapping, few
enough that the last worker does not end long after the others."""

_LEAST_OF_A_WORKER: Final = 32
"""Tests that a worker has to get of a split unit: it loads the unit's knowledge
base for them, which for fewer would take longer than they do."""

_SHARDS_OF_A_WORKER: Final = 2
"""A worker gets half of what would be its share of the rest: shards grow smaller
towards the end, when a worker that is slower than expected has the others wait."""

_TESTS_OF_A_WORKER: Final = 4
"""The same for ordinary tests, as with pytest-xdist's own scheduler."""


class UnitsOfTests(NamedTuple):
    """Which tests of a collection belong to run units.

    Attributes:
        stretches: A unit, its first test and how many tests follow from
            there; a unit may have several.
        splittable: Units that several workers may work on.
    """

    stretches: Sequence[tuple[Unit, int, int]] = ()
    splittable: Collection[Unit] = frozenset()


class Progress(NamedTuple):
    """How far a worker has come.

    Attributes:
        node_id: The last test that it has set up.
        has_result: Whether the result of that test is known.
    """

    node_id: str
    has_result: bool


class Chunk(NamedTuple):
    """Tests for one worker.

    Attributes:
        tests: Positions in the collection.
        unit: The run unit that they are of, None for ordinary tests.
        more: Whether the rest of the unit is still to be handed out.
    """

    tests: list[int]
    unit: Unit | None = None
    more: bool = False


@dataclass(slots=True)
class _SplitUnit:
    """A unit that several workers run.

    Attributes:
        left: Tests that nobody has got.
        workers: For how many workers it was split.
    """

    left: deque[int]
    workers: int

    def next_shard(self, workers: int) -> list[int]:
        """Take the next tests, when so many workers are at it."""
        share = len(self.left) // (max(workers, self.workers) * _SHARDS_OF_A_WORKER)
        count = min(len(self.left), max(_LEAST_SHARD, share))
        return [self.left.popleft() for _ in range(count)]


class _Whole(NamedTuple):
    """A unit for one worker, or the part of a split unit that a worker may begin."""

    unit: Unit
    size: int
    tests: list[int] | None = None


class Work:
    """All tests of a run that no worker has got.

    Attributes:
        size: How many there are: asked for several times for each test.

    Args:
        groups: The tests of each unit, and those of none.
        splittable: Units that several workers may work on.
        workers: How many workers there are.
    """

    def __init__(
        self,
        groups: dict[Unit | None, list[int]],
        splittable: Collection[Unit],
        workers: int,
    ) -> None:
        self._tests: deque[int] = deque(groups.get(None, ()))
        self._split: dict[Unit, _SplitUnit] = {}
        self.size = sum(map(len, groups.values()))
        fair_share = self.size / workers
        wholes: list[_Whole] = []
        for unit, tests in groups.items():
            if unit is None:
                continue
            size = len(tests)
            takers = min(workers, size // _LEAST_OF_A_WORKER, -int(-size // fair_share))
            if unit in splittable and takers > 1:
                self._split[unit] = _SplitUnit(deque(tests), takers)
                wholes += [_Whole(unit, size // takers)] * takers
            else:
                wholes.append(_Whole(unit, size, tests))
        # Largest first keeps the last worker from ending long after the others.
        self._wholes = deque(sorted(wholes, key=lambda whole: whole.size, reverse=True))

    def left(self) -> list[int]:
        """Return the tests that are left, in the collection's order."""
        of_units = [test for whole in self._wholes for test in whole.tests or ()]
        of_split = [test for split in self._split.values() for test in split.left]
        return sorted([*of_units, *of_split, *self._tests])

    def take(self, own: Unit | None, others: Collection[Unit | None]) -> Chunk:
        """Take the next tests for a worker.

        Args:
            own: The unit that the worker has its last tests of.
            others: The units that each of the other workers has its last
                tests of.

        Returns:
            No tests if there is nothing that the worker could do.
        """
        chunk = self._next_chunk(own, others)
        self.size -= len(chunk.tests)
        return chunk

    def _next_chunk(self, own: Unit | None, others: Collection[Unit | None]) -> Chunk:
        if own is not None and self.has_more(own):
            # Its knowledge base is there.
            return self._shard(own, others)
        while self._wholes:
            whole = self._wholes.popleft()
            if whole.tests:
                return Chunk(whole.tests, whole.unit)
            if self.has_more(whole.unit):
                return self._shard(whole.unit, others)
        if self._tests:
            share = len(self._tests) // (1 + len(others)) // _TESTS_OF_A_WORKER
            return Chunk([self._tests.popleft() for _ in range(max(1, share))])
        return self._join(others)

    def has_more(self, unit: Unit | None) -> bool:
        """Whether tests are left of a split unit."""
        split = None if unit is None else self._split.get(unit)
        return split is not None and bool(split.left)

    def put_back(self, groups: dict[Unit | None, list[int]]) -> None:
        """Take back what a worker had got: it comes first again."""
        self.size += sum(map(len, groups.values()))
        for unit, tests in reversed(groups.items()):
            if unit is None:
                self._tests.extendleft(reversed(tests))
            elif unit in self._split:
                self._split[unit].left.extendleft(reversed(tests))
            else:
                self._wholes.appendleft(_Whole(unit, len(tests), tests))

    def drop(self, unit: Unit) -> list[int]:
        """Take out all that is left of a unit."""
        wholes = [whole for whole in self._wholes if whole.unit == unit]
        dropped = [test for whole in wholes for test in whole.tests or ()]
        self._wholes = deque(whole for whole in self._wholes if whole.unit != unit)
        split = self._split.pop(unit, None)
        dropped += split.left if split is not None else ()
        self.size -= len(dropped)
        return sorted(dropped)

    def _shard(self, unit: Unit, others: Collection[Unit | None]) -> Chunk:
        split = self._split[unit]
        tests = split.next_shard(1 + sum(other == unit for other in others))
        return Chunk(tests, unit, more=bool(split.left))

    def _join(self, others: Collection[Unit | None]) -> Chunk:
        """Let a worker that has nothing to do help with the split unit that has most left."""
        unit, split = max(
            self._split.items(), key=lambda item: len(item[1].left), default=(None, None)
        )
        if unit is None or split is None or not split.left:
            return Chunk([])
        if unit in others and len(split.left) < _LEAST_OF_A_WORKER:
            return Chunk([])  # they are done before its knowledge base is here
        return self._shard(unit, others)
