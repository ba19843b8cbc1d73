"""What is wrong or odd about a dataset, found by loading and staging it as a run does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from pytest_heta.core._findings import (
    Finding,
    checked_files,
    odd_cases,
    odd_documents,
    odd_judgments,
)
from pytest_heta.core._loading import Suite, load_benchmark
from pytest_heta.core.staging import stage_documents
from pytest_heta.errors import DocumentUnavailableError, HetaError
from pytest_heta.models import BenchmarkWorkspace
from pytest_heta.protocols import BenchmarkProtocol

__all__ = ["Finding", "Validation", "validate_benchmark"]

_MOST_UNAVAILABLE: Final = 20


class Validation(NamedTuple):
    """What was found in one dataset; counts are None where an error came first."""

    errors: tuple[HetaError, ...]
    warnings: tuple[Finding, ...] = ()
    documents: int | None = None
    queries: int | None = None
    judgments: int | None = None


async def validate_benchmark(benchmark: BenchmarkProtocol, folder: Path) -> Validation:
    """Load and stage a benchmark, and return what is wrong or odd about it.

    Loading stops at its first error; the files of adapters that have
    ``check_files`` are read to their ends all the same.

    Args:
        benchmark: The benchmark.
        folder: Folder that may be written to.
    """
    workspace = BenchmarkWorkspace(root_dir=Path.cwd(), cache_dir=folder / "cache")
    errors, found = checked_files(benchmark, workspace)
    try:
        loaded = await load_benchmark(Suite(benchmark), workspace)
    except HetaError as error:
        return Validation(_with(errors, error), found)
    found = (*found, *odd_cases(loaded))
    cases = loaded.cases.values()
    counts = len(cases), sum(len(case.expected.evidence) for case in cases)
    try:
        # The folder is of this validation alone: what is in it need not be compared.
        staged = await stage_documents(loaded, folder, run_key="validate")
    except HetaError as error:
        return Validation(_with(errors, error), found, None, *counts)
    errors = (*errors, *_unavailable(staged.problems, staged.affected_count, len(cases)))
    found = (*found, *odd_judgments(loaded, staged), *odd_documents(loaded, staged))
    return Validation(errors, found, staged.document_count, *counts)


def _with(errors: tuple[HetaError, ...], error: HetaError) -> tuple[HetaError, ...]:
    """Return all errors; what loading met may have been found in the files before."""
    return errors if str(error) in map(str, errors) else (*errors, error)


def _unavailable(
    problems: Mapping[str, str], affected: int, cases: int
) -> Iterator[DocumentUnavailableError]:
    for document_id, reason in islice(problems.items(), _MOST_UNAVAILABLE):
        yield DocumentUnavailableError(reason, where=f"document {document_id}")
    if problems:
        more = len(problems) - _MOST_UNAVAILABLE
        also = f"{more} more documents cannot be read; " if more > 0 else ""
        yield DocumentUnavailableError(f"{also}{affected} of {cases} cases would fail")
