"""From what a suite writes to an evaluator."""

from pathlib import Path

import pytest

from pytest_heta.errors import ConfigurationError, MeasureUnknownError
from pytest_heta.evaluators import (
    AnswerContains,
    AnswerExactMatch,
    EvidenceRecallAtK,
    MeasureEvaluator,
    as_evaluator,
    evaluator_names,
)
from pytest_heta.measures import measure_families


@pytest.mark.parametrize(
    ("text", "kind", "name", "threshold"),
    [
        ("ndcg@10", MeasureEvaluator, "ndcg@10", None),
        (" ndcg@10 ", MeasureEvaluator, "ndcg@10", None),
        ("recall@5>=0.8", MeasureEvaluator, "recall@5", 0.8),
        ("recall@5 >= .8", MeasureEvaluator, "recall@5", 0.8),
        ("recall@5>=1", MeasureEvaluator, "recall@5", 1.0),
        ("recall@5>=0", MeasureEvaluator, "recall@5", 0.0),
        ("evidence_recall@5", EvidenceRecallAtK, "evidence_recall@5", None),
        ("evidence_recall@3 >= 0.5", EvidenceRecallAtK, "evidence_recall@3", 0.5),
    ],
)
def test_measures_with_and_without_threshold(text, kind, name, threshold):
    evaluator = as_evaluator(text)
    assert type(evaluator) is kind
    assert (evaluator.name, evaluator.threshold) == (name, threshold)


def test_evaluators_of_answers():
    assert type(as_evaluator("answer_contains")) is AnswerContains
    assert type(as_evaluator("answer_exact_match")) is AnswerExactMatch


def test_every_listed_name_makes_an_evaluator():
    for listed in evaluator_names():
        name = listed.replace("@k", "@7")
        assert as_evaluator(name).name == name
    assert {f"{family}@k" for family in measure_families()} < set(evaluator_names())


def test_every_listed_name_is_documented():
    reference = Path(__file__).parents[2] / "docs" / "reference" / "measures.md"
    text = reference.read_text(encoding="utf-8")
    assert [name for name in evaluator_names() if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("recal@5", "recall@5"),
        ("recal@5>=0.8", "recall@5"),
        ("evidence_recal@5", "evidence_recall@5"),
        ("answer_contain", "answer_contains"),
        ("AnswerContains", "answer_contains"),
        ("answer_contains@5", "answer_contains"),
        ("exact_match", "answer_exact_match"),
    ],
)
def test_a_wrong_name_gets_a_suggestion(text, meant):
    with pytest.raises(MeasureUnknownError) as raised:
        as_evaluator(text)
    assert raised.value.hint.startswith(f"did you mean {meant!r}? Known: ")
    assert raised.value.hint.endswith(", ".join(evaluator_names()))


@pytest.mark.parametrize("text", ["evidence_recall", "evidence_recall@", "evidence_recall@0"])
def test_evidence_recall_needs_a_depth(text):
    with pytest.raises(MeasureUnknownError) as raised:
        as_evaluator(text)
    assert raised.value.hint == "write evidence_recall@k, such as 'evidence_recall@10'"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("recall@5>0.8", r"'>' is not a threshold's operator; only '>=' is"),
        ("recall@5<=0.8", "'<=' is not a threshold's operator"),
        ("recall@5==0.8", "'==' is not a threshold's operator"),
        ("recall@5≥0.8", "'≥' is not a threshold's operator"),
        ("recall@5>=", "threshold '' is not a number"),
        ("recall@5>=80%", "threshold '80%' is not a number"),
        ("recall@5>=baseline", "threshold 'baseline' is not a number"),
        ("recall@5>=80", r"threshold 80.0 of 'recall@5' is not in 0\.\.1"),
        ("recall@5>=nan", r"threshold nan of 'recall@5' is not in 0\.\.1"),
        ("evidence_recall@5>=80", r"threshold 80.0 of 'evidence_recall@5' is not in 0\.\.1"),
        ("answer_contains>=1", "'answer_contains' is true or false and has no threshold"),
    ],
)
def test_a_wrong_threshold_is_named(text, problem):
    with pytest.raises(ConfigurationError, match=problem):
        as_evaluator(text)


class Custom:
    name = "custom"

    async def evaluate(self, *, case, response):
        raise NotImplementedError


def test_an_evaluator_is_returned_as_it_is():
    for evaluator in (Custom(), MeasureEvaluator("ndcg@10"), AnswerContains()):
        assert as_evaluator(evaluator) is evaluator


def test_a_class_is_no_evaluator():
    with pytest.raises(ConfigurationError, match=r"Custom is a class; write Custom\(\.\.\.\)"):
        as_evaluator(Custom)


class Nameless:
    name = ""
    evaluate = Custom.evaluate


class Silent:
    name = "silent"
    evaluate = None


@pytest.mark.parametrize("thing", [None, 5, ["ndcg@10"], Nameless(), Silent(), print])
def test_what_is_no_evaluator_is_refused(thing):
    with pytest.raises(ConfigurationError, match="is not an evaluator; write an object with"):
        as_evaluator(thing)
