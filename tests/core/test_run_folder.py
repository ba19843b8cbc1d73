"""The folder of a run: sessions, fingerprints, and who works on it."""

import json
import os
import signal
import subprocess
import sys
from textwrap import dedent

import pytest

from pytest_heta.core.run_folder import RunFolder
from pytest_heta.errors import RunError, RunInUseError, RunNotFoundError


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
    ["", "{", "[]", '{"format": 99}', '{"format": 1, "run_id": "x", "started_at": "x"}'],
)
def test_a_folder_without_a_readable_run(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunNotFoundError, match="there is no run"):
        RunFolder.open(tmp_path)
    assert RunFolder.runs(tmp_path.parent) == []


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
