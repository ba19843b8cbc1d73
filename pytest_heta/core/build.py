"""The step that turns a run unit's documents into a knowledge base."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_heta.core._calls import (
    accepted_keywords,
    error_text,
    evaluation_error,
    later_keywords,
)
from pytest_heta.core._deadline import build_within
from pytest_heta.core._leases import Lease
from pytest_heta.core._loop import Called, call, is_coroutine_function
from pytest_heta.core._plain import exception_text, plain, portable_name
from pytest_heta.core._size import format_size
from pytest_heta.core.cache import CacheEntry, CacheKey, KnowledgeBaseCache, Unkeyed
from pytest_heta.errors import (
    BuildError,
    BuildTimeoutError,
    CacheError,
    DocumentUnavailableError,
    HetaError,
)
from pytest_heta.models import UnitBuild
from pytest_heta.protocols import ObjectStore

__all__ = [
    "BuiltKnowledgeBase",
    "available_modes",
    "build_error_type",
    "build_knowledge_base",
    "close_knowledge_base",
    "closes_on_loop",
    "failed_build",
    "knowledge_base_name",
]


class BuiltKnowledgeBase(NamedTuple):
    """A knowledge base, ready to be asked.

    Attributes:
        knowledge_base: The recipe's object.
        available_queries: Its query modes; empty if it does not say.
        build: How it came to be.
        lease: Keeps the saved files from being removed, None if there are none.
    """

    knowledge_base: Any
    available_queries: tuple[str, ...]
    build: UnitBuild
    lease: Lease | None = None

    def release(self) -> None:
        """Let the saved files go: after the knowledge base was closed."""
        if self.lease is not None:
            self.lease.release()


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
    cache: KnowledgeBaseCache | None = None,
    key: CacheKey | Unkeyed | None = None,
    limit_s: float | None = None,
) -> BuiltKnowledgeBase:
    """Build the knowledge base of one run unit, or load the one that was built before.

    The recipe's ``create``, ``save`` and ``load`` may be coroutine functions
    or ordinary ones, and are given those arguments that they take. What is
    wrong with the cache is a warning in the build's metadata, never an error.

    Args:
        recipe: The recipe.
        name: Name of the knowledge base.
        unit_id: The run unit.
        objects: Store that holds the unit's documents and no others.
        source_keys: Raw keys of the unit's documents, in the benchmark's order.
        workspace: Folder for what the recipe writes; it is made if the recipe
            takes it.
        cache: Where saved knowledge bases are, if any are kept.
        key: Key of this one, or why there is none; None if the recipe has no ``save``
            and ``load``.
        limit_s: Seconds that this may take, waiting for another process that
            builds the same left out; None for any time.

    Returns:
        The knowledge base, to be closed and then released. Its
        ``build.build_seconds`` is the time inside ``create`` alone, also when
        that was in another run.

    Raises:
        BuildError: if the recipe fails, or returns something that cannot be
            asked.
        BuildTimeoutError: if it takes too long.
    """
    where = f"run unit {unit_id}"
    given: dict[str, Any] = {
        "name": name,
        "objects": objects,
        "source_keys": tuple(source_keys),
        "workspace": workspace,
    }
    if cache is not None or "workspace" in accepted_keywords(recipe.create, given):
        _make_folder(workspace, where)
    if cache is None or key is None:
        return await build_within(_create(recipe, unit_id, given), limit_s, where)
    if isinstance(key, Unkeyed):
        built = await build_within(_create(recipe, unit_id, given), limit_s, where)
        return _warned(built, [key.reason])
    try:
        lock = await cache.lock(key)
    except CacheError as error:
        built = await build_within(_create(recipe, unit_id, given), limit_s, where)
        return _warned(built, [error.message])
    try:
        work = _load_or_create(recipe, unit_id, given, cache, key)
        return await build_within(work, limit_s, where)
    finally:
        lock.release()


async def _create(recipe: Any, unit_id: str, given: Mapping[str, Any]) -> BuiltKnowledgeBase:
    where = f"run unit {unit_id}"
    called = await call(recipe.create, **accepted_keywords(recipe.create, given))
    if called.error is not None:
        raise _build_error(called.error, where) from called.error
    modes = await _checked_modes(called.value, where, "`create` returns the knowledge base")
    manifest, metadata = await _manifest(called.value)
    build = UnitBuild(
        unit_id=unit_id,
        build_seconds=called.seconds,
        document_count=len(given["source_keys"]),
        knowledge_base_manifest=manifest,
        metadata=metadata,
    )
    return BuiltKnowledgeBase(called.value, modes, build)


async def _checked_modes(knowledge_base: Any, where: str, hint: str) -> tuple[str, ...]:
    """Return the query modes of what a recipe returned.

    Raises:
        BuildError: if it cannot be asked; it is closed.
    """
    if not callable(getattr(knowledge_base, "query", None)):
        kind = "None" if knowledge_base is None else f"a {type(knowledge_base).__name__}"
        raise BuildError(
            f"the recipe returned {kind}, which has no `query` method", where=where, hint=hint
        )
    try:
        return available_modes(knowledge_base)
    except Exception as error:
        await close_knowledge_base(knowledge_base)  # nobody else gets hold of it
        raise BuildError(
            f"`available_queries` cannot be read: {exception_text(error)}", where=where
        ) from error


# --- the cache, by the holder of the key's lock -------------------------------------


async def _load_or_create(
    recipe: Any,
    unit_id: str,
    given: Mapping[str, Any],
    cache: KnowledgeBaseCache,
    key: CacheKey,
) -> BuiltKnowledgeBase:
    warnings: list[str] = []
    try:
        loaded = await _load(recipe, unit_id, given, cache, key)
    except HetaError as error:
        warnings.append(f"the saved knowledge base was not used: {error.message}")
        await call(cache.discard, key)
    else:
        if loaded is not None:
            return loaded
    built = await _create(recipe, unit_id, given)
    try:
        lease, entry = await _save(recipe, built, cache, key)
    except CacheError as error:
        warnings.append(f"the knowledge base was not saved: {error.message}")
    else:
        built = built._replace(lease=lease)
        if entry.size_bytes > cache.max_bytes:
            warnings.append(
                "the knowledge base was not saved:"
                f" its {format_size(entry.size_bytes)} are more than the cache may take,"
                f" {format_size(cache.max_bytes)}"
            )
    return _warned(built, warnings)


async def _load(
    recipe: Any,
    unit_id: str,
    given: Mapping[str, Any],
    cache: KnowledgeBaseCache,
    key: CacheKey,
) -> BuiltKnowledgeBase | None:
    """Return the saved knowledge base, None if there is none.

    Raises:
        CacheError: if it is damaged, or the recipe cannot load it.
        BuildError: if what the recipe loads cannot be asked.
    """
    found = await call(cache.find, key)
    if found.error is not None:
        raise _cache_error(found.error)
    entry: CacheEntry | None = found.value
    if entry is None:
        return None
    lease = cache.lease(key)
    try:
        loaded = await _load_saved(recipe, given, cache.saved_at(key))
        manifest, metadata = await _manifest(loaded.value)
        is_from_before = entry.run != cache.run  # and not from another process of this run
        build = UnitBuild(
            unit_id=unit_id,
            build_seconds=entry.build_seconds,
            reused=is_from_before,
            load_seconds=found.seconds + loaded.seconds,
            document_count=len(given["source_keys"]),
            knowledge_base_manifest=manifest,
            metadata={**metadata, "first_built": entry.created} if is_from_before else metadata,
        )
    except BaseException:
        lease.release()
        raise
    return BuiltKnowledgeBase(loaded.value, loaded.modes, build, lease)


class _Loaded(NamedTuple):
    value: Any
    modes: tuple[str, ...]
    seconds: float


async def _load_saved(recipe: Any, given: Mapping[str, Any], path: Path) -> _Loaded:
    # Its files have just been compared with what was written.
    keywords = later_keywords(recipe.load, {**given, "verified": True})
    loaded = await _call_storage(recipe.load, path, **keywords)
    if loaded.error is not None:
        raise _cache_error(loaded.error)
    modes = await _checked_modes(loaded.value, str(path), "`load` returns the knowledge base")
    return _Loaded(loaded.value, modes, loaded.seconds)


async def _save(
    recipe: Any, built: BuiltKnowledgeBase, cache: KnowledgeBaseCache, key: CacheKey
) -> tuple[Lease, CacheEntry]:
    """Save a knowledge base for later runs, whole or not at all.

    Returns:
        A lease, as the knowledge base may read what was saved; and the entry.

    Raises:
        CacheError: if it cannot be saved, or what it would replace is in use.
    """
    if not (await call(cache.discard, key)).value:
        is_leased = cache.is_leased(key)
        raise CacheError(
            "the saved one is in use and stays" if is_leased else "the saved one cannot be removed"
        )
    lease = cache.lease(key)
    try:
        entry = await _publish(recipe, built, cache, key)
        await call(cache.keep_to_size, entry)
    except BaseException:
        lease.release()
        raise
    return lease, entry


async def _publish(
    recipe: Any, built: BuiltKnowledgeBase, cache: KnowledgeBaseCache, key: CacheKey
) -> CacheEntry:
    partial = cache.begin(key)
    try:
        saved = await _call_storage(recipe.save, built.knowledge_base, partial.saved)
        if saved.error is not None:
            raise _cache_error(saved.error)
        seconds = built.build.build_seconds or 0.0
        published = await call(cache.publish, key, partial, build_seconds=seconds)
        if published.error is not None:
            raise _cache_error(published.error)
    finally:
        cache.abandon(partial)
    entry: CacheEntry = published.value
    return entry


async def _call_storage(function: Any, /, *args: Any, **kwargs: Any) -> Called:
    """Call a recipe's ``save`` or ``load``: ending the process there is failing, too.

    Raises:
        CacheError: if it raises what is no `Exception`, such as `SystemExit`.
    """
    try:
        return await call(function, *args, **kwargs)
    except (KeyboardInterrupt, CancelledError, GeneratorExit):
        raise  # from outside
    except BaseException as error:
        raise CacheError(exception_text(error)) from error


def _cache_error(error: Exception) -> CacheError:
    return error if isinstance(error, CacheError) else CacheError(error_text(error))


def _warned(built: BuiltKnowledgeBase, warnings: Sequence[str]) -> BuiltKnowledgeBase:
    if not warnings:
        return built
    metadata = {**built.build.metadata, "cache_warnings": list(warnings)}
    return built._replace(build=built.build.model_copy(update={"metadata": metadata}))


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
        error=evaluation_error(error, build_error_type(error)),
    )


def build_error_type(error: BaseException) -> str:
    """Return the ``error_type`` of samples whose knowledge base was not built for ``error``."""
    if isinstance(error, DocumentUnavailableError):
        return "document_unavailable"
    return "timeout" if isinstance(error, BuildTimeoutError) else "build"


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


def _closing(knowledge_base: Any) -> Any:
    methods = (getattr(knowledge_base, name, None) for name in ("aclose", "close"))
    return next(filter(callable, methods), None)


def closes_on_loop(knowledge_base: Any) -> bool:
    """Whether `close_knowledge_base` would await a coroutine function."""
    function = _closing(knowledge_base)
    return function is not None and is_coroutine_function(function)


async def close_knowledge_base(knowledge_base: Any) -> str | None:
    """Close a knowledge base by its ``aclose`` or ``close``, if it has one.

    Returns:
        Why it could not be closed, for a warning; results are not affected.
    """
    function = _closing(knowledge_base)
    if function is None:
        return None
    called = await call(function)
    return None if called.error is None else exception_text(called.error)


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
