"""The real collections have the counts that their publishers state."""

import os
from pathlib import Path

import pytest

from pytest_heta.benchmarks import benchmark_from_folder

DATA_DIR = os.environ.get("HETA_DATA_DIR", "")


@pytest.mark.skipif(not DATA_DIR, reason="HETA_DATA_DIR does not name the collections' folder")
@pytest.mark.parametrize(
    ("name", "documents", "cases", "judgments", "relevant"),
    [
        ("cranfield", 1400, 225, 1837, 1612),
        ("adi", 82, 35, 170, 170),
        ("npl", 11426, 93, 2083, 2083),
        ("cmrc2018", 848, 3219, 3219, 3219),
    ],
)
def test_counts(load, name, documents, cases, judgments, relevant):
    benchmark = benchmark_from_folder(Path(DATA_DIR) / name)
    loaded = load(benchmark)
    evidence = [e for case in loaded.cases for e in case.expected.evidence]
    assert benchmark.manifest.name == name
    assert len(loaded.documents) == documents
    assert len({document.document_id for document in loaded.documents}) == documents
    assert len(loaded.cases) == cases
    assert len(evidence) == judgments
    assert sum(e.grade > 0 for e in evidence) == relevant
    assert all(
        evaluator.applies(case) for case in loaded.cases for evaluator in benchmark.evaluators()
    )
    known = {document.document_id for document in loaded.documents}
    assert {e.reference_id for e in evidence if e.grade > 0} <= known
