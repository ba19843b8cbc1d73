"""``--heta-rebuild``: knowledge bases are built, whatever is saved."""

from __future__ import annotations

import json

import pytest

from pytest_heta.core.cache import CacheKey, KnowledgeBaseCache


@pytest.fixture(autouse=True)
def saving(world):
    world.save_knowledge_bases()


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
def test_all_are_built_and_kept_for_the_next_run(world, builds, workers):
    world.run("--heta-cache-dir=kept", *workers)
    world.run("--heta-cache-dir=kept", "--heta-rebuild", *workers).assert_outcomes(passed=6)
    assert builds() == {"corpus": 2}
    (rebuilt,) = world.report()["unit_builds"]
    assert (rebuilt["reused"], rebuilt["load_seconds"]) == (False, None)
    world.run("--heta-cache-dir=kept", *workers)
    assert builds() == {"corpus": 2}
    (loaded,) = world.report()["unit_builds"]
    assert (loaded["reused"], loaded["build_seconds"]) == (True, rebuilt["build_seconds"])


def test_the_saved_one_is_not_even_read(world, builds):
    world.run("--heta-cache-dir=kept")
    (entry,) = (world.path / "kept").glob("v1/*/entry.json")
    entry.with_name("saved").joinpath("texts.json").write_text("{}")
    world.run("--heta-cache-dir=kept", "--heta-rebuild")
    assert world.report()["metadata"]["warnings"] == []
    assert json.loads(entry.read_text())["entry"]["size_bytes"] > 2


def test_what_another_run_uses_stays_and_the_new_one_is_used_without_being_saved(world, builds):
    world.run("--heta-cache-dir=kept")
    (entry,) = (world.path / "kept").glob("v1/*/entry.json")
    before = entry.read_bytes()
    cache = KnowledgeBaseCache(world.path / "kept", max_bytes=1 << 30)
    lease = cache.lease(CacheKey(entry.parent.name, "toy", "toys", "corpus"))
    try:
        world.run("--heta-cache-dir=kept", "--heta-rebuild").assert_outcomes(passed=6)
    finally:
        lease.release()
    assert builds() == {"corpus": 2}
    (warning,) = world.report()["metadata"]["warnings"]
    assert warning == (
        "[cache-unusable] run unit corpus: the knowledge base was not saved:"
        " the saved one is in use and stays"
    )
    assert entry.read_bytes() == before


def test_the_ini_file_may_say_it(world, builds):
    world.ini("heta_rebuild = true", "heta_cache_dir = kept")
    for _ in range(2):
        world.run()
    assert builds() == {"corpus": 2}
    world.run("-oheta_rebuild=false")
    assert builds() == {"corpus": 2}
