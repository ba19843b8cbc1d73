"""When a run may be gone on with, by what command, and what comes of being killed at it."""

import json
import shutil

import pytest

from pytest_heta.core.run_folder import RunFolder

WORKERS = pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])

HELPED = """
from helpers import weigh
class Judge:
    name = "judge"
    def __init__(self, strictness=1):
        self.strictness = strictness
    async def evaluate(self, *, case, response):
        return weigh(self.strictness)
"""


def resume(world, *arguments):
    return world.run("--heta-resume", *arguments, cache=True)


def run_folder(world):
    (folder,) = world.path.glob(".pytest_cache/d/heta-runs/*")
    return folder


def text_of(result):
    return "\n".join([*result.outlines, *result.errlines])


class TestWhatMayNotChange:
    @pytest.fixture
    def judged(self, world, asked):
        """A suite whose evaluator has a parameter and a helper in another file."""
        (world.path / "helpers.py").write_text("def weigh(value):\n    return value * 1.0\n")
        world.suite(before=HELPED, evaluators="[Judge()]")
        world.run(cache=True).assert_outcomes(passed=12)
        asked.texts()
        return asked

    def refused(self, world, asked, *arguments):
        result = resume(world, *arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert "[resume-refused]" in text_of(result)
        assert asked.texts() == []
        return text_of(result)

    def test_a_parameter_of_an_evaluator(self, world, judged):
        world.suite(before=HELPED, evaluators="[Judge(strictness=2)]")
        assert "toys: the evaluators changed" in self.refused(world, judged)

    def test_the_body_of_an_evaluators_helper(self, world, judged):
        (world.path / "helpers.py").write_text("def weigh(value):\n    return value * 2.0\n")
        assert "toys: the evaluators changed" in self.refused(world, judged)

    def test_the_threshold_of_a_measure(self, world, asked):
        world.suite(evaluators='["recall@1>=0.5"]')
        world.run(cache=True)
        asked.texts()
        world.suite(evaluators='["recall@1>=0.6"]')
        assert "toys: the evaluators changed" in self.refused(world, asked)

    def test_the_body_of_a_recipes_helper(self, world, asked):
        (world.path / "helpers.py").write_text("def weigh(value):\n    return value * 1.0\n")
        world.extend_recipe("from helpers import weigh\n")
        world.run(cache=True)
        asked.texts()
        (world.path / "helpers.py").write_text("def weigh(value):\n    return value * 2.0\n")
        assert "toys: the recipe changed" in self.refused(world, asked)

    def test_a_parameter_of_a_recipe(self, world, asked, monkeypatch):
        world.extend_recipe("recipe.size = int(os.environ.get('SIZE', '1'))\n")
        world.run(cache=True)
        asked.texts()
        monkeypatch.setenv("SIZE", "2")
        assert "toys: the recipe changed" in self.refused(world, asked)

    def test_documents_that_the_killed_controller_never_heard_of(self, world, asked, run_elsewhere):
        run_elsewhere("-n2", do="os.kill(os.getppid(), signal.SIGKILL)")
        path = run_folder(world) / "run.json"
        data = json.loads(path.read_text())
        data["fingerprints"]["toys"].pop("documents", None)
        path.write_text(json.dumps(data))
        asked.texts()
        documents = [{**document, "text": "other"} for document in asked.documents]
        world.dataset(asked.cases, documents)
        assert "toys: the documents changed" in self.refused(world, asked)
        world.dataset(asked.cases, asked.documents)
        resume(world).assert_outcomes(passed=12)

    def test_the_last_failures_are_a_selection(self, world, asked, monkeypatch):
        monkeypatch.setenv("DO", "1 / 0")
        world.run(cache=True)
        asked.texts()
        monkeypatch.setenv("DO", "")
        assert "toys: the selection of cases changed" in self.refused(world, asked, "--lf")

    @WORKERS
    def test_a_refusal_leaves_the_run_as_it_was(self, world, asked, monkeypatch, workers):
        monkeypatch.setenv("DO", "1 / 0")
        world.run(cache=True)
        before = sorted(run_folder(world).rglob("*.jsonl"))
        monkeypatch.setenv("DO", "")
        asked.texts()
        self.refused(world, asked, "--heta-top-k=3", *workers)
        assert sorted(run_folder(world).rglob("*.jsonl")) == before
        resume(world, *workers).assert_outcomes(passed=12)
        assert asked.texts() == ["word7"]
        assert world.report()["metadata"]["session"] == 2


class TestWhatMayChange:
    def test_the_number_of_workers(self, world, asked, monkeypatch):
        monkeypatch.setenv("DO", "1 / 0")
        world.run(cache=True).assert_outcomes(passed=11, failed=1)
        for workers in (["-n2"], [], ["-n1"]):
            resume(world, *workers).assert_outcomes(passed=11, failed=1)
        monkeypatch.setenv("DO", "")
        resume(world, "-n2").assert_outcomes(passed=12)
        assert sorted(asked.texts()) == sorted([*asked.words, *["word7"] * 4])

    def test_stopping_at_the_first_failure(self, world, asked, monkeypatch):
        monkeypatch.setenv("DO", "1 / 0")
        world.run("-x", cache=True)
        assert resume(world, "-x").ret == pytest.ExitCode.TESTS_FAILED
        metadata = world.report()["metadata"]
        assert metadata["missing"] == [f"toys::corpus::overlap[c{n}]" for n in (8, 9, 10, 11)]
        monkeypatch.setenv("DO", "")
        resume(world, "-x").assert_outcomes(passed=12)
        texts = asked.texts()
        assert [texts.count(word) for word in asked.words[:8]] == [1] * 7 + [3]
        assert set(texts) == set(asked.words)

    def test_the_order(self, world, asked, monkeypatch):
        monkeypatch.setenv("DO", "1 / 0")
        world.run(cache=True)
        asked.texts()
        monkeypatch.setenv("DO", "")
        resume(world, "--ff").assert_outcomes(passed=12)
        assert asked.texts() == ["word7"]


class TestTheWhole:
    @pytest.mark.parametrize(
        ("option", "workers", "code"),
        [
            ("--heta-gate=overlap.recall@1 < 1", (), 0),
            ("--heta-gate=overlap.recall@1 >= 1", ("-n2",), 1),
            ("--heta-fail-on=miss", (), 1),
            ("--heta-fail-on=miss", ("-n2",), 1),
        ],
    )
    def test_a_finished_run_ends_as_it_did(self, world, asked, option, workers, code):
        cases = [{**asked.cases[0], "evidence": ["d1"]}, *asked.cases[1:]]  # one is a miss
        world.dataset(cases, asked.documents)
        world.suite(evaluators='["recall@1>=0.5"]')
        assert world.run(option, cache=True).ret == code
        before = world.report()
        assert (len(asked.texts()), asked.builds()) == (12, 1)
        assert resume(world, option, *workers).ret == code
        assert (asked.texts(), asked.builds()) == ([], 0)
        after = world.report()
        assert after["gates"] == before["gates"]
        assert after["score_summary"] == before["score_summary"]

    def test_gates_are_decided_on_all_samples(self, world, asked, monkeypatch):
        gates = ("--heta-gate=overlap.failure_rate <= 0", "--heta-gate=overlap.recall@1 >= 1")
        monkeypatch.setenv("DO", "1 / 0")
        assert world.run(*gates, cache=True).ret == 1
        assert resume(world, *gates).ret == 1
        assert [gate["status"] for gate in world.report()["gates"]] == ["failed", "failed"]
        monkeypatch.setenv("DO", "")
        assert resume(world, *gates).ret == 0
        gates = world.report()["gates"]
        assert [(gate["status"], gate["n"]) for gate in gates] == [("passed", 12)] * 2


class TestRunsThatCannotBeOpened:
    @WORKERS
    def test_one_that_another_process_works_on(self, world, asked, workers):
        world.run(cache=True)
        asked.texts()
        held = RunFolder.open(run_folder(world))
        try:
            result = resume(world, *workers)
            assert result.ret == pytest.ExitCode.USAGE_ERROR
            assert "[run-in-use]" in text_of(result)
            # A new run has a folder of its own.
            world.run(*workers, cache=True).assert_outcomes(passed=12)
        finally:
            held.release()
        assert len(asked.texts()) == 12

    @pytest.mark.parametrize("number", [0, 2])
    def test_one_of_another_version(self, world, asked, number):
        world.run(cache=True)
        asked.texts()
        path = run_folder(world) / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "format": number}))
        result = resume(world)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert f"the run is in format {number}, and this" in text_of(result)
        assert asked.texts() == []

    @pytest.mark.parametrize("name", ["x" * 5000, "con", "a:b|c", "../x", "x. ", "中"])
    def test_one_of_an_odd_name(self, world, name):
        line = world.usage_error(f"--heta-resume={name}")
        assert line.startswith("[run-not-found] --heta-resume: there is no run ")


