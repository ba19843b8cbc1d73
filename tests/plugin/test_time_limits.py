"""Time limits of everything that users write: what takes too long costs what it is part of."""

import sys

import pytest

LONGEST = 120
"""Seconds that a run in a process of its own may take on a busy machine, or it hangs."""

EVALUATORS = """
import asyncio, threading

class Prompt:
    name = "prompt"
    async def evaluate(self, *, case, response):
        return 1.0

class Judge:
    name = "judge"
    async def evaluate(self, *, case, response):
        if case.case_id == "repair":
            await asyncio.Event().wait()
        return 0.5

class Checker:
    name = "checker"
    def evaluate(self, *, case, response):
        if case.case_id == "repair":
            threading.Event().wait()
        return 0.25
"""
BOTH = '["recall@1", Judge(), Checker(), Prompt()]'

BLOCKING_JUDGE = """
import threading

class Judge:
    name = "judge"
    async def evaluate(self, *, case, response):
        if case.case_id == "repair":
            threading.Event().wait()
        return 0.5
"""

BLOCKING_QUERY = """
import threading

class KnowledgeBase(KnowledgeBase):
    async def query(self, text, *, mode, top_k, options=None):
        if text == "bike repair":
            threading.Event().wait()
        return super().query(text, mode=mode, top_k=top_k)
"""

# Two units: the one with the case "repair", and the other.
TWO_UNITS = """
from pytest_heta.models import BenchmarkRunUnit

class JsonlBenchmark(JsonlBenchmark):
    async def run_units(self, prepared):
        documents = ["apple", "bike", "cloud"]
        for name, cases in (("first", ["pie", "repair"]), ("second", ["rain"])):
            yield BenchmarkRunUnit(unit_id=name, document_ids=documents, case_ids=cases)
"""

ONE_MODE = "--heta-mode=overlap"
LATE = "the query took longer than 0.3 s"


def scores_of(world, case_id):
    """Return the scores of a case: the value, or the type of what went wrong."""
    (result,) = [r for r in world.report()["case_results"] if r["case_id"] == case_id]
    return {
        score["name"]: score["metadata"]["error"]["type"]
        if "error" in score["metadata"]
        else score["value"]
        for score in result["scores"]
    }


def errors(world):
    """Return type and message of the error of each case, None for those that have none."""
    return {
        result["case_id"]: result["error"]
        and (result["error"]["error_type"], result["error"]["message"])
        for result in world.report()["case_results"]
    }


def result_of(world, case_id):
    (result,) = [r for r in world.report()["case_results"] if r["case_id"] == case_id]
    return result


class TestEvaluators:
    @pytest.mark.parametrize(
        "arguments",
        [(), ("-n2", "-pxdist"), ("--heta-concurrency=3",), ("--heta-protocol=pytest",)],
        ids=" ".join,
    )
    def test_the_score_is_lost_and_nothing_else(self, world, arguments):
        world.suite(before=EVALUATORS, evaluators=BOTH)
        result = world.run("--heta-timeout=0.3", ONE_MODE, *arguments)
        result.assert_outcomes(passed=2, failed=1)
        lost = {"recall@1": 1.0, "judge": "timeout", "checker": "timeout", "prompt": 1.0}
        kept = {"recall@1": 1.0, "judge": 0.5, "checker": 0.25, "prompt": 1.0}
        assert scores_of(world, "repair") == lost
        assert scores_of(world, "pie") == scores_of(world, "rain") == kept
        late = result_of(world, "repair")
        assert late["error"] is None
        assert late["latency_ms"] is not None
        (score,) = [score for score in late["scores"] if score["name"] == "judge"]
        message = score["metadata"]["error"]["message"]
        assert message == "the evaluator took longer than 0.3 s"

    def test_those_of_recorded_responses_are_bounded_as_well(self, world, tmp_path):
        world.suite(before=EVALUATORS, evaluators=BOTH)
        runs = f"--heta-runs-dir={tmp_path}"
        world.run("--heta-timeout=0.3", ONE_MODE, runs)
        world.run("--heta-timeout=0.3", ONE_MODE, runs, "--heta-resume")
        assert scores_of(world, "repair")["judge"] == "timeout"
        assert result_of(world, "repair")["error"] is None

    def test_one_that_blocks_the_event_loop(self, world):
        world.suite(before=BLOCKING_JUDGE + TWO_UNITS, evaluators='["recall@1", Judge()]')
        world.run("--heta-timeout=0.3", ONE_MODE)
        assert scores_of(world, "repair") == {"recall@1": 1.0, "judge": "timeout"}
        assert result_of(world, "repair")["latency_ms"] is not None
        assert scores_of(world, "rain") == {"recall@1": 1.0, "judge": 0.5}

    def test_one_that_blocks_the_event_loop_over_a_recorded_response(self, world, tmp_path):
        world.suite(before=BLOCKING_JUDGE, evaluators='["recall@1", Judge()]')
        runs = f"--heta-runs-dir={tmp_path}"
        world.run("--heta-timeout=0.3", ONE_MODE, runs)
        world.run("--heta-timeout=0.3", ONE_MODE, runs, "--heta-resume")
        assert scores_of(world, "repair") == {"recall@1": 1.0, "judge": "timeout"}
        assert scores_of(world, "rain") == {"recall@1": 1.0, "judge": 0.5}


