"""The step that scores a response."""

import asyncio
import dataclasses
import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from types import SimpleNamespace

import numpy as np
import pytest

from pytest_heta.core.plan import UNKNOWN_WHETHER_APPLIES, CasePlan, metric_spec
from pytest_heta.core.score import Scorer, as_score, score_case
from pytest_heta.evaluators import MeasureEvaluator, as_evaluator
from pytest_heta.models import (
    BenchmarkCase,
    BenchmarkExpected,
    EvaluationError,
    EvaluationScore,
    QueryResponse,
)

FAILED = EvaluationError(message="no index", error_type="query")


class Evaluator:
    """Returns, or raises, what it is given."""

    def __init__(self, outcome, name="custom", **attributes):
        self.name = name
        self.outcome = outcome
        self.asked = 0
        self.__dict__.update(attributes)

    async def evaluate(self, *, case, response):
        self.asked += 1
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


class Ordinary(Evaluator):
    def evaluate(self, *, case, response):
        return self.outcome


@pytest.fixture
def score(fakes):
    def run(*evaluators, case=None, found=("d",), error=None, top_k=10):
        evaluators = [as_evaluator(evaluator) for evaluator in evaluators]
        response = None
        if error is None:
            response = QueryResponse.model_validate({"mode": "m", **fakes.hits(*found)})
        return asyncio.run(
            score_case(
                evaluators,
                case=case or fakes.case("q", "?", "d"),
                response=response,
                error=error,
                top_k=top_k,
                metrics=[metric_spec(evaluator) for evaluator in evaluators],
            )
        )

    return run


class TestOrderOfRules:
    def test_measures_score_the_documents(self, score):
        scores = score("recall@5", "mrr@5", found=("x", "d"))
        assert [(s.name, s.value, s.status) for s in scores] == [
            ("recall@5", 1.0, "scored"),
            ("mrr@5", 0.5, "scored"),
        ]

    def test_nothing_found_is_an_honest_zero(self, score):
        (only,) = score("ndcg@10", found=())
        assert (only.value, only.status) == (0.0, "scored")

    def test_a_case_without_positive_judgment_is_unjudged(self, score, fakes):
        for case in (fakes.case("q"), fakes.case("q", "?", d=0), fakes.case("q", "?", d=-1)):
            (only,) = score("ndcg@10", case=case)
            assert only.value is None
            assert only.metadata == {"unjudged": True, "reason": "no positive judgment"}

    def test_what_does_not_apply_is_skipped_and_never_asked(self, score):
        evaluator = Evaluator(1.0, applies=lambda case: False)
        (only,) = score(evaluator)
        assert only.metadata == {"skipped": True, "reason": "not applicable"}
        assert evaluator.asked == 0

    def test_a_k_below_the_depth_counts_only_what_was_asked_for(self, score):
        deep, equal = score("recall@11", "recall@10", found=())
        assert (deep.value, deep.metadata["reason"], deep.status) == (None, "depth", "skipped")
        # Fewer results than k came back, which is no reason to skip.
        assert (equal.value, equal.status) == (0.0, "scored")

    def test_a_failed_sample_is_errored(self, score):
        custom = Evaluator(1.0)
        scores = score("recall@5", custom, error=FAILED)
        for only in scores:
            assert only.status == "errored"
            assert only.metadata == {"error": {"type": "execution_error", "message": "no index"}}
        assert custom.asked == 0

    def test_a_failed_sample_that_does_not_apply_is_not_errored(self, score, fakes):
        scores = score(
            "recall@5",
            "recall@20",
            Evaluator(1.0, applies=lambda case: False),
            case=fakes.case("q"),
            error=FAILED,
        )
        assert [s.status for s in scores] == ["unjudged", "unjudged", "skipped"]
        (deep,) = score("recall@20", error=FAILED)
        assert deep.status == "skipped"

    def test_a_sample_without_response_and_error_is_errored(self, fakes):
        evaluator = as_evaluator("recall@5")
        work = score_case(
            [evaluator],
            case=fakes.case("q", "?", "d"),
            response=None,
            error=None,
            top_k=10,
            metrics=[metric_spec(evaluator)],
        )
        (only,) = asyncio.run(work)
        assert only.metadata["error"]["message"] == "the sample has no response"

    def test_scores_come_in_the_evaluators_order(self, score):
        scores = score(Evaluator(1.0, "a"), "ndcg@5", Evaluator(0.5, "b"), "map@5")
        assert [s.name for s in scores] == ["a", "ndcg@5", "b", "map@5"]

    def test_no_evaluators_give_no_scores(self, score):
        assert score() == ()


