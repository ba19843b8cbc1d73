"""Names made legal for node ids and files."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_heta.benchmarks._naming import (
    benchmark_name,
    legal_names,
    media_type_of,
    portable_name,
)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("data/cranfield", "cranfield"),
        ("data/my data (v1.2)", "my-data-v1-2"),
        ("data/UDA_2-x", "UDA_2-x"),
        ("/", "dataset-e3b0c442"),
        ("data/…", "dataset-b4935894"),
    ],
)
def test_benchmark_is_named_like_its_folder(path, name):
    assert benchmark_name(Path(path)) == name


def test_names_that_lose_letters_stay_apart():
    names = {benchmark_name(Path(name)) for name in ("语料-a", "数据-a", "a")}
    assert len(names) == 3
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in names)


def test_current_and_parent_folder_have_their_real_names(tmp_path, monkeypatch):
    folder = tmp_path / "outer" / "inner"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert benchmark_name(Path()) == "inner"
    assert benchmark_name(Path("..")) == "outer"


def test_legal_names_stay_and_others_get_a_digest():
    names = legal_names(["a", "a b", "a/b", "中", "a"])
    assert names["a"] == "a"
    assert re.fullmatch(r"a-b-[0-9a-f]{8}", names["a b"])
    assert re.fullmatch(r"a-b-[0-9a-f]{8}", names["a/b"])
    assert re.fullmatch(r"unit-[0-9a-f]{8}", names["中"])
    assert list(names) == ["a", "a b", "a/b", "中"]


def test_name_that_another_made_name_has_already_moves_away():
    made = legal_names(["a b"])["a b"]
    assert legal_names(["a b", made])[made] == made
    assert legal_names(["a b", made])["a b"].startswith(made)
    assert legal_names(["a b", made]) == legal_names([made, "a b"])


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=200)))
def test_legal_names_are_legal_all_different_and_one_for_each(names):
    legal = legal_names(names)
    assert set(legal) == set(names)
    assert len(set(legal.values())) == len(legal)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,100}", name) for name in legal.values())


@settings(deadline=None)
@given(st.text(min_size=1, max_size=200))
def test_portable_names_are_short_and_have_nothing_special(identifier):
    name = portable_name(identifier)
    assert not set('<>:"/\\|?*\0\n') & set(name)
    assert len(name.encode("utf-8", "replace")) <= 250
    assert name.endswith(".txt")
    assert not name.startswith(".")
    assert name.split(".")[0].lower() not in {"con", "prn", "aux", "nul", "com1", "lpt9"}


def test_endings_and_media_types_belong_together():
    assert portable_name("a", "text/markdown") == "a.md"
    assert portable_name("a", "application/x-own") == "a.txt"
    assert media_type_of("a.MD") == "text/markdown"
    assert media_type_of("a.pdf") == "application/pdf"
    assert media_type_of("a") == "application/octet-stream"
