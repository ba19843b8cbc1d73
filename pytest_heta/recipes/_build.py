"""From a store of documents to a knowledge base."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pytest_heta.errors import BuildError, first_of
from pytest_heta.models import document_id_from_raw_key
from pytest_heta.protocols import ObjectStore
from pytest_heta.recipes._chunks import ChunkCollector, ChunkStore, folded
from pytest_heta.recipes._parsing import DecodingErrors, parse_document
from pytest_heta.recipes._splitting import Piece, Splitter

__all__ = ["Corpus", "read_corpus"]

_SHOWN_IDS: Final = 10


@dataclass(slots=True)
class Corpus:
    """The documents of a knowledge base, read and split.

    Attributes:
        chunks: Their chunks.
        document_count: How many documents there are.
        empty: Ids of documents without text.
        replaced: Ids of documents with bytes that are no text.
    """

    chunks: ChunkStore
    document_count: int
    empty: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)

    def manifest(self) -> dict[str, Any]:
        """Return counts and warnings."""
        warnings = [
            f"{len(ids)} {'documents' if len(ids) > 1 else 'document'} {trouble}:"
            f" {first_of(ids, _SHOWN_IDS)}"
            for ids, trouble in (
                (self.empty, "without text, never found"),
                (self.replaced, "with bytes that are no text, replaced by U+FFFD"),
            )
            if ids
        ]
        return {
            "documents": self.document_count,
            "empty_documents": len(self.empty),
            "chunks": len(self.chunks),
            "warnings": warnings,
        }


def read_corpus(
    objects: ObjectStore,
    source_keys: Sequence[str],
    splitter: Splitter,
    errors: DecodingErrors,
) -> Corpus:
    """Read documents one by one, parse and split them.

    Keys of the same document id are one document, in which the first of them
    comes first. A document id is what the raw key says, or the key itself.

    Args:
        objects: The store.
        source_keys: Keys of the documents, in order.
        splitter: Splits their text.
        errors: What to do about bytes that are no text.

    Raises:
        BuildError: naming the key, if a document is missing or is not text.
    """
    by_document: dict[str, list[str]] = {}
    for key in dict.fromkeys(source_keys):
        by_document.setdefault(document_id_from_raw_key(key) or key, []).append(key)
    collector = ChunkCollector()
    empty: list[str] = []
    replaced: list[str] = []
    metadata_of = _metadata_reader(objects)
    for document_id, keys in by_document.items():
        title = ""
        pieces: dict[str, list[Piece]] = {}
        for key in keys:
            parsed = parse_document(
                _content(objects, key), key=key, metadata=metadata_of(key), errors=errors
            )
            title = title or parsed.title
            pieces[key] = _without_bare_title(splitter.split(parsed), title)
            if parsed.replaced and replaced[-1:] != [document_id]:
                replaced.append(document_id)
        if not any(pieces.values()):
            if title:
                # Found by its title, which is then its text.
                pieces[keys[0]] = [Piece(0, 0, title)]
            else:
                empty.append(document_id)
        collector.add(document_id, title, pieces)
    return Corpus(collector.store(), len(by_document), empty, replaced)


def _without_bare_title(pieces: list[Piece], title: str) -> list[Piece]:
    """Return the chunks without a first one that is the title and nothing else.

    A long document may split right behind its title, and every chunk is found
    by the title anyway.
    """
    if len(pieces) > 1 and folded(pieces[0].text) == folded(title):
        return pieces[1:]
    return pieces


def _content(objects: ObjectStore, key: str) -> bytes:
    try:
        return objects.get(key)
    except KeyError as error:
        raise BuildError("the document is not in the object store", where=key) from error


def _metadata_reader(objects: ObjectStore) -> Callable[[str], Mapping[str, Any]]:
    """Return the store's ``metadata``, which is optional."""
    metadata = getattr(objects, "metadata", None)
    if not callable(metadata):
        return lambda _: {}
    return lambda key: metadata(key) or {}
