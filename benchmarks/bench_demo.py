"""The demo: a handbook in one knowledge base, and six manuals with one each.

Its texts stand in ``data/`` and nothing else is needed. The gates hold for
every mode of every recipe, so that a recipe of one's own can be tried on it;
they lie about 0.05 below what the weakest mode of ``local`` reaches.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_heta import JsonlBenchmark, suite

DATA = Path(__file__).parent / "data"

handbook = suite(
    JsonlBenchmark(DATA / "handbook", name="handbook"),
    evaluators=[
        "ndcg@10",
        "recall@5",
        "mrr@10",
        "hit@1",
        "evidence_recall@5",
        "answer_contains",
    ],
    gates=[
        "*.ndcg@10 >= 0.50",
        "*.recall@5 >= 0.50",
        "*.failure_rate == 0",
        "*.scoring_errors == 0",
        "*.n_scored(ndcg@10) >= 116",
    ],
)

# The same question has another answer in each manual: one index for all of
# them would mix the manuals up. A manual has five or six pages, so the depth
# is small.
manuals = suite(
    JsonlBenchmark(DATA / "manuals", name="manuals"),
    top_k=3,
    evaluators=["ndcg@3", "recall@3", "hit@1", "evidence_recall@3", "answer_contains"],
    gates=[
        "*.ndcg@3 >= 0.60",
        "*.answer_contains >= 0.60",
        "*.failure_rate == 0",
        "*.scoring_errors == 0",
        "*.n_scored(ndcg@3) >= 52",
    ],
)


@pytest.mark.parametrize("name", ["handbook", "manuals"])
def test_every_case_names_evidence(name: str) -> None:
    """Ordinary tests stand beside benchmarks; this one guards the denominators."""
    lines = (DATA / name / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    without = [
        case["case_id"]
        for case in map(json.loads, lines)
        if not any(evidence["relevance"] > 0 for evidence in case["evidence"])
    ]
    assert without == []
