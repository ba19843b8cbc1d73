"""How fast a distributed run's scheduler hands out tests, with workers that only take them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from pytest_heta.plugin._work import UnitsOfTests
from pytest_heta.plugin.scheduler import UnitScheduling

TEST_COUNT = 20_000
EVENTS_A_TEST = 5
"""xdist asks whether the tests are finished after the start, three reports and the end of each."""


class Node:
    """Stands for pytest-xdist's controller of a worker."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}", spec="popen")
        self.queue: list[int] = []
        self.position = 0
        self.shutting_down = False

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def can_run(self) -> bool:
        """A worker runs a test when it knows the next one, or that there is none."""
        left = len(self.queue) - self.position
        return left > 1 or (self.shutting_down and left > 0)


class Config:
    """What the scheduler needs of pytest's config."""

    def __init__(self, workers: int) -> None:
        self._values = {"tx": [f"{workers}*popen"], "maxschedchunk": None}
        self.option = SimpleNamespace(**self._values)

    def getvalue(self, name: str) -> Any:
        return self._values[name]

    getoption = getvalue


class Watch:
    """Knows the units, and of no accident."""

    def __init__(self, units: UnitsOfTests) -> None:
        self._units = units

    def units(self) -> UnitsOfTests:
        return self._units

    def restarts_left(self) -> int:
        return 1

    def progress(self, node: Node) -> None:
        return None

    def executing(self, node: Node) -> Sequence[int]:
        return ()

    def forget(self, node: Node, node_id: str) -> None:
        raise AssertionError(node_id)

    def give_up(self, node: Node, node_ids: Sequence[str]) -> None:
        raise AssertionError(node_ids)


class Session(NamedTuple):
    """What the workers of a run have collected, and which of it belongs together."""

    collections: list[list[str]]
    units: UnitsOfTests

    @classmethod
    def make(cls, sizes: Sequence[int], *, split: bool, workers: int) -> Session:
        """Return a session of units with so many tests, and of ordinary tests up to the count."""
        collection: list[str] = []
        stretches = []
        for number, size in enumerate(sizes):
            stretches.append((("bench", f"u{number}"), len(collection), size))
            collection += [f"bench_x.py::bench::u{number}::mode[case-{n}]" for n in range(size)]
        collection += [f"test_x.py::test[{n}]" for n in range(TEST_COUNT - len(collection))]
        splittable = frozenset(unit for unit, *_ in stretches) if split else frozenset()
        units = UnitsOfTests(stretches, splittable)
        return cls([list(collection) for _ in range(workers)], units)

    def run(self) -> int:
        """Schedule all tests; return how many were run."""
        workers = len(self.collections)
        scheduler = UnitScheduling(Config(workers), lambda *_: None, Watch(self.units))
        nodes = [Node(number) for number in range(workers)]
        for node in nodes:
            scheduler.add_node(node)
        for node, collection in zip(nodes, self.collections, strict=True):
            scheduler.add_node_collection(node, collection)
        scheduler.schedule()
        while ready := [node for node in nodes if node.can_run]:
            for node in ready:
                finished = [scheduler.tests_finished for _ in range(EVENTS_A_TEST)]
                assert not all(finished) or node.shutting_down
                index = node.queue[node.position]
                node.position += 1
                scheduler.mark_test_complete(node, index, 0.001)
        assert scheduler.tests_finished
        assert not scheduler.has_pending
        return sum(node.position for node in nodes)


@pytest.mark.parametrize(
    ("sizes", "split"),
    [
        ([TEST_COUNT], False),
        ([TEST_COUNT], True),
        ([5] * (TEST_COUNT // 5), False),
        ([1] * TEST_COUNT, False),
        ([], False),
        ([5] * (TEST_COUNT // 10), False),
    ],
    ids=["one_unit", "one_split_unit", "units_of_5", "units_of_1", "ordinary_tests", "half_units"],
)
@pytest.mark.parametrize("workers", [2, 8])
def test_scheduling_of_twenty_thousand_tests(
    benchmark: Any, workers: int, sizes: Sequence[int], *, split: bool
) -> None:
    session = Session.make(sizes, split=split, workers=workers)

    run = benchmark.pedantic(session.run, rounds=5, iterations=1, warmup_rounds=1)

    assert run == TEST_COUNT
