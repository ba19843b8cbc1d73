"""Tables and wrapped lines for terminals: text is measured in columns, never cut silently."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

__all__ = ["Column", "Group", "display_width", "pad", "shorten", "table", "wrap"]

_BETWEEN_COLUMNS: Final = "  "
_BETWEEN_GROUPS: Final = " | "
_ELLIPSIS: Final = "..."


def display_width(text: str) -> int:
    """Return how many columns ``text`` takes up in a terminal."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return ``text`` filled up with spaces to ``width`` columns, at the left if ``right``."""
    filling = " " * max(0, width - display_width(text))
    return filling + text if right else text + filling


def shorten(text: str, width: int) -> str:
    """Return ``text``, or as much as fits ``width`` columns with dots that say so."""
    if display_width(text) <= width:
        return text
    return _head(text, max(0, width - len(_ELLIPSIS))) + _ELLIPSIS


def _head(text: str, width: int) -> str:
    """Return the longest beginning of ``text`` that fits ``width`` columns."""
    used = accumulate(map(_character_width, text))
    return text[: sum(1 for columns in used if columns <= width)]


def wrap(text: str, width: int, *, indent: str = "") -> list[str]:
    """Return ``text`` in lines of at most ``width`` columns, broken at spaces.

    A word that is wider than a line is broken too. Lines after the first start
    with ``indent``.
    """
    lines: list[str] = []
    line = ""
    for word in _short_words(text.split(), max(2, width - len(indent))):
        if line.strip() and display_width(line) + 1 + display_width(word) > width:
            lines.append(line)
            line = indent
        line += f" {word}" if line.strip() else word
    return [*lines, line]


def _short_words(words: Iterable[str], width: int) -> Iterator[str]:
    for word in words:
        rest = word
        while display_width(rest) > width:
            head = _head(rest, width)
            yield head
            rest = rest[len(head) :]
        yield rest


class Column(NamedTuple):
    """A column of a table: a header over one cell for each row."""

    header: str
    cells: tuple[str, ...]
    right: bool = True

    @property
    def width(self) -> int:
        """Columns that the widest of header and cells takes up."""
        return max(map(display_width, (self.header, *self.cells)))

    def lines(self) -> list[str]:
        """Return header and cells, all of the same width."""
        width = self.width
        return [pad(text, width, right=self.right) for text in (self.header, *self.cells)]


class Group(NamedTuple):
    """Columns that stand together: values, and the counts that hold for all of them."""

    values: tuple[Column, ...]
    counts: tuple[Column, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """Values and counts, as they are printed."""
        return (*self.values, *self.counts)

    @property
    def width(self) -> int:
        """Columns that the group takes up."""
        return sum(column.width + len(_BETWEEN_COLUMNS) for column in self.columns) - len(
            _BETWEEN_COLUMNS
        )


def table(key: Column, groups: Sequence[Group], width: int) -> list[str]:
    """Return the lines of a table, in as many blocks below each other as it takes.

    Each block starts with the ``key`` column. A group that is wider than a
    block is split, and its counts are repeated beside each part. A line is
    longer than ``width`` only if the key, one value and its counts are.
    """
    # Every group counts with its separator; the first one's is the narrower.
    room = width - key.width - len(_BETWEEN_COLUMNS) + len(_BETWEEN_GROUPS)
    lines: list[str] = []
    for block in _blocks([part for group in groups for part in _parts(group, room)], room):
        if lines:
            lines.append("")
        lines += _block_lines(key, block)
    return lines


def _parts(group: Group, room: int) -> Iterator[Group]:
    values: tuple[Column, ...] = ()
    for value in group.values:
        wider = (*values, value)
        if values and _room_of(Group(wider, group.counts)) > room:
            yield Group(values, group.counts)
            wider = (value,)
        values = wider
    yield Group(values, group.counts)


def _blocks(groups: Sequence[Group], room: int) -> Iterator[list[Group]]:
    block: list[Group] = []
    for group in groups:
        if block and sum(map(_room_of, [*block, group])) > room:
            yield block
            block = []
        block.append(group)
    if block:
        yield block


def _room_of(group: Group) -> int:
    return group.width + len(_BETWEEN_GROUPS)


def _block_lines(key: Column, groups: Sequence[Group]) -> list[str]:
    columns = [key.lines()]
    for index, group in enumerate(groups):
        texts = [column.lines() for column in group.columns]
        joined = [_BETWEEN_COLUMNS.join(row) for row in zip(*texts, strict=True)]
        between = _BETWEEN_GROUPS if index else _BETWEEN_COLUMNS
        columns.append([between + text for text in joined])
    header, *rows = ("".join(row).rstrip() for row in zip(*columns, strict=True))
    rule = "-" * max(map(display_width, (header, *rows)))
    return [header, rule, *rows]
