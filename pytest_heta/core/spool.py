"""What one process has asked so far, on disk: it outlives the process.

Each process of a run has two files of its own. The spool has a record for every
query that returned, written the moment it does. The flight recorder says whose
code is being executed right now: when a process dies, that is the sample it
died of, which need not be the one whose result was waited for. Where it was
several samples' code, those are suspects: a file that all processes of the run
share lists them, and each is asked alone when it is asked again.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import threading
from array import array
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic_core import to_json

from pytest_heta.core import _sync
from pytest_heta.core._plain import exception_text, plain
from pytest_heta.core.journal import parsed_json
from pytest_heta.core.plan import Sample
from pytest_heta.core.query import QueryOutcome
from pytest_heta.core.records import framed

__all__ = [
    "FlightRecorder",
    "Spool",
    "add_suspects",
    "executing",
    "record_head",
    "suspects",
]

SLOTS: Final = 256
"""Threads that a flight recorder can tell apart."""

MAIN_SLOT: Final = 0
LOOP_SLOT: Final = 1
FIRST_THREAD_SLOT: Final = 2

_BYTES_PER_SLOT: Final = 8

_SUSPECTS: Final = "suspects"


class Spool:
    """Appends what queries returned to a file, one JSON record each.

    A record has ``label``, ``sample`` (its six parts), ``cold``, ``latency_ms``,
    ``attempts`` if there were several, and the whole ``response``; or, where
    the query failed, its ``error``. The file is made with the first record.
    They may be added from any thread.

    Args:
        path: The file.

    Attributes:
        problem: Why nothing is written any more, None if all is well. The run
            goes on: only what a killed process had asked is lost then.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file: int | None = None
        self.problem: str | None = None

    def add(self, label: str, sample: Sample, outcome: QueryOutcome, *, cold: bool) -> bytes:
        """Append one outcome; it is with the operating system when this returns.

        Returns:
            The response, or the error, as JSON text.
        """
        name, body = _body(outcome)
        line = framed(b'%b,"%b":%b}' % (_head(label, sample, outcome, cold=cold), name, body))
        with self._lock:
            if self.problem is None:
                try:
                    self._write(line)
                except OSError as error:
                    self.problem = exception_text(error)
        return body

    def _write(self, line: bytes) -> None:
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        written = os.write(self._file, line)
        while written < len(line):
            line = line[written:]
            written = os.write(self._file, line)
        _sync.note(self._file)

    def close(self) -> None:
        """Close the file; may be called twice. What comes later is not written."""
        with self._lock:
            file, self._file = self._file, None
            if file is not None:
                _sync.forget(file)
                with suppress(OSError):
                    os.fsync(file)
                os.close(file)
            self.problem = self.problem or "the spool is closed"


def record_head(record: bytes) -> tuple[dict[str, Any], bool]:
    """Return what a record says besides what came of the query, which is not parsed.

    Returns:
        The data, and whether the query returned a response.

    Raises:
        ValueError: if it is no record of a spool.
    """
    for name, has_response in ((b"response", True), (b"error", False)):
        # No key before it has this name, and within JSON text a quote is escaped.
        end = record.find(b',"%b":' % name)
        if end >= 0:
            with suppress(ValueError):  # a failure may tell of a response
                return parsed_json(record[:end] + b"}"), has_response
    raise ValueError("this is not the record of a query")


def _head(label: str, sample: Sample, outcome: QueryOutcome, *, cold: bool) -> bytes:
    head: dict[str, Any] = {
        "label": label,
        "sample": sample,
        "cold": cold,
        "latency_ms": outcome.latency_ms,
    }
    if outcome.attempts > 1:
        head["attempts"] = outcome.attempts
    try:
        return to_json(head)[:-1]
    except ValueError:  # a lone surrogate in an id
        return json.dumps(head, separators=(",", ":")).encode("ascii")[:-1]


def _body(outcome: QueryOutcome) -> tuple[bytes, bytes]:
    if outcome.response is None:
        error = outcome.error.model_dump() if outcome.error is not None else None
        return b"error", json.dumps(plain(error)).encode("ascii")
    response = outcome.response
    try:
        return b"response", response.__pydantic_serializer__.to_json(response)
    except ValueError:
        # Somebody's metadata: what JSON lacks becomes plain data.
        data = plain(response, max_nodes=sys.maxsize, max_text=sys.maxsize)
        return b"response", json.dumps(data).encode("ascii")


class FlightRecorder:
    """Remembers, outside the process, whose code is being executed in it.

    Every thread has a slot of its own. A slot holds the sample's number plus
    one while the sample's code runs there, and 0 while nothing does.

    Args:
        path: The file; it is made.

    Raises:
        OSError: if it cannot be.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb+") as file:
            # Not a sparse file: there is no error for a full disk in a mapping.
            file.write(bytes(SLOTS * _BYTES_PER_SLOT))
            file.flush()
            self._map = mmap.mmap(file.fileno(), SLOTS * _BYTES_PER_SLOT)
        self.slots: Any = memoryview(self._map).cast("q")

    def close(self) -> None:
        """Let go of the file; may be called twice."""
        self.slots.release()
        self._map.close()


def executing(path: Path) -> tuple[int, ...]:
    """Return the numbers of the samples whose code a dead process was executing.

    The likeliest killer comes first: the main thread's, the event loop's, and
    of other threads' the one that was begun last. None are returned if the
    process had no flight recorder, or no sample's code was running.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return ()
    slots = array("q")
    slots.frombytes(content[: len(content) // _BYTES_PER_SLOT * _BYTES_PER_SLOT])
    first, others = slots[:FIRST_THREAD_SLOT], slots[FIRST_THREAD_SLOT:]
    return tuple(slot - 1 for slot in (*first, *sorted(others, reverse=True)) if slot > 0)


def add_suspects(folder: Path, numbers: Iterable[int]) -> None:
    """List more samples that a process may have died of, for all processes with this folder.

    Raises:
        OSError: if they cannot be written down.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _SUSPECTS).open("a", encoding="ascii") as file:
        file.write("".join(f"{number}\n" for number in numbers))


def suspects(folder: Path) -> frozenset[int]:
    """Return the numbers of all samples that processes may have died of."""
    try:
        content = (folder / _SUSPECTS).read_text(encoding="ascii")
    except OSError:
        return frozenset()
    # What comes after the last line end is being written.
    return frozenset(map(int, content.rpartition("\n")[0].split()))