class TestBlockedLoop:
    @pytest.mark.parametrize("arguments", [(), ("-n2", "-pxdist")], ids=" ".join)
    def test_the_rest_of_the_unit_fails_and_the_next_one_has_a_loop(self, world, arguments):
        world.suite(before=TWO_UNITS)
        world.extend_recipe(BLOCKING_QUERY)
        world.run("--heta-timeout=0.3", ONE_MODE, *arguments)
        came = errors(world)
        line = (
            "[query-timeout] the query took longer than 0.3 s and blocks the event loop;"
            " await what takes long: `asyncio.to_thread`"
        )
        assert came["repair"] == ("timeout", line)
        assert came["pie"] is None
        assert came["rain"] is None

    def test_what_was_not_asked_says_why(self, world):
        cases = [
            {"case_id": name, "query": query, "evidence": ["apple"]}
            for name, query in [("a", "bike repair"), ("b", "apple pie"), ("c", "apple")]
        ]
        world.dataset(cases)
        world.extend_recipe(BLOCKING_QUERY)
        world.run("--heta-timeout=0.3", "--heta-concurrency=1", ONE_MODE)
        came = errors(world)
        assert came["a"][1].startswith("[query-timeout] the query took longer")
        assert came["b"] == came["c"]
        assert came["b"][1].startswith("[query-timeout] not answered: another query")

    def test_a_lone_query_costs_only_itself(self, world):
        fixture = "@pytest.fixture\ndef heta_kb(heta_unit, heta_recipe):\n"
        world.extend_recipe(BLOCKING_QUERY)
        body = "    return heta_unit.build(heta_recipe)\n"
        world.pytester.makeconftest("import pytest\n" + fixture + body)
        world.run("--heta-timeout=0.3", ONE_MODE)
        came = errors(world)
        assert came.pop("repair")[0] == "timeout"
        assert set(came.values()) == {None}
        assert len(came) == 2

    def test_a_build(self, world):
        world.extend_recipe("""
        import threading

        class Recipe(Recipe):
            async def create(self, **arguments):
                threading.Event().wait()

        recipe = Recipe()
        """)
        world.run("--heta-build-timeout=0.3", ONE_MODE)
        came = errors(world)
        assert len(came) == 3
        for error_type, message in came.values():
            assert error_type == "timeout"
            assert "building took longer than 0.3 s and blocks the event loop" in message


