"""A resumed run tells what was tried before, what was taken over, and from which session."""

import json
from xml.etree import ElementTree as ET

import pytest

WORKERS = pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])


def resume(world, *arguments):
    return world.run("--heta-resume", *arguments, cache=True)


def metadata_of(world, case="c7"):
    (result,) = [r for r in world.report()["case_results"] if r["case_id"] == case]
    return result["metadata"]


def history(world, case="c7"):
    """Return attempts, and session and type of each earlier one."""
    metadata = metadata_of(world, case)
    earlier = metadata.get("earlier_attempts", [])
    return metadata.get("attempts"), [(one["session"], one["error_type"]) for one in earlier]


def properties(world, case="c7"):
    root = ET.parse(world.path / "junit.xml").getroot()
    (case,) = [one for one in root.iter("testcase") if one.get("name").endswith(f"[{case}]")]
    return {p.get("name"): p.get("value") for p in case.iter("property")}


class TestAttempts:
    @WORKERS
    def test_one_that_failed_is_kept(self, world, asked, monkeypatch, workers):
        monkeypatch.setenv("DO", "1 / 0")
        world.run(*workers, cache=True).assert_outcomes(passed=11, failed=1)
        monkeypatch.setenv("DO", "")
        resume(world, "--junitxml=junit.xml", *workers).assert_outcomes(passed=12)
        metadata = metadata_of(world)
        assert metadata["attempts"] == 2
        (attempt,) = metadata["earlier_attempts"]
        assert "division by zero" in attempt.pop("message")
        assert attempt == {"session": 1, "error_type": "query", "latency_ms": None, "reused": False}
        assert "reused" not in metadata
        assert "attempts" not in metadata_of(world, "c6")
        summary = world.report()["mode_summaries"]["overlap"]
        assert (summary["total_cases"], summary["attempts"]) == (12, 13)
        assert properties(world)["heta_attempts"] == "2"
        assert "heta_attempts" not in properties(world, "c6")

    def test_all_are_kept_and_stay_when_the_result_is_reused(self, world, asked, monkeypatch):
        monkeypatch.setenv("DO", "raise OSError(os.environ['N'])")
        monkeypatch.setenv("N", "0")
        world.run(cache=True)
        for number in (1, 2):
            monkeypatch.setenv("N", str(number))
            resume(world).assert_outcomes(passed=11, failed=1)
            assert history(world) == (number + 1, [(n + 1, "query") for n in range(number)])
        monkeypatch.setenv("DO", "")
        for _ in range(2):
            resume(world).assert_outcomes(passed=12)
            assert history(world) == (4, [(1, "query"), (2, "query"), (3, "query")])
            assert world.report()["mode_summaries"]["overlap"]["attempts"] == 15
        told = [attempt["message"] for attempt in metadata_of(world)["earlier_attempts"]]
        assert [[word for word in text.split() if word.isdigit()] for text in told] == [
            ["0"],
            ["1"],
            ["2"],
        ]
        assert metadata_of(world)["reused"] is True

    def test_a_lost_score_is_one_without_a_query(self, world, asked, run_elsewhere):
        judge = """
        class Judge:
            name = "judge"
            async def evaluate(self, *, case, response):
                import os
                if os.environ.get("DO") and case.case_id == "c3":
                    raise ValueError("no judgment")
                return 1.0
        """
        world.suite(before=judge, evaluators="[Judge()]")
        run_elsewhere(do="pass").assert_outcomes(passed=11, failed=1)
        asked.texts()
        resume(world, "--junitxml=junit.xml").assert_outcomes(passed=12)
        assert asked.texts() == []
        metadata = metadata_of(world, "c3")
        assert (metadata["attempts"], metadata["reused_response"]) == (1, True)
        (attempt,) = metadata["earlier_attempts"]
        assert (attempt["error_type"], attempt["session"]) == ("scoring", 1)
        assert attempt["message"].startswith("judge: ValueError")
        assert attempt["latency_ms"] > 0
        summary = world.report()["mode_summaries"]["overlap"]
        counts = [summary[n] for n in ("reused_samples", "reused_responses", "attempts")]
        assert counts == [11, 1, 12]
        assert summary["metrics"]["judge"]["mean"] == 1.0
        assert properties(world, "c3")["heta_reused"] == "response"
        assert properties(world, "c2")["heta_reused"] == "result"

    def test_a_build_that_failed(self, world, asked, monkeypatch):
        world.extend_recipe(
            """
            class Recipe(Recipe):
                def create(self, **known):
                    if os.environ.get("DO"):
                        raise OSError("no index")
                    return super().create(**known)
            recipe = Recipe()
            """
        )
        monkeypatch.setenv("DO", "pass")
        world.run(cache=True).assert_outcomes(errors=12)
        resume(world).assert_outcomes(errors=12)
        assert [history(world, f"c{n}") for n in range(12)] == [(2, [(1, "build")])] * 12
        monkeypatch.setenv("DO", "")
        resume(world).assert_outcomes(passed=12)
        both = [(1, "build"), (2, "build")]
        assert [history(world, f"c{n}") for n in range(12)] == [(3, both)] * 12

    def test_a_crash(self, world, asked, run_elsewhere):
        run_elsewhere("-n2", do="os._exit(9)")
        run_elsewhere("-n2", "--heta-resume", do="os._exit(9)")
        assert history(world) == (2, [(1, "crash")])
        resume(world).assert_outcomes(passed=12)
        assert history(world) == (3, [(1, "crash"), (2, "crash")])

    def test_a_long_message_is_cut(self, world, asked, monkeypatch):
        monkeypatch.setenv("DO", "raise OSError('x' * 100_000)")
        world.run(cache=True)
        monkeypatch.setenv("DO", "")
        resume(world).assert_outcomes(passed=12)
        (attempt,) = metadata_of(world)["earlier_attempts"]
        assert len(attempt["message"]) <= 501


