"""Answers that contain or are an expected answer."""

import asyncio

import pytest

from pytest_heta.evaluators import AnswerContains, AnswerExactMatch
from pytest_heta.models import BenchmarkCase, QueryResponse


def score(evaluator, expected, answer, *texts):
    case = BenchmarkCase(case_id="c", query="q", expected={"answers": expected})
    results = [{"id": f"r{rank}", "text": text} for rank, text in enumerate(texts)]
    response = QueryResponse(mode="m", results=results, answer=answer)
    return asyncio.run(evaluator.evaluate(case=case, response=response))


@pytest.mark.parametrize(
    ("expected", "answer", "value"),
    [
        (["Paris"], "It is PARIS.", True),
        (["Paris", "Rome"], "in rome", True),
        (["New York"], "new\n  york", True),
        (["no"], "I know nothing", False),
        (["42"], "142", False),
        (["维修"], "山地车维修手册", True),
        (["Paris"], "", False),
        (["", "  "], "anything", None),
        (["", "Paris"], "anything", False),
        ([], "anything", None),
    ],
)
def test_an_answer_contains_an_expected_one(expected, answer, value):
    given_score = score(AnswerContains(), expected, answer)
    assert (given_score.name, given_score.value) == ("answer_contains", value)
    assert given_score.passed is value
    assert given_score.status == ("skipped" if value is None else "scored")


def test_without_an_answer_the_results_are_searched():
    found = score(AnswerContains(), ["Paris"], None, "nothing here", "it is Paris")
    assert (found.value, found.passed, found.metadata) == (True, True, {"from": "results"})
    missed = score(AnswerContains(), ["Paris"], None, "nothing here")
    assert (missed.value, missed.passed, missed.metadata) == (False, False, {"from": "results"})
    assert score(AnswerContains(), ["Paris"], None).value is False


def test_an_expected_answer_is_not_put_together_from_two_results():
    assert (
        score(AnswerContains(), ["New York"], None, "something new", "York is old").value is False
    )


def test_an_answer_is_all_that_is_searched_when_there_is_one():
    given_score = score(AnswerContains(), ["Paris"], "I do not know", "it is Paris")
    assert (given_score.value, given_score.metadata) == (False, {})
    empty = score(AnswerContains(), ["Paris"], "", "it is Paris")
    assert (empty.value, empty.metadata) == (False, {})


@pytest.mark.parametrize(
    ("expected", "answer", "value"),
    [
        (["Paris"], "paris.", True),
        (["The Beatles"], "beatles", True),
        (["Paris", "Rome"], "Rome!", True),
        (["Paris"], "It is Paris", False),
        (["Paris"], "", False),
        (["Paris"], None, False),
        (["the"], "a", False),
        ([], "anything", None),
        ([" "], "anything", None),
    ],
)
def test_an_answer_is_an_expected_one(expected, answer, value):
    given_score = score(AnswerExactMatch(), expected, answer, "Paris")
    assert (given_score.name, given_score.value) == ("answer_exact_match", value)
    assert given_score.passed is value
    assert given_score.status == ("skipped" if value is None else "scored")


@pytest.mark.parametrize("make", [AnswerContains, AnswerExactMatch])
def test_what_the_evaluators_say_of_themselves(make):
    evaluator = make()
    assert (evaluator.direction, evaluator.worst, evaluator.bounded) == ("higher", 0.0, True)
    assert repr(evaluator) == f"{make.__name__}()"
    skipped = score(evaluator, [], "anything")
    assert skipped.metadata == {"skipped": True, "reason": "no expected answer"}
