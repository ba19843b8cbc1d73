"""Exact cosine similarity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.recipes._embedding import unit_vectors
from pytest_heta.recipes._vectors import VectorIndex


def index_of(rows):
    rows = np.array(rows, np.float32)
    return VectorIndex(unit_vectors(rows, len(rows), rows.shape[1], model="m"))


def hits(index, query, count=10, threshold=None):
    [row] = unit_vectors([query], 1, len(query), model="m")
    return [tuple(hit) for hit in index.search(row, threshold)(count).hits]


def test_cosines_computed_by_hand():
    found = hits(index_of([[3, 4], [0, 2], [-1, 0], [5, 0]]), [1, 0])
    assert [chunk for chunk, _ in found] == [3, 0, 1, 2]
    assert [score for _, score in found] == pytest.approx([1, 0.6, 0, -1], abs=1e-6)


@pytest.mark.parametrize("dimension", [3, 64, 384])
@pytest.mark.parametrize("count", [1, 7, 50, 1000])
def test_the_ranking_is_that_of_cosines_in_float64(dimension, count):
    rng = np.random.default_rng(dimension)
    rows = rng.standard_normal((300, dimension))
    query = rng.standard_normal(dimension)
    exact = rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)
    found = hits(index_of(rows), query, count)
    assert [chunk for chunk, _ in found] == np.argsort(-exact).tolist()[:count]
    assert [score for _, score in found] == pytest.approx(np.sort(exact)[::-1][:count], abs=1e-6)


@given(st.integers(2, 60), st.integers(1, 60), st.integers(1, 65))
def test_equal_vectors_have_equal_scores_and_come_in_their_order(rows, dimension, count):
    # A product of matrices rounds a row by where it stands.
    row = np.random.default_rng(rows).standard_normal(dimension)
    found = hits(index_of([row] * rows), np.ones(dimension), count)
    assert [chunk for chunk, _ in found] == list(range(min(rows, count)))
    assert len({score for _, score in found}) == 1


def test_a_threshold_is_the_least_cosine_of_a_result():
    index = index_of([[1, 0], [0, 1], [-1, 0]])
    assert len(hits(index, [1, 0], threshold=-1.0)) == 3
    assert [chunk for chunk, _ in hits(index, [1, 0], threshold=0.0)] == [0, 1]
    assert [chunk for chunk, _ in hits(index, [1, 0], threshold=1.0)] == [0]
    assert [chunk for chunk, _ in hits(index, [1, 0], count=2, threshold=0.5)] == [0]


def test_scores_never_leave_the_range_of_a_cosine():
    row = np.full(7, 1 / 3)
    assert all(-1 <= score <= 1 for _, score in hits(index_of([row, -row] * 9), row, 18))


def test_an_index_without_vectors_finds_nothing():
    index = VectorIndex(np.zeros((0, 2), np.float32))
    assert (len(index), index.dimension) == (0, 2)
    assert hits(index, [1, 0]) == []
