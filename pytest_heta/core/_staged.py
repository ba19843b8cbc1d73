"""Staged documents as recipes see them: a folder of two files, read by place."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final, NamedTuple

from pytest_heta.core._part import open_part
from pytest_heta.core._stage_index import StageIndex
from pytest_heta.core._unavailable import unavailable_error
from pytest_heta.errors import DocumentUnavailableError

__all__ = [
    "CONTENTS",
    "DatasetFacts",
    "NamedDocuments",
    "StagedDocuments",
    "StagedStore",
]

CONTENTS: Final = "contents.bin"
"""The contents of all documents, one behind the other."""

_NOTED: Final = 100
"""Documents that reports name with the reason why they cannot be read."""


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


@dataclass(frozen=True, slots=True)
class NamedDocuments(Container[str]):
    """Ids of all documents that a benchmark names, also of those that cannot be read."""

    readable: StageIndex
    problems: Mapping[str, str]

    def __contains__(self, document_id: object) -> bool:
        """Whether the benchmark names a document of this id."""
        return document_id in self.readable or document_id in self.problems


class DatasetFacts(NamedTuple):
    """What staging the documents of a benchmark found out, for its reports.

    Attributes:
        digest: SHA-256 of the documents, cases and run units.
        document_count: Number of documents.
        warnings: What is odd about them.
        dangling: Judged documents that are not in the corpus.
        unavailable: Why documents cannot be read, by id, of the first of them.
        unavailable_count: How many documents cannot be read.
        affected_count: How many cases fail for it.
    """

    digest: str
    document_count: int
    warnings: Sequence[str]
    dangling: Sequence[str]
    unavailable: Mapping[str, str] = MappingProxyType({})
    unavailable_count: int = 0
    affected_count: int = 0


@dataclass(frozen=True, slots=True)
class StagedDocuments:
    """The staged documents of one benchmark.

    Attributes:
        root: Folder they are in.
        digest: SHA-256 of keys, metadata and contents, in the benchmark's order.
        dataset_digest: SHA-256 of the documents, cases and run units.
        document_count: Number of documents, also of those that cannot be read.
        size_bytes: Size of their contents.
        warnings: What is odd about them.
        dangling: Judged documents that are not in the corpus.
        problems: Why the content of a document cannot be read, by its id. Such
            a document has no key: knowledge bases are built without it.
        missing_gold: Relevant documents among these, by the id of their case.
        affected_count: Number of cases that cannot be asked.
    """

    root: Path
    digest: str
    dataset_digest: str
    document_count: int
    size_bytes: int
    warnings: tuple[str, ...]
    dangling: tuple[str, ...]
    problems: Mapping[str, str]
    missing_gold: Mapping[str, tuple[str, ...]]
    affected_count: int
    _index: StageIndex = field(repr=False)

    @property
    def documents(self) -> Container[str]:
        """Ids of all documents that the benchmark names."""
        return NamedDocuments(self._index, self.problems)

    def knows(self, document_id: str) -> bool:
        """Whether the benchmark has a document of this id."""
        return document_id in self._index or document_id in self.problems

    def problem_of(self, case_id: str) -> DocumentUnavailableError | None:
        """Return why a case cannot be asked: no retriever finds what is not there."""
        gold = self.missing_gold.get(case_id)
        if gold is None:
            return None
        return unavailable_error(gold, self.problems, f"case {case_id}")

    def has_key(self, key: str) -> bool:
        """Whether the benchmark has a document behind this key."""
        return self._index.has_key(key)

    def has_all(self, keys: Sequence[str]) -> bool:
        """Whether these are the keys of all documents, in the benchmark's order."""
        return len(keys) == len(self._index) and tuple(keys) == self._index.all_keys()

    def keys(self, document_ids: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the raw keys of documents in the benchmark's order.

        Args:
            document_ids: The documents; () for all that can be read.

        Raises:
            DocumentUnavailableError: if one is not in the corpus or cannot be
                read, or none can.
        """
        broken = [name for name in document_ids if name in self.problems]
        if broken or (self.problems and not len(self._index)):
            raise unavailable_error(broken or tuple(self.problems), self.problems)
        if not document_ids:
            return self._index.all_keys()
        numbers = set()
        for document_id in document_ids:
            number = self._index.number(document_id)
            if number is None:
                raise DocumentUnavailableError(
                    f"document {document_id!r} is not in the corpus",
                    hint="add it to the documents, or take it out of the run unit",
                )
            numbers.add(number)
        # Never a walk over the corpus: there may be as many units as documents.
        return self._index.keys(sorted(numbers))

    @property
    def facts(self) -> DatasetFacts:
        """What staging found out."""
        return DatasetFacts(
            self.dataset_digest,
            self.document_count,
            self.warnings,
            self.dangling,
            dict(islice(self.problems.items(), _NOTED)),
            len(self.problems),
            self.affected_count,
        )

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