class TestCap:
    """So many ordinary calls may be left behind; the rest of the unit is not called."""

    CASES = tuple(
        {"case_id": f"{unit}{number}", "query": f"{unit} {number}", "evidence": ["apple"]}
        for unit in ("a", "b")
        for number in range(22)
    )
    UNITS = """
from pytest_heta.models import BenchmarkRunUnit

class JsonlBenchmark(JsonlBenchmark):
    async def run_units(self, prepared):
        for unit in "ab":
            cases = [f"{unit}{number}" for number in range(22)]
            yield BenchmarkRunUnit(unit_id=unit, document_ids=["apple"], case_ids=cases)
"""
    CHECKER = """
import threading

class Checker:
    name = "checker"
    def evaluate(self, *, case, response):
        if case.query.startswith("a"):
            threading.Event().wait()
        return 1.0

class Other(Checker):
    name = "other"
    def evaluate(self, *, case, response):
        return 0.5
"""

    @pytest.fixture
    def units(self, world):
        world.dataset(self.CASES)

    @pytest.mark.usefixtures("units")
    def test_of_an_evaluator(self, world):
        world.suite(before=self.UNITS + self.CHECKER, evaluators="[Checker(), Other()]")
        world.run("--heta-timeout=0.05", ONE_MODE)
        scores = [scores_of(world, f"a{number}") for number in range(22)]
        assert scores == [{"checker": "timeout", "other": 0.5}] * 22
        last = {score["name"]: score for score in result_of(world, "a21")["scores"]}
        message = last["checker"]["metadata"]["error"]["message"]
        assert message == (
            "not called: 16 calls of the evaluator that took too long are still running;"
            " let the evaluator give up by itself"
        )
        before = {score["name"]: score for score in result_of(world, "a15")["scores"]}
        message = before["checker"]["metadata"]["error"]["message"]
        assert message == "the evaluator took longer than 0.05 s"
        assert scores_of(world, "b0") == {"checker": 1.0, "other": 0.5}

    @pytest.mark.usefixtures("units")
    @pytest.mark.parametrize("concurrency", [1, 4])
    def test_of_a_query(self, world, concurrency):
        world.suite(before=self.UNITS)
        world.extend_recipe("""
        import threading

        class KnowledgeBase(KnowledgeBase):
            def query(self, text, *, mode, top_k, options=None):
                if text.startswith("a"):
                    threading.Event().wait()
                return super().query(text, mode=mode, top_k=top_k)
        """)
        world.run("--heta-timeout=0.05", f"--heta-concurrency={concurrency}", ONE_MODE)
        came = errors(world)
        assert {came[f"a{number}"][0] for number in range(22)} == {"timeout"}
        messages = [came[f"a{number}"][1] for number in range(22)]
        late = [message for message in messages if message.startswith("[query-timeout] the query")]
        assert len(late) in range(16, 16 + concurrency)
        assert "calls of the query that took too long are still running" in messages[-1]
        assert {came[f"b{number}"] for number in range(22)} == {None}


class TestWarmUp:
    SLOW = """
import threading

class KnowledgeBase(KnowledgeBase):
    asked = 0

    def query(self, text, *, mode, top_k, options=None):
        self.asked += 1
        if self.asked == 1:
            threading.Event().wait()
        return super().query(text, mode=mode, top_k=top_k)
"""

    @pytest.mark.parametrize("kind", ["ordinary", "asynchronous", "lone"])
    def test_one_that_takes_too_long_is_told(self, world, kind):
        source = self.SLOW
        if kind == "asynchronous":
            source = (
                source.replace("import threading", "import asyncio")
                .replace("def query", "async def query")
                .replace("threading.Event().wait()", "await asyncio.Event().wait()")
            )
        if kind == "lone":
            world.pytester.makeconftest(
                "import pytest\n"
                "@pytest.fixture\ndef heta_kb(heta_unit, heta_recipe):\n"
                "    return heta_unit.build(heta_recipe)\n"
            )
        world.extend_recipe(source)
        world.run("--heta-timeout=0.3", "--heta-warmup=1", ONE_MODE)
        assert world.report()["metadata"]["warnings"] == [
            f"[warm-up-failed] warming up run unit corpus, mode overlap: {LATE}"
        ]


