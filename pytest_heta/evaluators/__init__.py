"""Built-in evaluators: from a case and its response to one score.

Retrieval measures (`MeasureEvaluator`, `BeirRetrievalMetric`) compare document
ids with graded judgments, `EvidenceRecallAtK` looks for places and passages,
`AnswerContains` and `AnswerExactMatch` for expected answers. `as_evaluator`
turns what a suite writes into an evaluator.
"""

from __future__ import annotations

from pytest_heta.evaluators.answer import AnswerContains, AnswerExactMatch
from pytest_heta.evaluators.evidence import EvidenceRecallAtK
from pytest_heta.evaluators.judgments import grades
from pytest_heta.evaluators.naming import (
    BuiltInEvaluator,
    as_evaluator,
    evaluator_names,
    is_built_in,
)
from pytest_heta.evaluators.provenance import document_ids
from pytest_heta.evaluators.retrieval import (
    BeirRetrievalMetric,
    MeasureEvaluator,
    score_measures,
)

__all__ = [
    "AnswerContains",
    "AnswerExactMatch",
    "BeirRetrievalMetric",
    "BuiltInEvaluator",
    "EvidenceRecallAtK",
    "MeasureEvaluator",
    "as_evaluator",
    "document_ids",
    "evaluator_names",
    "grades",
    "is_built_in",
    "score_measures",
]
