"""Staged documents as recipes see them: a folder of two files, read by place."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from pytest_heta.core._part import open_part
from pytest_heta.errors import BuildError

__all__ = [
    "CONTENTS",
    "INDEX",
    "DatasetFacts",
    "StageIndex",
    "StagedDocuments",
    "StagedStore",
    "read_index",
]

CONTENTS: Final = "contents.bin"
"""The contents of all documents, one behind the other."""

INDEX: Final = "index.jsonl"
"""One row for each document, in the benchmark's order."""


class StagedStore:
    """An `ObjectStore` over staged documents that sees only its own keys."""

    def __init__(self, staged: StagedDocuments, keys: Sequence[str]) -> None:
        self._staged = staged
        self._keys = tuple(keys)
        self._known = frozenset(keys)

    def get(self, key: str) -> bytes:
        """Return the content; raises `KeyError` for a key that is not there."""
        with self.open(key) as file:
            return file.read()

    def open(self, key: str) -> BinaryIO:
        """Open the content for reading; raises `KeyError` as `get` does."""
        return self._staged.open_content(self._own(key))

    def exists(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._known

    def list(self, prefix: str = "") -> Iterable[str]:
        """Yield the keys that start with ``prefix``, in the benchmark's order."""
        return (key for key in self._keys if key.startswith(prefix))

    def metadata(self, key: str) -> dict[str, Any]:
        """Return ``document_id``, ``name``, ``media_type`` and the document's metadata.

        Raises:
            KeyError: for a key that is not there.
        """
        return self._staged.metadata(self._own(key))

    def _own(self, key: str) -> str:
        if key not in self._known:
            raise KeyError(key)
        return key


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """What staging the documents of a benchmark found out, for its reports.

    Attributes:
        digest: SHA-256 of the documents, cases and run units.
        document_count: Number of documents.
        warnings: What is odd about them.
        dangling: Judged documents that are not in the corpus.
    """

    digest: str
    document_count: int
    warnings: Sequence[str]
    dangling: Sequence[str]


@dataclass(frozen=True, slots=True)
class StagedDocuments:
    """The staged documents of one benchmark.

    Attributes:
        root: Folder they are in.
        digest: SHA-256 of keys, metadata and contents, in the benchmark's order.
        dataset_digest: SHA-256 of the documents, cases and run units.
        document_count: Number of documents.
        size_bytes: Size of their contents.
        warnings: What is odd about them.
        dangling: Judged documents that are not in the corpus.
        problems: Why the content of a document cannot be read, by its id.
    """

    root: Path
    digest: str
    dataset_digest: str
    document_count: int
    size_bytes: int
    warnings: tuple[str, ...]
    dangling: tuple[str, ...]
    problems: Mapping[str, str]
    _index: StageIndex = field(repr=False)

    def knows(self, document_id: str) -> bool:
        """Whether the benchmark has a document of this id."""
        return document_id in self._index.keys

    def keys(self, document_ids: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the raw keys of documents in the benchmark's order; of all for ().

        Raises:
            BuildError: if one is not in the corpus, or cannot be read.
        """
        index = self._index
        for document_id in document_ids:
            if document_id not in index.keys:
                raise BuildError(
                    f"document {document_id!r} is not in the corpus",
                    hint="add it to the documents, or take it out of the run unit",
                )
        wanted = frozenset(document_ids)
        for document_id, problem in self.problems.items():
            if not wanted or document_id in wanted:
                raise BuildError(f"document {document_id!r} cannot be read: {problem}")
        if not wanted:
            return tuple(index.keys.values())
        # Never a walk over the corpus: there may be as many units as documents.
        return tuple(sorted((index.keys[name] for name in wanted), key=index.numbers.__getitem__))

    @property
    def facts(self) -> DatasetFacts:
        """What staging found out."""
        return DatasetFacts(self.dataset_digest, self.document_count, self.warnings, self.dangling)

    def store(self, keys: Sequence[str]) -> StagedStore:
        """Return a store that sees only ``keys``."""
        return StagedStore(self, keys)

    def open_content(self, key: str) -> BinaryIO:
        """Open the content behind a key."""
        number = self._index.numbers[key]
        starts = self._index.content_starts
        return open_part(self.root / CONTENTS, starts[number], starts[number + 1])

    def metadata(self, key: str) -> dict[str, Any]:
        """Return what is known of the document behind a key."""
        with (self.root / INDEX).open("rb") as index:
            index.seek(self._index.row_starts[self._index.numbers[key]])
            row = json.loads(index.readline())
        own = {name: row[name] for name in ("document_id", "name", "media_type")}
        return {**row["metadata"], **own}


@dataclass(frozen=True, slots=True)
class StageIndex:
    """Where what stands in the files of a stage.

    Attributes:
        keys: Raw keys by document id, in the benchmark's order.
        numbers: Positions in that order by raw key.
        row_starts: Where the row of each document starts in the index.
        content_starts: Where the content of each document starts; and the end.
    """

    keys: dict[str, str]
    numbers: dict[str, int]
    row_starts: array[int]
    content_starts: array[int]


def read_index(path: Path) -> StageIndex:
    """Return the index that a finished stage has in its file."""
    keys: dict[str, str] = {}
    numbers: dict[str, int] = {}
    row_starts, content_starts = array("Q"), array("Q", [0])
    row_start = 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            keys[row["document_id"]] = row["key"]
            numbers[row["key"]] = number
            row_starts.append(row_start)
            content_starts.append(content_starts[-1] + row["size"])
            row_start += len(line)
    return StageIndex(keys, numbers, row_starts, content_starts)
