"""``--heta-cache-dir``: knowledge bases that were built are loaded by the next run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pytest_heta.core._leases import Lease

UNITS = {"a": 2, "b": 2}
EITHER_WAY = pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])


@pytest.fixture(autouse=True)
def saving(world):
    world.save_knowledge_bases()


@pytest.fixture
def units(world):
    """Let the dataset have two run units."""
    queries = ("apple pie", "bike repair")
    world.dataset(
        [
            {"case_id": f"{unit}{number}", "query": queries[number], "unit": unit}
            | {"evidence": [["apple"], ["bike"]][number], "documents": ["apple", "bike"]}
            for unit, count in UNITS.items()
            for number in range(count)
        ]
    )


def entries(folder):
    return [json.loads(path.read_text())["entry"] for path in folder.glob("v1/*/entry.json")]


def said(result):
    """Return what was printed, as one line."""
    return " ".join(result.stdout.str().split())


def reused(report):
    return {build["unit_id"]: build["reused"] for build in report["unit_builds"]}


class TestSecondRun:
    @EITHER_WAY
    def test_an_unchanged_second_run_builds_nothing(
        self, world, units, builds, comparable, workers
    ):
        first_run = world.run("--heta-cache-dir=kept", *workers)
        first_run.assert_outcomes(passed=8)
        first = world.report()
        assert builds() == {"a": 1, "b": 1}
        assert reused(first) == {"a": False, "b": False}
        assert first["metadata"]["knowledge_bases"] == {"built": 2, "reused": 0, "failed": 0}

        result = world.run("--heta-cache-dir=kept", *workers)
        result.assert_outcomes(passed=8)
        second = world.report()
        assert builds() == {"a": 1, "b": 1}
        assert reused(second) == {"a": True, "b": True}
        assert second["metadata"]["knowledge_bases"] == {"built": 0, "reused": 2, "failed": 0}
        for before, after in zip(first["unit_builds"], second["unit_builds"], strict=True):
            assert after["build_seconds"] == before["build_seconds"]
            assert before["load_seconds"] is None
            assert after["load_seconds"] > 0
        assert comparable(second["case_results"]) == comparable(first["case_results"])
        assert second["score_summary"] == first["score_summary"]
        assert re.search(
            r" 2 knowledge bases loaded from the cache in \S+ \w+ \(first built in \S+ \w+\)",
            said(result),
        )

    def test_a_run_of_both_kinds_says_so(self, world, units, builds):
        world.run("--heta-cache-dir=kept", "-k", "a0 or a1")
        result = world.run("--heta-cache-dir=kept")
        assert builds() == {"a": 1, "b": 1}
        assert reused(world.report()) == {"a": True, "b": False}
        assert re.search(
            r"1 of 2 knowledge bases built in \S+ \w+, 1 loaded from the cache in \S+ \w+"
            r" \(first built in \S+ \w+\)",
            said(result),
        )

    def test_each_recipe_has_its_own(self, world, builds):
        world.recipe((world.path / "recipe.py").read_text().replace('"toy"', '"other"'), "other.py")
        recipes = ("--heta-recipe=other.py:recipe", "--heta-cache-dir=kept")
        for _ in range(2):
            world.run(*recipes).assert_outcomes(passed=12)
        assert builds() == {"corpus": 2}
        assert sorted(entry["recipe"] for entry in entries(world.path / "kept")) == ["other", "toy"]

    def test_an_entry_says_what_it_is(self, world):
        world.run("--heta-cache-dir=kept")
        (entry,) = entries(world.path / "kept")
        assert (entry["recipe"], entry["benchmark"], entry["unit_id"]) == ("toy", "toys", "corpus")


def interrupted_run(world):
    given = (*world.quiet, "--heta-recipe=recipe.py:recipe", "--heta-cache-dir=kept")
    result = world.pytester.runpytest_inprocess(*given, no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED


class TestUse:
    """What a run uses is not removed under it by another one, which prunes at each query."""

    @pytest.fixture(params=["built", "loaded"], autouse=True)
    def pruned_all_the_time(self, request, world):
        world.extend_recipe(
            """
            from pathlib import Path

            from pytest_heta.core.cache import KnowledgeBaseCache

            class KnowledgeBase(KnowledgeBase):
                def query(self, text, *, mode, top_k):
                    Path("asked").touch()
                    other = KnowledgeBaseCache(Path("kept"), max_bytes=0)
                    assert other.prune(all_runs=True) == []
                    if Path("interrupt").exists():
                        raise KeyboardInterrupt
                    return super().query(text, mode=mode, top_k=top_k)
            """
        )
        if request.param == "loaded":
            world.run("--heta-cache-dir=kept").assert_outcomes(passed=6)

    @pytest.fixture(autouse=True)
    def leases(self, monkeypatch):
        """Keep all leases of this process: none is released by being forgotten."""
        leases, begin = [], Lease.__init__

        def kept(lease, *given):
            begin(lease, *given)
            leases.append(lease)

        monkeypatch.setattr(Lease, "__init__", kept)
        yield leases
        for lease in leases:
            lease.release()

    @EITHER_WAY
    def test_it_stays_until_the_run_has_closed_it(self, world, workers):
        world.run("--heta-cache-dir=kept", *workers).assert_outcomes(passed=6)
        kept = world.path / "kept"
        assert (world.path / "asked").exists()
        assert len(entries(kept)) == 1
        assert list((kept / "v1" / "uses").iterdir()) == []

    def test_an_interrupted_run_uses_it_no_longer(self, world):
        (world.path / "interrupt").touch()
        interrupted_run(world)
        assert len(entries(world.path / "kept")) == 1
        assert list((world.path / "kept" / "v1" / "uses").iterdir()) == []

    def test_one_whose_closing_is_interrupted_is_let_go(self, world):
        world.extend_recipe(
            """
            def close(self):
                raise KeyboardInterrupt

            KnowledgeBase.close = close
            """
        )
        interrupted_run(world)
        assert list((world.path / "kept" / "v1" / "uses").iterdir()) == []


class TestChanges:
    def test_a_copied_project_loads_what_the_first_one_built(self, world, builds, monkeypatch):
        world.run("--heta-cache-dir=kept")
        copy = world.path / "copy"
        copy.mkdir()
        for name in ("recipe.py", "bench_toys.py", "toys"):
            (world.path / name).rename(copy / name)
        for ini in world.path.glob("*.ini"):
            ini.rename(copy / ini.name)
        monkeypatch.chdir(copy)
        world.run("--heta-cache-dir=../kept").assert_outcomes(passed=6)
        assert builds() == {"corpus": 1}

    def test_a_changed_document_builds_its_unit_anew(self, world, builds):
        world.run("--heta-cache-dir=kept")
        documents = world.path / "toys" / "documents.jsonl"
        documents.write_text(documents.read_text().replace("apple pie", "bike repair"))
        world.run("--heta-cache-dir=kept")
        assert builds() == {"corpus": 2}
        assert world.report()["score_summary"]["overlap.recall@1"] != 1.0

    def test_a_changed_manifest_or_code_builds_anew(self, world, builds):
        world.run("--heta-cache-dir=kept")
        path = world.path / "recipe.py"
        path.write_text(path.read_text().replace("word overlap", "words"), encoding="utf-8")
        world.run("--heta-cache-dir=kept")
        assert builds() == {"corpus": 2}
        world.extend_recipe("# a change")
        world.run("--heta-cache-dir=kept")
        assert builds() == {"corpus": 3}
        world.run("--heta-cache-dir=kept")
        assert builds() == {"corpus": 3}

    def test_changed_cases_and_options_of_queries_do_not(self, world, builds):
        world.run("--heta-cache-dir=kept")
        cases = world.path / "toys" / "cases.jsonl"
        cases.write_text(cases.read_text().replace("apple pie", "apple"), encoding="utf-8")
        world.run("--heta-cache-dir=kept", "--heta-top-k=3", "--heta-mode=overlap")
        assert builds() == {"corpus": 1}

    def test_another_recipe_in_an_overridden_fixture_has_its_own_key(self, world, builds):
        world.pytester.makeconftest(
            """
            import pytest

            @pytest.fixture(scope="class")
            def heta_kb(heta_unit, heta_recipe):
                class Other(type(heta_recipe)):
                    def manifest(self):
                        return {"size": 3}
                return heta_unit.build(Other())
            """
        )
        for _ in range(2):
            world.run("--heta-cache-dir=kept").assert_outcomes(passed=6)
        assert builds() == {"corpus": 1}
        (world.path / "conftest.py").unlink()
        world.run("--heta-cache-dir=kept").assert_outcomes(passed=6)
        assert builds() == {"corpus": 2}


class TestTrouble:
    @EITHER_WAY
    def test_a_damaged_entry_is_built_anew_with_a_warning(self, world, builds, workers):
        world.run("--heta-cache-dir=kept", *workers)
        (saved,) = (world.path / "kept").glob("v1/*/saved/texts.json")
        saved.write_bytes(saved.read_bytes().replace(b"apple", b"appla"))
        result = world.run("--heta-cache-dir=kept", *workers)
        result.assert_outcomes(passed=6)
        assert builds() == {"corpus": 2}
        warning = (
            "[cache-unusable] run unit corpus: the saved knowledge base was not used:"
            " texts.json has changed"
        )
        assert world.report()["metadata"]["warnings"] == [warning]
        assert f"warning: {warning}" in said(result)
        world.run("--heta-cache-dir=kept", *workers)
        assert world.report()["metadata"]["warnings"] == []
        assert builds() == {"corpus": 2}

    def test_what_cannot_be_saved_is_a_warning(self, world, builds):
        world.extend_recipe(
            """
            class Recipe(Recipe):
                def save(self, knowledge_base, path):
                    raise OSError("disk full")
            recipe = Recipe()
            """
        )
        for _ in range(2):
            world.run("--heta-cache-dir=kept").assert_outcomes(passed=6)
        assert builds() == {"corpus": 2}
        assert world.report()["metadata"]["warnings"] == [
            "[cache-unusable] run unit corpus: the knowledge base was not saved: OSError: disk full"
        ]
        assert entries(world.path / "kept") == []

    def test_a_file_is_refused(self, world):
        (world.path / "kept").write_text("")
        error = world.usage_error("--heta-cache-dir=kept")
        assert error == "--heta-cache-dir: 'kept' is not a folder"

    def test_a_folder_in_a_dataset_is_refused(self, world):
        error = world.usage_error("toys", "--heta-cache-dir=toys/kept")
        assert error == "--heta-cache-dir: 'toys/kept' lies in a dataset; name a folder outside"


class TestFolder:
    def test_the_default_is_in_the_cache_of_pytest(self, world, builds):
        for _ in range(2):
            world.run(cache=True)
        assert builds() == {"corpus": 1}
        assert len(entries(world.path / ".pytest_cache" / "d" / "heta")) == 1

    def test_workers_use_the_same_default(self, world, builds):
        for _ in range(2):
            world.run("-n2", cache=True)
        assert builds() == {"corpus": 1}
        assert len(entries(world.path / ".pytest_cache" / "d" / "heta")) == 1

    def test_without_pytests_cache_nothing_is_kept(self, world, builds):
        for _ in range(2):
            world.run()
        assert builds() == {"corpus": 2}
        assert not list(world.path.rglob("entry.json"))

    def test_a_recipe_without_save_and_load_leaves_no_folder(self, world, builds):
        world.recipe()
        for _ in range(2):
            world.run("--heta-cache-dir=kept", cache=True)
        assert builds() == {"corpus": 2}
        assert not (world.path / "kept").exists()
        assert not (world.path / ".pytest_cache" / "d" / "heta").exists()
        assert reused(world.report()) == {"corpus": False}

    def test_a_dataset_keeps_nothing_of_it(self, world, builds, monkeypatch):
        monkeypatch.chdir(world.path / "toys")
        before = sorted(path.name for path in Path().iterdir())
        for _ in range(2):
            world.run(".", recipe="../recipe.py:recipe", cache=True)
        assert builds() == {"corpus": 1}
        assert sorted(path.name for path in Path().iterdir()) == before

    def test_in_the_ini_file_it_starts_from_there(self, world, monkeypatch):
        world.ini("heta_cache_dir = kept")
        (world.path / "inner").mkdir()
        monkeypatch.chdir(world.path / "inner")
        world.run("..", recipe="../recipe.py:recipe").assert_outcomes(passed=6)
        assert len(entries(world.path / "kept")) == 1

    def test_on_the_command_line_it_starts_from_the_current_folder(self, world, monkeypatch):
        world.ini("heta_cache_dir = elsewhere")
        (world.path / "inner").mkdir()
        monkeypatch.chdir(world.path / "inner")
        world.run("..", "--heta-cache-dir=kept", recipe="../recipe.py:recipe")
        assert len(entries(world.path / "inner" / "kept")) == 1
        assert not (world.path / "elsewhere").exists()


def test_workers_share_what_they_build_where_nothing_is_kept(world, builds):
    cases = [
        {"case_id": f"c{number}", "query": f"apple {number}", "evidence": ["apple"]}
        for number in range(400)
    ]
    world.dataset(cases)
    world.run("-n2", "--heta-mode=overlap").assert_outcomes(passed=400)
    assert builds() == {"corpus": 1}
    assert reused(world.report()) == {"corpus": False}
    assert world.report()["metadata"]["knowledge_bases"] == {"built": 1, "reused": 0, "failed": 0}
