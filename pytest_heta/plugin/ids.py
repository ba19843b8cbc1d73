"""Ids of cases and run units, as they stand in node ids."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

__all__ = ["case_item_id", "distinct_item_ids", "unit_node_name"]

_MAX_ID_LENGTH: Final = 80
_NOT_IN_CASE_ID: Final = re.compile(r"::|[\s\x00-\x1f\x7f-\x9f]")
_NOT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def case_item_id(case_id: str) -> str:
    """Return a case id as it stands in a node id.

    ``::``, white space and control characters become ``_``; an id of more
    than 80 characters is cut and gets eight hexadecimal digits of its SHA-256.
    """
    text = _NOT_IN_CASE_ID.sub("_", case_id)
    if len(text) > _MAX_ID_LENGTH:
        text = f"{text[:_MAX_ID_LENGTH]}-{_digest(case_id)}"
    return text


def unit_node_name(unit_id: str) -> str:
    """Return a unit id as it stands in a node id, made of ``A-Z a-z 0-9 _ -``."""
    text = _NOT_IN_NAME.sub("_", unit_id)
    if text != unit_id or len(text) > _MAX_ID_LENGTH:
        text = f"{text[:_MAX_ID_LENGTH]}-{_digest(unit_id)}"
    return text


def distinct_item_ids(case_ids: Iterable[str]) -> dict[str, str]:
    """Return each case id as it stands in a node id, no two alike.

    An id that needs no change keeps its name; of those that become alike by
    the change, each gets a digest. So a name depends on what ids there are and
    not on their order.
    """
    cleaned = {raw: case_item_id(raw) for raw in case_ids}
    counts = Counter(cleaned.values())
    return {
        raw: text if text == raw or counts[text] == 1 else f"{text}-{_digest(raw)}"
        for raw, text in cleaned.items()
    }
