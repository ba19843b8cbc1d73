"""One case in full, for a person who wants to know what went wrong."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.models import (
    BenchmarkEvidence,
    BenchmarkExpected,
    EvaluationCaseResult,
    EvaluationError,
    EvaluationScore,
    QueryResponse,
    QueryResult,
)
from pytest_heta.reports import case_details
from pytest_heta.reports._layout import display_width


def found(identifier, document=None, text="", score=None):
    source = {"document_id": document} if document else {}
    return QueryResult(id=identifier, text=text, score=score, source=source)


@pytest.fixture
def answered(make_score):
    return EvaluationCaseResult(
        case_id="q1",
        query="How do I install it on a machine that has no network, and which extras are needed?",
        query_mode="fts",
        scores=[
            make_score("ndcg@10", 0.63),
            make_score("answer_contains", False, False),
            make_score("recall@5", 1.0, True),
            make_score("verdict", "unclear"),
            make_score("map@100", skipped=True, reason="depth"),
            make_score("mrr@10", unjudged=True),
            make_score("judge", error={"type": "ValueError", "message": "not\nJSON"}),
            make_score("other", error="lost"),
            make_score("empty"),
            make_score("odd", error={"code": 7}),
        ],
        response=QueryResponse(
            mode="fts",
            answer="Use pip.",
            results=[
                found("readme#0", "readme", "Run pip install with the local extra. " * 9, 12.3456),
                found("install#7", "install", "Wheels\nneed no network.", 6.1),
                found("安装#1", "安装", "离线安装需要先下载所有的软件包"),
                found("other#1", "other"),
            ],
        ),
        latency_ms=1.5,
    )


EXPECTED = BenchmarkExpected(
    answers=["pip install --no-index", "Use pip"],
    evidence=[
        BenchmarkEvidence(reference_id="other", metadata={"relevance": 0}),
        BenchmarkEvidence(reference_id="install", metadata={"relevance": 2}),
        BenchmarkEvidence(locator={"document_id": "安装"}, text="软件包"),
    ],
    value={"sections": 3},
)


def test_eighty_columns(answered):
    assert (
        "\n".join(case_details(answered, EXPECTED, 80))
        == """\
query      How do I install it on a machine that has no network, and which
           extras are needed?
expected   answers: "pip install --no-index" | "Use pip"
           evidence: install (grade 2), {"document_id": "安装"} "软件包", other
           (grade 0)
           value: {'sections': 3}
answer     Use pip.
retrieved  4 results, 2 of them expected (*)
  rank     id         document    score  text
     1     readme#0   readme    12.3456  Run pip install with the local extra...
     2  *  install#7  install    6.1000  Wheels need no network.
     3  *  安装#1     安装            -  离线安装需要先下载所有的软件包
     4     other#1    other           -
scores     ndcg@10 = 0.6300
           answer_contains = no (not passed)
           recall@5 = 1.0000 (passed)
           verdict = unclear
           map@100: skipped: depth
           mrr@10: unjudged: unjudged
           judge: errored: [evaluator-failed] ValueError: not JSON
           other: errored: [evaluator-refused] lost
           empty: errored: [score-missing] no value
           odd: errored: [evaluator-failed]
