"""``pytest-heta validate``: findings, counts and exit codes."""

from __future__ import annotations

import json
import os

import pytest

from pytest_heta.cli import main


@pytest.fixture
def validate(tmp_path, capsys):
    def run(documents, cases, *options):
        for name, rows in (("documents", documents), ("cases", cases)):
            text = "".join(f"{json.dumps(row)}\n" for row in rows)
            (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
        code = main(["validate", str(tmp_path), *options])
        return code, capsys.readouterr().out.replace(str(tmp_path), "DATA").splitlines()

    return run


GOOD = [{"id": "a", "text": "x"}], [{"id": "q", "query": "x", "evidence": ["a"]}]


def test_a_good_dataset_has_only_its_counts(validate):
    line = "DATA: documents 1, queries 1, judgments 1, errors 0, warnings 0"
    assert validate(*GOOD, "--strict") == (0, [line])


def test_oddities_are_warnings_and_fail_when_strict(validate):
    documents = [{"id": name, "text": text} for name, text in (("a", "x"), ("b", "x"), ("c", ""))]
    cases = [
        {"id": "q1", "query": "x", "evidence": ["a", "ghost"]},
        {"id": "q2", "query": "x"},
        {"id": "q3", "query": " ", "evidence": ["a"]},
    ]
    code, lines = validate(documents, cases)
    assert code == 0
    assert lines == [
        "warning: [unjudged-query] DATA: queries without a judgment: 1 (q2)",
        "warning: [empty-query] DATA: empty queries: 1 (q3)",
        "warning: [duplicate-query] DATA: queries of the same text: 1 (q1 = q2)",
        "warning: [dangling-gold] DATA: gold documents not in the corpus: 1 (ghost)",
        "warning: [empty-document] DATA: empty documents: 1 (c)",
        "warning: [duplicate-document] DATA: documents of the same text: 1 (a = b)",
        "DATA: documents 3, queries 3, judgments 3, errors 0, warnings 6",
    ]
    assert validate(documents, cases, "--strict")[0] == 1


def test_an_error_is_the_loader_s_with_its_place(validate):
    code, lines = validate(GOOD[0] * 2, GOOD[1])
    assert code == 1
    assert lines[0].startswith("error: [duplicate-id] DATA/documents.jsonl:2: document id 'a'")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path, capsys):
    os.mkfifo(tmp_path / "cases.jsonl")
    assert main(["validate", str(tmp_path / "cases.jsonl")]) == 1
    assert capsys.readouterr().out.startswith("error: [dataset-invalid] ")


def test_a_path_that_is_not_there_is_a_wrong_argument(tmp_path, capsys):
    assert main(["validate", str(tmp_path / "none")]) == 2
    assert "there is no" in capsys.readouterr().err


def test_the_same_text_in_another_unit_is_not_odd(validate):
    documents = [{"id": f"{unit}{n}", "text": "x", "unit": unit} for unit, n in ("a1", "b1", "b2")]
    cases = [
        {"id": f"{unit}{n}", "query": "x", "unit": unit, "answer": "y"} for unit, n in ("a1", "b1")
    ]
    _, lines = validate(documents, cases)
    assert lines[:-1] == [
        "warning: [duplicate-document] DATA: documents of the same text: 1 (b1 = b2)"
    ]


BEIR = {
    "corpus.jsonl": [{"_id": "a", "text": "x"}],
    "queries.jsonl": [{"_id": "q", "text": "x"}],
    "qrels/test.tsv": "q\ta\t1\n",
}


def encoded(content):
    """Return a text as it is, or rows one JSON object on each line."""
    rows = [content] if isinstance(content, str) else content
    lines = (row if isinstance(row, str) else f"{json.dumps(row)}\n" for row in rows)
    return "".join(lines).encode("utf-8")


@pytest.fixture
def check(tmp_path, capsys):
    """Validate files written as they are given; return the exit code and the lines."""

    def run(files, *options):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else encoded(content))
        code = main(["validate", str(tmp_path), *options])
        return code, capsys.readouterr().out.replace(str(tmp_path), "DATA").splitlines()

    return run


