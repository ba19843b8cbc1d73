"""``pytest-heta cache``: what runs have saved is listed and removed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_heta.cli import main
from pytest_heta.core.cache import CacheKey, KnowledgeBaseCache


@pytest.fixture
def folder(tmp_path):
    """A cache with three knowledge bases, used one hour after the other."""
    folder = tmp_path / "kept"
    cache = KnowledgeBaseCache(folder, max_bytes=1 << 30)
    for number, unit in enumerate(("old", "中文", "new")):
        key = CacheKey(f"{number:064}", "local", "shop", unit)
        written = cache.begin(key)
        (written.saved / "data").write_bytes(b"x" * 1500)
        cache.publish(key, written, build_seconds=2.5 + number)
        used = time.time() - 3 * 86_400 + 86_400 * number - 5
        os.utime(folder / "v1" / key.digest / "entry.json", (used, used))
    return folder


@pytest.fixture
def run(capsys):
    def command(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def test_ls_shows_what_is_there_the_last_used_first(run, folder):
    code, out, err = run("cache", "ls", "--cache-dir", folder)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "benchmark  unit  recipe  size    built in  last used",
        "shop       new   local   1.5 kB  4.50 s    1 d ago",
        "shop       中文  local   1.5 kB  3.50 s    2 d ago",
        "shop       old   local   1.5 kB  2.50 s    3 d ago",
        f"3 knowledge bases (4.5 kB) in {folder}",
    ]


def test_ls_as_json(run, folder):
    code, out, _ = run("cache", "ls", "--json", "--cache-dir", folder)
    entries = json.loads(out)
    assert code == 0
    assert [entry["unit_id"] for entry in entries] == ["new", "中文", "old"]
    assert entries[0]["build_seconds"] == 4.5
    assert entries[0]["size_bytes"] == 1500
    assert set(entries[0]) >= {"key", "recipe", "benchmark", "created", "last_used"}
    assert "files" not in entries[0]


def test_the_default_is_the_folder_of_pytest(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = Path(".pytest_cache", "d", "heta")
    assert run("cache", "ls") == (0, f"0 knowledge bases (0 B) in {place}\n", "")
    (tmp_path / ".pytest_cache" / "d").mkdir(parents=True)
    folder.rename(tmp_path / place)
    assert f"3 knowledge bases (4.5 kB) in {place}" in run("cache", "ls")[1]


def test_prune_keeps_the_last_used(run, folder):
    code, out, _ = run("cache", "prune", "--max-size=3.1kB", "--cache-dir", folder)
    assert code == 0
    assert out == (
        f"removed 1 knowledge base (1.5 kB); 2 knowledge bases (3.0 kB) left in {folder}\n"
    )
    entries = KnowledgeBaseCache(folder, max_bytes=1).entries()
    assert [entry.unit_id for entry in entries] == ["中文", "new"]


def test_prune_removes_nothing_that_fits(run, folder):
    code, out, _ = run("cache", "prune", "--cache-dir", folder)
    assert (code, out.split(";")[0]) == (0, "removed 0 knowledge bases (0 B)")


def test_prune_all(run, folder):
    code, out, _ = run("cache", "prune", "--all", "--cache-dir", folder)
    assert code == 0
    assert out == (
        f"removed 3 knowledge bases (4.5 kB); 0 knowledge bases (0 B) left in {folder}\n"
    )


@pytest.fixture(params=["lock", "lease"])
def used(request, folder):
    """The key of one that a run is building or loading, or goes on using."""
    cache = KnowledgeBaseCache(folder, max_bytes=1)
    key = CacheKey(f"{1:064}", "local", "shop", "中文")
    held = asyncio.run(cache.lock(key)) if request.param == "lock" else cache.lease(key)
    yield key
    held.release()


@pytest.mark.parametrize("what", ["--all", "--max-size=1kB"])
def test_prune_says_what_is_in_use(run, folder, used, what):
    code, out, err = run("cache", "prune", what, "--cache-dir", folder)
    assert code == 1
    assert "removed 2 knowledge bases" in out
    assert err == (
        f"pytest-heta: [cache-unusable] {folder}: 1 knowledge base (1.5 kB) could not be removed;"
        " in use by a run; prune again when it has ended\n"
    )
    assert (folder / "v1" / used.digest / "saved" / "data").stat().st_size == 1500


def test_what_is_in_use_does_not_matter_when_the_others_make_room(run, folder, used):
    code, out, err = run("cache", "prune", "--max-size=1.5kB", "--cache-dir", folder)
    assert (code, err) == (0, "")
    assert "removed 2 knowledge bases" in out


@pytest.mark.parametrize("is_file", [False, True])
def test_a_folder_that_is_none_is_a_usage_error(run, tmp_path, is_file):
    place = tmp_path / "place"
    if is_file:
        place.write_text("")
    problem = f"{str(place)!r} is not a folder" if is_file else f"there is no folder {str(place)!r}"
    assert run("cache", "ls", "--cache-dir", place) == (
        2,
        "",
        f"pytest-heta: [configuration-invalid] --cache-dir: {problem}\n",
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "COMMAND"),
        (["cache"], "ACTION"),
        (["bake"], "invalid choice: 'bake'"),
        (["cache", "prune", "--max-size=much"], "'much' is not a size such as 500MB or 2GiB"),
        (["cache", "prune", "--max-size=1", "--all"], "not allowed with argument"),
    ],
)
def test_what_is_written_wrongly_ends_with_2(capsys, arguments, problem):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert problem in capsys.readouterr().err


def test_the_help_says_where_the_default_folder_is(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["cache", "ls", "--help"])
    assert stopped.value.code == 0
    assert ".pytest_cache/d/heta" in capsys.readouterr().out


def test_it_runs_as_a_module_whatever_reads_it(folder):
    command = [sys.executable, "-m", "pytest_heta.cli", "cache", "ls", "--cache-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"3 knowledge bases (4.5 kB) in {folder}\n")

    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=ascii_only, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u4e2d" in done.stdout

    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody:
        left = subprocess.run(command, stdout=nobody, stderr=subprocess.PIPE, check=False)
    assert (left.returncode, left.stderr) == (1, b"")
