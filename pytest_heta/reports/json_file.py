"""The report file: JSON, written as a stream and put in place at once.

The file is ``{"schema_version", "run", "reports"}``. Every case result has a
line of its own, so that two files can be compared line by line.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from pytest_heta.errors import HetaError, ReportError
from pytest_heta.models import SCHEMA_VERSION, EvaluationReport, PagedResults
from pytest_heta.models._strict_json import strict_json

__all__ = ["ReportFile", "check_writable", "read_reports", "write_reports"]

_RERUN: Final = "run the benchmark again to write a new one"


class ReportFile(NamedTuple):
    """The content of a report file.

    Attributes:
        schema_version: Version of the file's layout.
        run: What holds for the whole run.
        reports: One report for each benchmark and recipe.
    """

    schema_version: str
    run: dict[str, Any]
    reports: tuple[EvaluationReport, ...]


# --- writing -----------------------------------------------------------------


def check_writable(path: Path) -> None:
    """Make the folder of a report file, and check that the file can be written.

    Nothing is left behind but the folder.

    Raises:
        ReportError: if the folder cannot be made or written to, or if ``path``
            is a folder, a device or no valid name.
    """
    with _as_report_error(path):
        target = _target(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        probe = _beside(target)
        try:
            probe.touch(exist_ok=False)
        finally:
            probe.unlink(missing_ok=True)


def write_reports(path: Path, run: Mapping[str, Any], reports: Iterable[EvaluationReport]) -> None:
    """Write a report file; an older one stays whole until the new one is.

    The text is never in memory as a whole: reports are taken from the iterable
    one by one and written case by case. Numbers that are not finite are
    written as null, and lone surrogates as escapes.

    Args:
        path: The file. Its folder is made if need be.
        run: What holds for the whole run.
        reports: One report for each benchmark and recipe.

    Raises:
        ReportError: if the file cannot be written. Nothing is left behind.
    """
    with _as_report_error(path):
        target = _target(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = _beside(target)
        try:
            with temporary.open("xb", buffering=1 << 16) as file:
                for piece in _file_pieces(run, reports):
                    file.write(piece)
                _to_disk(file)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _file_pieces(run: Mapping[str, Any], reports: Iterable[EvaluationReport]) -> Iterator[bytes]:
    yield b'{\n"schema_version": %b,\n"run": ' % strict_json(SCHEMA_VERSION)
    yield from _value_pieces(run)
    yield b',\n"reports": ['
    separator = b"\n"
    for report in reports:
        yield separator
        yield from _report_pieces(report)
        separator = b",\n"
    yield b"\n]\n}\n"


def _report_pieces(report: EvaluationReport) -> Iterator[bytes]:
    separator = b"{\n"
    for name in type(report).model_fields:
        yield b'%b"%b": ' % (separator, name.encode())
        yield from _value_pieces(getattr(report, name))
        separator = b",\n"
    yield b"\n}"


def _value_pieces(value: object) -> Iterator[bytes]:
    """Yield the JSON of ``value``, the entries of a mapping or sequence one to a line."""
    if isinstance(value, Mapping) and value:
        separator = b"{\n"
        for key, entry in value.items():
            yield b"%b%b: %b" % (separator, strict_json(str(key)), strict_json(entry))
            separator = b",\n"
        yield b"\n}"
    elif isinstance(value, tuple | list | PagedResults) and value:
        # Pages are on disk as they stand in a report file.
        texts = value.texts() if isinstance(value, PagedResults) else map(strict_json, value)
        separator = b"[\n"
        for text in texts:
            yield b"%b%b" % (separator, text)
            separator = b",\n"
        yield b"\n]"
    else:
        yield b"[]" if isinstance(value, PagedResults) else strict_json(value)


def _target(path: Path) -> Path:
    """Return the file behind links, if it is one that may be replaced."""
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    if not stat.S_ISREG(mode):
        # Replacing a device such as /dev/null would break the machine for others.
        kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise ReportError(f"the path is {kind}", where=str(path), hint="name a file")
    return target


def _beside(target: Path) -> Path:
    """Return a new name in the folder of ``target``, short whatever its length."""
    return target.with_name(f".heta-report-{secrets.token_hex(8)}.tmp")


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _as_report_error(path: Path) -> Iterator[None]:
    """Turn what the file system and the JSON writer refuse into a report error."""
    try:
        yield
    except OSError as error:
        raise ReportError(
            f"cannot write the report: {error.strerror or error}",
            where=str(path),
            hint="choose another path",
        ) from error
    except ValueError as error:
        raise ReportError(f"cannot write the report: {error}", where=str(path)) from error


# --- reading -----------------------------------------------------------------


def read_reports(path: Path) -> ReportFile:
    """Return the reports of a file that `write_reports` wrote.

    Raises:
        ReportError: if the file is missing, empty, cut off, not strict JSON, of
            a newer schema, or not a report file.
    """
    where = str(path)
    data = _parse(_text(path), where)
    if not isinstance(data, dict) or not {"schema_version", "reports"} <= data.keys():
        raise ReportError(
            "this is JSON, but not a report file",
            where=where,
            hint="a report file holds schema_version, run and reports",
        )
    _check_version(data["schema_version"], where)
    run, reports = data.get("run", {}), data["reports"]
    if not isinstance(run, dict) or not isinstance(reports, list):
        raise ReportError(
            "'run' is an object and 'reports' a list in a report file", where=where, hint=_RERUN
        )
    return ReportFile(
        str(data["schema_version"]),
        run,
        tuple(_report(item, f"{where}: reports[{index}]") for index, item in enumerate(reports)),
    )


def _text(path: Path) -> str:
    where = str(path)
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        raise ReportError("there is no such report file", where=where) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ReportError(f"the report cannot be read: {reason}", where=where) from error
    if not raw.strip():
        raise ReportError("the report file is empty", where=where, hint=_RERUN)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            raise _cut_off(where) from None
        raise ReportError(
            f"the report file is not UTF-8: byte {error.start} is {raw[error.start]:#04x}",
            where=where,
            hint=_RERUN,
        ) from None


def _parse(text: str, where: str) -> Any:
    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not a JSON number")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ReportError("the report file is nested too deeply", where=where) from None
    except ValueError as error:
        written = text.rstrip()
        ends_early = isinstance(error, json.JSONDecodeError) and error.pos >= len(written)
        if written.lstrip().startswith("{") and (ends_early or not written.endswith("}")):
            raise _cut_off(where) from None
        raise ReportError(
            f"the report file is not JSON: {error}", where=where, hint=_RERUN
        ) from None


def _cut_off(where: str) -> ReportError:
    return ReportError("the report file is cut off before its end", where=where, hint=_RERUN)


def _check_version(version: object, where: str) -> None:
    digits = str(version)
    if not (digits.isascii() and digits.isdigit()):
        raise ReportError(f"schema_version {version!r} is not a version number", where=where)
    if int(digits) > int(SCHEMA_VERSION):
        raise ReportError(
            f"the report has schema version {digits}, newer than version {SCHEMA_VERSION}"
            " that this pytest-heta reads",
            where=where,
            hint="upgrade pytest-heta",
        )


def _report(item: object, where: str) -> EvaluationReport:
    if isinstance(item, dict) and "schema_version" in item:
        _check_version(item["schema_version"], where)
    try:
        return EvaluationReport.model_validate(item)
    except HetaError as error:
        raise ReportError(error.message, where=where) from None
