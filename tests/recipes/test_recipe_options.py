"""Query options: what is allowed, and what is said about the rest."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.errors import QueryError
from pytest_heta.recipes._options import (
    FULL_TEXT,
    HYBRID,
    MODES,
    VECTOR,
    QueryOptions,
    parse_options,
)

NAMES = ("rrf_k", "score_threshold", "rerank", "rerank_candidates", "chunks_per_document")


def parsed(mode=HYBRID, *, has_reranker=True, **options):
    return parse_options(options, mode=mode, has_reranker=has_reranker)


def test_without_options_the_defaults_hold():
    assert parse_options({}, mode=HYBRID, has_reranker=False) == QueryOptions(
        rrf_k=60, thresholds={}, rerank=False, rerank_candidates=50, chunks_per_document=1
    )


def test_a_configured_reranker_is_used_unless_told_otherwise():
    assert parsed().rerank is True
    assert parsed(rerank=False).rerank is False
    assert parsed(has_reranker=False).rerank is False


@pytest.mark.parametrize("name", NAMES)
def test_none_is_not_given(name):
    assert parsed(**{name: None}) == parsed()


@pytest.mark.parametrize("value", [0, 0.0, 60, 1.5, np.float32(2), np.int64(7), Fraction(1, 2)])
def test_numbers_of_all_kinds_are_numbers(value):
    assert parsed(rrf_k=value).rrf_k == float(value)
    assert type(parsed(rrf_k=value).rrf_k) is float


def test_a_threshold_of_0_is_a_threshold():
    assert parsed(FULL_TEXT, score_threshold=0).thresholds == {FULL_TEXT: 0.0}
    assert parsed(VECTOR, score_threshold=0).thresholds == {VECTOR: 0.0}
    assert parsed(HYBRID, score_threshold=0).thresholds == {FULL_TEXT: 0.0, VECTOR: 0.0}


def test_a_threshold_may_be_given_for_each_index():
    given_thresholds = {FULL_TEXT: 7.5, VECTOR: -0.25}
    for mode in MODES:
        assert parsed(mode, score_threshold=given_thresholds).thresholds == given_thresholds
    assert parsed(score_threshold={VECTOR: None}).thresholds == {}


@pytest.mark.parametrize(
    ("options", "mode", "message"),
    [
        ({"rrfk": 1}, HYBRID, "no query option 'rrfk'; did you mean 'rrf_k'? Known: rrf_k, score"),
        ({"zzz": 1}, HYBRID, "no query option 'zzz'; known: rrf_k, score_threshold, rerank, rer"),
        ({7: 1}, HYBRID, "no query option 7; known: rrf_k"),
        ({"rrf_k": -1}, HYBRID, "rrf_k = -1 is not allowed; it is a number of 0 or more"),
        ({"rrf_k": "60"}, HYBRID, "rrf_k = '60' is not allowed"),
        ({"rrf_k": True}, HYBRID, "rrf_k = True is not allowed"),
        ({"rrf_k": float("nan")}, HYBRID, "rrf_k = nan is not allowed"),
        ({"rrf_k": float("inf")}, HYBRID, "rrf_k = inf is not allowed"),
        ({"rrf_k": 10**400}, HYBRID, "is not allowed; it is a number of 0 or more"),
        ({"score_threshold": -0.1}, FULL_TEXT, "a number of 0 or more for full_text_search"),
        ({"score_threshold": 1.5}, VECTOR, "a number of -1 to 1 for vector_search"),
        ({"score_threshold": 5}, HYBRID, "a number of -1 to 1 for vector_search, or a mapping of"),
        ({"score_threshold": "0.5"}, VECTOR, "score_threshold = '0.5' is not allowed"),
        ({"score_threshold": False}, VECTOR, "score_threshold = False is not allowed"),
        ({"score_threshold": [0.5]}, VECTOR, "score_threshold = [0.5] is not allowed"),
        ({"score_threshold": {"vector": 1}}, HYBRID, "no index 'vector'; did you mean 'vector_s"),
        ({"score_threshold": {VECTOR: 2}}, FULL_TEXT, "a number of -1 to 1 for vector_search"),
        ({"rerank": 1}, HYBRID, "rerank = 1 is not allowed; it is true or false"),
        ({"rerank": "yes"}, HYBRID, "rerank = 'yes' is not allowed"),
        ({"rerank_candidates": 0}, HYBRID, "rerank_candidates = 0 is not allowed; it is an int"),
        ({"rerank_candidates": 2.0}, HYBRID, "rerank_candidates = 2.0 is not allowed"),
        ({"rerank_candidates": True}, HYBRID, "rerank_candidates = True is not allowed"),
        ({"chunks_per_document": -3}, HYBRID, "chunks_per_document = -3 is not allowed"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_one_line_that_says_what_is_right(options, mode, message):
    with pytest.raises(QueryError) as caught:
        parse_options(options, mode=mode, has_reranker=True)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_reranking_without_a_reranker_is_an_error():
    with pytest.raises(
        QueryError, match=r"no reranker is configured; .*LocalRecipe\(reranker=\.\.\.\)"
    ):
        parsed(has_reranker=False, rerank=True)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from([*MODES, "x"]), inner, max_size=2)
    ),
    max_leaves=3,
)


@given(
    st.dictionaries(st.sampled_from([*NAMES, "other"]), ANYTHING, max_size=3),
    st.sampled_from(MODES),
)
def test_any_value_is_taken_or_refused(options, mode):
    try:
        result = parse_options(options, mode=mode, has_reranker=True)
    except QueryError:
        return
    assert result.rrf_k >= 0
    assert result.rerank_candidates >= 1
    assert all(value >= -1 for value in result.thresholds.values())
