"""Kill it anywhere: what was finished is not asked again, and the rest is asked."""

from __future__ import annotations

import signal

import pytest
from fault_world import CASES

KILL = {"place": "query", "number": 6}

AT_THE_REPORT = """
import os
from inside import FAULT, meet

def pytest_heta_report(config, report):
    # Workers make none.
    if FAULT and os.path.exists("released"):
        os.unlink("released")
        meet()
"""

COROUTINES = """
Base = KnowledgeBase


class Asynchronous(Base):
    async def query(self, text, *, mode, top_k, options=None):
        return Base.query(self, text, mode=mode, top_k=top_k)

    async def close(self):
        note("closed")


KnowledgeBase = Asynchronous
"""

EXIT = "os._exit(9)"


def stopped(world, workers, fault=KILL, conftest=""):
    """Start a run and return it when every process that asks has come to the place."""
    world.write("conftest.py", conftest)
    run = world.start(*workers, fault=fault)
    processes = run.wait_for(2 if workers else 1)
    world.note("fault")
    return run, processes


def check_told(world, ended, finished):
    """Check that a run that was ended early says so, wherever one looks."""
    assert ended.code == pytest.ExitCode.INTERRUPTED
    assert ended.says(r"^heta: \d+ missing .*--heta-resume=")
    report = world.report()
    metadata = report["metadata"]
    assert (metadata["complete"], metadata["selected_samples"]) == (False, len(CASES))
    assert metadata["interrupted"]
    # The one that was being asked may have come to its end.
    known = {result["case_id"] for result in report["case_results"]}
    assert metadata["missing_samples"] == len(CASES) - len(known)
    assert metadata["missing"] == [
        f"toys::{name[0]}::overlap[{name}]" for name in CASES if name not in known
    ]
    assert known <= world.answered()
    assert [gate["status"] for gate in report["gates"]] == ["skipped"]


def check_not_green(world, ended):
    """Check that nobody takes a run that was ended early for one that went well."""
    assert ended.code not in {0, pytest.ExitCode.NO_TESTS_COLLECTED}
    assert not world.has_report() or not world.report()["metadata"]["complete"]


def test_nothing_goes_wrong(fault_world, workers, check_resumed):
    assert fault_world.run(*workers).code == 0
    check_resumed(set(CASES), *workers)
    # It is not counted among the faults.
    fault_world.tally.finished = fault_world.tally.recovered = 0


class TestTheController:
    """The process that was started: without workers, it asks as well."""

    def test_killed(self, fault_world, workers, check_resumed):
        run, _ = stopped(fault_world, workers)
        run.signal(signal.SIGKILL)
        run.release()
        assert run.end().code == -signal.SIGKILL
        assert not fault_world.has_report()
        finished = fault_world.answered(before_fault=True)
        assert len(finished) == 5
        check_resumed(finished)

    @pytest.mark.parametrize("is_heedless", [False, True], ids=["", "heedless"])
    def test_killed_while_workers_wait_for_answers(self, fault_world, check_resumed, is_heedless):
        run, _ = stopped(fault_world, ("-n2",), {**KILL, "is_heedless": is_heedless})
        run.signal(signal.SIGKILL)
        ended = run.end()
        assert ended.code == -signal.SIGKILL
        # execnet by itself needs 15 seconds for those that cannot be interrupted.
        assert ended.seconds < 10
        check_resumed(fault_world.answered(before_fault=True), "-n2")

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_asked_to_end(self, fault_world, workers, check_resumed, number):
        run, _ = stopped(fault_world, workers)
        run.signal(number)
        if workers:
            run.release()
        ended = run.end()
        finished = fault_world.answered(before_fault=True)
        assert len(finished) == 5
        check_told(fault_world, ended, finished)
        check_resumed(finished)

    def test_asked_to_end_where_a_coroutine_blocks_the_loop(
        self, fault_world, workers, check_resumed
    ):
        fault_world.extend_recipe(COROUTINES)
        run, _ = stopped(fault_world, workers)
        run.signal(signal.SIGINT)
        ended = run.end()
        assert ended.seconds < 10
        finished = fault_world.answered(before_fault=True)
        check_told(fault_world, ended, finished)
        check_resumed(finished)

    @pytest.mark.parametrize("is_heedless", [False, True], ids=["", "heedless"])
    def test_asked_to_end_without_its_workers(self, fault_world, check_resumed, is_heedless):
        run, _ = stopped(fault_world, ("-n2",), {**KILL, "is_heedless": is_heedless})
        run.signal(signal.SIGINT)
        ended = run.end()
        # execnet by itself lets them go on for five seconds, and for ten more then.
        assert ended.seconds < (10 if is_heedless else 5)
        finished = fault_world.answered(before_fault=True)
        check_told(fault_world, ended, finished)
        check_resumed(finished)

    def test_asked_to_end_twice_at_once(self, fault_world, workers, check_resumed):
        run, _ = stopped(fault_world, workers)
        run.signal(signal.SIGINT)
        run.signal(signal.SIGINT)
        if workers:
            run.release()
        check_not_green(fault_world, run.end())
        check_resumed(fault_world.answered(before_fault=True))

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_asked_to_end_again_while_it_makes_the_report(
        self, fault_world, workers, check_resumed, number
    ):
        run, _ = stopped(fault_world, workers, conftest=AT_THE_REPORT)
        run.release()
        run.signal(number)
        run.wait_for(1)
        run.signal(number)
        check_not_green(fault_world, run.end())
        check_resumed(fault_world.answered(before_fault=True))


