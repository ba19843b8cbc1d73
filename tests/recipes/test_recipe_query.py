"""What a knowledge base answers."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_heta.errors import ModeUnknownError, QueryError
from pytest_heta.protocols import KnowledgeBaseProtocol
from pytest_heta.recipes._options import FULL_TEXT, HYBRID, MODES, VECTOR

DOCUMENTS = {
    "pie": "apple pie with cinnamon",
    "bike": "a mountain bike for steep trails",
    "tea": "green tea and apple cake",
    "trail": "steep trails lead up the mountain",
    "empty": "",
}


@pytest.fixture
def base(build):
    return build(DOCUMENTS)


@pytest.fixture
def shared(build):
    return build(DOCUMENTS, embedding="wordllama")


def test_it_is_a_knowledge_base_with_three_modes(base):
    assert isinstance(base, KnowledgeBaseProtocol)
    assert base.available_queries == (FULL_TEXT, VECTOR, HYBRID)
    assert base.name == "demo"


def test_full_text_search_finds_what_holds_a_word_of_the_query(base, found):
    response = base.query("mountain trails", mode=FULL_TEXT)
    assert response.mode == FULL_TEXT
    assert set(found(response)) == {"bike", "trail"}
    assert found(base.query("cinnamon", mode=FULL_TEXT)) == ["pie"]


def test_vector_search_ranks_everything(base, found):
    response = base.query("apple pie with cinnamon", mode=VECTOR)
    assert found(response)[0] == "pie"
    assert set(found(response)) == {"pie", "bike", "tea", "trail"}
    assert response.results[0].score == pytest.approx(1, abs=1e-6)


def test_hybrid_search_fuses_both_and_says_what_each_found(base, found):
    response = base.query("steep mountain", mode=HYBRID)
    first = response.results[0]
    assert set(found(response)[:2]) == {"bike", "trail"}
    ranks = [leg["rank"] for leg in first.metadata.values()]
    assert set(first.metadata) == {FULL_TEXT, VECTOR}
    assert first.score == pytest.approx(sum(1 / (60 + rank) for rank in ranks), abs=1e-15)


def test_rrf_k_changes_the_scores(base):
    response = base.query("steep mountain", mode=HYBRID, options={"rrf_k": 0})
    ranks = [leg["rank"] for leg in response.results[0].metadata.values()]
    assert response.results[0].score == pytest.approx(sum(1 / rank for rank in ranks))


def test_chinese_is_found_by_a_part_of_a_sentence(build, found):
    base = build({"pie": "苹果派做法", "bike": "山地车维修", "tea": "绿茶的泡法"})
    for query, first in (
        ("维修", "bike"),
        ("苹果", "pie"),
        ("茶", "tea"),
        ("山地车怎么维修？", "bike"),
    ):
        response = base.query(query, mode=FULL_TEXT)
        assert found(response)[0] == first
        assert response.metadata == {}
    assert found(base.query("维修", mode=FULL_TEXT)) == ["bike"]


@pytest.mark.parametrize(
    ("documents", "query", "first"),
    [
        ({"a": "ร้านอาหารไทย", "b": "ซ่อมจักรยาน"}, "จักรยาน", "b"),
        ({"a": "자전거 수리점", "b": "사과 파이"}, "수리", "a"),
        ({"a": "りんごのパイ", "b": "自転車を修理する"}, "修理", "b"),
        ({"a": "Яблочный пирог", "b": "РЕМОНТ велосипеда"}, "ремонт", "b"),
        ({"a": "αβγ", "b": "ΜΗΛΟΠΙΤΑ"}, "μηλοπιτα", "b"),
    ],
)
def test_no_script_is_without_tokens(build, found, documents, query, first):
    response = build(documents, modes=[FULL_TEXT]).query(query, mode=FULL_TEXT)
    assert found(response)[0] == first
    assert response.metadata == {}


@pytest.mark.parametrize("query", ["", "  ", "?!", "🚲", "the of and"])
def test_a_query_without_tokens_finds_nothing_and_says_so(base, query):
    response = base.query(query, mode=FULL_TEXT)
    assert response.results == ()
    assert response.metadata["warnings"] == ["query has no searchable tokens"]


def test_the_vector_leg_answers_a_query_without_tokens(base, found):
    response = base.query("the of and", mode=HYBRID)
    assert len(response.results) == 4
    assert response.metadata["warnings"] == ["query has no searchable tokens"]


@pytest.mark.parametrize("query", ["", " \n"])
def test_a_blank_query_has_no_vector(base, query):
    response = base.query(query, mode=VECTOR)
    assert response.results == ()
    assert response.metadata["warnings"] == ["query has no vector"]
    response = base.query(query, mode=HYBRID)
    assert response.results == ()
    assert len(response.metadata["warnings"]) == 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "documents",
    [
        {},
        {"a": ""},
        {"a": "", "b": " \n"},
        {"a": "one document"},
        {"a": "?!"},
        {"a": "", "b": "one"},
    ],
)
def test_small_corpora_give_finite_scores_and_no_more_than_there_is(build, mode, documents):
    response = build(documents).query("one", mode=mode, top_k=10)
    assert len(response.results) <= sum(bool(text.strip()) for text in documents.values())
    assert all(math.isfinite(result.score) for result in response.results)
    if not any(text.strip() for text in documents.values()):
        assert response.metadata["warnings"] == ["the knowledge base has no text"]


@pytest.mark.parametrize("mode", MODES)
def test_asking_deeper_than_the_corpus_returns_all(build, found, mode):
    base = build({"d1": "red apple", "d2": "apple juice"})
    response = base.query("apple", mode=mode, top_k=10)
    assert sorted(found(response)) == ["d1", "d2"]
    assert all(math.isfinite(result.score) for result in response.results)


@pytest.mark.parametrize("mode", MODES)
def test_equal_documents_come_in_document_order(build, found, mode):
    base = build(dict.fromkeys(("z", "m", "a", "k", "b"), "the same words"))
    assert found(base.query("same words", mode=mode)) == ["z", "m", "a", "k", "b"]
    assert found(base.query("same words", mode=mode, top_k=2)) == ["z", "m"]


def many_chunks():
    filler = "\n\n".join(f"apple paragraph number {i} of many" for i in range(40))
    return {"long": filler, **{f"d{i}": f"an apple and {i} words" for i in range(12)}}


@pytest.mark.parametrize("mode", MODES)
def test_as_many_documents_as_results_however_long_one_document_is(build, found, mode):
    base = build(many_chunks(), chunk_size=40)
    for top_k in (1, 5, 13):
        documents = found(base.query("apple paragraph", mode=mode, top_k=top_k))
        assert len(documents) == len(set(documents)) == top_k


@pytest.mark.parametrize("mode", MODES)
def test_further_chunks_fill_up_what_documents_leave(build, found, mode):
    base = build(many_chunks(), chunk_size=40)
    documents = found(base.query("apple paragraph", mode=mode, top_k=20))
    assert len(set(documents[:13])) == 13
    assert documents[13:] == ["long"] * 7
    only = build({"long": many_chunks()["long"]}, chunk_size=40)
    response = only.query("paragraph number 7", mode=mode, top_k=10)
    assert len({result.id for result in response.results}) == 10
    assert "number 7 " in response.results[0].text


@pytest.mark.parametrize("mode", [FULL_TEXT, VECTOR])
def test_more_chunks_of_a_document_keep_their_place_when_asked(build, found, mode):
    base = build(many_chunks(), chunk_size=40)
    options = {"chunks_per_document": 3}
    documents = found(base.query("apple paragraph", mode=mode, top_k=10, options=options))
    assert documents.count("long") == 3
    documents = found(base.query("apple paragraph", mode=mode, options={"chunks_per_document": 99}))
    assert documents == ["long"] * 10


@pytest.mark.parametrize("mode", MODES)
def test_a_smaller_depth_is_the_start_of_a_larger(build, mode):
    base = build(many_chunks(), chunk_size=40)
    deep = base.query("apple paragraph words", mode=mode, top_k=60).results
    for top_k in (1, 2, 7, 20):
        assert base.query("apple paragraph words", mode=mode, top_k=top_k).results == deep[:top_k]


def test_a_threshold_holds_for_the_own_score_of_the_mode(base):
    for mode in (FULL_TEXT, VECTOR):
        scores = [r.score for r in base.query("apple pie", mode=mode).results]
        assert scores == sorted(scores, reverse=True)
        kept = base.query("apple pie", mode=mode, options={"score_threshold": scores[0]}).results
        assert [r.score for r in kept] == [s for s in scores if s >= scores[0]]
        kept = base.query("apple pie", mode=mode, options={"score_threshold": 0}).results
        assert [r.score for r in kept] == [s for s in scores if s >= 0]


def test_a_threshold_holds_for_each_leg_before_fusion(base, found):
    only_terms = {"score_threshold": {VECTOR: 1.0}}
    response = base.query("apple pie", mode=HYBRID, options=only_terms)
    assert all(set(result.metadata) == {FULL_TEXT} for result in response.results)
    only_vectors = {"score_threshold": {FULL_TEXT: 1e6, VECTOR: 0.1}}
    response = base.query("apple pie", mode=HYBRID, options=only_vectors)
    assert all(set(result.metadata) == {VECTOR} for result in response.results)
    assert all(result.metadata[VECTOR]["score"] >= 0.1 for result in response.results)
    neither = {"score_threshold": {FULL_TEXT: 1e6, VECTOR: 1.0}}
    assert base.query("apple pie", mode=HYBRID, options=neither).results == ()


@pytest.mark.parametrize("mode", MODES)
def test_a_reranker_orders_the_candidates_anew(build, found, length_reranker, mode):
    reranker = length_reranker()
    base = build(DOCUMENTS, reranker=reranker)
    plain = base.query("apple mountain", mode=mode, options={"rerank": False})
    assert reranker.given == []
    response = base.query("apple mountain", mode=mode)
    assert [result.score for result in response.results] == [33, 32, 24, 23]
    assert found(response) == ["trail", "bike", "tea", "pie"]
    before = {result.id: result.score for result in plain.results}
    for result in response.results:
        assert result.metadata["retrieval_score"] == pytest.approx(before[result.id])


def test_candidates_come_from_below_the_depth_and_others_stay_behind(build, found, length_reranker):
    documents = {f"d{i}": "apple " * (9 - i) + "x" * 20 * i for i in range(9)}
    base = build(documents, reranker=length_reranker())
    plain = found(base.query("apple", mode=VECTOR, options={"rerank": False}))
    assert found(base.query("apple", mode=VECTOR, top_k=1)) == ["d8"]
    options = {"rerank_candidates": 3}
    reranked = found(base.query("apple", mode=VECTOR, options=options))
    assert reranked == [*sorted(plain[:3], key=lambda d: -len(documents[d])), *plain[3:]]
    assert found(base.query("apple", mode=VECTOR, top_k=2, options=options)) == reranked[:2]


def test_the_reranker_reads_the_title(build, length_reranker):
    reranker = length_reranker()
    build({"a": ("flies", {"title": "Plane"})}, reranker=reranker).query("plane", mode=FULL_TEXT)
    assert reranker.given == ["Plane\nflies"]


def test_equal_scores_of_the_reranker_keep_the_order(build, found, length_reranker):
    base = build({name: f"apple {name}" for name in "czb"}, reranker=length_reranker())
    assert found(base.query("apple", mode=FULL_TEXT)) == ["c", "z", "b"]


def test_the_reranker_is_not_asked_about_nothing(build, length_reranker):
    reranker = length_reranker()
    assert build(DOCUMENTS, reranker=reranker).query("zzz", mode=FULL_TEXT).results == ()
    assert reranker.given == []


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ([1.0], "returned 1 scores for 2 texts"),
        ([1.0, float("nan")], "returned nan, not a finite number"),
        ([1.0, "x"], "returned 'x', not a finite number"),
    ],
)
def test_a_reranker_that_returns_nonsense_is_a_query_error(build, scores, problem):
    class Broken:
        name = "broken-1"

        def rerank(self, query, texts):
            return scores

    base = build(DOCUMENTS, reranker=Broken())
    with pytest.raises(QueryError, match=f"reranker 'broken-1' {problem}"):
        base.query("apple", mode=FULL_TEXT)


def test_an_embedding_that_returns_nonsense_is_a_query_error(build, word_embedding):
    class Broken(word_embedding):
        def embed_queries(self, texts):
            return [[1.0]]

    with pytest.raises(
        QueryError, match=r"embedding 'words-1' returned an array of shape \(1, 1\)"
    ):
        build(DOCUMENTS, embedding=Broken()).query("apple", mode=VECTOR)


def test_a_mode_that_does_not_exist_is_an_error_that_names_those_that_do(base):
    with pytest.raises(ModeUnknownError, match="did you mean 'vector_search'"):
        base.query("x", mode="vector")


def test_a_mode_that_was_not_built_is_an_error(build):
    base = build(DOCUMENTS, modes=[FULL_TEXT])
    with pytest.raises(ModeUnknownError, match="known: full_text_search"):
        base.query("x", mode=HYBRID)


@pytest.mark.parametrize("top_k", [0, -1, True, 1.5, "3", None])
def test_a_depth_is_an_integer_of_1_or_more(base, top_k):
    with pytest.raises(
        QueryError, match=r"top_k = .* is not allowed; it is an integer of 1 or more"
    ):
        base.query("x", mode=FULL_TEXT, top_k=top_k)


def test_a_query_is_a_string(base):
    with pytest.raises(QueryError, match="a query is a string, not NoneType"):
        base.query(None, mode=FULL_TEXT)


def test_an_unknown_option_is_an_error(base):
    with pytest.raises(QueryError, match="no query option 'topk'"):
        base.query("x", mode=FULL_TEXT, options={"topk": 3})


def test_options_of_the_recipe_hold_where_the_query_has_none(build, found):
    base = build(DOCUMENTS, default_options={"score_threshold": 1.0})
    assert found(base.query("apple", mode=VECTOR)) == []
    assert found(base.query("apple", mode=VECTOR, options={"score_threshold": 0.1})) != []


def test_the_trace_tells_the_steps_when_asked(base):
    assert base.query("apple pie", mode=HYBRID).trace == ()
    steps = base.query("Apple pies", mode=HYBRID, trace=True).trace
    assert [step["step"] for step in steps] == ["analysis", FULL_TEXT, VECTOR, "fusion"]
    assert steps[0]["terms"] == ["appl", "pie"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # it does not change
@given(text=st.text(max_size=30), mode=st.sampled_from(MODES))
def test_any_query_is_answered(shared, text, mode):
    response = shared.query(text, mode=mode)
    assert all(math.isfinite(result.score) for result in response.results)


@pytest.mark.parametrize("mode", MODES)
def test_a_query_with_half_a_character_is_answered(shared, mode):
    assert shared.query("apple \ud83d pie", mode=mode).results


def test_threads_get_the_same_answers(base):
    asked = [
        (f"{word} mountain apple", mode) for word in ("steep", "tea", "") for mode in MODES
    ] * 20
    expected = [base.query(text, mode=mode) for text, mode in asked]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda one: base.query(one[0], mode=one[1]), asked))
    assert answers == expected
