"""The step that puts a benchmark's documents where recipes can read them.

Documents are written once, into one folder that all processes of a run share:
the first process to hold the folder's lock writes, the others find it
finished. A document's key is its raw key; the name of the file behind it is a
hash of the key, so that it suits every file system.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from array import array
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import fsspec
from filelock import FileLock, Timeout

from pytest_heta.core._plain import exception_text, plain, portable_name
from pytest_heta.core.plan import LoadedBenchmark
from pytest_heta.errors import (
    BenchmarkError,
    BuildError,
    DocumentUnavailableError,
    DuplicateIdError,
)
from pytest_heta.models import (
    BenchmarkCase,
    BenchmarkDocument,
    document_id_from_raw_key,
    raw_key,
)

__all__ = ["StagedDocuments", "StagedStore", "stage_documents"]

_INDEX: Final = "index.jsonl"
_DONE: Final = "stage.json"
_LOCK_POLL_S: Final = 0.02
_COPY_BYTES: Final = 1 << 20
_SHOWN_IDS: Final = 5


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
        if key not in self._known:
            raise KeyError(key)
        return self._staged.open_object(key)

    def exists(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._known

    def list(self, prefix: str = "") -> Iterable[str]:
        """Yield the keys that start with ``prefix``, in the benchmark's order."""
        return (key for key in self._keys if key.startswith(prefix))

    def metadata(self, key: str) -> dict[str, Any]:
        """Return ``document_id``, ``name``, ``media_type`` and the document's metadata."""
        if key not in self._known:
            raise KeyError(key)
        return self._staged.metadata(key)


@dataclass(frozen=True, slots=True)
class StagedDocuments:
    """The staged documents of one benchmark.

    Attributes:
        root: Folder they are in.
        digest: SHA-256 of ids, names, metadata and contents, in order.
        dataset_digest: SHA-256 of the documents, cases and run units.
        document_count: Number of documents.
        size_bytes: Size of their contents.
        warnings: What is odd about the documents.
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
    _keys: Mapping[str, str] = field(repr=False)
    _rows: Mapping[str, int] = field(repr=False)
    _offsets: array[int] = field(repr=False)

    def keys(self, document_ids: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the raw keys of documents in the benchmark's order; of all for ().

        Raises:
            BuildError: if one is not in the corpus, or cannot be read.
        """
        for document_id in document_ids:
            if document_id not in self._keys:
                raise BuildError(
                    f"document {document_id!r} is not in the corpus",
                    hint="add it to the documents, or take it out of the run unit",
                )
        wanted = frozenset(document_ids)
        chosen = [key_of for key_of in self._keys.items() if not wanted or key_of[0] in wanted]
        for document_id, _ in chosen:
            problem = self.problems.get(document_id)
            if problem is not None:
                raise BuildError(f"document {document_id!r} cannot be read: {problem}")
        return tuple(key for _, key in chosen)

    def store(self, keys: Sequence[str]) -> StagedStore:
        """Return a store that sees only ``keys``."""
        return StagedStore(self, keys)

    def open_object(self, key: str) -> BinaryIO:
        """Open the content behind a key."""
        path = _object_path(self.root, key)
        return cast("BinaryIO", _files().open(str(path), "rb"))

    def metadata(self, key: str) -> dict[str, Any]:
        """Return what is known of the document behind a key."""
        with (self.root / _INDEX).open("rb") as index:
            index.seek(self._offsets[self._rows[key]])
            row = json.loads(index.readline())
        return {
            **row["metadata"],
            "document_id": row["document_id"],
            "name": row["name"],
            "media_type": row["media_type"],
        }


async def stage_documents(
    loaded: LoadedBenchmark, root: Path, *, strict: bool = False
) -> StagedDocuments:
    """Stage the documents of a benchmark, or find them staged.

    Whether a stage is the right one is decided by what the adapter yields:
    ids, names, metadata, contents held in memory, and size and time of files.

    Args:
        loaded: The benchmark.
        root: Folder that all processes of the run share.
        strict: Whether judged documents that are not in the corpus are an
            error rather than a warning.

    Raises:
        DuplicateIdError: if two documents have the same id.
        BenchmarkError: if there is no document, or ``strict`` is not met.
    """
    identity = await _identity(loaded)
    name = portable_name(f"{loaded.manifest.name}-{loaded.manifest.split}").rpartition("-")[0]
    folder = root / f"{name}-{identity[:16]}"
    root.mkdir(parents=True, exist_ok=True)
    async with _locked(root / f"{folder.name}.lock"):
        if not (folder / _DONE).is_file():
            shutil.rmtree(folder, ignore_errors=True)
            await _write_stage(loaded, folder)
    return _read_stage(loaded, folder, strict=strict)


