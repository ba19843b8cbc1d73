"""Text from outside does nothing to a terminal or to an XML parser."""

import re
import unicodedata
import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_heta.reports import plain_text

# hypothesis leaves surrogates out unless they are asked for.
ANY_TEXT = st.text(st.characters(exclude_categories=())) | st.text(
    st.sampled_from("\x00\x1b\x85\x9b\t\r\n\u2028\u202e\u2066\ufffe\uffff\ud800\udfff\U0010ffff<&]")
)
# https://www.w3.org/TR/xml/#charsets
XML_CHARACTERS = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


@given(ANY_TEXT, st.booleans())
@example("\x1b]0;title\x07", False)
@example("]]>\ufffe", True)
def test_a_strict_xml_parser_gives_back_every_text(text, newlines):
    safe = plain_text(text, newlines=newlines)
    assert XML_CHARACTERS.fullmatch(safe)
    document = f"<a b={quoteattr(safe)}>{escape(safe)}</a>"
    parsed = ET.fromstring(document.encode())
    assert (parsed.text or "") == safe
    assert parsed.get("b") == safe


@given(ANY_TEXT)
def test_no_control_character_reaches_a_terminal(text):
    safe = plain_text(text)
    assert not [c for c in safe if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}]
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", safe)
    assert "\n" not in safe


@given(ANY_TEXT, st.booleans())
def test_harmless_text_stays_as_it_is(text, newlines):
    safe = plain_text(text, newlines=newlines)
    assert plain_text(safe, newlines=newlines) == safe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b31m", r"\x9b31m"),
        ("a\x00b\x7f", r"a\x00b\x7f"),
        ("\u202edetfel", r"\u202edetfel"),
        ("\ud800", r"\ud800"),
        ("\ufffe\uffff", r"\ufffe\uffff"),
        ("\U0001ffff", r"\U0001ffff"),
        ("tab\there", "tab here"),
        ("a\r\nb\rc\u2028d\x85e", "a b c d e"),
        ("naïve 咖啡 🚲 العربية", "naïve 咖啡 🚲 العربية"),
        (17, "17"),
    ],
)
def test_what_is_harmful_becomes_visible(text, shown):
    assert plain_text(text) == shown


def test_line_ends_of_all_kinds_can_stay():
    assert plain_text("a\r\nb\rc\nd\u2029e", newlines=True) == "a\nb\nc\nd\ne"
