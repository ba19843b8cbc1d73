"""The values of the option that asks for a report file."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from pytest_heta.errors import ConfigurationError

__all__ = ["ReportTarget", "parse_report_option"]

_FORMATS: Final = ("json",)
_PLANNED_FORMATS: Final = ("md", "html", "csv", "trec", "benchmark")


class ReportTarget(NamedTuple):
    """A report file that was asked for.

    Attributes:
        format: ``json``, the one format so far.
        path: Where to write it.
    """

    format: str
    path: Path


def parse_report_option(text: str) -> ReportTarget:
    r"""Return what ``FORMAT:PATH`` asks for; the format ends at the first colon.

    ``json:C:\results\report.json`` is JSON on drive C. A bare path is refused:
    the format is never guessed from a file's name.

    Raises:
        ConfigurationError: if there is no known format, or no path to a file.
    """
    name, colon, path = text.partition(":")
    if colon and name in _PLANNED_FORMATS:
        raise _refused(f"report format {name!r} is not available yet", text)
    if not colon or name not in _FORMATS:
        known = f"{name!r} is not a report format" if colon else f"{text!r} names no format"
        raise _refused(known, text)
    if not path.strip():
        raise _refused(f"{text!r} names no file", text)
    if path.endswith(("/", "\\")):
        raise _refused(f"{path!r} is a folder", text)
    return ReportTarget(name, Path(path))


def _refused(message: str, text: str) -> ConfigurationError:
    formats = ", ".join(_FORMATS)
    return ConfigurationError(
        message,
        where=f"report {text!r}",
        hint=f"write FORMAT:PATH, such as json:report.json; formats: {formats}",
    )
