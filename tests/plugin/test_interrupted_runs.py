"""A run that was interrupted says what is missing, decides nothing, and can be gone on with."""

import json
import signal
import sys

import pytest

WORKERS = pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])

GATE = "--heta-gate=overlap.recall@1 >= 0"

END = """
import signal
for name in os.environ["SIGNALS"].split():
    os.kill(os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid(),
            getattr(signal, name))
"""


@pytest.fixture
def hundred(world, asked, monkeypatch):
    """A dataset of 100 cases; the eleventh is where things end."""
    monkeypatch.setenv("AT", "word10")
    return type(asked)(world, 100)


def journals(world):
    """Return the records of results, and of responses, that are on disk."""
    (folder,) = world.path.glob(".pytest_cache/d/heta-runs/*/session-1")
    found = [folder.glob("results.jsonl"), folder.glob("spool/*.jsonl")]
    return [
        [line for path in paths for line in path.read_bytes().splitlines() if line]
        for paths in found
    ]


def own_group(world):
    """Return a command for Python in a process group of its own."""
    path = world.path / "python-of-a-group"
    python = "sys.executable, [sys.executable, *sys.argv[1:]]"
    call = f"import os, sys; os.setpgid(0, 0); os.execv({python})"
    path.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{call}' \"$@\"\n")
    path.chmod(0o755)
    return str(path)


def resumed(world, *arguments):
    result = world.run("--heta-resume", *arguments, cache=True)
    result.assert_outcomes(passed=100)
    assert result.ret == 0
    metadata = world.report()["metadata"]
    assert (metadata["complete"], metadata["missing_samples"]) == (True, 0)
    return result


@WORKERS
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal(world, hundred, run_elsewhere, monkeypatch, workers, name):
    monkeypatch.setenv("SIGNALS", name)
    monkeypatch.setenv("THEN_WAIT", "60")
    # A terminal sends Ctrl-C to the workers, too.
    do = "import signal; os.killpg(0, signal.SIGINT)"
    if name == "SIGINT" and workers:
        monkeypatch.setattr(sys, "executable", own_group(world))
    result = run_elsewhere(GATE, *workers, do=do if name == "SIGINT" and workers else END)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    asked = hundred.texts()
    file = json.loads((world.path / "report.json").read_text())
    report = file["reports"][0]
    metadata = report["metadata"]
    assert file["run"]["complete"] is False
    assert metadata["complete"] is False
    assert metadata["interrupted"]
    finished = [case["case_id"] for case in report["case_results"]]
    missing = [f"toys::corpus::overlap[c{n}]" for n in range(100) if f"c{n}" not in finished]
    assert metadata["missing"] == missing
    assert metadata["missing_samples"] == len(missing) >= 88
    assert [gate["status"] for gate in report["gates"]] == ["skipped"]
    lines = [line for line in result.outlines if "--heta-resume=" in line]
    assert len(lines) == 1
    assert f"heta: {len(missing)} missing" in "\n".join(result.outlines)
    assert "INCOMPLETE" in result.stdout.str()
    monkeypatch.setenv("THEN_WAIT", "0")
    resumed(world, *workers)
    again = hundred.texts()
    assert set(asked) | set(again) == set(hundred.words)
    # Only what was under way was asked for nothing.
    assert set(asked) & set(again) <= {"word10", "word11"}


@WORKERS
def test_a_signal_and_then_a_kill(world, hundred, run_elsewhere, monkeypatch, workers):
    monkeypatch.setenv("SIGNALS", "SIGINT SIGKILL")
    monkeypatch.setenv("THEN_WAIT", "60")
    assert run_elsewhere(*workers, do=END).ret == -signal.SIGKILL
    asked = hundred.texts()
    assert len(asked) >= 10
    _, responses = journals(world)
    returned = [word for word in asked if word != "word10"]
    # All that had returned is on disk; of the two workers, one may have had one under way.
    assert len(responses) >= len(returned) - len(workers)
    assert not (world.path / "report.json").exists()
    monkeypatch.setenv("THEN_WAIT", "0")
    resumed(world, *workers)
    again = hundred.texts()
    assert set(asked) | set(again) == set(hundred.words)
    assert len(again) == 100 - len(responses)


def test_workers_that_crash_and_are_not_restarted(world, hundred, run_elsewhere):
    result = run_elsewhere("-n1", "--max-worker-restart=0", GATE, do="os._exit(9)")
    assert result.ret not in {0, pytest.ExitCode.NO_TESTS_COLLECTED}
    report = world.report()
    metadata = report["metadata"]
    assert metadata["complete"] is False
    assert metadata["missing_samples"] == 100 - len(report["case_results"]) > 0
    assert [gate["status"] for gate in report["gates"]] == ["skipped"]
    result.stdout.fnmatch_lines(["heta: * missing and 1 failed by an error in run *"])
    asked = hundred.texts()
    resumed(world)
    assert set(asked) & set(hundred.texts()) == {"word10"}


def test_the_first_failure(world, hundred, run_elsewhere):
    result = run_elsewhere("-x", GATE, do="1 / 0")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    report = world.report()
    assert report["metadata"]["missing_samples"] == 89
    assert len(report["metadata"]["missing"]) == 89
    assert [gate["status"] for gate in report["gates"]] == ["skipped"]
    resumed(world)


@pytest.mark.parametrize("cut", ["record", "character"])
def test_a_journal_that_is_torn(world, hundred, run_elsewhere, cut):
    """The good records are kept, the torn one's case is asked again, and twice is as once."""
    texts = [{**document, "text": f"{document['text']} 🚲中"} for document in hundred.documents]
    world.dataset(hundred.cases, texts)
    run_elsewhere(do="os._exit(9)")
    assert hundred.texts() == hundred.words[:11]
    (session,) = world.path.glob(".pytest_cache/d/heta-runs/*/session-1")
    torn = {}
    for path in session.rglob("*.jsonl"):
        content = path.read_bytes()
        end = content.rindex("🚲".encode()) + 2 if cut == "character" else len(content) - 40
        torn[path] = content[:end]
        path.write_bytes(torn[path])
    first = resumed(world)
    # The spool's last one is torn; its result may have been written down before.
    assert hundred.texts() in (hundred.words[9:], hundred.words[10:])
    assert first.stdout.str().count("[records-damaged]") == 1
    before = world.report()
    resumed(world)
    assert hundred.texts() == []
    after = world.report()
    assert after["score_summary"] == before["score_summary"]
    assert [case["scores"] for case in after["case_results"]] == [
        case["scores"] for case in before["case_results"]
    ]
    # An earlier session's files are read, and never written.
    assert {path: path.read_bytes() for path in torn} == torn
