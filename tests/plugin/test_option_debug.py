"""``--heta-debug``: errors are shown with their tracebacks."""

import os

import pytest

FAILING = """
class KnowledgeBase(KnowledgeBase):
    def query(self, text, *, mode, top_k):
        raise RuntimeError("down")
"""

JUDGE = """
class Judge:
    name = "judge"

    async def evaluate(self, *, case, response):
        raise ValueError("cannot tell")
"""

RAISED = '*raise RuntimeError("down")*'


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
def test_a_failed_query_has_its_traceback(world, workers):
    world.extend_recipe(FAILING)
    result = world.run("--heta-debug", "--heta-mode=overlap", *workers)
    result.stdout.fnmatch_lines(["*heta traceback*", "Traceback (most recent call last):", RAISED])
    result.stdout.no_fnmatch_line("*--heta-debug shows*")


def test_there_is_none_by_default(world):
    world.extend_recipe(FAILING)
    result = world.run("--heta-mode=overlap", "-v")
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line(RAISED)


def test_very_verbose_shows_it_too(world):
    world.extend_recipe(FAILING)
    world.run("--heta-mode=overlap", "-vv").stdout.fnmatch_lines([RAISED])


def test_the_ini_key_says_the_same_and_is_taken_back(world):
    world.extend_recipe(FAILING)
    world.ini("heta_debug = true")
    world.run("--heta-mode=overlap").stdout.fnmatch_lines([RAISED])
    result = world.run("--heta-mode=overlap", "-o", "heta_debug=false")
    result.stdout.no_fnmatch_line(RAISED)


def test_what_is_neither_true_nor_false_is_refused_by_its_key(world):
    world.ini("heta_debug = maybe")
    assert world.usage_error() == "heta_debug: invalid truth value 'maybe'"


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
def test_an_evaluators_traceback_is_shown_and_not_kept(world, workers):
    world.suite(before=JUDGE, evaluators='["recall@1", Judge()]')
    result = world.run("--heta-debug", "--heta-mode=overlap", *workers)
    result.stdout.fnmatch_lines(["*heta traceback*", '*raise ValueError("cannot tell")*'])
    scores = [score for case in world.report()["case_results"] for score in case["scores"]]
    errors = [score["metadata"]["error"] for score in scores if score["name"] == "judge"]
    assert [set(error) for error in errors] == [{"type", "message", "raised_at"}] * 3


def test_what_is_right_is_reported_as_without_it(world, comparable):
    world.run("--heta-debug", "--heta-report=json:debug.json").assert_outcomes(passed=6)
    world.run().assert_outcomes(passed=6)
    assert comparable(world.report("debug.json")) == comparable(world.report())


def test_the_session_leaves_no_trace_in_the_environment(world, monkeypatch):
    monkeypatch.delenv("HETA_DEBUG", raising=False)
    world.run("--heta-debug")
    assert "HETA_DEBUG" not in os.environ
