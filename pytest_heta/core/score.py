"""The step that scores one response with every evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pytest_heta.core._calls import error_text, raised_at, traceback_text
from pytest_heta.core._limited import LimitedCalls, Step
from pytest_heta.core._loop import Called, call, is_coroutine_function
from pytest_heta.core._returned import as_score, errored_score
from pytest_heta.core._threads import DaemonThreads
from pytest_heta.core.pace import Pace
from pytest_heta.core.plan import UNKNOWN_WHETHER_APPLIES, CasePlan, MetricSpec
from pytest_heta.core.retries import is_rate_limit
from pytest_heta.evaluators import BuiltInEvaluator, MeasureEvaluator, is_built_in, score_measures
from pytest_heta.models import BenchmarkCase, EvaluationError, EvaluationScore, QueryResponse
from pytest_heta.protocols import BenchmarkEvaluatorProtocol

__all__ = [
    "Scorer",
    "as_score",
    "errored_score",
    "exempt_score",
    "exemption",
    "failed_score",
    "score_case",
]

UNJUDGED: Final = {"unjudged": True, "reason": "no positive judgment"}
NOT_APPLICABLE: Final = {"skipped": True, "reason": "not applicable"}
TOO_DEEP: Final = {"skipped": True, "reason": "depth"}


class Scorer:
    """Scores samples of one plan; what its evaluators are is looked at once.

    A sample is scored in up to three steps: `begin`, then `ask_coroutines` on
    an event loop, then `ask_functions` in whatever thread is to run ordinary
    functions. What a score is decided by, in this order: whether the
    evaluator applies to the case, whether it looks deeper than was asked,
    whether the sample failed, and only then the response.

    Args:
        evaluators: The evaluators.
        metrics: Metric of each evaluator, in the same order.
        top_k: Depth that is asked for.
        timeout_s: Seconds that a user's evaluator may take; None for any time.
            With a limit, ordinary evaluators run in a thread of their own.
        retries: How often a user's evaluator is asked again after an error
            that may pass.

    Attributes:
        has_coroutines: Whether `ask_coroutines` may have something to ask.
        has_functions: Whether `ask_functions` may.
        only_measures: The evaluators, if all are measures that every response
            is deep enough for; else nothing.
        timeout_s: Seconds that a user's evaluator may take; None for any time.
        limited: Calls users' evaluators within that time; None for any time.
    """

    def __init__(
        self,
        evaluators: Sequence[BenchmarkEvaluatorProtocol],
        metrics: Sequence[MetricSpec],
        *,
        top_k: int,
        timeout_s: float | None = None,
        retries: int = 0,
    ) -> None:
        self._evaluators = tuple(evaluators)
        self._metrics = tuple(metrics)
        self._names = tuple(metric.name for _, metric in zip(evaluators, metrics, strict=True))
        self._top_k = top_k
        self._is_shallow = all(metric.k is None or metric.k <= top_k for metric in metrics)
        self._measures = tuple(i for i, e in enumerate(self._evaluators) if _is_measure(e))
        self._built_in = {i: e for i, e in enumerate(self._evaluators) if is_built_in(e)}
        self._coroutines, self._functions = self._users_evaluators()
        self.has_coroutines, self.has_functions = bool(self._coroutines), bool(self._functions)
        self.only_measures: tuple[MeasureEvaluator, ...] = (
            tuple(e for e in self._evaluators if isinstance(e, MeasureEvaluator))
            if self._is_shallow and len(self._measures) == len(self._evaluators)
            else ()
        )
        # Each judge is a service of its own.
        self._paces = {
            index: Pace(retries=retries) for index in (*self._coroutines, *self._functions)
        }
        self.timeout_s = timeout_s
        self._threads = DaemonThreads(1, "heta-evaluator")  # begun with the first call
        self.limited: LimitedCalls | None = None
        if timeout_s is not None:
            self.limited = LimitedCalls(
                timeout_s,
                what="evaluator",
                error=_LateError,
                threads=self._threads,
                one_at_a_time=True,
            )

    def close(self) -> None:
        """Let the thread of ordinary evaluators end."""
        self._threads.shutdown()

    def _users_evaluators(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return which evaluators are to be asked: the asynchronous ones and the others."""
        users = [
            (index, is_coroutine_function(evaluator.evaluate))
            for index, evaluator in enumerate(self._evaluators)
            if index not in self._measures and index not in self._built_in
        ]
        return (
            tuple(index for index, asynchronous in users if asynchronous),
            tuple(index for index, asynchronous in users if not asynchronous),
        )

    def begin(
        self,
        case: BenchmarkCase,
        case_plan: CasePlan,
        response: QueryResponse | None,
        error: EvaluationError | None,
    ) -> list[EvaluationScore | None]:
        """Return the scores of a sample, None where an evaluator of the user has to be asked.

        Whether evaluators apply to the case was found out when it was planned.
        Our own evaluators are computed here, before the users' are asked,
        which could change the response.

        Args:
            case: The case.
            case_plan: The same case, as it was planned.
            response: The response, None if the sample failed.
            error: Why it failed.
        """
        scores: list[EvaluationScore | None] = [None] * len(self._names)
        if case_plan.exempt or not self._is_shallow:
            self._fill_exempt(scores, case, case_plan)
        if response is None:
            return [
                score if score is not None else failed_score(name, error)
                for score, name in zip(scores, self._names, strict=True)
            ]
        self._fill_measures(scores, case, response)
        for index, evaluator in self._built_in.items():
            if scores[index] is None:
                scores[index] = _computed(evaluator, case, response)
        return scores

    async def ask(
        self, scores: list[EvaluationScore | None], case: BenchmarkCase, response: QueryResponse
    ) -> None:
        """Fill in the scores of all users' evaluators, in order."""
        await self._ask(sorted(self._coroutines + self._functions), scores, case, response)

    async def ask_coroutines(
        self,
        scores: list[EvaluationScore | None],
        case: BenchmarkCase,
        response: QueryResponse,
        *,
        step: Step | None = None,
    ) -> None:
        """Fill in the scores of the users' asynchronous evaluators, in order.

        Args:
            scores: What `begin` returned.
            case: The case.
            response: The response.
            step: Wraps each coroutine that has a time limit of its own.
        """
        await self._ask(self._coroutines, scores, case, response, step)

    async def ask_functions(
        self, scores: list[EvaluationScore | None], case: BenchmarkCase, response: QueryResponse
    ) -> None:
        """Fill in the scores of the users' other evaluators, in order."""
        await self._ask(self._functions, scores, case, response)

    async def _ask(
        self,
        indices: Sequence[int],
        scores: list[EvaluationScore | None],
        case: BenchmarkCase,
        response: QueryResponse,
        step: Step | None = None,
    ) -> None:
        for index in indices:
            if scores[index] is None:
                called = await self._call(index, case, response, step)
                scores[index] = _evaluated(called, self._names[index])

    async def _call(
        self, index: int, case: BenchmarkCase, response: QueryResponse, step: Step | None
    ) -> Called:
        evaluate = self._evaluators[index].evaluate

        async def attempt(_: int) -> Called:
            if self.limited is None:
                return await call(evaluate, case=case, response=response)
            given = {"case": case, "response": response}
            return await self.limited.call(evaluate, kwargs=given, who=index, step=step)

        return await self._paces[index].ask(attempt)

    def without_loop(self, scores: Sequence[EvaluationScore | None]) -> list[EvaluationScore]:
        """Return scores, those that are missing errored because the event loop is blocked.

        Args:
            scores: What `begin` returned, as far as it was filled in.
        """
        message = (
            "not scored: a query or an evaluator blocks the event loop"
            f" for longer than {self.timeout_s:g} s"
        )
        return [
            score if score is not None else errored_score(name, "timeout", message)
            for score, name in zip(scores, self._names, strict=True)
        ]

    def _fill_exempt(
        self, scores: list[EvaluationScore | None], case: BenchmarkCase, case_plan: CasePlan
    ) -> None:
        for index, metric in enumerate(self._metrics):
            if case_plan.exempt.get(metric.name) == UNKNOWN_WHETHER_APPLIES:
                scores[index] = _beforehand(self._evaluators[index], metric.name, case)
            if scores[index] is None:
                scores[index] = exemption(metric, case_plan, self._top_k)

    def _fill_measures(
        self, scores: list[EvaluationScore | None], case: BenchmarkCase, response: QueryResponse
    ) -> None:
        """Fill in the scores of all measures in one pass."""
        indices = [index for index in self._measures if scores[index] is None]
        if not indices:
            return
        measures: list[Any] = [self._evaluators[index] for index in indices]
        try:
            computed = score_measures(measures, case, response)
        except Exception as error:  # noqa: BLE001 - judgments are users' data
            computed = [_raised(self._names[index], error) for index in indices]
        for index, score in zip(indices, computed, strict=True):
            scores[index] = score


