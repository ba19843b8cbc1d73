"""The same inputs give the same report, in whatever order and process the cases run."""

import os
import subprocess
import sys
from importlib.util import find_spec
from textwrap import dedent

import pytest

UNITS = [
    {
        "case_id": f"{unit}{number}",
        "query": query,
        "evidence": [evidence],
        "labels": {"kind": unit, "tags": ["x", "y"]},
        "unit": unit,
        "documents": ["apple", "bike", "cloud", "drum"],
    }
    for unit in ("b", "a", "c")
    for number, (query, evidence) in enumerate(
        [("apple pie", "apple"), ("bike repair", "bike"), ("rain cloud", "cloud")]
    )
]
SHUFFLE = """
import random
import pytest

{hookimpl}
def pytest_collection_modifyitems(items):
    {before}
    random.Random({seed}).shuffle(items)
"""
HOOKS = {
    "plain": ("", "pass"),
    "first": ("@pytest.hookimpl(tryfirst=True)", "pass"),
    "last": ("@pytest.hookimpl(trylast=True)", "pass"),
    "wrapper": ("@pytest.hookimpl(wrapper=True)", "yield"),
}


@pytest.fixture
def units(world):
    world.dataset(UNITS)
    return world


@pytest.fixture
def expected(units, comparable):
    """What the report of an undisturbed run says."""
    units.run("--heta-gate=overlap.recall@1 >= 1").assert_outcomes(passed=19)
    return comparable(units.report())


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("hook", HOOKS)
def test_shuffled_items_are_regrouped(units, expected, builds, comparable, hook, seed):
    hookimpl, before = HOOKS[hook]
    text = SHUFFLE.format(hookimpl=hookimpl, before=before, seed=seed)
    (units.path / "conftest.py").write_text(dedent(text), encoding="utf-8")
    result = units.run("--heta-gate=overlap.recall@1 >= 1", "-v")
    result.assert_outcomes(passed=19)
    order = [line.split()[0] for line in result.outlines if "PASSED" in line and "::" in line]
    assert order[:18] != sorted(order[:18])
    assert builds() == {"a": 1, "b": 1, "c": 1}
    assert comparable(units.report()) == expected


@pytest.mark.skipif(find_spec("pytest_randomly") is None, reason="needs pytest-randomly")
@pytest.mark.parametrize("seed", [1, 2])
def test_pytest_randomly(units, expected, builds, comparable, seed):
    gate = "--heta-gate=overlap.recall@1 >= 1"
    result = units.run("-p", "randomly", f"--randomly-seed={seed}", gate)
    result.assert_outcomes(passed=19)
    result.stdout.fnmatch_lines([f"Using --randomly-seed={seed}"])
    assert builds() == {"a": 1, "b": 1, "c": 1}
    assert comparable(units.report()) == expected


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_hash_seed_does_not_matter(units, expected, comparable, seed):
    completed = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *units.quiet),
            *("--heta-recipe=recipe.py:recipe", "--heta-gate=overlap.recall@1 >= 1"),
        ],
        cwd=units.path,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == pytest.ExitCode.OK, completed.stdout
    assert comparable(units.report()) == expected


def test_random_hash_seed_in_a_distributed_run(units, expected, builds, comparable, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    units.run("-n2", "--heta-gate=overlap.recall@1 >= 1").assert_outcomes(passed=19)
    assert builds() == {"a": 1, "b": 1, "c": 1}
    assert comparable(units.report()) == expected


def test_order_of_the_report_is_that_of_the_dataset(units, expected):
    ids = [result["case_id"] for result in expected["case_results"]]
    assert ids == [
        f"{unit}{number}" for unit in "bac" for _ in ("overlap", "backwards") for number in range(3)
    ]


def test_run_twice(units, expected, comparable):
    units.run("--heta-gate=overlap.recall@1 >= 1").assert_outcomes(passed=19)
    assert comparable(units.report()) == expected
