"""Users' values as plain data, texts and file names."""

import dataclasses
import enum
import json
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.core._plain import (
    MAX_NODES,
    canonical_json,
    exception_text,
    plain,
    plain_text,
    portable_name,
    safe_str,
)
from pytest_heta.models import BenchmarkManifest


class Colour(enum.Enum):
    RED = "red"


class Size(enum.StrEnum):
    BIG = "big"


class Unprintable:
    def __str__(self):
        raise ZeroDivisionError

    __repr__ = __str__


class Hostile:
    @property
    def tolist(self):
        raise ZeroDivisionError


class UnprintableError(Exception):
    def __str__(self):
        raise ZeroDivisionError


@dataclasses.dataclass
class Pair:
    left: object
    right: object


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (0.5, 0.5),
        ("text", "text"),
        (float("nan"), None),
        (float("-inf"), None),
        (np.float64(0.25), 0.25),
        (np.float32(0.25), 0.25),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.float64("nan"), None),
        (np.array([[1.0, 2.0]]), [[1.0, 2.0]]),
        (np.array(1.5), 1.5),
        (Decimal("0.1"), 0.1),
        (Decimal("NaN"), None),
        (Decimal("sNaN"), None),
        (Fraction(1, 4), 0.25),
        (10**400, "<integer of 1329 bits>"),
        (Fraction(10**400), None),
        (PurePosixPath("a/b"), "a/b"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour.RED, "red"),
        (Size.BIG, "big"),
        (b"abc", "<3 bytes>"),
        (bytearray(2), "<2 bytes>"),
        ({"b", "a"}, ["a", "b"]),
        (frozenset({2, 1}), [1, 2]),
        ((1, [2, {"x": (3,)}]), [1, [2, {"x": [3]}]]),
        ({1: "a", None: "b", Colour.RED: "c"}, {"1": "a", "None": "b", "Colour.RED": "c"}),
        (Pair(1, Pair(2, {3})), {"left": 1, "right": {"left": 2, "right": [3]}}),
        (int, "<class 'int'>"),
        (Pair, f"<class '{__name__}.Pair'>"),
        ("\ud800x", "\ufffdx"),
        ({"k\udfff": "\ud800"}, {"k\ufffd": "\ufffd"}),
        ({"a": 1, "b": None, "c": "x"}, {"a": 1, "b": None, "c": "x"}),
        ({"a": 10**400}, {"a": "<integer of 1329 bits>"}),
        ({"a": float("inf")}, {"a": None}),
        (Unprintable(), "<unprintable Unprintable>"),
        (Hostile(), "<unprintable Hostile>"),
        ({Unprintable(): 1}, {"<unprintable Unprintable>": 1}),
        (object, "<class 'object'>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_becomes_plain(value, expected):
    converted = plain(value)
    assert converted == expected
    assert type(converted) is type(expected)
    json.dumps(converted, allow_nan=False).encode()


def test_a_pydantic_model_becomes_a_mapping():
    assert plain(BenchmarkManifest(name="b"))["name"] == "b"


def test_a_copy_is_returned():
    source = {"a": "x"}
    converted = plain(source)
    source["a"] = "changed"
    assert converted == {"a": "x"}


def test_a_set_of_what_has_no_order_is_converted():
    assert plain({Unprintable()}) == "<unprintable set>"


class TestBounds:
    def test_cycles_are_cut_where_they_close(self):
        cycle: dict[str, object] = {"a": 1}
        cycle["self"] = cycle
        ring: list[object] = []
        ring.append([ring])
        assert plain(cycle) == {"a": 1, "self": "…"}
        assert plain(ring) == [["…"]]

    def test_the_same_value_twice_is_no_cycle(self):
        shared = ["x"]
        assert plain([shared, shared]) == [["x"], ["x"]]

    def test_what_is_very_deep_is_cut(self):
        deep: object = "bottom"
        for _ in range(100_000):
            deep = [deep]
        assert json.dumps(plain(deep)).count("[") < 100

    def test_what_is_very_wide_is_cut(self):
        for wide in (range(10**6), {}.fromkeys(range(10**6))):
            converted = plain(list(wide) if isinstance(wide, range) else wide)
            assert len(converted) <= MAX_NODES + 1
            assert list(converted)[-1] == "…"

    def test_what_is_very_wide_leaves_room_for_what_comes_after_it(self):
        converted = plain({"first": list(range(10**6)), "second": [[0] * 10**6], "last": 1})
        assert converted["last"] == 1
        assert converted["first"][-1] == converted["second"][0][-1] == "…"

    def test_a_large_array_is_described(self):
        assert plain(np.zeros(100_000)) == "<ndarray of 100000 values>"

    def test_texts_count_by_their_length(self):
        converted = plain(["x" * 10_000] * 1_000)
        assert len(converted) < 300
        assert converted[-1] == "…"

    def test_a_long_text_is_cut(self):
        assert plain("x" * 30, max_text=10) == "x" * 10 + "…"


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None, exclude_categories=()))
    | st.binary()
    | st.decimals()
)


@given(
    st.recursive(
        leaves,
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
        max_leaves=20,
    )
)
def test_whatever_comes_out_is_strict_json(value):
    converted = plain(value)
    text = json.dumps(converted, allow_nan=False, ensure_ascii=False).encode()
    assert json.loads(text) == converted
    assert plain(converted) == converted


class TestTexts:
    def test_text_is_exactly_a_string(self):
        assert type(plain_text(Size.BIG)) is str
        assert plain_text("abc", 2) == "ab…"
        assert plain_text("ab", 2) == "ab"
        assert plain_text("naïve \ud83d") == "naïve \ufffd"

    def test_a_str_that_raises_has_a_stand_in(self):
        assert safe_str(Unprintable()) == "<unprintable Unprintable>"

    @pytest.mark.parametrize(
        ("error", "text"),
        [
            (KeyError("x"), "KeyError: 'x'"),
            (ValueError(), "ValueError"),
            (ValueError("two\n  lines"), "ValueError: two lines"),
            (UnprintableError(), "UnprintableError: <unprintable UnprintableError>"),
            (ValueError("\ud800"), "ValueError: \ufffd"),
            (ValueError("x" * 5_000), f"ValueError: {'x' * 1_000}…"),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_an_exception_is_one_line(self, error, text):
        assert exception_text(error) == text

    def test_canonical_json_does_not_depend_on_the_order_of_keys(self):
        assert canonical_json({"b": "é", "a": 1}) == b'{"a":1,"b":"\\u00e9"}'
        with pytest.raises(ValueError, match="JSON compliant"):
            canonical_json(float("nan"))


RESERVED = [
    "con",
    "PRN",
    "a:b|c",
    "../x",
    "trailing.",
    " ",
    "",
    "x" * 5_000,
    "-rf",
    "咖啡",
    "\ud800",
]


class TestPortableName:
    @pytest.mark.parametrize("text", RESERVED, ids=range(len(RESERVED)))
    def test_it_suits_every_file_system(self, text):
        name = portable_name(text)
        assert 0 < len(name) <= 100
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
        assert not name.startswith("-")
        assert name == portable_name(text)

    def test_it_reads_like_the_text(self):
        assert portable_name("unit 7").startswith("unit_7-")

    def test_names_differ_where_ignoring_case_does_not_matter(self):
        texts = [*RESERVED, "Con", "CON", "a:b/c", "a_b_c", "a_b|c"]
        assert len({portable_name(text).casefold() for text in texts}) == len(texts)

    def test_what_it_stands_for_tells_equal_texts_apart(self):
        assert portable_name("a-b-c", "a-b", "c") != portable_name("a-b-c", "a", "b-c")
