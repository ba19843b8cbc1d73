"""The step that scores one response with every evaluator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pytest_heta.core._calls import raised_at
from pytest_heta.core._loop import call
from pytest_heta.core._plain import exception_text, plain, plain_text
from pytest_heta.core.plan import CasePlan, MetricSpec
from pytest_heta.evaluators import MeasureEvaluator, score_measures
from pytest_heta.models import BenchmarkCase, EvaluationError, EvaluationScore, QueryResponse
from pytest_heta.protocols import BenchmarkEvaluatorProtocol

__all__ = [
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

_METADATA_NODES: Final = 1_000


async def score_case(
    evaluators: Sequence[BenchmarkEvaluatorProtocol],
    *,
    case: BenchmarkCase,
    response: QueryResponse | None,
    error: EvaluationError | None,
    top_k: int,
    metrics: Sequence[MetricSpec],
) -> tuple[EvaluationScore, ...]:
    """Score one sample.

    What a score is decided by, in this order: whether the evaluator applies
    to the case, whether it looks deeper than was asked, whether the sample
    failed, and only then the response.

    Args:
        evaluators: The evaluators.
        case: The case.
        response: The response, None if the sample failed.
        error: Why it failed.
        top_k: Depth that was asked for.
        metrics: Metric of each evaluator, in the same order.

    Returns:
        One score for each evaluator, in the same order, named as it is. A
        value is a float, a bool, a text or None; metadata is plain JSON data.
    """
    scores = [
        _beforehand(evaluator, metric, case, top_k)
        for evaluator, metric in zip(evaluators, metrics, strict=True)
    ]
    if response is not None:
        _score_measures(evaluators, scores, case, response)
    done: list[EvaluationScore] = []
    for evaluator, metric, score in zip(evaluators, metrics, scores, strict=True):
        if score is not None:
            done.append(score)
        elif response is None:
            done.append(failed_score(metric.name, error))
        else:
            done.append(await _evaluate(evaluator, metric.name, case, response))
    return tuple(done)


def _beforehand(
    evaluator: BenchmarkEvaluatorProtocol, metric: MetricSpec, case: BenchmarkCase, top_k: int
) -> EvaluationScore | None:
    """Return the score if it does not depend on the response, else None."""
    applies = getattr(evaluator, "applies", None)
    if applies is not None:
        try:
            applicable = bool(applies(case))
        except Exception as error:  # noqa: BLE001 - the boundary to users' code
            return _raised(metric.name, error)
        if not applicable:
            unjudged = getattr(evaluator, "requires_judgment", False)
            return exempt_score(metric.name, "unjudged" if unjudged else "skipped")
    return exemption(metric, None, top_k)


def exemption(metric: MetricSpec, case: CasePlan | None, top_k: int) -> EvaluationScore | None:
    """Return the score of a sample that does not count for a metric, None if it counts.

    Args:
        metric: The metric.
        case: The case, None if only the depth is to be looked at.
        top_k: Depth that was asked for.
    """
    why = case.exempt.get(metric.name) if case is not None else None
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


def errored_score(
    name: str, kind: str, message: str, metadata: Mapping[str, Any] | None = None
) -> EvaluationScore:
    """Return a score that was lost, and counts as the worst value.

    Args:
        name: Name of the metric.
        kind: Stable kind of error, or the class of an exception.
        message: One line for people.
        metadata: Anything to add.
    """
    error = {"type": kind, "message": message}
    return EvaluationScore(name=name, metadata={**(metadata or {}), "error": error})


def _raised(name: str, error: Exception) -> EvaluationScore:
    score = errored_score(name, type(error).__name__, exception_text(error))
    where = raised_at(error)
    if where is not None:
        score.metadata["error"]["raised_at"] = where
    return score


def _score_measures(
    evaluators: Sequence[BenchmarkEvaluatorProtocol],
    scores: list[EvaluationScore | None],
    case: BenchmarkCase,
    response: QueryResponse,
) -> None:
    """Fill in the scores of all measures in one pass.

    They come before the users' evaluators, which could change the response.
    """
    measures = {
        index: evaluator
        for index, evaluator in enumerate(evaluators)
        if scores[index] is None
        and isinstance(evaluator, MeasureEvaluator)
        and type(evaluator).evaluate is MeasureEvaluator.evaluate
    }
    if not measures:
        return
    try:
        computed = score_measures(list(measures.values()), case, response)
    except Exception as error:  # noqa: BLE001 - judgments are users' data
        computed = [_raised(evaluator.name, error) for evaluator in measures.values()]
    for index, score in zip(measures, computed, strict=True):
        scores[index] = score


async def _evaluate(
    evaluator: BenchmarkEvaluatorProtocol, name: str, case: BenchmarkCase, response: QueryResponse
) -> EvaluationScore:
    called = await call(evaluator.evaluate, case=case, response=response)
    if called.error is not None:
        return _raised(name, called.error)
    try:
        return as_score(called.value, name)
    except Exception as error:  # noqa: BLE001 - attributes of users' objects
        return _raised(name, error)


# --- what evaluators return --------------------------------------------------


def as_score(returned: Any, name: str) -> EvaluationScore:
    """Return what an evaluator returned as a score called ``name``.

    Understood are an `EvaluationScore`, a mapping or an object of its shape,
    and a bare number, truth value or label. What is none of them is an
    errored score, never a number.
    """
    if isinstance(returned, Mapping) and "value" in returned:
        value, passed = returned["value"], returned.get("passed")
        metadata = returned.get("metadata")
    elif hasattr(returned, "value") and hasattr(returned, "metadata"):
        value, passed = returned.value, getattr(returned, "passed", None)
        metadata = returned.metadata
    else:
        value, passed, metadata = returned, None, None
        if value is None:
            return errored_score(name, "wrong_type", "the evaluator returned None")
    known = plain(metadata, max_nodes=_METADATA_NODES)
    return _checked(name, value, passed, known if isinstance(known, dict) else {})


def _checked(name: str, value: Any, passed: Any, metadata: dict[str, Any]) -> EvaluationScore:
    if metadata.get("error"):
        error = metadata["error"]
        if not isinstance(error, dict):
            metadata["error"] = {"type": "evaluator", "message": str(error)}
        return EvaluationScore(name=name, metadata=metadata)
    if metadata.get("skipped") or metadata.get("unjudged"):
        return EvaluationScore(name=name, metadata=metadata)
    if value is None:
        return errored_score(name, "no_value", "a score without value and reason", metadata)
    number, problem = _value(value)
    verdict, odd_verdict = _verdict(passed)
    problem = problem or odd_verdict
    if problem is not None:
        return errored_score(name, *problem, metadata)
    if verdict is None and isinstance(number, bool):
        verdict = number
    return EvaluationScore(name=name, value=number, passed=verdict, metadata=metadata)


def _value(value: Any) -> tuple[float | bool | str | None, tuple[str, str] | None]:
    """Return the value as Python's own type, or what is wrong with it."""
    value = _unwrapped(value)
    if isinstance(value, bool):
        return value, None
    if isinstance(value, str):
        return plain_text(value, 1_000), None
    try:
        number = float(value) if not isinstance(value, bytes | bytearray) else None
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        number = None
    if number is None:
        kind = type(value).__name__
        return None, ("wrong_type", f"a score is a number, a bool or a label, not a {kind}")
    if not math.isfinite(number):
        return None, ("non_finite", f"the score is {number}")
    return number, None


def _verdict(passed: Any) -> tuple[bool | None, tuple[str, str] | None]:
    passed = _unwrapped(passed)
    if passed is None or isinstance(passed, bool):
        return passed, None
    return None, ("wrong_type", f"passed is true, false or None, not a {type(passed).__name__}")


def _unwrapped(value: Any) -> Any:
    """Return numpy's and torch's scalars as Python's; everything else as it is."""
    item = getattr(value, "item", None)
    if not callable(item) or isinstance(value, type):
        return value
    try:
        return item()
    except (TypeError, ValueError):  # an array of several values
        return value
