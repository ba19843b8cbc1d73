"""Cranfield: 1,400 abstracts on aerodynamics, 225 questions, graded judgments.

The collection is not part of this repository. Its grades are 1 to 4, 4 the
best. The gates lie 0.02 to 0.03 below what ``local`` reaches, and suit recipes
that have its three modes.
"""

from __future__ import annotations

import pytest

from pytest_heta import BeirBenchmark, suite
from pytest_heta.api import data_dir

root = data_dir()
if root is None or not (root / "cranfield").is_dir():
    pytest.skip(
        "cranfield: set HETA_DATA_DIR (or ini heta_data_dir) to a folder with cranfield/"
        " in BEIR layout",
        allow_module_level=True,
    )

cranfield = suite(
    BeirBenchmark(root / "cranfield", name="cranfield"),
    evaluators=["ndcg@10", "map@100", "recall@10", "recall@100", "mrr@10", "precision@5"],
    gates=[
        "*@local:full_text_search.ndcg@10 >= 0.35",
        "*@local:vector_search.ndcg@10 >= 0.28",
        "*@local:hybrid_search.ndcg@10 >= 0.34",
        "*@local-minilm:vector_search.ndcg@10 >= 0.35",
        "*@local-minilm:hybrid_search.ndcg@10 >= 0.38",
        "*.failure_rate == 0",
    ],
)
