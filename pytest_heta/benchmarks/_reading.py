"""Reading dataset files line by line, with the place of every fault.

Files are UTF-8 whatever the locale says; a byte order mark at the start is
skipped, and so are blank lines. Anything else that is odd is a
`DatasetInvalidError` that names ``file:line``: a dataset that is read in part
without notice gives numbers that nobody can compare.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

from pytest_heta.benchmarks._places import location, missing_file
from pytest_heta.benchmarks._record import Record, kind_of
from pytest_heta.errors import DatasetInvalidError, HetaError, shown

__all__ = ["read_lines", "read_records", "record_of", "refuse"]

MAX_DEPTH: Final = 100
"""Deepest nesting of lists and objects in a record; reports must be able to write it again."""

_BOM: Final = "\ufeff"


# --- lines -------------------------------------------------------------------


def refuse(error: HetaError) -> None:
    """Raise an error of a line: what loading does, where checking goes on."""
    raise error


def read_lines(
    path: Path, expected: str, on_error: Callable[[HetaError], None] = refuse
) -> Iterator[tuple[int, str]]:
    """Yield number and text of every line that is not blank, without its end.

    Args:
        path: The file.
        expected: What the folder should hold, for the error when it is missing.
        on_error: Called with what is wrong with a line; if it returns, the
            line is left out.

    Raises:
        DatasetNotFoundError: if there is no such file.
        DatasetInvalidError: if it is a pipe, cannot be read, or is not UTF-8.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            # Nobody may ever write to a pipe, and a device may never end.
            raise DatasetInvalidError("a pipe or a device is no dataset", where=location(path))
        # Binary, because the text layer also splits at a lone carriage return
        # and reports an undecodable byte without its line.
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                try:
                    line = _decode(raw, path, number)
                except DatasetInvalidError as error:
                    on_error(error)
                    continue
                if line and not line.isspace():
                    yield number, line
    except FileNotFoundError:
        raise missing_file(path, expected) from None
    except OSError as error:
        raise DatasetInvalidError(
            f"the file cannot be read: {error.strerror or error}", where=location(path)
        ) from error


def _decode(raw: bytes, path: Path, number: int) -> str:
    if b"\0" in raw:
        raise DatasetInvalidError(
            "a NUL byte", where=location(path, number), hint="save the file as UTF-8"
        )
    try:
        line = raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DatasetInvalidError(
            f"byte {error.start + 1} of the line (0x{raw[error.start]:02x}) is not UTF-8",
            where=location(path, number),
            hint="save the file as UTF-8",
        ) from None
    if number == 1:
        line = line.removeprefix(_BOM)
    if line.startswith(_BOM):
        raise DatasetInvalidError(
            "a byte order mark inside the file",
            where=location(path, number),
            hint="were two files joined? Remove it",
        )
    return line


# --- JSON --------------------------------------------------------------------


class _RefusedError(ValueError):
    """Something that the json module would let pass."""


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _RefusedError(f"the field {shown(twice)} stands twice in one object")
    return fields


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _RefusedError(f"the number {text[:20]} is too large")
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise _RefusedError(f"{text} is not JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique_fields, parse_float=_finite_float, parse_constant=_refuse_constant
)


def _check_inside(value: Any) -> None:
    """Refuse what parses but could not be written again."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, str) and not _is_encodable(item):
                raise _RefusedError(
                    f"the text {shown(item)} has half a surrogate pair, which is no character"
                )
        level = below
    if level:
        raise _RefusedError(f"nested deeper than {MAX_DEPTH} levels")


def _is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _parse(line: str) -> Any:
    """Return the JSON value of ``line``; `_RefusedError` says what is wrong with it."""
    try:
        value = _DECODER.decode(line)
    except json.JSONDecodeError as error:
        raise _RefusedError(f"not JSON at column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _RefusedError(f"nested deeper than {MAX_DEPTH} levels") from None
    except _RefusedError:
        raise
    except ValueError:
        raise _RefusedError("a number has too many digits") from None
    # Looking inside costs as much as parsing; only few lines can need it.
    suspicious = "\\ud" in line or "\\uD" in line
    if suspicious or line.count("[") + line.count("{") > MAX_DEPTH:
        _check_inside(value)
    return value


# --- records ---------------------------------------------------------------


def read_records(path: Path, expected: str) -> Generator[Record]:
    """Yield the JSON objects of a file with one object on each line.

    Args:
        path: The file.
        expected: What the folder should hold, for the error when it is missing.

    Raises:
        DatasetNotFoundError: if there is no such file.
        DatasetInvalidError: if a line is not a JSON object, or there is none.
    """
    found = False
    for number, line in read_lines(path, expected):
        found = True
        yield record_of(path, number, line)
    if not found:
        raise DatasetInvalidError("the file holds no record", where=location(path))


def record_of(path: Path, number: int, line: str) -> Record:
    """Return the JSON object on a line.

    Raises:
        DatasetInvalidError: if there is something else.
    """
    try:
        value = _parse(line)
    except _RefusedError as error:
        raise DatasetInvalidError(
            str(error), where=location(path, number), hint="one JSON object on each line"
        ) from None
    if not isinstance(value, dict):
        raise DatasetInvalidError(
            f"{shown(value)} is {kind_of(value)}, not an object",
            where=location(path, number),
            hint="one JSON object on each line",
        )
    return Record(path, number, value)
