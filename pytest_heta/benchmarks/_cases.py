"""From a record to a case, and to the documents that the case names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pytest_heta.benchmarks._checking import FilesCheck
from pytest_heta.benchmarks._documents import ID_FIELDS
from pytest_heta.benchmarks._record import Record, kind_of
from pytest_heta.errors import DuplicateIdError, shown
from pytest_heta.models import BenchmarkCase, BenchmarkEvidence, BenchmarkExpected

__all__ = [
    "CASE_ID_FIELDS",
    "case_documents",
    "case_unit",
    "jsonl_case",
    "note_case_ids",
    "note_ids",
]

CASE_ID_FIELDS: Final = ("case_id", "id", "_id")
"""Names under which a case's id may stand."""

_QUERY_FIELDS: Final = ("query", "question")
_EXPECTED_FIELDS: Final = ("answers", "answer", "evidence", "value")
_FIELDS: Final = (
    *CASE_ID_FIELDS,
    *_QUERY_FIELDS,
    *_EXPECTED_FIELDS,
    "expected",
    "labels",
    "unit",
    "documents",
    "metadata",
)
_EVIDENCE_FIELDS: Final = (
    "reference_id",
    "document_id",
    "locator",
    "text",
    "relevance",
    "metadata",
)
_EVIDENCE_IDS: Final = ("reference_id", "document_id")
_LOCATOR_IDS: Final = ("document_id", "document_ids")


def jsonl_case(record: Record) -> BenchmarkCase:
    """Return the case of a line of ``cases.jsonl``."""
    extras = record.extras(_FIELDS)
    return record.build(
        BenchmarkCase,
        case_id=record.identifier(*CASE_ID_FIELDS),
        query=record.string(*_QUERY_FIELDS),
        expected=_expected(record),
        labels=record.mapping("labels"),
        metadata={**extras, **record.mapping("metadata")},
    )


def note_ids(check: FilesCheck, kind: str, record: Record, names: Iterable[str]) -> None:
    """Note how the ids below some names of a record are written."""
    for name in names:
        check.note_id(kind, record.fields.get(name), record)


def note_case_ids(check: FilesCheck, record: Record) -> None:
    """Note how a case writes its own id, and those of documents."""
    note_ids(check, "case", record, CASE_ID_FIELDS)
    expected = record.fields.get("expected")
    inner = expected if isinstance(expected, dict) else {}
    for source in (record.fields.get("evidence"), inner.get("evidence")):
        for item in source if isinstance(source, list) else ():
            ids = [item.get(name) for name in _EVIDENCE_IDS] if isinstance(item, dict) else [item]
            for value in ids:
                check.note_id("document", value, record)
    documents = record.fields.get("documents")
    for item in documents if isinstance(documents, list) else ():
        if isinstance(item, dict):
            note_ids(check, "document", record.child("documents", item), ID_FIELDS)
        else:
            check.note_id("document", item, record)


def case_unit(record: Record) -> str | None:
    """Return the run unit that a case names, if it does."""
    return record.optional_identifier("unit")


def case_documents(record: Record) -> Iterator[tuple[str, Record | None]]:
    """Yield the documents that a case names: the id, and the record if it stands there."""
    for index, item in enumerate(record.items("documents")):
        field = f"documents[{index}]"
        if isinstance(item, dict):
            document = record.child(field, item)
            yield document.identifier(*ID_FIELDS), document
        else:
            yield record.as_identifier(field, item), None


def _expected(record: Record) -> BenchmarkExpected:
    """Return what a case expects, given flat or below "expected"."""
    source = record
    metadata: dict[str, Any] = {}
    if record.fields.get("expected") is not None:
        source = record.child("expected", record.fields["expected"])
        doubled = [name for name in _EXPECTED_FIELDS if name in record.fields]
        if doubled:
            raise record.error(
                f"{record.named(doubled[0])} stands beside {record.named('expected')}",
                hint=f"write it as {source.named(doubled[0])}",
            )
        unknown = source.extras((*_EXPECTED_FIELDS, "metadata"))
        metadata = {**unknown, **source.mapping("metadata")}
    return source.build(
        BenchmarkExpected,
        answers=_answers(source),
        evidence=_evidence(source),
        value=source.fields.get("value"),
        metadata=metadata,
    )


def _answers(source: Record) -> tuple[str, ...]:
    """Return the accepted answers: one, or a list of them; numbers become text."""

    def convert(name: str, value: Any) -> tuple[str, ...]:
        values = value if isinstance(value, list) else [value]
        return tuple(_answer(source, name, item) for item in values)

    return source.pick(("answers", "answer"), convert) or ()


def _answer(source: Record, name: str, value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise source.error(
            f"{source.named(name)} has {shown(value)}, which is no answer",
            hint="an answer is a string that is not blank; without answers, leave the field out",
        )
    return value


def _evidence(source: Record) -> tuple[BenchmarkEvidence, ...]:
    evidence: list[BenchmarkEvidence] = []
    whole: set[str] = set()
    for index, item in enumerate(source.items("evidence")):
        one = _one_evidence(source, f"evidence[{index}]", item)
        if one.reference_id is not None and not one.locator and not one.text:
            if one.reference_id in whole:
                raise DuplicateIdError(
                    f"{source.named('evidence')} judges document {shown(one.reference_id)} twice",
                    where=source.where,
                    hint="keep one of the two",
                )
            whole.add(one.reference_id)
        evidence.append(one)
    return tuple(evidence)


def _one_evidence(source: Record, field: str, item: Any) -> BenchmarkEvidence:
    """Return one piece of evidence: an object, or the id of a document."""
    if not isinstance(item, dict):
        if isinstance(item, list) or item is None:
            raise source.error(
                f"{source.named(field)} is {kind_of(item)}, where an id or an object is expected"
            )
        return source.build(BenchmarkEvidence, reference_id=source.as_identifier(field, item))
    record = source.child(field, item)
    unknown = record.extras(_EVIDENCE_FIELDS)
    if unknown:
        # A grade or place under a name that nobody reads would change the scores unseen.
        raise record.error(
            f"unknown field {shown(record.within + next(iter(unknown)))}",
            hint='places stand in "locator", anything else in "metadata"',
        )
    text = record.optional_string("text")
    return record.build(
        BenchmarkEvidence,
        reference_id=record.optional_identifier("reference_id", "document_id"),
        locator=_locator(record),
        text=text if text and text.strip() else None,
        metadata=_graded(record),
    )


def _locator(record: Record) -> dict[str, Any]:
    """Return the locator, its document ids normalised as ids are everywhere."""
    locator = dict(record.mapping("locator"))
    place = Record(record.path, record.line, locator, f"{record.within}locator.")
    for name in _LOCATOR_IDS:
        value = locator.get(name)
        if isinstance(value, list):
            locator[name] = list(place.identifiers(name))
        elif value is not None:
            locator[name] = place.as_identifier(name, value)
    return {name: value for name, value in locator.items() if value is not None}


def _graded(record: Record) -> dict[str, Any]:
    """Return the metadata with the grade, which may stand there or beside it."""
    metadata = dict(record.mapping("metadata"))
    inner = record.child("metadata", metadata)
    grade = record.pick(("relevance",), record.as_grade)
    inside = inner.pick(("relevance",), inner.as_grade)
    if grade is not None and inside is not None and grade != inside:
        raise record.error(
            f"{record.named('relevance')} and {inner.named('relevance')} differ:"
            f" {shown(grade)} and {shown(inside)}",
            hint="keep one of them",
        )
    metadata.pop("relevance", None)
    if grade is None:
        grade = inside
    return metadata if grade is None else {**metadata, "relevance": grade}
