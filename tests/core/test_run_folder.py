"""The folder of a run: sessions, fingerprints, and who works on it."""

import json
import os
import signal
import subprocess
import sys
from textwrap import dedent

import pytest

from pytest_heta.core.run_folder import RunFolder
from pytest_heta.errors import RunError, RunFormatError, RunInUseError, RunNotFoundError


@pytest.fixture
def begun(tmp_path):
    folder = RunFolder.create(tmp_path, run_id="one")
    yield folder
    folder.release()


def test_a_new_run_has_one_session(begun, tmp_path):
    assert (begun.path, begun.run_id, begun.session) == (tmp_path / "one", "one", 1)
    assert begun.session_path == tmp_path / "one" / "session-1"
    assert begun.session_path.is_dir()
    assert begun.earlier_sessions == []
    assert begun.fingerprints == {}


def test_a_later_session_has_a_folder_of_its_own(begun):
    begun.set_fingerprints({"toys": {"recipe": "ab"}})
    begun.end_session(complete=False, interrupted="Ctrl-C")
    begun.release()
    again = RunFolder.open(begun.path)
    again.begin_session()
    assert again.fingerprints == {"toys": {"recipe": "ab"}}
    assert again.earlier_sessions == [begun.path / "session-1"]
    assert again.session_path == begun.path / "session-2"
    first, second = json.loads((begun.path / "run.json").read_text())["sessions"]
    assert (first["complete"], first["interrupted"]) == (False, "Ctrl-C")
    assert (second["number"], second["ended_at"]) == (2, None)
    again.release()


def test_one_process_works_on_a_run(begun):
    with pytest.raises(RunInUseError, match="another process is working on this run"):
        RunFolder.open(begun.path)


