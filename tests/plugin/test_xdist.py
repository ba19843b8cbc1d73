"""Distributed runs: units stay whole, reports are as ever, and dying workers are survived."""

import json
import os
import signal
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

QUERIES = [("apple pie", "apple"), ("bike repair", "bike"), ("rain cloud", "cloud")]


def unit_cases(units: dict[str, int]) -> list[dict]:
    """Return so many cases for each unit, each unit with all documents."""
    return [
        {
            "case_id": f"{unit}{number}",
            "query": f"{QUERIES[number % 3][0]} {unit}{number}",
            "evidence": [QUERIES[number % 3][1]],
            "unit": unit,
            "documents": ["apple", "bike", "cloud", "drum"],
        }
        for unit, count in units.items()
        for number in range(count)
    ]


def killing(query: str) -> str:
    """Return an extension of the recipe that kills the process at a query."""
    return f"""
        class KnowledgeBase(KnowledgeBase):
            def query(self, text, *, mode, top_k, options=None):
                if text == {query!r}:
                    os._exit(9)
                return super().query(text, mode=mode, top_k=top_k, options=options)
        """


def workers_of_units(report: dict) -> dict[str, str]:
    return {build["unit_id"]: build["metadata"]["worker"] for build in report["unit_builds"]}


def errors_of(report: dict) -> dict[str, str]:
    return {
        result["case_id"]: result["error"]["error_type"]
        for result in report["case_results"]
        if result["error"]
    }


# --- whole units ---------------------------------------------------------------


def test_report_is_that_of_a_serial_run(world, builds, comparable):
    world.dataset(unit_cases({"a": 3, "b": 4, "c": 2}))
    gates = ("--heta-gate=overlap.recall@1 >= 0.5", "--heta-gate=backwards.ndcg@10 >= 0.9")
    world.run(*gates).assert_outcomes(passed=19, failed=1)
    serial = world.report()
    assert builds() == {"a": 1, "b": 1, "c": 1}
    world.run("-n2", *gates).assert_outcomes(passed=19, failed=1)
    distributed = world.report()
    assert builds() == {"a": 2, "b": 2, "c": 2}
    # Latencies are compared only at equal concurrency, so the report has to tell it.
    assert serial["config_snapshot"]["concurrency"] == 1
    assert distributed["config_snapshot"]["concurrency"] == 2
    assert comparable(distributed) == comparable(serial)
    assert [result["case_id"] for result in distributed["case_results"][:3]] == ["a0", "a1", "a2"]
    assert set(workers_of_units(distributed).values()) == {"gw0", "gw1"}


def test_more_workers_than_units(world, builds):
    world.dataset(unit_cases({"a": 3, "b": 3}))
    world.run("-n4").assert_outcomes(passed=12)
    assert builds() == {"a": 1, "b": 1}
    report = world.report()
    assert len(set(workers_of_units(report).values())) == 2
    assert report["metadata"]["complete"] is True


@pytest.mark.parametrize("dist", ["loadscope", "loadfile", "worksteal", "loadgroup", "each"])
def test_other_schedulers_give_the_same_results(world, dist):
    world.dataset(unit_cases({"a": 2, "b": 2}))
    copies = 2 if dist == "each" else 1
    world.run("-n2", f"--dist={dist}", "--heta-mode=overlap").assert_outcomes(passed=4 * copies)
    report = world.report()
    assert [result["case_id"] for result in report["case_results"]] == ["a0", "a1", "b0", "b1"]
    assert report["metadata"]["complete"] is True
    assert report["score_summary"]["overlap.recall@1"] == 1.0


def test_ordinary_tests_are_shared_out(world):
    world.suite(
        extra="""
        import os, pathlib, pytest

        @pytest.mark.parametrize("number", range(8))
        def test_plain(number, testrun_uid, worker_id):
            with (pathlib.Path(__file__).parent / "who.txt").open("a") as file:
                file.write(f"{worker_id} {number}\\n")
        """
    )
    world.run("-n2", "-k", "test_plain").assert_outcomes(passed=8)
    lines = [line.split() for line in (world.path / "who.txt").read_text().splitlines()]
    assert sorted(int(number) for _, number in lines) == list(range(8))
    assert {worker for worker, _ in lines} == {"gw0", "gw1"}


