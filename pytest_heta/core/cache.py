"""Knowledge bases kept between runs, found again by what they were built from.

    FOLDER/v1/KEY/entry.json   what the entry is; its time is that of its last use
    FOLDER/v1/KEY/saved/       what the recipe's ``save`` wrote
    FOLDER/v1/locks/KEY.lock   held by the process that builds, loads or removes
    FOLDER/v1/partial/         what is being written or removed

An entry is written beside the others and becomes visible by one rename, whole.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

from filelock import FileLock, Timeout

from pytest_heta.core._cache_entry import FORMAT_VERSION, SAVED, CacheEntry, files_below, touch
from pytest_heta.core._loop import _on_loop
from pytest_heta.core._plain import canonical_json, exception_text, plain, safe_str
from pytest_heta.core._recipe_code import RecipeModules, code_digest, recipe_modules
from pytest_heta.core.snapshot import package_versions
from pytest_heta.errors import CacheError

__all__ = [
    "DEFAULT_MAX_BYTES",
    "CacheEntry",
    "CacheKey",
    "KnowledgeBaseCache",
    "PartialEntry",
    "is_cacheable",
]

DEFAULT_MAX_BYTES: Final = 2 << 30
"""What saved knowledge bases may take, if nobody says otherwise."""


_LAYOUT: Final = f"v{FORMAT_VERSION}"
_LOCK_POLL_S: Final = 0.02
_LEFTOVER_S: Final = 3600.0
_CLOCK_SLACK_S: Final = 2.0
"""File systems may round times down, and clocks differ a little."""

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


class PartialEntry(NamedTuple):
    """An entry that is being written.

    Attributes:
        folder: Its folder, under a name that nobody looks for.
        saved: The folder in there for the recipe's ``save``; it is empty.
    """

    folder: Path
    saved: Path


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


class KnowledgeBaseCache:
    """A folder of saved knowledge bases, which any number of processes may share.

    Args:
        folder: The folder; it is made when something is kept.
        max_bytes: What the entries may take together. The least recently used
            go first; those that this run has used stay while it lasts.
        rebuild: Whether entries of other runs are built anew.
        run: A token that all processes of a run share.
        since: When the run began, in seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int,
        rebuild: bool = False,
        run: str | None = None,
        since: float | None = None,
    ) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self.rebuild = rebuild
        self.run = run or uuid4().hex
        self._root = folder / _LAYOUT
        self._since = (time.time() if since is None else since) - _CLOCK_SLACK_S
        self._code: dict[RecipeModules, str | None] = {}
        self._known_bytes: int | None = None

    # -- keys -----------------------------------------------------------------

    def key_of(
        self, recipe: Any, *, name: str, benchmark: str, unit_id: str, documents: str
    ) -> CacheKey | None:
        """Return the key of a knowledge base.

        Args:
            recipe: The recipe: its name, manifest and code count.
            name: Name of the knowledge base.
            benchmark: Name of the benchmark.
            unit_id: The run unit.
            documents: Digest of the unit's documents in their order.

        Returns:
            None if the recipe has no ``save`` and ``load``, or its manifest
            cannot be had.
        """
        if not is_cacheable(recipe):
            return None
        modules = recipe_modules(recipe)
        if modules not in self._code:
            self._code[modules] = code_digest(modules)
        described = _description_digest(recipe)
        if described is None:
            return None
        recipe_name = str(getattr(recipe, "name", ""))
        parts = [
            FORMAT_VERSION,
            recipe_name,
            described,
            # Code that is in no file may be another one in the next run.
            self._code[modules] or f"unknown, run {self.run}",
            _environment(),
            documents,
            unit_id,
            name,
        ]
        digest = sha256(canonical_json(parts)).hexdigest()
        return CacheKey(digest, recipe_name, benchmark, unit_id)

    # -- one entry, for the holder of its lock -----------------------------------

    async def lock(self, key: CacheKey) -> FileLock:
        """Return the lock of a key, acquired; to be released by the caller.

        Raises:
            CacheError: if the folder cannot be written.
        """
        lock = self._lock(key.digest)
        while True:
            try:
                lock.acquire(blocking=False)
            except Timeout:
                # Waiting on the loop would keep its holder from going on.
                if _on_loop():
                    await asyncio.sleep(_LOCK_POLL_S)
                else:
                    time.sleep(_LOCK_POLL_S)  # noqa: ASYNC251 - there is no loop to stop
            except (OSError, NotImplementedError) as error:
                raise _unusable(error) from error
            else:
                return lock

    def _lock(self, digest: str) -> FileLock:
        path = self._root / "locks" / f"{digest}.lock"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return FileLock(path, thread_local=False)
        except (OSError, NotImplementedError) as error:
            raise _unusable(error) from error

    def find(self, key: CacheKey) -> CacheEntry | None:
        """Return the entry of a key, checked and noted as used; None if there is none.

        An entry that is to be built anew is removed.

        Raises:
            CacheError: if the entry is damaged; it is removed.
        """
        folder = self._root / key.digest
        if not folder.exists():
            return None
        try:
            entry = CacheEntry.read(folder)
            if self.rebuild and entry.run != self.run:
                self.discard(key)
                return None
            entry.check(folder)
        except CacheError:
            self.discard(key)
            raise
        touch(folder)
        return entry

    def saved_at(self, key: CacheKey) -> Path:
        """Return the folder that the recipe's ``save`` wrote for an entry."""
        return self._root / key.digest / SAVED

    def discard(self, key: CacheKey) -> bool:
        """Remove an entry; whether it is gone."""
        return self._remove(self._root / key.digest)

    def begin(self, key: CacheKey) -> PartialEntry:
        """Make the folder of an entry to be written, and remove what killed processes left.

        Raises:
            CacheError: if it cannot be made.
        """
        place = self._root / "partial"
        try:
            for leftover in place.glob(f"{key.digest}-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            folder = place / f"{key.digest}-{uuid4().hex[:8]}"
            (folder / SAVED).mkdir(parents=True)
        except OSError as error:
            raise _unusable(error) from error
        return PartialEntry(folder, folder / SAVED)

    def publish(self, key: CacheKey, written: PartialEntry, *, build_seconds: float) -> CacheEntry:
        """Make an entry visible whose files have been written.

        Raises:
            CacheError: if that fails.
        """
        try:
            files = files_below(written.saved)
            entry = CacheEntry(
                key=key.digest,
                recipe=key.recipe,
                benchmark=key.benchmark,
                unit_id=key.unit_id,
                build_seconds=build_seconds,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                run=self.run,
                size_bytes=sum(size for size, _ in files.values()),
                files=files,
            )
            entry.write(written.folder)
            written.folder.rename(self._root / key.digest)
        except OSError as error:
            raise _unusable(error) from error
        return entry

    def abandon(self, written: PartialEntry) -> None:
        """Remove an entry that was not published; nothing happens to a published one."""
        shutil.rmtree(written.folder, ignore_errors=True)

    # -- all entries ----------------------------------------------------------

    def entries(self) -> list[CacheEntry]:
        """Return the whole entries, the least recently used first."""
        found = []
        for folder in self._folders():
            with suppress(CacheError):
                found.append(CacheEntry.read(folder))
        return sorted(found, key=lambda entry: (entry.last_used, entry.key))

    def keep_to_size(self, published: CacheEntry) -> None:
        """Prune when an entry that was just published makes the cache too large."""
        if self._known_bytes is None:
            self._known_bytes = sum(entry.size_bytes for entry in self.entries())
        else:
            self._known_bytes += published.size_bytes
        # One that is too large by itself goes at the end; no other has to for it.
        if published.size_bytes <= self.max_bytes < self._known_bytes:
            self.prune()

    def prune(self, *, all_runs: bool = False) -> list[CacheEntry]:
        """Remove the least recently used entries until the others fit, and all leftovers.

        Args:
            all_runs: Whether entries that this run has used may go, too.

        Returns:
            What was removed. An entry that is being built or loaded stays.
        """
        self._sweep()
        entries = self.entries()
        total = sum(entry.size_bytes for entry in entries if entry.size_bytes <= self.max_bytes)
        removed = []
        for entry in entries:
            fits = entry.size_bytes <= self.max_bytes
            if fits and total <= self.max_bytes:
                continue
            if entry.last_used >= self._since and not all_runs:
                continue
            if self._remove_unlocked(entry.key):
                removed.append(entry)
                total -= entry.size_bytes if fits else 0
        self._known_bytes = total
        return removed

    def _folders(self) -> list[Path]:
        try:
            return [path for path in self._root.iterdir() if _is_key(path.name)]
        except OSError:
            return []

    def _sweep(self) -> None:
        """Remove damaged entries, and what killed processes left long ago."""
        for folder in self._folders():
            try:
                CacheEntry.read(folder)
            except CacheError:
                self._remove_unlocked(folder.name)
        before = time.time() - _LEFTOVER_S
        with suppress(OSError):
            for leftover in (self._root / "partial").iterdir():
                if leftover.stat().st_mtime < before:
                    digest = leftover.name.partition("-")[0]
                    self._if_unlocked(digest, partial(shutil.rmtree, leftover, ignore_errors=True))

    def _remove_unlocked(self, digest: str) -> bool:
        return bool(self._if_unlocked(digest, lambda: self._remove(self._root / digest)))

    def _if_unlocked(self, digest: str, action: Callable[[], Any]) -> Any:
        """Do something while holding the lock of a key, unless another holds it."""
        try:
            with self._lock(digest).acquire(blocking=False):
                return action()
        except (Timeout, OSError, CacheError):
            return None

    def _remove(self, folder: Path) -> bool:
        # Renamed first: nobody must see it when it is half gone.
        gone = self._root / "partial" / f"{folder.name}-{uuid4().hex[:8]}"
        try:
            gone.parent.mkdir(exist_ok=True)
            folder.rename(gone)
        except OSError:
            return False
        shutil.rmtree(gone, ignore_errors=True)
        return True


def _is_key(name: str) -> bool:
    return len(name) == sha256().digest_size * 2


def _unusable(error: Exception) -> CacheError:
    return CacheError(f"the cache cannot be used: {exception_text(error)}")


def _description_digest(recipe: Any) -> str | None:
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
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
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
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', kind)}"
    text = safe_str(value, sys.maxsize)
    return [kind, None if " at 0x" in text else text]


@cache
def _environment() -> dict[str, str]:
    """Return the versions that may change what a recipe builds or can load."""
    packages = {
        name: version
        for name, version in package_versions().items()
        if name not in _HARMLESS_PACKAGES
    }
    return {**packages, "python": f"{sys.implementation.name} {sys.version_info[:2]}"}
