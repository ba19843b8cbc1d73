"""Markdown without its markup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.recipes._markdown import markdown_as_text, markdown_title, split_front_matter


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("# Install", "Install"),
        ("### Install the thing ###", "Install the thing"),
        ("C# is a language", "C# is a language"),
        ("####### seven is text", "####### seven is text"),
        ("Title\n=====\n\ntext", "Title\n\n\ntext"),
        ("a\n\n---\n\nb", "a\n\n\n\nb"),
        ("* * *", ""),
        ("**bold** and *thin* and __bold__ and _thin_", "bold and thin and bold and thin"),
        ("**a `snake_case` name**", "a snake_case name"),
        ("**snake_case_name**", "snake_case_name"),
        ("~~old~~ new", "old new"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("use `**kwargs` and `` a`b ``", "use **kwargs and a`b"),
        ("[text](https://x.y/z 'title')", "text"),
        ("[text](a_(b)_c)", "text"),
        ("![alt text](image.png)", "alt text"),
        ("[text][1] and [other][]", "text and other"),
        ("[1]: https://x.y", ""),
        ("see <https://x.y/z>", "see https://x.y/z"),
        ("a <b>bold</b><br/> word <!-- not\nseen -->", "a bold word"),
        ("if x <y and z> w", "if x <y and z> w"),
        ("> quoted\n> > twice", "quoted\ntwice"),
        ("- one\n* two\n+ [x] three\n1. four", "one\ntwo\nthree\n1. four"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a   b \n\n 1   2"),
        (r"2 \* 3 &lt; 7 &amp; \_x\_", "2 * 3 < 7 & _x_"),
        ("a\n```python\n# kept **as** it is\n\n- x\n```\n- b", "a\n# kept **as** it is\n\n- x\nb"),
        ("~~~\n```\n# x\n~~~\n# y", "```\n# x\ny"),
        ("```\nnever *closed*", "never *closed*"),
        (r"\`no code\` and `\code`", r"`no code` and \code"),
        ("[a `b` c](d) *`e`*", "a b c e"),
        ("", ""),
    ],
)
def test_markup_goes_and_text_stays(markdown, text):
    assert markdown_as_text(markdown) == text


@pytest.mark.parametrize(
    ("text", "title", "rest"),
    [
        ("---\ntitle: A title\ntags: [x]\n---\nbody", "A title", "body"),
        ('---\nTitle: "A: title"\ntitle: no\n...\nbody', "A: title", "body"),
        ("+++\ntitle = 'A'\n+++\nbody", "A", "body"),
        ("---\r\ntitle: A\r\n---\r\nbody", "A", "body"),
        ("---\ntags: []\n---", "", ""),
        ("---\ntitle: never closed", "", "---\ntitle: never closed"),
        ("text\n---\ntitle: x\n---\n", "", "text\n---\ntitle: x\n---\n"),
        ("", "", ""),
    ],
)
def test_front_matter_is_split_off(text, title, rest):
    found, start = split_front_matter(text)
    assert (found, text[start:]) == (title, rest)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("intro\n\n# The **title** #\n\n# Second", "The title"),
        ("The `title`\n===\n", "The title"),
        ("```\n# a comment\n```\n## Two\n# One", "One"),
        ("~~~\n# a comment", ""),
        ("```\nx\n```\n===\n", ""),
        ("## Two", ""),
        ("#hashtag", ""),
        ("", ""),
    ],
)
def test_the_title_is_the_first_heading_of_level_1(text, title):
    assert markdown_title(text) == title


@given(st.text(st.sampled_from("ab `*_[]()<>#|-~\\\n!:=&;1"), max_size=200))
def test_any_text_can_be_read_as_markdown(text):
    assert isinstance(markdown_as_text(text), str)
    markdown_title(text)
    split_front_matter(text)


@given(st.text(st.sampled_from("abc déf 咖啡 ,.\n"), max_size=100))
def test_text_without_markup_stays(text):
    assert markdown_as_text(text) == "\n".join(text.splitlines()).strip()
