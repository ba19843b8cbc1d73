"""``--heta-timeout``: a query that takes too long is one failed case."""

import pytest

SLEEPS = """
import asyncio

class Sleepy(KnowledgeBase):
    async def query(self, text, *, mode, top_k, options=None):
        if text == "bike repair":
            await asyncio.Event().wait()
        return KnowledgeBase.query(self, text, mode=mode, top_k=top_k)
"""
BLOCKS = """
import threading

class Sleepy(KnowledgeBase):
    def query(self, text, *, mode, top_k, options=None):
        if text == "bike repair":
            threading.Event().wait()
        return super().query(text, mode=mode, top_k=top_k)
"""
BOUND = """
import threading

class Sleepy(KnowledgeBase):
    def __init__(self, texts):
        super().__init__(texts)
        self.thread = threading.get_ident()

    def query(self, text, *, mode, top_k, options=None):
        assert threading.get_ident() == self.thread
        return super().query(text, mode=mode, top_k=top_k)
"""
RECIPE = """
class Recipe(Recipe):
    def create(self, **arguments):
        return Sleepy(super().create(**arguments).texts)

recipe = Recipe()
"""


def errors(world):
    results = world.report()["case_results"]
    return {(result["case_id"], result["query_mode"]): result["error"] for result in results}


@pytest.mark.parametrize("arguments", [(), ("-n2", "-pxdist"), ("--heta-concurrency=2",)])
@pytest.mark.parametrize("source", [SLEEPS, BLOCKS], ids=["asynchronous", "blocking"])
def test_the_case_fails_and_the_others_run(world, source, arguments):
    world.extend_recipe(source + RECIPE)
    world.run("--heta-timeout=0.3", "--heta-mode=overlap", *arguments)
    came = errors(world)
    assert len(came) == 3
    failed = came.pop(("repair", "overlap"))
    assert failed["error_type"] == "timeout"
    assert failed["retryable"] is True
    assert failed["message"] == "[query-timeout] the query took longer than 0.3 s"
    assert set(came.values()) == {None}


def test_an_ordinary_knowledge_base_stays_in_one_thread(world):
    world.extend_recipe(BOUND + RECIPE)
    world.run("--heta-timeout=60")
    assert set(errors(world).values()) == {None}


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon"])
def test_it_is_a_positive_number(world, value):
    result = world.run(f"--heta-timeout={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"*--heta-timeout: '{value}' is not a positive number of seconds up to 1000000000"]
    )


@pytest.mark.parametrize("option", ["--heta-timeout", "--heta-build-timeout"])
def test_what_no_clock_can_wait_for_is_refused(world, option):
    refused = f"{option}: '1e300' is not a positive number of seconds up to 1000000000"
    assert world.usage_error(f"{option}=1e300") == refused
    world.run(f"{option}=1e9", "--heta-mode=overlap").assert_outcomes(passed=3)
