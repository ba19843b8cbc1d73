"""What a test item does: ask one case, score the response, say what came of it."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, cast

import pytest

from pytest_heta.core._output import Printed
from pytest_heta.core.fast_record import FastRecords, Record
from pytest_heta.core.plan import BenchmarkPlan, FailOn, Sample
from pytest_heta.core.questions import Answer
from pytest_heta.core.result import case_result, encode_result
from pytest_heta.errors import LoopBlockedError
from pytest_heta.models import (
    BenchmarkCase,
    EvaluationCaseResult,
    EvaluationScore,
    QueryResponse,
    UnitBuild,
)
from pytest_heta.plugin.asking import Asking, asking_of
from pytest_heta.plugin.state import PlanEntry, Run, run_of
from pytest_heta.plugin.tracebacks import TRACEBACK_HINT
from pytest_heta.reports import (
    case_details,
    case_properties,
    plain_text,
    sample_error,
    score_error,
    tally_properties,
)

__all__ = [
    "CLOSING",
    "DATASET",
    "DETAILS",
    "IS_REPLAYED",
    "LATENCY",
    "PAYLOAD",
    "RESULT",
    "UNIT_BUILD",
    "WAS_BUILT",
    "CaseItem",
    "CaseOutcome",
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

IS_REPLAYED: Final = pytest.StashKey[bool]()
"""Whether an item's recorded result is reported again, without its fixtures."""

DATASET: Final = pytest.StashKey[dict[str, Any]]()
"""What staging the documents found out, beside a unit's build."""

RESULT: Final = pytest.StashKey[EvaluationCaseResult]()
"""The result of an item that may fail, for the outcome of its report."""

LATENCY: Final = pytest.StashKey[float | None]()
"""Milliseconds that an item's query took, for the duration of its report."""

_PROPERTIES: Final = pytest.StashKey[Iterable[tuple[str, object]]]()
"""What the result of an item added to its properties."""

DETAILS: Final = pytest.StashKey[list[str]]()
"""Lines of ``--heta-show`` for an item."""

_DETAILS_WIDTH: Final = 100


