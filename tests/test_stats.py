"""Means and percentiles."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_heta.stats import mean, percentile

finite = st.floats(-1e9, 1e9)


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        (range(1, 21), 95, 19.05),
        (range(20, 0, -1), 95, 19.05),
        (range(1, 21), 50, 10.5),
        (range(1, 21), 99, 19.81),
        ([7.0], 95, 7.0),
        ([1.0, 2.0], 95, 1.95),
        ([1.0, 2.0], 0, 1.0),
        ([1.0, 2.0], 100, 2.0),
        ([], 95, None),
    ],
)
def test_percentiles_interpolate_linearly(values, q, expected):
    assert percentile(values, q) == (None if expected is None else pytest.approx(expected))


@settings(deadline=None)
@given(values=st.lists(finite, min_size=1), q=st.floats(0, 100) | st.sampled_from([50, 95, 99]))
def test_percentiles_agree_with_numpy(values, q):
    # To the last bit, though it does without numpy.
    assert percentile(values, q) == float(np.percentile(values, q))


@settings(deadline=None)
@given(values=st.lists(finite, min_size=1), q=st.floats(0, 100))
def test_a_percentile_is_within_the_values(values, q):
    assert min(values) <= percentile(values, q) <= max(values)


def test_a_percentile_of_whole_numbers_is_a_float():
    assert type(percentile([3, 3], 50)) is float


def test_values_may_come_from_an_iterator():
    assert percentile(iter([3.0, 1.0]), 50) == 2.0
    assert mean(iter([3.0, 1.0])) == 2.0


@pytest.mark.parametrize("q", [-1, 100.1, math.nan])
def test_a_percentage_lies_between_0_and_100(q):
    with pytest.raises(ValueError, match=r"0\.\.100"):
        percentile([1.0], q)


def test_the_mean_of_nothing_is_none():
    assert mean([]) is None


@settings(deadline=None)
@given(values=st.lists(finite, min_size=1), data=st.data())
def test_the_mean_does_not_depend_on_the_order(values, data):
    assert mean(values) == mean(data.draw(st.permutations(values)))


def test_the_mean_does_not_lose_small_values():
    assert mean([1e16, 1.0, -1e16, 1.0]) == 0.5


def test_the_mean_of_huge_numbers_is_one():
    assert mean([1e308, 1.5e308]) == pytest.approx(1.25e308)
    assert mean([-1e308, 1.5e308, 1.5e308]) == pytest.approx(1e308 * (2 / 3))