class TestReuse:
    def test_is_labelled_everywhere(self, world, asked, monkeypatch):
        monkeypatch.setenv("DO", "1 / 0")
        world.run(cache=True)
        monkeypatch.setenv("DO", "")
        result = resume(world, "--junitxml=junit.xml")
        result.stdout.fnmatch_lines(
            [
                "toys: 12 cases, 1 mode, 1 knowledge base built in *, 11 results reused",
                "heta: 11 results reused from earlier sessions of run *",
            ]
        )
        report = world.report()
        labelled = [r["case_id"] for r in report["case_results"] if r["metadata"].get("reused")]
        assert labelled == [f"c{number}" for number in range(12) if number != 7]
        assert report["metadata"]["reused_samples"] == 11
        assert report["mode_summaries"]["overlap"]["reused_samples"] == 11
        assert [properties(world, f"c{n}").get("heta_reused") for n in (6, 7)] == ["result", None]
        text = (world.path / "junit.xml").read_text()
        assert 'name="toys.overlap.reused_samples" value="11"' in text

    def test_a_run_that_was_not_resumed_has_none(self, world, asked):
        result = world.run("--junitxml=junit.xml", cache=True)
        assert "reused" not in result.stdout.str()
        assert "reused" not in (world.path / "junit.xml").read_text()
        report = world.report()
        assert report["metadata"]["reused_samples"] == 0
        assert not any("reused" in result["metadata"] for result in report["case_results"])

    def test_latencies_are_of_all_sessions(self, world, asked, monkeypatch):
        monkeypatch.setenv("DO", "1 / 0")
        world.run(cache=True)
        before = {r["case_id"]: r["latency_ms"] for r in world.report()["case_results"]}
        monkeypatch.setenv("DO", "")
        resume(world)
        after = {r["case_id"]: r["latency_ms"] for r in world.report()["case_results"]}
        asked_again = after.pop("c7")
        assert before.pop("c7") is None
        assert before == after
        latency = world.report()["mode_summaries"]["overlap"]["latency"]
        assert latency["n"] == 12
        assert latency["max_ms"] == max(asked_again, *before.values())