def test_all_errors_of_all_files_are_told_with_their_lines(check):
    code, lines = check(
        {
            "corpus.jsonl": [
                '{"_id": "a", "text": "x",}\n',
                {"_id": "b", "text": "x"},
                {"_id": "c"},
                {"_id": "b", "text": "y"},
            ],
            "queries.jsonl": b'{"_id": "q", "text": "\xff"}\n[1]\n{"_id": "q2", "text": "x"}\n',
            "qrels/test.tsv": "q\ta\t1\nq\ta\tmany\nq\ta\t2\nq2 b 1\nq2\t\t1\n",
        }
    )
    assert code == 1
    places = [line.split(": ")[1] for line in lines if line.startswith("error: ")]
    assert places == [
        f"[{code}] DATA/{place}"
        for code, place in (
            ("dataset-invalid", "corpus.jsonl:1"),
            ("dataset-invalid", "corpus.jsonl:3"),
            ("duplicate-id", "corpus.jsonl:4"),
            ("dataset-invalid", "queries.jsonl:1"),
            ("dataset-invalid", "queries.jsonl:2"),
            ("dataset-invalid", "qrels/test.tsv:2"),
            ("dataset-invalid", "qrels/test.tsv:4"),
            ("dataset-invalid", "qrels/test.tsv:5"),
            ("duplicate-id", "qrels/test.tsv:3"),
        )
    ]
    assert lines[-1] == (
        "DATA: documents not counted, queries not counted, judgments not counted,"
        " errors 9, warnings 0"
    )


def test_all_errors_of_cases_and_documents_are_told(check):
    _, lines = check(
        {
            "documents.jsonl": [{"id": "a", "text": "x"}, {"id": "a", "text": "x"}, {"id": "b"}],
            "cases.jsonl": [
                {"id": "q", "query": 5},
                {"id": "q", "query": "x", "evidence": ["a", "a"]},
                {"id": "q", "query": "x", "evidenc": ["a"]},
                {"id": "q", "query": "x", "documents": [{"id": "c", "path": "../c"}]},
                {"id": "q", "query": "x"},
            ],
        }
    )
    places = [line.split("] ")[1].split(": ")[0] for line in lines if line.startswith("error: ")]
    assert places == [
        *("DATA/documents.jsonl:2", "DATA/documents.jsonl:3"),
        *(f"DATA/cases.jsonl:{number}" for number in (1, 2, 3, 4, 5)),
    ]


def test_of_many_errors_in_a_file_the_first_are_told(check):
    code, lines = check({**BEIR, "corpus.jsonl": ["nonsense\n"] * 100})
    assert (code, len(lines)) == (1, 22)
    assert lines[20].startswith("error: [dataset-invalid] DATA/corpus.jsonl: 80 more errors in")


def test_a_file_of_another_encoding_has_no_errors_but_that(check):
    _, lines = check({**BEIR, "qrels/test.tsv": "q\ta\t1\n".encode("utf-16")})
    assert [line.split(";")[0] for line in lines[:-1]] == [
        f"error: [dataset-invalid] DATA/qrels/test.tsv:{number}: a NUL byte" for number in (1, 2)
    ]


def test_a_missing_file_does_not_hide_what_is_wrong_with_the_others(check):
    _, lines = check({**BEIR, "corpus.jsonl": ["no\n"]}, "--split=dev")
    assert len(lines) == 3
    assert "file 'dev.tsv' is missing" in lines[0]
    assert "DATA/corpus.jsonl:1: not JSON" in lines[1]


ODD = {
    "byte-order-mark": {"queries.jsonl": b'\xef\xbb\xbf{"_id": "q", "text": "x"}\n'},
    "doubtful-encoding": {"corpus.jsonl": [{"_id": "a", "text": "caf\ufffd"}]},
    "mixed-ids": {"corpus.jsonl": [{"_id": "a", "text": "x"}, {"_id": 7, "text": "y"}]},
    "empty-query": {"queries.jsonl": [{"_id": "q", "text": " "}]},
}


