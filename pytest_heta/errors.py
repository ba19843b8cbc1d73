"""The errors of pytest-heta.

    HetaError
    ├── ConfigurationError            options, ini keys, suites: a usage error
    │   ├── OptionInvalidError
    │   ├── RecipeNotFoundError
    │   ├── RecipeInvalidError
    │   ├── GateInvalidError
    │   ├── MeasureUnknownError
    │   ├── ModeUnknownError
    │   └── ExtraMissingError
    ├── ModelInvalidError             a value that a model of the vocabulary refuses
    ├── BenchmarkError                what an adapter or its data does wrong
    │   ├── SuiteInvalidError
    │   ├── DatasetNotFoundError
    │   ├── DatasetInvalidError
    │   ├── DuplicateIdError
    │   ├── PlanInvalidError
    │   ├── DocumentUnavailableError
    │   ├── DownloadError
    │   ├── ChecksumError
    │   ├── ArchiveError
    │   └── OfflineError
    ├── ExecutionError                a sample, or its run unit, could not be run
    │   ├── BuildError
    │   ├── BuildTimeoutError
    │   ├── LoopBlockedError
    │   ├── QueryError
    │   ├── QueryTimeoutError
    │   └── ResponseInvalidError
    ├── ReportError                   a report cannot be read or written
    ├── CacheError                    a saved knowledge base, or their folder, cannot be used
    ├── RunError                      the folder of a run cannot be used
    │   ├── RunNotFoundError
    │   ├── RunInUseError
    │   ├── RunFormatError
    │   └── ResumeRefusedError
    └── InternalError                 what nobody expected

Every class has a stable ``code``, which `pytest_heta.codes` documents. The text
of an error is one line: the code, where, what is wrong, and what to do about it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import ClassVar, Final

__all__ = [
    "ArchiveError",
    "BenchmarkError",
    "BuildError",
    "BuildTimeoutError",
    "CacheError",
    "ChecksumError",
    "ConfigurationError",
    "DatasetInvalidError",
    "DatasetNotFoundError",
    "DocumentUnavailableError",
    "DownloadError",
    "DuplicateIdError",
    "ExecutionError",
    "ExtraMissingError",
    "GateInvalidError",
    "HetaError",
    "InternalError",
    "LoopBlockedError",
    "MeasureUnknownError",
    "ModeUnknownError",
    "ModelInvalidError",
    "OfflineError",
    "OptionInvalidError",
    "PlanInvalidError",
    "QueryError",
    "QueryTimeoutError",
    "RecipeInvalidError",
    "RecipeNotFoundError",
    "ReportError",
    "ResponseInvalidError",
    "ResumeRefusedError",
    "RunError",
    "RunFormatError",
    "RunInUseError",
    "RunNotFoundError",
    "SuiteInvalidError",
    "did_you_mean",
    "first_of",
    "from_here",
    "one_line",
    "shown",
]

_SHOWN_LENGTH: Final = 60
_LEAST_LIKENESS: Final = 0.5


def one_line(text: object) -> str:
    """Return ``text`` with every run of white space folded to one space."""
    return " ".join(str(text).split())


def shown(value: object) -> str:
    """Return ``value`` as it may stand in a message: quoted, and not too long."""
    text = repr(value)
    return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "…"


def first_of(ids: Sequence[str], limit: int) -> str:
    """Return the first ``limit`` ids as a list for a message, with a sign if there are more."""
    return ", ".join([*ids[:limit], *(["…"] if len(ids) > limit else [])])


def from_here(place: str) -> str:
    """Return a path, or ``file:line``, relative to the current folder if it is in there."""
    return place.removeprefix(f"{os.getcwd()}{os.sep}")  # noqa: PTH109 - may be gone, and is text


def did_you_mean(name: str, known: Iterable[str], likely: Sequence[str] = ()) -> str:
    """Return a hint that says what was probably meant, and lists what there is.

    Args:
        name: What was written.
        known: All names that it could have been.
        likely: What was probably meant, where that is known better than by
            the letters; otherwise it is the closest known name.
    """
    names = list(known)
    meant = likely or get_close_matches(name, names, n=1, cutoff=_LEAST_LIKENESS)
    listed = ", ".join(names) or "none"
    if not meant:
        return f"known: {listed}"
    return f"did you mean {' or '.join(map(repr, meant))}? Known: {listed}"


class HetaError(Exception):
    """The base of every error that pytest-heta raises on purpose.

    Args:
        message: What is wrong, without the place.
        where: The place: ``file:line``, a case, a run unit, an option.
        hint: What to do about it.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = one_line(message)
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        """Return the one line that a user sees."""
        line = f"[{self.code}] "
        if self.where:
            line += f"{one_line(self.where)}: "
        line += self.message
        if self.hint:
            line += f"; {one_line(self.hint)}"
        return line

    def blaming(self, source: str) -> HetaError:
        """Return the same error with the option, or file, that it came by as its first place."""
        where = f"{source}, {self.where}" if self.where else source
        return _rebuild(type(self), self.message, where, self.hint)

    def __reduce__(self) -> tuple[object, ...]:
        """Keep place and hint when the error crosses a process boundary."""
        return (_rebuild, (type(self), self.message, self.where, self.hint))


