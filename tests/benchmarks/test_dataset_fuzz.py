"""Whatever the files hold, a loader reads them or raises an error of ours."""

import asyncio
import io
import json
import tempfile
from contextlib import redirect_stdout, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_heta.benchmarks import BeirBenchmark, JsonlBenchmark
from pytest_heta.cli import main
from pytest_heta.core._validation import validate_benchmark
from pytest_heta.errors import HetaError
from pytest_heta.models import BenchmarkWorkspace

# Files are written for every example: how long that takes says nothing.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

VALID = {
    "corpus.jsonl": b'{"_id": "dA", "title": "T", "text": "x"}\n',
    "queries.jsonl": b'{"_id": "q1", "text": "x"}\n',
    "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\tdA\t1\n",
    "documents.jsonl": b'{"id": "dA", "text": "x"}\n',
    "cases.jsonl": b'{"id": "q1", "query": "x", "evidence": ["dA"], "answers": ["y"]}\n',
}


def validate(folder):
    """Validate the files as both kinds of benchmark, which never raises."""
    with redirect_stdout(io.StringIO()) as output:
        code = main(["validate", str(folder)])
    assert code == int("error: " in output.getvalue())
    with tempfile.TemporaryDirectory() as name:
        found = asyncio.run(validate_benchmark(JsonlBenchmark(folder), Path(name)))
    assert found.errors or found.documents


def try_to_load(datasets, files):
    """Load the files as both kinds of benchmark; an error of ours is a fair answer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in {**VALID, **files}.items():
            datasets.write_file(folder / file, content)
        for benchmark in (BeirBenchmark(folder), JsonlBenchmark(folder)):
            workspace = BenchmarkWorkspace(root_dir=folder, cache_dir=folder)
            found = benchmark.check_files(workspace).errors
            loaded = None
            with suppress(HetaError):
                loaded = datasets.load(benchmark, folder)
                assert benchmark.manifest
                assert benchmark.evaluators() is not None
            # Checking refuses nothing that loads.
            assert loaded is None or not found
        validate(folder)


def mutated(valid):
    """Valid content, some of its bytes replaced, dropped or put in."""
    edit = st.tuples(st.integers(0, len(valid)), st.integers(0, 4), st.binary(max_size=4))

    def apply(edits):
        content = valid
        for place, dropped, put_in in edits:
            content = content[:place] + put_in + content[place + dropped :]
        return content

    return st.lists(edit, min_size=1, max_size=3).map(apply)


@unhurried
@pytest.mark.parametrize("file", VALID)
@given(data=st.data())
def test_any_bytes(datasets, file, data):
    try_to_load(datasets, {file: data.draw(st.binary(max_size=200) | mutated(VALID[file]))})


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["dA", "q1", ".", "..", "/", "\ud800", "\0", " ", "x.txt", 10**400])
)
NAMES = [
    *("_id", "id", "text", "title", "metadata", "query", "question", "answers", "answer"),
    *("evidence", "reference_id", "document_id", "locator", "relevance", "expected", "value"),
    *("labels", "unit", "documents", "path", "name", "media_type", "data_base64", "source_uri"),
]
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=8,
)
RECORDS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6)


@unhurried
@pytest.mark.parametrize("file", [name for name in VALID if name.endswith("l")])
@given(record=RECORDS)
def test_any_record_with_our_fields(datasets, file, record):
    valid = json.loads(VALID[file])
    try_to_load(
        datasets, {file: "".join(json.dumps(one) + "\n" for one in ({**valid, **record}, record))}
    )


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
IDS = TEXTS.map(str.strip).filter(lambda text: text and not set("\0\t\r\n\ufeff") & set(text))


@unhurried
@given(
    titles=st.dictionaries(IDS, st.tuples(TEXTS, TEXTS), min_size=1, max_size=5),
    queries=st.dictionaries(IDS, TEXTS, min_size=1, max_size=5),
    grades=st.lists(st.integers(-2, 4) | st.floats(0.25, 4, width=32), min_size=25, max_size=25),
    escaped=st.booleans(),
)
def test_generated_datasets_come_back(datasets, titles, queries, grades, escaped):
    def line(record):
        return json.dumps(record, ensure_ascii=escaped) + "\n"

    pairs = [(query, document) for query in queries for document in titles]
    judged = dict(zip(pairs, grades, strict=False))
    rows = "".join(f"{q}\t{d}\t{grade}\n" for (q, d), grade in judged.items())
    with tempfile.TemporaryDirectory() as name:
        folder = datasets.write_beir(
            Path(name),
            [line({"_id": key, "title": a, "text": b}) for key, (a, b) in titles.items()],
            [line({"_id": key, "text": text}) for key, text in queries.items()],
            "query-id\tcorpus-id\tscore\n" + rows,
        )
        beir = datasets.load(BeirBenchmark(folder), folder)
        datasets.write_file(
            folder / "documents.jsonl",
            [line({"id": key, "title": a, "text": b}) for key, (a, b) in titles.items()],
        )
        datasets.write_file(
            folder / "cases.jsonl",
            [
                line(
                    {
                        "id": key,
                        "query": text,
                        "evidence": [
                            {"document_id": document, "relevance": judged[key, document]}
                            for document in titles
                        ],
                    }
                )
                for key, text in queries.items()
            ],
        )
        jsonl = datasets.load(JsonlBenchmark(folder), folder)
    for loaded in (beir, jsonl):
        assert [d.document_id for d in loaded.documents] == list(titles)
        for document, parts in zip(loaded.documents, titles.values(), strict=True):
            wanted = "\n\n".join(part for part in parts if part.strip())
            assert document.data.decode("utf-8") == wanted
        assert {case.case_id: case.query for case in loaded.cases} == queries
        for query in queries:
            wanted = {document: judged[query, document] for document in titles}
            assert loaded.grades(query) == wanted