class TestClosing:
    ASYNC = """
import asyncio

class KnowledgeBase(KnowledgeBase):
    async def aclose(self):
        await asyncio.Event().wait()
"""
    ORDINARY = """
import threading

class KnowledgeBase(KnowledgeBase):
    def close(self):
        threading.Event().wait()
"""
    BLOCKING = """
import threading

class KnowledgeBase(KnowledgeBase):
    async def aclose(self):
        threading.Event().wait()
"""

    @pytest.mark.parametrize(
        ("source", "why"),
        [
            (ASYNC, "closing took longer than 0.3 s"),
            (ORDINARY, "closing took longer than 0.3 s"),
            (BLOCKING, "closing took longer than 0.3 s and blocks the event loop"),
        ],
        ids=["asynchronous", "ordinary", "blocking"],
    )
    def test_it_takes_as_long_as_building_may(self, world, source, why):
        world.extend_recipe(source)
        result = world.run("--heta-build-timeout=0.3", ONE_MODE)
        assert result.ret == pytest.ExitCode.OK
        told = world.report()["metadata"]["warnings"]
        assert told == [f"[close-failed] run unit corpus could not be closed: {why}"]

    def test_where_the_loop_is_blocked_it_is_told(self, world):
        world.extend_recipe(
            BLOCKING_QUERY + "\n    async def aclose(self):\n"
            "        pathlib.Path(__file__).with_name('closed').touch()\n"
        )
        world.run("--heta-timeout=0.3", ONE_MODE)
        told = world.report()["metadata"]["warnings"]
        why = "its event loop is blocked by a coroutine"
        assert told == [f"[close-failed] run unit corpus could not be closed: {why}"]
        assert not (world.path / "closed").exists()

    def test_an_ordinary_one_is_closed_after_a_query_was_left_behind(self, world):
        world.extend_recipe("""
        import threading

        class KnowledgeBase(KnowledgeBase):
            def query(self, text, *, mode, top_k, options=None):
                if text == "bike repair":
                    threading.Event().wait()
                return super().query(text, mode=mode, top_k=top_k)

            def close(self):
                pathlib.Path(__file__).with_name("closed").touch()
        """)
        world.run("--heta-timeout=0.3", ONE_MODE)
        assert (world.path / "closed").exists()


# A function of C that is called without letting go of the interpreter.
HOLDS = """
import ctypes

def hold():
    if not pathlib.Path(__file__).with_name("let_go").exists():
        ctypes.PyDLL(None).sleep(600)
"""
HOLDING_QUERY = """
class KnowledgeBase(KnowledgeBase):
    KIND query(self, text, *, mode, top_k, options=None):
        with pathlib.Path(__file__).with_name("asked").open("a") as file:
            file.write(text + "\\n")
        if text == "bike repair":
            hold()
        return super().query(text, mode=mode, top_k=top_k)

class Recipe(Recipe):
    max_concurrency = 1
    def create(self, *, objects, source_keys, **arguments):
        return KnowledgeBase({key: objects.get(key).decode() for key in source_keys})

recipe = Recipe()
"""
HOLDING_BUILD = """
class Recipe(Recipe):
    def create(self, **arguments):
        hold()
        return super().create(**arguments)

recipe = Recipe()
"""
HOLDING_JUDGE = """
import ctypes, pathlib

class Judge:
    name = "judge"
    def evaluate(self, *, case, response):
        go_on = pathlib.Path(__file__).with_name("let_go").exists()
        if case.case_id == "repair" and not go_on:
            ctypes.PyDLL(None).sleep(600)
        return 0.5
"""


class Alone:
    """Runs pytest in a process of its own, which may end at any time."""

    def __init__(self, world, runs):
        self._world, self._runs = world, runs

    def run(self, *arguments):
        """Run pytest, and return what came of it."""
        return self._world.pytester.run(
            *(sys.executable, "-m", "pytest", *self._world.quiet),
            *("--heta-recipe=recipe.py:recipe", ONE_MODE, f"--heta-runs-dir={self._runs}"),
            *arguments,
            timeout=LONGEST,
        )

    def let_go(self):
        """Hold the interpreter no longer, in the runs to come."""
        (self._world.path / "let_go").touch()

    def asked(self):
        """Return the queries since the last call."""
        path = self._world.path / "asked"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


@pytest.fixture
def alone(world, tmp_path):
    return Alone(world, tmp_path)


