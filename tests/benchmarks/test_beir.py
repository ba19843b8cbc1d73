"""A BEIR folder as a benchmark: which documents and cases it has, and its faults."""

import asyncio
import tracemalloc
from math import log2

import pytest

from pytest_heta.benchmarks import BeirBenchmark
from pytest_heta.errors import (
    ConfigurationError,
    DatasetInvalidError,
    DatasetNotFoundError,
    DuplicateIdError,
    HetaError,
    ModelInvalidError,
)
from pytest_heta.evaluators import AnswerContains
from pytest_heta.models import BenchmarkWorkspace, QueryResponse, QueryResult, raw_key
from pytest_heta.protocols import BenchmarkProtocol


def text_of(document):
    return document.data.decode("utf-8")


def test_folder_becomes_documents_cases_and_one_unit(beir, load):
    benchmark = BeirBenchmark(beir(name="my-data"))
    loaded = load(benchmark)
    assert isinstance(benchmark, BenchmarkProtocol)
    assert (benchmark.manifest.name, benchmark.manifest.split) == ("my-data", "test")
    assert benchmark.manifest.build_scope == "corpus"
    assert [d.document_id for d in loaded.documents] == ["dA", "dB"]
    assert [text_of(d) for d in loaded.documents] == ["Roofs\n\ntin roof", "slate roof"]
    assert loaded.document("dA").name == "dA.txt"
    assert loaded.document("dA").media_type == "text/plain"
    assert loaded.document("dA").metadata == {"title": "Roofs"}
    assert [(c.case_id, c.query) for c in loaded.cases] == [("q1", "tin"), ("q2", "slate")]
    assert (loaded.grades("q1"), loaded.grades("q2")) == ({"dA": 2}, {"dB": 1})
    (unit,) = loaded.units
    assert (unit.unit_id, unit.document_ids, unit.case_ids) == ("corpus", (), ())


def test_reading_twice_gives_the_same(beir, load):
    benchmark = BeirBenchmark(beir())
    assert load(benchmark) == load(benchmark)


def test_metadata_and_other_fields_reach_document_and_case(beir, load):
    loaded = load(
        BeirBenchmark(
            beir(
                corpus=[{"_id": "dA", "text": "x", "url": "u", "metadata": {"year": 1960}}],
                queries=[{"_id": "q1", "text": "x", "kind": "k", "metadata": {"num": "1"}}],
                qrels="q1 dA 1\n",
            )
        )
    )
    assert loaded.documents[0].metadata == {"url": "u", "year": 1960}
    assert loaded.cases[0].metadata == {"kind": "k", "num": "1"}


# --- ids ---


@pytest.mark.parametrize("document_id", [7, "7", 7.0, " 7 "])
@pytest.mark.parametrize("query_id", [1, "1", 1.0])
@pytest.mark.parametrize("qrels", ["1 7 1\n", "1\t7\t1\n", "1 0 7 1\n"])
def test_ids_match_whether_written_as_numbers_or_strings(beir, load, document_id, query_id, qrels):
    benchmark = BeirBenchmark(
        beir(
            corpus=[{"_id": document_id, "text": "tin roof"}],
            queries=[{"_id": query_id, "text": "tin"}],
            qrels=qrels,
        )
    )
    loaded = load(benchmark)
    assert [d.document_id for d in loaded.documents] == ["7"]
    assert [c.case_id for c in loaded.cases] == ["1"]
    response = QueryResponse(
        mode="m",
        results=(
            QueryResult(
                id="chunk", source={"source_key": raw_key(benchmark.manifest, loaded.documents[0])}
            ),
        ),
    )
    for evaluator in benchmark.evaluators():
        score = asyncio.run(evaluator.evaluate(case=loaded.cases[0], response=response))
        assert score.value == 1.0


