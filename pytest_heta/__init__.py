"""pytest-heta: benchmarks of retrieval and RAG systems as pytest test suites.

The public names below are imported when they are first used, so that
importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_heta.api import load_recipe, run, suite
    from pytest_heta.benchmarks import BeirBenchmark, JsonlBenchmark
    from pytest_heta.errors import HetaError
    from pytest_heta.evaluators import (
        AnswerContains,
        AnswerExactMatch,
        BeirRetrievalMetric,
        EvidenceRecallAtK,
        MeasureEvaluator,
    )
    from pytest_heta.models import (
        BenchmarkCase,
        BenchmarkDocument,
        BenchmarkEvidence,
        BenchmarkExpected,
        BenchmarkManifest,
        BenchmarkResource,
        BenchmarkRunUnit,
        BenchmarkWorkspace,
        EvaluationCaseResult,
        EvaluationError,
        EvaluationReport,
        EvaluationScore,
        PreparedBenchmark,
        QueryCitation,
        QueryResponse,
        QueryResult,
    )
    from pytest_heta.protocols import (
        BenchmarkEvaluatorProtocol,
        BenchmarkProtocol,
        EmbeddingProtocol,
        KnowledgeBaseProtocol,
        KnowledgeRecipeProtocol,
        ObjectStore,
        RerankerProtocol,
    )

__all__ = [
    "AnswerContains",
    "AnswerExactMatch",
    "BeirBenchmark",
    "BeirRetrievalMetric",
    "BenchmarkCase",
    "BenchmarkDocument",
    "BenchmarkEvaluatorProtocol",
    "BenchmarkEvidence",
    "BenchmarkExpected",
    "BenchmarkManifest",
    "BenchmarkProtocol",
    "BenchmarkResource",
    "BenchmarkRunUnit",
    "BenchmarkWorkspace",
    "EmbeddingProtocol",
    "EvaluationCaseResult",
    "EvaluationError",
    "EvaluationReport",
    "EvaluationScore",
    "EvidenceRecallAtK",
    "HetaError",
    "JsonlBenchmark",
    "KnowledgeBaseProtocol",
    "KnowledgeRecipeProtocol",
    "MeasureEvaluator",
    "ObjectStore",
    "PreparedBenchmark",
    "QueryCitation",
    "QueryResponse",
    "QueryResult",
    "RerankerProtocol",
    "load_recipe",
    "run",
    "suite",
]

# Each imports those before it, so a name costs no more than its own module does;
# but for the adapters, which are last, because a suite may have one of its own.
_HOMES = ("errors", "models", "protocols", "evaluators", "api", "benchmarks")


def __getattr__(name: str) -> Any:
    """Import a public name from its home when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    homes = (import_module(f"{__name__}.{home}") for home in _HOMES)
    value = next(getattr(home, name) for home in homes if name in home.__all__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
