"""What a recipe is made of besides its source, as one hash.

Two recipes of one hash have classes of the same names and contents, and the same
values in all their attributes, however deep. Hashes are the same in every process,
wherever the project lies: nothing is told by its address or its order in a set.
"""

from __future__ import annotations

import copyreg
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from functools import cached_property, partial
from hashlib import sha256
from logging import Logger
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, Final

from pytest_heta.core._recipe_code import is_ours, is_users, stable_module_name

__all__ = ["UndescribableError", "instance_values", "state_digest"]

_MAX_NODES: Final = 200_000
_MAX_BYTES: Final = 1 << 26
_MAX_DEPTH: Final = 60
_POINTER: Final = object.__basicsize__ // 2
_PLAIN: Final = (str, int, float, complex, bool, type(None), type(...), type(NotImplemented))
_IN_NO_SLOT: Final = frozenset({"__dict__", "__weakref__"})
_NO_DATA: Final = frozenset({"_abc_impl"})


class UndescribableError(Exception):
    """A value has a state that cannot be told; the message names where it is, and its type."""


def state_digest(recipe: Any, manifest: Any) -> str:
    """Return the hash of a recipe and of its manifest.

    A recipe of this package is told by its class and its manifest alone.

    Args:
        recipe: The recipe.
        manifest: What its ``manifest`` says, None if it has none.

    Raises:
        UndescribableError: if an attribute, or something in the manifest, is an open
            file, a lock, or anything else whose state cannot be told, or too large.
    """
    state = _State()
    with state.at("manifest()"):
        parts = [state.of(manifest)]
    if is_ours(type(recipe).__module__):
        return _hash("recipe", state.kind(type(recipe)), *parts).hex()
    if isinstance(recipe, ModuleType):
        parts += [state.names(_values_of_module(recipe))]
    else:
        parts += [state.of(recipe), state.names(_properties(recipe), is_optional=True)]
    return _hash("recipe", *parts, state.bodies()).hex()


