"""A run that gets to write no report leaves none of an earlier run in its place."""

from __future__ import annotations

import json
import signal

import pytest
from fault_world import CASES

WHILE_COLLECTING = """
from inside import FAULT, meet

def pytest_collection_modifyitems():
    if FAULT.get("place") == "collection":
        meet()
"""


@pytest.fixture
def old_report(fault_world):
    """Return a function that reads the report file, in which there is one of before."""
    path = fault_world.path / "report.json"
    path.write_text(json.dumps({"schema_version": "1", "run": {"complete": True}, "reports": []}))

    def read():
        return json.loads(path.read_text())

    return read


def run_of(old_report):
    data = old_report()
    assert data["reports"] == []
    return data["run"]["complete"], data["run"].get("interrupted")


def test_killed_while_it_asks(fault_world, old_report, workers, check_resumed):
    fault = {"place": "query", "number": 6}
    run = fault_world.start(*workers, fault=fault)
    run.wait_for(2 if workers else 1)
    run.signal(signal.SIGKILL)
    run.release()
    assert run.end().code == -signal.SIGKILL
    assert run_of(old_report) == (False, "the run has not ended")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_end_while_it_collects(fault_world, old_report, workers, number):
    fault_world.write("conftest.py", WHILE_COLLECTING)
    run = fault_world.start(*workers, fault={"place": "collection"})
    run.wait_for(2 if workers else 1)
    run.signal(number)
    if workers:
        run.release()
    ended = run.end()
    assert ended.code == pytest.ExitCode.INTERRUPTED
    assert run_of(old_report) == (False, "it ended while tests were collected")


def test_ordinary_tests_leave_it_alone(fault_world, old_report, workers):
    fault_world.write("test_plain.py", "def test_plain():\n    raise KeyboardInterrupt\n")
    fault_world.write("test_wrong.py", "import nothing_of_this_name\n")
    for name in ("test_plain.py", "test_wrong.py"):
        ended = fault_world.run(*workers, name)
        assert ended.code not in {0, 5}
        assert run_of(old_report) == (True, None)


def test_refused_runs_leave_it_alone(fault_world, old_report, workers):
    ended = fault_world.run(*workers, "--heta-gate=overlap.recal@1 >= 1")
    assert ended.code == pytest.ExitCode.USAGE_ERROR
    assert run_of(old_report) == (True, None)


def test_a_run_that_ends_writes_its_own(fault_world, old_report):
    assert fault_world.run().code == 0
    assert old_report()["run"]["complete"] is True
    assert [case["case_id"] for case in fault_world.report()["case_results"]] == CASES
