"""Records that are whole are found in a file, whatever became of the rest."""

from itertools import accumulate
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.core.records import HEAD, framed, pieces, scan

PAYLOADS = [b'{"a":1}', "naïve 咖啡 🚲".encode(), b"", b'{"b":"0123456789abcdef"}']
FILE = b"".join(map(framed, PAYLOADS))


def found(data):
    return [data[record.offset : record.offset + record.length] for record in scan(data)]


def test_a_line_says_how_long_its_payload_is_and_what_it_adds_up_to():
    assert framed(b"ab") == b"%08x 00000002 ab\n" % crc32(b"ab")
    assert framed(b"ab")[HEAD:] == b"ab\n"


def test_a_whole_file():
    assert found(FILE) == PAYLOADS
    assert found(b"") == []


@pytest.mark.parametrize("end", range(len(FILE)))
def test_a_file_that_was_cut(end):
    whole = [sum(len(framed(p)) for p in PAYLOADS[: n + 1]) for n in range(len(PAYLOADS))]
    # Only its line end may be missing.
    assert found(FILE[:end]) == PAYLOADS[: sum(end >= size - 1 for size in whole)]


@pytest.mark.parametrize("place", range(len(FILE)))
def test_a_flipped_bit_costs_the_record_it_is_in_and_no_other(place):
    ends = list(accumulate(len(framed(payload)) for payload in PAYLOADS))
    hit = next(number for number, end in enumerate(ends) if place < end)
    at_line_end = place == ends[hit] - 1
    for bit in range(8):
        data = bytearray(FILE)
        data[place] ^= 1 << bit
        others = [p for number, p in enumerate(PAYLOADS) if number != hit]
        assert found(bytes(data)) == (PAYLOADS if at_line_end else others)


@pytest.mark.parametrize("place", range(len(FILE)))
def test_a_missing_byte_costs_at_most_one_record(place):
    assert len(found(FILE[:place] + FILE[place + 1 :])) >= len(PAYLOADS) - 1


def test_what_is_written_behind_a_torn_line_is_found():
    data = FILE[:-5] + b"\n" + framed(b"next")
    assert found(data) == [*PAYLOADS[:-1], b"next"]
    assert sum(piece is None for piece in pieces(data)) == 1


@given(st.binary())
def test_any_bytes_can_be_read(data):
    for record in scan(data):
        assert record.offset + record.length <= len(data)
