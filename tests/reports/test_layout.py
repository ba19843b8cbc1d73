"""Columns stay aligned whatever the script, and nothing is cut without dots."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.reports._layout import (
    Column,
    Group,
    display_width,
    pad,
    shorten,
    table,
    wrap,
)

TEXT = st.text("ab 中한é\u0301🚲", max_size=60)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("abc", 3),
        ("", 0),
        ("中文", 4),
        ("ｆｕ", 4),
        ("한국", 4),
        ("e\u0301", 1),
        ("a\u200db", 2),
        ("ｱ", 1),
    ],
)
def test_width_counts_the_columns_of_a_terminal(text, width):
    assert display_width(text) == width


@given(TEXT, st.integers(0, 80), st.booleans())
def test_padding_fills_up_to_the_width(text, width, right):
    padded = pad(text, width, right=right)
    assert display_width(padded) == max(width, display_width(text))
    assert padded.endswith(text) if right else padded.startswith(text)


@given(TEXT, st.integers(3, 80))
def test_what_is_shortened_fits_and_says_so(text, width):
    short = shorten(text, width)
    assert display_width(short) <= width
    assert short == text or (short.endswith("...") and text.startswith(short[:-3]))


@given(TEXT, st.integers(4, 80), st.sampled_from(["", "  "]))
def test_wrapping_loses_nothing_but_spaces(text, width, indent):
    lines = wrap(text, width, indent=indent)
    assert all(display_width(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(line.startswith(indent) for line in lines[1:])


def test_wrapping_breaks_at_spaces():
    assert wrap("one two three", 8, indent="  ") == ["one two", "  three"]
    assert wrap("", 8) == [""]
    assert wrap("abcdefghij kl", 4) == ["abcd", "efgh", "ij", "kl"]


def column(header, *cells):
    return Column(header, cells)


KEY = Column("mode", ("fts", "vector"), right=False)


def test_groups_stand_beside_each_other_while_they_fit():
    groups = [
        Group((column("a", "1", "22"), column("b", "3", "4")), (column("n", "5", "6"),)),
        Group((column("c", "7", "8"),)),
    ]
    assert table(KEY, groups, 80) == [
        "mode     a  b  n | c",
        "--------------------",
        "fts      1  3  5 | 7",
        "vector  22  4  6 | 8",
    ]


def test_a_group_that_does_not_fit_goes_below_and_a_wide_one_is_split_with_its_counts():
    groups = [
        Group((column("aaaa", "1", "2"), column("bbbb", "3", "4")), (column("n", "5", "6"),)),
        Group((column("c", "7", "8"),)),
    ]
    assert table(KEY, groups, 19) == [
        "mode    aaaa  n",
        "---------------",
        "fts        1  5",
        "vector     2  6",
        "",
        "mode    bbbb  n | c",
        "-------------------",
        "fts        3  5 | 7",
        "vector     4  6 | 8",
    ]


def test_a_name_that_is_too_wide_makes_its_line_longer():
    lines = table(KEY, [Group((column("x" * 30, "1", "2"),))], 20)
    assert "x" * 30 in lines[0]


def test_no_groups_are_no_lines():
    assert table(KEY, [], 80) == []


WORD = st.text("ab中é", min_size=1, max_size=8)
COLUMN = st.builds(lambda header, a, b: Column(header, (a, b)), WORD, WORD, WORD)
GROUP = st.builds(
    lambda values, counts: Group(tuple(values), tuple(counts)),
    st.lists(COLUMN, min_size=1, max_size=6),
    st.lists(COLUMN, max_size=2),
)


@given(st.lists(GROUP, max_size=5), st.integers(60, 150))
def test_every_cell_is_in_the_table_and_every_line_fits(groups, width):
    lines = table(KEY, groups, width)
    assert all(display_width(line) <= width for line in lines)
    headers = " ".join(line for line in lines if line.startswith("mode")).split()
    for group in groups:
        for value in group.values:
            assert value.header in headers
