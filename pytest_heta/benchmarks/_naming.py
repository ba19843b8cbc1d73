"""Names made legal: for node ids, for files, for media types."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["benchmark_name", "legal_names", "media_type_of", "portable_name"]

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME: Final = 80
_LONGEST_STEM: Final = 60
_DIGEST_LENGTH: Final = 8

# What file systems forbid, and what makes a name hidden or an option.
_UNPORTABLE: Final = re.compile(r"[^\w.,@+=()-]|^[.-]")
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)

# A table of our own: the mimetypes module reads the machine's, which differ.
_MEDIA_TYPES: Final = {
    ".csv": "text/csv",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".htm": "text/html",
    ".html": "text/html",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".json": "application/json",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".rst": "text/x-rst",
    ".tsv": "text/tab-separated-values",
    ".txt": "text/plain",
    ".text": "text/plain",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".xml": "application/xml",
}
_SUFFIXES: Final = {
    "application/json": ".json",
    "application/xml": ".xml",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/tab-separated-values": ".tsv",
}


def benchmark_name(path: Path) -> str:
    """Return a legal benchmark name made of a folder's (or file's) name.

    Characters that may not stand in node ids become ``-``. A name that loses
    letters that way gets a digest, so that two of them stay apart.
    """
    name = path.name if path.name not in {"", ".."} else path.resolve().name
    cleaned = _cleaned(name)
    if not name.isascii() or not cleaned:
        return f"{cleaned or 'dataset'}-{_digest(name, _DIGEST_LENGTH)}"
    return cleaned


def legal_names(names: Iterable[str]) -> dict[str, str]:
    """Return a legal name (``A-Z a-z 0-9 _ -``) for each name, all different.

    Legal names stay as they are; the others are cleaned and get a digest of
    the original, so that a name does not depend on the order of the rest.
    """
    originals = list(dict.fromkeys(names))
    legal = {name: name for name in originals if _is_legal(name)}
    taken = set(legal)
    for name in originals:
        if name in legal:
            continue
        length = _DIGEST_LENGTH
        while (candidate := f"{_cleaned(name) or 'unit'}-{_digest(name, length)}") in taken:
            length += 1
        legal[name] = candidate
        taken.add(candidate)
    return {name: legal[name] for name in originals}


def _is_legal(name: str) -> bool:
    return not _ILLEGAL.search(name) and len(name) <= _LONGEST_NAME


def _cleaned(name: str) -> str:
    return _ILLEGAL.sub("-", name)[:_LONGEST_NAME].strip("-")


def _digest(name: str, length: int) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:length]


def portable_name(identifier: str, media_type: str = "text/plain") -> str:
    """Return a file name for a document, which every file system accepts.

    It says what the document is and how to parse it; it need not be unique,
    since raw keys hold the document id as well.
    """
    stem = _UNPORTABLE.sub("_", identifier)[:_LONGEST_STEM]
    if _RESERVED.fullmatch(stem):
        stem = f"_{stem}"
    return stem + _SUFFIXES.get(media_type, ".txt")


def media_type_of(name: str) -> str:
    """Return the media type that the ending of a file name stands for."""
    return _MEDIA_TYPES.get(Path(name).suffix.lower(), "application/octet-stream")
