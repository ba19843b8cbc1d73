"""Other plugins beside this one; each test needs the plugin that it is about."""

from importlib.util import find_spec
from xml.etree import ElementTree as ET

import pytest

ASYNC_RECIPE = """
import asyncio


class Client:
    available_queries = ("overlap", "backwards")

    def __init__(self):
        self.loop = asyncio.get_running_loop()

    async def query(self, text, *, mode, top_k):
        await asyncio.sleep(0)
        assert asyncio.get_running_loop() is self.loop
        return {"results": []}

    async def aclose(self):
        assert asyncio.get_running_loop() is self.loop


class Recipe(Recipe):
    async def create(self, *, name, objects, source_keys, workspace):
        return Client()


recipe = Recipe()
"""
FLAKY = """
attempts = []

class KnowledgeBase(KnowledgeBase):
    def query(self, text, *, mode, top_k, options=None):
        if text == "bike repair" and mode == "overlap":
            attempts.append(text)
            assert len(attempts) == 3, "not yet"
        return super().query(text, mode=mode, top_k=top_k, options=options)
"""


def needs(module: str) -> pytest.MarkDecorator:
    name = module.replace("_", "-")
    return pytest.mark.skipif(find_spec(module) is None, reason=f"needs {name}")


# --- event loops ---------------------------------------------------------------


@needs("pytest_asyncio")
@pytest.mark.parametrize("mode", ["auto", "strict"])
def test_pytest_asyncio(world, mode):
    world.extend_recipe(ASYNC_RECIPE)
    world.suite(
        extra="""
        import asyncio
        import pytest
        import pytest_asyncio

        @pytest_asyncio.fixture
        async def loop():
            return asyncio.get_running_loop()

        @pytest.mark.asyncio
        async def test_marked(loop):
            assert asyncio.get_running_loop() is loop
        """
    )
    world.run("-o", f"asyncio_mode={mode}").assert_outcomes(passed=7)
    assert world.report()["mode_summaries"]["overlap"]["failed_cases"] == 0


@needs("pytest_asyncio")
@pytest.mark.parametrize("mode", ["auto", "strict"])
def test_pytest_asyncio_leaves_overridden_fixtures_alone(world, mode):
    world.extend_recipe(ASYNC_RECIPE)
    (world.path / "conftest.py").write_text(
        "import pytest\n\n"
        "@pytest.fixture(scope='class')\n"
        "def heta_kb(heta_unit, heta_recipe):\n"
        "    return heta_unit.build(heta_recipe)\n",
        encoding="utf-8",
    )
    world.run("-o", f"asyncio_mode={mode}").assert_outcomes(passed=6)


@needs("anyio")
def test_anyio(world):
    world.extend_recipe(ASYNC_RECIPE)
    world.suite(
        extra="""
        import anyio
        import pytest

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest.mark.anyio
        async def test_marked():
            await anyio.sleep(0)
        """
    )
    world.run().assert_outcomes(passed=7)


# --- repetition ----------------------------------------------------------------


@needs("pytest_rerunfailures")
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
@pytest.mark.parametrize("reruns", [(), ("--reruns=2",)], ids=["", "reruns"])
def test_rerunfailures_beside_recorded_results(world, workers, reruns):
    """Nothing can come of running them again: they are reported, also those of a miss."""
    world.suite(evaluators='["recall@1>=0.5"]')
    arguments = ("--heta-fail-on=miss", *reruns, *workers)
    world.run("--heta-fail-on=miss", cache=True).assert_outcomes(passed=3, failed=3)
    before = world.report()["score_summary"]
    world.run("--heta-resume", *arguments, cache=True).assert_outcomes(passed=3, failed=3)
    assert world.report()["score_summary"] == before


@needs("pytest_rerunfailures")
def test_rerun_of_a_failed_case(world, builds):
    world.extend_recipe(FLAKY)
    result = world.run("--reruns=3", "--junitxml=junit.xml")
    assert result.parseoutcomes() == {"passed": 6, "rerun": 2}
    assert builds() == {"corpus": 1}
    report = world.report()
    assert report["mode_summaries"]["overlap"]["failed_cases"] == 0
    assert report["score_summary"]["overlap.recall@1"] == 1.0
    assert report["metadata"]["complete"] is True
    # Each attempt has its own element, with its own properties.
    attempts = [
        [prop.attrib["name"] for prop in case.iter("property")]
        for case in ET.parse(world.path / "junit.xml").iter("testcase")
        if case.attrib["name"] == "overlap[repair]"
    ]
    failed = ["recall@1.reason", "ndcg@10.reason", "error_type"]
    assert attempts == [failed, failed, ["recall@1", "ndcg@10", "latency_ms"]]


