"""Results in the process that writes the report: on disk, parsed when somebody looks."""

import json
import subprocess

import pytest

READS = """
import json
from pathlib import Path

from pytest_heta.core.journal import ResultJournal
from pytest_heta.models import EvaluationCaseResult

read = []
whole = ResultJournal.read
ResultJournal.read = lambda self, entry: (read.append(entry.length), whole(self, entry))[1]
parse = EvaluationCaseResult.model_validate_json.__func__

@classmethod
def counted(cls, text, **options):
    read.append("parsed")
    return parse(cls, text, **options)

EvaluationCaseResult.model_validate_json = counted

def pytest_sessionfinish(session):
    Path("read.json").write_text(json.dumps(read), encoding="utf-8")
"""

HOOK = """
def pytest_heta_case_completed(config, result):
    read.append(result.case_id)
"""

KEEPING = """
from pathlib import Path

kept = []

def pytest_heta_report(config, report):
    kept.append(report)

def pytest_sessionfinish(session):
    (report,) = kept
    cases = [result.case_id for result in report.case_results]
    assert cases == [result.case_id for result in report.case_results]
    Path("kept.txt").write_text(" ".join(cases), encoding="utf-8")
"""


@pytest.fixture
def reads(world):
    """Run with a conftest file that notes what is read of the journal before the report is."""

    def run(conftest: str, *args: str) -> list:
        (world.path / "conftest.py").write_text(conftest, encoding="utf-8")
        world.run("--heta-mode=overlap", *args).assert_outcomes(passed=3)
        return json.loads((world.path / "read.json").read_text(encoding="utf-8"))

    return run


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
def test_nothing_is_parsed_that_nobody_looks_at(world, reads, workers):
    read = reads(READS, *workers)
    # The report file is written in the hook that notes, before it or after it.
    assert "parsed" not in read
    assert [result["case_id"] for result in world.report()["case_results"]] == [
        "pie",
        "repair",
        "rain",
    ]


def test_a_hook_is_given_each_result_when_it_has_come(reads):
    read = reads(READS + HOOK)
    assert [entry for entry in read if isinstance(entry, str)] == [
        *("parsed", "pie"),
        *("parsed", "repair"),
        *("parsed", "rain"),
    ]


def test_results_of_a_report_can_be_read_until_the_session_ends(world):
    (world.path / "conftest.py").write_text(KEEPING, encoding="utf-8")
    world.run("--heta-mode=overlap", "-W", "error").assert_outcomes(passed=3)
    assert (world.path / "kept.txt").read_text(encoding="utf-8") == "pie repair rain"


def test_the_journal_is_gone_after_the_run(world, monkeypatch, tmp_path_factory):
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    world.run().assert_outcomes(passed=6)
    assert not [path for path in folder.rglob("*") if "results" in path.name]


def test_git_is_asked_once_for_several_reports(world, monkeypatch):
    asked = []
    real = subprocess.run

    def run(command, *args, **kwargs):
        if "--no-optional-locks" in command:
            asked.append(command[2])
        return real(command, *args, **kwargs)

    monkeypatch.setattr(subprocess, "run", run)
    source = (world.path / "recipe.py").read_text(encoding="utf-8")
    world.recipe(source.replace('name = "toy"', 'name = "other"'), name="other.py")
    world.run("--heta-recipe=other.py:recipe", "--heta-limit=1")
    assert len(world.reports()) == 2
    assert asked == ["rev-parse"]
