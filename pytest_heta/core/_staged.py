"""Staged documents as recipes see them: a folder of two files, read by place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from pytest_heta.core._part import open_part
from pytest_heta.core._stage_index import StageIndex
from pytest_heta.errors import BuildError

__all__ = [
    "CONTENTS",
    "DatasetFacts",
    "StagedDocuments",
    "StagedStore",
]

CONTENTS: Final = "contents.bin"
"""The contents of all documents, one behind the other."""


class StagedStore:
    """An `ObjectStore` over staged documents that sees only its own keys."""

    def __init__(self, staged: StagedDocuments, keys: Sequence[str]) -> None:
        self._staged = staged
        self._keys = tuple(keys)
        # The stage knows all keys; a second table of them would cost much.
        self._known = None if staged.has_all(self._keys) else frozenset(keys)

    def get(self, key: str) -> bytes:
        """Return the content; raises `KeyError` for a key that is not there."""
        with self.open(key) as file:
            return file.read()

    def open(self, key: str) -> BinaryIO:
        """Open the content for reading; raises `KeyError` as `get` does."""
        return self._staged.open_content(self._own(key))

    def exists(self, key: str) -> bool:
        """Whether the key is there."""
        return self._staged.has_key(key) if self._known is None else key in self._known

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
        if not self.exists(key):
            raise KeyError(key)
        return key


class DatasetFacts(NamedTuple):
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
        return document_id in self._index

    def has_key(self, key: str) -> bool:
        """Whether the benchmark has a document behind this key."""
        return self._index.has_key(key)

    def has_all(self, keys: Sequence[str]) -> bool:
        """Whether these are the keys of all documents, in the benchmark's order."""
        return len(keys) == len(self._index) and tuple(keys) == self._index.all_keys()

    def keys(self, document_ids: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the raw keys of documents in the benchmark's order; of all for ().

        Raises:
            BuildError: if one is not in the corpus, or cannot be read.
        """
        numbers = set()
        for document_id in document_ids:
            number = self._index.number(document_id)
            if number is None:
                raise BuildError(
                    f"document {document_id!r} is not in the corpus",
                    hint="add it to the documents, or take it out of the run unit",
                )
            numbers.add(number)
        for document_id in document_ids or self.problems:
            if document_id in self.problems:
                problem = self.problems[document_id]
                raise BuildError(f"document {document_id!r} cannot be read: {problem}")
        if not document_ids:
            return self._index.all_keys()
        # Never a walk over the corpus: there may be as many units as documents.
        return self._index.keys(sorted(numbers))

    @property
    def facts(self) -> DatasetFacts:
        """What staging found out."""
        return DatasetFacts(self.dataset_digest, self.document_count, self.warnings, self.dangling)

    def store(self, keys: Sequence[str]) -> StagedStore:
        """Return a store that sees only ``keys``."""
        return StagedStore(self, keys)

    def digest_of(self, keys: Sequence[str]) -> str:
        """Return the SHA-256 of documents in this order: keys, metadata and contents."""
        if self.has_all(keys):
            return self.digest  # which is the same, and known
        digest = sha256()
        for line in self._index.lines(keys):
            digest.update(line)
        return digest.hexdigest()

    def open_content(self, key: str) -> BinaryIO:
        """Open the content behind a key."""
        return open_part(self.root / CONTENTS, *self._index.content_place(key))

    def metadata(self, key: str) -> dict[str, Any]:
        """Return what is known of the document behind a key."""
        row = self._index.row(key)
        own = {name: row[name] for name in ("document_id", "name", "media_type")}
        return {**row["metadata"], **own}
