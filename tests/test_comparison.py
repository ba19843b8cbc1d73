"""A value and its threshold are compared, and printed, by one rule."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.comparison import holds, number_text, relation_of, value_text

OPERATORS = [">=", ">", "<=", "<", "=="]
OPPOSITE = {">=": "<", ">": "<=", "<=": ">", "<": ">=", "==": "!="}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(
    ("distance", "signs"),
    [
        (0, {">=", "<=", "=="}),
        (5e-10, {">=", "<=", "=="}),
        (-5e-10, {">=", "<=", "=="}),
        (2e-9, {">=", ">"}),
        (-2e-9, {"<=", "<"}),
    ],
)
def test_values_within_a_billionth_are_equal(operator, distance, signs):
    assert holds(0.8 + distance, operator, 0.8) is (operator in signs)


@pytest.mark.parametrize("operator", OPERATORS)
def test_nothing_holds_of_what_is_no_number(operator):
    assert not holds(math.nan, operator, 0.8)


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_does_not_hold_is_said_by_the_opposite(operator):
    assert relation_of(operator, held=True) == operator
    assert relation_of(operator, held=False) == OPPOSITE[operator]


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.0, "1"), (-3.0, "-3"), (0.8, "0.8"), (1e-5, "1e-05"), (1e20, "1e+20"), (0.0, "0")],
)
def test_numbers_are_as_short_as_they_can_be(number, text):
    assert number_text(number) == text


@pytest.mark.parametrize(
    ("value", "relation", "threshold", "text"),
    [
        (0.8123456, ">=", 0.8, "0.8123"),
        (0.79996, "<", 0.8, "0.79996"),
        (0.8 - 5e-10, ">=", 0.8, "0.8000"),
        (2e-9, ">", 0.0, "0.000000002"),
        (math.nextafter(1e-9, 1), ">", 0.0, "1.0000000000000003e-09"),
        (1.0, ">=", 1.0, "1"),
        (3e20, ">", 1e20, "3e+20"),
        (math.inf, ">", 1.0, "inf"),
        (0.9, "<", 0.8, None),
        (0.8, "!=", 0.8, None),
        (2.0, "<", 1.0, None),
    ],
)
def test_a_value_has_the_digits_that_show_how_it_compares(value, relation, threshold, text):
    assert value_text(value, relation, threshold) == text


@given(st.floats(-10, 10), st.floats(-10, 10), st.sampled_from(OPERATORS))
def test_what_is_printed_compares_as_the_value_does(value, threshold, operator):
    held = holds(value, operator, threshold)
    relation = relation_of(operator, held=held)
    text = value_text(value, relation, threshold)
    assert holds(float(text), operator, threshold) is held
    assert float(text) == pytest.approx(value, abs=5.1e-5)
    assert value_text(value, relation_of(operator, held=not held), threshold) is None