@pytest.mark.parametrize(
    ("document_id", "name"),
    [
        ("a/b", "a_b.txt"),
        ("https://x.org/?q=1&r", "https___x.org__q=1_r.txt"),
        ("con", "_con.txt"),
        ("a:b|c", "a_b_c.txt"),
        ("../x", "_._x.txt"),
        ("文档", "文档.txt"),
        ("x" * 500, "x" * 60 + ".txt"),
    ],
)
def test_document_names_are_portable(beir, load, document_id, name):
    folder = beir(corpus=[{"_id": document_id, "text": "x"}], qrels=f"q1\t{document_id}\t1\n")
    loaded = load(BeirBenchmark(folder))
    assert (loaded.documents[0].document_id, loaded.documents[0].name) == (document_id, name)


def test_duplicate_document_ids_name_both_lines(beir, load):
    folder = beir(corpus=[{"_id": 7, "text": "a"}, "\n", {"_id": "7", "text": "b"}])
    with pytest.raises(DuplicateIdError) as caught:
        load(BeirBenchmark(folder))
    path = folder / "corpus.jsonl"
    assert str(caught.value).startswith(
        f"[duplicate-id] {path}:3: document id '7' stands twice, first at {path}:1"
    )


def test_duplicate_query_ids_name_both_lines(beir, load):
    folder = beir(queries=[{"_id": "q1", "text": "a"}, {"_id": "q1", "text": "b"}])
    with pytest.raises(DuplicateIdError, match=r"queries.jsonl:2: query id 'q1' .*queries.jsonl:1"):
        load(BeirBenchmark(folder))


# --- contents ---


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ({"text": "x"}, "x"),
        ({"title": None, "text": "x"}, "x"),
        ({"title": "", "text": "x"}, "x"),
        ({"title": " ", "text": "x"}, "x"),
        ({"title": "T", "text": None}, "T"),
        ({"title": "T", "text": ""}, "T"),
        ({"title": None, "text": None}, ""),
        ({"title": "", "text": ""}, ""),
        ({"title": "T", "text": " x\n"}, "T\n\n x\n"),
        ({"title": "naïve", "text": "咖啡 🚲 \x00"}, "naïve\n\n咖啡 🚲 \x00"),
    ],
)
def test_title_and_text_that_are_absent_or_null_are_empty(beir, load, fields, content):
    loaded = load(BeirBenchmark(beir(corpus=[{"_id": "dA", **fields}], qrels="q1 dA 1\n")))
    assert text_of(loaded.documents[0]) == content
    assert loaded.documents[0].metadata.get("title") != "None"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "x"}, '"_id" is missing'),
        ({"_id": None, "text": "x"}, '"_id" is missing'),
        ({"_id": "a", "title": "x"}, '"text" is missing'),
        ({"_id": "a", "body": "x"}, '"text" is missing'),
        ({"_id": "a", "text": 5}, '"text" = 5 must be a string'),
        ({"_id": "a", "text": "x", "title": ["T"]}, '"title" = '),
        ({"_id": "a", "text": "x", "metadata": "m"}, '"metadata" = '),
        ({"_id": "a", "text": "x", "Title": "T"}, 'did you mean "title"'),
    ],
)
def test_wrong_document_is_named_with_its_line(beir, load, record, message):
    folder = beir(corpus=[{"_id": "dA", "text": "x"}, record])
    with pytest.raises(DatasetInvalidError, match=message) as caught:
        load(BeirBenchmark(folder))
    assert caught.value.where == f"{folder / 'corpus.jsonl'}:2"


@pytest.mark.parametrize(
    "record", [{"_id": "q2"}, {"_id": "q2", "text": None}, {"_id": "q2", "text": 1}, {"text": "x"}]
)
def test_wrong_query_is_named_with_its_line(beir, load, record):
    folder = beir(queries=[{"_id": "q1", "text": "x"}, record])
    with pytest.raises(DatasetInvalidError, match=r"queries.jsonl:2: ") as caught:
        load(BeirBenchmark(folder))
    assert caught.value.where == f"{folder / 'queries.jsonl'}:2"


