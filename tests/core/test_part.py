"""A part of a file is a file."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.core._part import open_part


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    made = tmp_path_factory.mktemp("part") / "whole"
    made.write_bytes(b"beforeTHE PARTafter")
    return made


steps = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(-1, 12)),
        st.tuples(st.just("seek"), st.integers(0, 12)),
        st.tuples(st.just("end"), st.integers(-8, 4)),
        st.tuples(st.just("skip"), st.integers(0, 4)),
    )
)


@given(steps)
def test_it_reads_like_a_file_of_its_own(path, steps):
    whole = io.BytesIO(b"THE PART")
    with open_part(path, 6, 14) as part:
        for step, number in steps:
            if step == "read":
                assert part.read(number) == whole.read(number)
            else:
                whence = {"seek": io.SEEK_SET, "end": io.SEEK_END, "skip": io.SEEK_CUR}[step]
                assert part.seek(number, whence) == whole.seek(number, whence)
            assert part.tell() == whole.tell()


def test_it_is_read_only_and_seekable(path):
    with open_part(path, 6, 14) as part:
        assert part.readable()
        assert part.seekable()
        assert not part.writable()
        assert list(part) == [b"THE PART"]
        with pytest.raises((OSError, ValueError)):
            part.seek(-1)


def test_an_empty_part_is_empty(path):
    with open_part(path, 6, 6) as part:
        assert part.read() == b""


def test_closing_it_closes_the_file(path):
    part = open_part(path, 6, 14)
    part.close()
    assert part.raw._file.closed
    part.close()