@asynccontextmanager
async def _locked(path: Path) -> AsyncIterator[None]:
    # The lock is taken by asking again, not by waiting in the call: that would
    # stop the loop, and another task on it may be the one that holds the lock.
    lock = FileLock(path, thread_local=False)
    while True:
        try:
            lock.acquire(timeout=0)
            break
        except Timeout:
            await asyncio.sleep(_LOCK_POLL_S)
    try:
        yield
    finally:
        lock.release()


# --- writing -----------------------------------------------------------------


async def _documents(loaded: LoadedBenchmark) -> AsyncIterator[BenchmarkDocument]:
    seen: set[str] = set()
    async for raw_document in loaded.suite.benchmark.documents(loaded.prepared):
        document = BenchmarkDocument.model_validate(raw_document)
        if document.document_id in seen:
            raise DuplicateIdError(
                f"document id {document.document_id!r} stands twice",
                where=f"benchmark {loaded.manifest.name}",
                hint="document ids are unique within a benchmark",
            )
        seen.add(document.document_id)
        yield document
    if not seen:
        raise BenchmarkError("there are no documents", where=f"benchmark {loaded.manifest.name}")


async def _identity(loaded: LoadedBenchmark) -> str:
    """Return a hash of the documents that reads no file."""
    digest = sha256(_canonical(loaded.manifest.model_dump(mode="json")))
    async for document in _documents(loaded):
        digest.update(_canonical(_row(document, _origin(loaded, document))))
        if document.data is not None:
            digest.update(sha256(document.data).digest())
    return digest.hexdigest()


def _origin(loaded: LoadedBenchmark, document: BenchmarkDocument) -> list[Any]:
    if document.path is None:
        return [document.source_uri]
    path = _absolute(loaded, document.path)
    try:
        status = path.stat()
    except OSError:
        return [str(path), None]
    return [str(path), status.st_size, status.st_mtime_ns]


def _absolute(loaded: LoadedBenchmark, path: Path) -> Path:
    return path if path.is_absolute() else loaded.prepared.root_dir / path


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()


def _row(document: BenchmarkDocument, origin: object) -> dict[str, Any]:
    return {
        "document_id": document.document_id,
        "name": document.name,
        "media_type": document.media_type,
        "metadata": plain(document.metadata),
        "origin": origin,
    }


async def _write_stage(loaded: LoadedBenchmark, folder: Path) -> None:
    folder.mkdir(parents=True)
    digest = sha256()
    size = 0
    problems: dict[str, str] = {}
    with (folder / _INDEX).open("wb") as index:
        async for document in _documents(loaded):
            key = raw_key(loaded.manifest, document)
            row = {"key": key, **_row(document, None)}
            try:
                content_digest, content_size = _write_object(loaded, document, folder, key)
            except (OSError, ValueError, ImportError, DocumentUnavailableError) as error:
                known = isinstance(error, DocumentUnavailableError)
                problem = error.message if known else exception_text(error)
                problems[document.document_id] = problem
                content_digest, content_size = "", 0
            row.update(digest=content_digest, size=content_size)
            size += content_size
            del row["origin"]
            line = _canonical(row) + b"\n"
            digest.update(line)
            index.write(line)
    done = {"digest": digest.hexdigest(), "size_bytes": size, "problems": problems}
    partial = folder / f"{_DONE}.part"
    partial.write_text(json.dumps(done), encoding="utf-8")
    partial.replace(folder / _DONE)


def _write_object(
    loaded: LoadedBenchmark, document: BenchmarkDocument, folder: Path, key: str
) -> tuple[str, int]:
    """Write the content of a document; return its SHA-256 and size."""
    path = _object_path(folder, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    if document.data is not None:
        _files().pipe_file(str(path), document.data)
        return sha256(document.data).hexdigest(), len(document.data)
    digest = sha256()
    size = 0
    with _open_origin(loaded, document) as source, _files().open(str(path), "wb") as target:
        while block := source.read(_COPY_BYTES):
            digest.update(block)
            size += len(block)
            target.write(block)
    if not size:
        raise DocumentUnavailableError("the file is empty")
    return digest.hexdigest(), size


def _open_origin(loaded: LoadedBenchmark, document: BenchmarkDocument) -> BinaryIO:
    if document.path is not None:
        return _absolute(loaded, document.path).open("rb")
    return cast("BinaryIO", fsspec.open(str(document.source_uri), "rb").open())


def _object_path(folder: Path, key: str) -> Path:
    name = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]
    return folder / "objects" / name[:2] / name[2:]


