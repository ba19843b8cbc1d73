"""What a saved knowledge base is found by."""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from typing import Any, Final, NamedTuple

from pytest_heta.core._plain import plain, safe_str
from pytest_heta.core._recipe_code import stable_module_name
from pytest_heta.core.snapshot import package_versions

__all__ = ["CacheKey", "description_digest", "environment", "is_cacheable"]

_HARMLESS_PACKAGES: Final = frozenset({"pytest", "pytest-xdist"})
"""Packages whose versions say nothing about what a recipe builds."""


class CacheKey(NamedTuple):
    """What a knowledge base is found by.

    Attributes:
        digest: SHA-256 of all that decides what is built.
        recipe: Name of the recipe.
        benchmark: Name of the benchmark.
        unit_id: The run unit.
    """

    digest: str
    recipe: str
    benchmark: str
    unit_id: str


def is_cacheable(recipe: object) -> bool:
    """Whether a recipe has ``save(knowledge_base, path)`` and ``load(path)``.

    Methods of these names that cannot be called so are something else.
    """
    save, load = getattr(recipe, "save", None), getattr(recipe, "load", None)
    return _takes(save, 2) and _takes(load, 1)


def _takes(function: object, count: int) -> bool:
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # written in C without a signature
        return True
    return True


def description_digest(recipe: Any) -> str | None:
    """Return the hash of a recipe's whole manifest; without one, of its public attributes.

    Returns:
        None if the manifest cannot be had.
    """
    manifest = getattr(recipe, "manifest", None)
    if manifest is None:
        held: Mapping[str, Any] = getattr(recipe, "__dict__", {})
        return _json_digest({name: held[name] for name in held if not name.startswith("_")})
    try:
        value = manifest() if callable(manifest) else manifest
    except Exception:  # noqa: BLE001 - the boundary to users' code
        return None
    if inspect.iscoroutine(value):
        value.close()
        return None
    return _json_digest(value)


def _json_digest(value: Any) -> str:
    try:
        # Unlike plain data this tells NaN and infinities from None, and no
        # object is called by its address.
        text = json.dumps(value, sort_keys=True, default=_as_json)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(plain(value, max_nodes=sys.maxsize, max_text=sys.maxsize), sort_keys=True)
    return sha256(text.encode()).hexdigest()


def _as_json(value: Any) -> Any:
    """Return a value that is no JSON as some: one level, and never its address."""
    kind = f"{stable_module_name(type(value).__module__)}.{type(value).__qualname__}"
    if isinstance(value, bytes | bytearray | memoryview):
        return [kind, sha256(value).hexdigest()]
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [item.name for item in dataclasses.fields(value)]
        return [kind, {name: getattr(value, name) for name in names}]
    if callable(getattr(value, "tolist", None)):  # numpy, torch and their kind
        return value.tolist()
    if callable(value):
        module = stable_module_name(str(getattr(value, "__module__", "")))
        return f"{module}.{getattr(value, '__qualname__', kind)}"
    text = safe_str(value, sys.maxsize)
    return [kind, None if " at 0x" in text else text]


@cache
def environment() -> dict[str, str]:
    """Return the versions that may change what a recipe builds or can load."""
    packages = {
        name: version
        for name, version in package_versions().items()
        if name not in _HARMLESS_PACKAGES
    }
    return {**packages, "python": f"{sys.implementation.name} {sys.version_info[:2]}"}
