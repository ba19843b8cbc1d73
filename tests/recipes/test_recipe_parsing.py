"""Bytes to text: encodings, media types, titles."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.errors import BuildError
from pytest_heta.recipes._parsing import clean_surrogates, parse_document

TEXT = "naïve 咖啡 🚲"


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode("utf-8"),
        codecs.BOM_UTF8 + TEXT.encode("utf-8"),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"),
        codecs.BOM_UTF32_BE + TEXT.encode("utf-32-be"),
    ],
)
def test_text_is_the_same_with_and_without_a_byte_order_mark(data):
    parsed = parse_document(data, key="a.txt", metadata={})
    assert (parsed.text, parsed.replaced) == (TEXT, False)


@given(
    st.text(st.characters(exclude_categories=["Cs"])).filter(lambda t: not t.startswith("\ufeff"))
)
def test_every_utf8_text_is_read_back(text):
    assert parse_document(text.encode("utf-8"), key="a", metadata={}).text == text


def test_bytes_that_are_no_text_are_an_error_that_names_the_document():
    with pytest.raises(BuildError) as caught:
        parse_document(b"abc\xff\xfe", key="raw/x/doc7/a.txt", metadata={})
    line = str(caught.value)
    assert line.startswith("[build-failed] raw/x/doc7/a.txt: the document is not UTF-8 text")
    assert "byte 0xff at offset 3" in line
    assert "encoding_errors='replace'" in line
    assert "\n" not in line


def test_bytes_that_are_no_text_can_be_replaced():
    parsed = parse_document(b"abc\xffdef", key="a.txt", metadata={}, errors="replace")
    assert (parsed.text, parsed.replaced) == ("abc\ufffddef", True)


def test_half_a_utf16_unit_is_an_error_of_that_encoding():
    with pytest.raises(BuildError, match="not UTF-16 text"):
        parse_document(codecs.BOM_UTF16_LE + b"a\x00b", key="a.txt", metadata={})


@pytest.mark.parametrize(
    ("key", "metadata", "is_markdown"),
    [
        ("a.txt", {}, False),
        ("a", {}, False),
        ("7.2", {}, False),
        ("a.md", {}, True),
        ("a.MARKDOWN", {"media_type": "text/plain"}, True),
        ("a.md", {"media_type": "application/octet-stream"}, True),
        ("a.txt", {"media_type": "text/markdown; charset=utf-8"}, True),
        ("a.txt", {"media_type": "text/x-markdown"}, True),
        ("a.md", {"media_type": "text/csv"}, False),
        ("a.json", {"media_type": "application/json"}, False),
        ("hash", {"name": "readme.md"}, True),
        ("a.md", {"media_type": None}, True),
    ],
)
def test_markdown_is_told_by_media_type_and_then_by_the_ending(key, metadata, is_markdown):
    parsed = parse_document(b"# A\n\ntext", key=key, metadata=metadata)
    assert parsed.is_markdown is is_markdown
    assert parsed.title == ("A" if is_markdown else "")


@pytest.mark.parametrize(
    ("key", "metadata", "media_type"),
    [
        ("a.pdf", {}, "application/pdf"),
        ("a.PDF", {"media_type": "text/plain"}, "application/pdf"),
        ("a", {"media_type": "application/pdf"}, "application/pdf"),
        ("a.html", {}, "text/html"),
        ("a.txt", {"media_type": "text/html"}, "text/html"),
        ("a.png", {}, "image/png"),
    ],
)
def test_what_is_not_text_is_an_error_that_names_its_type(key, metadata, media_type):
    with pytest.raises(BuildError, match=f"text and Markdown, not {media_type}") as caught:
        parse_document(b"hello", key=key, metadata=metadata)
    assert caught.value.where == key


@pytest.mark.parametrize("absent", [{}, {"title": None}, {"title": ""}, {"title": " \n"}])
def test_an_absent_title_is_empty(absent):
    assert parse_document(b"text", key="a.txt", metadata=absent).title == ""


@pytest.mark.parametrize(
    ("given_title", "title"), [("A \n b", "A b"), (7, "7"), ("\ud800x", "\ufffdx")]
)
def test_a_title_is_one_line_of_text(given_title, title):
    assert parse_document(b"text", key="a.txt", metadata={"title": given_title}).title == title


def test_the_title_of_the_metadata_goes_before_that_of_front_matter_and_heading():
    data = b"---\ntitle: Front\n---\n# Heading\n\ntext"
    assert parse_document(data, key="a.md", metadata={"title": "Meta"}).title == "Meta"
    parsed = parse_document(data, key="a.md", metadata={})
    assert parsed.title == "Front"
    assert parsed.text[parsed.start :] == "# Heading\n\ntext"
    assert parse_document(data[21:], key="a.md", metadata={}).title == "Heading"


def test_lone_surrogates_become_replacement_characters():
    assert clean_surrogates("a\ud83d b\U0001f6b2") == "a\ufffd b\U0001f6b2"
