"""Who is using a saved knowledge base: one locked file for each use.

The lock of an entry is held while it is built, loaded or removed; its files may
be read for much longer. A lease says so until it is released or its process
ends, in whatever way: the system frees the lock then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from filelock import BaseFileLock

from pytest_heta.core._locks import file_lock, is_held

__all__ = ["Lease", "Leases"]


class Lease:
    """One use of an entry, which keeps it from being removed.

    Args:
        lock: The acquired lock of the lease's own file.
    """

    def __init__(self, lock: BaseFileLock) -> None:
        self._lock = lock

    def release(self) -> None:
        """End the use; nothing happens the second time."""
        if self._lock.is_locked:
            self._lock.release()
            _remove(Path(self._lock.lock_file))


class Leases:
    """The leases of all entries: files ``KEY.RANDOM.lock`` in one folder.

    Only the holder of an entry's lock takes its leases or looks at them: a file
    that is there but not locked yet would look like that of a dead process.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, digest: str) -> Lease:
        """Return a new lease of an entry.

        Raises:
            OSError: if its file cannot be written.
            NotImplementedError: if the file system has no locks.
        """
        lock = file_lock(self._folder / f"{digest}.{uuid4().hex[:16]}.lock")
        lock.acquire(blocking=False)
        return Lease(lock)

    def has_any(self, digest: str) -> bool:
        """Whether an entry is in use; the leases that dead processes left are removed."""
        alive = [_is_alive(path) for path in self._files(digest)]
        return any(alive)

    def digests(self) -> set[str]:
        """Return the keys of entries that have leases, of whatever process."""
        return {path.name.partition(".")[0] for path in self._files("*")}

    def _files(self, digest: str) -> Iterator[Path]:
        return self._folder.glob(f"{digest}.*.lock")


def _is_alive(path: Path) -> bool:
    try:
        if is_held(file_lock(path)):
            return True
    except (OSError, NotImplementedError):
        return True  # nobody knows
    _remove(path)
    return False


def _remove(path: Path) -> None:
    with suppress(OSError):  # the next one to prune tries again
        path.unlink(missing_ok=True)
