"""Errors are one line that says what, where and what to do."""

import inspect
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta import errors
from pytest_heta.errors import (
    BuildError,
    DatasetInvalidError,
    HetaError,
    did_you_mean,
    first_of,
    from_here,
    shown,
)

CLASSES = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, HetaError)
]


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({}, "[dataset-invalid] no text"),
        ({"where": "a.jsonl:3"}, "[dataset-invalid] a.jsonl:3: no text"),
        ({"hint": "write one"}, "[dataset-invalid] no text; write one"),
        (
            {"where": "a.jsonl:3", "hint": "write one"},
            "[dataset-invalid] a.jsonl:3: no text; write one",
        ),
    ],
)
def test_an_error_says_what_where_and_what_to_do(parts, line):
    assert str(DatasetInvalidError("no text", **parts)) == line


@given(st.text(), st.none() | st.text(), st.none() | st.text())
def test_an_error_is_one_line_whatever_it_is_made_of(message, where, hint):
    assert len(str(HetaError(message, where=where, hint=hint)).splitlines()) == 1


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_survives_the_way_to_another_process(kind):
    error = pickle.loads(pickle.dumps(kind("what", where="where", hint="hint")))
    assert type(error) is kind
    assert (error.message, error.where, error.hint) == ("what", "where", "hint")


def test_an_error_may_be_blamed_on_what_it_came_by():
    assert str(DatasetInvalidError("no text", hint="write one").blaming("--heta-x")) == (
        "[dataset-invalid] --heta-x: no text; write one"
    )
    assert str(DatasetInvalidError("no text", where="a.jsonl:3").blaming("bench.py:2")) == (
        "[dataset-invalid] bench.py:2, a.jsonl:3: no text"
    )


def test_a_place_is_told_from_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert from_here(str(tmp_path / "deep" / "a.py") + ":3") == str(Path("deep", "a.py")) + ":3"
    assert from_here("/elsewhere/a.py:3") == "/elsewhere/a.py:3"
    assert from_here("overlap") == "overlap"


def test_every_class_has_a_code_of_its_own():
    codes = [kind.code for kind in CLASSES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)


def test_the_tree_is_drawn_as_it_is():
    drawn, above = {}, []
    for branch, name in re.findall(r"^ {4}([│├└─ ]*)(\w+Error)", errors.__doc__, re.MULTILINE):
        depth = len(branch) // 4
        above[depth:] = [name]
        drawn[name] = above[depth - 1] if depth else "Exception"
    assert drawn == {kind.__name__: kind.__base__.__name__ for kind in CLASSES}
    assert list(drawn) == [kind.__name__ for kind in CLASSES]
    assert all(inspect.getdoc(kind) for kind in CLASSES)


def test_the_cause_of_an_error_is_no_part_of_its_line():
    with pytest.raises(BuildError, match=r"^\[build-failed\] no index$") as raised:
        raise BuildError("no index") from ValueError("secret")
    assert isinstance(raised.value.__cause__, ValueError)


def test_hints_name_the_closest_or_all():
    assert did_you_mean("hybird", ["hybrid", "exact"]) == (
        "did you mean 'hybrid'? Known: hybrid, exact"
    )
    assert did_you_mean("zzz", ["hybrid", "exact"]) == "known: hybrid, exact"
    assert did_you_mean("zzz", []) == "known: none"


def test_hints_name_what_is_likelier_than_the_closest():
    assert did_you_mean("rr@5", iter(["mrr@k", "map@k"]), ["mrr@5", "hit@5"]) == (
        "did you mean 'mrr@5' or 'hit@5'? Known: mrr@k, map@k"
    )


def test_a_value_in_a_message_is_quoted_and_not_too_long():
    assert shown("a\x1b b") == r"'a\x1b b'"
    assert shown(7) == "7"
    assert shown("x" * 58) == f"'{'x' * 58}'"
    assert shown("x" * 59) == f"'{'x' * 59}…"


@pytest.mark.parametrize(
    ("limit", "text"), [(1, "a, …"), (2, "a, b, …"), (3, "a, b, c"), (4, "a, b, c")]
)
def test_a_list_of_ids_says_when_there_are_more(limit, text):
    assert first_of(["a", "b", "c"], limit) == text