latency    1.50 ms"""
    )


def test_texts_go_below_when_there_is_no_room_beside(answered):
    lines = case_details(answered, EXPECTED, 50)
    row = lines.index("     1     readme#0   readme    12.3456")
    assert lines[row + 1] == "        Run pip install with the local extra. R..."
    assert all(display_width(line) <= 50 for line in lines)


def test_without_expectations_nothing_is_marked(answered):
    lines = case_details(answered, None, 80)
    assert "retrieved  4 results" in lines
    assert not any(line.startswith("expected") for line in lines)
    assert not any("*" in line for line in lines)


def test_a_failed_sample(make_result):
    error = EvaluationError(message="no route\x1b[2J", error_type="query")
    lines = case_details(make_result("q", error=error), BenchmarkExpected(), 80)
    assert lines == [
        "query      What is q?",
        "expected   nothing",
        r"error      [query-failed] case q: no route\x1b[2J",
    ]


def test_nothing_retrieved(make_result):
    result = make_result("q", response=QueryResponse(mode="fts"))
    assert "retrieved  nothing" in case_details(result, None, 80)


def test_documents_that_are_the_results_have_one_column(make_result):
    response = QueryResponse(mode="fts", results=[found("a", score=1.0), found("b")])
    lines = case_details(make_result("q", response=response), EXPECTED, 80)
    assert "  rank    id   score  text" in lines
    assert "     1    a   1.0000" in lines


def test_many_judgments_are_counted_not_dropped(make_result):
    evidence = [BenchmarkEvidence(reference_id=f"d{number}") for number in range(25)]
    lines = case_details(make_result("q"), BenchmarkExpected(evidence=evidence), 80)
    assert lines[-1].endswith("d9, ... and 15 more")


def test_of_a_long_list_the_top_and_the_expected_results_are_shown(make_result):
    results = [found(f"d{number}") for number in range(1, 101)]
    result = make_result("q", response=QueryResponse(mode="fts", results=results))
    expected = BenchmarkExpected(evidence=[BenchmarkEvidence(reference_id="d57")])
    lines = case_details(result, expected, 80)
    assert "retrieved  100 results, 1 of them expected (*)" in lines
    assert [line.split()[0] for line in lines[4:]] == [*map(str, range(1, 11)), "57", "..."]
    assert lines[-1] == "  ... and 89 more"
    assert case_details(result, None, 80)[-1] == "  ... and 90 more"


@pytest.mark.parametrize("grade", ["high", math.nan, [1], 10**400], ids=str)
def test_a_grade_that_is_no_number_does_no_harm(make_result, grade):
    evidence = [BenchmarkEvidence(reference_id="d1", metadata={"relevance": grade})]
    response = QueryResponse(mode="fts", results=[found("d1")])
    lines = case_details(
        make_result("q", response=response), BenchmarkExpected(evidence=evidence), 80
    )
    assert "retrieved  1 result, 0 of them expected (*)" in lines


NASTY = st.text(st.characters(exclude_categories=()), max_size=30)


@given(NASTY, NASTY, NASTY, st.integers(60, 120))
def test_details_are_inert(query, text, answer, width):
    result = EvaluationCaseResult(
        case_id="q",
        query=query,
        query_mode="fts",
        scores=[EvaluationScore(name="label", value=text)],
        response=QueryResponse(
            mode="fts", answer=answer, results=[QueryResult(id=text or "x", text=text)]
        ),
    )
    expected = BenchmarkExpected(answers=[answer], value=query)
    for line in case_details(result, expected, width):
        assert line.isprintable() or not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in line)
        line.encode()


@pytest.mark.parametrize("width", [0, 1, 12, 40])
def test_a_terminal_that_is_too_narrow_does_no_harm(answered, width):
    text = "\n".join(case_details(answered, EXPECTED, width))
    assert "install#7" in text


def test_what_went_before_is_told(make_result):
    attempt = {"session": 1, "error_type": "query", "message": "\x1b[31mdown", "latency_ms": None}
    history = {"reused_response": True, "attempts": 2, "earlier_attempts": [attempt]}
    lines = case_details(make_result("q", metadata=history), None, 80)
    assert lines[-2:] == [
        "before     response of an earlier session or worker, scored now",
        "           session 1: [query-failed] \\x1b[31mdown",
    ]
    lines = case_details(make_result("q", metadata={**history, "reused": True}), None, 80)
    assert lines[-2] == "before     result of an earlier session"


def test_nothing_went_before(answered):
    assert not any(line.startswith("before") for line in case_details(answered, None, 80))
