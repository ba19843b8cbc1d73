"""The step that puts a benchmark's documents where recipes can read them.

Documents are written once, into one folder that all processes of a run share:
the first process to hold the folder's lock writes, the others find it
finished. A document's key is its raw key. The contents stand one behind the
other in one file, so that keys need not suit the file system, and a corpus of
many small documents costs no more than its bytes.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO, Final, cast

from pytest_heta.codes import coded
from pytest_heta.core._dangling import Dangling, dangling_documents
from pytest_heta.core._findings import checked_files, odd_cases, odd_documents
from pytest_heta.core._locks import acquire, file_lock
from pytest_heta.core._loop import enter_loop
from pytest_heta.core._plain import canonical_json, exception_text, plain, portable_name
from pytest_heta.core._stage_index import StageIndex, StageIndexWriter
from pytest_heta.core._staged import (
    CONTENTS,
    DatasetFacts,
    NamedDocuments,
    StagedDocuments,
    StagedStore,
)
from pytest_heta.core._unavailable import affected_cases, unavailable_gold
from pytest_heta.core.plan import LoadedBenchmark
from pytest_heta.errors import (
    BenchmarkError,
    DocumentUnavailableError,
    DuplicateIdError,
    HetaError,
    first_of,
)
from pytest_heta.models import BenchmarkCase, BenchmarkDocument, BenchmarkRunUnit, raw_key

__all__ = ["DatasetFacts", "StagedDocuments", "StagedStore", "stage_documents"]

_DONE: Final = "stage.json"
_SCALARS: Final = (str, int, float, bool, NoneType)
_COPY_BYTES: Final = 1 << 20
_SHOWN_IDS: Final = 5
_REASON_LENGTH: Final = 500


async def stage_documents(
    loaded: LoadedBenchmark, root: Path, *, run_key: str | None = None, strict: bool = False
) -> StagedDocuments:
    """Stage the documents of a benchmark, or find them staged.

    Whether a finished stage is the right one is decided by what the adapter
    yields: ids, names, metadata, contents held in memory, and the size and
    time of files. Within one run, where a benchmark stays what it is, its name
    is enough: only the process that writes has the adapter yield documents.

    A document whose file or address cannot be read, or is empty, is left out. It
    is a problem of the run units that name it and of the cases that it is
    relevant to. A text whose data is empty is an empty document.

    Args:
        loaded: The benchmark.
        root: Folder that all processes of the run share.
        run_key: What the benchmark is called in the run that ``root`` belongs
            to and that no other run uses; None if ``root`` outlives runs.
        strict: Whether what ``pytest-heta validate`` would warn of is an error.

    Raises:
        DuplicateIdError: if two documents have the same id.
        BenchmarkError: if the adapter fails, there is no document, ``root``
            cannot be written, or ``strict`` is not met.
    """
    await enter_loop()
    where = f"benchmark {loaded.manifest.name}"
    try:
        identity = await _content_identity(loaded) if run_key is None else _name(loaded, run_key)
        folder = root / _folder_name(loaded, identity)
        async with _locked(folder):
            if not (folder / _DONE).is_file():
                await _write_stage(loaded, folder)
        staged = _read_stage(loaded, folder)
    except HetaError:
        raise
    except Exception as error:
        raise BenchmarkError(
            f"the documents cannot be staged: {exception_text(error)}", where=where
        ) from error
    if strict and (odd := list(_oddities(loaded, staged))):
        raise BenchmarkError(
            "; ".join(odd), where=where, hint="correct the dataset, or run without strict"
        )
    return staged


def _folder_name(loaded: LoadedBenchmark, identity: str) -> str:
    return portable_name(f"{loaded.manifest.name}-{loaded.manifest.split}", identity)


@asynccontextmanager
async def _locked(folder: Path) -> AsyncIterator[None]:
    """Hold the lock of a folder, which need not be there."""
    lock = file_lock(folder.with_name(f"{folder.name}.lock"))
    await acquire(lock)
    try:
        yield
    finally:
        lock.release()


# --- writing -----------------------------------------------------------------


async def _documents(loaded: LoadedBenchmark) -> AsyncIterator[BenchmarkDocument]:
    async for raw_document in loaded.suite.benchmark.documents(loaded.prepared):
        yield BenchmarkDocument.model_validate(raw_document)


def _name(loaded: LoadedBenchmark, run_key: str) -> str:
    """Return a hash of what a benchmark is called within a run."""
    return sha256(canonical_json([run_key, plain(loaded.manifest)])).hexdigest()


async def _content_identity(loaded: LoadedBenchmark) -> str:
    """Return a hash of the documents that reads none of their files."""
    digest = sha256(canonical_json(plain(loaded.manifest)))
    async for document in _documents(loaded):
        digest.update(canonical_json([_row(loaded, document), *_origin(loaded, document)]))
    return digest.hexdigest()


def _row(loaded: LoadedBenchmark, document: BenchmarkDocument) -> dict[str, Any]:
    return {
        "key": raw_key(loaded.manifest, document),
        "document_id": document.document_id,
        "name": document.name,
        "media_type": document.media_type,
        "metadata": plain(document.metadata),
    }


def _origin(loaded: LoadedBenchmark, document: BenchmarkDocument) -> list[str | int]:
    if document.data is not None:
        return [sha256(document.data).hexdigest()]
    if document.path is None:
        return [str(document.source_uri)]
    path = _absolute(loaded, document.path)
    try:
        status = path.stat()
    except OSError:
        return [str(path)]
    return [str(path), status.st_size, status.st_mtime_ns]


def _absolute(loaded: LoadedBenchmark, path: Path) -> Path:
    return path if path.is_absolute() else loaded.prepared.root_dir / path


async def _write_stage(loaded: LoadedBenchmark, folder: Path) -> None:
    where = f"benchmark {loaded.manifest.name}"
    digest = sha256()
    problems: dict[str, str] = {}
    unavailable: list[str] = []
    with _begin(folder) as contents, StageIndexWriter(folder) as index:
        async for document in _documents(loaded):
            row = _row(loaded, document)
            start = contents.tell()
            try:
                content = _write_content(loaded, document, contents)
            except DocumentUnavailableError as error:
                unavailable.append(document.document_id)
                problems.setdefault(document.document_id, error.message)
                digest.update(canonical_json([document.document_id, "unavailable"]))
                contents.seek(start)
                contents.truncate()
                continue
            size = contents.tell() - start
            line = canonical_json(row | {"sha256": content, "size": size}) + b"\n"
            digest.update(line)
            index.add(line, document_id=document.document_id, key=row["key"], size=size)
        if not len(index) and not problems:
            raise BenchmarkError("there are no documents", where=where)
        index.finish(where)
        count = len(index)
        done = {"document_count": count, "size_bytes": contents.tell()}
    if problems:
        _check_unique(unavailable, StageIndex(folder, count), where)
    # A list: in a JSON object they would lose their order.
    _finish(folder, {"digest": digest.hexdigest(), "problems": list(problems.items()), **done})


def _check_unique(unavailable: Iterable[str], readable: StageIndex, where: str) -> None:
    """Refuse a document that cannot be read if another has its id."""
    seen: set[str] = set()
    for document_id in unavailable:
        if document_id in seen or document_id in readable:
            raise DuplicateIdError(
                f"document id {document_id!r} stands twice",
                where=where,
                hint="document ids are unique within a benchmark",
            )
        seen.add(document_id)


def _begin(folder: Path) -> BinaryIO:
    shutil.rmtree(folder, ignore_errors=True)  # what a killed process left
    folder.mkdir()
    return (folder / CONTENTS).open("wb")


def _finish(folder: Path, done: Mapping[str, Any]) -> None:
    partial = folder / f"{_DONE}.part"
    partial.write_bytes(canonical_json(done))
    partial.replace(folder / _DONE)


def _write_content(loaded: LoadedBenchmark, document: BenchmarkDocument, target: BinaryIO) -> str:
    """Write the content of a document; return its SHA-256.

    Raises:
        DocumentUnavailableError: if the content cannot be read.
    """
    digest = sha256()
    for block in _blocks(loaded, document):
        digest.update(block)
        target.write(block)
    return digest.hexdigest()


def _blocks(loaded: LoadedBenchmark, document: BenchmarkDocument) -> Iterable[bytes]:
    if document.data is not None:
        if not document.data and not document.media_type.startswith("text/"):
            raise DocumentUnavailableError("the content is empty")
        yield document.data
        return
    empty = True
    try:
        with _open_origin(loaded, document) as source:
            while block := source.read(_COPY_BYTES):
                empty = False
                yield block
    except Exception as error:  # fsspec's file systems raise what they like
        raise DocumentUnavailableError(exception_text(error)[:_REASON_LENGTH]) from error
    if empty:
        raise DocumentUnavailableError("the file is empty")


def _open_origin(loaded: LoadedBenchmark, document: BenchmarkDocument) -> BinaryIO:
    if document.path is not None:
        return _open_file(_absolute(loaded, document.path))
    import fsspec  # noqa: PLC0415 - most documents have no address
    from fsspec.implementations.local import LocalFileSystem  # noqa: PLC0415 - likewise

    found = fsspec.open(str(document.source_uri), "rb")
    if isinstance(found.fs, LocalFileSystem):
        return _open_file(Path(found.path))
    return cast("BinaryIO", found.open())


def _open_file(path: Path) -> BinaryIO:
    if path.exists() and not path.is_file():
        # Nobody may ever write to a pipe, and a device may never end.
        raise OSError(f"{path} is no file")
    return path.open("rb")


# --- reading -----------------------------------------------------------------


def _read_stage(loaded: LoadedBenchmark, folder: Path) -> StagedDocuments:
    done = json.loads((folder / _DONE).read_bytes())
    index = StageIndex(folder, done["document_count"])
    problems: dict[str, str] = dict(done["problems"])
    cases = loaded.cases.values()
    dangling = dangling_documents(cases, loaded.units, NamedDocuments(index, problems))
    missing_gold = unavailable_gold(cases, problems)
    affected = len(affected_cases(missing_gold, loaded.units, problems))
    count = len(index) + len(problems)
    return StagedDocuments(
        root=folder,
        digest=done["digest"],
        dataset_digest=_dataset_digest(loaded, done["digest"]),
        document_count=count,
        size_bytes=done["size_bytes"],
        warnings=(
            *_warnings(dangling),
            *_unavailable_warnings(problems, count, f"{affected} of {len(cases)} cases fail"),
        ),
        dangling=dangling.absent,
        problems=problems,
        missing_gold=missing_gold,
        affected_count=affected,
        _index=index,
    )


def _dataset_digest(loaded: LoadedBenchmark, documents: str) -> str:
    digest = sha256(documents.encode())
    for case in loaded.cases.values():
        digest.update(_canonical(case))
    for unit in loaded.units:
        digest.update(_canonical(unit))
    return digest.hexdigest()


def _canonical(record: BenchmarkCase | BenchmarkRunUnit) -> bytes:
    try:
        if isinstance(record, BenchmarkCase) and _is_flat(record):
            # The usual case, of which there are many; it holds nothing without an order.
            return record.__pydantic_serializer__.to_json(record)
        return canonical_json(record.model_dump())
    except (TypeError, ValueError, RecursionError):
        # Whole, unlike what goes into reports: a unit may name any number of documents.
        return canonical_json(plain(record, max_nodes=sys.maxsize, max_text=sys.maxsize))


def _is_flat(case: BenchmarkCase) -> bool:
    expected = case.expected
    mappings = [case.labels, case.metadata, expected.metadata]
    for evidence in expected.evidence:
        mappings += (evidence.locator, evidence.metadata)
    if not isinstance(expected.value, _SCALARS):
        return False
    for mapping in mappings:
        for value in mapping.values():
            if not isinstance(value, _SCALARS):
                return False
    return True


def _oddities(loaded: LoadedBenchmark, staged: StagedDocuments) -> Iterator[str]:
    """Yield what a strict run refuses: all that ``pytest-heta validate`` warns of."""
    yield from loaded.warnings
    yield from staged.warnings  # judgments are among them
    found = [*odd_cases(loaded), *odd_documents(loaded, staged)]
    if loaded.workspace is not None:
        _, oddities = checked_files(loaded.suite.benchmark, loaded.workspace)
        found += oddities
    for finding in found:
        yield coded(*finding)


def _warnings(dangling: Dangling) -> Iterator[str]:
    found = (
        ("dangling-gold", dangling.absent, "not in the corpus"),
        ("gold-outside-unit", dangling.outside, "not in the run unit of the case"),
    )
    for code, ids, trouble in found:
        if ids:
            are = "s are" if len(ids) > 1 else " is"
            text = f"{len(ids)} gold document{are} {trouble}: {first_of(ids, _SHOWN_IDS)}"
            yield coded(code, text)


def _unavailable_warnings(problems: Mapping[str, str], count: int, affected: str) -> Iterator[str]:
    if problems:
        listed = first_of(tuple(problems), _SHOWN_IDS)
        text = f"{len(problems)} of {count} documents cannot be read: {listed}; {affected}"
        yield coded("document-unavailable", text)