def _hash(kind: str, *parts: bytes) -> bytes:
    digest = sha256(kind.encode())
    for part in parts:
        digest.update(b"\0%d\0" % len(part))
        digest.update(part)
    return digest.digest()


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class _State:
    """One description: it counts what it holds, and knows what it is inside of."""

    def __init__(self) -> None:
        self._nodes = _MAX_NODES
        self._bytes = _MAX_BYTES
        self._open: dict[int, int] = {}
        self._path: list[str] = []
        self._classes: dict[type, None] = {}

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Describe what is behind a name: it is what an error names."""
        self._path.append(name)
        yield
        self._path.pop()  # not after an error, which is told by it

    def fail(self, why: str) -> UndescribableError:
        """Return the error for the value that is being described."""
        return UndescribableError(f"`{'.'.join(self._path) or 'the recipe'}` {why}")

    def of(self, value: Any) -> bytes:
        """Return the hash of a value.

        Raises:
            UndescribableError: if its state cannot be told.
        """
        self._nodes -= 1
        if self._nodes < 0:
            raise self.fail("is too large")
        if type(value) in _PLAIN:
            text = value if isinstance(value, str) else _number(value)
            return self._raw(type(value).__name__, _text(text))
        if id(value) in self._open:
            return _hash("inside", b"%d" % self._open[id(value)])
        if len(self._open) > _MAX_DEPTH:
            raise self.fail("is nested too deeply")
        self._open[id(value)] = len(self._open)
        try:
            return self._composite(value)
        except UndescribableError:
            raise
        except Exception as error:
            raise self.fail(f"is a {type(value).__qualname__}, whose state is unknown") from error
        finally:
            del self._open[id(value)]

    def kind(self, cls: type) -> bytes:
        """Return the hash of the names of a class and its bases; its body is for `bodies`."""
        names = []
        for base in cls.__mro__[:-1] or (cls,):
            names.append(_text(f"{stable_module_name(str(base.__module__))}.{base.__qualname__}"))
            if is_users(str(base.__module__)):
                self._classes.setdefault(base)
        return _hash("class", *names)

    def bodies(self) -> bytes:
        """Return the hash of what all classes so far consist of."""
        found = []
        done = 0
        while done < len(self._classes):  # more may come up
            cls = list(self._classes)[done]
            with self.at(cls.__qualname__):
                found.append(_hash("body", self.kind(cls), self.names(_body(cls))))
            done += 1
        return _hash("bodies", *sorted(found))

    def names(self, values: Mapping[str, Any], *, is_optional: bool = False) -> bytes:
        """Return the hash of named values; what cannot be told is left out if it is optional."""
        parts = []
        for name in sorted(values):
            depth = len(self._path)
            try:
                with self.at(name):
                    parts += [_text(name), self.of(values[name])]
            except UndescribableError:
                if not is_optional:
                    raise
                del self._path[depth:]
        return _hash("names", *parts)

    def _raw(self, kind: str, content: bytes | bytearray | memoryview) -> bytes:
        self._bytes -= len(content)
        if self._bytes < 0:
            raise self.fail("is too large")
        return _hash(kind, bytes(content))

    def _all(self, kind: str, values: Iterable[Any]) -> bytes:
        return _hash(kind, *map(self.of, values))

    def _composite(self, value: Any) -> bytes:
        if isinstance(value, type):
            return self.kind(value)
        if isinstance(value, ModuleType):
            return _hash("module", _text(stable_module_name(value.__name__)))
        for describe in (self._container, self._callable, self._known):
            found = describe(value)
            if found is not None:
                return _hash("value", self.kind(type(value)), found)
        return _hash("object", self.kind(type(value)), self._object(value))

    def _container(self, value: Any) -> bytes | None:
        content = None
        if isinstance(value, Enum):
            return self._all("enum", (value.name, value.value))
        if isinstance(value, dict | MappingProxyType):
            content = self._pairs(value)
        elif isinstance(value, list | tuple):
            inner = list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value)
            content = self._all("items", inner)
        elif isinstance(value, set | frozenset):
            content = _hash("set", *sorted(map(self.of, value)))
        elif isinstance(value, bytes | bytearray | memoryview):
            content = self._raw("bytes", value if type(value) is not memoryview else bytes(value))
        elif isinstance(value, str | int | float | complex):
            content = self.of(_exact(value))
        return None if content is None else _hash("content", content, self._attributes(value))

    def _pairs(self, value: Mapping[Any, Any]) -> bytes:
        pairs = []
        for key, item in value.items():
            with self.at(key if isinstance(key, str) else type(key).__name__):
                pairs.append(self.of(key) + self.of(item))
        return _hash("pairs", *sorted(pairs), self.of(getattr(value, "default_factory", None)))

    def _callable(self, value: Any) -> bytes | None:
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return self._all("method", (value.__func__, value.__self__))
        if isinstance(value, partial):
            parts = (value.func, value.args, value.keywords, vars(value))
            return self._all("partial", parts)
        return self._wrapper(value)

    def _wrapper(self, value: Any) -> bytes | None:
        parts: tuple[Any, ...]
        if isinstance(value, BuiltinFunctionType):
            of = value.__self__ if not isinstance(value.__self__, ModuleType) else None
            parts = (value.__module__, value.__qualname__, of)
        elif isinstance(value, staticmethod | classmethod):
            parts = (value.__func__,)
        elif isinstance(value, property):
            parts = (value.fget, value.fset, value.fdel)
        elif isinstance(value, cached_property):
            parts = (value.func,)
        elif hasattr(type(value), "cache_parameters"):  # of functools.lru_cache
            parts = (value.__wrapped__, value.cache_parameters())
        else:
            return None
        return self._all("wrapper", parts)

    def _function(self, value: FunctionType) -> bytes:
        return _hash(
            "function",
            _text(stable_module_name(str(value.__module__))),
            _text(value.__qualname__),
            self.of(value.__code__),
            self.of(value.__defaults__),
            self.of(value.__kwdefaults__),
            self.names(_cells(value)),
            self.of(vars(value)),
        )

    def _known(self, value: Any) -> bytes | None:
        if isinstance(value, CodeType):
            names = (value.co_names, value.co_varnames, value.co_freevars, value.co_flags)
            return self._all("code", (value.co_code, value.co_consts, names))
        if isinstance(value, CellType):
            return self.of(value.cell_contents)
        if isinstance(value, PurePath):
            return self.of(str(value))
        if isinstance(value, Logger):
            return self.of(value.name)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
            return self._array(value)
        return None

    def _array(self, value: Any) -> bytes:
        about = (str(value.dtype.descr), list(value.shape))
        if value.dtype.hasobject:
            content = self.of(value.tolist())
        elif value.nbytes > self._bytes:
            raise self.fail("is too large")
        else:
            content = self._raw("array", value.tobytes())
        return _hash("array", self._all("about", about), content, self._attributes(value))

    def _object(self, value: Any) -> bytes:
        if is_ours(type(value).__module__):
            return self._own_object(value)
        if not isinstance(value, SimpleNamespace) and _is_written_in_c(type(value)):
            return self._reduced(value)
        return self._attributes(value)

    def _own_object(self, value: Any) -> bytes:
        """Describe an object of this package: it may load what it needs at first use."""
        manifest = getattr(value, "manifest", None)
        if callable(manifest):
            return self.of(manifest())
        public = {k: v for k, v in instance_values(value).items() if not k.startswith("_")}
        return self.names({**public, **_properties(value)})

    def _reduced(self, value: Any) -> bytes:
        """Describe an object with a state of C by what copies of it are made of."""
        reduce: Callable[[Any], Any] | None = copyreg.dispatch_table.get(type(value))
        reduced = reduce(value) if reduce is not None else value.__reduce_ex__(4)
        if isinstance(reduced, str):
            return self.of(reduced)
        parts = [list(part) if inspect.isgenerator(part) else part for part in reduced[:2]]
        state, items, pairs = (*reduced[2:5], None, None, None)[:3]
        with suppress(TypeError):
            items = None if items is None else list(items)
            pairs = None if pairs is None else list(pairs)
        return self._all("reduced", (*parts, state, items, pairs))

    def _attributes(self, value: Any) -> bytes:
        return self.names(instance_values(value))


def _exact(value: Any) -> Any:
    """Return what a subclass of a plain type holds, whatever it says of itself."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    return float.__float__(value) if isinstance(value, float) else complex.__complex__(value)


