"""Whatever a report holds becomes JSON that a strict parser accepts."""

import json
import math
import os
import subprocess
import sys
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.models import EvaluationScore
from pytest_heta.models._strict_json import strict_json

NASTY_TEXT = st.text(st.characters(exclude_categories=()))
NASTY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | NASTY_TEXT
    | st.binary()
    | st.sets(NASTY_TEXT | st.integers())
    | st.builds(np.float64, st.floats())
    | st.decimals()
    | st.datetimes(),
    lambda inner: st.lists(inner) | st.dictionaries(NASTY_TEXT, inner) | st.tuples(inner, inner),
    max_leaves=20,
)


def parsed(value):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(strict_json(value).decode("utf-8"), parse_constant=refuse)


@given(NASTY)
def test_every_value_is_strict_json_on_one_line(value):
    parsed({"value": value})
    assert b"\n" not in strict_json({"value": value})


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(PLAIN)
def test_plain_values_come_back_as_they_were(value):
    assert parsed(value) == value


@given(PLAIN)
def test_a_surrogate_beside_them_changes_no_other_value(value):
    assert parsed({"a": "\ud800", "b": value}) == {"a": "\\ud800", "b": value}


class Colour(Enum):
    RED = "red"


class Thing:
    pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, None),
        ([math.inf, -math.inf], [None, None]),
        ({"a": {"b": math.nan, "c": 1}}, {"a": {"b": None, "c": 1}}),
        (np.float64("nan"), None),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.array([1.5, math.nan]), [1.5, None]),
        ("\ud800é", "\\ud800é"),
        ({"\udc80": 1}, {"\\udc80": 1}),
        (b"ok", "ok"),
        (b"\xff", "\\xff"),
        ({b"\xff": 1}, {"\\xff": 1}),
        ({"b", "a", "c"}, ["a", "b", "c"]),
        (frozenset({3, 1, 2}), [1, 2, 3]),
        ([("x", {2, 1})], [["x", [1, 2]]]),
        (MappingProxyType({"s": {2, 1}}), {"s": [1, 2]}),
        (MappingProxyType({"s": 1}), {"s": 1}),
        (OrderedDict(a=1), {"a": 1}),
        ({1: "int", None: "none"}, {"1": "int", "None": "none"}),
        ({frozenset({"b", "a"}): {1}, (1, "x"): 2}, {'["a","b"]': [1], '[1,"x"]': 2}),
        (Path("a") / "b", str(Path("a") / "b")),
        (Decimal("1.50"), "1.50"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        (Colour.RED, "red"),
        (10**30, 10**30),
    ],
)
def test_values_that_json_has_no_word_for(value, expected):
    assert parsed(value) == expected


def test_models_are_objects_also_when_they_hold_what_json_lacks():
    score = EvaluationScore(name="\ud800", value=math.nan, metadata={"seen": {"b", "a"}})
    assert parsed([score]) == [
        {"name": "\\ud800", "value": None, "passed": None, "metadata": {"seen": ["a", "b"]}}
    ]


def test_unknown_objects_are_described_without_their_address():
    assert parsed([Thing()]) == parsed([Thing()])
    assert "Thing" in parsed(Thing())
    assert parsed(test_plain_values_come_back_as_they_were.__class__) == "<class 'function'>"


def test_a_value_that_contains_itself_is_refused():
    inner = {}
    inner["again"] = inner
    with pytest.raises(ValueError, match="contains itself"):
        strict_json(inner)


def test_sets_have_the_same_order_whatever_the_hash_seed():
    code = (
        "from pytest_heta.models._strict_json import strict_json;"
        "print(strict_json({'a': set('qwertyuiop')}).decode())"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            encoding="utf-8",
        ).stdout.strip()
        for seed in ("0", "1", "2")
    }
    assert texts == {'{"a":["e","i","o","p","q","r","t","u","w","y"]}'}
