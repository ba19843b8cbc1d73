"""The demo's data: complete, consistent, and quoted word for word."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_heta.plugin.option_table import OPTIONS

DATA = Path(__file__).parents[2] / "benchmarks" / "data"
SETS = ("handbook", "manuals")
QUESTION_TYPES = {"factoid", "how_to", "definition", "keyword", "multi_document"}
# Words are told apart by spaces in these only.
SPACED = {"en", "de", "fr"}


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len({key for key, _ in pairs}) == len(pairs), "a key stands twice"
    return dict(pairs)


def records(name: str, file: str) -> list[dict[str, Any]]:
    text = (DATA / name / file).read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return [json.loads(line, object_pairs_hook=unique_keys) for line in text[:-1].split("\n")]


def documents(name: str) -> dict[str, dict[str, Any]]:
    return {record["document_id"]: record for record in records(name, "documents.jsonl")}


def cases(name: str) -> list[dict[str, Any]]:
    return records(name, "cases.jsonl")


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


@pytest.fixture(params=SETS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# --- both sets ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "document_count", "case_count"), [("handbook", 66, 116), ("manuals", 31, 52)]
)
def test_no_document_or_case_was_lost(name: str, document_count: int, case_count: int) -> None:
    assert len(records(name, "documents.jsonl")) == document_count
    assert len(cases(name)) == case_count


def test_ids_are_unique(name: str) -> None:
    assert len(documents(name)) == len(records(name, "documents.jsonl"))
    case_ids = [case["case_id"] for case in cases(name)]
    assert len(set(case_ids)) == len(case_ids)
    # They are portable file names and readable node ids.
    for one in (*documents(name), *case_ids):
        assert re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", one), one


def test_questions_differ_within_a_unit(name: str) -> None:
    asked = Counter((case.get("unit"), case["query"].casefold()) for case in cases(name))
    assert [key for key, count in asked.items() if count > 1] == []


def test_texts_are_normalised_and_hold_no_control_characters(name: str) -> None:
    for file in ("documents.jsonl", "cases.jsonl"):
        assert not (DATA / name / file).read_bytes().startswith(b"\xef\xbb\xbf")
        for record in records(name, file):
            for text in strings(record):
                assert unicodedata.is_normalized("NFC", text), text
                assert text == text.strip(), text
                assert not [c for c in text if unicodedata.category(c) == "Cc" and c != "\n"], text


def test_documents_have_what_the_adapter_reads(name: str) -> None:
    endings = {"text/markdown": "md", "text/plain": "txt"}
    for document_id, document in documents(name).items():
        optional = {"unit"} if name == "manuals" else set()
        assert (
            set(document)
            == {
                "document_id",
                "title",
                "text",
                "name",
                "media_type",
                "metadata",
            }
            | optional
        )
        assert document["name"] == f"{document_id}.{endings[document['media_type']]}"


def test_documents_are_neither_stubs_nor_essays(name: str) -> None:
    for document_id, document in documents(name).items():
        if document["metadata"]["language"] in SPACED:
            assert 80 <= len(document["text"].split()) <= 300, document_id
        else:
            assert 200 <= len(document["text"]) <= 900, document_id


def test_judgments_point_to_documents_and_none_is_given_twice(name: str) -> None:
    known = documents(name)
    for case in cases(name):
        judged = [evidence["document_id"] for evidence in case["evidence"]]
        assert set(judged) <= set(known), case["case_id"]
        assert len(set(judged)) == len(judged), case["case_id"]


def test_grades_are_0_1_or_2_and_every_case_has_a_full_answer(name: str) -> None:
    for case in cases(name):
        grades = [evidence["relevance"] for evidence in case["evidence"]]
        assert set(grades) <= {0, 1, 2}, case["case_id"]
        assert 2 in grades, case["case_id"]


def test_evidence_stands_word_for_word_in_its_document(name: str) -> None:
    known = documents(name)
    for case in cases(name):
        for evidence in case["evidence"]:
            if evidence["relevance"] > 0:
                assert evidence["text"], case["case_id"]
                text = known[evidence["document_id"]]["text"]
                assert evidence["text"] in text, (case["case_id"], evidence["text"])
            else:
                assert "text" not in evidence, case["case_id"]


def test_evidence_lies_within_one_paragraph(name: str) -> None:
    for case in cases(name):
        for evidence in case["evidence"]:
            assert "\n" not in evidence.get("text", ""), case["case_id"]


def test_answers_stand_word_for_word_in_a_document_that_answers(name: str) -> None:
    known = documents(name)
    for case in cases(name):
        full = [
            known[evidence["document_id"]]["text"]
            for evidence in case["evidence"]
            if evidence["relevance"] > 0
        ]
        assert case["answers"], case["case_id"]
        for answer in case["answers"]:
            assert any(answer in text for text in full), (case["case_id"], answer)


def test_answers_are_found_nowhere_else_in_the_knowledge_base(name: str) -> None:
    known = documents(name)
    for case in cases(name):
        judged = {e["document_id"] for e in case["evidence"] if e["relevance"] > 0}
        for answer in case["answers"]:
            holders = {
                document_id
                for document_id, document in known.items()
                if document.get("unit") == case.get("unit")
                and answer.casefold() in document["text"].casefold()
            }
            assert holders <= judged, (case["case_id"], answer)


def test_labels_are_complete_and_from_a_closed_list(name: str) -> None:
    for case in cases(name):
        labels = case["labels"]
        assert set(labels) == {"question_type", "topic", "language"}, case["case_id"]
        assert labels["question_type"] in QUESTION_TYPES, case["case_id"]
        assert re.fullmatch(r"[a-z]+", labels["topic"]), case["case_id"]
        assert labels["language"] in {"en", "de", "fr", "zh", "ja"}, case["case_id"]
        if labels["question_type"] == "multi_document":
            positive = [e for e in case["evidence"] if e["relevance"] > 0]
            assert len(positive) > 1, case["case_id"]


# --- the handbook ------------------------------------------------------------


def test_every_document_of_the_handbook_answers_some_question() -> None:
    asked = {
        evidence["document_id"]
        for case in cases("handbook")
        for evidence in case["evidence"]
        if evidence["relevance"] == 2
    }
    assert set(documents("handbook")) - asked == set()


def test_the_handbook_is_asked_in_several_languages() -> None:
    languages = Counter(case["labels"]["language"] for case in cases("handbook"))
    assert {"en", "de", "fr", "zh", "ja"} <= set(languages)
    written = Counter(d["metadata"]["language"] for d in documents("handbook").values())
    assert {"en", "de", "fr", "zh", "ja"} <= set(written)


def test_options_and_ini_keys_that_the_handbook_names_exist() -> None:
    flags = {option.flag for option in OPTIONS if option.command_line}
    # Fixtures and names of the package look like ini keys.
    keys = {option.key for option in OPTIONS} | {"heta_recipe", "heta_unit", "heta_kb"}
    for document_id, document in documents("handbook").items():
        text = document["text"]
        named = set(re.findall(r"--heta-[a-z][a-z-]*", text))
        assert named <= flags, document_id
        assert set(re.findall(r"(?<![\w.])heta_[a-z_]+", text)) <= keys, document_id


# --- the manuals -------------------------------------------------------------


def test_cases_and_evidence_of_a_manual_stay_within_it() -> None:
    known = documents("manuals")
    units = Counter(document["unit"] for document in known.values())
    assert len(units) == 6
    assert all(3 <= pages <= 6 for pages in units.values())
    for case in cases("manuals"):
        assert case["unit"] in units, case["case_id"]
        for evidence in case["evidence"]:
            assert known[evidence["document_id"]]["unit"] == case["unit"], case["case_id"]


def test_pages_are_numbered_from_1() -> None:
    pages: dict[str, list[int]] = {}
    for document_id, document in documents("manuals").items():
        page = document["metadata"]["page"]
        assert document_id == f"{document['unit']}-p{page}"
        pages.setdefault(document["unit"], []).append(page)
    for numbers in pages.values():
        assert numbers == list(range(1, len(numbers) + 1))


def test_the_same_question_has_another_answer_in_each_manual() -> None:
    texts: dict[str, str] = {}
    for document in documents("manuals").values():
        texts[document["unit"]] = texts.get(document["unit"], "") + "\n" + document["text"]
    by_query: dict[str, list[dict[str, Any]]] = {}
    for case in cases("manuals"):
        by_query.setdefault(case["query"], []).append(case)
    shared = {query: group for query, group in by_query.items() if len(group) > 1}
    assert len(shared) >= 5
    for query, group in shared.items():
        for case in group:
            others = [other["unit"] for other in group if other is not case]
            for answer in case["answers"]:
                assert not [unit for unit in others if answer in texts[unit]], (query, answer)
