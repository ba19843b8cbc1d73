"""Relevance judgments: the layouts of qrels files, told apart by their first row.

    query-id  corpus-id  score          BEIR: a header, then three columns
    q1  dA  2                           three columns without a header
    q1  0  dA  2                        TREC: the second column is the iteration

Columns are separated by one tab or, in a file without tabs, by runs of white
space. Rows that fit none of them, or more than one, are errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pytest_heta.benchmarks._places import location
from pytest_heta.benchmarks._reading import read_lines, refuse
from pytest_heta.errors import DatasetInvalidError, DuplicateIdError, HetaError, shown
from pytest_heta.models import LARGEST_GRADE

__all__ = ["Judgment", "Judgments", "judgments_of", "read_judged_queries", "read_judgments"]

_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_HEADERS: Final = (
    frozenset({"query-id", "queryid", "query", "qid", "q-id", "topic", "topic-id"}),
    frozenset({"iteration", "iter", "q0", "0", "unused"}),
    frozenset(
        {"corpus-id", "corpusid", "document-id", "doc-id", "docid", "docno", "document", "doc"}
        | {"did", "pid", "passage-id"}
    ),
    frozenset({"score", "relevance", "relevancy", "rel", "grade", "label", "judgment"}),
)
_HEADER_COLUMNS: Final = {3: (0, 2, 3), 4: (0, 1, 2, 3)}
_LAYOUTS: Final = (
    "rows are 'query-id corpus-id score' below that header, the same without a header, or"
    " TREC's 'query iteration document grade', separated by tabs or spaces"
)


class Judgment(NamedTuple):
    """The grade of one document for one query, and the line it stands on."""

    grade: float
    line: int


Judgments = dict[str, dict[str, Judgment]]
"""Judgments by query id and document id, both in the file's order."""


class _Layout(NamedTuple):
    separator: str | None
    columns: int
    header: bool


class _Row(NamedTuple):
    line: int
    query: str
    document: str
    grade: float


def read_judgments(path: Path, expected: str) -> Judgments:
    """Return all judgments of a qrels file.

    Grades keep their fractions and their sign.

    Args:
        path: The file.
        expected: What the folder should hold, for the error when it is missing.

    Raises:
        DatasetNotFoundError: if there is no such file.
        DatasetInvalidError: if a row is not a judgment, or there is none.
        DuplicateIdError: if a document is judged twice for a query, be it
            with the same grade.
    """
    return judgments_of(path, read_lines(path, expected))


def judgments_of(
    path: Path,
    lines: Iterable[tuple[int, str]],
    on_error: Callable[[HetaError], None] = refuse,
) -> Judgments:
    """Return the judgments on the lines of a qrels file.

    Args:
        path: The file.
        lines: Its lines with their numbers.
        on_error: Called with what is wrong with a row; if it returns, the row
            is left out.

    Raises:
        DatasetInvalidError: if there is no judgment, or the layout is not clear.
    """
    judgments: Judgments = {}
    twice: list[DuplicateIdError] = []
    for row in _rows_of(path, lines, on_error):
        documents = judgments.setdefault(row.query, {})
        if row.document not in documents:
            documents[row.document] = Judgment(row.grade, row.line)
            continue
        # Kept until the end: a file read in the wrong layout has many of these.
        twice.append(
            DuplicateIdError(
                f"document {shown(row.document)} is judged twice for query {shown(row.query)},"
                f" first at {location(path, documents[row.document].line)}",
                where=location(path, row.line),
                hint="keep one of the two rows",
            )
        )
    for error in twice:
        on_error(error)
    return judgments


def read_judged_queries(path: Path, expected: str) -> set[str]:
    """Return the ids of the queries that have a row in a qrels file."""
    return {row.query for row in _rows_of(path, read_lines(path, expected), refuse)}


def _rows_of(
    path: Path, lines: Iterable[tuple[int, str]], on_error: Callable[[HetaError], None]
) -> Iterator[_Row]:
    layout: _Layout | None = None
    found = False
    # A four-column file is TREC's if its second column is the iteration. Where
    # that is not plain, the third column must not look like a grade.
    unplain: int | None = None
    all_numbers = True
    for number, line in lines:
        if layout is None:
            layout = _detect(path, number, line)
            if layout.header:
                continue
        found = True
        try:
            cells = _cells(path, number, line, layout)
            if layout.columns == len(_HEADERS) and not layout.header:
                all_numbers = all_numbers and _NUMBER.fullmatch(cells[2]) is not None
                if not _is_plain_iteration(path, number, cells[1]):
                    unplain = unplain or number
            row = _Row(number, cells[0], cells[-2], _grade(path, number, cells[-1]))
        except DatasetInvalidError as error:
            on_error(error)
            continue
        yield row
    if not found:
        raise DatasetInvalidError("the file holds no judgment", where=location(path), hint=_LAYOUTS)
    if unplain is not None and all_numbers:
        raise DatasetInvalidError(
            "four columns, but the second is not always 0 and the third may be a grade:"
            " which column is the document is not clear",
            where=location(path, unplain),
            hint="write 0 in the second column, or use three columns",
        )


def _detect(path: Path, number: int, line: str) -> _Layout:
    """Return the layout that the first row of a file shows."""
    separator = "\t" if "\t" in line else None
    cells = _split(line, separator)
    if len(cells) not in _HEADER_COLUMNS:
        raise DatasetInvalidError(
            f"{len(cells)} columns, where 3 or 4 are expected",
            where=location(path, number),
            hint=_LAYOUTS,
        )
    if _NUMBER.fullmatch(cells[-1]):
        return _Layout(separator, len(cells), header=False)
    names = [re.sub(r"[\s_]+", "-", cell.lower()) for cell in cells]
    wanted = _HEADER_COLUMNS[len(cells)]
    if not all(name in _HEADERS[column] for name, column in zip(names, wanted, strict=True)):
        raise DatasetInvalidError(
            f"the first row is neither a header nor a judgment: {shown(cells[-1])} is not a grade",
            where=location(path, number),
            hint=_LAYOUTS,
        )
    return _Layout(separator, len(cells), header=True)


def _split(line: str, separator: str | None) -> list[str]:
    return [cell.strip() for cell in line.split(separator)]


def _cells(path: Path, number: int, line: str, layout: _Layout) -> list[str]:
    cells = _split(line, layout.separator)
    if len(cells) != layout.columns:
        kind = "tabs" if layout.separator else "spaces"
        raise DatasetInvalidError(
            f"{len(cells)} columns, where the first row has {layout.columns} separated by {kind}",
            where=location(path, number),
            hint=_LAYOUTS,
        )
    for name, cell in (("query", cells[0]), ("document", cells[-2])):
        if not cell:
            raise DatasetInvalidError(f"the {name} id is empty", where=location(path, number))
    return cells


def _is_plain_iteration(path: Path, number: int, cell: str) -> bool:
    if cell.lower() in {"0", "q0"}:
        return True
    if _NUMBER.fullmatch(cell):
        return False
    raise DatasetInvalidError(
        f"the second of four columns is {shown(cell)}, where TREC's layout has the iteration,"
        " a number or Q0",
        where=location(path, number),
        hint=_LAYOUTS,
    )


def _grade(path: Path, number: int, cell: str) -> float:
    if not _NUMBER.fullmatch(cell) or abs(float(cell)) > LARGEST_GRADE:
        raise DatasetInvalidError(
            f"the grade {shown(cell)} is not a number that a grade can be",
            where=location(path, number),
            hint="grades are finite numbers; above 0 means relevant",
        )
    grade = float(cell)
    return int(grade) if grade.is_integer() else grade
