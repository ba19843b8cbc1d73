"""The layouts of judgments: each is told by its first row, none loses that row."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_heta.benchmarks._qrels import read_judged_queries, read_judgments
from pytest_heta.errors import DatasetInvalidError, DatasetNotFoundError, DuplicateIdError


@pytest.fixture
def read(tmp_path):
    path = tmp_path / "test.tsv"

    def write_and_read(content):
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        judgments = read_judgments(path, "files")
        return {
            query: {document: judgment.grade for document, judgment in judged.items()}
            for query, judged in judgments.items()
        }

    write_and_read.path = path
    return write_and_read


WANTED = {"q1": {"dA": 2, "dB": 0}, "q2": {"dA": 1}}

LAYOUTS = {
    "BEIR": "query-id\tcorpus-id\tscore\nq1\tdA\t2\nq1\tdB\t0\nq2\tdA\t1\n",
    "BEIR, CRLF": "query-id\tcorpus-id\tscore\r\nq1\tdA\t2\r\nq1\tdB\t0\r\nq2\tdA\t1\r\n",
    "blank lines": "\n\nquery-id\tcorpus-id\tscore\n \nq1\tdA\t2\n\t\t\nq1\tdB\t0\nq2\tdA\t1",
    "BEIR, spaces": "query-id corpus-id score\nq1 dA 2\nq1   dB 0\nq2 dA 1\n",
    "header by spaces, rows by tabs": "query-id corpus-id score\nq1\tdA\t2\nq1\tdB\t0\nq2\tdA\t1\n",
    "underscores and capitals": "Query_ID\tCorpus_ID\tScore\nq1\tdA\t2\nq1\tdB\t0\nq2\tdA\t1\n",
    "other names": "qid\tdocno\trel\nq1\tdA\t2\nq1\tdB\t0\nq2\tdA\t1\n",
    "three columns": "q1\tdA\t2\nq1\tdB\t0\nq2\tdA\t1\n",
    "three columns, spaces": "q1 dA 2\nq1 dB 0\nq2 dA 1\n",
    "TREC": "q1 0 dA 2\nq1 0 dB 0\nq2 0 dA 1\n",
    "TREC, tabs": "q1\t0\tdA\t2\nq1\t0\tdB\t0\nq2\t0\tdA\t1\n",
    "TREC, Q0": "q1 Q0 dA 2\nq1 Q0 dB 0\nq2 q0 dA 1\n",
    "TREC, judging rounds": "q1 0.5 dA 2\nq1 4 dB 0\nq2 4.5 dA 1\n",
    "TREC with a header": "qid\titer\tdocno\trel\nq1\t0\tdA\t2\nq1\t0\tdB\t0\nq2\t0\tdA\t1\n",
    "signs, fractions, exponents": "q1\tdA\t+2.0\nq1\tdB\t0e3\nq2\tdA\t.1e1\n",
    "spaces around": "q1\t dA\t2 \n q1\tdB \t 0\nq2\tdA\t1\n",
}


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["", "BOM"])
@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_reads_the_same(read, text, bom):
    assert read(bom + text.encode("utf-8")) == WANTED


def test_numeric_ids_of_trec_stay_apart_from_grades(read):
    assert read("1 0 184 2\n1 0 29 0\n") == {"1": {"184": 2, "29": 0}}
    assert read("1 184 2\n1 29 0\n") == {"1": {"184": 2, "29": 0}}


def test_ids_with_spaces_need_tabs(read):
    assert read("q 1\tAda Lovelace\t1\n") == {"q 1": {"Ada Lovelace": 1}}
    with pytest.raises(DatasetInvalidError, match=r":1: .*'Ada'"):
        read("q1 Ada Lovelace 1\n")


def test_ids_of_any_script(read):
    assert read("查询\t文档 一\t1\n") == {"查询": {"文档 一": 1}}


def test_grades_keep_fraction_and_sign(read):
    grades = read("q\ta\t0.5\nq\tb\t1.5\nq\tc\t-1\nq\td\t3\n")["q"]
    assert grades == {"a": 0.5, "b": 1.5, "c": -1, "d": 3}
    assert isinstance(grades["d"], int)


@pytest.mark.parametrize(
    "grade",
    [
        *("nan", "NaN", "inf", "-inf", "Infinity", "high", "1_0", "0x1", "1,5", "1e999", "9" * 400),
        *("--1", "1.2.3", "１", '"1"', "true", "."),
    ],
)
@pytest.mark.parametrize("header", ["query-id\tcorpus-id\tscore\n", "q0\tdA\t1\n"])
def test_grades_that_are_no_numbers_are_named_with_their_line(read, header, grade):
    with pytest.raises(DatasetInvalidError, match="grade") as caught:
        read(f"{header}q1\tdA\t{grade}\n")
    assert caught.value.where == f"{read.path}:2"


WRONG = {
    "grade missing in the first row": ("q1\tdA\n", 1, "2 columns"),
    "one column": ("q1\n", 1, "1 columns"),
    "run file": ("q1 Q0 dA 1 2.5 bm25\n", 1, "6 columns"),
    "unknown header": ("foo\tbar\tbaz\nq1\tdA\t1\n", 1, "neither a header nor a judgment"),
    "header in another order": ("corpus-id\tquery-id\tscore\nq1\tdA\t1\n", 1, "neither"),
    "header of four, unknown": ("query-id\tcorpus-id\tscore\tnote\nq1\tdA\t1\tx\n", 1, "neither"),
    "first row without a grade": ("q1\tdA\thigh\nq1\tdB\t1\n", 1, "neither"),
    "comma separated": ("q1,dA,1\n", 1, "1 columns"),
    "fewer columns later": ("q1\tdA\t1\nq1\tdB\n", 2, "2 columns, where the first row has 3"),
    "more columns later": ("q1\tdA\t1\nq1\t0\tdB\t1\n", 2, "4 columns"),
    "TREC, then three": ("q1 0 dA 1\nq1 dB 1\n", 2, "3 columns"),
    "tabs, then spaces": ("q1\tdA\t1\nq1 dB 1\n", 2, "1 columns"),
    "trailing tab": ("q1\tdA\t1\t\n", 1, "neither"),
    "header twice": (
        "query-id\tcorpus-id\tscore\nq1\tdA\t1\nquery-id\tcorpus-id\tscore\n",
        3,
        "'score'",
    ),
    "empty query": ("q1\tdA\t1\n\tdA\t1\n", 2, "the query id is empty"),
    "empty document": ("q1\t\t1\n", 1, "the document id is empty"),
    "empty document in TREC": ("q1\t0\t \t1\n", 1, "the document id is empty"),
    "four columns, second a word": ("q1 x dA 1\n", 1, "iteration"),
    "four columns, second a word later": ("q1 0 dA 1\nq1 x dA 1\n", 2, "iteration"),
    "which column is the document": ("1 28 0 0.0\n1 35 0 0.0\n", 1, "not clear"),
    "byte order mark inside": ("q1\tdA\t1\n\ufeffq2\tdA\t1\n", 2, "byte order mark"),
}


@pytest.mark.parametrize(("text", "line", "message"), WRONG.values(), ids=WRONG)
def test_what_is_not_clear_is_an_error_with_its_line(read, text, line, message):
    with pytest.raises(DatasetInvalidError, match=message) as caught:
        read(text)
    assert caught.value.where == f"{read.path}:{line}"


@pytest.mark.parametrize("content", ["", "\n", "query-id\tcorpus-id\tscore\n"])
def test_file_without_judgments_is_an_error(read, content):
    with pytest.raises(DatasetInvalidError, match="holds no judgment"):
        read(content)


@pytest.mark.parametrize("grade", ["1", "2"])
def test_document_judged_twice_is_an_error_naming_both_lines(read, grade):
    with pytest.raises(DuplicateIdError) as caught:
        read(f"q1\tdA\t1\nq1\tdB\t1\nq1\tdA\t{grade}\n")
    assert caught.value.where == f"{read.path}:3"
    assert f"first at {read.path}:1" in caught.value.message


def test_same_document_may_be_judged_for_several_queries(read):
    assert read("q1 dA 1\nq2 dA 1\n") == {"q1": {"dA": 1}, "q2": {"dA": 1}}


def test_judged_queries_alone(read):
    read(LAYOUTS["TREC"])
    assert read_judged_queries(read.path, "files") == {"q1", "q2"}


def test_missing_file_names_what_is_expected(tmp_path):
    with pytest.raises(DatasetNotFoundError, match="expected: corpus, queries"):
        read_judgments(tmp_path / "dev.tsv", "corpus, queries")


IDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Z"]), min_size=1, max_size=8
).filter(lambda text: text == text.strip() and "\ufeff" not in text)
GRADES = st.one_of(st.integers(-9, 9), st.floats(-9, 9, allow_subnormal=False))


@settings(deadline=None)
@given(
    judged=st.dictionaries(st.tuples(IDS, IDS), GRADES, min_size=1),
    layout=st.sampled_from(["query-id\tcorpus-id\tscore\n{0}\t{1}\t{2}", "{0}\t{1}\t{2}"])
    | st.sampled_from(["{0} {1} {2}", "{0}\t0\t{1}\t{2}", "{0} Q0 {1} {2}"]),
)
def test_what_is_written_is_read(tmp_path_factory, judged, layout):
    path = tmp_path_factory.getbasetemp() / "generated.tsv"
    header, _, row = layout.rpartition("\n")
    lines = [row.format(query, document, grade) for (query, document), grade in judged.items()]
    path.write_text("\n".join([header, *lines]), encoding="utf-8")
    read = read_judgments(path, "files")
    assert {
        (query, document): judgment.grade
        for query, documents in read.items()
        for document, judgment in documents.items()
    } == judged
