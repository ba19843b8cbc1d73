"""From cases to run units, when one knowledge base does not serve them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pytest_heta.benchmarks._cases import CASE_ID_FIELDS, case_documents, case_unit
from pytest_heta.benchmarks._naming import legal_names
from pytest_heta.benchmarks._record import Record
from pytest_heta.errors import PlanInvalidError, shown
from pytest_heta.models import BenchmarkRunUnit

__all__ = ["plan_units"]


@dataclass(slots=True)
class _Unit:
    where: str
    case_ids: list[str] = field(default_factory=list)
    # A dict, since it keeps the order and drops what is named twice.
    document_ids: dict[str, None] = field(default_factory=dict)


def plan_units(
    scope: Literal["case", "group"],
    cases: Iterable[Record],
    units_of_documents: Mapping[str, tuple[str, ...]],
) -> Iterator[BenchmarkRunUnit]:
    """Yield the run units in the order of their first cases.

    Args:
        scope: ``case`` makes a unit of every case, ``group`` of the cases with
            the same ``unit``.
        cases: The cases' records.
        units_of_documents: Every document, with the units it names itself.

    Raises:
        DatasetInvalidError: if a case names no unit, or a document that does
            not exist.
        PlanInvalidError: if one of several units has no documents.
    """
    units: dict[str, _Unit] = {}
    for record in cases:
        case_id = record.identifier(*CASE_ID_FIELDS)
        unit = units.setdefault(_unit_of(record, scope, case_id), _Unit(record.where))
        unit.case_ids.append(case_id)
        for document_id, _ in case_documents(record):
            if document_id not in units_of_documents:
                raise record.error(
                    f"case {shown(case_id)} names document {shown(document_id)},"
                    f" which does not exist"
                )
            unit.document_ids[document_id] = None
    for document_id, names in units_of_documents.items():
        for name in names:
            if name in units:
                units[name].document_ids[document_id] = None
    legal = legal_names(units)
    for name, unit in units.items():
        if not unit.document_ids and len(units) > 1:
            raise PlanInvalidError(
                f"run unit {shown(name)} names no documents; only a single unit may mean all",
                where=unit.where,
                hint='name them in "documents" of its cases, or name the unit in "unit" of'
                " its documents",
            )
        yield BenchmarkRunUnit(
            unit_id=legal[name],
            document_ids=tuple(unit.document_ids),
            case_ids=tuple(unit.case_ids),
            metadata={"unit": name},
        )


def _unit_of(record: Record, scope: Literal["case", "group"], case_id: str) -> str:
    if scope == "case":
        return case_id
    unit = case_unit(record)
    if unit is None:
        raise record.error(
            f"case {shown(case_id)} names no run unit",
            hint='when cases are grouped, each has a "unit"',
        )
    return unit
