"""Where a session keeps knowledge bases, and which of its processes says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_heta.core._size import DEFAULT_CACHE_BYTES
from pytest_heta.core.cache import KnowledgeBaseCache, is_cacheable
from pytest_heta.plugin.datasets import dataset_folders
from pytest_heta.plugin.options import RunOptions, ini_folder, refuse, source_of

if TYPE_CHECKING:
    from pytest_heta.plugin.state import Run

__all__ = ["check_cache_dir", "facts_for_worker", "open_cache"]

_UNLIMITED: Final = 1 << 62


def check_cache_dir(config: pytest.Config, options: RunOptions) -> None:
    """Refuse a folder for knowledge bases that cannot be one.

    Raises:
        pytest.UsageError: if it is a file, or part of a dataset.
    """
    folder = _given_folder(config, options)
    if folder is None:
        return
    source = source_of(config, "cache-dir")
    place = folder.resolve()
    if place.exists() and not place.is_dir():
        refuse(source, f"{options.cache_dir!r} is not a folder")
    if any(place.is_relative_to(dataset) for dataset in dataset_folders(config)):
        refuse(source, f"{options.cache_dir!r} lies in a dataset; name a folder outside")


def facts_for_worker(run: Run) -> dict[str, Any]:
    """Return what a worker has to know, so that all processes use one folder as one run."""
    cache = run.kb_cache if any(map(is_cacheable, run.recipes)) else None
    return {
        "folder": None if cache is None else str(cache.folder),
        "run": run.directory.name,
        "since": run.started_at.timestamp(),
    }


def open_cache(run: Run, facts: Mapping[str, Any]) -> KnowledgeBaseCache | None:
    """Return the session's cache, None where nothing would ever be loaded from it.

    Without a folder to keep it in, workers still share what they build.

    Args:
        run: The session.
        facts: What the controller told this worker; empty in the controller.
    """
    options = run.options
    folder = Path(facts["folder"]) if facts.get("folder") else _folder(run)
    limit = DEFAULT_CACHE_BYTES if options.cache_size is None else options.cache_size
    if folder is None:
        if not run.is_worker or options.split == "never":
            return None
        folder, limit = run.directory / "knowledge-bases", _UNLIMITED
    return KnowledgeBaseCache(
        folder,
        max_bytes=limit,
        rebuild=options.rebuild,
        run=facts.get("run", run.directory.name),
        since=facts.get("since", run.started_at.timestamp()),
    )


def _folder(run: Run) -> Path | None:
    """Return the folder that lasts, None if nothing is to be kept."""
    if run.options.cache_size == 0:
        return None
    given = _given_folder(run.config, run.options)
    if given is not None:
        return given
    cache = getattr(run.config, "cache", None)  # not there without pytest's cacheprovider
    try:
        return cache.mkdir("heta") if cache is not None else None
    except OSError:
        return None


def _given_folder(config: pytest.Config, options: RunOptions) -> Path | None:
    if options.cache_dir is None:
        return None
    from_ini = source_of(config, "cache-dir") == "heta_cache_dir"
    base = ini_folder(config) if from_ini else config.invocation_params.dir
    return base / Path(options.cache_dir).expanduser()
