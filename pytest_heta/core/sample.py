"""One sample from its query to its record: what every way to run a plan shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import cycle, islice
from typing import Any

from pytest_heta.codes import coded
from pytest_heta.core._limited import LimitedCalls
from pytest_heta.core.pace import Pace
from pytest_heta.core.plan import BenchmarkPlan, Sample
from pytest_heta.core.query import QueryOutcome, query_case
from pytest_heta.core.result import ResponseLevel, case_result
from pytest_heta.core.score import Scorer
from pytest_heta.errors import QueryTimeoutError
from pytest_heta.models import BenchmarkCase, EvaluationCaseResult

__all__ = [
    "ask_sample",
    "is_first",
    "late_warmup",
    "score_sample",
    "warm_up",
    "warmup_cases",
]


async def ask_sample(
    knowledge_base: Any,
    plan: BenchmarkPlan,
    sample: Sample,
    *,
    asked: set[tuple[str, str]],
    warmup: int = 0,
    limited: LimitedCalls | None = None,
    pace: Pace | None = None,
) -> tuple[QueryOutcome, bool]:
    """Ask a knowledge base one sample, after the warm-up of its unit and mode.

    Args:
        knowledge_base: The knowledge base of the sample's unit.
        plan: The plan.
        sample: The sample.
        asked: Pairs of unit and mode that were asked in this process; the
            sample's is added.
        warmup: Queries that are asked before the first of a pair, and of which
            nothing is kept.
        limited: Calls queries within a time limit; None for any time.
        pace: How fast and how often is asked; None for once, right now.

    Returns:
        What came of the query, and whether it was cold: the first of its unit
        and mode in the process.
    """
    await warm_up(
        knowledge_base, plan, sample, asked=asked, warmup=warmup, limited=limited, pace=pace
    )
    cold = is_first(sample, asked)
    outcome = await _ask(knowledge_base, plan, sample.case, sample.mode, limited=limited, pace=pace)
    return outcome, cold


async def warm_up(
    knowledge_base: Any,
    plan: BenchmarkPlan,
    sample: Sample,
    *,
    asked: set[tuple[str, str]],
    warmup: int,
    limited: LimitedCalls | None = None,
    pace: Pace | None = None,
) -> None:
    """Ask the warm-up of a sample's unit and mode, if it has not been asked.

    Args:
        knowledge_base: The knowledge base of the sample's unit.
        plan: The plan.
        sample: The sample.
        asked: Pairs of unit and mode that were asked in this process; the
            sample's is added if there is a warm-up.
        warmup: Queries to ask.
        limited: Calls queries within a time limit, and keeps the warnings
            about those that take longer; None for any time.
        pace: How fast and how often is asked; None for once, right now.
    """
    if warmup and is_first(sample, asked):
        for case_id in warmup_cases(plan, sample, warmup):
            outcome = await _ask(
                knowledge_base, plan, case_id, sample.mode, limited=limited, pace=pace
            )
            if limited is not None and isinstance(outcome.exception, QueryTimeoutError):
                limited.warnings.append(late_warmup(sample, outcome.exception))


def late_warmup(sample: Sample, error: QueryTimeoutError) -> str:
    """Return the warning about a warm-up query that took too long: no result shows it."""
    text = f"warming up run unit {sample.unit}, mode {sample.mode}: {error.message}"
    return coded("warm-up-failed", text)


def is_first(sample: Sample, asked: set[tuple[str, str]]) -> bool:
    """Whether a sample is the first of its unit and mode; the pair is added to ``asked``."""
    pair = (sample.unit, sample.mode)
    if pair in asked:
        return False
    asked.add(pair)
    return True


def warmup_cases(plan: BenchmarkPlan, sample: Sample, warmup: int) -> Iterator[str]:
    """Return the ids of the cases that warm up a sample's unit: its own, over and over."""
    unit = next(unit for unit in plan.units if unit.unit_id == sample.unit)
    return islice(cycle(unit.case_ids), warmup)


async def _ask(
    knowledge_base: Any,
    plan: BenchmarkPlan,
    case_id: str,
    mode: str,
    *,
    limited: LimitedCalls | None,
    pace: Pace | None,
) -> QueryOutcome:
    return await query_case(
        knowledge_base,
        query=plan.cases[case_id].query,
        mode=mode,
        top_k=plan.top_k,
        options=plan.options,
        limited=limited,
        pace=pace,
    )


async def score_sample(
    scorer: Scorer,
    plan: BenchmarkPlan,
    sample: Sample,
    *,
    case: BenchmarkCase,
    outcome: QueryOutcome,
    level: ResponseLevel = "short",
    cold: bool = False,
    metadata: Mapping[str, Any] | None = None,
    is_document: Callable[[str], bool] | None = None,
) -> EvaluationCaseResult:
    """Score what came of a sample's query, and return the record of the sample.

    Args:
        scorer: Scores the plan's responses.
        plan: The plan.
        sample: The sample.
        case: The sample's case with its expectations.
        outcome: What came of the query.
        level: How much of the response is kept.
        cold: Whether it was the first of its unit and mode in the process.
        metadata: Anything to add, such as the node id.
        is_document: Whether the benchmark has a document of some id.
    """
    scores = scorer.begin(case, plan.cases[sample.case], outcome.response, outcome.error)
    if outcome.response is not None:
        await scorer.ask(scores, case, outcome.response)
    return case_result(
        sample,
        plan.cases[sample.case],
        outcome,
        [score for score in scores if score is not None],
        level=level,
        cold=cold,
        metadata=metadata,
        is_document=is_document,
    )
