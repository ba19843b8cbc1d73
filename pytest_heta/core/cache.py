"""Knowledge bases kept between runs, found again by what they were built from.

    FOLDER/v1/KEY/entry.json   what the entry is; its time is that of its last use
    FOLDER/v1/KEY/saved/       what the recipe's ``save`` wrote
    FOLDER/v1/locks/KEY.lock   held by the process that builds, loads or removes
    FOLDER/v1/uses/KEY.*.lock  held, one for each use, for as long as it lasts
    FOLDER/v1/partial/         what is being written or removed

An entry is written beside the others and becomes visible by one rename, whole. It
stays while anybody uses it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

from filelock import BaseFileLock, Timeout

from pytest_heta.core._cache_entry import FORMAT_VERSION, SAVED, CacheEntry, files_below, touch
from pytest_heta.core._cache_key import (
    CacheKey,
    Unkeyed,
    description_digest,
    environment,
    is_cacheable,
)
from pytest_heta.core._leases import Lease, Leases
from pytest_heta.core._locks import acquire, file_lock
from pytest_heta.core._plain import canonical_json, exception_text
from pytest_heta.core._recipe_code import RecipeModules, code_digest, recipe_modules
from pytest_heta.core._recipe_state import UndescribableError
from pytest_heta.errors import CacheError

__all__ = [
    "CacheEntry",
    "CacheKey",
    "KnowledgeBaseCache",
    "PartialEntry",
    "Unkeyed",
    "is_cacheable",
]

_LAYOUT: Final = f"v{FORMAT_VERSION}"
_LEFTOVER_S: Final = 3600.0
_CLOCK_SLACK_S: Final = 2.0
"""File systems may round times down, and clocks differ a little."""


class PartialEntry(NamedTuple):
    """An entry that is being written.

    Attributes:
        folder: Its folder, under a name that nobody looks for.
        saved: The folder in there for the recipe's ``save``; it is empty.
    """

    folder: Path
    saved: Path


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
        self._leases = Leases(self._root / "uses")

    # -- keys -----------------------------------------------------------------

    def key_of(
        self, recipe: Any, *, name: str, benchmark: str, unit_id: str, documents: str
    ) -> CacheKey | Unkeyed | None:
        """Return the key of a knowledge base.

        Args:
            recipe: The recipe: its name, manifest, class, attributes and code count.
            name: Name of the knowledge base.
            benchmark: Name of the benchmark.
            unit_id: The run unit.
            documents: Digest of the unit's documents in their order.

        Returns:
            None if the recipe has no ``save`` and ``load``, or its manifest
            cannot be had; and why there is none if something that the recipe
            holds cannot be described.
        """
        if not is_cacheable(recipe):
            return None
        modules = recipe_modules(recipe)
        if modules not in self._code:
            self._code[modules] = code_digest(modules)
        try:
            described = description_digest(recipe)
        except UndescribableError as error:
            return Unkeyed(f"the knowledge base is not kept: the recipe's {error}")
        if described is None:
            return None
        recipe_name = str(getattr(recipe, "name", ""))
        parts = [
            FORMAT_VERSION,
            recipe_name,
            described,
            # Code that is in no file may be another one in the next run.
            self._code[modules] or f"unknown, run {self.run}",
            environment(),
            documents,
            unit_id,
            name,
        ]
        digest = sha256(canonical_json(parts)).hexdigest()
        return CacheKey(digest, recipe_name, benchmark, unit_id)

    # -- one entry, for the holder of its lock -----------------------------------

    async def lock(self, key: CacheKey) -> BaseFileLock:
        """Return the lock of a key, acquired; to be released by the caller.

        Raises:
            CacheError: if the folder cannot be written.
        """
        lock = self._lock(key.digest)
        try:
            await acquire(lock)
        except (OSError, NotImplementedError) as error:
            raise _unusable(error) from error
        return lock

    def lease(self, key: CacheKey) -> Lease:
        """Return a lease of a key: while it is held, nobody removes the entry.

        Raises:
            CacheError: if the folder cannot be written.
        """
        try:
            return self._leases.take(key.digest)
        except (OSError, NotImplementedError) as error:
            raise _unusable(error) from error

    def is_leased(self, key: CacheKey) -> bool:
        """Whether anybody uses the entry of a key."""
        return self._leases.has_any(key.digest)

    def _lock(self, digest: str) -> BaseFileLock:
        try:
            return file_lock(self._root / "locks" / f"{digest}.lock")
        except (OSError, NotImplementedError) as error:
            raise _unusable(error) from error

    def find(self, key: CacheKey) -> CacheEntry | None:
        """Return the entry of a key, checked and noted as used; None if there is none.

        An entry that is to be built anew is removed unless it is in use.

        Raises:
            CacheError: if the entry is damaged; it is removed, too.
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
        """Remove an entry unless it is in use; whether there is none now."""
        folder = self._root / key.digest
        return not folder.exists() or self._remove_unused(folder)

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
            What was removed. An entry that is being built or loaded stays, and
            so does one that any process still uses.
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

    def is_in_use(self, entry: CacheEntry) -> bool:
        """Whether a process is building, loading or using an entry."""
        leased = self._if_unlocked(entry.key, partial(self._leases.has_any, entry.key))
        return leased is not False

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
        for digest in self._leases.digests():
            self._if_unlocked(digest, partial(self._leases.has_any, digest))
        before = time.time() - _LEFTOVER_S
        with suppress(OSError):
            for leftover in (self._root / "partial").iterdir():
                if leftover.stat().st_mtime < before:
                    digest = leftover.name.partition("-")[0]
                    self._if_unlocked(digest, partial(shutil.rmtree, leftover, ignore_errors=True))

    def _remove_unlocked(self, digest: str) -> bool:
        return bool(self._if_unlocked(digest, partial(self._remove_unused, self._root / digest)))

    def _if_unlocked(self, digest: str, action: Callable[[], Any]) -> Any:
        """Do something while holding the lock of a key, unless another holds it."""
        try:
            with self._lock(digest).acquire(blocking=False):
                return action()
        except (Timeout, OSError, CacheError):
            return None

    def _remove_unused(self, folder: Path) -> bool:
        return not self._leases.has_any(folder.name) and self._remove(folder)

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
