"""What a test item does: ask one case, score the response, say what came of it."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable
from typing import Any, Final

import pytest

from pytest_heta.core.plan import BenchmarkPlan, FailOn, Sample
from pytest_heta.core.query import QueryOutcome
from pytest_heta.core.sample import ask_sample, score_sample
from pytest_heta.models import (
    BenchmarkCase,
    EvaluationCaseResult,
    EvaluationScore,
    QueryResponse,
    UnitBuild,
)
from pytest_heta.plugin.options import VERY_VERBOSE
from pytest_heta.plugin.state import PlanEntry, Run, run_of
from pytest_heta.reports import (
    case_details,
    case_properties,
    error_line,
    missing_reason,
    plain_text,
)

__all__ = [
    "CLOSING",
    "DATASET",
    "DETAILS",
    "PAYLOAD",
    "RESULT",
    "UNIT_BUILD",
    "WAS_BUILT",
    "CaseItem",
    "fail_on_of",
    "failure_message",
    "note_result",
    "show_details",
]

PAYLOAD: Final = pytest.StashKey[str]()
"""The result of an item, as the one JSON string that travels to the controller."""

UNIT_BUILD: Final = pytest.StashKey[UnitBuild]()
"""How a unit's knowledge base was built, until the first report takes it along."""

CLOSING: Final = pytest.StashKey[str]()
"""Why a unit's knowledge base could not be closed, until its last report takes it along."""

WAS_BUILT: Final = pytest.StashKey[bool]()
"""Whether a unit's knowledge base was built by the plugin, or another was reported."""

DATASET: Final = pytest.StashKey[dict[str, Any]]()
"""What staging the documents found out, beside a unit's build."""

RESULT: Final = pytest.StashKey[EvaluationCaseResult]()
"""The result of an item, for the outcome of its report."""

_PROPERTIES: Final = pytest.StashKey[Iterable[tuple[str, object]]]()
"""What the result of an item added to its properties."""

DETAILS: Final = pytest.StashKey[list[str]]()
"""Lines of ``--heta-show`` for an item."""

_DETAILS_WIDTH: Final = 100


class CaseItem:
    """One case as a test item asks it.

    Attributes:
        case: The case with its expectations.
        mode: The query mode.
        sample: Identity of the question.
    """

    def __init__(self, run: Run, item: pytest.Item, entry: PlanEntry, sample: Sample) -> None:
        self._run = run
        self._item = item
        self._entry = entry
        self.sample = sample
        self.mode = sample.mode
        self.case: BenchmarkCase = entry.loaded.cases[sample.case]

    def run(self, knowledge_base: Any) -> None:
        """Ask the knowledge base, score the response and fail the item if it has to.

        Raises:
            pytest.fail.Exception: if ``fail_on`` says so.
        """
        result, outcome = self._run.wait_for(self._ask_and_score(knowledge_base))
        note_result(self._item, self._entry.plan, self.sample, result)
        show_details(self._item, self._entry.plan, self.case, result, outcome.response)
        self._add_traceback(outcome.exception)
        message = failure_message(result, fail_on_of(self._run, self._entry.plan))
        if message is not None:
            pytest.fail(message, pytrace=False)

    async def _ask_and_score(
        self, knowledge_base: Any
    ) -> tuple[EvaluationCaseResult, QueryOutcome]:
        """Return the record of the sample, and what came of its query."""
        plan = self._entry.plan
        options = self._run.options
        staged = self._run.staged_or_none(self._entry)
        outcome, cold = await ask_sample(
            knowledge_base, plan, self.sample, asked=self._entry.asked, warmup=options.warmup
        )
        result = await score_sample(
            self._entry.evaluators,
            plan,
            self.sample,
            case=self.case,
            outcome=outcome,
            level=options.responses,
            cold=cold,
            metadata={"node_id": self._item.nodeid},
            is_document=staged.knows if staged is not None else None,
        )
        return result, outcome

    def _add_traceback(self, exception: Exception | None) -> None:
        """Show where the recipe raised, when the run is verbose enough."""
        if exception is not None and self._run.config.get_verbosity() >= VERY_VERBOSE:
            text = "".join(traceback.format_exception(exception))
            self._item.add_report_section("call", "heta traceback", plain_text(text, newlines=True))


def note_result(
    item: pytest.Item, plan: BenchmarkPlan, sample: Sample, result: EvaluationCaseResult
) -> None:
    """Leave a result with its item, for the reports of its phases."""
    payload = {
        "label": plan.label,
        "sample": list(sample),
        "result": result.model_dump(mode="json"),
    }
    item.stash[RESULT] = result
    item.stash[PAYLOAD] = json.dumps(payload, ensure_ascii=True, allow_nan=False)
    # Another plugin may run an item again: only its last result counts.
    for shown in item.stash.get(_PROPERTIES, ()):
        item.user_properties.remove(shown)
    properties = case_properties(result)
    item.stash[_PROPERTIES] = properties
    item.user_properties.extend(properties)


def show_details(
    item: pytest.Item,
    plan: BenchmarkPlan,
    case: BenchmarkCase,
    result: EvaluationCaseResult,
    response: QueryResponse | None,
) -> None:
    """Leave the lines of ``--heta-show`` with an item, if its case is to be shown."""
    show = run_of(item.config).options.show
    if show in {"all", case.case_id} or (show == "misses" and _is_miss(result, plan)):
        shown = result.model_copy(update={"response": response})
        item.stash[DETAILS] = case_details(shown, case.expected, _DETAILS_WIDTH)


def _is_miss(result: EvaluationCaseResult, plan: BenchmarkPlan) -> bool:
    """Whether a case failed, did not pass, or has a score that could not be worse."""
    if result.error is not None:
        return True
    worst = {metric.name: metric.worst for metric in plan.metrics}
    return any(
        score.passed is False
        or score.status == "errored"
        or (isinstance(score.value, float | bool) and score.value == worst.get(score.name))
        for score in result.scores
    )


def fail_on_of(run: Run, plan: BenchmarkPlan) -> FailOn:
    """Return what fails an item: the option, else the suite, else errors."""
    return run.options.fail_on or plan.fail_on or "error"


def failure_message(result: EvaluationCaseResult, fail_on: FailOn) -> str | None:
    """Return why an item fails, as text that does nothing to a terminal; None if it passes."""
    if result.error is not None:
        error = result.error
        where = error.metadata.get("raised_at")
        return plain_text(error_line(error.error_type, error.message, where))
    errored = [score for score in result.scores if score.status == "errored"]
    if errored:
        return plain_text("; ".join(_error_of(score) for score in errored))
    if fail_on == "miss":
        missed = [
            f"{score.name} = {score.value}" for score in result.scores if score.passed is False
        ]
        if missed:
            return plain_text("missed: " + ", ".join(missed))
    return None


def _error_of(score: EvaluationScore) -> str:
    return f"scoring {score.name}: {missing_reason(score)}"