class CaseOutcome(NamedTuple):
    """What came of an item.

    Attributes:
        result: The record of its sample.
        payload: The same as the one JSON string that travels to the controller.
        response: The whole response, None if the sample failed.
        exception: What the recipe raised, for a traceback.
        message: Why the item fails, None if it passes.
        tracebacks: Those of evaluators, if they are asked for.
    """

    result: EvaluationCaseResult
    payload: str
    response: QueryResponse | None
    exception: Exception | None
    message: str | None
    tracebacks: tuple[str, ...] = ()


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
        asking = asking_of(self._item.config)
        answer = asking.answer(self._item, knowledge_base)
        record = self.record(answer)
        if record is not None:
            note_payload(self._item, record.payload, tally_properties(record.tally))
            self._item.stash[LATENCY] = record.tally.latency_ms
            return
        self.finish(self.conclude(answer, asking))

    def conclude(self, answer: Answer, asking: Asking) -> CaseOutcome:
        """Score what came of asking, as far as that was not done, and make the record."""
        plan = self._entry.plan
        if answer.printed:
            self._show_printed(answer.printed)
        staged = self._run.staged_or_none(self._entry)
        scores = self._scores(answer, asking)
        tracebacks = tuple(filter(None, map(_take_traceback, scores)))
        result = case_result(
            self.sample,
            plan.cases[self.sample.case],
            answer.outcome,
            scores,
            level=self._run.options.responses,
            cold=answer.cold,
            metadata={"node_id": self._item.nodeid},
            is_document=staged.knows if staged is not None else None,
        )
        result = self._run.recording.with_attempts(
            plan.label, self.sample, result, reused_response=answer.reused
        )
        return CaseOutcome(
            result,
            encode_result(plan.label, self.sample, result),
            answer.outcome.response,
            answer.outcome.exception,
            failure_message(
                result,
                fail_on_of(self._run, plan),
                traceback_hint=not self._run.options.debug,
            ),
            tracebacks,
        )

    def record(self, answer: Answer) -> Record | None:
        """Return the record of an ordinary answer that lets the item pass, None for any other."""
        if answer.printed or answer.scores is not None or self._run.options.show:
            return None
        entry, run = self._entry, self._run
        if answer.reused or run.recording.attempts(entry.plan.label, self.sample):
            return None
        if entry.fast_records is None:
            entry.fast_records = FastRecords(entry.plan, entry.scorer, run.options.responses)
        staged = run.staged_or_none(entry)
        record = entry.fast_records.record(
            self.sample,
            self.case,
            answer.outcome,
            answer.response_json,
            cold=answer.cold,
            node_id=self._item.nodeid,
            is_document=staged.knows if staged is not None else None,
        )
        if record is not None and record.missed and fail_on_of(run, entry.plan) == "miss":
            return None
        return record

    def _scores(self, answer: Answer, asking: Asking) -> list[EvaluationScore]:
        """Return all scores of an answer, asking those evaluators that were not asked yet."""
        scorer, outcome = self._entry.scorer, answer.outcome
        scores = answer.scores
        if scores is None:
            case_plan = self._entry.plan.cases[self.sample.case]
            scores = scorer.begin(self.case, case_plan, outcome.response, outcome.error)
        if outcome.response is not None and any(score is None for score in scores):
            with asking.marked(self._item), self._run.watched(scorer.timeout_s):
                try:
                    self._run.wait_for(scorer.ask(scores, self.case, outcome.response))
                except LoopBlockedError:
                    return scorer.without_loop(scores)
        return cast("list[EvaluationScore]", scores)

    def _show_printed(self, printed: Printed) -> None:
        """Show what the sample's code printed when another item was running."""
        for name in dict.fromkeys(name for name, _ in printed):
            text = "".join(text for stream, text in printed if stream == name)
            self._item.add_report_section("call", name, text)

    def finish(self, outcome: CaseOutcome) -> None:
        """Leave what came of the item with it, for its reports, and fail it if it has to.

        Raises:
            pytest.fail.Exception: if ``fail_on`` says so.
        """
        self._note(outcome)
        if outcome.message is not None:
            pytest.fail(outcome.message, pytrace=False)

    def _note(self, outcome: CaseOutcome) -> None:
        note_result(self._item, outcome.result, outcome.payload)
        show_details(self._item, self._entry.plan, self.case, outcome.result, outcome.response)
        texts = list(outcome.tracebacks)
        if outcome.exception is not None and self._run.options.debug:
            # Where the recipe raised.
            texts.append("".join(traceback.format_exception(outcome.exception)))
        for text in texts:
            self._item.add_report_section("call", "heta traceback", plain_text(text, newlines=True))


def note_result(item: pytest.Item, result: EvaluationCaseResult, payload: str) -> None:
    """Leave a result with its item, for the reports of its phases."""
    item.stash[RESULT] = result
    item.stash[LATENCY] = result.latency_ms
    note_payload(item, payload, case_properties(result))


def note_payload(item: pytest.Item, payload: str, properties: Sequence[tuple[str, object]]) -> None:
    """Leave what travels to the controller, and what other plugins see of it, with an item."""
    item.stash[PAYLOAD] = payload
    # Another plugin may run an item again: only its last result counts.
    for shown in item.stash.get(_PROPERTIES, ()):
        item.user_properties.remove(shown)
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


def _take_traceback(score: EvaluationScore) -> str | None:
    """Return an evaluator's traceback, which is shown and not kept in the report."""
    error = score.metadata.get("error")
    return error.pop("traceback", None) if isinstance(error, dict) else None


def failure_message(
    result: EvaluationCaseResult, fail_on: FailOn, *, traceback_hint: bool = False
) -> str | None:
    """Return why an item fails, as text that does nothing to a terminal; None if it passes.

    Args:
        result: What came of the sample.
        fail_on: What fails an item.
        traceback_hint: Whether to say how to see where users' code raised.
    """
    if result.error is not None:
        raised = bool(result.error.metadata.get("raised_at"))
        return _with_hint(sample_error(result), hint=traceback_hint and raised)
    errored = [score for score in result.scores if score.status == "errored"]
    if errored:
        raised = any("raised_at" in score.metadata.get("error", ()) for score in errored)
        text = "; ".join(score_error(score) for score in errored)
        return _with_hint(text, hint=traceback_hint and raised)
    if fail_on == "miss":
        missed = [
            f"{score.name} = {score.value}" for score in result.scores if score.passed is False
        ]
        if missed:
            return plain_text("missed: " + ", ".join(missed))
    return None


def _with_hint(text: str, *, hint: bool) -> str:
    return plain_text(f"{text}; {TRACEBACK_HINT}" if hint else text)
