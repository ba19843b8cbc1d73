"""All that is wrong or odd about a dataset's files, where loading stops at the first fault."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_heta.benchmarks._places import location
from pytest_heta.benchmarks._reading import read_lines, record_of
from pytest_heta.benchmarks._record import Record
from pytest_heta.errors import DatasetInvalidError, HetaError, first_of

__all__ = ["CheckedFiles", "FilesCheck"]

MOST_ERRORS: Final = 20
"""Errors of one file that are told; a file in another layout has one on each line."""

_BOM: Final = b"\xef\xbb\xbf"
_SHOWN: Final = 3
# U+FFFD stands for what could not be read; the others are UTF-8 that was read
# as Latin-1 or cp1252, such as "Ã©". Both also as JSON may write them.
_DOUBTFUL: Final = re.compile(
    "\ufffd|(?<![A-ZÀ-Þ])[ÂÃ][\u0080-\u00bf]|â€"
    r"|\\u[fF]{3}[dD]|(?<![A-Z])\\u00[cC][23]\\u00[89abAB]|\\u00[eE]2\\u20[aA][cC]"
)


class CheckedFiles(NamedTuple):
    """What was found in the files of a dataset.

    Attributes:
        errors: What loading would refuse; of each file the first ones.
        oddities: Stable name and text of each warning.
    """

    errors: tuple[HetaError, ...]
    oddities: tuple[tuple[str, str], ...]


class _Ids(NamedTuple):
    place: str
    amount: int


class FilesCheck:
    """Notes what is wrong or odd while a dataset's files are read line by line."""

    def __init__(self) -> None:
        self._errors: dict[Path, list[HetaError]] = {}
        self._doubtful: dict[Path, list[str]] = {}
        self._ids: dict[str, dict[str, _Ids]] = {}
        self._marked: list[Path] = []

    def note(self, error: HetaError, path: Path) -> None:
        """Note what is wrong with a file."""
        self._errors.setdefault(path, []).append(error)

    @contextmanager
    def noting(self, path: Path, *, only_if_right: bool = False) -> Iterator[None]:
        """Note an error of what is done meanwhile with a file, and go on.

        Args:
            path: The file.
            only_if_right: Whether the error is left out where others are noted.
        """
        try:
            yield
        except HetaError as error:
            if not (only_if_right and path in self._errors):
                self.note(error, path)

    def is_right(self, path: Path) -> bool:
        """Whether nothing was wrong with a file so far."""
        return path not in self._errors

    def lines(self, path: Path, expected: str) -> Iterator[tuple[int, str]]:
        """Yield the lines of a file that can be read, as `read_lines` does."""
        if _starts_with_mark(path):
            self._marked.append(path)
        with self.noting(path):
            for number, line in read_lines(path, expected, lambda error: self.note(error, path)):
                if _DOUBTFUL.search(line):
                    self._doubtful.setdefault(path, []).append(location(path, number))
                yield number, line

    def records(self, path: Path, expected: str) -> Iterator[Record]:
        """Yield the records of a file that can be read, as `read_records` does."""
        found = False
        for number, line in self.lines(path, expected):
            found = True
            with self.noting(path):
                yield record_of(path, number, line)
        if not found and self.is_right(path):
            self.note(DatasetInvalidError("the file holds no record", where=location(path)), path)

    def note_id(self, kind: str, value: Any, record: Record) -> None:
        """Note how an id is written.

        Args:
            kind: What it is the id of, such as ``document``.
            value: The id as it stands in the file.
            record: Where it stands.
        """
        if isinstance(value, str):
            written = "strings"
        elif isinstance(value, int | float) and not isinstance(value, bool):
            written = "numbers"
        else:
            return  # no id: an error
        known = self._ids.setdefault(kind, {}).get(written, _Ids(record.where, 0))
        self._ids[kind][written] = known._replace(amount=known.amount + 1)

    def result(self) -> CheckedFiles:
        """Return what was noted."""
        return CheckedFiles(tuple(self._told_errors()), tuple(self._oddities()))

    def _told_errors(self) -> Iterator[HetaError]:
        for path, errors in self._errors.items():
            yield from errors[:MOST_ERRORS]
            more = len(errors) - MOST_ERRORS
            if more > 0:
                message = f"{more} more {'errors' if more > 1 else 'error'} in this file"
                yield DatasetInvalidError(message, where=location(path))

    def _oddities(self) -> Iterator[tuple[str, str]]:
        for path in self._marked:
            yield "byte-order-mark", f"a byte order mark at the beginning of {location(path)}"
        for places in self._doubtful.values():
            shown = first_of(places, _SHOWN)
            yield (
                "doubtful-encoding",
                f"lines with characters that a conversion has spoilt: {len(places)} ({shown})",
            )
        for kind, ids in self._ids.items():
            if len(ids) > 1:
                each = " and ".join(
                    f"{found.amount} {written} (first at {found.place})"
                    for written, found in ids.items()
                )
                yield "mixed-ids", f"{kind} ids are {each}"


def _starts_with_mark(path: Path) -> bool:
    # A pipe would never open.
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                return file.read(len(_BOM)) == _BOM
    return False
