"""What was written is told to the disk in time, and a disk that fails is told of once."""

import os
import threading

import pytest

from pytest_heta.core import _sync
from pytest_heta.core._appended import AppendedFile
from pytest_heta.core.plan import Sample
from pytest_heta.core.query import QueryOutcome
from pytest_heta.core.spool import Spool
from pytest_heta.models import EvaluationError


@pytest.fixture
def syncer(monkeypatch):
    """A process that has written nothing yet."""
    made = _sync._Syncer()
    monkeypatch.setattr(_sync, "_syncer", made)
    return made


@pytest.fixture
def synced(monkeypatch):
    """Inodes of the files that the disk was told of; the event is set with each."""
    inodes, told = [], threading.Event()

    def fsync(descriptor, real=os.fsync):
        real(descriptor)
        inodes.append(os.fstat(descriptor).st_ino)
        told.set()

    monkeypatch.setattr(os, "fsync", fsync)
    return inodes, told


def test_the_disk_is_told_without_anyone_asking(syncer, synced, monkeypatch, tmp_path):
    monkeypatch.setattr(_sync, "INTERVAL_S", 0.01)
    inodes, told = synced
    file = AppendedFile(tmp_path / "results")
    file.append(b"one\n")
    assert told.wait(30)
    assert inodes[0] == (tmp_path / "results").stat().st_ino
    told.clear()
    file.append(b"two\n")
    assert told.wait(30)
    file.close()


def test_many_writes_are_told_of_at_once(syncer, synced, monkeypatch, tmp_path):
    monkeypatch.setattr(_sync, "INTERVAL_S", 3600.0)
    inodes, _ = synced
    file = AppendedFile(tmp_path / "results")
    for _ in range(100):
        file.append(b"line\n")
    assert inodes == []
    _sync.sync()
    assert inodes == [(tmp_path / "results").stat().st_ino]
    _sync.sync()
    assert len(inodes) == 1  # nothing new
    file.close()


def test_a_file_that_is_closed_is_told_of_at_once(syncer, synced, monkeypatch, tmp_path):
    monkeypatch.setattr(_sync, "INTERVAL_S", 3600.0)
    inodes, _ = synced
    spool = Spool(tmp_path / "spool" / "main.jsonl")
    failed = QueryOutcome(error=EvaluationError(message="x", error_type="query"))
    spool.add("tiny", Sample("a", "b", "c", "d", "e", 0), failed, cold=False)
    spool.close()
    assert inodes == [(tmp_path / "spool" / "main.jsonl").stat().st_ino]
    _sync.sync()
    assert len(inodes) == 1  # its number may be another file's by now


def test_a_disk_that_fails_is_told_of_once(syncer, monkeypatch, tmp_path):
    monkeypatch.setattr(_sync, "INTERVAL_S", 3600.0)
    file = AppendedFile(tmp_path / "results")
    file.append(b"one\n")

    def failing(descriptor):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as failure:
        failure.setattr(os, "fsync", failing)
        _sync.sync()
        file.append(b"two\n")
        _sync.sync()
    assert "Input/output error" in _sync.take_problem()
    assert _sync.take_problem() is None
    assert (tmp_path / "results").read_bytes() == b"one\ntwo\n"
    file.close()


def test_a_good_disk_is_no_problem(syncer, tmp_path):
    file = AppendedFile(tmp_path / "results")
    file.append(b"one\n")
    _sync.sync()
    assert _sync.take_problem() is None
    file.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks no processes")
def test_a_forked_process_begins_anew(syncer, tmp_path):
    _sync.note(os.open(tmp_path, os.O_RDONLY))
    _sync._after_fork()
    assert _sync._syncer is not syncer
    assert _sync._syncer._noted == set()


def test_folders_are_told_of(synced, tmp_path):
    _sync.sync_folder(tmp_path)
    assert synced[0] == [tmp_path.stat().st_ino]
    _sync.sync_folder(tmp_path / "none")  # nothing to tell of
