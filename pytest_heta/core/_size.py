"""Sizes in bytes, as people write and read them."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["DEFAULT_CACHE_BYTES", "format_size", "parse_size"]

DEFAULT_CACHE_BYTES: Final = 2 << 30
"""What saved knowledge bases may take together, if nobody says otherwise."""

_SIZE: Final = re.compile(r"([0-9]+(?:[.][0-9]+)?)\s*([kmgt]i?b?|b?)", re.IGNORECASE)
_STEP: Final = 1000
_UNITS: Final = {
    "": 1,
    "b": 1,
    **{
        f"{prefix}{suffix}": base**power
        for power, prefix in enumerate("kmgt", start=1)
        for suffix, base in (("", 1000), ("b", 1000), ("i", 1024), ("ib", 1024))
    },
}


def parse_size(text: str) -> int | None:
    """Return the bytes of a size such as ``500MB`` or ``2GiB``, None if it is none."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    number, unit = match.groups()
    return int(float(number) * _UNITS[unit.lower()])


def format_size(size_bytes: int) -> str:
    """Return a size as text: ``1.2 MB``."""
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < _STEP:
            return f"{size_bytes} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} TB"
