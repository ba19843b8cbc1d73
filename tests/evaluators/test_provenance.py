"""From what a result says of its source to the documents of the benchmark."""

import math
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.evaluators import document_ids
from pytest_heta.models import (
    BenchmarkDocument,
    BenchmarkManifest,
    QueryResponse,
    QueryResult,
    raw_key,
)


def key(document_id, benchmark="b"):
    document = BenchmarkDocument(document_id=document_id, name="text.md", data=b"")
    return raw_key(BenchmarkManifest(name=benchmark), document)


def documents_of(*sources, metadata=None):
    results = [
        QueryResult(id=f"chunk-{rank}", source=source, metadata=metadata or {})
        for rank, source in enumerate(sources)
    ]
    return document_ids(QueryResponse(mode="m", results=results))


@pytest.mark.parametrize(
    ("source", "documents"),
    [
        ({"document_id": "d"}, ["d"]),
        ({"document_id": 7}, ["7"]),
        ({"document_id": 7.0}, ["7"]),
        ({"document_id": np.int64(7)}, ["7"]),
        ({"document_ids": [np.uint8(7), np.float32(7)]}, ["7"]),
        ({"document_id": UUID(int=7)}, ["00000000-0000-0000-0000-000000000007"]),
        ({"document_ids": ["d", "e", "d"]}, ["d", "e"]),
        ({"document_ids": ("d", "e")}, ["d", "e"]),
        ({"document_id": "e", "document_ids": ["d", "e"]}, ["e", "d"]),
        ({"origin": {"document_id": "d"}}, ["d"]),
        ({"source_key": key("d")}, ["d"]),
        ({"object_key": key("d")}, ["d"]),
        ({"source_keys": [key("d"), key("e")]}, ["d", "e"]),
        ({"object_keys": [key("d")], "source_keys": [key("d")]}, ["d"]),
        ({"object_key": "pages/1.json", "origin": {"object_key": key("d")}}, ["d"]),
        ({"source_key": f"/store/{key('d')}"}, ["d"]),
        ({"source_key": key("a/b c%.txt")}, ["a/b c%.txt"]),
        ({"source_key": key("文件")}, ["文件"]),
    ],
)
def test_provenance_names_documents(source, documents):
    assert documents_of(source) == documents


def test_a_raw_key_is_surer_than_an_id_that_the_recipe_made_up():
    assert documents_of({"document_id": "sha256-ab12", "source_key": key("d")}) == ["d"]
    made_up = {"document_id": "sha256-ab12", "origin": {"object_key": key("d")}}
    assert documents_of(made_up) == ["d"]
    several = {"document_id": "sha256-ab12", "source_key": [key("d"), key("e")]}
    assert documents_of(several) == ["d", "e"]


ids = st.sampled_from(["d", "", 7, 7.5, None, np.str_("e"), np.int64(3), ["d", "e"], {"d"}, b"d"])
keys = st.sampled_from([key("k"), "files/k", "", None, 5, np.str_(key("n")), [key("k"), key("l")]])


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "document_id": ids,
            "document_ids": ids,
            "source_key": keys,
            "object_keys": keys,
            "page_index": st.just(1),
        },
    )
)
def test_an_origin_that_says_nothing_changes_nothing(source):
    assert documents_of(source) == documents_of({**source, "origin": {}})


def test_other_keys_are_no_raw_keys():
    assert documents_of({"document_id": "d", "source_key": "files/x/y.txt"}) == ["d"]
    assert documents_of({"source_key": "files/x/y.txt"}) == ["chunk-0"]
    assert documents_of({"source_key": 5, "object_key": None}) == ["chunk-0"]


def test_metadata_come_after_the_source():
    assert documents_of({}, metadata={"document_id": "d"}) == ["d"]
    assert documents_of({"page_index": 1}, metadata={"document_ids": ["d", "e"]}) == ["d", "e"]
    assert documents_of({"document_id": "d"}, metadata={"document_id": "other"}) == ["d"]


@pytest.mark.parametrize("value", [None, "", True, math.nan, 1.5, {}, []])
def test_what_is_no_id_is_passed_over(value):
    assert documents_of({"document_id": value}, metadata={"document_id": value}) == ["chunk-0"]


def test_a_result_without_provenance_is_a_document():
    assert documents_of({}, {"origin": "elsewhere"}) == ["chunk-0", "chunk-1"]


def test_documents_come_once_in_rank_order():
    ranked = [{"document_id": document} for document in ("b", "a", "b", "c", "a")]
    assert documents_of(*ranked) == ["b", "a", "c"]
    assert documents_of({"document_ids": ["b", "a"]}, {"document_ids": ["c", "a"]}) == [
        "b",
        "a",
        "c",
    ]


def test_the_order_of_a_set_is_the_same_in_every_process():
    names = {f"d{number}" for number in range(20)}
    assert documents_of({"document_ids": names}) == sorted(names)


def test_nothing_retrieved_has_no_documents():
    assert documents_of() == []