# --- files ---

BOM = b"\xef\xbb\xbf"


def test_byte_order_marks_crlf_and_blank_lines_change_nothing(beir, load):
    plain = load(BeirBenchmark(beir()))
    folder = beir()
    for path in folder.rglob("*.*"):
        lines = path.read_bytes().splitlines()
        path.write_bytes(BOM + b"\r\n".join(line + b"\r\n  \r\n" for line in lines))
    decorated = load(BeirBenchmark(folder))
    assert decorated.documents == plain.documents
    assert decorated.cases == plain.cases


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_broken_line_is_never_a_partial_load(beir, load, name):
    folder = beir()
    path = folder / name
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([lines[0], lines[1].rstrip(b"}") + b",}", *lines[2:]]))
    with pytest.raises(DatasetInvalidError) as caught:
        load(BeirBenchmark(folder))
    assert caught.value.where == f"{path}:2"


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_missing_file_names_file_folder_and_all_that_is_expected(beir, load, name):
    folder = beir()
    (folder / name).unlink()
    with pytest.raises(DatasetNotFoundError) as caught:
        load(BeirBenchmark(folder))
    assert name.rsplit("/", 1)[-1] in caught.value.message
    assert caught.value.where == str((folder / name).parent)
    assert "corpus.jsonl, queries.jsonl, qrels/test.tsv" in caught.value.hint


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_empty_file_is_an_error(beir, load, name):
    folder = beir()
    (folder / name).write_bytes(b"")
    with pytest.raises(DatasetInvalidError, match="holds no") as caught:
        load(BeirBenchmark(folder))
    assert caught.value.where == str(folder / name)


def test_missing_folder_is_said_to_be_missing(load, tmp_path):
    with pytest.raises(DatasetNotFoundError, match="does not exist"):
        load(BeirBenchmark(tmp_path / "nowhere"))


def test_missing_split_lists_the_splits_that_are_there(beir, load):
    folder = beir(qrels={"dev": "q1 dA 1\n", "train": "q2 dB 1\n"})
    (folder / "qrels" / "._dev.tsv").write_bytes(b"\0")
    with pytest.raises(DatasetNotFoundError, match=r"'test.tsv' is missing.*there: dev, train"):
        load(BeirBenchmark(folder))


def test_relative_path_is_looked_up_in_the_root_then_in_the_current_folder(
    beir, load, tmp_path, monkeypatch
):
    beir(name="here")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert load(BeirBenchmark("here")).prepared.root_dir == tmp_path / "here"
    beir(name="elsewhere/there")
    assert load(BeirBenchmark("there")).prepared.root_dir == elsewhere / "there"


def test_resources_are_the_three_files(beir):
    folder = beir()
    benchmark = BeirBenchmark(folder, split="dev")
    assert [resource.uri for resource in benchmark.resources()] == [
        str(folder / "corpus.jsonl"),
        str(folder / "queries.jsonl"),
        str(folder / "qrels/dev.tsv"),
    ]
    assert repr(benchmark) == f"BeirBenchmark({str(folder)!r}, split='dev')"


# --- which queries are cases ---

FOUR = [{"_id": f"q{number}", "text": "x"} for number in range(1, 5)]


def positives(loaded):
    return {
        case.case_id: [e.reference_id for e in case.expected.evidence if e.grade > 0]
        for case in loaded.cases
    }


def test_queries_without_positive_judgment_are_cases_that_no_measure_applies_to(beir, load):
    # q2 has no row at all, q3 only one of grade 0, q4 one below 0.
    benchmark = BeirBenchmark(beir(queries=FOUR, qrels="q1 dA 1\nq3 dB 0\nq4 dB -1\n"))
    loaded = load(benchmark)
    assert positives(loaded) == {"q1": ["dA"], "q2": [], "q3": [], "q4": []}
    assert loaded.grades("q3") == {"dB": 0}
    assert loaded.grades("q4") == {"dB": -1}
    applies = {
        case.case_id: {evaluator.applies(case) for evaluator in benchmark.evaluators()}
        for case in loaded.cases
    }
    assert applies == {"q1": {True}, "q2": {False}, "q3": {False}, "q4": {False}}


