"""Items of benchmark cases, made directly where pytest would make the same.

A unit lets pytest collect its first case, compares the item that comes out
with one of its own, and makes the others like it. Whatever differs (a
parametrized fixture, another plugin's parameters or marks, a pytest that is
not known) leaves the whole unit to pytest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from pytest_heta.core.plan import Sample
from pytest_heta.plugin import _internals
from pytest_heta.plugin._harmless import foreign
from pytest_heta.plugin._internals import ItemGroup, LightFunction, made_once

if TYPE_CHECKING:
    from pytest_heta.plugin.collect import UnitNode

__all__ = ["PARAMETER", "CaseFunction", "CaseGroup", "extra_keywords", "heta_mark", "light_items"]

PARAMETER: Final = "heta_case"
"""The fixture that is parametrized with the samples of a mode."""

_TEMPLATES: Final = pytest.StashKey["Mapping[str, Template] | None"]()
"""How the items of each mode are made in all units of a benchmark; None: by pytest."""


class Template(NamedTuple):
    """What the items of one mode have in common, in every unit of a benchmark.

    Attributes:
        fixture_info: pytest's fixture information.
        scopes: Scope of its parameter.
    """

    fixture_info: Any
    scopes: Mapping[str, Any]


class CaseGroup(ItemGroup):
    """The items of one unit and mode: what they share.

    Attributes:
        node: Their parent.
        place: File, line and the first part of the name, as reports have them.
    """

    __slots__ = ("_mark", "node", "place")

    def __init__(self, node: UnitNode, mode: str, template: Template) -> None:
        super().__init__(
            node,
            node.parent.functions[mode],
            PARAMETER,
            scopes=template.scopes,
            fixture_info=template.fixture_info,
        )
        self.node = node
        self.place: tuple[str, int | None, str] | None = None
        self._mark: pytest.Mark | None = None

    def mark_of(self, item: CaseFunction) -> pytest.Mark:
        """Return the mark of an item; those of cases without labels are one."""
        if self.node.entry.plan.cases[item.sample.case].labels:
            return heta_mark(self.node, item.sample).mark
        if self._mark is None:
            self._mark = heta_mark(self.node, item.sample).mark
        return self._mark


class CaseFunction(LightFunction):
    """The item of one benchmark case.

    Attributes:
        group: What it shares with the other items of its unit and mode.
        index: Its place among them.
        sample: The sample that it asks.
    """

    __slots__ = ()

    group: CaseGroup
    sample: Sample

    def __repr__(self) -> str:
        # As it is shown for other functions.
        return f"<Function {self.name}>"

    @made_once
    def extra_keyword_matches(self) -> set[str]:
        """What ``-k`` finds beside the names."""
        return extra_keywords(self.group.node, self.sample)

    @property
    def location(self) -> tuple[str, int | None, str]:
        """File relative to the root folder, line from 0, and name."""
        place = self.group.place
        if place is None:
            path, line, domain = _internals.location_of(self)
            self.group.place = place = (path, line, domain.removesuffix(self.name))
        path, line, prefix = place
        return path, line, prefix + self.name


def heta_mark(unit: UnitNode, sample: Sample) -> pytest.MarkDecorator:
    """Return the mark that ``-m`` sees."""
    plan = unit.entry.plan
    mark: pytest.MarkDecorator = pytest.mark.heta(
        **{
            **_labels_as_keywords(plan.cases[sample.case].labels),
            "benchmark": plan.benchmark.name,
            "recipe": plan.recipe_name,
            "unit": unit.unit.unit_id,
            "mode": sample.mode,
        }
    )
    return mark


def _labels_as_keywords(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels that ``-m`` can match: identifiers with scalar values."""
    return {
        str(name): value
        for name, value in labels.items()
        # "self" would be the mark's own.
        if str(name).isidentifier()
        and name != "self"
        and isinstance(value, str | int | bool | None)
    }


def extra_keywords(unit: UnitNode, sample: Sample) -> set[str]:
    """Return what ``-k`` finds beside the names of nodes: raw ids and labels."""
    # An adapter that changed a unit's name to a legal one says what it was.
    keywords = {sample.case, sample.unit, str(unit.unit.metadata.get("unit", ""))}
    for value in unit.entry.plan.cases[sample.case].labels.values():
        values = value if isinstance(value, list | tuple) else [value]
        keywords.update(str(part) for part in values)
    return keywords


def light_items(unit: UnitNode) -> list[pytest.Item] | None:
    """Return the items of a unit, None if pytest has to make them."""
    ids = _escaped(unit.item_ids, unit.config)
    # pytest makes them distinct, in a way of its own.
    if not _internals.can_make_items() or len(set(ids)) != len(ids):
        return None
    templates = _templates(unit, ids[0])
    if templates is None:
        return None
    return [
        item
        for mode, template in templates.items()
        for item in _internals.new_items(
            CaseFunction,
            CaseGroup(unit, mode, template),
            zip(unit.samples(mode), ids, strict=True),
        )
    ]


def _escaped(ids: Sequence[str], config: pytest.Config) -> list[str]:
    return [
        item_id
        if item_id.isascii() and item_id.isprintable() and "\\" not in item_id
        else _internals.escaped_id(item_id, config)
        for item_id in ids
    ]


def _templates(unit: UnitNode, first_id: str) -> Mapping[str, Template] | None:
    """Return how the items of each mode are made, None if by pytest."""
    stash = unit.parent.stash
    if _TEMPLATES in stash:
        known = stash[_TEMPLATES]
        if known is None or not _is_different(unit):
            return known and {mode: _copied(template) for mode, template in known.items()}
    templates = None if _is_left_to_pytest(unit) else _tried_templates(unit, first_id)
    if templates is None or not (_may_differ_by_unit(unit) or _is_different(unit)):
        stash[_TEMPLATES] = templates
    return templates


def _copied(template: Template) -> Template:
    return template._replace(fixture_info=_internals.copied_fixture_info(template.fixture_info))


def _is_different(unit: UnitNode) -> bool:
    """Whether something was added to a unit that other units need not have."""
    return bool(unit.own_markers) or _internals.has_own_fixtures(unit)


def _is_left_to_pytest(unit: UnitNode) -> bool:
    """Whether others may change the list of a function's items, which one case does not show."""
    hook = unit.ihook.pytest_generate_tests
    return bool(foreign(unit.ihook.pytest_pycollect_makeitem)) or any(
        implementation.wrapper or implementation.hookwrapper for implementation in foreign(hook)
    )


def _may_differ_by_unit(unit: UnitNode) -> bool:
    """Whether a conftest or the suite itself may want other items in the next unit."""
    return hasattr(unit.module, "pytest_generate_tests") or bool(
        foreign(unit.ihook.pytest_generate_tests)
    )


def _tried_templates(unit: UnitNode, first_id: str) -> Mapping[str, Template] | None:
    """Let pytest make the item of the first case in each mode, and take what is common."""
    items = unit.first_items()
    modes = unit.entry.plan.modes
    if [type(item) for item in items] != [pytest.Function] * len(modes):
        return None
    templates = {}
    for mode, stock in zip(modes, items, strict=True):
        scopes = _internals.parameter_scopes(stock)
        if list(scopes) != [PARAMETER]:
            return None
        template = Template(_internals.fixture_info_of(stock), scopes)
        sample = next(unit.samples(mode))
        group = CaseGroup(unit, mode, template)
        (item,) = _internals.new_items(CaseFunction, group, [(sample, first_id)])
        # The stock item gets its extra keywords later.
        item.extra_keyword_matches = set()
        if _internals.difference(item, stock) is not None:
            return None
        templates[mode] = template
    return templates