@pytest.mark.parametrize("code", ODD)
def test_oddities_of_files_are_warnings(check, code):
    exit_code, lines = check({**BEIR, **ODD[code]})
    assert exit_code == 0
    assert [line.split("]")[0] for line in lines[:-1]] == [f"warning: [{code}"]
    assert check({**BEIR, **ODD[code]}, "--strict")[0] == 1


def test_ids_of_two_kinds_are_told_with_their_places(check):
    _, lines = check(
        {
            "documents.jsonl": [{"id": 1, "text": "x"}, {"id": 2, "text": "y"}],
            "cases.jsonl": [{"id": "q", "query": "x", "evidence": ["1", {"document_id": 2}]}],
        }
    )
    assert lines[0] == (
        "warning: [mixed-ids] DATA: document ids are 3 numbers (first at DATA/documents.jsonl:1)"
        " and 1 strings (first at DATA/cases.jsonl:1)"
    )


@pytest.mark.parametrize(
    ("text", "doubtful"),
    [
        ("cafÃ© crÃ¨me", True),
        ("itâ€™s", True),
        ("NÂ° 5 \ufffd", True),
        ("São Paulo, Ângela, JOÃO, «LUPÂ»", False),
        ("naïve 咖啡 🚲", False),
    ],
)
@pytest.mark.parametrize("escaped", [False, True])
def test_text_that_a_conversion_has_spoilt_is_told(check, text, doubtful, escaped):
    line = json.dumps({"_id": "a", "text": text}, ensure_ascii=escaped)
    _, lines = check({**BEIR, "corpus.jsonl": f"{line}\n"})
    assert ("doubtful-encoding" in lines[0]) == doubtful
    assert ("(DATA/corpus.jsonl:1)" in lines[0]) == doubtful


def test_a_split_can_be_chosen(check):
    files = {**BEIR, "qrels/dev.tsv": "q\ta\t1\nq\tghost\t1\n"}
    assert "judgments 1" in check(files)[1][-1]
    assert "judgments 2" in check(files, "--split=dev")[1][-1]
    assert check(files, "--split=other")[0] == 1
    assert check({"cases.jsonl": GOOD[1], "corpus.jsonl": ""}, "--split=dev")[0] == 1


def test_a_split_of_what_has_none_is_a_wrong_argument(check):
    files = {"cases.jsonl": GOOD[1], "documents.jsonl": GOOD[0]}
    assert check(files, "--split=dev")[0] == 2
    assert check(files)[0] == 0


def test_documents_that_cannot_be_read_are_errors_by_name(check):
    documents = [{"id": "a", "text": "x"}, *({"id": name, "path": name} for name in "bcd")]
    cases = [{"id": f"q{name}", "query": name, "evidence": [name]} for name in "abc"]
    code, lines = check({"documents.jsonl": documents, "cases.jsonl": cases, "d": "y"})
    assert code == 1
    assert [line.split(": ")[1] for line in lines[:3]] == [
        "[document-unavailable] document b",
        "[document-unavailable] document c",
        "[document-unavailable] 2 of 3 cases would fail",
    ]
    assert lines[-1] == "DATA: documents 4, queries 3, judgments 3, errors 3, warnings 0"


def test_json(check):
    code, lines = check({**BEIR, **ODD["mixed-ids"], "queries.jsonl": ["no\n"]}, "--json")
    (found,) = json.loads("".join(lines))
    assert code == 1
    assert found["path"] == "DATA"
    assert (found["documents"], found["queries"], found["judgments"]) == (None, None, None)
    (error,) = found["errors"]
    assert error["code"] == "dataset-invalid"
    assert error["where"] == "DATA/queries.jsonl:1"
    assert error["hint"] == "one JSON object on each line"
    assert [warning["code"] for warning in found["warnings"]] == ["mixed-ids"]
    assert json.loads("".join(check(BEIR, "--json")[1]))[0]["errors"] == []