KILLING = """
import os, signal
from pytest_heta.core.run_folder import RunFolder

name, _, when = os.environ.get("KILL", "").partition(" ")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def killing(function):
    def run(*arguments, **known):
        when == "before" and die()
        result = function(*arguments, **known)
        when == "after" and die()
        return result
    return run


if name == "prune":
    RunFolder.prune = staticmethod(killing(RunFolder.prune))
elif name and not name.startswith("pytest"):
    setattr(RunFolder, name, killing(getattr(RunFolder, name)))


def pytest_collection_modifyitems(items):
    name == "pytest_collection" and die()


def pytest_runtest_protocol(item):
    name == "pytest_first_case" and die()
"""


class TestKilledAtOnce:
    @pytest.mark.parametrize(
        "where",
        [
            "begin_session before",
            "_write before",
            "_write after",
            "note_concurrency before",
            "end_session before",
            "drop_session after",
            "pytest_collection",
            "pytest_first_case",
        ],
    )
    def test_a_resume_loses_nothing(self, world, asked, run_elsewhere, monkeypatch, where):
        (world.path / "conftest.py").write_text(KILLING)
        run_elsewhere(do="os._exit(9)")
        assert asked.texts() == asked.words[:8]
        monkeypatch.setenv("KILL", where)
        assert run_elsewhere("--heta-resume").ret != 0
        run_elsewhere("--heta-resume")
        asked_by_the_killed = asked.texts()
        monkeypatch.delenv("KILL")
        run_elsewhere("--heta-resume").assert_outcomes(passed=12)
        # Whatever was asked and came back was not asked again.
        assert [*asked_by_the_killed, *asked.texts()] == asked.words[7:]
        assert world.report()["metadata"]["complete"] is True

    @pytest.mark.parametrize("where", ["prune before", "prune after", "_write before"])
    def test_nor_does_a_new_run(self, world, asked, run_elsewhere, monkeypatch, where):
        (world.path / "conftest.py").write_text(KILLING)
        run_elsewhere(do="os._exit(9)")
        folder = run_folder(world)
        for number in range(12):
            copied = folder.with_name(f"copy{number:02}")
            shutil.copytree(folder, copied)
            data = json.loads((copied / "run.json").read_text())
            data["sessions"][0]["complete"] = True
            data["started_at"] = f"2100-01-01T00:00:{number:02}+00:00"
            (copied / "run.json").write_text(json.dumps(data))
        asked.texts()
        monkeypatch.setenv("KILL", where)
        assert run_elsewhere().ret != 0
        monkeypatch.delenv("KILL")
        run_elsewhere(f"--heta-resume={folder.name}").assert_outcomes(passed=12)
        assert asked.texts() == asked.words[7:]
