"""From a record to a document."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any, Final

from pytest_heta.benchmarks._naming import media_type_of, portable_name
from pytest_heta.benchmarks._record import Record
from pytest_heta.errors import shown
from pytest_heta.models import BenchmarkDocument

__all__ = ["ID_FIELDS", "beir_document", "jsonl_document"]

ID_FIELDS: Final = ("document_id", "id", "_id")
"""Names under which a document's id may stand."""

_BEIR_FIELDS: Final = ("_id", "title", "text", "metadata")
_ORIGINS: Final = ("text", "path", "data_base64", "source_uri")
_OUTSIDE: Final = "move the file into it, or allow it with allow_outside=True"
_FIELDS: Final = (*ID_FIELDS, *_ORIGINS, "title", "name", "media_type", "metadata", "unit")


def beir_document(record: Record) -> BenchmarkDocument:
    """Return the document of a line of ``corpus.jsonl``."""
    identifier = record.identifier("_id")
    if "text" not in record.fields:
        # Null and "" are an empty text; no text at all is another layout.
        raise record.missing("text")
    return record.build(
        BenchmarkDocument,
        document_id=identifier,
        name=portable_name(identifier),
        data=_content(record),
        metadata=_metadata(record, _BEIR_FIELDS),
    )


def jsonl_document(record: Record, boundary: Path | None) -> BenchmarkDocument:
    """Return the document of a line of ``documents.jsonl``, or of a case.

    Args:
        record: The record.
        boundary: Resolved folder that contents must stay in; None lets them
            come from anywhere.
    """
    identifier = record.identifier(*ID_FIELDS)
    origin = _origin(record)
    content: dict[str, Any]
    name = None
    media_type = "text/plain"
    if origin == "path":
        path = _path(record, boundary)
        content, name, media_type = {"path": path}, path.name, media_type_of(path.name)
    elif origin == "source_uri":
        uri = _source_uri(record, boundary)
        name = uri.split("?")[0].rstrip("/").rsplit("/", 1)[-1] or None
        content, media_type = {"source_uri": uri}, media_type_of(name or "")
    elif origin == "data_base64":
        content = {"data": _decoded(record)}
        media_type = media_type_of(record.optional_string("name") or "")
    else:
        content = {"data": _content(record)}
    media_type = record.optional_string("media_type") or media_type
    return record.build(
        BenchmarkDocument,
        document_id=identifier,
        name=record.optional_string("name") or name or portable_name(identifier, media_type),
        media_type=media_type,
        metadata=_metadata(record, _FIELDS),
        **content,
    )


def _origin(record: Record) -> str:
    """Return which field holds the content; a null text alone is an empty document."""
    given = [name for name in _ORIGINS if record.fields.get(name) is not None]
    if not given and "text" in record.fields:
        return "text"
    if len(given) != 1:
        wanted = ", ".join(record.named(name) for name in _ORIGINS)
        there = " and ".join(record.named(name) for name in given) or "none"
        raise record.error(f"exactly one of {wanted} is needed, there is {there}")
    return given[0]


def _content(record: Record) -> bytes:
    """Return title, blank line and text; what is absent, null or blank is left out."""
    title = record.optional_string("title") or ""
    text = record.optional_string("text") or ""
    parts = [part for part in (title, text) if part and not part.isspace()]
    return "\n\n".join(parts).encode("utf-8")


def _decoded(record: Record) -> bytes:
    try:
        return base64.b64decode(record.string("data_base64"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise record.error(f"{record.named('data_base64')} is not base64: {error}") from None


def _metadata(record: Record, known: tuple[str, ...]) -> dict[str, Any]:
    metadata = {**record.extras(known), **record.mapping("metadata")}
    if title := record.optional_string("title"):
        metadata["title"] = title
    return metadata


def _path(record: Record, boundary: Path | None) -> Path:
    """Return where a document's file is; it need not exist."""
    text = record.string("path")
    named = f"{record.named('path')} = {shown(text)}"
    if not text.strip():
        raise record.error(f"{named} names no file")
    try:
        path = record.path.parent / text
        # Resolved, since a link may lead out of the folder as well as "..".
        inside = boundary is None or path.resolve().is_relative_to(boundary)
    except (OSError, RuntimeError, ValueError) as error:
        raise record.error(f"{named} cannot be a path: {error}") from None
    if not inside:
        raise record.error(f"{named} leads out of the dataset's folder", hint=_OUTSIDE)
    return path


def _source_uri(record: Record, boundary: Path | None) -> str:
    uri = record.string("source_uri")
    if boundary is not None:
        raise record.error(
            f"{record.named('source_uri')} = {shown(uri)} leads out of the dataset's folder",
            hint=_OUTSIDE,
        )
    return uri