def test_a_killed_process_works_on_nothing(tmp_path):
    code = """
        import sys
        from pathlib import Path
        from pytest_heta.core.run_folder import RunFolder
        folder = RunFolder.create(Path(sys.argv[1]), run_id="one")
        print("begun", flush=True)
        sys.stdin.read()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", dedent(code), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout.readline() == b"begun\n"
        os.kill(process.pid, signal.SIGKILL)
    RunFolder.open(tmp_path / "one").release()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"format": "99"}',
        '{"format": 1, "run_id": "x", "started_at": "x"}',
    ],
)
def test_a_folder_without_a_readable_run(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunNotFoundError, match="there is no run"):
        RunFolder.open(tmp_path)
    assert RunFolder.runs(tmp_path.parent) == []


@pytest.mark.parametrize("number", [0, 2, 99])
def test_a_run_of_another_version_is_refused(tmp_path, number):
    content = {"format": number, "run_id": "x", "started_at": "2030-01-01T00:00:00+00:00"}
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "run.json").write_text(json.dumps(content))
    with pytest.raises(RunFormatError, match=f"the run is in format {number}, and this"):
        RunFolder.open(tmp_path / "x")
    # It is the last run, and not to be passed over in silence; nor is it ours to remove.
    assert RunFolder.runs(tmp_path) == [tmp_path / "x"]
    RunFolder.prune(tmp_path, keep=0)
    assert RunFolder.runs(tmp_path) == [tmp_path / "x"]


def test_a_damaged_file_is_no_run_or_one(begun):
    begun.set_fingerprints({"toys": {"recipe": "ab"}})
    begun.note_concurrency("toys", 8)
    begun.end_session(complete=False, interrupted=None)
    begun.release()
    path = begun.path / "run.json"
    content = path.read_bytes()
    damaged = [content[:end] for end in range(len(content))]
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 0x11
        damaged.append(bytes(flipped))
    opened = 0
    for data in damaged:
        path.write_bytes(data)
        try:
            folder = RunFolder.open(begun.path)
        except (RunNotFoundError, RunFormatError):
            continue
        opened += 1
        folder.begin_session()
        assert [session["number"] for session in folder.sessions] == [1, 2]
        folder.release()
    assert 0 < opened < len(content)  # most are within a name or a time


def test_runs_are_listed_from_the_newest(tmp_path):
    for name in ("b", "c", "a"):
        RunFolder.create(tmp_path, run_id=name).release()
    (tmp_path / "other").mkdir()
    assert [path.name for path in RunFolder.runs(tmp_path)] == ["a", "c", "b"]
    assert RunFolder.runs(tmp_path / "none") == []


def test_old_runs_are_removed_but_for_those_that_are_worked_on(tmp_path, begun):
    for name in ("two", "three", "four"):
        RunFolder.create(tmp_path, run_id=name).release()
    RunFolder.prune(tmp_path, keep=2)
    assert [path.name for path in RunFolder.runs(tmp_path)] == ["four", "three", "one"]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be made"):
        RunFolder.create(tmp_path / "file", run_id="one")


def made(parent, name, *, selection, complete=None, content="x"):
    folder = RunFolder.create(parent, run_id=name)
    folder.set_fingerprints({"toys": {"selection": selection}})
    if content:
        (folder.session_path / "results.jsonl").write_text(content)
    if complete is not None:
        folder.end_session(complete=complete, interrupted=None)
    folder.release()


def test_a_run_that_did_not_finish_outlives_newer_ones_that_did(tmp_path):
    made(tmp_path, "night", selection="all", complete=False)
    made(tmp_path, "killed", selection="half")
    made(tmp_path, "empty", selection="third", content="")
    made(tmp_path, "older", selection="fourth", complete=False)
    made(tmp_path, "newer", selection="fourth", complete=False)
    for number in range(3):
        made(tmp_path, f"day{number}", selection="one", complete=True)
    RunFolder.prune(tmp_path, keep=3)
    kept = [path.name for path in RunFolder.runs(tmp_path)]
    assert kept == ["day2", "day1", "day0", "newer", "killed", "night"]


def test_those_that_did_not_finish_are_bounded_too(tmp_path):
    for number in range(6):
        made(tmp_path, f"run{number}", selection=str(number), complete=False)
    RunFolder.prune(tmp_path, keep=2)
    assert [path.name for path in RunFolder.runs(tmp_path)] == ["run5", "run4", "run3", "run2"]


def test_what_a_killed_removal_left_goes_later(tmp_path):
    for name in ("left", "recent"):
        made(tmp_path, name, selection="all")
        (tmp_path / name / "run.json").unlink()
    os.utime(tmp_path / "left" / "run.lock", (0, 0))
    (tmp_path / "mine").mkdir()
    RunFolder.prune(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "recent"]


def test_a_session_without_results_is_taken_back(begun):
    begun.drop_session()
    assert begun.session == 1  # the run itself
    (begun.session_path / "results.jsonl").write_text("x")
    begun.begin_session()
    begun.drop_session()
    assert [session["number"] for session in begun.sessions] == [1]
    assert not (begun.path / "session-2").exists()
    begun.begin_session()
    (begun.session_path / "results.jsonl").write_text("x")
    begun.drop_session()
    assert begun.session == 2


def test_what_is_known_of_sessions(begun):
    begun.note_concurrency("toys", 8)
    written = begun.session_path / "results.jsonl"
    written.write_text("x")
    begun_at = begun.started_at.timestamp()
    os.utime(written, (begun_at + 5, begun_at + 5))
    begun.begin_session()  # the first was killed
    begun.end_session(complete=False, interrupted="Ctrl-C")
    begun.begin_session()
    killed, ended, current = begun.sessions
    assert (killed["number"], killed["ended_at"], killed["interrupted"]) == (1, None, "killed")
    assert killed["seconds"] == pytest.approx(5, abs=0.1)
    assert killed["concurrency"] == {"toys": 8}
    assert (ended["interrupted"], ended["concurrency"]) == ("Ctrl-C", {})
    assert ended["ended_at"] >= ended["started_at"]
    assert (current["number"], current["ended_at"]) == (3, None)
    assert current["seconds"] is not None
