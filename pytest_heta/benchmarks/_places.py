"""How messages name files and lines, and where a user's path is."""

from __future__ import annotations

from pathlib import Path

from pytest_heta.errors import DatasetNotFoundError

__all__ = ["located", "location", "missing_file"]


def location(path: Path, line: int | None = None) -> str:
    """Return ``file`` or ``file:line`` as text that every encoding can write."""
    # A file name that is not UTF-8 has lone surrogates, which cannot be printed.
    text = str(path).encode("utf-8", "backslashreplace").decode("utf-8")
    return text if line is None else f"{text}:{line}"


def located(path: Path, root_dir: Path) -> Path:
    """Return where a path given by the user is.

    A relative path is looked up in ``root_dir`` and, if there is nothing,
    in the current directory.
    """
    below_root = root_dir / path
    return below_root if below_root.exists() else Path.cwd() / path


def missing_file(path: Path, expected: str) -> DatasetNotFoundError:
    """Return the error for a file that is not there.

    Args:
        path: The file.
        expected: What the folder should hold.
    """
    folder = path.parent
    if folder.is_dir():
        return DatasetNotFoundError(
            f"file {path.name!r} is missing", where=location(folder), hint=f"expected: {expected}"
        )
    return DatasetNotFoundError(
        f"the folder does not exist, so there is no file {path.name!r}",
        where=location(folder),
        hint=f"expected: {expected}",
    )
