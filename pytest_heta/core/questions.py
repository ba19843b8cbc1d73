"""What a knowledge base is asked ahead of the tests, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_heta.core._output import Printed
from pytest_heta.core.plan import BenchmarkPlan, Sample
from pytest_heta.core.query import QueryOutcome
from pytest_heta.core.score import Scorer
from pytest_heta.models import BenchmarkCase, EvaluationScore

__all__ = ["Answer", "Questions"]


@dataclass(frozen=True, slots=True)
class Questions:
    """What is asked of one knowledge base.

    Attributes:
        plan: The plan.
        cases: The cases with their expectations.
        scorer: Scores responses.
        samples: The samples, in the order in which they will be taken.
        asked: Pairs of unit and mode that were asked in this process.
        warmup: Queries that are asked before the first of a pair.
        numbers: What the flight recorder calls each sample.
    """

    plan: BenchmarkPlan
    cases: Mapping[str, BenchmarkCase]
    scorer: Scorer
    samples: Sequence[Sample]
    asked: set[tuple[str, str]]
    warmup: int = 0
    numbers: Sequence[int] = ()


@dataclass(slots=True)
class Answer:
    """What came of asking one sample.

    Attributes:
        outcome: What came of the query.
        cold: Whether it was the first of its unit and mode in the process.
        scores: Scores as far as they are known, None if scoring has not begun.
        printed: What the sample's code printed while another sample was taken.
        raised: What is no failure of the sample: an interrupt, an exit.
        response_json: The whole response as JSON text, if it was written down.
        reused: Whether it had returned to a process of the run that has ended.
    """

    outcome: QueryOutcome = field(default_factory=QueryOutcome)
    cold: bool = False
    scores: list[EvaluationScore | None] | None = None
    printed: Printed = field(default_factory=list)
    raised: BaseException | None = None
    response_json: bytes | None = None
    reused: bool = False
