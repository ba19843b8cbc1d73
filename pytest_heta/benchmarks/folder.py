"""Recognising a dataset by the files that its folder holds."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Final

from pytest_heta.benchmarks._places import location
from pytest_heta.benchmarks.beir import BeirBenchmark, qrels_splits
from pytest_heta.benchmarks.jsonl import JsonlBenchmark
from pytest_heta.errors import ConfigurationError, DatasetNotFoundError
from pytest_heta.protocols import BenchmarkProtocol

__all__ = ["benchmark_from_folder"]

_PREFERRED_SPLITS: Final = ("test", "dev", "validation", "valid", "val")


def benchmark_from_folder(
    path: str | PathLike[str], *, split: str | None = None
) -> BenchmarkProtocol | None:
    """Return the benchmark that a folder holds, None if it holds none.

    A folder with ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/`` is a
    `BeirBenchmark`, one with ``cases.jsonl`` a `JsonlBenchmark`. Only names
    are looked at: no file is opened and none is written.

    Args:
        path: The folder.
        split: Which judgments of a BEIR folder to take; None for ``test``,
            else ``dev`` or ``validation``, else the only ones.

    Raises:
        DatasetNotFoundError: if a BEIR folder has no judgments.
        ConfigurationError: if it has several splits and none of these, or a
            split is given and the folder has none.
    """
    # The folder was named where the session runs, not in a suite's root.
    folder = Path(path).absolute()
    is_beir = _is_file(folder / "corpus.jsonl") and _is_file(folder / "queries.jsonl")
    if is_beir and (folder / "qrels").is_dir():
        return BeirBenchmark(folder, split=split or _choose_split(folder))
    if _is_file(folder / "cases.jsonl"):
        if split is not None:
            raise ConfigurationError(
                f"there is no split {split!r}",
                where=location(folder),
                hint="only folders in BEIR's layout have splits",
            )
        return JsonlBenchmark(folder)
    if is_beir:
        raise DatasetNotFoundError(
            "no judgments", where=location(folder / "qrels"), hint="expected: test.tsv"
        )
    return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # A folder that cannot be looked into is none that we know.
        return False


def _choose_split(folder: Path) -> str:
    splits = qrels_splits(folder)
    if not splits:
        raise DatasetNotFoundError(
            "no judgments", where=location(folder / "qrels"), hint="expected: test.tsv"
        )
    for split in _PREFERRED_SPLITS:
        if split in splits:
            return split
    if len(splits) == 1:
        return splits[0]
    raise ConfigurationError(
        f"which of the splits {', '.join(splits)} is meant is not clear",
        where=location(folder / "qrels"),
        hint=f"name it in a suite: BeirBenchmark({folder.name!r}, split={splits[0]!r})",
    )
