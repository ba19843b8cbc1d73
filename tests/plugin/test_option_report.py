"""``--heta-report``: which report files are written, and where."""

import json

import pytest


def written(world, path):
    return json.loads((world.path / path).read_text(encoding="utf-8"))["schema_version"] == "1"


def test_a_json_report_is_written_by_default(world):
    result = world.run()
    assert written(world, "report.json")
    result.stdout.fnmatch_lines(["heta report: report.json"])


def test_the_option_names_the_file_and_folders_are_made(world):
    result = world.run("--heta-report=json:out/deep/mine.json")
    assert written(world, "out/deep/mine.json")
    assert not (world.path / "report.json").exists()
    result.stdout.fnmatch_lines(["heta report: out/deep/mine.json"])


def test_an_absolute_path_is_taken_as_it_is(world, tmp_path):
    target = tmp_path / "elsewhere" / "mine.json"
    world.run(f"--heta-report=json:{target}")
    assert target.exists()


def test_the_home_folder_may_be_written_as_a_tilde(world, monkeypatch):
    monkeypatch.setenv("HOME", str(world.path / "home"))
    monkeypatch.setenv("USERPROFILE", str(world.path / "home"))
    world.run("--heta-report=json:~/out.json").assert_outcomes(passed=6)
    assert len(world.reports("home/out.json")) == 1


def test_the_option_repeats(world):
    world.run("--heta-report=json:a.json", "--heta-report=json:b.json")
    assert written(world, "a.json")
    assert written(world, "b.json")


def test_the_ini_key_names_files_and_the_command_line_wins(world):
    world.ini("heta_report =", "    json:a.json", "    json:b.json")
    world.run("--heta-limit=1")
    assert written(world, "a.json")
    assert written(world, "b.json")
    world.run("--heta-limit=1", "--heta-report=json:c.json")
    assert written(world, "c.json")
    assert len(world.report("a.json")["case_results"]) == 2


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("xml:report.xml", "'xml' is not a report format"),
        ("report.json", "'report.json' names no format"),
        ("json:", "'json:' names no file"),
        ("json:out/", "'out/' is a folder"),
        ("html:report.html", "report format 'html' is not available yet"),
        ("", "'' names no format"),
    ],
)
def test_a_wrong_report_is_refused(world, count_builds, value, problem):
    error = world.usage_error(f"--heta-report={value}")
    assert error == (
        f"[configuration-invalid] --heta-report, report {value!r}: {problem}; "
        "write FORMAT:PATH, such as json:report.json; formats: json"
    )
    assert count_builds() == 0


def test_a_wrong_report_of_the_ini_file_is_refused_by_its_key(world):
    world.ini("heta_report = report.json")
    assert world.usage_error().startswith("[configuration-invalid] heta_report, report ")


@pytest.mark.parametrize("path", ["recipe.py/report.json", "toys", "x" * 300 + ".json"])
def test_a_file_that_cannot_be_written_is_refused_before_the_first_build(world, count_builds, path):
    error = world.usage_error(f"--heta-report=json:{path}")
    assert error.startswith("[report-invalid] --heta-report, ")
    assert path in error
    assert count_builds() == 0


def test_checking_leaves_an_older_report_as_it_is(world):
    (world.path / "report.json").write_text("older", encoding="utf-8")
    world.usage_error("--heta-gate=overlap.recal@1 >= 0.5")
    assert (world.path / "report.json").read_text(encoding="utf-8") == "older"
    assert [path.name for path in world.path.glob(".*heta*")] == []
