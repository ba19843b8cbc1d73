"""Chunks and their places."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.recipes._parsing import ParsedDocument, parse_document
from pytest_heta.recipes._splitting import Splitter


@given(st.text(st.sampled_from("ab é咖🚲.\n\t "), max_size=120), st.integers(5, 40))
def test_a_chunk_of_text_is_what_stands_at_its_place(text, size):
    pieces = Splitter(size, 0).split(ParsedDocument("", text))
    assert all(text[piece.start : piece.end] == piece.text for piece in pieces)
    assert all(0 < len(piece.text) <= size for piece in pieces)
    # Nothing but white space is lost.
    assert "".join("".join(p.text for p in pieces).split()) == "".join(text.split())


def test_a_text_that_fits_is_one_chunk():
    assert Splitter(100, 0).split(ParsedDocument("", "  One.\n\nTwo. ")) == [
        (2, 12, "One.\n\nTwo.")
    ]


def test_a_document_without_text_has_no_chunk():
    assert Splitter(100, 0).split(ParsedDocument("", "")) == []
    assert Splitter(100, 0).split(ParsedDocument("", " \n\u3000\n")) == []


def test_neighbours_share_text_when_told_to():
    text = "one two three four five six seven eight"
    pieces = Splitter(20, 8).split(ParsedDocument("", text))
    assert any(a.end > b.start for a, b in pairwise(pieces))


def test_markdown_splits_at_headings_and_loses_its_markup():
    source = "---\ntitle: T\n---\n# One\n\nfirst *part*\n\n## Two\n\nsecond part\n\n[1]: http://x\n"
    document = parse_document(source.encode(), key="a.md", metadata={})
    pieces = Splitter(25, 0).split(document)
    assert [piece.text for piece in pieces] == ["One\n\nfirst part", "Two\n\nsecond part"]
    assert source[pieces[0].start : pieces[0].end] == "# One\n\nfirst *part*"
    assert source[pieces[1].start : pieces[1].end] == "## Two\n\nsecond part"


def test_markdown_that_is_all_markup_has_no_chunk():
    document = parse_document(b"<!-- nothing -->\n\n---\n", key="a.md", metadata={})
    assert Splitter(100, 0).split(document) == []
