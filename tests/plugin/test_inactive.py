"""A session that does not use the plugin: nothing is done, said or imported."""

import gc
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

HINT = "name a recipe to run them: --heta-recipe=NAME (or ini heta_recipe)"


@pytest.fixture
def plain(world):
    """A world that is nothing but an ordinary test."""
    shutil.rmtree(world.path / "toys")
    for name in ("bench_toys.py", "recipe.py"):
        (world.path / name).unlink()
    (world.path / "test_plain.py").write_text("def test_plain():\n    pass\n", encoding="utf-8")
    return world


def run(world, *args: str) -> pytest.RunResult:
    return world.run(*args, recipe=None)


def without_times(lines: list[str]) -> list[str]:
    name = f"heta-{version('pytest-heta')}"
    return [
        re.sub(r" in [\d.]+s", "", line).replace(f", {name}", "").replace(f"{name}, ", "")
        for line in lines
    ]


# --- nothing is said or left ---------------------------------------------------


def test_output_is_that_of_a_session_without_the_plugin(plain):
    with_plugin = run(plain, "-v")
    without = run(plain, "-v", "-p", "no:heta")
    assert without_times(with_plugin.outlines) == without_times(without.outlines)
    assert with_plugin.errlines == without.errlines


def test_no_folder_is_made(plain, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    before = set(plain.path.rglob("*"))
    run(plain, "-p", "no:benchmark", "--basetemp=basetemp")
    after = {path for path in plain.path.rglob("*") if "__pycache__" not in path.parts}
    assert after - before <= {plain.path / "basetemp"}
    assert list(temporary.iterdir()) == []


def imported_modules(plain, *args: str) -> set[str]:
    completed = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pytest", *plain.quiet, *args],
        cwd=plain.path,
        env={**os.environ, "COVERAGE_PROCESS_START": "", "COVERAGE_PROCESS_CONFIG": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in completed.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def test_nothing_but_the_options_is_imported(plain):
    with_plugin = imported_modules(plain)
    without = imported_modules(plain, "-p", "no:heta")
    assert "pytest_heta.plugin" not in without
    assert with_plugin - without == {
        # The package and the plugin itself are not listed: pytest imports them by a function.
        "pytest_heta.plugin.hookspecs",
        "pytest_heta.plugin.option_table",
        "pytest_heta.plugin.options",
    }


# --- the one line --------------------------------------------------------------


def hints(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith("heta: ")]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (".",),
        ("bench_toys.py",),
        ("--collect-only",),
        ("-q",),
        ("-o", "python_files=bench_*.py"),
    ],
)
def test_suite_without_a_recipe_is_hinted_at(world, arguments):
    result = world.run(*arguments, recipe=None)
    assert hints(result) == [f"heta: bench_toys.py declares benchmarks; {HINT}"]
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert not (world.path / "report.json").exists()


def test_several_suites_give_one_line(world):
    for name in ("bench_b.py", "bench_c.py"):
        world.suite(name=name)
    (line,) = hints(world.run(recipe=None))
    assert line == f"heta: bench_b.py and 2 more declare benchmarks; {HINT}"


def test_hint_in_a_distributed_run(world):
    result = world.run("-n2", recipe=None)
    assert hints(result) == [f"heta: bench_toys.py declares benchmarks; {HINT}"]


def test_hint_names_the_file_from_the_current_folder(world, monkeypatch):
    (world.path / "sub").mkdir()
    monkeypatch.chdir(world.path / "sub")
    result = world.run("..", recipe=None)
    assert hints(result) == [f"heta: {Path('../bench_toys.py')} declares benchmarks; {HINT}"]


def test_suite_that_is_not_in_the_arguments_is_not_hinted_at(world):
    (world.path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    result = world.run("test_plain.py", recipe=None)
    result.assert_outcomes(passed=1)
    assert hints(result) == []


def test_other_bench_files_are_not_hinted_at(world):
    text = '"""Theta; no pytest_heta."""\n\ndef test_speed(benchmark):\n    benchmark(sorted, [])\n'
    (world.path / "bench_toys.py").write_text(text, encoding="utf-8")
    for arguments in [(), ("bench_toys.py",)]:
        assert hints(world.run(*arguments, recipe=None)) == []


def test_ordinary_tests_of_a_suite_run_without_a_recipe(world):
    world.suite(extra="def test_plain():\n    pass\n")
    result = world.run("bench_toys.py", recipe=None)
    result.assert_outcomes(passed=1)
    assert len(hints(result)) == 1


# --- activation ----------------------------------------------------------------


def test_ini_key_activates(world):
    world.ini("heta_recipe = recipe.py:recipe")
    world.run(recipe=None).assert_outcomes(passed=6)
    assert world.report()["metadata"]["complete"] is True


def test_empty_ini_key_does_not_activate(world):
    world.ini("heta_recipe =")
    result = world.run(recipe=None)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert len(hints(result)) == 1


def test_run_imports_only_what_it_needs(world):
    imported = imported_modules(world, "--heta-recipe=recipe.py:recipe")
    assert "pytest_heta.plugin.activation" in imported
    unused = {
        "numpy",  # for the built-in recipes
        "fsspec",  # for documents that have an address
        "xdist.dsession",  # for -n
        "pytest_heta.core.runner",  # for pytest_heta.run
        "pytest_heta.recipes.local",
    }
    assert unused & imported == set()


def test_run_without_a_dataset_folder_imports_no_adapter(world):
    suite = (world.path / "bench_toys.py").read_text(encoding="utf-8")
    assert "JsonlBenchmark" in suite
    (world.path / "bench_toys.py").write_text("import pytest_heta\n", encoding="utf-8")
    (world.path / "test_plain.py").write_text("def test_plain():\n    pass\n", encoding="utf-8")
    imported = imported_modules(world, "--heta-recipe=recipe.py:recipe")
    assert not [name for name in imported if name.startswith("pytest_heta.benchmarks")]


def test_garbage_is_collected_less_while_a_run_lasts(world):
    world.suite(
        extra="import gc\n\ndef test_plain():\n    assert gc.get_threshold()[0] == 20_000\n"
    )
    before = gc.get_threshold(), gc.get_freeze_count()
    world.run().assert_outcomes(passed=7)
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


def test_garbage_is_not_collected_when_the_session_wants_none(world):
    world.suite(extra="import gc\n\ndef test_plain():\n    assert gc.get_threshold()[0] == 0\n")
    (world.path / "conftest.py").write_text("import gc\n\ngc.set_threshold(0)\n")
    before = gc.get_threshold()
    try:
        world.run().assert_outcomes(passed=7)
    finally:
        gc.set_threshold(*before)


def test_unknown_marker_is_known(plain):
    plain.pytester.makepyfile(
        test_marked="import pytest\n\n@pytest.mark.heta(x=1)\ndef test_marked():\n    pass\n"
    )
    run(plain, "--strict-markers", "-m", "heta(x=1)").assert_outcomes(passed=1, deselected=1)
