"""Where the documents of a stage stand, in a few arrays: some 60 bytes a document.

A stage has a row of JSON for each document, and beside the rows a file of
numbers by which a row or a content is found without reading the others. Whoever
stages writes it; the other processes read it in one piece. Ids and keys are
found by their hash of 128 bits, which stands for the text itself.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, Final

from pytest_heta.errors import DuplicateIdError

__all__ = ["PLACES", "ROWS", "StageIndex", "StageIndexWriter"]

ROWS: Final = "index.jsonl"
"""One row for each document, in the benchmark's order."""

PLACES: Final = "places.bin"
"""Where rows and contents start, and which document has which id and key."""

_HASH_BYTES: Final = 16
_HIGHEST_BYTE: Final = 7
_HALVES: Final = Struct("<QQ")
_ROW: Final = Struct("<QQQ")
"""Both halves of a hash, and a number."""

_PARTS: Final = 64
_RECENT: Final = 1 << 14


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()


class _NumbersByText:
    """A map from texts to their numbers that holds no texts.

    Args:
        highs: First halves of the texts' hashes, sorted.
        lows: The other halves, in the same order.
        numbers: The numbers, in the same order.
    """

    def __init__(self, highs: array[int], lows: array[int], numbers: array[int]) -> None:
        self.columns = (highs, lows, numbers)

    def get(self, text: str) -> int | None:
        """Return the number of a text, None if it has none."""
        high, low = _HALVES.unpack(_hash(text))
        highs, lows, numbers = self.columns
        place = bisect_left(highs, high)
        while place < len(highs) and highs[place] == high:
            if lows[place] == low:
                return numbers[place]
            place += 1
        return None


class _TextNumbering:
    """Numbers texts in the order they come, and sorts their hashes at the end.

    They are sorted in parts, so that few of them are Python objects at a time.
    """

    def __init__(self) -> None:
        self._parts = [bytearray() for _ in range(_PARTS)]

    def add(self, text: str, number: int) -> None:
        """Give a text its number, higher than those before it."""
        digest = _hash(text)
        # By the highest bits of the first half, by which the map is sorted.
        self._parts[digest[_HIGHEST_BYTE] * _PARTS >> 8] += digest + number.to_bytes(8, "little")

    def finish(self) -> tuple[_NumbersByText, int | None]:
        """Return the map, and the first number whose text had another one before."""
        columns = array("Q"), array("Q"), array("Q")
        repeated: list[int] = []
        for part in self._parts:
            rows = sorted(_ROW.iter_unpack(part))
            part.clear()
            for column, values in zip(columns, zip(*rows, strict=True), strict=False):
                column.extend(values)
            # Of two equal ones the later one comes second.
            repeated += [row[2] for before, row in pairwise(rows) if before[:2] == row[:2]]
        return _NumbersByText(*columns), min(repeated, default=None)


class StageIndexWriter:
    """Writes the rows and the numbers of a stage.

    Args:
        folder: The stage's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: BinaryIO = (folder / ROWS).open("wb")
        self._row_starts, self._content_starts = array("Q", [0]), array("Q", [0])
        self._ids, self._keys = _TextNumbering(), _TextNumbering()

    def __enter__(self) -> StageIndexWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()

    def __len__(self) -> int:
        return len(self._row_starts) - 1

    def add(self, line: bytes, *, document_id: str, key: str, size: int) -> None:
        """Add a document: its row, and the size of its content."""
        number = len(self)
        self._ids.add(document_id, number)
        self._keys.add(key, number)
        self._rows.write(line)
        self._row_starts.append(self._row_starts[-1] + len(line))
        self._content_starts.append(self._content_starts[-1] + size)

    def finish(self, where: str) -> None:
        """Write the numbers.

        Raises:
            DuplicateIdError: if two documents have the same id.
        """
        self._rows.close()
        by_id, repeated = self._ids.finish()
        if repeated is not None:
            row = _read_row(self._folder, self._row_starts[repeated])
            raise DuplicateIdError(
                f"document id {row['document_id']!r} stands twice",
                where=where,
                hint="document ids are unique within a benchmark",
            )
        by_key, _ = self._keys.finish()
        with (self._folder / PLACES).open("wb") as file:
            for column in (
                self._row_starts,
                self._content_starts,
                *by_id.columns,
                *by_key.columns,
            ):
                column.tofile(file)


class StageIndex:
    """Finds the documents of a finished stage.

    Args:
        folder: The stage's folder.
        count: How many documents there are.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self._count = count
        with (folder / PLACES).open("rb") as file:
            self._row_starts = _read_column(file, count + 1)
            self._content_starts = _read_column(file, count + 1)
            self._by_id = _NumbersByText(*(_read_column(file, count) for _ in range(3)))
            self._by_key = _NumbersByText(*(_read_column(file, count) for _ in range(3)))
        self._all_keys: tuple[str, ...] | None = None
        # Responses name the same documents again and again.
        self._recent = lru_cache(_RECENT)(self._by_id.get)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, document_id: object) -> bool:
        """Whether there is a document of this id."""
        return isinstance(document_id, str) and self._recent(document_id) is not None

    def number(self, document_id: str) -> int | None:
        """Return the place of a document in the benchmark's order, None if there is none."""
        return self._by_id.get(document_id)

    def has_key(self, key: str) -> bool:
        """Whether a document has this key."""
        return self._by_key.get(key) is not None

    def content_place(self, key: str) -> tuple[int, int]:
        """Return where the content behind a key starts and ends.

        Raises:
            KeyError: if no document has the key.
        """
        number = self._number_of_key(key)
        return self._content_starts[number], self._content_starts[number + 1]

    def row(self, key: str) -> dict[str, Any]:
        """Return the row of the document behind a key.

        Raises:
            KeyError: if no document has the key.
        """
        return _read_row(self._folder, self._row_starts[self._number_of_key(key)])

    def lines(self, keys: Iterable[str]) -> Iterator[bytes]:
        """Yield the rows of documents as they stand in the file.

        Raises:
            KeyError: if no document has one of the keys.
        """
        return self._lines(map(self._number_of_key, keys))

    def keys(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the keys of documents by their places in the benchmark's order."""
        return tuple(json.loads(line)["key"] for line in self._lines(numbers))

    def all_keys(self) -> tuple[str, ...]:
        """Return the keys of all documents: the same tuple whenever it is asked for."""
        if self._all_keys is None:
            with (self._folder / ROWS).open(encoding="ascii", newline="\n") as rows:
                self._all_keys = tuple(json.loads(line)["key"] for line in rows)
        return self._all_keys

    def _number_of_key(self, key: str) -> int:
        number = self._by_key.get(key)
        if number is None:
            raise KeyError(key)
        return number

    def _lines(self, numbers: Iterable[int]) -> Iterator[bytes]:
        with (self._folder / ROWS).open("rb") as rows:
            for number in numbers:
                rows.seek(self._row_starts[number])
                yield rows.readline()


def _read_column(file: BinaryIO, count: int) -> array[int]:
    column = array("Q")
    column.fromfile(file, count)
    return column


def _read_row(folder: Path, start: int) -> dict[str, Any]:
    with (folder / ROWS).open("rb") as rows:
        rows.seek(start)
        row: dict[str, Any] = json.loads(rows.readline())
    return row
