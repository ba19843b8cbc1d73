# ruff: noqa: SLF001 - private names stand here and in _phases
"""Private parts of pytest that making items needs; `_phases` has those for running them.

Each has a guard and an ordinary way beside it.

Whatever here does not find what it was written for says so, and its caller
goes pytest's own, slower way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

import _pytest.fixtures
import _pytest.python
import pytest
from _pytest.mark.structures import NodeKeywords
from _pytest.nodes import Node

__all__ = [
    "ItemGroup",
    "LightFunction",
    "can_make_items",
    "copied_fixture_info",
    "difference",
    "escaped_id",
    "fixture_info_of",
    "has_own_fixtures",
    "location_of",
    "made_once",
    "new_items",
    "parameter_scopes",
]

# --- items that are made without parametrize ----------------------------------
#
# pytest makes a call specification, a mark, a parameter set, a request and some
# ten containers for each item of a parametrized function. An item of a
# benchmark has the few things that tell it from its neighbours; the rest is
# made when somebody asks for it.

T = TypeVar("T")
ItemT = TypeVar("ItemT", bound="LightFunction")

_NodeId: Any = None
"""pytest's class of node ids; None where they are text."""

with suppress(ImportError):  # pytest 8
    from _pytest.nodeid import NodeId as _NodeId

_CallSpec: Any = (
    getattr(_pytest.python, "CallSpec", None)
    or getattr(_pytest.python, "CallSpec2", None)
    or object
)

_PARTS_OF_ALL: Final = 3
"""What a call specification begins with; the rest is made when it is asked for."""

_ID: Final = "_nodeid" if _NodeId is None else "_id"

_COMPARED: Final = frozenset(
    {"config", "name", "parent", "path", "session", "originalname", "fixturenames", "own_markers"}
    | {"extra_keyword_matches", "user_properties", "funcargs", "_report_sections", _ID}
)
"""What an item of ours has in common with one that pytest makes of the same case."""

_KNOWN: Final = _COMPARED | {
    *("keywords", "callspec", "stash", "_store", "_fixtureinfo", "_request", "_instance", "_obj")
}
"""What pytest sets on a function: an item with anything else is not like ours."""


class ItemGroup:
    """The items of one test function: what they share.

    Attributes:
        unit: Their parent.
        mode: Name of the test function.
        function: The test function.
        parameter: Name of the parameter in which they differ.
        scopes: Its scope.
        fixture_info: pytest's fixture information.
        marked: Which of them were asked for their marks.
        call_spec: The call specification that was asked for last, if any.
    """

    __slots__ = (
        "call_spec",
        "fixture_info",
        "function",
        "marked",
        "mode",
        "parameter",
        "scopes",
        "unit",
    )

    def __init__(
        self,
        unit: pytest.Class,
        function: Callable[..., None],
        parameter: str,
        *,
        scopes: Mapping[str, Any],
        fixture_info: Any,
    ) -> None:
        self.unit = unit
        self.mode = function.__name__
        self.function = function
        self.parameter = parameter
        self.scopes = scopes
        self.fixture_info = fixture_info
        self.call_spec: CaseCallSpec | None = None
        self.marked: set[int] = set()

    def mark_of(self, item: Any) -> pytest.Mark:
        """Return the mark of an item."""
        raise NotImplementedError


