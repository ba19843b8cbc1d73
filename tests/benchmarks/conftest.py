"""Datasets written on the fly, and read as a run reads them."""

import asyncio
import json
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from pytest_heta.models import BenchmarkWorkspace


class Loaded(NamedTuple):
    """Everything that a benchmark yields."""

    prepared: object
    documents: list
    cases: list
    units: list

    def document(self, document_id):
        return next(d for d in self.documents if d.document_id == document_id)

    def case(self, case_id):
        return next(c for c in self.cases if c.case_id == case_id)

    def grades(self, case_id):
        evidence = self.case(case_id).expected.evidence
        return {e.reference_id: e.metadata["relevance"] for e in evidence}


def load_all(benchmark, root_dir):
    async def read():
        workspace = BenchmarkWorkspace(root_dir=root_dir, cache_dir=root_dir / "cache")
        prepared = await benchmark.prepare(workspace)
        return Loaded(
            prepared,
            [document async for document in benchmark.documents(prepared)],
            [case async for case in benchmark.cases(prepared)],
            [unit async for unit in benchmark.run_units(prepared)],
        )

    return asyncio.run(read())


def write_file(path, content):
    """Write bytes or text as they are, lists one JSON value on each line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, list):
        content = "".join(
            line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) + "\n"
            for line in content
        )
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def write_beir(folder, corpus, queries, qrels):
    write_file(folder / "corpus.jsonl", corpus)
    write_file(folder / "queries.jsonl", queries)
    for split, rows in (qrels if isinstance(qrels, dict) else {"test": qrels}).items():
        write_file(folder / "qrels" / f"{split}.tsv", rows)
    return folder


CORPUS = [
    {"_id": "dA", "title": "Roofs", "text": "tin roof"},
    {"_id": "dB", "title": "", "text": "slate roof"},
]
QUERIES = [{"_id": "q1", "text": "tin"}, {"_id": "q2", "text": "slate"}]
QRELS = "query-id\tcorpus-id\tscore\nq1\tdA\t2\nq2\tdB\t1\n"


@pytest.fixture(scope="session")
def datasets():
    """The functions behind the fixtures below, for tests with folders of their own."""
    return SimpleNamespace(load=load_all, write_file=write_file, write_beir=write_beir)


@pytest.fixture
def load(tmp_path):
    """Read all that a benchmark yields."""
    return lambda benchmark: load_all(benchmark, tmp_path)


@pytest.fixture
def beir(tmp_path):
    """Write a BEIR folder; every file that is not given is a valid small one."""

    def write(corpus=CORPUS, queries=QUERIES, qrels=QRELS, name="data"):
        return write_beir(tmp_path / name, corpus, queries, qrels)

    return write


@pytest.fixture
def jsonl(tmp_path):
    """Write a folder with a cases file and, if given, a documents file."""

    def write(cases, documents=None, name="data"):
        write_file(tmp_path / name / "cases.jsonl", cases)
        if documents is not None:
            write_file(tmp_path / name / "documents.jsonl", documents)
        return tmp_path / name

    return write