class TestEvaluatorErrors:
    def test_one_that_raises_loses_one_score(self, score):
        broken, ok, measure = score(Evaluator(KeyError("x")), Evaluator(0.5, "ok"), "recall@5")
        error = broken.metadata["error"]
        assert (error["type"], error["message"]) == ("KeyError", "KeyError: 'x'")
        assert "test_score.py:" in error["raised_at"]
        assert broken.status == "errored"
        assert (ok.value, measure.value) == (0.5, 1.0)

    def test_an_ordinary_evaluate_is_understood(self, score):
        (only,) = score(Ordinary(0.5))
        assert only.value == 0.5

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
    def test_what_is_no_exception_goes_through(self, score, kind):
        with pytest.raises(kind):
            score(Evaluator(kind()))

    def test_one_whose_applies_raises_loses_one_score(self, score):
        def applies(case):
            raise ZeroDivisionError

        broken, measure = score(Evaluator(1.0, applies=applies), "recall@5")
        assert broken.metadata["error"]["type"] == "ZeroDivisionError"
        assert measure.value == 1.0

    def test_judgments_that_are_no_numbers_are_errors_of_the_case(self, score, fakes):
        bad = fakes.case("q", "?", d="high")
        assert [s.status for s in score("recall@5", "mrr@5", case=bad)] == ["errored"] * 2

    def test_measures_that_cannot_be_computed_are_errored(self, score, monkeypatch):
        monkeypatch.setattr(MeasureEvaluator, "applies", lambda self, case: True)
        monkeypatch.setattr(
            "pytest_heta.core.score.score_measures",
            lambda *args: (_ for _ in ()).throw(ZeroDivisionError("boom")),
        )
        for only in score("recall@5", "mrr@5"):
            assert only.metadata["error"]["type"] == "ZeroDivisionError"

    def test_attributes_that_raise_are_an_error(self, score):
        class Broken:
            metadata = ()

            @property
            def value(self):
                raise ZeroDivisionError

        (only,) = score(Evaluator(Broken()))
        assert only.metadata["error"]["type"] == "ZeroDivisionError"

    def test_printing_stays_visible(self, score, capsys):
        class Loud(Evaluator):
            async def evaluate(self, *, case, response):
                print("looking at", case.case_id)  # noqa: T201
                return 1.0

        score(Loud(None))
        assert capsys.readouterr().out == "looking at q\n"

    def test_an_evaluator_that_changes_the_response_cannot_change_a_measure(self, score):
        class Vandal(Evaluator):
            async def evaluate(self, *, case, response):
                response.results[0].source.clear()
                return 1.0

        _, measure = score(Vandal(None), "recall@5")
        assert measure.value == 1.0

    def test_one_pass_gives_what_one_by_one_gives(self, score):
        names = ("ndcg@3", "map@10", "recall@2", "precision@5", "mrr@10", "hit@1", "ndcg_exp@3")
        together = score(*names, found=("x", "d", "y"))
        alone = tuple(score(name, found=("x", "d", "y"))[0] for name in names)
        assert together == alone

    def test_a_subclass_with_its_own_evaluate_is_asked(self, score):
        class Own(MeasureEvaluator):
            async def evaluate(self, *, case, response):
                return 0.125

        (only,) = score(Own("recall@5"))
        assert (only.name, only.value) == ("recall@5", 0.125)


