"""The workload that the peers share, as a suite: measured by ``measure.py`` beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_heta import (
    BenchmarkCase,
    BenchmarkDocument,
    BenchmarkEvidence,
    BenchmarkExpected,
    BenchmarkManifest,
    BenchmarkResource,
    BenchmarkRunUnit,
    BenchmarkWorkspace,
    PreparedBenchmark,
    suite,
)

REASON = "the workload comes with the peer comparison: see docs/performance.md"
w = pytest.importorskip("workload", reason=REASON)
if not hasattr(w, "make_cases"):  # this folder's own name is importable as well
    pytest.skip(REASON, allow_module_level=True)

from workload_cases import CASES  # noqa: E402 - it needs the workload

DOCUMENT_COUNT = 1000


class WorkloadBenchmark:
    """The workload's cases with their graded judgments; its documents are one word each."""

    manifest = BenchmarkManifest(name="workload", build_scope="corpus" if w.UNITS == 1 else "group")

    def resources(self) -> Sequence[BenchmarkResource]:
        return ()

    async def prepare(self, workspace: BenchmarkWorkspace) -> PreparedBenchmark:
        return PreparedBenchmark(manifest=self.manifest, root_dir=Path(workspace.root_dir))

    async def documents(self, prepared: PreparedBenchmark) -> AsyncIterator[BenchmarkDocument]:
        for number in range(DOCUMENT_COUNT):
            yield BenchmarkDocument(document_id=f"d{number}", name=f"d{number}.txt", data=b"text")

    async def cases(self, prepared: PreparedBenchmark) -> AsyncIterator[BenchmarkCase]:
        for case in CASES:
            evidence = tuple(
                BenchmarkEvidence(reference_id=document_id, metadata={"relevance": grade})
                for document_id, grade in case.qrels.items()
            )
            yield BenchmarkCase(
                case_id=case.id, query=case.query, expected=BenchmarkExpected(evidence=evidence)
            )

    async def run_units(self, prepared: PreparedBenchmark) -> AsyncIterator[BenchmarkRunUnit]:
        if w.UNITS == 1:
            yield BenchmarkRunUnit(unit_id="u0")
            return
        cases: dict[int, list[Any]] = {}
        for case in CASES:
            cases.setdefault(case.unit, []).append(case)
        for unit, asked in cases.items():
            # The judged documents, so that none is missing from its knowledge base.
            judged = dict.fromkeys(document_id for case in asked for document_id in case.qrels)
            yield BenchmarkRunUnit(
                unit_id=f"u{unit}",
                document_ids=tuple(judged),
                case_ids=tuple(case.id for case in asked),
            )

    def evaluators(self) -> Sequence[str]:
        return ["recall@5", "ndcg@10"]


workload = suite(WorkloadBenchmark(), top_k=w.TOP_K)