def test_ordinary_tests_and_units_together(world, builds):
    world.dataset(unit_cases({"a": 2, "b": 2}))
    world.suite(
        extra="""
        import pytest

        @pytest.mark.parametrize("number", range(5))
        def test_plain(number):
            pass
        """
    )
    world.run("-n2").assert_outcomes(passed=13)
    assert builds() == {"a": 1, "b": 1}


def test_selection_reaches_the_workers(world, builds):
    world.dataset(unit_cases({"a": 2, "b": 2}))
    world.run("-n2", "-k", "b1 and overlap", "--heta-gate=overlap.recall@1 >= 0").assert_outcomes(
        passed=1, skipped=1
    )
    assert builds() == {"b": 1}
    report = world.report()
    assert [result["case_id"] for result in report["case_results"]] == ["b1"]
    assert report["gates"][0]["status"] == "skipped"


def test_folder_as_the_argument(world):
    (world.path / "bench_toys.py").unlink()
    world.run("-n1", "toys", "--heta-mode=overlap").assert_outcomes(passed=3)
    assert world.run("-n1", ".").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_current_folder_is_no_argument_of_the_workers(world, monkeypatch):
    (world.path / "bench_toys.py").unlink()
    monkeypatch.chdir(world.path / "toys")
    result = world.run("-n1", recipe=f"{world.path / 'recipe.py'}:recipe")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


# --- dying workers -------------------------------------------------------------


@pytest.mark.parametrize("workers", ["-n2", "-n1"])
def test_killed_worker_costs_one_sample(world, workers):
    world.dataset(unit_cases({"a": 6, "b": 6}))
    world.record_queries()
    world.extend_recipe(killing("rain cloud a2"))
    gate = "--heta-gate=overlap.failure_rate <= 0.05"
    result = world.run(workers, "--heta-mode=overlap", gate)
    result.assert_outcomes(passed=11, failed=2)
    report = world.report()
    assert [r["case_id"] for r in report["case_results"]] == [
        f"{unit}{number}" for unit in "ab" for number in range(6)
    ]
    assert errors_of(report) == {"a2": "crash"}
    assert "crashed while running" in report["case_results"][2]["error"]["message"]
    # No case is asked twice, and the killer is not asked again.
    asked = [text for text, *_ in world.asked()]
    assert sorted(asked) == sorted(
        case["query"] for case in unit_cases({"a": 6, "b": 6}) if case["case_id"] != "a2"
    )
    assert report["metadata"]["complete"] is True
    summary = report["mode_summaries"]["overlap"]
    assert (summary["failed_cases"], summary["total_cases"]) == (1, 12)
    assert summary["metrics"]["recall@1"]["mean"] == pytest.approx(11 / 12)
    assert report["gates"][0]["status"] == "failed"


def test_build_that_kills_its_workers_errors_its_own_unit(world, builds):
    world.dataset(unit_cases({"a": 6, "b": 3}))
    world.extend_recipe(
        """
        class Recipe(Recipe):
            def create(self, *, name, **arguments):
                knowledge_base = super().create(name=name, **arguments)
                if "-a-" in name:
                    os._exit(9)
                return knowledge_base

        recipe = Recipe()
        """
    )
    result = world.run("-n2", "--heta-mode=overlap", "--junitxml=junit.xml")
    result.assert_outcomes(passed=3, failed=6)
    # It may have died of something else the first time; not the second.
    assert builds() == {"a": 2, "b": 1}
    report = world.report()
    assert errors_of(report) == {f"a{number}": "crash" for number in range(6)}
    assert report["metadata"]["complete"] is True
    assert "while it built the run unit" in report["case_results"][5]["error"]["message"]
    result.stdout.fnmatch_lines(["*worker 'gw*' crashed*built the run unit's knowledge base*"])
    assert len(list(ET.parse(world.path / "junit.xml").iter("testcase"))) == 9