def test_queries_of_other_splits_are_no_cases(beir, load):
    folder = beir(queries=FOUR, qrels={"test": "q1 dA 1\n", "train": "q2 dA 1\nq3 dA 0\n"})
    assert list(positives(load(BeirBenchmark(folder)))) == ["q1", "q4"]
    assert list(positives(load(BeirBenchmark(folder, split="train")))) == ["q2", "q3", "q4"]


@pytest.mark.parametrize(("unjudged", "ids"), [(True, "q1 q2 q3 q4"), (False, "q1")])
def test_which_unjudged_queries_are_cases_can_be_said(beir, load, unjudged, ids):
    folder = beir(queries=FOUR, qrels={"test": "q1 dA 1\n", "train": "broken"})
    loaded = load(BeirBenchmark(folder, unjudged_queries=unjudged))
    assert [case.case_id for case in loaded.cases] == ids.split()


def test_broken_judgments_of_another_split_are_an_error_where_they_matter(beir, load):
    folder = beir(qrels={"test": "q1 dA 1\nq2 dB 1\n", "train": "broken"})
    assert len(load(BeirBenchmark(folder)).cases) == 2
    folder = beir(queries=FOUR, qrels={"test": "q1 dA 1\n", "train": "broken"})
    with pytest.raises(DatasetInvalidError, match=r"train.tsv:1"):
        load(BeirBenchmark(folder))


@pytest.mark.parametrize(
    ("rows", "more"), [("q9 dA 1\n", ""), ("q9 dA 1\nq8 dA 1\n", r" \(and 1 m")]
)
def test_judged_query_that_does_not_exist_is_an_error_with_its_line(beir, load, rows, more):
    folder = beir(qrels=f"q1 dA 1\n{rows}q2 dA 1\n")
    with pytest.raises(DatasetInvalidError, match=f"'q9' is judged but not in .*{more}") as caught:
        load(BeirBenchmark(folder))
    assert caught.value.where == f"{folder / 'qrels' / 'test.tsv'}:2"


def test_cases_come_in_the_order_of_the_queries_and_evidence_in_that_of_the_judgments(beir, load):
    folder = beir(queries=list(reversed(FOUR)), qrels="q1 dB 1\nq4 dA 1\nq1 dA 2\nq3 dA 1\n")
    loaded = load(BeirBenchmark(folder))
    assert [case.case_id for case in loaded.cases] == ["q4", "q3", "q2", "q1"]
    assert list(loaded.grades("q1").items()) == [("dB", 1), ("dA", 2)]


def test_fractional_grades_are_kept(beir, load):
    benchmark = BeirBenchmark(beir(qrels="q1\tdA\t0.5\nq1\tdB\t1.5\n"))
    loaded = load(benchmark)
    assert loaded.grades("q1") == {"dA": 0.5, "dB": 1.5}
    response = QueryResponse(mode="m", results=(QueryResult(id="dA"), QueryResult(id="dB")))
    ndcg = benchmark.evaluators()[0]
    score = asyncio.run(ndcg.evaluate(case=loaded.case("q1"), response=response))
    expected = (0.5 + 1.5 / log2(3)) / (1.5 + 0.5 / log2(3))
    assert score.value == pytest.approx(expected, abs=1e-12)


# --- gold documents ---


def test_gold_documents_that_do_not_exist_are_kept(beir, load):
    loaded = load(BeirBenchmark(beir(qrels="q1 dA 1\nq1 ghost9 1\n")))
    assert loaded.grades("q1") == {"dA": 1, "ghost9": 1}


