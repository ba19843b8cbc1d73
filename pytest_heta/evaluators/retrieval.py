"""Evaluators for the measures of `pytest_heta.measures`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from pytest_heta.evaluators.judgments import (
    checked_threshold,
    grades,
    judges_a_document,
    reaches,
    unjudged,
)
from pytest_heta.evaluators.provenance import document_ids
from pytest_heta.measures import Measure, MeasureSet, parse_measure
from pytest_heta.models import BenchmarkCase, Direction, EvaluationScore, QueryResponse

__all__ = ["BeirRetrievalMetric", "MeasureEvaluator", "score_measures"]


class MeasureEvaluator:
    """Scores the documents of a response with one measure.

    Args:
        measure: The measure, or its name, such as ``ndcg@10``.
        threshold: Value in 0..1 that ``passed`` asks for; without one the
            evaluator gives no verdict.

    Raises:
        MeasureUnknownError: if ``measure`` names none.
        ConfigurationError: if the threshold is not in 0..1.
    """

    direction: ClassVar[Direction] = "higher"
    worst: ClassVar[float] = 0.0
    bounded: ClassVar[bool] = True
    requires_judgment: ClassVar[bool] = True

    def __init__(self, measure: Measure | str, threshold: float | None = None) -> None:
        self.measure = measure if isinstance(measure, Measure) else parse_measure(measure)
        self.threshold = checked_threshold(threshold, self.measure.name)

    def __repr__(self) -> str:
        """Return the call that makes an equal evaluator."""
        return f"MeasureEvaluator({self.measure.name!r}, threshold={self.threshold!r})"

    @property
    def name(self) -> str:
        """Name of the measure."""
        return self.measure.name

    @property
    def k(self) -> int:
        """Depth of the measure."""
        return self.measure.k

    # One function for all, so that a plan asks it once per case.
    @staticmethod
    def applies(case: BenchmarkCase) -> bool:
        """Whether the case has a judgment with a grade above 0."""
        return judges_a_document(case)

    async def evaluate(self, *, case: BenchmarkCase, response: QueryResponse) -> EvaluationScore:
        """Return the measure's value, or "unjudged"."""
        return score_measures([self], case, response)[0]


class BeirRetrievalMetric(MeasureEvaluator):
    """A `MeasureEvaluator` written as family and depth.

    Args:
        metric: Family of the measure: ``ndcg``, ``map``, ``recall``,
            ``precision``, ``mrr``, ``hit`` or ``ndcg_exp``.
        k: Depth.
        threshold: As for `MeasureEvaluator`.
    """

    def __init__(self, metric: str, k: int = 10, threshold: float | None = None) -> None:
        super().__init__(f"{metric}@{k}", threshold)


def score_measures(
    evaluators: Sequence[MeasureEvaluator], case: BenchmarkCase, response: QueryResponse
) -> list[EvaluationScore]:
    """Return one score for each evaluator, all computed in one pass.

    The scores equal those that the evaluators give one by one.
    """
    judged = grades(case)
    if not judged or max(judged.values()) <= 0:
        return [unjudged(evaluator.name) for evaluator in evaluators]
    measures = _measure_set(tuple(evaluator.measure for evaluator in evaluators))
    values = measures.compute(document_ids(response), judged)
    return [
        EvaluationScore.trusted(
            name=evaluator.name,
            value=value,
            passed=reaches(value, evaluator.threshold),
            metadata={},
        )
        for evaluator, value in zip(evaluators, values, strict=True)
    ]


@lru_cache(maxsize=256)
def _measure_set(measures: tuple[Measure, ...]) -> MeasureSet:
    return MeasureSet(measures)
