"""Records in a file, one to a line, each of which says whether it is whole.

A line is the CRC-32 and the length of its payload, each as eight hexadecimal
digits with a blank behind, and the payload. Whatever became of a file, what is
whole in it is found: a byte that is wrong or missing costs the record it is in,
and no other. At a line end it costs none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from mmap import mmap
from typing import Final, NamedTuple
from zlib import crc32

__all__ = ["HEAD", "Record", "framed", "pieces", "scan"]

HEAD: Final = 18
"""Bytes of a line before its payload."""

_HEAD: Final = re.compile(rb"([0-9a-f]{8}) ([0-9a-f]{8}) ")


class Record(NamedTuple):
    """Where a payload is in a file.

    Attributes:
        offset: Its first byte.
        length: Its bytes.
    """

    offset: int
    length: int


def framed(payload: bytes) -> bytes:
    """Return the line of a payload, which has no line end and less than 4 GiB."""
    return b"%08x %08x %b\n" % (crc32(payload), len(payload), payload)


def scan(data: bytes | mmap) -> Iterator[Record]:
    """Yield the records that are whole, in their order."""
    return (record for record in pieces(data) if record is not None)


def pieces(data: bytes | mmap) -> Iterator[Record | None]:
    """Yield the records that are whole, and None for each damaged piece between them."""
    begin, size = 0, len(data)
    while begin < size:
        record = _record_at(data, begin)
        yield record
        if record is not None:
            begin = _after(data, record)
        else:
            line_end = data.find(b"\n", begin)
            begin = line_end + 1 if line_end >= 0 else size


def _record_at(data: bytes | mmap, begin: int) -> Record | None:
    head = _HEAD.fullmatch(data[begin : begin + HEAD])
    if head is None:
        return None
    offset, length = begin + HEAD, int(head[2], 16)
    if length > len(data) - offset or crc32(data[offset : offset + length]) != int(head[1], 16):
        return None
    return Record(offset, length)


def _after(data: bytes | mmap, record: Record) -> int:
    """Return where the next line begins: its record may be whole where the line end is not."""
    end = record.offset + record.length
    if data[end : end + 1] == b"\n":
        return end + 1
    # The line end is missing, or it became another byte.
    is_other = end + 1 == len(data) or _record_at(data, end + 1) is not None
    return end + 1 if is_other else end