@needs("pytest_rerunfailures")
def test_rerun_that_fails_again(world):
    world.extend_recipe(FLAKY)
    result = world.run("--reruns=1", "--heta-gate=overlap.failure_rate <= 0")
    assert result.parseoutcomes() == {"passed": 5, "failed": 2, "rerun": 1}
    report = world.report()
    assert report["mode_summaries"]["overlap"]["failed_cases"] == 1
    assert len(report["case_results"]) == 6


@needs("pytest_rerunfailures")
def test_rerun_of_a_failed_build(world):
    world.extend_recipe(
        """
        attempts = []

        class Recipe(Recipe):
            def create(self, **arguments):
                attempts.append(1)
                assert len(attempts) == 2, "not yet"
                return super().create(**arguments)

        recipe = Recipe()
        """
    )
    result = world.run("--reruns=1")
    assert result.parseoutcomes() == {"passed": 6, "rerun": 1}
    report = world.report()
    assert report["mode_summaries"]["overlap"]["failed_cases"] == 0
    (build,) = report["unit_builds"]
    assert build["error"] is None


@needs("pytest_rerunfailures")
@pytest.mark.parametrize("reruns", [(), ("--reruns=1",)], ids=["once", "again"])
def test_crash_and_rerun(world, builds, reruns):
    world.extend_recipe(
        """
        class KnowledgeBase(KnowledgeBase):
            def query(self, text, *, mode, top_k, options=None):
                crashed = pathlib.Path(__file__).with_name("crashed")
                if text == "bike repair" and not crashed.exists():
                    crashed.touch()
                    os._exit(9)
                return super().query(text, mode=mode, top_k=top_k, options=options)
        """
    )
    result = world.run("-n1", "--heta-mode=overlap", *reruns)
    outcomes = {"passed": 3, "rerun": 1} if reruns else {"passed": 2, "failed": 1}
    assert result.parseoutcomes() == outcomes
    assert builds() == {"corpus": 2}
    report = world.report()
    assert report["mode_summaries"]["overlap"]["failed_cases"] == (0 if reruns else 1)
    assert report["metadata"]["complete"] is True


@needs("pytest_repeat")
def test_repeated_items_are_one_sample(world, builds):
    world.run("--count=2", "--heta-mode=overlap").assert_outcomes(passed=6)
    assert builds() == {"corpus": 1}
    report = world.report()
    assert [result["case_id"] for result in report["case_results"]] == ["pie", "repair", "rain"]
    assert report["metadata"]["complete"] is True
    assert report["metadata"]["selected_samples"] == 3


# --- time ----------------------------------------------------------------------


@needs("pytest_timeout")
@pytest.mark.parametrize("kind", ["ordinary", "async"])
def test_timeout_of_one_case(world, kind):
    if kind == "async":
        slow = "asyncio.sleep(600 * ('bike' in text))"
        world.extend_recipe(ASYNC_RECIPE.replace("asyncio.sleep(0)", slow))
    else:
        world.extend_recipe(
            """
            import time

            class KnowledgeBase(KnowledgeBase):
                def query(self, text, *, mode, top_k, options=None):
                    time.sleep(600 * ("bike" in text))
                    return super().query(text, mode=mode, top_k=top_k, options=options)
            """
        )
    result = world.run("--timeout=2", "--heta-mode=overlap")
    result.assert_outcomes(passed=2, failed=1)
    report = world.report()
    assert [r["error"] and r["error"]["error_type"] for r in report["case_results"]] == [
        None,
        "timeout",
        None,
    ]
    assert report["mode_summaries"]["overlap"]["failed_cases"] == 1
    assert report["mode_summaries"]["overlap"]["latency"]["n"] == 2


@needs("pytest_timeout")
def test_timeout_of_a_build(world):
    world.extend_recipe(
        """
        import time

        class Recipe(Recipe):
            def create(self, **arguments):
                time.sleep(600)

        recipe = Recipe()
        """
    )
    result = world.run("--timeout=2", "--heta-mode=overlap", "--heta-limit=1")
    result.assert_outcomes(errors=1)
    (only,) = world.report()["case_results"]
    assert only["error"]["error_type"] == "timeout"


# --- pytest-benchmark, which is always there -------------------------------------


def test_pytest_benchmark_table_has_its_own_tests_only(world):
    world.suite(
        extra="""
        def test_speed(benchmark):
            assert benchmark(sorted, [2, 1]) == [1, 2]
        """
    )
    result = world.run("--benchmark-json=speed.json")
    result.assert_outcomes(passed=7)
    result.stdout.fnmatch_lines(["*benchmark: 1 tests*", "test_speed *"])


def test_pytest_benchmark_may_be_left_out(world):
    world.run("-p", "no:benchmark").assert_outcomes(passed=6)
    world.run("--benchmark-disable").assert_outcomes(passed=6)
    # Cases are no benchmarks of that plugin.
    assert world.run("--benchmark-only").parseoutcomes() == {"skipped": 6}


def test_xdist_may_be_left_out(world):
    world.run("-p", "no:xdist").assert_outcomes(passed=6)
