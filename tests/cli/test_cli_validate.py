"""``pytest-heta validate``: findings, counts and exit codes."""

from __future__ import annotations

import json

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
        "warning: [dangling-gold] DATA: gold documents not in the corpus: 1 (ghost)",
        "warning: [unjudged-query] DATA: queries without a judgment: 1 (q2)",
        "warning: [empty-query] DATA: empty queries: 1 (q3)",
        "warning: [duplicate-query] DATA: queries of the same text: 1 (q1 = q2)",
        "warning: [empty-document] DATA: empty documents: 1 (c)",
        "warning: [duplicate-document] DATA: documents of the same text: 1 (a = b)",
        "DATA: documents 3, queries 3, judgments 3, errors 0, warnings 6",
    ]
    assert validate(documents, cases, "--strict")[0] == 1


def test_an_error_is_the_loader_s_with_its_place(validate):
    code, lines = validate(GOOD[0] * 2, GOOD[1])
    assert code == 1
    assert lines[0].startswith("error: [duplicate-id] DATA/documents.jsonl:2: document id 'a'")


def test_a_path_that_is_not_there_is_a_wrong_argument(tmp_path, capsys):
    assert main(["validate", str(tmp_path / "none")]) == 2
    assert "there is no" in capsys.readouterr().err