def test_crash_is_no_expected_failure(world):
    world.extend_recipe(killing("bike repair"))
    result = world.run("-n1", "--heta-fail-on=gate", "--heta-mode=overlap")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes()["failed"] >= 1
    assert errors_of(world.report()) == {"repair": "crash"}


def test_crash_of_an_ordinary_test_costs_one_test(world):
    world.suite(
        extra="""
        import os, pytest

        @pytest.mark.parametrize("number", range(4))
        def test_plain(number):
            if number == 1:
                os._exit(9)
        """
    )
    world.run("-n1", "--heta-mode=overlap").assert_outcomes(passed=6, failed=1)
    assert errors_of(world.report()) == {}


# --- collection ----------------------------------------------------------------


def test_modes_in_a_set_are_the_same_everywhere(world, monkeypatch, comparable):
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    names = [f"mode_{letter}" for letter in "abcdefgh"]
    world.extend_recipe(
        f"""
        class KnowledgeBase(KnowledgeBase):
            available_queries = set({names})

        class Recipe(Recipe):
            available_queries = set({names})

        recipe = Recipe()
        """
    )
    world.run("-n2").assert_outcomes(passed=24)
    report = world.report()
    assert report["query_modes"] == names
    assert [r["query_mode"] for r in report["case_results"]] == [n for n in names for _ in "123"]


def test_different_collections_are_reported(world):
    world.suite(
        extra="""
        import os, pytest

        @pytest.mark.parametrize("worker", [os.environ["PYTEST_XDIST_WORKER"]])
        def test_plain(worker):
            pass
        """
    )
    result = world.run("-n2")
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["*Different tests were collected between gw*", "*test_plain[[]gw?[]]*"]
    )
    assert world.report()["metadata"]["complete"] is False
    assert world.report()["case_results"] == []


# --- interrupts ----------------------------------------------------------------


WAITS = """
import time

class KnowledgeBase(KnowledgeBase):
    def query(self, text, *, mode, top_k, options=None):
        if text.startswith("rain"):
            with open("asked.pipe", "w") as pipe:
                pipe.write("rain")
            # Only an interrupt ends this.
            time.sleep(600)
        return super().query(text, mode=mode, top_k=top_k, options=options)
"""
# A shell's background jobs ignore interrupts, and so would all that they start.
INTERRUPTIBLE = """
import signal, sys, pytest

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(pytest.main(sys.argv[1:]))
"""
SAYS_WHAT_HAS_ARRIVED = """
def pytest_heta_case_completed(result):
    if result.case_id == "repair":
        with open("arrived.pipe", "w") as pipe:
            pipe.write("repair")
"""


@pytest.mark.skipif(os.name == "nt", reason="named pipes and SIGINT are POSIX")
@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["serial", "distributed"])
def test_interrupt_leaves_a_partial_report(world, workers):
    world.extend_recipe(WAITS)
    (world.path / "conftest.py").write_text(SAYS_WHAT_HAS_ARRIVED, encoding="utf-8")
    pipes = [world.path / "arrived.pipe", world.path / "asked.pipe"]
    for pipe in pipes:
        os.mkfifo(pipe)
    arguments = ["--heta-recipe=recipe.py:recipe", "--heta-gate=overlap.recall@1 >= 0"]
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *world.quiet, *arguments, *workers],
        cwd=world.path,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        # Opening a pipe waits for the other end.
        assert [pipe.read_text(encoding="utf-8") for pipe in pipes] == ["repair", "rain"]
        # As a terminal does: to every process of the group.
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    report = world.report()
    assert [r["case_id"] for r in report["case_results"]] == ["pie", "repair"]
    assert report["metadata"]["complete"] is False
    assert report["metadata"]["interrupted"] == "KeyboardInterrupt"
    assert [gate["status"] for gate in report["gates"]] == ["skipped"]
    run = json.loads((world.path / "report.json").read_text(encoding="utf-8"))["run"]
    assert run["complete"] is False
    assert "INCOMPLETE" in output
