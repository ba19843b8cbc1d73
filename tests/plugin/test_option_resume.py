"""``--heta-resume``: only what is missing or failed is asked, and the report is of it all."""

import json
import signal

import pytest


def resume(world, *arguments):
    return world.run("--heta-resume", *arguments, cache=True)


def reused(world):
    results = world.report()["case_results"]
    return [result["case_id"] for result in results if result["metadata"].get("reused")]


ALL = [f"word{number}" for number in range(12)]


class TestKilled:
    @pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(9)"])
    def test_what_has_returned_is_not_asked_again(self, world, asked, run_elsewhere, end):
        assert run_elsewhere(do=end).ret != 0
        assert asked.texts() == ALL[:8]
        gate = "--heta-gate=overlap.recall@1 >= 1"
        resume(world, gate).assert_outcomes(passed=13)
        assert asked.texts() == ALL[7:]
        report = world.report()
        assert report["metadata"]["complete"] is True
        assert report["metadata"]["session"] == 2
        count = report["metadata"]["reused_samples"]
        assert reused(world) == [f"c{number}" for number in range(count)]
        assert [gate["status"] for gate in report["gates"]] == ["passed"]
        assert report["mode_summaries"]["overlap"]["latency"]["n"] == 12

    def test_of_the_controller_of_workers(self, world, asked, run_elsewhere):
        assert run_elsewhere("-n2", do="os.kill(os.getppid(), signal.SIGKILL)").ret != 0
        before = asked.texts()
        resume(world, "-n2").assert_outcomes(passed=12)
        again = asked.texts()
        # The one that killed may have returned in its worker.
        assert sorted({*before, *again}) == sorted(ALL)
        assert set(before) & set(again) <= {"word7", "word8"}

    def test_a_worker(self, world, asked, run_elsewhere):
        run_elsewhere("-n2", do="os._exit(9)").assert_outcomes(passed=11, failed=1)
        assert sorted(asked.texts()) == sorted(ALL)
        resume(world).assert_outcomes(passed=12)
        assert asked.texts() == ["word7"]

    def test_twice(self, world, asked, run_elsewhere):
        end = "os._exit(9)"
        run_elsewhere(do=end)
        asked.texts()
        run_elsewhere("--heta-resume", do=end)
        assert asked.texts() == ["word7"]
        resume(world).assert_outcomes(passed=12)
        assert asked.texts() == ALL[7:]

    def test_a_torn_journal(self, world, asked, run_elsewhere):
        run_elsewhere(do="os._exit(9)")
        asked.texts()
        (session,) = world.path.glob(".pytest_cache/d/heta-runs/*/session-1")
        for path in session.rglob("*.jsonl"):
            path.write_bytes(path.read_bytes()[:-3])
        resume(world).assert_outcomes(passed=12)
        # The last one's result and response are torn.
        assert asked.texts() == ALL[6:]
        resume(world).assert_outcomes(passed=12)
        assert asked.texts() == []


