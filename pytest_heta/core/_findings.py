"""What is odd about a dataset: ``pytest-heta validate`` tells it, a strict run refuses it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pytest_heta.core._dangling import dangling_documents, unjudged_cases
from pytest_heta.core._loading import LoadedBenchmark
from pytest_heta.core._stage_index import ROWS
from pytest_heta.core._staged import StagedDocuments
from pytest_heta.errors import HetaError, first_of
from pytest_heta.models import BenchmarkCase, BenchmarkWorkspace

__all__ = ["Finding", "checked_files", "odd_cases", "odd_documents", "odd_judgments"]

_SHOWN_IDS: Final = 10


class Finding(NamedTuple):
    """Something odd about a dataset.

    Attributes:
        code: Stable name of the kind of finding.
        message: What is odd, with the ids.
    """

    code: str
    message: str


def checked_files(
    benchmark: Any, workspace: BenchmarkWorkspace
) -> tuple[tuple[HetaError, ...], tuple[Finding, ...]]:
    """Return errors and oddities of a dataset's files, of adapters that can tell them.

    These have a method ``check_files(workspace)``, as those for BEIR and JSONL.
    """
    check = getattr(benchmark, "check_files", None)
    if check is None:
        return (), ()
    found = check(workspace)
    return found.errors, tuple(Finding(*oddity) for oddity in found.oddities)


def odd_judgments(loaded: LoadedBenchmark, staged: StagedDocuments) -> Iterator[Finding]:
    """Yield what is odd about the documents that cases expect."""
    dangling = dangling_documents(loaded.cases.values(), loaded.units, staged.documents)
    yield from _listed("dangling-gold", "gold documents not in the corpus", dangling.absent)
    yield from _listed("gold-outside-unit", "gold documents outside the unit", dangling.outside)


def odd_cases(loaded: LoadedBenchmark) -> Iterator[Finding]:
    """Yield what is odd about cases; to be unjudged is so only where an evaluator judges."""
    cases: Mapping[str, BenchmarkCase] = loaded.cases
    if any(getattr(evaluator, "requires_judgment", False) for evaluator in loaded.evaluators):
        unjudged = unjudged_cases(cases.values())
        yield from _listed("unjudged-query", "queries without a judgment", unjudged)
    empty = [name for name, case in cases.items() if not case.query.strip()]
    yield from _listed("empty-query", "empty queries", empty)
    # Other knowledge bases may well be asked the same.
    texts = (
        ((unit.unit_id, text), name)
        for unit in loaded.units
        for name in unit.case_ids
        if (text := cases[name].query.strip())
    )
    yield from _listed("duplicate-query", "queries of the same text", _repeated(texts))


def odd_documents(loaded: LoadedBenchmark, staged: StagedDocuments) -> Iterator[Finding]:
    """Yield what is odd about the contents of documents."""
    with (staged.root / ROWS).open(encoding="ascii", newline="\n") as lines:
        rows = [json.loads(line) for line in lines]
    empty = [row["document_id"] for row in rows if not row["size"]]
    yield from _listed("empty-document", "empty documents", empty)
    contents = {row["document_id"]: row["sha256"] for row in rows if row["size"]}
    texts = (
        ((unit.unit_id, contents[name]), name)
        for unit in loaded.units
        for name in unit.document_ids or contents
        if name in contents
    )
    yield from _listed("duplicate-document", "documents of the same text", _repeated(texts))


def _repeated(pairs: Iterable[tuple[Hashable, str]]) -> list[str]:
    groups: dict[Hashable, list[str]] = defaultdict(list)
    for text, name in pairs:
        groups[text].append(name)
    repeated = (" = ".join(names) for names in groups.values() if len(names) > 1)
    return list(dict.fromkeys(repeated))  # units may share them


def _listed(code: str, what: str, ids: Iterable[str]) -> Iterator[Finding]:
    found = list(ids)
    if found:
        yield Finding(code, f"{what}: {len(found)} ({first_of(found, _SHOWN_IDS)})")
