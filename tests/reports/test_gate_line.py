"""A gate's line shows why it was decided so."""

import operator
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.reports import gate_line

COMPARE = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}


@pytest.mark.parametrize(
    ("value", "sign", "threshold", "status", "line"),
    [
        (0.81234, ">=", "0.75", "passed", "PASSED handbook: fts.ndcg@10 = 0.8123 >= 0.75 (n=62)"),
        (0.7966, ">=", "0.80", "failed", "FAILED handbook: fts.ndcg@10 = 0.7966 < 0.80 (n=62)"),
        (0.79999, ">=", "0.8", "failed", "FAILED handbook: fts.ndcg@10 = 0.79999 < 0.8 (n=62)"),
        (0.80001, ">", "0.8", "passed", "PASSED handbook: fts.ndcg@10 = 0.80001 > 0.8 (n=62)"),
        (0.5, ">", "0.5", "failed", "FAILED handbook: fts.ndcg@10 = 0.5000 <= 0.5 (n=62)"),
        (0.5, ">=", "0.5", "passed", "PASSED handbook: fts.ndcg@10 = 0.5000 >= 0.5 (n=62)"),
        (0.5, "<=", ".5", "passed", "PASSED handbook: fts.ndcg@10 = 0.5000 <= .5 (n=62)"),
        (3.0, "<=", "2", "failed", "FAILED handbook: fts.ndcg@10 = 3 > 2 (n=62)"),
        (0.0, ">", "0", "failed", "FAILED handbook: fts.ndcg@10 = 0 <= 0 (n=62)"),
        (0.0, "<=", "0", "passed", "PASSED handbook: fts.ndcg@10 = 0 <= 0 (n=62)"),
        (1e-7, "==", "0", "failed", "FAILED handbook: fts.ndcg@10 = 0.0000001 != 0 (n=62)"),
        (2e-9, ">", "0", "passed", "PASSED handbook: fts.ndcg@10 = 0.000000002 > 0 (n=62)"),
        (0.1234, ">=", "0.1234000001", "passed", "= 0.1234 >= 0.1234000001 (n=62)"),
        (0.1234, "==", "0.1234000001", "passed", "= 0.1234 == 0.1234000001 (n=62)"),
    ],
)
def test_a_decided_gate(make_gate, value, sign, threshold, status, line):
    gate = make_gate(value, sign, float(threshold), status, written=f"*.ndcg@10 {sign} {threshold}")
    assert gate_line(gate).endswith(line)


@pytest.mark.parametrize("text", ["0.8", "baseline", "", "0.9"])
def test_a_threshold_not_found_as_written_is_shown_as_it_is(make_gate, text):
    gate = make_gate(0.9, threshold=0.8, written=f"x >= {text}")
    assert "= 0.9000 >= 0.8 (n=62)" in gate_line(gate)
    gate = make_gate(0.9, threshold=0.123456789, written=f"x >= {text}")
    assert "= 0.9000 >= 0.123456789 (n=62)" in gate_line(gate)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"status": "skipped", "reason": "12 of 62 samples ran", "value": 0.9, "n": 12},
            "SKIPPED handbook: fts.ndcg@10 >= 0.75 (n=12): 12 of 62 samples ran",
        ),
        (
            {"status": "undecided", "reason": "no value: 62 unjudged", "value": None, "n": 0},
            "UNDECIDED handbook: fts.ndcg@10 >= 0.75 (n=0): no value: 62 unjudged",
        ),
        (
            {"status": "failed", "reason": "12 of 62 samples ran", "value": 0.9, "n": 12},
            "FAILED handbook: fts.ndcg@10 >= 0.75 (n=12): 12 of 62 samples ran",
        ),
        (
            {"status": "failed", "value": None, "n": 0},
            "FAILED handbook: fts.ndcg@10 >= 0.75 (n=0)",
        ),
        (
            {"status": "passed", "reason": "0.8000 >= 0.75, on 50 of 225 cases", "value": 0.8},
            "PASSED handbook: fts.ndcg@10 = 0.8000 >= 0.75 (n=62): on 50 of 225 cases",
        ),
        (
            {"status": "passed", "reason": "0.8000 >= 0.75", "value": 0.8},
            "PASSED handbook: fts.ndcg@10 = 0.8000 >= 0.75 (n=62)",
        ),
        (
            {"status": "failed", "reason": "1e-20 < 7.5e-01, on 2 of 3 cases", "value": 1e-20},
            "FAILED handbook: fts.ndcg@10 = 0.0000 < 0.75 (n=62): on 2 of 3 cases",
        ),
    ],
)
def test_the_reason_stands_behind(make_gate, fields, line):
    assert gate_line(make_gate(**fields)) == line


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("handbook@local:fts.ndcg@10 >= 0.75", "handbook@local: fts.ndcg@10"),
        ("handbook:fts.mean(ndcg@10){type=a:b} >= 0.75", "handbook: fts.mean(ndcg@10){type=a:b}"),
        ("nothing like a gate", "handbook: fts.ndcg@10"),
        ("fts.ndcg@10 >= 0.75", "handbook: fts.ndcg@10"),
    ],
)
def test_the_subject_is_that_of_the_resolved_gate(make_gate, text, subject):
    assert gate_line(make_gate(0.8, gate=text)).startswith(f"PASSED {subject} = 0.8000")


@given(
    value=st.floats(-10, 10),
    threshold=st.floats(-10, 10) | st.sampled_from([0.0, 0.5, 0.8, 1.0]),
    distance=st.sampled_from([None, 0, 1e-10, -1e-10, 2e-9, -2e-9, 1e-5, -1e-5, 1e-4]),
    sign=st.sampled_from([">=", ">", "<=", "<", "=="]),
)
def test_the_printed_numbers_compare_as_decided(make_gate, value, threshold, distance, sign):
    value = value if distance is None else threshold + distance
    held = {
        ">=": value >= threshold - 1e-9,
        ">": value > threshold + 1e-9,
        "<=": value <= threshold + 1e-9,
        "<": value < threshold - 1e-9,
        "==": abs(value - threshold) <= 1e-9,
    }[sign]
    line = gate_line(make_gate(value, sign, threshold, "passed" if held else "failed"))
    match = re.fullmatch(r"\w+ handbook: fts\.ndcg@10 = (\S+) (\S+) (\S+) \(n=62\)", line)
    assert match, line
    shown, relation, limit = float(match[1]), match[2], float(match[3])
    assert limit == threshold
    assert (relation == sign) == held
    assert shown == pytest.approx(value, abs=5.1e-5)
    near = "=" in relation and relation != "!=" and abs(shown - limit) <= 1.01e-9
    assert COMPARE[relation](shown, limit) or near


def test_a_gate_of_hostile_names_is_inert(make_gate):
    line = gate_line(make_gate(0.8, gate="h:\x1b[2J.m >= 0.75", reason="a\nb"))
    assert line == r"PASSED h: \x1b[2J.m = 0.8000 >= 0.75 (n=62): a b"
