"""ini ``heta_data_dir``: where suites find the public collections."""

import os
from pathlib import Path

import pytest

SUITE = """
import os
from pathlib import Path
from pytest_heta import JsonlBenchmark

toys = JsonlBenchmark(Path(os.environ["HETA_DATA_DIR"]) / "toys", name="toys")
"""


@pytest.fixture(autouse=True)
def suite_that_looks(world, monkeypatch):
    monkeypatch.delenv("HETA_DATA_DIR", raising=False)
    (world.path / "bench_toys.py").write_text(SUITE, encoding="utf-8")


def test_suites_see_the_folder_relative_to_the_ini_file(world, monkeypatch):
    (world.path / "data").mkdir()
    (world.path / "toys").rename(world.path / "data" / "toys")
    world.ini("heta_data_dir = data")
    folder = world.path / "below"
    folder.mkdir()
    monkeypatch.chdir(folder)
    world.run("..", recipe="../recipe.py:recipe").assert_outcomes(passed=6)


def test_the_environment_comes_first(world, monkeypatch):
    monkeypatch.setenv("HETA_DATA_DIR", str(world.path))
    world.ini("heta_data_dir = nowhere")
    world.run().assert_outcomes(passed=6)
    assert os.environ["HETA_DATA_DIR"] == str(world.path)


def test_the_environment_is_left_as_it_was(world):
    world.ini("heta_data_dir = .")
    world.run().assert_outcomes(passed=6)
    assert "HETA_DATA_DIR" not in os.environ


def test_an_empty_variable_counts_as_none_and_stays(world, monkeypatch):
    monkeypatch.setenv("HETA_DATA_DIR", "")
    world.ini("heta_data_dir = .")
    world.run().assert_outcomes(passed=6)
    assert os.environ["HETA_DATA_DIR"] == ""


def test_the_home_folder_may_be_written_as_a_tilde(world, monkeypatch):
    monkeypatch.setenv("HOME", str(world.path))
    monkeypatch.setattr(Path, "home", lambda: world.path)
    world.ini("heta_data_dir = ~")
    world.run().assert_outcomes(passed=6)


def test_it_is_no_option_of_the_command_line(world):
    result = world.run("--heta-data-dir=x")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