class TestAWorker:
    def test_killed(self, fault_world, check_resumed):
        run, (first, _) = stopped(fault_world, ("-n2",))
        run.signal(signal.SIGKILL, first)
        run.release()
        ended = run.end()
        assert ended.code == pytest.ExitCode.TESTS_FAILED
        finished = fault_world.answered()
        assert len(finished) == len(CASES) - 1
        report = fault_world.report()
        assert [result["case_id"] for result in report["case_results"]] == CASES
        errors = {
            r["case_id"]: r["error"]["error_type"] for r in report["case_results"] if r["error"]
        }
        assert errors == dict.fromkeys(set(CASES) - finished, "crash")
        assert ended.says(r"^heta: 1 failed by an error .*--heta-resume=")
        assert [gate["status"] for gate in report["gates"]] == ["failed"]
        check_resumed(finished)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_asked_to_end(self, fault_world, check_resumed, number):
        run, (first, _) = stopped(fault_world, ("-n2",))
        run.signal(number, first)
        run.release()
        ended = run.end()
        assert ended.code not in {0, 5}
        finished = fault_world.answered(before_fault=True)
        assert len(finished) == 5
        assert ended.says(r"^heta: .*--heta-resume=")
        check_resumed(finished)


class TestTheProcessEndsInUsersCode:
    """Serially that is the end of the run; otherwise of a worker."""

    @pytest.mark.parametrize("place", ["query", "evaluator", "build", "document"])
    def test_once(self, fault_world, workers, check_resumed, place):
        number = {"build": 2, "document": 12}.get(place, 6)
        ended = fault_world.run(*workers, fault={"place": place, "number": number, "code": EXIT})
        assert ended.code not in {0, 5}
        finished = fault_world.answered()
        if not workers:
            assert not fault_world.has_report()
            assert len(finished) == {"query": 5, "evaluator": 6, "build": 8, "document": 0}[place]
        check_resumed(finished)

    def test_whenever_it_is_built(self, fault_world, workers, check_resumed):
        fault = {"place": "build", "number": 2, "code": EXIT, "again": True}
        ended = fault_world.run(*workers, fault=fault)
        assert ended.code not in {0, 5}
        check_resumed(fault_world.answered())


MEMORY = {
    "raised": "raise MemoryError",
    "exhausted": """
pages = int(open("/proc/self/statm").read().split()[0])
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (256 << 20), hard))
bytearray(1 << 30)
""",
}


class TestMemoryIsExhausted:
    @pytest.mark.parametrize(("place", "how"), [("build", "raised"), ("query", "exhausted")])
    def test_in_users_code(self, fault_world, workers, check_resumed, how, place):
        number = 2 if place == "build" else 6
        fault = {"place": place, "number": number, "code": MEMORY[how]}
        ended = fault_world.run(*workers, fault=fault)
        assert ended.code == pytest.ExitCode.TESTS_FAILED
        assert ended.says("MemoryError")
        finished = fault_world.answered()
        report = fault_world.report()
        assert report["metadata"]["complete"] is True
        assert {r["case_id"] for r in report["case_results"] if not r["error"]} == finished
        assert len(finished) == (8 if place == "build" else 15)
        check_resumed(finished)
