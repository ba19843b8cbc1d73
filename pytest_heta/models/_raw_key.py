"""Keys of documents in the object store."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from pytest_heta.models._benchmark import BenchmarkDocument, BenchmarkManifest

_RAW_KEY: Final = re.compile(r"(?:^|/)raw/benchmarks/[^/]+/[^/]+/(?P<document_id>[^/]+)/[^/]+$")
_UNSAFE_IN_SEGMENT: Final = re.compile(r"[\x00-\x1f\x7f/\\%]|^\.+$")


def _segment(text: str) -> str:
    """Return ``text`` as one path segment that is not made of dots alone."""
    if _UNSAFE_IN_SEGMENT.search(text) is None:
        return text
    return _UNSAFE_IN_SEGMENT.sub(
        lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), text
    )


def raw_key(manifest: BenchmarkManifest, document: BenchmarkDocument) -> str:
    """Return the key of a document in the object store.

    The key is ``raw/benchmarks/{name}/{split}/{document_id}/{document name}``;
    in an id or a name, slashes, backslashes, percent signs and control
    characters are percent-encoded, so that every id is one segment.
    """
    folder = _folder(manifest.name, manifest.split)
    return f"{folder}/{_segment(document.document_id)}/{_segment(document.name)}"


@lru_cache(16)
def _folder(name: str, split: str) -> str:
    return f"raw/benchmarks/{_segment(name)}/{_segment(split)}"


def document_id_from_raw_key(key: str) -> str | None:
    """Return the document id that a raw key was made of, None for other keys."""
    match = _RAW_KEY.search(key)
    return unquote(match["document_id"]) if match else None