async def score_case(
    evaluators: Sequence[BenchmarkEvaluatorProtocol],
    *,
    case: BenchmarkCase,
    response: QueryResponse | None,
    error: EvaluationError | None,
    top_k: int,
    metrics: Sequence[MetricSpec],
) -> tuple[EvaluationScore, ...]:
    """Score one sample by itself, as `Scorer` does those of a plan.

    Args:
        evaluators: The evaluators; they are asked whether they apply.
        case: The case.
        response: The response, None if the sample failed.
        error: Why it failed.
        top_k: Depth that was asked for.
        metrics: Metric of each evaluator, in the same order.

    Returns:
        One score for each evaluator, in the same order, named as it is. A
        value is a float, a bool, a text or None; metadata is plain JSON data.
    """
    scorer = Scorer(evaluators, metrics, top_k=top_k)
    planned = CasePlan(
        case.case_id,
        case.query,
        # Each is asked where it is scored.
        exempt=dict.fromkeys((metric.name for metric in metrics), UNKNOWN_WHETHER_APPLIES),
    )
    scores = scorer.begin(case, planned, response, error)
    if response is not None:
        await scorer.ask(scores, case, response)
    return tuple(score for score in scores if score is not None)


def _is_measure(evaluator: BenchmarkEvaluatorProtocol) -> bool:
    """Whether an evaluator can be computed together with others."""
    return (
        isinstance(evaluator, MeasureEvaluator)
        and type(evaluator).evaluate is MeasureEvaluator.evaluate
    )


