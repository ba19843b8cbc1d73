"""The results of a run, on disk as they come in, and their tallies in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from io import FileIO
from pathlib import Path
from sys import intern
from types import MappingProxyType
from typing import Any, BinaryIO, Final, NamedTuple, Self

from pydantic_core import from_json

from pytest_heta.core.plan import Sample
from pytest_heta.models import EvaluationCaseResult, PagedResults, SampleTally

__all__ = ["Entry", "ResultJournal"]

_SEPARATOR: Final = b',"result":'
"""What stands before the result of a payload, and nowhere in what comes before it.

Within JSON text a quote can only be escaped, and no key before it has this name.
"""

_BUFFER: Final = 1 << 18


class Entry(NamedTuple):
    """Where a result stands in the journal, and how it is counted.

    Attributes:
        offset: First byte of the result's JSON text.
        length: Its bytes.
        tally: How it is counted.
    """

    offset: int
    length: int
    tally: SampleTally


class ResultJournal:
    """An append-only file of results, one payload of `encode_result` to a line.

    Nothing is opened before there is something to write. A second result of a
    sample takes the place of the first, which stays in the file.

    Args:
        path: The file; there must be none yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: BinaryIO | None = None
        self._reader: FileIO | None = None
        self._end = 0
        self._is_flushed = True
        self._entries: dict[str, dict[Sample, Entry]] = {}

    def __enter__(self) -> Self:
        """Return the journal."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def take(self, payload: str) -> tuple[str, Sample]:
        """Write down a result.

        Args:
            payload: What `encode_result` returned.

        Returns:
            Plan label and sample of the result.

        Raises:
            OSError: if it cannot be written.
            ValueError: if it is no payload.
        """
        line = payload.encode()
        end_of_head = line.find(_SEPARATOR)
        if end_of_head < 0:
            raise ValueError("this is not the payload of a result")
        data = _parsed(line[:end_of_head] + b"}")
        benchmark, recipe, unit, mode, case, repeat = data["sample"]
        label = intern(data["label"])
        sample = Sample(intern(benchmark), intern(recipe), intern(unit), intern(mode), case, repeat)
        begin = end_of_head + len(_SEPARATOR)
        tally = SampleTally.from_data(sample.mode, case, data["tally"])
        entry = Entry(self._end + begin, len(line) - begin - 1, tally)
        self._append(line)
        self._entries.setdefault(label, {})[sample] = entry
        return label, sample

    def keep(self, label: str, sample: Sample, tally: SampleTally, payload: str) -> None:
        """Write down a result of which it is known already what `take` would find out.

        Raises:
            OSError: if it cannot be written.
        """
        line = payload.encode()
        begin = line.find(_SEPARATOR) + len(_SEPARATOR)
        entry = Entry(self._end + begin, len(line) - begin - 1, tally)
        self._append(line)
        self._entries.setdefault(label, {})[sample] = entry

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
        if self._writer is None:
            raise OSError(f"the journal {self._path} is closed")
        if not self._is_flushed:
            self._writer.flush()
            self._is_flushed = True
        if self._reader is None:
            # Without a buffer: the order of reading need not be that of the file.
            self._reader = self._path.open("rb", buffering=0)
        self._reader.seek(entry.offset)
        return self._reader.read(entry.length)

    def close(self) -> None:
        """Close the file; may be called twice."""
        for file in (self._reader, self._writer):
            if file is not None:
                file.close()
        self._reader = self._writer = None

    def _append(self, line: bytes) -> None:
        if self._writer is None:
            self._writer = self._path.open("xb", buffering=_BUFFER)
        self._writer.write(line)
        self._writer.write(b"\n")
        self._end += len(line) + 1
        self._is_flushed = False


def _parsed(head: bytes) -> dict[str, Any]:
    data: dict[str, Any]
    try:
        data = from_json(head)
    except ValueError:  # escapes of lone surrogates
        data = json.loads(head)
    return data


def _read_entry(journal: ResultJournal, entries: tuple[Entry, ...], index: int) -> bytes:
    return journal.read(entries[index])
