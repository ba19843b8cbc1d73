"""``pytest-heta validate``: what is wrong or odd about datasets."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pytest_heta.benchmarks import JsonlBenchmark, benchmark_from_folder
from pytest_heta.core._validation import Validation, validate_benchmark
from pytest_heta.errors import ConfigurationError, DatasetNotFoundError, HetaError
from pytest_heta.protocols import BenchmarkProtocol
from pytest_heta.reports import plain_text

__all__ = ["add_parser"]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("validate", help="say what is wrong or odd about datasets")
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", type=Path, help="a dataset folder or a cases file"
    )
    parser.add_argument("--strict", action="store_true", help="let warnings fail, too")
    parser.add_argument("--split", help="which judgments of BEIR folders; default as in a run")
    parser.add_argument("--json", action="store_true", help="print a list of objects")
    parser.set_defaults(run=_validate)


def _validate(arguments: argparse.Namespace) -> int:
    for path in arguments.paths:
        if not path.exists():
            raise ConfigurationError(f"there is no {str(path)!r}", where="PATH")
    failed = False
    objects = []
    for path in arguments.paths:
        found = _found(path, arguments.split)
        if arguments.json:
            objects.append(_as_object(path, found))
        else:
            _print(path, found)
        failed = failed or bool(found.errors or (arguments.strict and found.warnings))
    if arguments.json:
        sys.stdout.write(f"{json.dumps(objects, indent=2)}\n")
    return int(failed)


def _found(path: Path, split: str | None) -> Validation:
    try:
        benchmark = _benchmark(path, split)
    except ConfigurationError:
        raise  # of the command, not of the dataset
    except HetaError as error:
        return Validation((error,))
    with TemporaryDirectory() as folder:
        return asyncio.run(validate_benchmark(benchmark, Path(folder)))


def _benchmark(path: Path, split: str | None) -> BenchmarkProtocol:
    if not path.is_dir():
        return JsonlBenchmark(path.absolute())
    benchmark = benchmark_from_folder(path, split=split)
    if benchmark is None:
        raise DatasetNotFoundError(
            "the folder holds no dataset",
            where=str(path),
            hint="expected: cases.jsonl, or corpus.jsonl, queries.jsonl and qrels/",
        )
    return benchmark


def _counts(found: Validation) -> dict[str, int | None]:
    return {
        "documents": found.documents,
        "queries": found.queries,
        "judgments": found.judgments,
    }


def _as_object(path: Path, found: Validation) -> dict[str, Any]:
    return {
        "path": str(path),
        **_counts(found),
        "errors": [
            {"code": error.code, "where": error.where, "message": error.message, "hint": error.hint}
            for error in found.errors
        ],
        "warnings": [finding._asdict() for finding in found.warnings],
    }


def _print(path: Path, found: Validation) -> None:
    lines = [f"error: {error}" for error in found.errors]
    lines += [f"warning: [{code}] {path}: {message}" for code, message in found.warnings]
    numbers = _counts(found) | {"errors": len(found.errors), "warnings": len(found.warnings)}
    counts = ", ".join(
        f"{name} {'not counted' if count is None else count}" for name, count in numbers.items()
    )
    for line in [*lines, f"{path}: {counts}"]:
        sys.stdout.write(f"{plain_text(line)}\n")
