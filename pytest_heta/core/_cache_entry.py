"""One saved knowledge base in the cache: a folder of files, and one that describes them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Self

from pytest_heta.core._plain import canonical_json
from pytest_heta.errors import CacheError

__all__ = ["FORMAT_VERSION", "SAVED", "CacheEntry", "files_below"]

FORMAT_VERSION: Final = 1
"""Version of the cache's layout and of how its keys are made. Others are not read."""

SAVED: Final = "saved"
"""Folder of an entry that a recipe's ``save`` wrote."""

_ENTRY: Final = "entry.json"


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """What an entry says of itself.

    Attributes:
        key: Its key, which is its folder's name.
        recipe: Name of the recipe.
        benchmark: Name of the benchmark.
        unit_id: The run unit.
        build_seconds: Seconds inside the recipe's ``create``.
        created: When it was built, ISO 8601 in UTC.
        run: Token of the run that built it.
        size_bytes: Size of its files.
        files: Size and SHA-256 of each file, by its path below the saved folder.
        last_used: When it was built or loaded last, in seconds since 1970.
    """

    key: str
    recipe: str
    benchmark: str
    unit_id: str
    build_seconds: float
    created: str
    run: str
    size_bytes: int
    files: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    last_used: float = 0.0

    def write(self, folder: Path) -> None:
        """Write the description into the entry's folder."""
        about = asdict(self)
        del about["last_used"]
        about["format_version"] = FORMAT_VERSION
        whole = {"entry": about, "sha256": hashlib.sha256(canonical_json(about)).hexdigest()}
        (folder / _ENTRY).write_text(json.dumps(whole, indent=1), encoding="ascii")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the description of the entry in a folder.

        Raises:
            CacheError: if there is none, or it is not as it was written.
        """
        path = folder / _ENTRY
        try:
            whole = json.loads(path.read_bytes())
            about = whole["entry"]
            is_whole = hashlib.sha256(canonical_json(about)).hexdigest() == whole["sha256"]
            if is_whole and about.pop("format_version") == FORMAT_VERSION:
                used = path.stat().st_mtime
                files = {name: (size, digest) for name, (size, digest) in about["files"].items()}
                return cls(**{**about, "files": files, "last_used": used})
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CacheError(f"{_ENTRY} cannot be read: {type(error).__name__}") from error
        raise CacheError(f"{_ENTRY} has changed")

    def check(self, folder: Path) -> None:
        """Compare every file of the entry with its size and SHA-256.

        Raises:
            CacheError: naming the first file that is missing or another.
        """
        for name, (size, digest) in self.files.items():
            path = folder / SAVED / name
            try:
                has_size = path.stat().st_size == size
                is_same = has_size and file_digest(path) == digest
            except OSError as error:
                raise CacheError(f"{name} cannot be read: {type(error).__name__}") from error
            if not is_same:
                raise CacheError(f"{name} has changed")

    def as_json(self) -> dict[str, Any]:
        """Return the description without its files, for people and programs."""
        return {
            item.name: getattr(self, item.name) for item in fields(self) if item.name != "files"
        }


def touch(folder: Path) -> None:
    """Note that the entry in a folder is in use now."""
    with suppress(OSError):  # a folder that is read-only can still be read
        os.utime(folder / _ENTRY)


def files_below(folder: Path) -> dict[str, tuple[int, str]]:
    """Return size and SHA-256 of each file below a folder, by its relative path."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_size, file_digest(path))
        for path in sorted(_walk(folder))
    }


def _walk(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
