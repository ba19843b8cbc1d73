"""CMRC 2018 as retrieval: 848 Chinese paragraphs, 3,219 questions, one paragraph right for each.

The collection is not part of this repository. Only the lexical mode is asked:
the embedding models of the built-in recipes know English. ``--heta-mode``
asks another mode, and the gate on the lexical one is skipped then.
"""

from __future__ import annotations

import pytest

from pytest_heta import BeirBenchmark, suite
from pytest_heta.api import data_dir

root = data_dir()
if root is None or not (root / "cmrc2018").is_dir():
    pytest.skip(
        "cmrc2018: set HETA_DATA_DIR (or ini heta_data_dir) to a folder with cmrc2018/"
        " in BEIR layout",
        allow_module_level=True,
    )

cmrc2018 = suite(
    BeirBenchmark(root / "cmrc2018", name="cmrc2018"),
    modes=("full_text_search",),
    evaluators=["ndcg@10", "mrr@10", "hit@1", "hit@10"],
    gates=[
        "full_text_search.ndcg@10 >= 0.96",
        "*.failure_rate == 0",
    ],
)
