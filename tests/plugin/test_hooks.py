"""The hooks that conftest files and other plugins may implement."""

import json
from textwrap import dedent

import pytest

CONFTEST = """
import json
import os
from pathlib import Path

from pytest_heta.models import EvaluationCaseResult, EvaluationReport

def note(*words):
    with Path("hooks.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(words) + "\\n")

def pytest_heta_case_completed(config, result):
    assert type(result) is EvaluationCaseResult
    note("case", hasattr(config, "workerinput"), result.query_mode, result.case_id,
         result.error and result.error.error_type)

def pytest_heta_report(config, report):
    assert type(report) is EvaluationReport
    note("report", hasattr(config, "workerinput"), report.report_key, len(report.case_results),
         [gate.status for gate in report.gates], Path("report.json").exists())
"""


@pytest.fixture
def calls(world):
    """Run with the given arguments and return what the hooks were called with."""
    (world.path / "conftest.py").write_text(dedent(CONFTEST), encoding="utf-8")

    def run(*args: str) -> list[list]:
        world.run(*args)
        text = (world.path / "hooks.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    return run


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
def test_hooks_are_called_on_the_controller(world, calls, workers):
    source = (world.path / "recipe.py").read_text(encoding="utf-8")
    world.recipe(source.replace("words = ", "assert text != 'bike repair'; words = "))
    gate = "--heta-gate=overlap.recall@1 >= 0.9"
    *cases, report = calls("--heta-mode=overlap", gate, *workers)
    assert cases == [
        ["case", False, "overlap", "pie", None],
        ["case", False, "overlap", "repair", "query"],
        ["case", False, "overlap", "rain", None],
    ]
    # Gates are decided by then, and the file is not written yet.
    assert report == ["report", False, "toys-test@toy", 3, ["failed"], False]


def test_report_hook_is_called_for_each_report(world, calls):
    source = (world.path / "recipe.py").read_text(encoding="utf-8")
    world.recipe(source.replace('name = "toy"', 'name = "other"'), name="other.py")
    found = calls("--heta-recipe=other.py:recipe", "--heta-limit=1", "--heta-mode=overlap")
    assert [call[0] for call in found] == ["case", "case", "report", "report"]
    assert [call[2] for call in found[2:]] == ["toys-test@toy", "toys-test@other"]


def test_case_hook_is_called_for_a_failed_build(world, calls):
    source = (world.path / "recipe.py").read_text(encoding="utf-8")
    world.recipe(source.replace("builds = os", "1 / 0; builds = os"))
    found = calls("--heta-limit=1")
    assert [call[3:] for call in found[:-1]] == [["pie", "build"], ["pie", "build"]]


def test_hooks_are_known_without_a_recipe(world):
    (world.path / "conftest.py").write_text(dedent(CONFTEST), encoding="utf-8")
    (world.path / "test_plain.py").write_text("def test_plain():\n    pass\n", encoding="utf-8")
    world.run("test_plain.py", recipe=None).assert_outcomes(passed=1)
    assert not (world.path / "hooks.jsonl").exists()


KEPT = """
import json
from pathlib import Path

from pytest_heta.plugin.execution import PAYLOAD, RESULT

def pytest_sessionfinish(session):
    reports = session.config.pluginmanager.get_plugin("terminalreporter").stats["passed"]
    kept = [item.name for item in session.items if RESULT in item.stash or PAYLOAD in item.stash]
    kept += [report.nodeid for report in reports if hasattr(report, "heta_result")]
    Path("kept.json").write_text(json.dumps([len(reports), kept]), encoding="utf-8")
"""


def test_items_and_reports_do_not_keep_results(world):
    (world.path / "conftest.py").write_text(KEPT, encoding="utf-8")
    world.run().assert_outcomes(passed=6)
    assert json.loads((world.path / "kept.json").read_text(encoding="utf-8")) == [6, []]
