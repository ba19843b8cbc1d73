"""``--heta-baseline``: differences to an earlier report."""

import json

import pytest


@pytest.fixture
def baseline(world):
    """A report in which backwards.ndcg@10 was 0.5 and overlap.ndcg@10 was not there."""
    world.run("--heta-report=json:before.json")
    path = world.path / "before.json"
    file = json.loads(path.read_text(encoding="utf-8"))
    summary = file["reports"][0]["score_summary"]
    summary["backwards.ndcg@10"] = 0.5
    del summary["overlap.ndcg@10"]
    path.write_text(json.dumps(file), encoding="utf-8")
    return path


def test_differences_stand_beside_the_means(world, baseline):
    result = world.run("--heta-baseline=before.json")
    result.assert_outcomes(passed=6)
    result.stdout.re_match_lines(
        [
            r"overlap +1\.0000 \(\+0\.0000\) +1\.0000 \(new\) .*",
            r"backwards +0\.0000 \(\+0\.0000\) +0\.4307 \(-0\.0693\) .*",
        ]
    )


def test_there_are_no_differences_by_default(world):
    world.run().stdout.no_fnmatch_line("*0.0000)*")


def test_a_report_of_another_recipe_gives_no_differences(world, baseline):
    world.extend_recipe("Recipe.name = 'other'")
    result = world.run("--heta-baseline=before.json")
    result.stdout.no_fnmatch_line("*0.0000)*")
    result.stdout.fnmatch_lines(
        ["warning: [[]baseline-incomplete] the baseline has no report toys-test@other"]
    )


def test_the_ini_key_names_the_file_from_its_own_folder(world, baseline, monkeypatch):
    world.ini("heta_baseline = before.json")
    folder = world.path / "below"
    folder.mkdir()
    monkeypatch.chdir(folder)
    result = world.run("..", recipe="../recipe.py:recipe")
    result.stdout.fnmatch_lines(["*(-0.0693)*"])


def test_the_command_line_wins_over_the_ini_file(world, baseline):
    world.ini("heta_baseline = missing.json")
    world.run("--heta-baseline=before.json").stdout.fnmatch_lines(["*(-0.0693)*"])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "there is no such report file"),
        ("", "the report file is empty"),
        ('{"schema_version": "1", "reports": [', "the report file is cut off before its end"),
        ('{"a": 1}', "this is JSON, but not a report file"),
        ('{"schema_version": "99", "reports": []}', "newer than version 1"),
    ],
)
def test_a_file_that_is_no_report_is_refused(world, count_builds, content, problem):
    if content is not None:
        (world.path / "bad.json").write_text(content, encoding="utf-8")
    error = world.usage_error("--heta-baseline=bad.json")
    assert error.startswith("[report-invalid] --heta-baseline, bad.json: ")
    assert problem in error
    assert count_builds() == 0


def test_a_wrong_file_of_the_ini_file_is_refused_by_its_key(world):
    world.ini("heta_baseline = missing.json")
    assert world.usage_error().startswith("[report-invalid] heta_baseline, ")
