"""The index of a stage: documents are found by id, key and place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_heta.core import _stage_index
from pytest_heta.core._stage_index import StageIndex, StageIndexWriter
from pytest_heta.errors import DuplicateIdError

TEXTS = st.text(max_size=8) | st.text("ab/", max_size=4)


def written(folder, ids, sizes=None):
    with StageIndexWriter(folder) as index:
        for number, name in enumerate(ids):
            line = b'{"document_id":"%d","key":"key %d"}\n' % (number, number)
            size = sizes[number] if sizes else number
            index.add(line, document_id=name, key=f"key {number}", size=size)
        index.finish("benchmark tiny")
    return StageIndex(folder, len(ids))


@settings(deadline=None, max_examples=50)
@given(ids=st.lists(TEXTS, unique=True, min_size=1), others=st.lists(TEXTS))
def test_each_id_has_its_place_and_no_other_text_has_one(tmp_path_factory, ids, others):
    index = written(tmp_path_factory.mktemp("stage"), ids)
    assert [index.number(name) for name in ids] == list(range(len(ids)))
    assert [name in index for name in others] == [name in ids for name in others]
    assert len(index) == len(ids)
    assert 7 not in index


def test_contents_stand_one_behind_the_other(tmp_path):
    index = written(tmp_path, "abc", sizes=[5, 0, 1 << 40])
    assert index.content_place("key 0") == (0, 5)
    assert index.content_place("key 1") == (5, 5)
    assert index.content_place("key 2") == (5, 5 + (1 << 40))


def test_rows_are_read_by_key_and_by_place(tmp_path):
    index = written(tmp_path, "abc")
    assert index.row("key 1") == {"document_id": "1", "key": "key 1"}
    assert index.keys([2, 0]) == ("key 2", "key 0")
    assert index.all_keys() == ("key 0", "key 1", "key 2")
    assert list(index.lines(["key 2", "key 0"])) == [
        b'{"document_id":"2","key":"key 2"}\n',
        b'{"document_id":"0","key":"key 0"}\n',
    ]
    for call in (index.row, index.content_place, lambda key: list(index.lines([key]))):
        with pytest.raises(KeyError, match="key 3"):
            call("key 3")


@pytest.mark.parametrize("bits", [0, 1, 64])
def test_texts_with_much_of_their_hash_in_common_are_told_apart(tmp_path, monkeypatch, bits):
    whole = _stage_index._hash

    def weak(text):
        # The last bytes alone tell texts apart; of the first few bits are left.
        digest = whole(text)
        return (int.from_bytes(digest[:8], "little") % (1 << bits)).to_bytes(8, "little") + (
            digest[8:]
        )

    monkeypatch.setattr(_stage_index, "_hash", weak)
    ids = [f"d{number}" for number in range(40)]
    index = written(tmp_path, ids)
    assert [index.number(name) for name in ids] == list(range(40))
    assert "d40" not in index


def test_the_first_repeated_id_is_named(tmp_path):
    with pytest.raises(DuplicateIdError, match="benchmark tiny: document id '3' stands twice"):
        # The writer is told "b" for the rows 1 and 3, and "a" for 0 and 4.
        written(tmp_path, "abcba")
    assert not (tmp_path / "places.bin").exists()


def test_the_first_repeated_of_many_ids_is_named(tmp_path):
    with pytest.raises(DuplicateIdError, match="document id '300' stands twice"):
        written(tmp_path, [f"d{number % 300}" for number in range(700)])
