"""``pytest-heta cache``: the knowledge bases that runs have saved."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pytest_heta.core._size import DEFAULT_CACHE_BYTES, format_size, parse_size
from pytest_heta.core.cache import CacheEntry, KnowledgeBaseCache
from pytest_heta.errors import CacheError, ConfigurationError
from pytest_heta.reports import plain_text
from pytest_heta.reports._layout import display_width, pad

__all__ = ["add_parser"]

_DEFAULT_FOLDER: Final = Path(".pytest_cache", "d", "heta")
_AGES: Final = (("d", 86_400), ("h", 3_600), ("min", 60))


def add_parser(commands: Any) -> None:
    """Add the command and its own commands."""
    parser = commands.add_parser("cache", help="list or remove saved knowledge bases")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("ls", help="list them, the last used first")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(run=_list)
    pruning = actions.add_parser(
        "prune",
        help="remove the least recently used, damaged ones, and what killed runs left",
    )
    size = pruning.add_mutually_exclusive_group()
    size.add_argument(
        "--max-size",
        metavar="SIZE",
        type=_size,
        default=DEFAULT_CACHE_BYTES,
        help="what may be left, such as 500MB or 2GiB; default: 2GiB",
    )
    size.add_argument("--all", action="store_true", help="remove all")
    pruning.set_defaults(run=_prune)
    for action in (listing, pruning):
        action.add_argument(
            "--cache-dir",
            metavar="DIR",
            type=Path,
            help="the folder, as --heta-cache-dir of the runs named it;"
            f" default: {_DEFAULT_FOLDER.as_posix()} in the current folder, where pytest keeps"
            " its cache unless ini cache_dir says otherwise",
        )


def _size(text: str) -> int:
    size = parse_size(text)
    if size is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 500MB or 2GiB")
    return size


def _cache(
    arguments: argparse.Namespace, max_bytes: int = DEFAULT_CACHE_BYTES
) -> KnowledgeBaseCache:
    given: Path | None = arguments.cache_dir
    folder = _DEFAULT_FOLDER if given is None else given.expanduser()
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{str(folder)!r} is not a folder", where="--cache-dir")
    if given is not None and not folder.exists():
        raise ConfigurationError(f"there is no folder {str(folder)!r}", where="--cache-dir")
    return KnowledgeBaseCache(folder, max_bytes=max_bytes)


def _list(arguments: argparse.Namespace) -> int:
    cache = _cache(arguments)
    entries = cache.entries()[::-1]
    if arguments.json:
        _write(json.dumps([entry.as_json() for entry in entries], indent=2))
        return 0
    if entries:
        now = time.time()
        rows = [_row(entry, now) for entry in entries]
        header = ("benchmark", "unit", "recipe", "size", "built in", "last used")
        for line in _table([header, *rows]):
            _write(line)
    _write(f"{_counted(entries)} in {plain_text(str(cache.folder))}")
    return 0


def _prune(arguments: argparse.Namespace) -> int:
    # An entry of no bytes at all goes, too.
    limit = -1 if arguments.all else arguments.max_size
    cache = _cache(arguments, limit)
    removed = cache.prune(all_runs=True)
    left = cache.entries()
    _write(f"removed {_counted(removed)}; {_counted(left)} left in {plain_text(str(cache.folder))}")
    if left and sum(entry.size_bytes for entry in left) > limit:
        used = list(filter(cache.is_in_use, left))
        raise CacheError(
            f"{_counted(used or left)} could not be removed",
            where=str(cache.folder),
            hint="in use by a run; prune again when it has ended" if used else None,
        )
    return 0


def _counted(entries: Sequence[CacheEntry]) -> str:
    count = len(entries)
    size = format_size(sum(entry.size_bytes for entry in entries))
    return f"{count} knowledge base{'' if count == 1 else 's'} ({size})"


def _row(entry: CacheEntry, now: float) -> tuple[str, ...]:
    return (
        plain_text(entry.benchmark),
        plain_text(entry.unit_id),
        plain_text(entry.recipe),
        format_size(entry.size_bytes),
        f"{entry.build_seconds:.2f} s",
        f"{_age(now - entry.last_used)} ago",
    )


def _age(seconds: float) -> str:
    for unit, length in _AGES:
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(0, int(seconds))} s"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(pad(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