class made_once(Generic[T]):  # noqa: N801 - used like a property
    """An attribute that is made when it is asked for first; anyone may set another."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, item: Any, owner: type | None = None) -> T:
        if item is None:
            return self  # type: ignore[return-value]
        value = self._make(item)
        # Not through `__dict__`, which would make one.
        setattr(item, self._name, value)
        return value


class _found(Generic[T]):  # noqa: N801 - used like a property
    """An attribute that lies elsewhere; anyone may set another on the item."""

    def __init__(self, find: Callable[[Any], T]) -> None:
        self._find = find

    def __get__(self, item: Any, owner: type | None = None) -> T:
        return self if item is None else self._find(item)  # type: ignore[return-value]


class CaseCallSpec(_CallSpec):  # type: ignore[misc]
    """A call specification of an item, made of what is asked for."""

    item: LightFunction
    params: dict[str, Any]

    @classmethod
    def of(cls, item: LightFunction) -> CaseCallSpec:
        """Return what `pytest.Metafunc.parametrize` would have made for an item."""
        spec: CaseCallSpec = object.__new__(cls)
        group = item.group
        parts = spec.__dict__
        parts["item"] = item
        parts["params"] = {group.parameter: item.sample}
        parts["_arg2scope"] = group.scopes
        return spec

    def __getattr__(self, name: str) -> Any:
        item = self.item
        if name == "marks":
            value: Any = [item.group.mark_of(item)]
        elif name == "indices":
            value = {item.group.parameter: item.index}
        elif name == "_idlist":
            value = [item.item_id]
        else:
            raise AttributeError(name)
        self.__dict__[name] = value
        return value

    @property
    def is_changed(self) -> bool:
        """Whether somebody changed it, so that it cannot be made anew."""
        item, params, parts = self.item, self.params, self.__dict__
        is_untouched = params.get(item.group.parameter) is item.sample and len(params) == 1
        if is_untouched and len(parts) == _PARTS_OF_ALL:
            return False
        fresh = CaseCallSpec.of(item)
        return any(getattr(fresh, name) != value for name, value in parts.items())


class _CallSpecOfItem:
    """The call specification of an item, made anew for whoever asks.

    pytest asks for each item's several times, one item after the other; to keep
    them all would take more memory than the items do. One that was changed is
    kept on its item.
    """

    def __get__(self, item: Any, owner: type | None = None) -> Any:
        if item is None:
            return self
        group = item.group
        last = group.call_spec
        if last is not None:
            if last.item is item:
                return last
            if last.is_changed:
                last.item.callspec = last
        group.call_spec = spec = CaseCallSpec.of(item)
        return spec


class LightFunction(pytest.Function):
    """A test function whose parts are made when they are asked for.

    Attributes:
        group: What it shares with others.
        index: Its place among them.
        sample: Its parameter.
    """

    __slots__ = ("group", "index", "sample")

    group: Any
    index: int
    sample: Any

    @property
    def item_id(self) -> str:
        """What stands in brackets in its name."""
        return self.name[len(self.group.mode) + 1 : -1]

    @property
    def cls(self) -> Any:
        """The test class of its unit."""
        return self.group.unit.obj

    callspec = _CallSpecOfItem()
    originalname = _found(lambda item: item.group.mode)
    _fixtureinfo = _found(lambda item: item.group.fixture_info)
    fixturenames = _found(lambda item: item.group.fixture_info.names_closure)

    user_properties: Any = made_once(lambda _: [])
    _report_sections: Any = made_once(lambda _: [])
    funcargs: Any = made_once(lambda _: {})
    stash = made_once(lambda _: pytest.Stash())
    _store = _found(lambda item: item.stash)
    _request = made_once(lambda item: _pytest.fixtures.TopRequest(item, _ispytest=True))

    @property
    def function(self) -> Any:
        """The test function; it does not take an instance of the test class to find it."""
        if getattr(self, "_obj", None) is None:
            return self.group.function
        return super().function

    @made_once
    def keywords(self) -> MutableMapping[str, Any]:
        """Its names and marks, and those of its parents."""
        keywords = NodeKeywords(self)
        mark = self.group.mark_of(self)
        keywords.update({mark.name: mark, **self.function.__dict__, self.item_id: True})
        return keywords

    @made_once
    def own_markers(self) -> list[pytest.Mark]:
        """Its marks, without those of its parents."""
        self.group.marked.add(self.index)
        return [self.group.mark_of(self)]


def new_items(cls: type[ItemT], group: ItemGroup, cases: Iterable[tuple[Any, str]]) -> list[ItemT]:
    """Return the items of a group, made of their samples and what stands in brackets."""
    unit: Any = group.unit
    mode = group.mode
    base = f"{unit.nodeid}::{mode}"
    path, *names = base.split("::") if _NodeId is None else (unit.id.path, *unit.id.names, mode)
    names_of_all = tuple(names)
    items = []
    for index, (sample, item_id) in enumerate(cases):
        item: Any = object.__new__(cls)
        item.name = f"{mode}[{item_id}]"
        item.parent = unit
        item.config = unit.config
        item.session = unit.session
        item.path = unit.path
        item.group = group
        item.index = index
        item.sample = sample
        if _NodeId is None:
            item._nodeid = f"{base}[{item_id}]"
        else:
            item._id = _NodeId(path=path, names=names_of_all, params=item_id)
        items.append(item)
    return items


def can_make_items() -> bool:
    """Whether the classes of this pytest are those that `LightFunction` is written for."""
    return (
        [field.name for field in _fields(_CallSpec)]
        == ["params", "indices", "_arg2scope", "_idlist", "marks"]
        and [field.name for field in _fields(_NodeId)]
        in ([], ["path", "names", "params", "_str_cache"])
        and set(getattr(Node, "__slots__", ()))
        == {"__dict__", "config", "name", "parent", "path", "session", "_store", _ID}
        and set(getattr(_pytest.fixtures.FuncFixtureInfo, "__slots__", ()))
        == {"argnames", "initialnames", "name2fixturedefs", "names_closure"}
        and hasattr(_pytest.python, "_ascii_escaped_by_config")
    )


def _fields(cls: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()


def difference(item: LightFunction, stock: Any) -> str | None:
    """Return an attribute that is not what pytest made of the same case, None if all agree."""
    slots = [name for name in Node.__slots__ if name != "__dict__" and hasattr(stock, name)]
    names: set[str] = {*vars(stock), *slots}
    unknown = sorted(names - _KNOWN) or sorted(_COMPARED - names)
    if unknown:
        return unknown[0]
    for name in sorted(_COMPARED & names):
        if getattr(item, name) != getattr(stock, name):
            return name
    if list(item.keywords.items()) != list(stock.keywords.items()):
        return "keywords"
    if any(
        getattr(item.callspec, field.name) != getattr(stock.callspec, field.name)
        for field in _fields(_CallSpec)
    ):
        return "callspec"
    if type(item._request) is not type(stock._request):
        return "_request"
    # Somebody's notes would be missing on the others.
    return "stash" if len(stock.stash) > 0 else None


def location_of(item: pytest.Item) -> tuple[str, int | None, str]:
    """Return file, line and name as pytest finds them for a function, not kept on the item."""
    location: Any = pytest.Function.location
    make = getattr(location, "func", None)
    found: tuple[str, int | None, str] = (
        location.__get__(item, type(item)) if make is None else make(item)
    )
    return found


def escaped_id(text: str, config: pytest.Config) -> str:
    """Return an id as pytest puts it into node ids."""
    escaped: str = _pytest.python._ascii_escaped_by_config(text, config)
    return escaped


def parameter_scopes(item: pytest.Item) -> Mapping[str, Any]:
    """Return the scope of each parameter of an item."""
    spec: Any = getattr(item, "callspec", None)
    return {} if spec is None else spec._arg2scope


def fixture_info_of(item: Any) -> Any:
    """Return pytest's fixture information of an item."""
    return item._fixtureinfo


def copied_fixture_info(info: Any) -> Any:
    """Return fixture information that can be changed without the original."""
    return _pytest.fixtures.FuncFixtureInfo(
        info.argnames, info.initialnames, list(info.names_closure), dict(info.name2fixturedefs)
    )


def has_own_fixtures(node: pytest.Collector) -> bool:
    """Whether fixtures are registered for a node, and not for one above it; True if unknown."""
    manager: Any = getattr(node.session, "_fixturemanager", None)
    nodeid = node.nodeid
    try:
        if manager._nodeid_autousenames.get(nodeid):
            return True
        if _NodeId is None:
            definitions = manager._arg2fixturedefs.values()
            return any(d.baseid == nodeid for several in definitions for d in several)
        return (
            bool(manager._node_autousenames.get(node))
            or any(node in nodes for nodes in manager._arg2node2fixturedefs.values())
            or any(nodeid in ids for ids in manager._arg2nodeid2fixturedefs.values())
        )
    except AttributeError:
        return True