LEFT_BEHIND_ORDINARY = """
import threading

class KnowledgeBase(KnowledgeBase):
    def query(self, text, *, mode, top_k, options=None):
        threading.Event().wait()
"""
LEFT_BEHIND_ASYNCHRONOUS = """
import asyncio, threading

class KnowledgeBase(KnowledgeBase):
    async def query(self, text, *, mode, top_k, options=None):
        if text == "apple pie":  # goes on in a thread
            await asyncio.to_thread(threading.Event().wait)
        while text == "bike repair":  # does not let itself be cancelled
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass
        threading.Event().wait()  # blocks the event loop
"""


@pytest.mark.parametrize(
    "source", [LEFT_BEHIND_ORDINARY, LEFT_BEHIND_ASYNCHRONOUS], ids=["ordinary", "asynchronous"]
)
def test_the_process_does_not_wait_for_what_was_left_behind(world, alone, source):
    world.extend_recipe(source)
    alone.run("--heta-timeout=0.3", "--heta-concurrency=1").assert_outcomes(failed=3)
    came = errors(world).values()
    assert {error_type for error_type, _ in came} == {"timeout"}
    assert all(message.startswith(f"[query-timeout] {LATE}") for _, message in came)


@pytest.mark.skipif(sys.platform == "win32", reason="the sleep of C's library")
class TestHeldInterpreter:
    """No Python runs any more: the process ends, and what it had done is there."""

    @pytest.mark.parametrize("kind", ["def", "async def"])
    def test_of_a_query_the_run_goes_on_from_there(self, world, alone, kind):
        world.extend_recipe(HOLDS + HOLDING_QUERY.replace("KIND", kind))
        result = alone.run("--heta-timeout=0.3")
        assert result.ret == 1
        result.stderr.fnmatch_lines(["Timeout (*)!", "* in hold"])
        assert alone.asked() == ["apple pie", "bike repair"]
        alone.let_go()
        result = alone.run("--heta-timeout=60", "--heta-resume")
        assert result.ret == pytest.ExitCode.OK
        assert alone.asked() == ["bike repair", "rain cloud"]
        assert set(errors(world).values()) == {None}

    def test_of_a_query_in_a_worker_it_costs_one_case(self, world, alone):
        world.extend_recipe(HOLDS + HOLDING_QUERY.replace("KIND", "def"))
        result = alone.run("--heta-timeout=0.3", "-pxdist", "-n2")
        result.assert_outcomes(passed=2, failed=1)
        came = errors(world)
        assert came.pop("repair")[0] == "crash"
        assert set(came.values()) == {None}

    def test_of_a_build(self, world, alone):
        world.extend_recipe(HOLDS + HOLDING_BUILD)
        assert alone.run("--heta-build-timeout=0.3").ret == 1
        alone.let_go()
        assert alone.run("--heta-build-timeout=60", "--heta-resume").ret == pytest.ExitCode.OK
        assert set(errors(world).values()) == {None}

    def test_of_an_evaluator(self, world, alone):
        world.suite(before=HOLDING_JUDGE, evaluators='["recall@1", Judge()]')
        query = HOLDING_QUERY.replace("KIND", "def").replace("hold()", "pass")
        world.extend_recipe(query)
        assert alone.run("--heta-timeout=0.3").ret == 1
        assert alone.asked()[:2] == ["apple pie", "bike repair"]
        alone.let_go()
        result = alone.run("--heta-timeout=60", "--heta-resume")
        assert result.ret == pytest.ExitCode.OK
        assert not {"apple pie", "bike repair"} & set(alone.asked())
        assert scores_of(world, "repair") == {"recall@1": 1.0, "judge": 0.5}

    def test_a_build_without_a_limit_may_hold_it(self, world, alone):
        world.extend_recipe(HOLDS + HOLDING_BUILD.replace("hold()", "ctypes.PyDLL(None).sleep(4)"))
        assert alone.run("--heta-timeout=0.3").ret == pytest.ExitCode.OK

    def test_pytests_own_timer_is_left_alone(self, world, alone):
        held = HOLDS.replace("sleep(600)", "sleep(4)")
        world.extend_recipe(held + HOLDING_QUERY.replace("KIND", "def"))
        result = alone.run("--heta-timeout=0.3", "-ofaulthandler_timeout=60")
        result.assert_outcomes(passed=2, failed=1)
