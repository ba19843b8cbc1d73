"""From the bytes of a document to its text and title."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final, Literal

from pytest_heta.errors import BuildError
from pytest_heta.recipes._markdown import markdown_title, split_front_matter

__all__ = [
    "PARSER_VERSION",
    "DecodingErrors",
    "ParsedDocument",
    "clean_surrogates",
    "parse_document",
]

PARSER_VERSION: Final = 1
"""Raised by every change of what is made of the same bytes."""

DecodingErrors = Literal["strict", "replace"]

_BOMS: Final = (
    # The mark of UTF-32-LE starts with that of UTF-16-LE.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_MARKDOWN: Final = "text/markdown"
_UNSAID: Final = frozenset({"", "text/plain", "application/octet-stream"})
"""Media types that leave the word to the ending of the name."""

_TEXT_APPLICATIONS: Final = frozenset(
    {
        "application/json",
        "application/jsonl",
        "application/toml",
        "application/x-ndjson",
        "application/x-yaml",
        "application/yaml",
    }
)
_MARKUP: Final = frozenset({"text/html", "text/rtf", "text/xml"})

_ENDINGS: Final = {
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".mdown": _MARKDOWN,
    ".mkd": _MARKDOWN,
    ".htm": "text/html",
    ".html": "text/html",
    ".rtf": "text/rtf",
    ".xml": "text/xml",
    ".doc": "application/msword",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".epub": "application/epub+zip",
    ".gz": "application/gzip",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".ppt": "application/vnd.ms-powerpoint",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xls": "application/vnd.ms-excel",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".zip": "application/zip",
}
"""Endings that say something else than plain text."""

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document as text.

    Attributes:
        title: Its title, empty if it has none.
        text: All of its text, decoded; offsets into the document count in it.
        start: Where its content starts: after the front matter.
        is_markdown: Whether ``text`` is Markdown.
        replaced: Whether bytes that are no text were replaced by U+FFFD.
    """

    title: str
    text: str
    start: int = 0
    is_markdown: bool = False
    replaced: bool = False


def parse_document(
    data: bytes, *, key: str, metadata: Mapping[str, Any], errors: DecodingErrors = "strict"
) -> ParsedDocument:
    """Parse the content of a document.

    Text is UTF-8, or UTF-16 or UTF-32 with a byte order mark. The title is
    the one of the metadata, else that of a Markdown document's front matter
    or first heading of level 1.

    Args:
        data: The content.
        key: Key of the document; the ending of its name tells Markdown.
        metadata: What the store says of it: ``media_type``, ``title``.
        errors: Whether bytes that are no text are an error or are replaced.

    Raises:
        BuildError: naming the document, if it is not text.
    """
    media_type = _media_type(key, metadata)
    if not _is_text(media_type):
        raise BuildError(
            f"the local recipes read text and Markdown, not {media_type}",
            where=key,
            hint="convert the document to text first",
        )
    text, replaced = _decode(data, key, errors)
    title = _stated_title(metadata)
    if media_type != _MARKDOWN:
        return ParsedDocument(title=title, text=text, replaced=replaced)
    own_title, start = split_front_matter(text)
    title = title or _one_line(own_title or markdown_title(text[start:]))
    return ParsedDocument(title, text, start, is_markdown=True, replaced=replaced)


def clean_surrogates(text: str) -> str:
    """Return ``text`` with lone surrogates, which no encoding has, replaced by U+FFFD."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def _stated_title(metadata: Mapping[str, Any]) -> str:
    title = metadata.get("title")
    return "" if title is None else _one_line(clean_surrogates(str(title)))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _media_type(key: str, metadata: Mapping[str, Any]) -> str:
    stated = str(metadata.get("media_type") or "").split(";")[0].strip().lower()
    if stated in {"text/x-markdown", _MARKDOWN}:
        return _MARKDOWN
    if stated not in _UNSAID:
        return stated
    ending = PurePosixPath(str(metadata.get("name") or key)).suffix.lower()
    return _ENDINGS.get(ending, "text/plain")


def _is_text(media_type: str) -> bool:
    if media_type in _MARKUP:
        return False
    return media_type.startswith("text/") or media_type in _TEXT_APPLICATIONS


def _decode(data: bytes, key: str, errors: DecodingErrors) -> tuple[str, bool]:
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding), False
    except UnicodeDecodeError as error:
        if errors == "replace":
            return data.decode(encoding, errors="replace"), True
        shown = data[error.start : error.start + 1].hex()
        raise BuildError(
            f"the document is not {encoding.removesuffix('-sig').upper()} text:"
            f" byte 0x{shown} at offset {error.start} ({error.reason})",
            where=key,
            hint="convert it to UTF-8, or build with LocalRecipe(encoding_errors='replace')",
        ) from None