class TestScorer:
    """Scores the samples of a plan in steps."""

    @pytest.fixture
    def scorer(self):
        def make(*evaluators, top_k=10):
            evaluators = [as_evaluator(evaluator) for evaluator in evaluators]
            metrics = [metric_spec(evaluator) for evaluator in evaluators]
            return Scorer(evaluators, metrics, top_k=top_k)

        return make

    @pytest.fixture
    def response(self, fakes):
        return QueryResponse.model_validate({"mode": "m", **fakes.hits("x", "d")})

    def test_only_the_users_evaluators_are_left_to_ask(self, scorer, fakes, response):
        made = scorer(Evaluator(0.5, "a"), "mrr@5", Ordinary(0.25, "b"), "answer_contains")
        case = fakes.case("q", "?", "d")
        scores = made.begin(case, CasePlan("q", "?", exempt={"answer_contains": "skipped"}),
                            response, None)  # fmt: skip
        assert [score and (score.value, score.status) for score in scores] == [
            None,
            (0.5, "scored"),
            None,
            (None, "skipped"),
        ]
        assert (made.has_coroutines, made.has_functions) == (True, True)
        asyncio.run(made.ask_coroutines(scores, case, response))
        assert [score and score.value for score in scores] == [0.5, 0.5, None, None]
        asyncio.run(made.ask_functions(scores, case, response))
        assert [score.value for score in scores] == [0.5, 0.5, 0.25, None]

    def test_our_own_need_not_be_asked(self, scorer, fakes, response):
        made = scorer("recall@5", "evidence_recall@5", "answer_contains", "answer_exact_match")
        assert (made.has_coroutines, made.has_functions) == (False, False)
        expected = BenchmarkExpected(
            answers=("yes",), evidence=fakes.case("q", "", "d").expected.evidence
        )
        case = BenchmarkCase(case_id="q", query="?", expected=expected)
        scores = made.begin(case, CasePlan("q", "?"), response, None)
        assert [score.value for score in scores] == [1.0, 1.0, False, False]

    def test_an_own_one_that_raises_loses_one_score(self, scorer, fakes, response):
        case = fakes.case("q", "?", d="high")
        (only,) = scorer("evidence_recall@5").begin(case, CasePlan("q", "?"), response, None)
        assert only.metadata["error"]["type"] == "DatasetInvalidError"

    def test_what_applies_is_not_asked_again(self, scorer, fakes, response):
        def applies(case):
            raise AssertionError

        custom = Evaluator(1.0, "custom", applies=applies)
        made = scorer(custom, "recall@5")
        plan = CasePlan("q", "?", exempt={"custom": "skipped", "recall@5": "unjudged"})
        scores = made.begin(fakes.case("q", "?", "d"), plan, response, None)
        assert [score.status for score in scores] == ["skipped", "unjudged"]

    def test_one_that_could_not_say_whether_it_applies_is_asked_again(
        self, scorer, fakes, response
    ):
        custom = Evaluator(1.0, "custom", applies=lambda case: 1 / 0)
        plan = CasePlan("q", "?", exempt={"custom": UNKNOWN_WHETHER_APPLIES})
        (only,) = scorer(custom).begin(fakes.case("q", "?", "d"), plan, response, None)
        assert only.metadata["error"]["type"] == "ZeroDivisionError"

    def test_failed_samples_and_deep_measures_are_scored_at_once(self, scorer, fakes, response):
        custom = Evaluator(1.0, "custom")
        made = scorer(custom, "recall@5", "recall@20")
        case, plan = fakes.case("q", "?", "d"), CasePlan("q", "?")
        failed = made.begin(case, plan, None, FAILED)
        assert [score.status for score in failed] == ["errored", "errored", "skipped"]
        assert failed[0].metadata["error"]["message"] == "no index"
        asyncio.run(made.ask(failed, case, response))
        assert custom.asked == 0
        _, shallow, deep = made.begin(case, plan, response, None)
        assert (shallow.status, deep.metadata["reason"]) == ("scored", "depth")

    @pytest.mark.parametrize("error", [None, FAILED])
    def test_by_plan_and_by_itself_are_the_same(self, score, scorer, fakes, tmp_path, error):
        evaluators = (
            *("ndcg@10", "recall@50", "answer_contains", "evidence_recall@3"),
            Evaluator(outcome=True),
            Evaluator(0.5, "never", applies=lambda case: False),
            Evaluator(0.5, "broken", applies=lambda case: 1 / 0),
        )
        cases = [fakes.case("q1", "?", "d"), fakes.case("q2"), fakes.case("q3", "?", d="bad")]
        benchmark = fakes.Benchmark([], cases)
        plan = fakes.plan(tmp_path, benchmark=benchmark, evaluators=evaluators, top_k=10)
        made = scorer(*evaluators)
        found = QueryResponse.model_validate({"mode": "m", **fakes.hits("d")})
        for case in cases:
            response = None if error else found
            scores = made.begin(case, plan.cases[case.case_id], response, error)
            asyncio.run(made.ask(scores, case, found))
            assert tuple(scores) == score(*evaluators, case=case, error=error)


@dataclasses.dataclass
class ForeignScore:
    """A score of heta-framework's shape."""

    name: str
    value: object
    passed: object = None
    metadata: dict = dataclasses.field(default_factory=dict)


class Torn(dict):
    """Metadata that cannot be looked through."""

    def items(self):
        raise ZeroDivisionError


