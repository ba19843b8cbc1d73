"""The reference of gates says what the code does."""

import re
from pathlib import Path

import pytest

from pytest_heta.core._gate_text import (
    AGGREGATES,
    METRIC_FUNCTIONS,
    OPERATORS,
    UNBUILT_FUNCTIONS,
)
from pytest_heta.core.gates import parse_gate, resolve_gates
from pytest_heta.errors import GateInvalidError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "gates.md"


@pytest.fixture(scope="module")
def page():
    if not PAGE.is_file():
        pytest.skip("the documentation is not here: the tests run against an installed package")
    return PAGE.read_text(encoding="utf-8")


def rows(page, heading):
    """Return the rows of the tables below a heading, as lists of cells."""
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
    return [[cell.strip() for cell in line.split(" | ")] for line in lines]


def test_its_examples_are_gates(page):
    (block,) = re.findall(r"```gates\n(.*?)```", page, re.DOTALL)
    gates = [parse_gate(line) for line in block.splitlines()]
    assert {gate.operator for gate in gates} == set(OPERATORS)


def test_it_lists_every_aggregate(page):
    named = {
        name for row in rows(page, "Aggregates") for name in re.findall(r"`([a-z0-9_]+)`", row[0])
    }
    assert named == {*AGGREGATES, *METRIC_FUNCTIONS, *UNBUILT_FUNCTIONS}


def test_its_thresholds_are_thresholds(page):
    written = [
        text for row in rows(page, "Thresholds") for text in re.findall(r"`([^`]+)`", row[0])
    ]
    assert len(written) >= 10
    for text in written:
        parse_gate(f"m.x >= {text}")


def test_its_errors_are_the_errors(page, fakes, tmp_path):
    plan = fakes.plan(
        tmp_path,
        "q1",
        recipe=fakes.Recipe(modes=("hybrid_search",)),
        evaluators=("ndcg@10", "recall@5"),
    )
    listed = [row for row in rows(page, "Errors") if "--heta-top-k" not in row[0]]
    assert len(listed) >= 6
    for written, says in listed[1:]:
        with pytest.raises(GateInvalidError) as raised:
            resolve_gates([parse_gate(written.strip("`"), "command line")], [plan])
        assert says in str(raised.value)
