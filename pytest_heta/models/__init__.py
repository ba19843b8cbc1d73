"""The vocabulary of pytest-heta: frozen, validated models.

A model is built from keyword arguments, from a mapping
(``model_validate``) or from any object with the same attributes
(``model_validate(obj, from_attributes=True)``), which is how objects of other
packages are taken in by shape. A value that does not fit raises
`ModelInvalidError`, one line that names the field, the value and what is
allowed.
"""

from __future__ import annotations

from pytest_heta.models._base import (
    HetaModel,
    normalise_id,
)
from pytest_heta.models._benchmark import (
    LARGEST_GRADE,
    BenchmarkCase,
    BenchmarkDocument,
    BenchmarkEvidence,
    BenchmarkExpected,
    BenchmarkManifest,
    BenchmarkResource,
    BenchmarkRunUnit,
    BenchmarkWorkspace,
    BuildScope,
    PreparedBenchmark,
)
from pytest_heta.models._pages import PagedResults
from pytest_heta.models._raw_key import (
    document_id_from_raw_key,
    raw_key,
)
from pytest_heta.models._report import (
    SCHEMA_VERSION,
    Direction,
    EvaluationReport,
    GateResult,
    LatencySummary,
    MetricSummary,
    ModeSummary,
    Operator,
    UnitBuild,
)
from pytest_heta.models._response import (
    QueryCitation,
    QueryResponse,
    QueryResult,
)
from pytest_heta.models._result import (
    EvaluationCaseResult,
    EvaluationError,
    EvaluationScore,
    ScoreStatus,
)
from pytest_heta.models._tally import SampleTally, ScoreTally

__all__ = [
    "LARGEST_GRADE",
    "SCHEMA_VERSION",
    "BenchmarkCase",
    "BenchmarkDocument",
    "BenchmarkEvidence",
    "BenchmarkExpected",
    "BenchmarkManifest",
    "BenchmarkResource",
    "BenchmarkRunUnit",
    "BenchmarkWorkspace",
    "BuildScope",
    "Direction",
    "EvaluationCaseResult",
    "EvaluationError",
    "EvaluationReport",
    "EvaluationScore",
    "GateResult",
    "HetaModel",
    "LatencySummary",
    "MetricSummary",
    "ModeSummary",
    "Operator",
    "PagedResults",
    "PreparedBenchmark",
    "QueryCitation",
    "QueryResponse",
    "QueryResult",
    "SampleTally",
    "ScoreStatus",
    "ScoreTally",
    "UnitBuild",
    "document_id_from_raw_key",
    "normalise_id",
    "raw_key",
]
