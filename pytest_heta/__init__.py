"""pytest-heta: benchmarks of retrieval and RAG systems as pytest test suites.

The public names below are resolved when they are first used, so that
importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "pytest_heta.api": ("load_recipe", "run", "suite"),
    "pytest_heta.benchmarks": ("BeirBenchmark", "JsonlBenchmark"),
    "pytest_heta.errors": ("HetaError",),
    "pytest_heta.evaluators": (
        "AnswerContains",
        "AnswerExactMatch",
        "BeirRetrievalMetric",
        "EvidenceRecallAtK",
        "MeasureEvaluator",
    ),
    "pytest_heta.models": (
        "BenchmarkCase",
        "BenchmarkDocument",
        "BenchmarkEvidence",
        "BenchmarkExpected",
        "BenchmarkManifest",
        "BenchmarkResource",
        "BenchmarkRunUnit",
        "BenchmarkWorkspace",
        "EvaluationCaseResult",
        "EvaluationError",
        "EvaluationReport",
        "EvaluationScore",
        "PreparedBenchmark",
        "QueryCitation",
        "QueryResponse",
        "QueryResult",
    ),
    "pytest_heta.protocols": (
        "BenchmarkEvaluatorProtocol",
        "BenchmarkProtocol",
        "EmbeddingProtocol",
        "KnowledgeBaseProtocol",
        "KnowledgeRecipeProtocol",
        "ObjectStore",
        "RerankerProtocol",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - the table above is the list


def __getattr__(name: str) -> Any:
    """Import a public name from its home when it is first asked for."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, resolved or not."""
    return sorted({*globals(), *_HOME_OF})
