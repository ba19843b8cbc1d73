"""Dataset folders as arguments: which they are, and that nothing is written into them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_heta.errors import HetaError
from pytest_heta.plugin import is_suite_file
from pytest_heta.protocols import BenchmarkProtocol

__all__ = [
    "DATASET_FILES",
    "dataset_folders",
    "keep_out_of_datasets",
    "named_dataset",
    "names_paths",
    "place_for_files",
]

DATASET_FILES: Final = ("queries.jsonl", "cases.jsonl")
"""Files that stand for a dataset folder in node ids: of a BEIR dataset, and of any other."""

_BENCHMARK_STORAGE: Final = "file://./.benchmarks"
"""Where pytest-benchmark makes a folder in every session, if it is not told otherwise."""


def names_paths(config: pytest.Config) -> bool:
    """Whether there are arguments: without any, pytest takes the current folder."""
    told: bool | None = getattr(config, "workerinput", {}).get("heta_names_paths")
    return config.args_source is not config.ArgsSource.INVOCATION_DIR if told is None else told


def named_dataset(session: pytest.Session, path: Path) -> BenchmarkProtocol | None:
    """Return the benchmark that a file stands for: its folder, or it, is an argument.

    A folder with a suite file of its own is left to that file.

    Raises:
        pytest.Collector.CollectError: if it is not clear what the folder holds.
    """
    folder = path.parent
    if not session.isinitpath(path) and not (
        session.isinitpath(folder) and names_paths(session.config) and _is_bare(folder)
    ):
        return None
    try:
        benchmark = _benchmark_of(folder)
    except HetaError as error:
        from pytest_heta.plugin.tracebacks import collect_error  # noqa: PLC0415 - needs the run

        raise collect_error(session.config, error) from error
    # A folder has one benchmark, and one file stands for it.
    return benchmark if benchmark is not None and path.name == _file_of(benchmark) else None


def _benchmark_of(folder: Path) -> BenchmarkProtocol | None:
    if not any(os.path.isfile(folder / name) for name in DATASET_FILES):  # noqa: PTH113 - never raises
        return None
    from pytest_heta.benchmarks import benchmark_from_folder  # noqa: PLC0415 - few have datasets

    return benchmark_from_folder(folder)


def _file_of(benchmark: BenchmarkProtocol) -> str:
    from pytest_heta.benchmarks import BeirBenchmark  # noqa: PLC0415 - it is there by now

    return DATASET_FILES[0 if isinstance(benchmark, BeirBenchmark) else 1]


def _is_bare(folder: Path) -> bool:
    return not any(is_suite_file(path) for path in folder.glob("bench_*.py"))


def keep_out_of_datasets(config: pytest.Config) -> None:
    """Move pytest's cache and pytest-benchmark's folder, should they lie in a dataset.

    The dataset is the root folder of a session when it is the only argument
    and has no ini file above it.
    """
    folders = dataset_folders(config)
    if not folders:
        return
    here, place = config.invocation_params.dir.resolve(), place_for_files(config)
    if config.pluginmanager.hasplugin("cacheprovider"):
        cache = (config.rootpath / str(config.getini("cache_dir"))).resolve()
        if any(cache.is_relative_to(folder) for folder in folders):
            # pytest reads this value once more, when it makes its cache; it
            # has no public way to change it by then.
            values: dict[str, Any] = getattr(config, "_inicache", {})
            values["cache_dir"] = str(place / ".pytest_cache")
    if place != here and config.getoption("benchmark_storage", None) == _BENCHMARK_STORAGE:
        config.option.benchmark_storage = f"file://{place / '.benchmarks'}"


def place_for_files(config: pytest.Config) -> Path:
    """Return the current folder or, when it is part of a dataset, the folder around that."""
    place = config.invocation_params.dir.resolve()
    # Inner folders first: what is around them may be a dataset, too.
    for folder in sorted(dataset_folders(config), reverse=True):
        if place.is_relative_to(folder):
            place = folder.parent
    return place


def dataset_folders(config: pytest.Config) -> set[Path]:
    """Return the dataset folders among the arguments."""
    if not names_paths(config):
        return set()
    here = config.invocation_params.dir
    paths = {(here / argument.partition("::")[0]).resolve() for argument in config.args}
    folders = {path.parent for path in paths if path.name in DATASET_FILES}
    folders |= {path for path in paths if _is_bare(path)}
    return {folder for folder in folders if _holds_dataset(folder)}


def _holds_dataset(folder: Path) -> bool:
    try:
        return _benchmark_of(folder) is not None
    except HetaError:
        # It does, and its collection will say what is wrong with it.
        return True