def _number(value: Any) -> str:
    return hex(value) if type(value) is int else repr(value)  # digits of long ones are limited


def instance_values(value: Any) -> dict[str, Any]:
    """Return what an object holds in its ``__dict__`` and its slots."""
    held = getattr(value, "__dict__", None)
    values = {str(name): item for name, item in held.items()} if isinstance(held, dict) else {}
    for cls in type(value).__mro__:
        if "__slots__" not in vars(cls):
            continue
        for name, member in vars(cls).items():
            if isinstance(member, MemberDescriptorType):
                with suppress(AttributeError):  # not set
                    values[name] = member.__get__(value, cls)
    return values


def _properties(recipe: Any) -> dict[str, Any]:
    """Return the values of an object's public properties; one that raises has none."""
    values = {}
    for cls in type(recipe).__mro__:
        for name, member in vars(cls).items():
            if isinstance(member, property) and not name.startswith("_"):
                with suppress(Exception):
                    values[name] = getattr(recipe, name)
    return values


def _values_of_module(module: ModuleType) -> dict[str, Any]:
    code = (ModuleType, FunctionType, BuiltinFunctionType, type)
    return {
        name: value
        for name, value in vars(module).items()
        if not _is_special(name) and not isinstance(value, code)
    }


def _body(cls: type) -> dict[str, Any]:
    """Return what a class consists of: its functions, and its data without Python's own."""
    functions = (FunctionType, staticmethod, classmethod, property)
    return {
        name: value
        for name, value in vars(cls).items()
        if isinstance(value, functions)
        or not (_is_special(name) or name in _NO_DATA or isinstance(value, MemberDescriptorType))
    }


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _cells(function: FunctionType) -> dict[str, Any]:
    values = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # empty
            values[name] = cell.cell_contents
    return values


def _is_written_in_c(cls: type) -> bool:
    """Whether objects of a class hold more than a ``__dict__`` and slots, as pickle finds out."""
    slots = 0
    for base in cls.__mro__:
        declared = vars(base).get("__slots__", ())
        names = (declared,) if isinstance(declared, str) else tuple(declared)
        slots += sum(name not in _IN_NO_SLOT for name in names)
    pointers = slots + (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0)
    return bool(cls.__itemsize__) or cls.__basicsize__ > object.__basicsize__ + pointers * _POINTER
