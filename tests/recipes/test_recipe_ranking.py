"""Order, ties and the spread over documents."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.recipes._ranking import Hit, Ranked, best, rank_chunks, spread

SCORES = st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 7.5]), max_size=40)


@given(SCORES, st.integers(1, 50))
def test_best_is_a_stable_sort(scores, count):
    expected = sorted(range(len(scores)), key=lambda i: -scores[i])[:count]
    assert best(np.array(scores, np.float32), count).tolist() == expected


def test_ties_at_the_cut_are_decided_by_position():
    assert best(np.array([1, 2, 1, 2, 1], np.float32), 3).tolist() == [1, 3, 0]


def hits_of(chunks):
    return [Hit(chunk, 100.0 - place) for place, chunk in enumerate(chunks)]


def test_further_chunks_of_a_document_stand_behind_the_first_of_others():
    documents = [0, 0, 0, 1, 2]
    hits = hits_of([0, 1, 3, 2, 4])
    assert [hit.chunk for hit in spread(hits, documents, 1)] == [0, 3, 4, 1, 2]
    assert [hit.chunk for hit in spread(hits, documents, 2)] == [0, 1, 3, 4, 2]
    assert spread(hits, documents, 3) == hits


def test_as_many_documents_as_there_are_however_many_chunks_stand_before():
    documents = [0] * 5000 + [1, 2]
    ranking = hits_of(range(5002))
    asked = []

    def best_of(count):
        asked.append(count)
        return Ranked(ranking[:count], exhausted=count >= len(ranking))

    chosen = rank_chunks(best_of, 5, documents, 1)
    assert [hit.chunk for hit in chosen] == [0, 5000, 5001, 1, 2]
    assert asked == sorted(asked)


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 12), st.integers(1, 3))
def test_any_depth_is_the_start_of_the_whole_ranking(documents, count, per_document):
    ranking = hits_of(range(len(documents)))

    def best_of(depth):
        return Ranked(ranking[:depth], exhausted=depth >= len(ranking))

    whole = spread(ranking, documents, per_document)
    assert rank_chunks(best_of, count, documents, per_document) == whole[:count]
