"""The reference of the dataset files says what the adapters do."""

import inspect
import re
from pathlib import Path

import pytest

from pytest_heta.benchmarks import BeirBenchmark, JsonlBenchmark, _cases, _documents, beir
from pytest_heta.errors import HetaError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "datasets.md"
FILES = re.compile(r"^<!-- file: ([^\n]+) -->\n```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the docs are not beside the tests")


@pytest.fixture
def page():
    return PAGE.read_text(encoding="utf-8")


def part(page, heading):
    """Return a section, down to the next heading of its level or above."""
    level = heading.split(" ")[0]
    below = page.split(f"\n{heading}\n", 1)[1]
    return re.split(rf"^#{{1,{len(level)}}} ", below, maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize(
    ("heading", "fields"),
    [
        ("### corpus.jsonl", _documents._BEIR_FIELDS),
        ("### queries.jsonl", beir._QUERY_FIELDS),
        ("### documents.jsonl", _documents._FIELDS),
        ("### cases.jsonl", _cases._FIELDS),
        ("### cases.jsonl", _cases._EVIDENCE_FIELDS),
        ("### BeirBenchmark", tuple(inspect.signature(BeirBenchmark).parameters)),
        ("### JsonlBenchmark", tuple(inspect.signature(JsonlBenchmark).parameters)),
    ],
)
def test_every_field_and_argument_is_described(page, heading, fields):
    described = set(re.findall(r"`(\w+)`", part(page, heading)))
    assert set(fields) - described == set()


def test_examples_load(page, datasets, tmp_path):
    for name, text in FILES.findall(page):
        datasets.write_file(tmp_path / name, text)
    shop = datasets.load(BeirBenchmark("shop", strict=True), tmp_path)
    assert (len(shop.documents), shop.grades("q1"), shop.grades("q2")) == (
        2,
        {"7": 2, "slate": 0},
        {"slate": 0.5},
    )
    manual = datasets.load(JsonlBenchmark("manual", strict=True), tmp_path)
    assert manual.document("wall").path.read_text(encoding="utf-8").startswith("# Walls")
    assert manual.case("mortar").expected.answers == ("mortar",)
    one_file = datasets.load(JsonlBenchmark("one-file", strict=True), tmp_path)
    assert {unit.unit_id: unit.document_ids for unit in one_file.units} == {
        "1": ("a", "b"),
        "2": ("b",),
    }


CASE = {"case_id": "c", "query": "x"}
FAULTS = [
    ("jsonl", {"cases": [CASE, '{"case_id": "d", "query": x}\n']}),
    ("jsonl", {"cases": [CASE, {**CASE, "case_id": "d", "evidnce": []}]}),
    ("jsonl", {"documents": [{"id": 7, "text": "x"}, {"id": "7", "text": "x"}]}),
    ("beir", {"qrels": "q1\tdA\t1\nq1\tdB\thigh\n"}),
    ("beir", {"qrels": "q1\tdA\t1\nq9\tdB\t1\n"}),
]


def test_errors_read_as_printed(page, beir, jsonl, load):
    printed = part(page, "## Errors").split("<!-- errors -->\n```text\n")[1].split("\n```")[0]
    lines = []
    for kind, files in FAULTS:
        if kind == "beir":
            benchmark = BeirBenchmark(beir(**files))
        else:
            given = {"cases": [CASE], "documents": [{"id": "d", "text": "x"}], **files}
            benchmark = JsonlBenchmark(jsonl(**given))
        with pytest.raises(HetaError) as caught:
            load(benchmark)
        folder = f"{benchmark.path}/"
        lines.append(str(caught.value).replace("\\", "/").replace(folder.replace("\\", "/"), ""))
    assert lines == printed.splitlines()
