"""What a run tells while it goes on.

`RunEvent` is a union discriminated by ``event``; the order of a run is
RunStarted → (UnitBuilt | CaseCompleted)* → one of RunCompleted, RunFailed and
RunCancelled.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pytest_heta.models import EvaluationCaseResult, EvaluationReport, HetaModel, UnitBuild

__all__ = [
    "CaseCompleted",
    "RunCancelled",
    "RunCompleted",
    "RunEvent",
    "RunFailed",
    "RunStarted",
    "UnitBuilt",
]


class RunStarted(HetaModel):
    """The plan is made and nothing is built yet.

    Attributes:
        benchmark: Name of the benchmark.
        recipe: Name of the recipe.
        query_modes: Modes that will be asked.
        planned_samples: Samples of the plan.
        unit_count: Run units of the plan.
    """

    event: Literal["RunStarted"] = "RunStarted"
    benchmark: str
    recipe: str
    query_modes: tuple[str, ...]
    planned_samples: int
    unit_count: int


class UnitBuilt(HetaModel):
    """The knowledge base of a run unit was built, or failed to be."""

    event: Literal["UnitBuilt"] = "UnitBuilt"
    build: UnitBuild


class CaseCompleted(HetaModel):
    """A sample has its result, be it a failure."""

    event: Literal["CaseCompleted"] = "CaseCompleted"
    result: EvaluationCaseResult


class RunCompleted(HetaModel):
    """Every planned sample has a result; the gates are decided."""

    event: Literal["RunCompleted"] = "RunCompleted"
    report: EvaluationReport


class RunFailed(HetaModel):
    """The run could not go on."""

    event: Literal["RunFailed"] = "RunFailed"
    code: str
    message: str


class RunCancelled(HetaModel):
    """The run was cancelled; the report holds what was finished."""

    event: Literal["RunCancelled"] = "RunCancelled"
    report: EvaluationReport | None = None


RunEvent = Annotated[
    RunStarted | UnitBuilt | CaseCompleted | RunCompleted | RunFailed | RunCancelled,
    Field(discriminator="event"),
]
