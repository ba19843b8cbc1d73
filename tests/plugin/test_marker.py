"""The marker ``heta``, as ``--markers`` and other plugins see it."""

import json
from textwrap import dedent

import pytest

CONFTEST = """
import json
from pathlib import Path

def pytest_collection_finish(session):
    marks = [
        [mark.args, mark.kwargs] for item in session.items for mark in item.iter_markers("heta")
    ]
    Path("marks.json").write_text(json.dumps(marks))
"""


@pytest.fixture
def marks(world):
    """Collect with the given arguments and return the marks of the items."""
    (world.path / "conftest.py").write_text(dedent(CONFTEST), encoding="utf-8")

    def collect(*args: str) -> list:
        assert world.run("--collect-only", "--strict-markers", *args).ret == pytest.ExitCode.OK
        return json.loads((world.path / "marks.json").read_text())

    return collect


def test_every_case_has_one_mark(marks):
    assert marks("-k", "pie or rain") == [
        [
            [],
            {
                "kind": kind,
                "benchmark": "toys",
                "recipe": "toy",
                "unit": "corpus",
                "mode": mode,
            },
        ]
        for mode in ("overlap", "backwards")
        for kind in ("food", "sky")
    ]


def test_ordinary_tests_have_none(world, marks):
    world.suite(extra="def test_plain():\n    pass\n")
    assert marks("-k", "test_plain") == []


@pytest.mark.parametrize("recipe", ["recipe.py:recipe", None])
def test_marker_is_registered(world, recipe):
    result = world.run("--markers", recipe=recipe)
    result.stdout.fnmatch_lines(["@pytest.mark.heta(benchmark, recipe, unit, mode, ?*labels): *"])