class TestReturnedValues:
    @pytest.mark.parametrize(
        ("returned", "value"),
        [
            (0.5, 0.5),
            (1, 1.0),
            (np.float64(0.5), 0.5),
            (np.float32(0.5), 0.5),
            (np.int64(3), 3.0),
            (np.array(0.5), 0.5),
            (np.array([0.5]), 0.5),
            (Decimal("0.5"), 0.5),
            (Fraction(1, 2), 0.5),
            (True, True),
            (np.bool_(False), False),
            ("good", "good"),
            (np.str_("good"), "good"),
            ({"value": 0.5}, 0.5),
            ({"name": "x", "value": np.float64(0.5), "passed": None}, 0.5),
            (EvaluationScore(name="x", value=0.5), 0.5),
            (ForeignScore("x", 0.5), 0.5),
            ("\ud800", "\ufffd"),
            (-3.5, -3.5),
        ],
        ids=range(19),
    )
    def test_what_can_be_a_score_is_one(self, returned, value):
        made = as_score(returned, "mine")
        assert made.name == "mine"
        assert made.status == "scored"
        assert made.value == value
        assert type(made.value) is type(value)
        json.dumps(made.model_dump(), allow_nan=False).encode()

    @pytest.mark.parametrize(
        ("returned", "kind"),
        [
            (math.nan, "non_finite"),
            (math.inf, "non_finite"),
            (np.float64("nan"), "non_finite"),
            (Decimal("Infinity"), "non_finite"),
            (10**400, "non_finite"),
            (EvaluationScore(name="x", value=-math.inf), "non_finite"),
            ({"value": math.nan}, "non_finite"),
            (None, "wrong_type"),
            ([0.5], "wrong_type"),
            ({"score": 0.5}, "wrong_type"),
            (1j, "wrong_type"),
            (b"0.5", "wrong_type"),
            (np.array([0.5, 0.6]), "wrong_type"),
            (object(), "wrong_type"),
            (float, "wrong_type"),
            ({"value": 0.5, "passed": "yes"}, "wrong_type"),
            ({"value": [1]}, "wrong_type"),
            ({"value": None}, "no_value"),
            (EvaluationScore(name="x"), "no_value"),
            (Decimal("sNaN"), "wrong_type"),
        ],
        ids=range(20),
    )
    def test_what_cannot_is_errored_and_never_a_number(self, returned, kind):
        made = as_score(returned, "mine")
        assert made.value is None
        assert made.status == "errored"
        assert made.metadata["error"]["type"] == kind
        json.dumps(made.model_dump(), allow_nan=False)

    @pytest.mark.parametrize(
        ("returned", "passed"),
        [
            (True, True),
            (False, False),
            (0.9, None),
            ({"value": 0.9, "passed": True}, True),
            ({"value": 0.9, "passed": np.bool_(False)}, False),
            ({"value": True, "passed": False}, False),
            (ForeignScore("x", value=False), False),
        ],
    )
    def test_a_truth_value_is_its_own_verdict(self, returned, passed):
        assert as_score(returned, "mine").passed is passed

    def test_a_skip_of_another_package_is_a_skip_and_not_a_zero(self):
        foreign = ForeignScore("x", 0.0, None, {"skipped": True, "reason": "no answers"})
        made = as_score(foreign, "mine")
        assert (made.value, made.passed, made.status) == (None, None, "skipped")
        assert made.metadata["reason"] == "no answers"

    def test_an_unjudged_score_stays_one(self):
        made = as_score({"value": 0.0, "metadata": {"unjudged": True}}, "mine")
        assert (made.value, made.status) == (None, "unjudged")

    @pytest.mark.parametrize(
        ("error", "recorded"),
        [
            ({"type": "judge", "message": "refused"}, {"type": "judge", "message": "refused"}),
            ("refused", {"type": "evaluator", "message": "refused"}),
        ],
    )
    def test_an_error_that_the_evaluator_tells_of_is_kept(self, error, recorded):
        made = as_score({"value": 1.0, "metadata": {"error": error}}, "mine")
        assert (made.value, made.status) == (None, "errored")
        assert made.metadata["error"] == recorded

    def test_metadata_may_have_any_names(self):
        metadata = {"name": "a", "kind": "b", "message": "c"}
        made = as_score({"value": None, "metadata": metadata}, "mine")
        assert made.metadata == {
            **metadata,
            "error": {"type": "no_value", "message": "a score without value and reason"},
        }

    def test_metadata_is_plain_and_a_copy(self):
        cycle = {}
        cycle["self"] = cycle
        metadata = {
            "path": PurePosixPath("a"),
            "when": datetime(2026, 1, 2, tzinfo=UTC),
            "many": {2, 1},
            "number": np.float64(math.nan),
            "cycle": cycle,
            "huge": ["x" * 100] * 10**5,
        }
        made = as_score(ForeignScore("x", 1.0, None, metadata), "mine")
        text = json.dumps(made.metadata, allow_nan=False)
        assert len(text) < 200_000
        assert made.metadata["path"] == "a"
        assert made.metadata["when"] == "2026-01-02T00:00:00+00:00"
        assert made.metadata["many"] == [1, 2]
        assert made.metadata["number"] is None

    @pytest.mark.parametrize("metadata", [None, "text", 3, Torn()], ids=range(4))
    def test_metadata_that_is_no_mapping_is_left_out(self, metadata):
        made = as_score(SimpleNamespace(value=1.0, metadata=metadata), "mine")
        assert (made.value, made.metadata) == (1.0, {})
