"""The fields of a record: what is accepted under which name."""

from pathlib import Path

import pytest

from pytest_heta.benchmarks._record import IdLines, Record, check_gold
from pytest_heta.errors import DatasetInvalidError, DuplicateIdError, ModelInvalidError


def record(line=3, **fields):
    return Record(Path("some.jsonl"), line, fields)


@pytest.mark.parametrize(
    ("value", "identifier"),
    [
        (7, "7"),
        (7.0, "7"),
        ("7", "7"),
        ("7.0", "7.0"),
        ("007", "007"),
        (-0.0, "0"),
        (2**70, str(2**70)),
        (" dA\t", "dA"),
        ("a b", "a b"),
        ("中", "中"),
    ],
)
def test_ids_become_one_string(value, identifier):
    assert record(id=value).identifier("id") == identifier


@pytest.mark.parametrize("value", ["", "  ", True, 1.5, [], {}, ["a"], "a\0b"])
def test_what_is_no_id_is_refused_by_name(value):
    with pytest.raises(DatasetInvalidError, match=r'^\[dataset-invalid\] some.jsonl:3: "id" = '):
        record(id=value).identifier("id")


def test_missing_and_null_id_list_the_fields_that_are_there():
    with pytest.raises(DatasetInvalidError, match='"id" or "_id" is missing') as caught:
        record(id=None, ident="a").identifier("id", "_id")
    assert "'ident'" in caught.value.hint
    with pytest.raises(DatasetInvalidError, match="fields that are there: none"):
        record().identifier("id")


def test_same_value_under_two_names_is_taken_once():
    assert record(id=7, _id="7").identifier("id", "_id") == "7"


def test_two_values_under_two_names_are_refused():
    with pytest.raises(DatasetInvalidError, match="\"id\" and \"_id\" differ: '7' and '8'"):
        record(id=7, _id=8).identifier("id", "_id")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, "a number"),
        (1.5, "a number"),
        (False, "a truth value"),
        ([], "a list"),
        ({}, "an object"),
    ],
)
def test_strings_are_not_made_of_other_types(value, kind):
    with pytest.raises(DatasetInvalidError, match=f'"text" = .* must be a string, not {kind}'):
        record(text=value).string("text")


def test_ids_of_a_list_or_one():
    assert record(unit=[1, "b"]).identifiers("unit") == ("1", "b")
    assert record(unit=1).identifiers("unit") == ("1",)
    assert record(unit=None).identifiers("unit") == ()
    with pytest.raises(DatasetInvalidError, match='"unit" = None'):
        record(unit=["a", None]).identifiers("unit")


def test_lists_and_objects_are_checked():
    assert record().items("a") == []
    assert record().mapping("a") == {}
    with pytest.raises(DatasetInvalidError, match=r'"a" = .* must be a list, not an object'):
        record(a={}).items("a")
    with pytest.raises(DatasetInvalidError, match=r'"a" = .* must be an object'):
        record(a=[]).mapping("a")


@pytest.mark.parametrize("value", ["1", True, [1], 2e15, 10**400])
def test_grades_are_checked(value):
    with pytest.raises(DatasetInvalidError, match='"n" = '):
        record().as_grade("n", value)


@pytest.mark.parametrize("name", ["evidnce", "Evidence", "evidences"])
def test_misspelt_fields_are_refused_with_what_was_meant(name):
    with pytest.raises(DatasetInvalidError, match=f"unknown field '{name}'") as caught:
        record(**{name: []}).extras(("evidence",))
    assert 'did you mean "evidence"?' in caught.value.hint


def test_fields_of_ones_own_are_kept():
    assert record(id=1, url="u", level=2).extras(("id", "evidence")) == {"url": "u", "level": 2}


def test_what_a_model_refuses_is_the_records_error():
    def refuse(**fields):
        raise ModelInvalidError("no", hint="yes")

    with pytest.raises(DatasetInvalidError, match=r"some.jsonl:3: no; yes"):
        record().build(refuse)
    with pytest.raises(DatasetInvalidError, match=r"some.jsonl:3: a: no; yes"):
        record().child("a", {}).build(refuse)


def test_long_values_are_cut_in_messages_and_control_characters_are_escaped():
    with pytest.raises(DatasetInvalidError) as caught:
        record(text=["\x1b[31m" + "x" * 10_000]).string("text")
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_duplicate_ids_name_both_lines():
    ids = IdLines("document")
    ids.add("a", record(line=1))
    ids.add("b", record(line=2))
    with pytest.raises(DuplicateIdError) as caught:
        ids.add("a", record(line=5))
    assert str(caught.value).startswith(
        "[duplicate-id] some.jsonl:5: document id 'a' stands twice, first at some.jsonl:1"
    )


def test_duplicate_ids_are_found_across_files():
    ids = IdLines("document")
    ids.add("a", Record(Path("documents.jsonl"), 4, {}))
    with pytest.raises(DuplicateIdError, match=r"some.jsonl:3: .* first at documents.jsonl:4"):
        ids.add("a", record())
    assert "a" in ids
    assert "b" not in ids


def test_missing_gold_documents_are_counted_and_listed_once():
    with pytest.raises(DatasetInvalidError) as caught:
        check_gold({"d1"}, [("d1", "f:1"), ("g1", "f:2"), ("g2", "f:3"), ("g1", "f:4")])
    assert caught.value.where == "f:2"
    assert caught.value.message == "2 gold documents are not in the corpus: 'g1', 'g2'"
    with pytest.raises(DatasetInvalidError, match=r"12 gold .*'g9', …"):
        check_gold(set(), [(f"g{n}", "f") for n in range(12)])
    check_gold({"d1"}, [("d1", "f:1")])