def _beforehand(
    evaluator: BenchmarkEvaluatorProtocol, name: str, case: BenchmarkCase
) -> EvaluationScore | None:
    """Return the score if the evaluator does not apply or cannot say so, else None."""
    applies = getattr(evaluator, "applies", None)
    if applies is None:
        return None
    try:
        applicable = bool(applies(case))
    except Exception as error:  # noqa: BLE001 - the boundary to users' code
        return _raised(name, error)
    if applicable:
        return None
    unjudged = getattr(evaluator, "requires_judgment", False)
    return exempt_score(name, "unjudged" if unjudged else "skipped")


def exemption(metric: MetricSpec, case: CasePlan | None, top_k: int) -> EvaluationScore | None:
    """Return the score of a sample that does not count for a metric, None if it counts.

    Args:
        metric: The metric.
        case: The case, None if only the depth is to be looked at.
        top_k: Depth that was asked for.
    """
    why = case.exempt.get(metric.name) if case is not None else None
    if why == UNKNOWN_WHETHER_APPLIES:
        why = None
    if why is None and metric.k is not None and metric.k > top_k:
        why = "depth"
    return None if why is None else exempt_score(metric.name, why)


def exempt_score(name: str, why: str) -> EvaluationScore:
    """Return the score of a sample that does not count: unjudged, skipped or depth."""
    metadata = {"unjudged": UNJUDGED, "depth": TOO_DEEP}.get(why, NOT_APPLICABLE)
    return EvaluationScore(name=name, metadata=dict(metadata))


def failed_score(name: str, error: EvaluationError | None) -> EvaluationScore:
    """Return the score of a sample that could not be run."""
    message = error.message if error is not None else "the sample has no response"
    return errored_score(name, "execution_error", message)


def _raised(name: str, error: Exception) -> EvaluationScore:
    score = errored_score(name, type(error).__name__, error_text(error))
    known = {"raised_at": raised_at(error), "traceback": traceback_text(error)}
    score.metadata["error"].update({key: text for key, text in known.items() if text})
    return score


def _computed(
    evaluator: BuiltInEvaluator, case: BenchmarkCase, response: QueryResponse
) -> EvaluationScore:
    try:
        return evaluator.score(case=case, response=response)
    except Exception as error:  # noqa: BLE001 - expectations are users' data
        return _raised(evaluator.name, error)


class _LateError(Exception):
    """An evaluator took too long."""


def _evaluated(called: Called, name: str) -> EvaluationScore:
    """Return what an evaluator returned, or why it did not, as a score."""
    score = _score_of(called, name)
    if called.attempts > 1:
        score.metadata["attempts"] = called.attempts
    return score


def _score_of(called: Called, name: str) -> EvaluationScore:
    if isinstance(called.error, _LateError):
        return errored_score(name, "timeout", str(called.error))
    if called.error is not None:
        score = _raised(name, called.error)
        if is_rate_limit(called.error):
            score.metadata["error"]["type"] = "rate_limited"
        return score
    try:
        return as_score(called.value, name)
    except Exception as error:  # noqa: BLE001 - attributes of users' objects
        return _raised(name, error)
