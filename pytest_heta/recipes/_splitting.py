"""From the text of a document to chunks, with their places in it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pytest_heta.recipes._extras import import_extra
from pytest_heta.recipes._markdown import markdown_as_text
from pytest_heta.recipes._parsing import ParsedDocument

__all__ = ["SPLITTER_VERSION", "Piece", "Splitter"]

SPLITTER_VERSION: Final = 1
"""Raised by every change of what chunks are made of the same text."""


class Piece(NamedTuple):
    """A chunk of a document.

    Attributes:
        start: First character of the chunk in the document's text.
        end: Character behind its last.
        text: Its text; for Markdown without the markup.
    """

    start: int
    end: int
    text: str


class Splitter:
    """Splits at the largest boundaries that fit: headings, paragraphs, sentences, words.

    Args:
        chunk_size: Largest length of a chunk, in characters.
        chunk_overlap: Characters that neighbouring chunks may share.
    """

    def __init__(self, chunk_size: int, chunk_overlap: int) -> None:
        library = import_extra("semantic_text_splitter")
        self._plain: Any = library.TextSplitter(chunk_size, chunk_overlap)
        self._markdown: Any = library.MarkdownSplitter(chunk_size, chunk_overlap)

    def split(self, document: ParsedDocument) -> list[Piece]:
        """Return the chunks of a document, in its order; none of a document without text."""
        splitter = self._markdown if document.is_markdown else self._plain
        pieces: list[Piece] = []
        for offset, written in splitter.chunk_indices(document.text[document.start :]):
            start = document.start + offset
            text = markdown_as_text(written) if document.is_markdown else written
            if text:
                pieces.append(Piece(start, start + len(written), text))
        return pieces
