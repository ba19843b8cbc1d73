"""Knowledge bases in a folder: arrays of numpy, and one JSON file about them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_heta.errors import BuildError, HetaError, one_line
from pytest_heta.recipes._chunks import ChunkStore
from pytest_heta.recipes._knowledge_base import LocalKnowledgeBase, QuerySettings
from pytest_heta.recipes._legs import Leg

__all__ = ["FORMAT_VERSION", "load_knowledge_base", "save_knowledge_base"]

FORMAT_VERSION: Final = 1
"""Version of the layout of the folder. Only the same version is read."""

_FORMAT: Final = "pytest-heta local knowledge base"
_ABOUT: Final = "knowledge_base.json"
_CHUNKS: Final = "chunks"


def save_knowledge_base(
    knowledge_base: LocalKnowledgeBase, path: Path, recipe: Mapping[str, Any]
) -> None:
    """Write a knowledge base into a folder that is new or empty.

    The file about it comes last: a folder without it is no knowledge base.

    Args:
        knowledge_base: The knowledge base.
        path: The folder.
        recipe: What of the recipe decides what is built.

    Raises:
        BuildError: if the folder holds something or cannot be written, or
            another recipe built the knowledge base.
    """
    built_by = knowledge_base.manifest()
    if any(built_by.get(name) != value for name, value in recipe.items()):
        raise BuildError(
            f"the knowledge base {knowledge_base.name!r} was built by another recipe",
            hint="save it by the recipe that built it",
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise BuildError(
                "the folder for the knowledge base is not empty",
                where=str(path),
                hint="name a new folder, or delete it first",
            )
        knowledge_base.chunks.save(path / _CHUNKS)
        for name, leg in knowledge_base.legs.items():
            leg.save(path / name)
        about = {
            "format": _FORMAT,
            "format_version": FORMAT_VERSION,
            "name": knowledge_base.name,
            "recipe": dict(recipe),
            "manifest": knowledge_base.manifest(),
            "legs": list(knowledge_base.legs),
            "files": _files(path),
        }
        text = json.dumps(about, ensure_ascii=False, indent=2)
        partial = path / f"{_ABOUT}.part"
        partial.write_text(text, encoding="utf-8")
        partial.replace(path / _ABOUT)
    except OSError as error:
        raise BuildError(f"the knowledge base cannot be saved: {error}", where=str(path)) from error


def load_knowledge_base(
    path: Path,
    *,
    recipe: Mapping[str, Any],
    legs: Mapping[str, Callable[[Path], Leg]],
    settings: QuerySettings,
    verified: bool = False,
) -> LocalKnowledgeBase:
    """Return the knowledge base that `save_knowledge_base` wrote, its arrays memory-mapped.

    Args:
        path: The folder.
        recipe: What of the recipe decides what is built: it must be what the
            saved one was built by.
        legs: Loads the index of each leg from its folder.
        settings: What the recipe says about queries.
        verified: Whether the files are known to be as they were written;
            otherwise each is compared with its SHA-256.

    Raises:
        BuildError: if the folder holds no knowledge base, a damaged one, one
            of another version, or one of another recipe.
    """
    about = _read_about(path)
    missing = [leg for leg in legs if leg not in about["legs"]]
    if missing:
        raise BuildError(
            f"the knowledge base was saved without {' and '.join(missing)}",
            where=str(path),
            hint="build it again with these modes",
        )
    _check_recipe(path, about["recipe"], recipe)
    if not verified:
        _check_files(path, about["files"])
    try:
        return LocalKnowledgeBase(
            about["name"],
            ChunkStore.load(path / _CHUNKS),
            {name: load(path / name) for name, load in legs.items()},
            settings,
            about["manifest"],
        )
    except HetaError:
        raise
    except Exception as error:  # whatever is behind it: files that were right when written
        raise _damaged(path, f"{type(error).__name__}: {error}") from error


def _read_about(path: Path) -> dict[str, Any]:
    file = path / _ABOUT
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BuildError(
            f"the folder holds no saved knowledge base: there is no {_ABOUT}", where=str(path)
        ) from None
    except (OSError, ValueError) as error:
        raise _damaged(path, f"{_ABOUT} cannot be read: {error}") from error
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise _damaged(path, f"{_ABOUT} does not describe a knowledge base")
    if about.get("format_version") != FORMAT_VERSION:
        raise BuildError(
            f"the saved knowledge base has format version {about.get('format_version')!r},"
            f" this release reads {FORMAT_VERSION}",
            where=str(path),
            hint="build it again",
        )
    kinds = {"name": str, "recipe": dict, "manifest": dict, "legs": list, "files": dict}
    for name, kind in kinds.items():
        if not isinstance(about.get(name), kind):
            raise _damaged(path, f"{_ABOUT} has no {name}")
    return about


def _check_recipe(path: Path, saved: Mapping[str, Any], recipe: Mapping[str, Any]) -> None:
    for name, value in recipe.items():
        if saved.get(name) != value:
            raise BuildError(
                f"the knowledge base was built by another recipe: {name} was"
                f" {json.dumps(saved.get(name))}, is {json.dumps(value)}",
                where=str(path),
                hint="build it again, or load it by the recipe it was built by",
            )


def _check_files(path: Path, files: Mapping[str, Any]) -> None:
    try:
        there = _files(path)
    except OSError as error:
        raise _damaged(path, str(error)) from error
    for name, digest in files.items():
        if name not in there:
            raise _damaged(path, f"{name} is missing")
        if there[name] != digest:
            raise _damaged(path, f"{name} has changed")


def _files(path: Path) -> dict[str, str]:
    """Return the SHA-256 of each file below a folder, by its relative path."""
    found: dict[str, str] = {}
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if file.is_file() and name != _ABOUT:
            with file.open("rb") as content:
                found[name] = hashlib.file_digest(content, "sha256").hexdigest()
    return found


def _damaged(path: Path, problem: str) -> BuildError:
    return BuildError(
        f"the saved knowledge base is damaged: {one_line(problem)}",
        where=str(path),
        hint="build it again",
    )
