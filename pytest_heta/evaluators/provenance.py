"""Where a result comes from: documents, keys and places.

A recipe reports provenance in ``result.source``, and below
``result.source["origin"]`` when the result was made from something that was
itself made from a source document. Every field has a singular form with one
value and a plural form with a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from pytest_heta.models import (
    QueryResponse,
    QueryResult,
    document_id_from_raw_key,
    normalise_id,
)

__all__ = [
    "DOCUMENT_FIELDS",
    "document_id_of_key",
    "document_id_of_prefix",
    "document_ids",
    "field_of",
    "field_values",
    "locator_document_ids",
    "result_document_ids",
    "scopes_of",
]

_FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "document_id": ("document_id", "document_ids"),
    "source_key": ("source_key", "object_key", "source_keys", "object_keys"),
    "source_key_prefix": ("source_key_prefix", "source_key_prefixes"),
    "page_index": ("page_index", "page_indices", "page_indexes"),
    "chunk_id": ("chunk_id", "chunk_ids"),
    "table_id": ("table_id", "table_ids"),
    "row_index": ("row_index", "row_indices", "row_indexes"),
    "column": ("column", "columns"),
}
"""The locator fields, and every form they are written in."""

DOCUMENT_FIELDS: Final = frozenset({"document_id", "source_key", "source_key_prefix"})
"""The fields that name documents; the others are places within one."""

_FIELD_OF: Final = {form: field for field, forms in _FORMS.items() for form in forms}

_RARE_FORMS: Final = frozenset(
    {"origin", *_FORMS["source_key"], *_FORMS["document_id"]} - {"source_key", "document_id"}
)
"""What a source may have beside one key and one document id, and most have not."""

Scopes = tuple[Mapping[str, Any], ...]


def document_ids(response: QueryResponse) -> list[str]:
    """Return the distinct documents of a response's results, in rank order.

    Several chunks of one document count once, at the rank of the first; a
    result made of several documents stands for all of them, in its own order.
    """
    found: dict[str, None] = {}
    for result in response.results:
        # A response has many: its attributes cost twice what entries of a dict do.
        fields = result.__dict__
        source = fields["source"]
        document = _document_of_flat(source) if source else None
        if document is not None:
            found[document] = None
        elif source or fields["metadata"]:
            found.update(dict.fromkeys(result_document_ids(result)))
        else:
            found[fields["id"]] = None
    return list(found)


def result_document_ids(result: QueryResult) -> list[str]:
    """Return the documents that a result comes from, at least one.

    The first of these that is there decides:

    1. the raw keys among ``source_key``, ``object_key`` and their plurals. The
       benchmark's staging made them, so the id in them is the benchmark's
       own, whereas a recipe's ``document_id`` may be one that it made up, such
       as a hash of the content.
    2. ``document_id`` or ``document_ids`` of the source or its origin.
    3. the same of the result's metadata.
    4. the id of the result itself.
    """
    source, metadata = result.source, result.metadata
    if source:
        document = _document_of_flat(source)
        if document is not None:
            return [document]
        scopes = scopes_of(source)
        documents = _values(scopes, _FORMS["source_key"], document_id_of_key) or _values(
            scopes, _FORMS["document_id"], _as_id
        )
        if documents:
            return documents
    return (metadata and _values((metadata,), _FORMS["document_id"], _as_id)) or [result.id]


def _document_of_flat(source: Mapping[str, Any]) -> str | None:
    """Return the document of a source as most are, None if it takes a closer look."""
    if not _RARE_FORMS.isdisjoint(source):
        return None
    key, document_id = source.get("source_key"), source.get("document_id")
    if type(key) is str:
        document = _document_id_of_key(key)
        if document is not None:
            return document
    elif key is not None:
        return None
    return document_id if type(document_id) is str and document_id else None


def locator_document_ids(locator: Mapping[str, Any]) -> list[str]:
    """Return the documents that a locator names, by raw key, prefix or id."""
    scopes = (locator,)
    return (
        _values(scopes, _FORMS["source_key"], document_id_of_key)
        or _values(scopes, _FORMS["source_key_prefix"], document_id_of_prefix)
        or _values(scopes, _FORMS["document_id"], _as_id)
    )


def document_id_of_key(value: object) -> str | None:
    """Return the document id in a raw key, None for anything else."""
    return _document_id_of_key(value) if isinstance(value, str) else None


# The same documents are found for many queries.
_document_id_of_key = lru_cache(maxsize=1 << 14)(document_id_from_raw_key)


def document_id_of_prefix(value: object) -> str | None:
    """Return the document id in the part of a raw key up to the document's name."""
    is_folder = isinstance(value, str) and value.endswith("/")
    return document_id_of_key(f"{value}name") if is_folder else None


def scopes_of(source: Mapping[str, Any]) -> Scopes:
    """Return the mappings that provenance is looked up in: a source and its origin."""
    origin = source.get("origin")
    return (source, origin) if isinstance(origin, Mapping) else (source,)


def field_of(form: str) -> str:
    """Return the field that ``form`` is a way of writing, such as its plural."""
    return _FIELD_OF.get(form, form)


def field_values(scopes: Scopes, field: str) -> list[str]:
    """Return the values of a field in all its forms, as text, each once.

    ``7``, ``7.0`` and ``"7"`` are the same text.
    """
    return _values(scopes, _FORMS.get(field, (field,)), _as_text)


def _values(
    scopes: Scopes, forms: Iterable[str], read: Callable[[object], str | None]
) -> list[str]:
    found: list[str] = []
    for scope in scopes:
        for form in forms:
            value = scope.get(form)
            if value is not None:
                found += [text for item in _each(value) if (text := read(item)) is not None]
    return list(dict.fromkeys(found)) if len(found) > 1 else found


def _each(value: object) -> Iterable[object]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)  # a set's own order differs between processes
    return (value,)


def _as_id(value: object) -> str | None:
    try:
        return normalise_id(value)
    except ValueError:
        return None


def _as_text(value: object) -> str | None:
    return _as_id(value) or (None if value is None or value == "" else str(value))