def test_strict_refuses_gold_documents_that_do_not_exist(beir, load):
    folder = beir(qrels="q1 dA 1\nq1 ghost9 1\nq2 ghost8 0\n")
    with pytest.raises(DatasetInvalidError, match=r"1 gold document is .*: 'ghost9'") as caught:
        load(BeirBenchmark(folder, strict=True))
    assert caught.value.where == f"{folder / 'qrels' / 'test.tsv'}:2"


def test_strict_accepts_what_is_complete(beir, load):
    assert len(load(BeirBenchmark(beir(), strict=True)).documents) == 2


# --- manifest and evaluators ---


def test_default_evaluators_look_ten_deep(beir):
    names = [evaluator.name for evaluator in BeirBenchmark(beir()).evaluators()]
    assert names == ["ndcg@10", "map@10", "recall@10", "mrr@10", "hit@10"]


def test_evaluators_can_be_chosen(beir):
    own = AnswerContains()
    benchmark = BeirBenchmark(beir(), evaluators=["map@100", own])
    assert [evaluator.name for evaluator in benchmark.evaluators()] == ["map@100", own.name]
    assert benchmark.evaluators()[1] is own
    assert BeirBenchmark(beir(), evaluators=[]).evaluators() == ()


def test_unknown_evaluator_is_a_configuration_error(beir):
    with pytest.raises(ConfigurationError):
        BeirBenchmark(beir(), evaluators=["ncdg@10"]).evaluators()


def test_manifest_says_what_it_is_told(beir):
    about = {"license": "CC BY 4.0", "metadata": {"tuned_on": "dev"}}
    manifest = BeirBenchmark(beir(), name="x", version="2", split="dev", about=about).manifest
    assert (manifest.name, manifest.version, manifest.split) == ("x", "2", "dev")
    assert (manifest.license, manifest.metadata) == ("CC BY 4.0", {"tuned_on": "dev"})


@pytest.mark.parametrize("wrong", [{"name": "a b"}, {"split": "a/b"}, {"about": {"licence": "x"}}])
def test_manifest_that_is_not_legal_is_refused_at_once(beir, wrong):
    with pytest.raises(ModelInvalidError, match="BenchmarkManifest"):
        BeirBenchmark(beir(), **wrong)


# --- streaming ---


def test_documents_are_read_lazily(beir, tmp_path):
    folder = beir(corpus=[{"_id": "a", "text": "x"}, "{broken\n"])

    async def first_then_second():
        benchmark = BeirBenchmark(folder)
        prepared = await benchmark.prepare(
            BenchmarkWorkspace(root_dir=tmp_path, cache_dir=tmp_path)
        )
        documents = benchmark.documents(prepared)
        first = await anext(documents)
        with pytest.raises(HetaError, match=r"corpus.jsonl:2"):
            await anext(documents)
        return first

    assert asyncio.run(first_then_second()).document_id == "a"


def test_iteration_that_is_left_early_closes_the_files(beir, tmp_path):
    # An open file would be a ResourceWarning, which is an error here.
    async def look():
        benchmark = BeirBenchmark(beir())
        prepared = await benchmark.prepare(
            BenchmarkWorkspace(root_dir=tmp_path, cache_dir=tmp_path)
        )
        async for _ in benchmark.documents(prepared):
            break
        async for _ in benchmark.cases(prepared):
            break

    asyncio.run(look())


def test_large_corpus_is_not_held_in_memory(beir, tmp_path):
    count, length = 2000, 10_000
    folder = beir(corpus=[{"_id": n, "text": "x" * length} for n in range(count)], qrels="q1 0 1")

    async def stream():
        benchmark = BeirBenchmark(folder)
        prepared = await benchmark.prepare(
            BenchmarkWorkspace(root_dir=tmp_path, cache_dir=tmp_path)
        )
        return sum([1 async for _ in benchmark.documents(prepared)])

    tracemalloc.start()
    try:
        assert asyncio.run(stream()) == count
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < count * length / 10