class TestEnded:
    def test_by_a_failing_query(self, world, asked, monkeypatch):
        monkeypatch.setenv("DO", "1 / 0")
        result = world.run(cache=True)
        result.assert_outcomes(passed=11, failed=1)
        result.stdout.fnmatch_lines(["heta: 1 failed by an error in run *--heta-resume=*"])
        asked.texts()
        monkeypatch.setenv("DO", "")
        resume(world).assert_outcomes(passed=12)
        assert asked.texts() == ["word7"]

    def test_by_the_first_failure(self, world, asked, monkeypatch):
        monkeypatch.setenv("DO", "1 / 0")
        result = world.run("-x", "--heta-gate=overlap.recall@1 >= 0", cache=True)
        assert result.ret != 0
        report = world.report()
        assert report["metadata"]["complete"] is False
        assert report["metadata"]["missing_samples"] == 4
        assert report["metadata"]["missing"][0] == "toys::corpus::overlap[c8]"
        assert [gate["status"] for gate in report["gates"]] == ["skipped"]
        result.stdout.fnmatch_lines(["heta: 4 missing and 1 failed by an error in run *"])

    @pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
    def test_by_sigterm(self, world, asked, run_elsewhere, workers):
        who = "os.getppid()" if workers else "os.getpid()"
        result = run_elsewhere(*workers, do=f"os.kill({who}, signal.SIGTERM)")
        assert result.ret == pytest.ExitCode.INTERRUPTED
        metadata = world.report()["metadata"]
        assert metadata["interrupted"] is not None
        result.stdout.fnmatch_lines(["*--heta-resume=*"])
        resume(world).assert_outcomes(passed=12)

    def test_well_there_is_nothing_to_do(self, world, asked):
        world.run(cache=True).assert_outcomes(passed=12)
        assert (len(asked.texts()), asked.builds()) == (12, 1)
        before = world.report()
        resume(world, "--junitxml=junit.xml").assert_outcomes(passed=12)
        assert (asked.texts(), asked.builds()) == ([], 0)
        after = world.report()
        summaries = after["mode_summaries"]["overlap"]
        assert summaries.pop("reused_samples") == 12
        assert before["mode_summaries"]["overlap"].pop("reused_samples") == 0
        assert summaries == before["mode_summaries"]["overlap"]
        # Nothing was asked: it is the other session whose latencies these are.
        assert after["config_snapshot"]["concurrency"] == before["config_snapshot"]["concurrency"]
        assert (world.path / "junit.xml").read_text().count("<testcase") == 12


class TestRefused:
    @pytest.mark.parametrize(
        ("change", "arguments", "named"),
        [
            ("recipe", (), "the recipe"),
            ("text", (), "the documents"),
            ("query", (), "queries, expectations or run units of the dataset"),
            ("evaluators", (), "the evaluators"),
            ("", ("--heta-top-k=3",), "top_k"),
            ("", ("--heta-option=x=1",), "modes, query options"),
            ("", ("-k", "c1"), "the selection of cases"),
            ("", ("--heta-limit=3",), "the selection of cases"),
        ],
    )
    @pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
    def test_what_changed_is_named(self, world, asked, change, arguments, named, workers):
        world.run(*workers, cache=True).assert_outcomes(passed=12)
        asked.texts()
        if change == "recipe":
            world.extend_recipe("class Recipe(Recipe):\n    chunk = 3\nrecipe = Recipe()\n")
        elif change == "text":
            world.dataset(
                asked.cases, [*asked.documents[:-1], {"document_id": "d11", "text": "other"}]
            )
        elif change == "query":
            cases = [*asked.cases[:-1], {**asked.cases[-1], "query": "other"}]
            world.dataset(cases, asked.documents)
        elif change == "evaluators":
            world.suite(evaluators='["recall@1"]')
        result = resume(world, *arguments, *workers)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        text = "\n".join([*result.outlines, *result.errlines])
        assert "[resume-refused]" in text
        assert named in text
        assert asked.texts() == []

    def test_without_a_run(self, world):
        assert world.usage_error("--heta-resume").startswith("[run-not-found] --heta-resume")

    def test_with_another_run(self, world):
        line = world.usage_error("--heta-resume=other")
        assert line == "[run-not-found] --heta-resume: there is no run 'other'; known runs: none"


def test_a_run_is_named_by_its_id_or_folder(world, asked):
    world.run("--heta-runs-dir=runs").assert_outcomes(passed=12)
    (folder,) = (world.path / "runs").iterdir()
    for name in (folder.name, f"runs/{folder.name}", str(folder)):
        result = world.run(f"--heta-resume={name}", "--heta-runs-dir=runs")
        result.assert_outcomes(passed=12)
    assert len(asked.texts()) == 12
    data = json.loads((folder / "run.json").read_text())
    assert [session["complete"] for session in data["sessions"]] == [True] * 4


def test_paths_may_follow_it(world, asked):
    world.run(cache=True)
    (world.path / "test_other.py").write_text("def test_other(): pass")
    resume(world, "bench_toys.py").assert_outcomes(passed=12)


def test_tests_that_are_no_cases_run_as_ever(world, asked):
    world.suite(extra="def test_plain(tmp_path):\n    pass\n")
    world.run(cache=True).assert_outcomes(passed=13)
    resume(world).assert_outcomes(passed=13)


def test_the_signal_is_pytests_own_again(world):
    world.run()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
