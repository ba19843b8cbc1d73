"""JSON text that every strict parser accepts, of whatever a report holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_json

__all__ = ["strict_json"]

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
_LEAVES: Final = frozenset({str, int, float, bool, type(None)})


def strict_json(value: Any) -> bytes:
    r"""Return ``value`` as one line of JSON in UTF-8.

    Numbers that are not finite become null, lone surrogates and bytes that are
    not UTF-8 become escapes such as ``\ud800``, sets become sorted lists,
    and objects that JSON has no word for become text, without memory addresses.

    Raises:
        ValueError: if ``value`` contains itself or is nested too deeply.
    """
    try:
        if not _holds_a_set(value):
            # A lone surrogate, which only the slow way can replace, is a ValueError.
            with suppress(ValueError):
                return to_json(value, inf_nan_mode="null", fallback=_described)
        return to_json(_mended(value), inf_nan_mode="null", fallback=_described)
    except RecursionError:
        raise ValueError("the value is nested too deeply, or contains itself") from None


def _holds_a_set(value: Any) -> bool:
    """Whether there is a set in ``value``: its order would follow the hash seed.

    It is asked of every case result, so it does not call itself for leaves.
    """
    items: Iterable[Any]
    if isinstance(value, list | tuple):
        items = value
    elif isinstance(value, Mapping):
        items = value.values()
    elif isinstance(value, BaseModel):
        items = vars(value).values()
    else:
        return isinstance(value, set | frozenset)
    for item in items:  # noqa: SIM110 - any() with a generator costs half as much again
        if type(item) not in _LEAVES and _holds_a_set(item):
            return True
    return False


def _described(value: Any) -> Any:
    """Return what stands for an object of a type that JSON does not know."""
    if isinstance(value, Mapping):
        return dict(value)
    if callable(getattr(value, "tolist", None)):  # numpy's scalars and arrays
        return value.tolist()
    return _ADDRESS.sub("", str(value))


def _mended(value: Any) -> Any:
    """Return ``value`` with sets sorted and all text fit for UTF-8."""
    if isinstance(value, str | bytes):
        raw = value.encode("utf-8", "backslashreplace") if isinstance(value, str) else value
        return raw.decode("utf-8", "backslashreplace")
    if isinstance(value, BaseModel):
        value = {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {_mended_key(key): _mended(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_mended(item) for item in value), key=strict_json)
    return value


def _mended_key(key: Any) -> Any:
    if isinstance(key, str | bytes):
        return _mended(key)
    return key if type(key) in _LEAVES else strict_json(key).decode("utf-8")