class TestSessions:
    def test_are_listed(self, world, asked, monkeypatch):
        monkeypatch.setenv("DO", "1 / 0")
        world.run("-x", cache=True)
        monkeypatch.setenv("DO", "")
        resume(world).assert_outcomes(passed=12)
        file = json.loads((world.path / "report.json").read_text())
        metadata = file["reports"][0]["metadata"]
        first, second = metadata["sessions"]
        assert (first["number"], first["concurrency"]) == (1, 1)
        assert "stopping after 1 failures" in first["interrupted"]
        assert first["started_at"] < first["ended_at"] <= second["started_at"]
        assert (second["number"], second["ended_at"], second["interrupted"]) == (2, None, None)
        total = round(first["seconds"] + second["seconds"], 3)
        assert metadata["duration_seconds"] == pytest.approx(total, abs=1)
        assert file["run"]["session"] == 2
        assert file["run"]["run_id"] == metadata["run_id"]
        assert file["run"]["duration_seconds"] >= metadata["duration_seconds"] - 0.001

    def test_of_different_concurrency_are_told_apart(self, world, asked, monkeypatch):
        monkeypatch.setenv("DO", "1 / 0")
        world.run("--heta-concurrency=2", cache=True)
        assert world.report()["config_snapshot"]["concurrency"] == 2
        monkeypatch.setenv("DO", "")
        result = resume(world, "--heta-concurrency=3")
        result.stdout.fnmatch_lines(
            ["warning: [[]latencies-mixed] latencies *(2 in session 1, 3 in session 2)*"]
        )
        report = world.report()
        assert report["config_snapshot"]["concurrency"] is None
        assert [s["concurrency"] for s in report["metadata"]["sessions"]] == [2, 3]
        # A third that asks nothing does not change what the latencies are of.
        resume(world, "--heta-concurrency=9")
        report = world.report()
        assert [s["concurrency"] for s in report["metadata"]["sessions"]] == [2, 3, None]

    def test_of_equal_concurrency_are_one(self, world, asked, monkeypatch):
        monkeypatch.setenv("DO", "1 / 0")
        world.run("--heta-concurrency=2", cache=True)
        monkeypatch.setenv("DO", "")
        result = resume(world, "--heta-concurrency=2")
        assert "warning" not in result.stdout.str()
        assert world.report()["config_snapshot"]["concurrency"] == 2


class TestDamage:
    @WORKERS
    def test_is_told_once_and_costs_what_is_damaged(self, world, asked, workers):
        world.run(cache=True).assert_outcomes(passed=12)
        asked.texts()
        (session,) = world.path.glob(".pytest_cache/d/heta-runs/*/session-1")
        for path in session.rglob("*.jsonl"):
            lines = path.read_bytes().splitlines(keepends=True)
            lines[4] = lines[4].replace(b"word4", b"sword")
            path.write_bytes(b"".join(lines))
        result = resume(world, *workers)
        result.assert_outcomes(passed=12)
        assert asked.texts() == ["word4"]
        told = [line for line in result.outlines if "[records-damaged]" in line]
        assert len(told) == 1
        assert "2 records are damaged" in told[0]
        file = json.loads((world.path / "report.json").read_text())
        assert file["run"]["damaged_records"] == 2
        assert file["reports"][0]["metadata"]["damaged_records"] == 2
        # Nothing is asked again for it any more; the file still says what it was made of.
        assert "[records-damaged]" not in resume(world).stdout.str()
        assert asked.texts() == []
        assert world.report()["metadata"]["damaged_records"] == 2

    def test_there_is_none(self, world, asked):
        world.run(cache=True)
        assert "damaged" not in resume(world).stdout.str()
        assert world.report()["metadata"]["damaged_records"] == 0