def _rebuild(kind: type[HetaError], message: str, where: str | None, hint: str | None) -> HetaError:
    return kind(message, where=where, hint=hint)


class ConfigurationError(HetaError):
    """An option, ini key or suite declaration is wrong."""

    code = "configuration-invalid"


class OptionInvalidError(ConfigurationError):
    """An option or ini key has a value that it cannot have."""

    code = "option-invalid"


class RecipeNotFoundError(ConfigurationError):
    """No recipe has the given name, import string or path."""

    code = "recipe-not-found"


class RecipeInvalidError(ConfigurationError):
    """The object named as a recipe does not have the shape of one."""

    code = "recipe-invalid"


class GateInvalidError(ConfigurationError):
    """A gate cannot be parsed, or names something that is not planned."""

    code = "gate-invalid"


class MeasureUnknownError(ConfigurationError):
    """A measure string does not name a measure."""

    code = "measure-unknown"


class ModeUnknownError(ConfigurationError):
    """A query mode is not one of the recipe's modes."""

    code = "mode-unknown"


class ExtraMissingError(ConfigurationError):
    """A feature needs a package that is not installed."""

    code = "extra-missing"


class ModelInvalidError(HetaError):
    """A value does not fit the model it was given to."""

    code = "model-invalid"


class BenchmarkError(HetaError):
    """A benchmark adapter, or the data it reads, is wrong."""

    code = "benchmark-invalid"


class SuiteInvalidError(BenchmarkError):
    """A suite file cannot be imported."""

    code = "suite-invalid"


class DatasetNotFoundError(BenchmarkError):
    """A file or folder of a dataset is missing."""

    code = "dataset-not-found"


class DatasetInvalidError(BenchmarkError):
    """A file of a dataset cannot be read as what it should be."""

    code = "dataset-invalid"


class DuplicateIdError(BenchmarkError):
    """Two records of one benchmark have the same id."""

    code = "duplicate-id"


class PlanInvalidError(BenchmarkError):
    """Run units and cases of a benchmark do not fit together."""

    code = "plan-invalid"


class DocumentUnavailableError(BenchmarkError):
    """The content of a document cannot be read."""

    code = "document-unavailable"


class DownloadError(BenchmarkError):
    """A resource of a benchmark cannot be downloaded."""

    code = "download-failed"


class ChecksumError(BenchmarkError):
    """A resource is not the one that its checksum or size was written for."""

    code = "checksum-mismatch"


class ArchiveError(BenchmarkError):
    """An archive is damaged, or holds what could do harm."""

    code = "archive-unsafe"


class OfflineError(BenchmarkError):
    """A resource would have to be downloaded, and the network may not be used."""

    code = "offline"


class ExecutionError(HetaError):
    """A sample could not be run: it counts as failed."""

    code = "execution-failed"


class BuildError(ExecutionError):
    """The knowledge base of a run unit could not be built."""

    code = "build-failed"


class BuildTimeoutError(ExecutionError):
    """The knowledge base of a run unit took too long to build."""

    code = "build-timeout"


class LoopBlockedError(ExecutionError):
    """A coroutine blocks the event loop: nothing else runs there, and it cannot be cancelled."""

    code = "loop-blocked"


class QueryError(ExecutionError):
    """A knowledge base failed to answer a query."""

    code = "query-failed"


class QueryTimeoutError(ExecutionError):
    """A knowledge base took too long to answer."""

    code = "query-timeout"


class ResponseInvalidError(ExecutionError):
    """A knowledge base answered with something that is not a response."""

    code = "response-invalid"


class ReportError(HetaError):
    """A report cannot be read or written."""

    code = "report-invalid"


class CacheError(HetaError):
    """A saved knowledge base, or the folder with them, cannot be used.

    In a run it is a warning, and the knowledge base is built.
    """

    code = "cache-unusable"


class RunError(HetaError):
    """The folder of a run, with what came of it so far, cannot be used."""

    code = "run-unusable"


class RunNotFoundError(RunError):
    """There is no run to go on with."""

    code = "run-not-found"


class RunInUseError(RunError):
    """Another process is working on the run."""

    code = "run-in-use"


class RunFormatError(RunError):
    """A run was written by a version of this package with another format."""

    code = "run-format"


class ResumeRefusedError(RunError):
    """The run cannot be gone on with: something is not as it was."""

    code = "resume-refused"


class InternalError(HetaError):
    """Something happened that pytest-heta does not expect."""

    code = "internal-error"
