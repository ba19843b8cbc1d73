"""What earlier sessions of a run have finished: results, and responses without one."""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

from pydantic import ValidationError

from pytest_heta.core.attempts import Attempt
from pytest_heta.core.journal import parsed_json, payload_head, sample_of
from pytest_heta.core.plan import Sample
from pytest_heta.core.records import pieces
from pytest_heta.core.spool import record_head
from pytest_heta.errors import HetaError
from pytest_heta.models import QueryResponse, SampleTally

__all__ = ["RecordedResponse", "RecordedRun"]


class RecordedResponse(NamedTuple):
    """What a query returned.

    Attributes:
        response: The response.
        latency_ms: Milliseconds inside ``query``.
        cold: Whether it was the first of its unit and mode in its process.
        attempts: How often was asked until it came.
    """

    response: QueryResponse
    latency_ms: float | None
    cold: bool
    attempts: int = 1


class _Place(NamedTuple):
    file: int
    offset: int
    length: int


_Key = tuple[str, Sample]


class RecordedRun:
    """Reads what sessions wrote down; only where it stands is held in memory.

    A record that is damaged is as if it were not there.

    Args:
        sessions: Folders of the sessions, in order.

    Attributes:
        damaged: Pieces of the files that are no record.
    """

    def __init__(self, sessions: Sequence[Path]) -> None:
        self._files: list[mmap.mmap] = []
        self._results: dict[_Key, _Place] = {}
        self._responses: dict[_Key, _Place] = {}
        self._failures: dict[_Key, list[tuple[int, _Place]]] = {}
        self.damaged = 0
        for number, session in enumerate(sessions, start=1):
            self._read_results(number, session / "results.jsonl")
            for spool in sorted((session / "spool").glob("*.jsonl")):
                self.add_spool(spool)

    def __len__(self) -> int:
        """Return how many results and responses need not be asked for again."""
        return len(self._results.keys() | self._responses.keys())

    def counts(self, label: str) -> Counter[str]:
        """Return how many ``results`` and ``responses`` there are of a plan."""
        return Counter(
            results=sum(known == label for known, _ in self._results),
            responses=sum(known == label for known, _ in self._responses),
        )

    def result(self, label: str, sample: Sample) -> bytes | None:
        """Return the payload of a sample's last result that has no error, None without one."""
        place = self._results.get((label, sample))
        return None if place is None else self._text(place)

    def response(self, label: str, sample: Sample) -> RecordedResponse | None:
        """Return what a sample's query returned last, None if it did not or is no response."""
        place = self._responses.get((label, sample))
        if place is None:
            return None
        try:
            data = parsed_json(self._text(place))
            response = QueryResponse.model_validate(data["response"])
        except (HetaError, ValidationError, ValueError):
            del self._responses[label, sample]  # it is asked for several times
            return None
        attempts = data.get("attempts", 1)
        return RecordedResponse(response, data["latency_ms"], bool(data["cold"]), attempts)

    def is_known(self, label: str, sample: Sample) -> bool:
        """Whether there is a result or a response of a sample; nothing is read for it."""
        return (label, sample) in self._results or (label, sample) in self._responses

    def attempts(self, label: str, sample: Sample) -> tuple[Attempt, ...]:
        """Return a sample's earlier results that have an error, in order."""
        found = []
        for session, place in self._failures.get((label, sample), ()):
            with suppress(ValueError, KeyError, TypeError, AttributeError):  # somebody else's
                found.append(_attempt(session, parsed_json(self._text(place))["result"]))
        return tuple(found)

    # -- reading ----------------------------------------------------------------

    def _read_results(self, session: int, path: Path) -> None:
        for place in self._places(path):
            try:
                label, sample, tally, _ = payload_head(self._text(place))
            except (ValueError, KeyError, TypeError):
                self.damaged += 1
                continue
            if _is_finished(tally):
                self._results[label, sample] = place
            else:
                self._results.pop((label, sample), None)
                self._failures.setdefault((label, sample), []).append((session, place))

    def add_spool(self, path: Path) -> None:
        """Read one more spool: of a process that has died."""
        for place in self._places(path):
            try:
                data, has_response = record_head(self._text(place))
                key = (intern(data["label"]), sample_of(data["sample"]))
            except (ValueError, KeyError, TypeError):
                self.damaged += 1
                continue
            if has_response:
                self._responses[key] = place
            else:
                self._responses.pop(key, None)

    def _places(self, path: Path) -> Iterator[_Place]:
        try:
            file = _mapped(path)
        except OSError:  # it is there, and nobody can say what is in it
            self.damaged += 1
            return
        if file is None:
            return
        number = len(self._files)
        self._files.append(file)
        for piece in pieces(file):
            if piece is None:
                self.damaged += 1
            else:
                yield _Place(number, piece.offset, piece.length)
        if hasattr(file, "madvise"):  # what was looked through need not stay in memory
            file.madvise(mmap.MADV_DONTNEED)

    def _text(self, place: _Place) -> bytes:
        return self._files[place.file][place.offset : place.offset + place.length]


def _mapped(path: Path) -> mmap.mmap | None:
    """Return a file's content, None if there is none.

    Raises:
        OSError: if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, ValueError):  # the latter for an empty file
        return None


def _is_finished(tally: SampleTally) -> bool:
    """Whether a result need not be had again."""
    return not tally.failed and all(score.status != "errored" for score in tally.scores)


def _attempt(session: int, result: Mapping[str, Any]) -> Attempt:
    metadata, error = result["metadata"], result["error"]
    if error is None:
        lost = [(score["name"], score["metadata"].get("error")) for score in result["scores"]]
        told = [f"{name}: {_error_text(why)}" for name, why in lost if why]
        error = {"error_type": "scoring", "message": "; ".join(told) or "a score was lost"}
    return Attempt(
        session=session,
        error_type=error["error_type"],
        message=error["message"],
        latency_ms=result["latency_ms"],
        reused=bool(metadata.get("reused_response")),
        tries=metadata.get("attempts", 1),
    )


def _error_text(error: Any) -> str:
    if not isinstance(error, Mapping):
        return str(error)
    return ": ".join(str(error[name]) for name in ("type", "message") if name in error)
