"""``--heta-cache-size``: what saved knowledge bases may take together."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(autouse=True)
def saving(world):
    world.save_knowledge_bases()


def benchmarks(world):
    found = (world.path / "kept").glob("v1/*/entry.json")
    return {json.loads(path.read_text())["entry"]["benchmark"] for path in found}


def size(world):
    (path,) = (world.path / "kept").glob("v1/*/entry.json")
    return json.loads(path.read_text())["entry"]["size_bytes"]


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
def test_the_least_recently_used_go_when_it_is_too_much(world, builds, workers):
    world.dataset(name="first")
    world.dataset(name="second")
    recipe = ["--heta-cache-dir=kept", *workers]
    world.run("first", *recipe).assert_outcomes(passed=6)
    limit = int(1.5 * size(world))
    world.run("second", f"--heta-cache-size={limit}", *recipe).assert_outcomes(passed=6)
    assert benchmarks(world) == {"second"}


def test_one_that_is_too_large_is_not_kept_and_costs_no_other_its_place(world):
    world.dataset(name="first")
    world.dataset(documents=[{"document_id": n, "text": n} for n in ("apple", "bike", "cloud")])
    world.run("toys", "--heta-cache-dir=kept").assert_outcomes(passed=6)
    limit = size(world)
    world.run("first", f"--heta-cache-size={limit}", "--heta-cache-dir=kept")
    assert benchmarks(world) == {"toys"}
    (warning,) = world.report()["metadata"]["warnings"]
    assert warning.startswith(
        "[cache-unusable] run unit corpus: the knowledge base was not saved: its "
    )


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
def test_none_keeps_nothing(world, builds, workers):
    for _ in range(2):
        result = world.run("--heta-cache-dir=kept", "--heta-cache-size=0", *workers, cache=True)
        result.assert_outcomes(passed=6)
    assert builds() == {"corpus": 2}
    assert not (world.path / "kept").exists()
    assert not (world.path / ".pytest_cache" / "d" / "heta").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500MB", 500_000_000), ("2GiB", 2 << 30), ("1.5 kb", 1500), ("7", 7), ("3b", 3)],
)
def test_sizes_are_read_as_people_write_them(text, expected):
    from pytest_heta.core._size import parse_size

    assert parse_size(text) == expected


@pytest.mark.parametrize("text", ["much", "-1", "1e3", "2 PB", "MB"])
def test_what_is_no_size_is_refused(world, text):
    error = world.usage_error(f"--heta-cache-size={text}")
    assert error == f"--heta-cache-size: {text!r} is not a size such as 500MB or 2GiB"


def test_the_ini_file_may_say_it(world, builds):
    world.ini("heta_cache_size = 0", "heta_cache_dir = kept")
    world.run()
    assert not (world.path / "kept").exists()
    world.run("--heta-cache-size=1MB")
    assert benchmarks(world) == {"toys"}
