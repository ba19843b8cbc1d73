"""BM25 against the formula."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.recipes._lexical import LexicalIndex

CHUNKS = [["cat", "dog"], ["cat", "cat", "fish"], ["bird"]]
TERMS = st.lists(st.sampled_from("abcdef"), max_size=8)


def bm25(chunks, query, k1=1.5, b=0.75):
    """Lucene's BM25 as it is printed; None for a chunk without a term of the query."""
    mean = sum(map(len, chunks)) / len(chunks)
    scores = []
    for chunk in chunks:
        counts = Counter(chunk)
        score = None
        for term in query:
            tf = counts[term]
            if tf:
                df = sum(term in other for other in chunks)
                idf = math.log(1 + (len(chunks) - df + 0.5) / (df + 0.5))
                share = idf * tf / (tf + k1 * (1 - b + b * len(chunk) / mean))
                score = (score or 0.0) + share
        scores.append(score)
    return scores


def hits(index, query, count=10, threshold=None):
    return [tuple(hit) for hit in index.search(query, threshold)(count).hits]


def test_scores_computed_by_hand():
    index = LexicalIndex.build(CHUNKS, k1=1.5, b=0.75)
    # idf = ln 1.6; mean length 2; 1 / (1.5 + 1) and 2 / (1.5 * (0.25 + 0.75 * 1.5) + 2)
    assert hits(index, ["cat"]) == [
        (1, pytest.approx(0.4700036 * 0.4923077, abs=1e-6)),
        (0, pytest.approx(0.4700036 * 0.4, abs=1e-6)),
    ]
    assert hits(index, ["bird"]) == [(2, pytest.approx(0.9808293 / 1.9375, abs=1e-6))]


@given(st.lists(TERMS, min_size=1, max_size=8), TERMS, st.integers(1, 10))
def test_chunks_are_ranked_by_the_formula(chunks, query, count):
    expected = {i: s for i, s in enumerate(bm25(chunks, query)) if s is not None}
    found = hits(LexicalIndex.build(chunks, k1=1.5, b=0.75), query, count)
    assert len(found) == min(count, len(expected))
    assert [score for _, score in found] == pytest.approx(
        sorted(expected.values(), reverse=True)[:count], abs=1e-5
    )
    for chunk, score in found:
        assert score == pytest.approx(expected[chunk], abs=1e-5)
        assert math.isfinite(score)


def test_equal_chunks_come_in_their_order():
    index = LexicalIndex.build([["x"], ["y", "a"], ["a", "y"], ["y", "a"]], k1=1.5, b=0.75)
    assert [chunk for chunk, _ in hits(index, ["a", "y"])] == [1, 2, 3]
    assert [chunk for chunk, _ in hits(index, ["a"], count=2)] == [1, 2]


def test_a_chunk_without_a_term_of_the_query_is_no_result():
    index = LexicalIndex.build(CHUNKS, k1=1.5, b=0.75)
    assert hits(index, ["dog", "unknown"]) == [(0, pytest.approx(0.3923317, abs=1e-6))]
    assert hits(index, ["unknown"]) == []
    assert hits(index, []) == []


def test_a_word_that_stands_twice_in_the_query_counts_twice():
    index = LexicalIndex.build(CHUNKS, k1=1.5, b=0.75)
    [(_, once)] = hits(index, ["dog"])
    [(_, twice)] = hits(index, ["dog", "dog"])
    assert twice == pytest.approx(2 * once)


def test_a_threshold_is_the_least_score_of_a_result():
    index = LexicalIndex.build(CHUNKS, k1=1.5, b=0.75)
    (_, high), (_, low) = hits(index, ["cat"])
    assert len(hits(index, ["cat"], threshold=0.0)) == 2
    assert len(hits(index, ["cat"], threshold=low)) == 2
    assert hits(index, ["cat"], threshold=high) == [(1, high)]
    assert hits(index, ["cat"], threshold=high + 0.01) == []


@pytest.mark.parametrize("chunks", [[], [[]], [[], []]])
def test_an_index_without_terms_finds_nothing(chunks):
    index = LexicalIndex.build(chunks, k1=1.5, b=0.75)
    assert index.term_count == 0
    assert hits(index, ["a"]) == []


def test_parameters_of_0_are_applied():
    index = LexicalIndex.build(CHUNKS, k1=0, b=0)
    assert [score for _, score in hits(index, ["cat"])] == pytest.approx([math.log(1.6)] * 2)
