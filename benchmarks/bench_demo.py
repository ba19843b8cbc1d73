"""The demo: a handbook in one knowledge base, and six manuals with one each.

Its texts stand in ``data/``; nothing else is needed. Gates without a recipe
hold for every mode of every recipe, so that one of your own can be tried on
it; they lie 0.05 below what the weakest mode of ``local`` reaches. Gates with
``@local`` hold the embedded recipe to its own level, and are skipped for
others.
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
        "*.ndcg@10 >= 0.54",
        "*@local:full_text_search.ndcg@10 >= 0.62",
        "*@local:hybrid_search.ndcg@10 >= 0.62",
        "*.failure_rate == 0",
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
        "*.ndcg@3 >= 0.66",
        "*@local:hybrid_search.ndcg@3 >= 0.78",
        "*.failure_rate == 0",
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