def _files() -> Any:
    return fsspec.filesystem("file")


# --- reading -----------------------------------------------------------------


def _read_stage(loaded: LoadedBenchmark, folder: Path, *, strict: bool) -> StagedDocuments:
    done = json.loads((folder / _DONE).read_text(encoding="utf-8"))
    keys: dict[str, str] = {}
    rows: dict[str, int] = {}
    offsets = array("Q")
    offset = 0
    with (folder / _INDEX).open("rb") as index:
        for number, line in enumerate(index):
            row = json.loads(line)
            keys[row["document_id"]] = row["key"]
            rows[row["key"]] = number
            offsets.append(offset)
            offset += len(line)
    dangling = tuple(_dangling(loaded.cases.values(), keys))
    warnings = tuple(_warnings(loaded, dangling, done["problems"], keys))
    if strict and dangling:
        raise BenchmarkError(
            warnings[0],
            where=f"benchmark {loaded.manifest.name}",
            hint="add them to the documents, or take them out of the judgments",
        )
    return StagedDocuments(
        root=folder,
        digest=done["digest"],
        dataset_digest=_dataset_digest(loaded, done["digest"]),
        document_count=len(keys),
        size_bytes=done["size_bytes"],
        warnings=warnings,
        dangling=dangling,
        problems=done["problems"],
        _keys=keys,
        _rows=rows,
        _offsets=offsets,
    )


def _dataset_digest(loaded: LoadedBenchmark, documents: str) -> str:
    digest = sha256(documents.encode())
    for record in (*loaded.cases.values(), *loaded.units):
        digest.update(_canonical(plain(record)))
    return digest.hexdigest()


def _gold_ids(case: BenchmarkCase) -> Iterator[tuple[str, ...]]:
    """Yield the ids that each piece of positive evidence goes by."""
    for evidence in case.expected.evidence:
        if not _positive(evidence.metadata.get("relevance")):
            continue
        locator = evidence.locator
        ids = [evidence.reference_id] if evidence.reference_id is not None else []
        if locator.get("document_id") is not None:
            ids.append(str(locator["document_id"]))
        for name in ("source_key", "object_key"):
            known = document_id_from_raw_key(str(locator.get(name, "")))
            ids += [known] if known is not None else []
        if ids:
            yield tuple(ids)


def _positive(relevance: object) -> bool:
    if relevance is None:
        return True
    try:
        return float(cast("float", relevance)) > 0
    except (TypeError, ValueError):
        return False


def _dangling(cases: Iterable[BenchmarkCase], known: Mapping[str, str]) -> list[str]:
    missing: dict[str, None] = {}
    for case in cases:
        for ids in _gold_ids(case):
            if not any(document_id in known for document_id in ids):
                missing.setdefault(ids[0])
    return list(missing)


def _warnings(
    loaded: LoadedBenchmark,
    dangling: Sequence[str],
    problems: Mapping[str, str],
    known: Mapping[str, str],
) -> Iterator[str]:
    if dangling:
        are = "gold document is" if len(dangling) == 1 else "gold documents are"
        yield f"{len(dangling)} {are} not in the corpus: {_some(dangling)}"
    if problems:
        are = "document" if len(problems) == 1 else "documents"
        yield f"{len(problems)} {are} cannot be read: {_some(list(problems))}"
    outside = _outside_their_unit(loaded, known)
    if outside:
        are = "gold document is" if len(outside) == 1 else "gold documents are"
        yield f"{len(outside)} {are} outside the run unit of the case: {_some(outside)}"


def _outside_their_unit(loaded: LoadedBenchmark, known: Mapping[str, str]) -> list[str]:
    found: dict[str, None] = {}
    for unit in loaded.units:
        inside = frozenset(unit.document_ids)
        if not inside:
            continue
        for case_id in unit.case_ids:
            for ids in _gold_ids(loaded.cases[case_id]):
                here = [document_id for document_id in ids if document_id in known]
                if here and not any(document_id in inside for document_id in here):
                    found.setdefault(f"{here[0]} of case {case_id}")
    return list(found)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_IDS])
    return shown if len(names) <= _SHOWN_IDS else f"{shown}, …"
