"""A JSONL dataset on this machine: its files, its documents, what its cases carry."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pytest_heta.benchmarks._cases import case_documents, case_unit, jsonl_case
from pytest_heta.benchmarks._documents import ID_FIELDS
from pytest_heta.benchmarks._places import located, missing_file
from pytest_heta.benchmarks._reading import read_records
from pytest_heta.benchmarks._record import IdLines, Record
from pytest_heta.evaluators import grades
from pytest_heta.evaluators.provenance import DOCUMENT_FIELDS, field_of
from pytest_heta.models import BenchmarkCase, PreparedBenchmark

__all__ = [
    "EXPECTED",
    "DatasetFiles",
    "Survey",
    "document_records",
    "find_files",
    "gold_documents",
    "is_cases_file",
    "survey_cases",
]

EXPECTED: Final = "cases.jsonl and documents.jsonl, or cases that hold their documents"

_FILE_SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson"})


class DatasetFiles(NamedTuple):
    """Where a dataset is.

    Attributes:
        root: Its folder.
        cases: The cases file.
        documents: The documents file, None if the cases hold the documents.
    """

    root: Path
    cases: Path
    documents: Path | None

    @classmethod
    def of(cls, prepared: PreparedBenchmark) -> DatasetFiles:
        """Return the files that were found when the benchmark was prepared."""
        documents = prepared.metadata["documents"]
        return cls(
            prepared.root_dir,
            Path(prepared.metadata["cases"]),
            None if documents is None else Path(documents),
        )

    def require(self) -> None:
        """Raise `DatasetNotFoundError` if a file is not there."""
        for path in (self.cases, self.documents):
            if path is not None and not path.is_file():
                raise missing_file(path, EXPECTED)


def is_cases_file(path: Path) -> bool:
    """Whether a path given by the user is the cases file itself, not a folder."""
    return path.is_file() or (path.suffix.lower() in _FILE_SUFFIXES and not path.is_dir())


def find_files(
    path: Path | None, cases: Path | None, documents: Path | None, root_dir: Path
) -> DatasetFiles:
    """Return where the files of a dataset are, whether they exist or not.

    Args:
        path: Folder or cases file, as given; None if ``cases`` says it all.
        cases: Cases file, as given.
        documents: Documents file, as given.
        root_dir: Folder that relative paths are looked up in.
    """
    if path is None:
        # One of the two is given, which the benchmark has checked.
        found = located(cases or Path(), root_dir)
        return DatasetFiles(
            found.parent, found, None if documents is None else located(documents, root_dir)
        )
    target = located(path, root_dir)
    if is_cases_file(target):
        folder, default, beside = target.parent, target, None
    else:
        folder, default, beside = target, target / "cases.jsonl", target / "documents.jsonl"
    if documents is not None:
        beside = folder / documents
    elif beside is not None and not beside.is_file():
        beside = None
    return DatasetFiles(folder, default if cases is None else folder / cases, beside)


def document_records(files: DatasetFiles, ids: IdLines) -> Generator[Record]:
    """Yield the record of each document: of the documents file, then of the cases.

    Cases may hold the same document again, as long as they agree on what it is.

    Args:
        files: The dataset.
        ids: Where the ids are noted.

    Raises:
        DuplicateIdError: if an id stands for two documents.
    """
    if files.documents is not None:
        for record in read_records(files.documents, EXPECTED):
            ids.add(record.identifier(*ID_FIELDS), record)
            yield record
    seen: dict[str, bytes] = {}
    for case in read_records(files.cases, EXPECTED):
        for document_id, document in case_documents(case):
            if document is None:
                continue
            text = json.dumps(document.fields, sort_keys=True)
            digest = hashlib.sha256(text.encode("utf-8")).digest()
            if seen.get(document_id) != digest:
                ids.add(document_id, document)
                seen[document_id] = digest
                yield document


def gold_documents(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the id of every gold document of a cases file, and the place of its case."""
    for record in read_records(path, EXPECTED):
        for document_id, grade in grades(jsonl_case(record)).items():
            if grade > 0:
                yield document_id, record.where


class Survey(NamedTuple):
    """What the cases of a dataset carry; each is true if some case does.

    Attributes:
        units: Names of run units.
        documents: Ids of documents, or documents.
        inline_documents: Documents.
        judged_documents: Evidence that names documents.
        finer_evidence: Evidence that names places within documents, or text.
        answers: Answers.
    """

    units: bool
    documents: bool
    inline_documents: bool
    judged_documents: bool
    finer_evidence: bool
    answers: bool


def survey_cases(path: Path) -> Survey:
    """Read all cases and return what they carry.

    Raises:
        DatasetNotFoundError: if there is no such file.
        DatasetInvalidError: if a line is not a case.
    """
    found = Survey(*(False,) * len(Survey._fields))
    for record in read_records(path, EXPECTED):
        case = jsonl_case(record)
        documents = [document for _, document in case_documents(record)]
        here = Survey(
            units=case_unit(record) is not None,
            documents=bool(documents),
            inline_documents=any(document is not None for document in documents),
            judged_documents=bool(grades(case)),
            finer_evidence=_is_finer(case),
            answers=bool(case.expected.answers),
        )
        found = Survey(*(old or new for old, new in zip(found, here, strict=True)))
    return found


def _is_finer(case: BenchmarkCase) -> bool:
    return any(
        evidence.text or not DOCUMENT_FIELDS.issuperset(map(field_of, evidence.locator))
        for evidence in case.expected.evidence
    )
