"""The results of a run, on disk as they come in, and their tallies in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from sys import intern
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from pydantic_core import from_json

from pytest_heta.core._appended import AppendedFile
from pytest_heta.core.plan import Sample
from pytest_heta.core.records import HEAD, framed
from pytest_heta.models import EvaluationCaseResult, PagedResults, SampleTally

__all__ = ["Entry", "PayloadHead", "ResultJournal", "parsed_json", "payload_head", "sample_of"]

_SEPARATOR: Final = b',"result":'
"""What stands before the result of a payload, and nowhere in what comes before it.

Within JSON text a quote can only be escaped, and no key before it has this name.
"""


class Entry(NamedTuple):
    """Where a result stands in the journal, and how it is counted.

    Attributes:
        offset: First byte of the result's JSON text, of all that was taken.
        length: Its bytes.
        tally: How it is counted.
    """

    offset: int
    length: int
    tally: SampleTally


class ResultJournal:
    """An append-only file of results, one payload of `encode_result` to a record.

    A result is with the operating system as soon as it was taken: it outlives
    the process. Nothing is opened before there is something to write. A second
    result of a sample takes the place of the first, which stays in the file. What
    cannot be written, as on a full disk, stays in memory and is read from there.

    Args:
        path: The file; there must be none yet.
    """

    def __init__(self, path: Path) -> None:
        self._lines = AppendedFile(path)
        self._entries: dict[str, dict[Sample, Entry]] = {}

    def __enter__(self) -> Self:
        """Return the journal."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    @property
    def problem(self) -> str | None:
        """Why results stay in memory, in one line; None if they are written down."""
        return self._lines.problem

    def take(self, payload: str) -> tuple[str, Sample]:
        """Write down a result.

        Args:
            payload: What `encode_result` returned.

        Returns:
            Plan label and sample of the result.

        Raises:
            FileExistsError: if the file is somebody else's.
            ValueError: if it is no payload.
        """
        line = payload.encode()
        label, sample, tally, result = payload_head(line)
        self._append(label, sample, tally, line, result)
        return label, sample

    def keep(self, label: str, sample: Sample, tally: SampleTally, payload: str) -> None:
        """Write down a result of which it is known already what `take` would find out.

        Raises:
            FileExistsError: if the file is somebody else's.
        """
        line = payload.encode()
        self._append(label, sample, tally, line, line.find(_SEPARATOR) + len(_SEPARATOR))

    def tallies(self, label: str) -> Mapping[Sample, SampleTally]:
        """Return how the results of a plan are counted, by sample."""
        return {sample: entry.tally for sample, entry in self.entries(label).items()}

    def entries(self, label: str) -> Mapping[Sample, Entry]:
        """Return where the results of a plan are, by sample, in order of arrival."""
        return MappingProxyType(self._entries.get(label, {}))

    def results(self, label: str, samples: Iterable[Sample] | None = None) -> PagedResults:
        """Return the results of a plan.

        Args:
            label: Label of the plan.
            samples: The order they are wanted in; those without a result are
                left out. None means all in order of arrival.
        """
        known = self._entries.get(label, {})
        chosen = known.values() if samples is None else [known[s] for s in samples if s in known]
        entries = tuple(chosen)
        return PagedResults([entry.tally for entry in entries], partial(_read_entry, self, entries))

    def result(self, label: str, sample: Sample) -> EvaluationCaseResult:
        """Return the result of a sample.

        Raises:
            KeyError: if it has none.
        """
        return EvaluationCaseResult.model_validate_json(self.raw(label, sample))

    def raw(self, label: str, sample: Sample) -> bytes:
        """Return the JSON text of a sample's result.

        Raises:
            KeyError: if it has none.
        """
        return self.read(self._entries[label][sample])

    def read(self, entry: Entry) -> bytes:
        """Return the JSON text of a result.

        Raises:
            OSError: if the file cannot be read, as after `close`.
        """
        return self._lines.read(entry.offset, entry.length)

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._lines.close()

    def _append(
        self, label: str, sample: Sample, tally: SampleTally, line: bytes, begin: int
    ) -> None:
        length = len(line) - begin - 1  # without the payload's last brace
        offset = self._lines.append(framed(line)) + HEAD + begin
        self._entries.setdefault(label, {})[sample] = Entry(offset, length, tally)


class PayloadHead(NamedTuple):
    """What a payload says of its result.

    Attributes:
        label: Label of the plan.
        sample: The sample.
        tally: How the result is counted.
        result: First byte of the result's JSON text; it ends before the last byte.
    """

    label: str
    sample: Sample
    tally: SampleTally
    result: int


def payload_head(payload: bytes) -> PayloadHead:
    """Return what a payload says of its result, which is not parsed.

    Raises:
        ValueError: if it is no payload.
    """
    end = payload.find(_SEPARATOR)
    if end < 0:
        raise ValueError("this is not the payload of a result")
    data = parsed_json(payload[:end] + b"}")
    sample = sample_of(data["sample"])
    tally = SampleTally.from_data(sample.mode, sample.case, data["tally"])
    return PayloadHead(intern(data["label"]), sample, tally, end + len(_SEPARATOR))


def sample_of(parts: Sequence[Any]) -> Sample:
    """Return a sample that was written as JSON."""
    benchmark, recipe, unit, mode, case, repeat = parts
    # All samples of a run share a few names: one text of each is kept.
    return Sample(intern(benchmark), intern(recipe), intern(unit), intern(mode), case, repeat)


def parsed_json(text: bytes) -> dict[str, Any]:
    """Return a JSON object, which may hold escapes of lone surrogates.

    Raises:
        ValueError: if it is not JSON.
    """
    data: dict[str, Any]
    try:
        data = from_json(text)
    except ValueError:  # escapes of lone surrogates
        data = json.loads(text)
    return data


def _read_entry(journal: ResultJournal, entries: tuple[Entry, ...], index: int) -> bytes:
    return journal.read(entries[index])
