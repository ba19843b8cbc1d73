"""From a store of documents to chunks with their provenance."""

from __future__ import annotations

import pytest

from pytest_heta.errors import BuildError
from pytest_heta.recipes._build import read_corpus
from pytest_heta.recipes._splitting import Splitter


@pytest.fixture
def read(memory_store):
    def function(documents, *, keys=None, size=100, errors="strict", wrap=None):
        store = memory_store(documents)
        keys = list(documents) if keys is None else keys
        return read_corpus(wrap(store) if wrap else store, keys, Splitter(size, 0), errors)

    return function


def results_of(corpus):
    return [corpus.chunks.result(chunk, 1.0, {}) for chunk in range(len(corpus.chunks))]


def test_a_chunk_says_where_it_comes_from(read, raw_key):
    key = raw_key("d/1".replace("/", "%2F"), "a.txt")
    text = "Planes fly high. " * 3 + "Boats swim low. " * 3
    corpus = read({key: (text, {"title": "Vehicles", "media_type": "text/plain"})}, size=60)
    first, second = results_of(corpus)
    assert (first.id, second.id) == ("d/1#0", "d/1#1")
    assert (first.kind, first.score) == ("chunk", 1.0)
    assert second.source == {
        "document_id": "d/1",
        "source_key": key,
        "chunk_index": 1,
        "char_start": second.source["char_start"],
        "char_end": second.source["char_end"],
        "title": "Vehicles",
    }
    for result in (first, second):
        assert text[result.source["char_start"] : result.source["char_end"]] == result.text


def test_a_document_is_found_by_its_title_too(read):
    corpus = read({"a": ("flies", {"title": "Plane"}), "b": ("Plane\n\nflies", {"title": "Plane"})})
    assert list(corpus.chunks.search_texts()) == ["Plane\nflies", "Plane\n\nflies"]


def test_every_chunk_of_a_long_document_is_found_by_its_title_once(read):
    text = "The  PLANE flies high and far. " + "It flies high and far. " * 4
    corpus = read({"a": (text, {"title": "The plane"})}, size=50)
    first, *others = corpus.chunks.search_texts()
    assert first.startswith("The  PLANE flies")
    assert len(others) >= 2
    assert all(text.startswith("The plane\nIt flies") for text in others)


def test_a_title_is_no_chunk_of_its_own(read):
    body = "It flies high and far. " * 4
    corpus = read({"a": (f"The  PLANE\n\n{body}", {"title": "The plane"})}, size=50)
    texts = list(corpus.chunks.search_texts())
    assert all(text.startswith("The plane\nIt flies") for text in texts)
    assert corpus.chunks.result(0, 1.0, {}).source["char_start"] == 12
    corpus = read({"a.md": f"# The plane\n\n{body}\n\n# Other\n\n{body}"}, size=50)
    assert "The plane" not in [result.text for result in results_of(corpus)]


def test_a_document_that_is_its_title_is_a_chunk(read):
    [result] = results_of(read({"a": ("The plane", {"title": "The plane"})}))
    assert result.text == "The plane"


@pytest.mark.parametrize("metadata", [None, {}, {"title": None}])
def test_no_title_is_no_text(read, metadata):
    corpus = read({"a": ("x", metadata)})
    assert list(corpus.chunks.search_texts()) == ["x"]
    assert "title" not in results_of(corpus)[0].source


def test_a_document_with_nothing_but_a_title_is_found_by_it(read):
    corpus = read({"a": ("", {"title": "Only a title"})})
    [result] = results_of(corpus)
    assert (result.text, result.source["char_start"], result.source["char_end"]) == (
        "Only a title", 0, 0,
    )  # fmt: skip
    assert corpus.empty == []


def test_documents_without_text_are_counted_and_named(read):
    corpus = read({"a": "", "b": "text", "c": " \n", "d": ("", {"title": None})})
    assert corpus.manifest() == {
        "documents": 4,
        "empty_documents": 3,
        "chunks": 1,
        "warnings": ["3 documents without text, never found: a, c, d"],
    }


def test_many_names_are_cut_short(read):
    corpus = read({f"d{i}": "" for i in range(12)})
    [warning] = corpus.manifest()["warnings"]
    assert warning.startswith("12 documents without text, never found: d0, d1")
    assert warning.endswith("d9, …")


def test_a_document_that_is_not_text_is_an_error_that_names_it(read, raw_key):
    key = raw_key("bad")
    with pytest.raises(BuildError, match=f"{key}: the document is not UTF-8 text"):
        read({raw_key("good"): "x", key: b"\xff"})


def test_replaced_bytes_are_a_warning_that_names_the_document(read):
    corpus = read({"a": b"caf\xe9", "b": "fine"}, errors="replace")
    assert results_of(corpus)[0].text == "caf\ufffd"
    assert corpus.manifest()["warnings"] == [
        "1 document with bytes that are no text, replaced by U+FFFD: a"
    ]


def test_a_missing_document_is_an_error_that_names_it(read):
    with pytest.raises(BuildError, match=r"gone\.txt: the document is not in the object store"):
        read({"a": "x"}, keys=["a", "gone.txt"])


def test_a_store_needs_no_metadata(read, bare_store):
    corpus = read({"a.md": "# T\n\nx"}, wrap=bare_store)
    assert results_of(corpus)[0].source["title"] == "T"


def test_order_is_that_of_the_keys_and_a_key_named_twice_counts_once(read):
    corpus = read({"a": "1", "b": "2", "c": "3"}, keys=["c", "a", "c"])
    assert [result.text for result in results_of(corpus)] == ["3", "1"]
    assert corpus.document_count == 2


def test_files_of_one_document_are_one_document(read, raw_key):
    corpus = read(
        {
            raw_key("a", "1.txt"): b"one\xff",
            raw_key("b", "1.txt"): "two",
            raw_key("a", "2.txt"): (b"three\xff", {"title": "A"}),
        },
        errors="replace",
    )
    assert [result.id for result in results_of(corpus)] == ["a#0", "a#1", "b#0"]
    assert [result.source["source_key"].split("/")[-1] for result in results_of(corpus)] == [
        "1.txt", "2.txt", "1.txt",
    ]  # fmt: skip
    assert results_of(corpus)[0].source["title"] == "A"
    assert corpus.replaced == ["a"]


def test_keys_come_back_as_they_were(read):
    key = "raw/\ud800/咖啡"
    [result] = results_of(read({key: "x"}))
    assert result.source["source_key"] == result.source["document_id"] == key


def test_no_documents_have_no_chunks(read):
    corpus = read({})
    assert (len(corpus.chunks), corpus.document_count) == (0, 0)
