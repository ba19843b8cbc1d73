"""Values of users' code as plain data, texts and names that suit every reader."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

__all__ = [
    "canonical_json",
    "exception_text",
    "is_plain_text",
    "is_small_and_plain",
    "plain",
    "plain_text",
    "portable_name",
    "safe_str",
]

MAX_NODES: Final = 10_000
"""Values that one conversion keeps; what is beyond them is left out."""

MAX_TEXT: Final = 20_000
"""Characters of one text that a conversion keeps."""

_TEXT_PER_NODE: Final = 256
"""Characters that count as one more value, so that texts are bounded too."""

_MAX_DEPTH: Final = 30
_SMALL: Final = 16
_LARGEST_SMALL_INTEGER: Final = 1 << 53
_MAX_INTEGER_BITS: Final = 1_024
_MAX_MESSAGE: Final = 1_000
_LEFT_OUT: Final = "…"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_UNSAFE_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_MAX_NAME: Final = 100
_NAME_HASH: Final = 12


# --- texts -------------------------------------------------------------------


def plain_text(text: str, limit: int | None = None) -> str:
    """Return ``text`` as exactly `str`, encodable as UTF-8, cut to ``limit``."""
    text = str.__str__(text)
    if limit is not None and len(text) > limit:
        text = text[:limit] + _LEFT_OUT
    return text if text.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def is_plain_text(text: str, limit: int | None = None) -> bool:
    """Whether `plain_text` would leave a text as it is."""
    return (
        type(text) is str
        and (limit is None or len(text) <= limit)
        and (text.isascii() or _SURROGATE.search(text) is None)
    )


def safe_str(value: object, limit: int = _MAX_MESSAGE) -> str:
    """Return ``str(value)``, or a stand-in when that itself raises."""
    try:
        return plain_text(str(value), limit)
    except Exception:  # noqa: BLE001 - users' __str__ may do anything
        return f"<unprintable {type(value).__name__}>"


def exception_text(error: BaseException) -> str:
    """Return an exception as one line: its type and what it says."""
    text = " ".join(safe_str(error).split())
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def portable_name(text: str, *identity: str) -> str:
    """Return a file name for ``text`` that every file system tells apart.

    It is made of ``A-Z a-z 0-9 _ -``, has at most 100 characters, is no
    reserved name, and ends in a hash, so that names which differ only in case
    or in characters that are not allowed stay different.

    Args:
        text: What the name should read like.
        identity: What the name stands for, if ``text`` alone does not say it.
    """
    stem = _UNSAFE_IN_NAME.sub("_", text).lstrip("-")[: _MAX_NAME - _NAME_HASH - 1]
    digest = sha256(canonical_json(identity or (text,))).hexdigest()[:_NAME_HASH]
    return f"{stem}-{digest}" if stem else digest


def canonical_json(value: Any) -> bytes:
    """Return the one JSON text of plain data, in ASCII."""
    return _CANONICAL.encode(value).encode()


# --- plain data --------------------------------------------------------------


def plain(value: Any, *, max_nodes: int = MAX_NODES, max_text: int = MAX_TEXT) -> Any:
    """Return ``value`` made of dict, list, str, int, float, bool and None.

    NaN and infinities become None, lone surrogates U+FFFD, paths and dates
    text, decimals numbers, numpy's scalars and arrays Python's. Cycles, very
    deep and very large structures are cut where they become so, marked by
    ``"…"``. Nothing in ``value`` can make this raise.
    """
    if type(value) is dict and is_small_and_plain(value):
        return value.copy()
    return _Converter(max_nodes, max_text).convert(value, 0)


def is_small_and_plain(mapping: dict[Any, Any]) -> bool:
    """Whether `plain` would leave a mapping as it is: small, flat and plain, as most sources.

    Types are looked at exactly, for users subclass anything.
    """
    if len(mapping) > _SMALL:
        return False
    for key, value in mapping.items():
        kind = type(value)
        if type(key) is not str or not key.isascii():
            return False
        if kind is str:
            if len(value) > _TEXT_PER_NODE or not value.isascii():
                return False
        elif kind is int:
            if not -_LARGEST_SMALL_INTEGER < value < _LARGEST_SMALL_INTEGER:
                return False
        elif value is not None and kind is not bool:
            return False
    return True


def plain_number(value: float | Decimal | Fraction) -> int | float | str | None:
    """Return a number as exactly `int` or `float`; None when it is not finite."""
    if isinstance(value, int):
        # Readers in other languages, and Python's own limit on digits, stop here.
        bits = value.bit_length()
        return int(value) if bits <= _MAX_INTEGER_BITS else f"<integer of {bits} bits>"
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None
    return number if math.isfinite(number) else None


class _Converter:
    """One conversion: it counts what was kept and knows what it is inside of."""

    def __init__(self, max_nodes: int, max_text: int) -> None:
        self._left = max_nodes
        self._max_text = max_text
        self._open: set[int] = set()

    def convert(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int | float | Decimal | Fraction):
            return plain_number(value)
        if self._left < 0 or depth > _MAX_DEPTH or id(value) in self._open:
            return _LEFT_OUT
        self._open.add(id(value))
        try:
            return self._container(value, depth)
        except Exception:  # noqa: BLE001 - users' objects may do anything
            return f"<unprintable {type(value).__name__}>"
        finally:
            self._open.discard(id(value))

    def _text(self, value: str) -> str:
        text = plain_text(value, self._max_text)
        self._left -= len(text) // _TEXT_PER_NODE
        return text

    def _container(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._mapping(value.items(), depth)
        if isinstance(value, list | tuple):
            return self._sequence(value, depth)
        if isinstance(value, set | frozenset):
            # A set has no order of its own; the text of its members has one.
            return self._sequence(sorted(value, key=repr), depth)
        return self._scalar(value, depth)

    def _scalar(self, value: Any, depth: int) -> Any:
        if isinstance(value, bytes | bytearray | memoryview):
            return f"<{len(value)} bytes>"
        if isinstance(value, enum.Enum):
            return self.convert(value.value, depth + 1)
        if isinstance(value, datetime | date | time):
            return value.isoformat()
        if isinstance(value, PurePath | UUID | type):
            return self._text(str(value))
        return self._object(value, depth)

    def _object(self, value: Any, depth: int) -> Any:
        if callable(getattr(value, "tolist", None)):  # numpy, torch and their kind
            size = getattr(value, "size", None)
            if isinstance(size, int) and size > self._left:
                return f"<{type(value).__name__} of {size} values>"
            return self.convert(value.tolist(), depth + 1)
        names: Iterable[str] | None = None
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
        elif isinstance(getattr(type(value), "model_fields", None), Mapping):
            names = type(value).model_fields
        if names is None:
            return self._text(safe_str(value))
        return self._mapping(((name, getattr(value, name)) for name in names), depth)

    def _mapping(self, items: Iterable[tuple[Any, Any]], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        floor = self._floor(depth)
        for key, item in items:
            if self._left <= floor:
                kept[_LEFT_OUT] = _LEFT_OUT
                break
            name = self._text(key) if isinstance(key, str) else safe_str(key)
            kept[name] = self.convert(item, depth + 1)
        return kept

    def _sequence(self, items: Iterable[Any], depth: int) -> list[Any]:
        kept: list[Any] = []
        floor = self._floor(depth)
        for item in items:
            if self._left <= floor:
                kept.append(_LEFT_OUT)
                break
            kept.append(self.convert(item, depth + 1))
        return kept

    def _floor(self, depth: int) -> int:
        """Return how much a container leaves to what comes after it: half, if anything may."""
        return self._left // 2 if depth else 0
