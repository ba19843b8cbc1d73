"""What a saved knowledge base is found by."""

from __future__ import annotations

import inspect
import sys
from functools import cache
from typing import Any, Final, NamedTuple

from pytest_heta.core._recipe_state import state_digest
from pytest_heta.core.snapshot import package_versions

__all__ = ["CacheKey", "Unkeyed", "description_digest", "environment", "is_cacheable"]

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


class Unkeyed(NamedTuple):
    """What stands in for the key of a knowledge base that has none.

    Attributes:
        reason: Why, for a warning.
    """

    reason: str


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
    """Return the hash of a recipe's manifest, class and attributes.

    Returns:
        None if the manifest cannot be had.

    Raises:
        UndescribableError: if something among them has a state that cannot be told.
    """
    manifest = getattr(recipe, "manifest", None)
    try:
        value = manifest() if callable(manifest) else manifest
    except Exception:  # noqa: BLE001 - the boundary to users' code
        return None
    if inspect.iscoroutine(value):
        value.close()
        return None
    return state_digest(recipe, value)


@cache
def environment() -> dict[str, str]:
    """Return the versions that may change what a recipe builds or can load."""
    packages = {
        name: version
        for name, version in package_versions().items()
        if name not in _HARMLESS_PACKAGES
    }
    return {**packages, "python": f"{sys.implementation.name} {sys.version_info[:2]}"}
