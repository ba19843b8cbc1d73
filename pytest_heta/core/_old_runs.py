"""Which runs of before stay, and which go."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pytest_heta.core._run_file import FILE, LOCK, files_of, held, is_run, runs_below
from pytest_heta.errors import RunInUseError

__all__ = ["prune_runs"]

_LEFTOVER_S: Final = 3600.0


def prune_runs(parent: Path, keep: int) -> None:
    """Remove old runs; see `RunFolder.prune`."""
    known = [(path, data) for path, data in runs_below(parent) if is_run(data)]
    unfinished: dict[str, Path] = {}
    for path, data in known:
        if _is_unfinished(path, data):
            unfinished.setdefault(_selection(data), path)
    kept = {path for path, _ in known[:keep]}
    kept.update([path for path in unfinished.values() if path not in kept][:keep])
    for path, _ in known:
        if path not in kept:
            _remove(path)
    for path in _leftovers(parent):
        _remove(path)


def _is_unfinished(path: Path, data: Mapping[str, Any]) -> bool:
    """Whether a run has results, but not yet all of them without an error."""
    if data["sessions"] and data["sessions"][-1].get("complete"):
        return False
    return any(files_of(session) for session in path.glob("session-*"))


def _selection(data: Mapping[str, Any]) -> str:
    parts = {label: known.get("selection") for label, known in data["fingerprints"].items()}
    return json.dumps(parts, sort_keys=True)


def _leftovers(parent: Path) -> list[Path]:
    """Return the folders of runs whose removal, or making, was killed an hour ago."""
    latest = time.time() - _LEFTOVER_S
    with suppress(OSError):
        return [
            path.parent
            for path in parent.glob(f"*/{LOCK}")
            if path.stat().st_mtime < latest and not (path.parent / FILE).exists()
        ]
    return []


def _remove(path: Path) -> None:
    with suppress(OSError, RunInUseError):
        lock = held(path)
        try:
            # Without this file it is no run: nobody opens what is being removed.
            (path / FILE).unlink(missing_ok=True)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            lock.release()
