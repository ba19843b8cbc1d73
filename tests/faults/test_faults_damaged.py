"""Every byte of what is kept may be wrong or missing: what is whole is found, nothing else."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from fault_world import FaultWorld, Tally

from pytest_heta.core.cache import CacheEntry, CacheKey, KnowledgeBaseCache
from pytest_heta.core.journal import sample_of
from pytest_heta.core.recorded import RecordedRun
from pytest_heta.core.run_folder import RunFolder
from pytest_heta.errors import CacheError, HetaError

CUT = "cut"
FLIPPED = "flipped"


def damaged(content, how):
    """Yield a place and the content that is damaged there, for every byte."""
    for place in range(len(content)):
        if how == CUT:
            yield place, content[:place]
        else:
            other = bytes([content[place] ^ 1 << place % 8])
            yield place, content[:place] + other + content[place + 1 :]


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(scope="module")
def ended_run(tmp_path_factory):
    """The folder of a run of three cases, which has ended."""
    world = FaultWorld(tmp_path_factory.mktemp("ended"), Tally())
    ended = world.run("--heta-limit=3", "--heta-top-k=1", "--heta-no-gates")
    assert ended.code == 0, ended.text
    (folder,) = (world.path / "runs").iterdir()
    return folder


@pytest.fixture
def run_copy(ended_run, tmp_path):
    return shutil.copytree(ended_run, tmp_path / "runs" / "one")


def known_of(recorded, keys):
    """Return what is known of samples: results as text, and responses."""
    return {
        key: found
        for key in keys
        if (found := recorded.result(*key) or recorded.response(*key)) is not None
    }


@pytest.mark.parametrize("how", [CUT, FLIPPED])
@pytest.mark.parametrize("name", ["results.jsonl", "spool/main.jsonl"])
def test_journal_and_spool(run_copy, how, name, tally):
    session = run_copy / "session-1"
    path = session / name
    for other in {"results.jsonl", "spool/main.jsonl"} - {name}:
        (session / other).unlink()
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    parsed = [json.loads(line[18:]) for line in lines]
    keys = [(record["label"], sample_of(record["sample"])) for record in parsed]
    assert len(set(keys)) == 3
    ends = [sum(map(len, lines[: number + 1])) for number in range(len(lines))]
    whole = known_of(RecordedRun([session]), keys)
    assert list(whole) == keys
    for place, other in damaged(content, how):
        path.write_bytes(other)
        recorded = RecordedRun([session])
        found = known_of(recorded, keys)
        assert all(found[key] == whole[key] for key in found)
        hit = next(number for number, end in enumerate(ends) if place < end)
        # A line end may be missing or wrong: the record before it is whole.
        is_line_end = place == ends[hit] - 1
        lost = {keys[hit]} if not is_line_end else set()
        if how == CUT:
            lost |= set(keys[hit + 1 :])
        assert set(keys) - found.keys() == lost
        is_told = how == FLIPPED or place > (ends[hit - 1] if hit else 0)
        assert recorded.damaged == (is_told and not is_line_end)
        tally.damaged_files += 1


@pytest.mark.parametrize("how", [CUT, FLIPPED])
def test_file_of_the_run(run_copy, how, tally):
    path = run_copy / "run.json"
    content = path.read_bytes()
    usable, codes = 0, set()
    for _, other in damaged(content, how):
        path.write_bytes(other)
        listed = RunFolder.runs(run_copy.parent)
        tally.damaged_files += 1
        try:
            folder = RunFolder.open(run_copy)
        except HetaError as error:
            codes.add(error.code)
            continue
        usable += 1
        assert listed == [run_copy]
        try:
            folder.begin_session()
            # What the first session wrote is found from whatever can be opened.
            assert folder.earlier_sessions[0].name == "session-1"
        finally:
            folder.release()
        shutil.rmtree(run_copy / "session-2")
    assert usable < len(content)
    # The second is for the number of a format that is not known.
    assert codes - {"run-format"} == {"run-not-found"}


KEY = CacheKey("0" * 64, "toy", "toys", "a")


@pytest.fixture
def kept(tmp_path):
    """The folder of a knowledge base that is kept in the cache."""
    cache = KnowledgeBaseCache(tmp_path / "cache", max_bytes=1 << 20)
    partial = cache.begin(KEY)
    (partial.saved / "text").write_text("kept text", encoding="utf-8")
    cache.publish(KEY, partial, build_seconds=0.5)
    return cache.saved_at(KEY).parent


def read_whole(folder):
    """Read an entry of the cache as it is read before it is used."""
    entry = CacheEntry.read(folder)
    entry.check(folder)
    return replace(entry, last_used=0.0)


@pytest.mark.parametrize("how", [CUT, FLIPPED])
@pytest.mark.parametrize("name", ["entry.json", "saved/text"])
def test_saved_knowledge_base(kept, how, name, tally):
    """It is not used, and so built anew, or it says the same as before."""
    whole, content = read_whole(kept), (kept / name).read_bytes()
    told = set()
    for _, other in damaged(content, how):
        (kept / name).write_bytes(other)
        tally.damaged_files += 1
        try:
            assert read_whole(kept) == whole
        except CacheError as error:
            told.add(error.message.partition(" ")[0])
        else:
            # White space between its parts says nothing.
            assert name == "entry.json"
            assert json.loads(other) == json.loads(content)
    assert told == {Path(name).name}
