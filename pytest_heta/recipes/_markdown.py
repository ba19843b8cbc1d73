"""Markdown as text: front matter, title, and a light removal of the markup."""

from __future__ import annotations

import html
import re
from typing import Final

__all__ = ["markdown_as_text", "markdown_title", "split_front_matter"]

_FRONT_MATTER: Final = {"---": ("---", "..."), "+++": ("+++",)}
_FIELD_TITLE: Final = re.compile(r"title\s*[:=]\s*(.*)$", re.IGNORECASE)
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]+|$)(.*)")
_HEADING_1: Final = re.compile(r" {0,3}#[ \t]+(.*)")
_CLOSING_HASHES: Final = re.compile(r"(?:^|[ \t])#+[ \t]*$")
_RULE: Final = re.compile(r" {0,3}(?:=+|-+|(?:[-*_][ \t]*){3,})$")
_UNDERLINE_1: Final = re.compile(r" {0,3}=+\s*$")
_TABLE_RULE: Final = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)+$")
_DEFINITION: Final = re.compile(r" {0,3}\[[^\]]+\]:[ \t]*\S+")
_QUOTE: Final = re.compile(r"(?:[ \t]*>)+[ \t]?")
_BULLET: Final = re.compile(r"([ \t]*)[-*+][ \t]+(?:\[[ xX]\][ \t]+)?")

_ELEMENTS: Final = (
    "a|abbr|b|blockquote|br|caption|center|cite|code|dd|del|details|dfn|div|dl|dt|em|figcaption"
    "|figure|font|h[1-6]|hr|i|img|ins|kbd|li|mark|ol|p|picture|pre|q|s|samp|script|section|small"
    "|source|span|strong|style|sub|summary|sup|svg|table|tbody|td|tfoot|th|thead|tr|tt|u|ul|var|video"
)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_INLINE: Final = (
    (re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+[^()]*)?\)"), r"\1"),
    (re.compile(r"!?\[([^\[\]]+)\]\[[^\[\]]*\]"), r"\1"),
    (re.compile(r"<((?:https?|mailto|ftp):[^<>\s]+)>"), r"\1"),
    # Only known elements: "x <y and z> w" is no tag.
    (re.compile(rf"</?(?:{_ELEMENTS})(?:\s[^<>]*)?/?>", re.IGNORECASE), ""),
    (re.compile(r"\*\*(?=[^\s*])(.{1,500}?)(?<=[^\s*])\*\*"), r"\1"),
    (re.compile(r"(?<!\w)__(?=[^\s_])(.{1,500}?)(?<=[^\s_])__(?!\w)"), r"\1"),
    (re.compile(r"~~(?=[^\s~])(.{1,500}?)(?<=[^\s~])~~"), r"\1"),
    (re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<![\w_])_(?=[^\s_])(.{1,500}?)(?<=[^\s_])_(?![\w_])"), r"\1"),
)
_LITERAL: Final = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])|(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)",
    re.DOTALL,
)
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
"""Noncharacters: no text should hold them."""
_HELD: Final = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")


def split_front_matter(text: str) -> tuple[str, int]:
    """Return the title of the front matter, and where the content starts.

    Front matter stands at the very start between lines of ``---`` (YAML) or
    ``+++`` (TOML). Without any, the title is empty and the content starts
    at 0.
    """
    lines = text.splitlines(keepends=True)
    closing = _FRONT_MATTER.get(lines[0].rstrip()) if lines else None
    if closing is None:
        return "", 0
    title, offset = "", len(lines[0])
    for line in lines[1:]:
        offset += len(line)
        if line.rstrip() in closing:
            return title, offset
        found = _FIELD_TITLE.match(line.rstrip())
        if found and not title:
            title = found[1].strip().strip("\"'")
    return "", 0  # never closed: a rule, not front matter


def markdown_title(text: str) -> str:
    """Return the first heading of level 1 as text, empty if there is none."""
    fence, previous = "", ""
    for line in text.splitlines():
        fence, is_fence = _fence_after(line, fence)
        if is_fence or fence:
            previous = ""
            continue
        found = _HEADING_1.match(line)
        if found:
            return markdown_as_text(_CLOSING_HASHES.sub("", found[1]))
        if previous and _UNDERLINE_1.match(line):
            return markdown_as_text(previous)
        previous = line.strip()
    return ""


def markdown_as_text(markdown: str) -> str:
    """Return Markdown without its markup: what a reader sees, about.

    Headings, code, link texts and alternative texts stay; fences, rules, link
    targets, HTML tags, emphasis, bullets and table lines go.
    """
    kept: list[str] = []
    fence = ""
    block: list[str] = []
    for line in markdown.splitlines():
        fence, is_fence = _fence_after(line, fence)
        if is_fence or fence:
            kept += [_inline("\n".join(block))] if block else []
            block = []
            kept += [] if is_fence else [line]
        else:
            block.append(_line(line))
    kept.append(_inline("\n".join(block)))
    return "\n".join(kept).strip()


def _fence_after(line: str, fence: str) -> tuple[str, bool]:
    """Return the fence that is open after ``line``, and whether the line is one."""
    found = _FENCE.match(line)
    if not found:
        return fence, False
    mark = found[1]
    if not fence:
        return mark, True
    closes = mark[0] == fence[0] and len(mark) >= len(fence) and not line[found.end() :].strip()
    return ("", True) if closes else (fence, False)


def _line(line: str) -> str:
    """Return a line without what marks it as a block."""
    if _RULE.match(line.rstrip()) or _TABLE_RULE.match(line) or _DEFINITION.match(line):
        return ""
    line = _QUOTE.sub("", line, count=1) if _QUOTE.match(line) else line
    heading = _HEADING.match(line)
    if heading:
        return _CLOSING_HASHES.sub("", heading[1])
    line = _BULLET.sub(r"\1", line, count=1) if _BULLET.match(line) else line
    return line.strip().strip("|").replace("|", " ") if line.lstrip().startswith("|") else line


def _inline(text: str) -> str:
    """Return a text without the markup inside its lines; code spans stay as written."""
    literals: list[str] = []

    def hold(found: re.Match[str]) -> str:
        literals.append(found["escaped"] or found["code"].strip(" "))
        return f"{_OPEN}{len(literals) - 1}{_CLOSE}"

    text = _COMMENT.sub("", text).replace(_OPEN, "").replace(_CLOSE, "")
    text = _LITERAL.sub(hold, text)
    for pattern, replacement in _INLINE:
        text = pattern.sub(replacement, text)
    return _HELD.sub(lambda found: literals[int(found[1])], html.unescape(text))
