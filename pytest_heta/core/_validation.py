"""What is wrong or odd about a dataset, found by loading and staging it as a run does."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pytest_heta.core._dangling import dangling_documents, unjudged_cases
from pytest_heta.core._loading import LoadedBenchmark, Suite, load_benchmark
from pytest_heta.core._stage_index import ROWS
from pytest_heta.core.staging import StagedDocuments, stage_documents
from pytest_heta.errors import DocumentUnavailableError, HetaError, first_of
from pytest_heta.models import BenchmarkCase, BenchmarkWorkspace
from pytest_heta.protocols import BenchmarkProtocol

__all__ = ["Finding", "Validation", "validate_benchmark"]

_SHOWN_IDS: Final = 10


class Finding(NamedTuple):
    """Something odd about a dataset.

    Attributes:
        code: Stable name of the kind of finding.
        message: What is odd, with the ids.
    """

    code: str
    message: str


class Validation(NamedTuple):
    """What was found in one dataset; counts are None where an error came first."""

    errors: tuple[HetaError, ...]
    warnings: tuple[Finding, ...] = ()
    documents: int | None = None
    queries: int | None = None
    judgments: int | None = None


async def validate_benchmark(benchmark: BenchmarkProtocol, folder: Path) -> Validation:
    """Load and stage a benchmark, and return what is wrong or odd about it.

    Args:
        benchmark: The benchmark.
        folder: Folder that may be written to.
    """
    workspace = BenchmarkWorkspace(root_dir=Path.cwd(), cache_dir=folder / "cache")
    try:
        loaded = await load_benchmark(Suite(benchmark), workspace)
    except HetaError as error:
        return Validation((error,))
    cases = loaded.cases.values()
    counts = len(cases), sum(len(case.expected.evidence) for case in cases)
    odd = tuple(_odd_cases(loaded.cases))
    try:
        staged = await stage_documents(loaded, folder)
    except HetaError as error:
        return Validation((error,), odd, None, *counts)
    unreadable = tuple(
        DocumentUnavailableError(reason, where=f"document {document_id}")
        for document_id, reason in staged.problems.items()
    )
    found = (*_odd_judgments(loaded, staged), *odd, *_odd_documents(staged))
    return Validation(unreadable, found, staged.document_count, *counts)


def _odd_judgments(loaded: LoadedBenchmark, staged: StagedDocuments) -> Iterator[Finding]:
    rows = _rows(staged)
    corpus = {row["document_id"] for row in rows}
    dangling = dangling_documents(loaded.cases.values(), loaded.units, corpus)
    yield from _listed("dangling-gold", "gold documents not in the corpus", dangling.absent)
    yield from _listed("gold-outside-unit", "gold documents outside the unit", dangling.outside)


def _odd_cases(cases: Mapping[str, BenchmarkCase]) -> Iterator[Finding]:
    unjudged = unjudged_cases(cases.values())
    yield from _listed("unjudged-query", "queries without a judgment", unjudged)
    empty = [name for name, case in cases.items() if not case.query.strip()]
    yield from _listed("empty-query", "empty queries", empty)
    texts = ((case.query.strip(), name) for name, case in cases.items() if case.query.strip())
    yield from _listed("duplicate-query", "queries of the same text", _repeated(texts))


def _odd_documents(staged: StagedDocuments) -> Iterator[Finding]:
    rows = [row for row in _rows(staged) if row["document_id"] not in staged.problems]
    empty = [row["document_id"] for row in rows if not row["size"]]
    yield from _listed("empty-document", "empty documents", empty)
    texts = ((row["sha256"], row["document_id"]) for row in rows if row["size"])
    yield from _listed("duplicate-document", "documents of the same text", _repeated(texts))


def _rows(staged: StagedDocuments) -> list[dict[str, str]]:
    with (staged.root / ROWS).open(encoding="ascii", newline="\n") as lines:
        return [json.loads(line) for line in lines]


def _repeated(pairs: Iterable[tuple[Hashable, str]]) -> list[str]:
    groups: dict[Hashable, list[str]] = defaultdict(list)
    for text, name in pairs:
        groups[text].append(name)
    return [" = ".join(names) for names in groups.values() if len(names) > 1]


def _listed(code: str, what: str, ids: Iterable[str]) -> Iterator[Finding]:
    found = list(ids)
    if found:
        yield Finding(code, f"{what}: {len(found)} ({first_of(found, _SHOWN_IDS)})")
