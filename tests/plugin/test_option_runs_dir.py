"""``--heta-runs-dir``: where runs keep their results."""

import shutil
from pathlib import Path

import pytest


def runs(folder):
    return [path.name for path in folder.iterdir()] if folder.exists() else []


def test_a_run_has_a_folder_of_its_own(world):
    for count in (1, 2):
        world.run("--heta-runs-dir=runs").assert_outcomes(passed=6)
        assert len(runs(world.path / "runs")) == count
    assert world.report()["metadata"]["run_id"] in runs(world.path / "runs")


def test_in_the_ini_file_it_starts_from_there(world):
    world.ini("heta_runs_dir = kept")
    world.run().assert_outcomes(passed=6)
    assert len(runs(world.path / "kept")) == 1


def test_by_default_it_is_in_the_cache_of_pytest(world):
    world.run(cache=True).assert_outcomes(passed=6)
    assert len(runs(world.path / ".pytest_cache" / "d" / "heta-runs")) == 1


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
@pytest.mark.parametrize("arguments", [("-k", "nothing"), ("--collect-only",), ("--heta-list",)])
def test_nothing_is_left_of_a_session_that_asks_nothing(world, workers, arguments):
    world.run("--heta-runs-dir=runs", *arguments, *workers)
    assert runs(world.path / "runs") == []


def test_a_folder_that_is_a_file(world):
    (world.path / "runs").write_text("")
    result = world.run("--heta-runs-dir=runs")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: [[]run-unusable] --heta-runs-dir, *"])


def test_where_the_default_is_no_folder_the_run_is_in_a_temporary_one(world):
    (world.path / ".pytest_cache" / "d").mkdir(parents=True)
    (world.path / ".pytest_cache" / "d" / "heta-runs").write_text("")
    world.extend_recipe("""
    class Recipe(Recipe):
        def create(self, **arguments):
            raise OSError("no index")
    recipe = Recipe()
    """)
    result = world.run(cache=True)
    told = [line for line in result.outlines if "[run-not-kept]" in line]
    assert len(told) == 1
    assert told[0].startswith("heta: warning: [run-not-kept] run ")
    assert "FileExistsError" in told[0]
    assert told[0].endswith("choose another by --heta-runs-dir")
    (how,) = [line for line in result.outlines if "to run only those" in line]
    folder = Path(how.partition("--heta-resume=")[2])
    assert folder.is_dir()
    shutil.rmtree(folder.parent)
