"""What the recipes find in real collections."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from pytest_heta.recipes._options import FULL_TEXT, HYBRID, VECTOR
from pytest_heta.recipes.local import LocalRecipe


@pytest.fixture(scope="module")
def collection():
    folder = os.environ.get("HETA_DATA_DIR")
    if not folder:
        pytest.skip("HETA_DATA_DIR is not set")

    def read(name):
        root = Path(folder, name)
        documents = {row["_id"]: row for row in rows(root / "corpus.jsonl")}
        queries = {row["_id"]: row["text"] for row in rows(root / "queries.jsonl")}
        judgments: dict[str, dict[str, int]] = {}
        for line in (root / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
            query, document, grade = line.split("\t")
            judgments.setdefault(query, {})[document] = max(int(grade), 0)
        return documents, queries, judgments

    return read


def rows(path):
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


class Store:
    def __init__(self, documents):
        self.documents = documents

    def get(self, key):
        return self.documents[key]["text"].encode()

    def metadata(self, key):
        return {"title": self.documents[key].get("title")}


def mean_ndcg(base, mode, queries, judgments, top_k=10):
    values = []
    for query, grades in judgments.items():
        results = base.query(queries[query], mode=mode, top_k=top_k).results
        gains = [grades.get(result.source["document_id"], 0) for result in results]
        ideal = sorted(grades.values(), reverse=True)[:top_k]
        best = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(ideal))
        found = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))
        values.append(found / best)
    return math.fsum(values) / len(values)


def test_cranfield(collection):
    documents, queries, judgments = collection("cranfield")
    base = LocalRecipe().create(
        name="x", objects=Store(documents), source_keys=list(documents), workspace=Path()
    )
    least = {FULL_TEXT: 0.36, VECTOR: 0.30, HYBRID: 0.36}
    for mode, value in least.items():
        assert mean_ndcg(base, mode, queries, judgments) >= value
    assert base.manifest()["warnings"] == ["2 documents without text, never found: 471, 995"]


def test_cmrc2018_in_chinese(collection):
    documents, queries, judgments = collection("cmrc2018")
    judgments = dict(list(judgments.items())[:500])
    base = LocalRecipe(modes=[FULL_TEXT]).create(
        name="x", objects=Store(documents), source_keys=list(documents), workspace=Path()
    )
    assert mean_ndcg(base, FULL_TEXT, queries, judgments) >= 0.96
