"""The step that turns a run unit's documents into a knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_heta.core._calls import accepted_keywords, evaluation_error
from pytest_heta.core._loop import call
from pytest_heta.core._plain import exception_text, plain, portable_name
from pytest_heta.errors import BuildError
from pytest_heta.models import UnitBuild
from pytest_heta.protocols import ObjectStore

__all__ = [
    "BuiltKnowledgeBase",
    "available_modes",
    "build_knowledge_base",
    "close_knowledge_base",
    "failed_build",
    "knowledge_base_name",
]


@dataclass(frozen=True, slots=True)
class BuiltKnowledgeBase:
    """A knowledge base, ready to be asked.

    Attributes:
        knowledge_base: The recipe's object.
        available_queries: Its query modes; empty if it does not say.
        build: How it came to be.
    """

    knowledge_base: Any
    available_queries: tuple[str, ...]
    build: UnitBuild


def knowledge_base_name(benchmark: str, unit: str, recipe: str = "") -> str:
    """Return the name of a unit's knowledge base: portable, the same in every run.

    It begins with ``{benchmark}-{unit}`` and ends in a hash that tells apart
    what would otherwise read alike.
    """
    return portable_name(f"{benchmark}-{unit}", benchmark, unit, recipe)


async def build_knowledge_base(
    recipe: Any,
    *,
    name: str,
    unit_id: str,
    objects: ObjectStore,
    source_keys: Sequence[str],
    workspace: Path,
) -> BuiltKnowledgeBase:
    """Build the knowledge base of one run unit.

    The recipe's ``create`` may be a coroutine function or an ordinary one,
    and is given those arguments that it takes.

    Args:
        recipe: The recipe.
        name: Name of the knowledge base.
        unit_id: The run unit.
        objects: Store that holds the unit's documents and no others.
        source_keys: Raw keys of the unit's documents, in the benchmark's order.
        workspace: Folder for what the recipe writes; it is made.

    Returns:
        The knowledge base. Its ``build.build_seconds`` is the time inside
        ``create`` alone.

    Raises:
        BuildError: if the recipe fails, or returns something that cannot be
            asked.
    """
    where = f"run unit {unit_id}"
    _make_folder(workspace, where)
    given = {
        "name": name,
        "objects": objects,
        "source_keys": tuple(source_keys),
        "workspace": workspace,
    }
    called = await call(recipe.create, **accepted_keywords(recipe.create, given))
    if called.error is not None:
        raise _build_error(called.error, where) from called.error
    knowledge_base = called.value
    if not callable(getattr(knowledge_base, "query", None)):
        kind = "None" if knowledge_base is None else f"a {type(knowledge_base).__name__}"
        raise BuildError(
            f"the recipe returned {kind}, which has no `query` method",
            where=where,
            hint="`create` returns the knowledge base",
        )
    try:
        modes = available_modes(knowledge_base)
    except Exception as error:
        await close_knowledge_base(knowledge_base)  # nobody else gets hold of it
        raise BuildError(
            f"`available_queries` cannot be read: {exception_text(error)}", where=where
        ) from error
    manifest, metadata = await _manifest(knowledge_base)
    build = UnitBuild(
        unit_id=unit_id,
        build_seconds=called.seconds,
        document_count=len(source_keys),
        knowledge_base_manifest=manifest,
        metadata=metadata,
    )
    return BuiltKnowledgeBase(knowledge_base, modes, build)


def _make_folder(path: Path, where: str) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(
            f"its folder cannot be made: {exception_text(error)}", where=where
        ) from error


def _build_error(error: Exception, where: str) -> BuildError:
    if isinstance(error, BuildError):
        return BuildError(error.message, where=error.where or where, hint=error.hint)
    return BuildError(exception_text(error), where=where)


def failed_build(unit_id: str, error: BaseException, document_count: int = 0) -> UnitBuild:
    """Return the record of a build that failed with ``error``."""
    return UnitBuild(
        unit_id=unit_id,
        document_count=document_count,
        error=evaluation_error(error, "build"),
    )


def available_modes(knowledge_base: Any) -> tuple[str, ...]:
    """Return the query modes of a knowledge base in a stable order, () if it has none."""
    declared = getattr(knowledge_base, "available_queries", None)
    if callable(declared):
        declared = declared()
    if declared is None:
        return ()
    if isinstance(declared, str):
        return (declared,)
    # A set has no order of its own.
    return tuple(sorted(declared) if isinstance(declared, set | frozenset) else declared)


async def close_knowledge_base(knowledge_base: Any) -> str | None:
    """Close a knowledge base by its ``aclose`` or ``close``, if it has one.

    Returns:
        Why it could not be closed, for a warning; results are not affected.
    """
    for method in ("aclose", "close"):
        function = getattr(knowledge_base, method, None)
        if callable(function):
            called = await call(function)
            return None if called.error is None else exception_text(called.error)
    return None


async def _manifest(knowledge_base: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the knowledge base says of itself, and why it does not."""
    function = getattr(knowledge_base, "manifest", None)
    if not callable(function):
        return {}, {}
    called = await call(function)
    if called.error is not None:
        return {}, {"manifest_error": exception_text(called.error)}
    value = plain(called.value)
    return (value, {}) if isinstance(value, dict) else ({"manifest": value}, {})
