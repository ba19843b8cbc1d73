"""Events are told apart by their name, also after they were JSON."""

from datetime import UTC, datetime

import pytest
from pydantic import TypeAdapter

from pytest_heta.errors import ModelInvalidError
from pytest_heta.events import (
    CaseCompleted,
    RunCancelled,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunStarted,
    UnitBuilt,
)
from pytest_heta.models import (
    BenchmarkManifest,
    EvaluationCaseResult,
    EvaluationReport,
    UnitBuild,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REPORT = EvaluationReport(
    report_id="1",
    report_key="k",
    benchmark=BenchmarkManifest(name="b"),
    knowledge_base_name="b",
    started_at=NOW,
    finished_at=NOW,
)
EVENTS = [
    RunStarted(benchmark="b", recipe="r", query_modes=("m",), planned_samples=1, unit_count=1),
    UnitBuilt(build=UnitBuild(unit_id="u", build_seconds=0.5)),
    CaseCompleted(result=EvaluationCaseResult(case_id="c", query="q", query_mode="m")),
    RunCompleted(report=REPORT),
    RunFailed(code="build-failed", message="no index"),
    RunCancelled(),
    RunCancelled(report=REPORT),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.event)
def test_an_event_comes_back_from_json_as_it_was(event):
    assert event.event == type(event).__name__
    assert TypeAdapter(RunEvent).validate_json(event.model_dump_json()) == event


def test_an_event_without_what_it_tells_is_refused():
    with pytest.raises(ModelInvalidError, match=r"RunFailed.message: a value is required"):
        RunFailed(code="build-failed")
