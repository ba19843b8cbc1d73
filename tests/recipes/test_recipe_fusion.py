"""Reciprocal rank fusion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.recipes._fusion import fuse
from pytest_heta.recipes._ranking import Hit

RANKING = st.lists(st.integers(0, 15), unique=True, max_size=16)


def leg(*chunks):
    return [Hit(chunk, 1.0) for chunk in chunks]


def plain_rrf(legs, k):
    """The formula as it is printed: the sum over rankings of 1 / (k + rank)."""
    scores = {}
    for ranking in legs:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1 / (k + rank)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def test_the_fusion_of_two_rankings_by_hand():
    fused = fuse([leg(0, 1, 2), leg(1, 3)], range(4), 60)
    assert [hit.chunk for hit in fused] == [1, 0, 3, 2]
    assert [hit.score for hit in fused] == pytest.approx(
        [1 / 62 + 1 / 61, 1 / 61, 1 / 62, 1 / 63], abs=1e-15
    )


def test_equal_scores_come_in_document_order():
    assert [hit.chunk for hit in fuse([leg(5), leg(2)], range(6), 60)] == [2, 5]


def test_a_constant_of_0_is_applied():
    assert [hit.score for hit in fuse([leg(0, 1)], range(2), 0)] == [1.0, 0.5]


@given(RANKING, RANKING, st.sampled_from([0, 1, 60, 1000.5]))
def test_documents_of_one_chunk_are_fused_by_the_plain_formula(one, other, k):
    fused = fuse([leg(*one), leg(*other)], range(16), k)
    assert [tuple(hit) for hit in fused] == plain_rrf([one, other], k)


@given(RANKING)
def test_the_fusion_of_one_ranking_is_that_ranking(ranking):
    assert [hit.chunk for hit in fuse([leg(*ranking)], range(16), 60)] == ranking


def test_legs_agree_on_a_document_that_they_find_by_different_chunks():
    documents = [0, 0, 1, 2]
    fused = fuse([leg(2, 0), leg(3, 1)], documents, 60)
    assert documents[fused[0].chunk] == 0
    assert fused[0].score == pytest.approx(2 / 62)


def test_the_chunk_that_both_legs_find_stands_for_its_document():
    fused = fuse([leg(0, 1), leg(2, 1)], [0, 0, 0], 60)
    assert [hit.chunk for hit in fused] == [1, 0]
    fused = fuse([leg(0, 1), leg(1, 2)], [0, 0, 0], 60)
    assert [hit.chunk for hit in fused] == [1, 0]


@given(
    st.lists(st.integers(0, 4), min_size=10, max_size=10),
    st.permutations(range(10)),
    st.permutations(range(10)),
)
def test_no_chunk_is_named_twice(documents, one, other):
    fused = fuse([leg(*one), leg(*other)], documents, 60)
    assert sorted(hit.chunk for hit in fused) == list(range(10))
    assert [hit.score for hit in fused] == sorted((hit.score for hit in fused), reverse=True)
