"""Which samples the items of a distributed run ask, without a record for each of them.

Items that follow each other mostly ask samples that follow each other in the
plan, so a worker tells the controller where such stretches begin and end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

import pytest

from pytest_heta.core.plan import BenchmarkPlan, Sample

__all__ = ["SelectedItems", "SelectedSamples", "Stretch", "digest_of_ids", "stretches_of"]


class SelectedItems(Mapping[str, tuple[str, Sample]]):
    """Plan label and sample of selected items, by node id.

    The items know; a dict of what they know would be as large as they are.

    Args:
        items: The items.
        known_of: Returns plan label and sample of an item.
    """

    def __init__(
        self,
        items: Sequence[pytest.Item],
        known_of: Callable[[pytest.Item], tuple[str, Sample]],
    ) -> None:
        self._items = items
        self._known_of = known_of

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[str]:
        return (item.nodeid for item in self._items)

    def __getitem__(self, node_id: str) -> tuple[str, Sample]:
        return self._by_node_id[node_id]

    def values(self) -> ValuesView[tuple[str, Sample]]:
        """Return what is known of the items, in their order."""
        return _Values(self, map(self._known_of, self._items))

    @cached_property
    def _by_node_id(self) -> dict[str, tuple[str, Sample]]:
        return {item.nodeid: self._known_of(item) for item in self._items}


class _Values(ValuesView[tuple[str, Sample]]):
    """Values that are not looked up by their keys."""

    def __init__(self, mapping: SelectedItems, values: Iterable[tuple[str, Sample]]) -> None:
        super().__init__(mapping)
        self._given = values

    def __iter__(self) -> Iterator[tuple[str, Sample]]:
        return iter(self._given)


class Stretch(NamedTuple):
    """Items that follow each other and ask samples that follow each other.

    Attributes:
        position: Place of the first item in the session.
        length: How many items there are.
        label: Label of the plan.
        unit: Id of the run unit.
        mode: Query mode.
        number: Place of the first sample among those of the unit and mode:
            its case's place in the unit, times the plan's repeats, plus its repeat.
    """

    position: int
    length: int
    label: str
    unit: str
    mode: str
    number: int


def stretches_of(
    selected: Iterable[tuple[int, str, Sample]], plans: Mapping[str, BenchmarkPlan]
) -> list[Stretch]:
    """Return the stretches of a selection.

    Args:
        selected: Position, plan label and sample of each item, in order.
        plans: The plans by label.
    """
    places = _Places(plans)
    stretches: list[Stretch] = []
    begun: Stretch | None = None
    end = 0
    for position, label, sample in selected:
        number = places.number(label, sample)
        found = (label, sample.unit, sample.mode, number - position)
        if (
            begun is None
            or position != end
            or found != (*begun[2:5], begun.number - begun.position)
        ):
            if begun is not None:
                stretches.append(begun._replace(length=end - begun.position))
            begun = Stretch(position, 0, label, sample.unit, sample.mode, number)
        end = position + 1
    if begun is not None:
        stretches.append(begun._replace(length=end - begun.position))
    return stretches


class _Places:
    """Where samples stand in their unit; made for one unit after the other."""

    def __init__(self, plans: Mapping[str, BenchmarkPlan]) -> None:
        self._plans = plans
        self._units = _case_ids(plans)
        self._unit: tuple[str, str] | None = None
        self._cases: dict[str, int] = {}

    def number(self, label: str, sample: Sample) -> int:
        """Return the place of a sample among those of its unit and mode."""
        if self._unit != (label, sample.unit):
            self._unit = (label, sample.unit)
            case_ids = self._units[label][sample.unit]
            self._cases = {case_id: place for place, case_id in enumerate(case_ids)}
        return self._cases[sample.case] * self._plans[label].repeat + sample.repeat


class SelectedSamples(Mapping[str, tuple[str, Sample]]):
    """Plan label and sample by node id, in the order of the items.

    Args:
        node_ids: Node ids of all items of the session.
        stretches: Which of them ask what.
        plans: The plans by label.
    """

    def __init__(
        self,
        node_ids: Sequence[str],
        stretches: Sequence[Stretch],
        plans: Mapping[str, BenchmarkPlan],
    ) -> None:
        self._node_ids = node_ids
        self.stretches = stretches
        self._plans = plans
        self._starts = [stretch.position for stretch in stretches]
        self._count = sum(stretch.length for stretch in stretches)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        for stretch in self.stretches:
            yield from self._node_ids[stretch.position : stretch.position + stretch.length]

    def __getitem__(self, node_id: str) -> tuple[str, Sample]:
        position = self._positions[node_id]
        place = bisect_right(self._starts, position) - 1
        if place < 0 or position >= self.stretches[place].position + self.stretches[place].length:
            raise KeyError(node_id)  # an ordinary test
        return self._sample(self.stretches[place], position)

    def _sample(self, stretch: Stretch, position: int) -> tuple[str, Sample]:
        plan = self._plans[stretch.label]
        number = stretch.number + position - stretch.position
        case, repeat = divmod(number, plan.repeat)
        case_id = self._units[stretch.label][stretch.unit][case]
        names = (plan.benchmark.name, plan.recipe_name, stretch.unit, stretch.mode)
        return stretch.label, Sample(*names, case_id, repeat)

    @cached_property
    def _positions(self) -> dict[str, int]:
        """Positions by node id: only who asks for single items needs them."""
        return {node_id: position for position, node_id in enumerate(self._node_ids)}

    @cached_property
    def _units(self) -> dict[str, dict[str, tuple[str, ...]]]:
        return _case_ids(self._plans)


def _case_ids(
    plans: Mapping[str, BenchmarkPlan],
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the case ids of each unit, by plan label and unit id."""
    return {
        label: {unit.unit_id: unit.case_ids for unit in plan.units} for label, plan in plans.items()
    }


def digest_of_ids(node_ids: Iterable[str]) -> str:
    """Return what tells one collection from another."""
    return sha256("\n".join(node_ids).encode("utf-8", "surrogatepass")).hexdigest()
