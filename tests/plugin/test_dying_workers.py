"""Workers that die: each costs one sample, nothing runs twice, nothing is missing unsaid."""

import json
from textwrap import dedent
from xml.etree import ElementTree as ET

import pytest

LONGEST = 300
"""Seconds that a run may take on a busy machine: it takes few, or it hangs."""

KILLING_QUERY = """
class KnowledgeBase(KnowledgeBase):
    def query(self, text, *, mode, top_k, options=None):
        if text in KILLERS:
            os._exit(9)
        return super().query(text, mode=mode, top_k=top_k, options=options)
"""

KILLING_THREAD = """
import threading

class KnowledgeBase(KnowledgeBase):
    def query(self, text, *, mode, top_k, options=None):
        if text in KILLERS:
            os._exit(9)
        return super().query(text, mode=mode, top_k=top_k, options=options)

class Recipe(Recipe):
    max_concurrency = 4

recipe = Recipe()
"""

KILLING_COROUTINE = """
import asyncio

class KnowledgeBase(KnowledgeBase):
    going = 0

    async def query(self, text, *, mode, top_k, options=None):
        self.going += 1
        for _ in range(50):
            if text in KILLERS and self.going >= 4:
                break
            await asyncio.sleep(0)
        if text in KILLERS:
            os._exit(9)
        self.going -= 1
        return super().query(text, mode=mode, top_k=top_k, options=options)
"""

KILLING_BUILD = """
class Recipe(Recipe):
    def create(self, *, name, **arguments):
        if "-a-" in name:
            try:
                pathlib.Path(__file__).with_name("killed").touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os._exit(9)
        return super().create(name=name, **arguments)

recipe = Recipe()
"""

KILLING_EVALUATOR = """
import os

class Deadly:
    name = "deadly"

    async def evaluate(self, *, case, response):
        if case.query in KILLERS:
            os._exit(9)
        return {"name": "deadly", "value": 1.0}
"""

SAVING = """
import pickle

class Recipe(Recipe):
    def save(self, knowledge_base, path):
        pathlib.Path(path).mkdir(parents=True, exist_ok=True)
        (pathlib.Path(path) / "texts").write_bytes(pickle.dumps(knowledge_base.texts))

    def load(self, path):
        return KnowledgeBase(pickle.loads((pathlib.Path(path) / "texts").read_bytes()))

recipe = Recipe()
"""

OVERLAPPING = {
    # An evaluator on the loop, while the tests' thread asks the next samples.
    "evaluator": (
        """
        import time

        class KnowledgeBase(KnowledgeBase):
            def query(self, text, *, mode, top_k, options=None):
                time.sleep(0.005)
                return super().query(text, mode=mode, top_k=top_k, options=options)
        """,
        """
        import asyncio, os

        class Judge:
            name = "judge"

            async def evaluate(self, *, case, response):
                await asyncio.sleep(0.001)
                if case.query in KILLERS:
                    os._exit(3)
                return {"name": "judge", "value": 1.0}
        """,
        (),
    ),
    # A query in one of several threads.
    "thread": (
        """
        import threading, time

        later = threading.Event()

        class KnowledgeBase(KnowledgeBase):
            def query(self, text, *, mode, top_k, options=None):
                if text in KILLERS:
                    later.wait(1)  # in vain, where it is asked alone
                    os._exit(3)
                if text == "apple b42":
                    later.set()
                    time.sleep(0.2)
                return super().query(text, mode=mode, top_k=top_k, options=options)
        """,
        "",
        ("--heta-concurrency=8",),
    ),
    # A query on the loop, while an evaluator runs in the tests' thread.
    "coroutine": (
        """
        import asyncio

        class KnowledgeBase(KnowledgeBase):
            async def query(self, text, *, mode, top_k, options=None):
                if text in KILLERS:
                    await asyncio.sleep(0.02)
                    os._exit(3)
                return super().query(text, mode=mode, top_k=top_k, options=options)
        """,
        """
        import time

        class Judge:
            name = "judge"

            def evaluate(self, *, case, response):
                time.sleep(0.005)
                return {"name": "judge", "value": 1.0}
        """,
        (),
    ),
}
"""Code of several samples at the same time: recipe, evaluator, options."""

FORMS = {
    "query": KILLING_QUERY,
    "thread": KILLING_THREAD,
    "coroutine": KILLING_COROUTINE,
    "build": KILLING_BUILD,
    "evaluator": "",
}


class Dying:
    """Two units, some of whose cases kill the process that asks them."""

    def __init__(self, world, pytester) -> None:
        self.world = world
        self._pytester = pytester

    def prepare(self, form: str, *killers: str, units: dict[str, int] | None = None) -> None:
        """Write the dataset, a recipe that saves what it built, and what kills."""
        self.ids = [
            f"{unit}{number}"
            for unit, count in (units or {"a": 6, "b": 6}).items()
            for number in range(count)
        ]
        cases = [
            {"case_id": name, "query": f"apple {name}", "evidence": ["apple"], "unit": name[0],
             "documents": ["apple", "bike"]}
            for name in self.ids
        ]  # fmt: skip
        self.world.dataset(cases)
        known = f"KILLERS = {[f'apple {name}' for name in killers]}\n"
        self.world.extend_recipe(known + FORMS[form] + SAVING)
        if form == "evaluator":
            self.world.suite(before=known + KILLING_EVALUATOR, evaluators="['recall@1', Deadly()]")

    def run(self, *args: str) -> pytest.RunResult:
        """Run in a process of its own, which is stopped if it does not end."""
        return self._pytester.runpytest_subprocess(
            *self.world.quiet,
            "--heta-recipe=recipe.py:recipe",
            "--heta-mode=overlap",
            "--junitxml=junit.xml",
            *args,
            timeout=LONGEST,
        )

    def errors(self) -> dict[str, str]:
        """Return the type of each case's error; all cases that have a result are once in it."""
        results = self.world.report()["case_results"]
        names = [result["case_id"] for result in results]
        assert names == [name for name in self.ids if name in set(names)]
        return {r["case_id"]: r["error"]["error_type"] for r in results if r["error"]}

    def junit(self) -> list[str]:
        """Return the names of the test cases in the JUnit file, in order."""
        tree = ET.parse(self.world.path / "junit.xml")
        return sorted(case.get("name") for case in tree.iter("testcase"))


@pytest.fixture
def dying(world, pytester):
    return Dying(world, pytester)


@pytest.mark.parametrize("form", FORMS)
def test_killer_case_costs_one_result(dying, form):
    dying.prepare(form, "a2")
    result = dying.run("-n2")
    result.assert_outcomes(passed=11, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    # A build is on nobody's account but that of the case that had it done.
    assert dying.errors() == {"a0" if form == "build" else "a2": "crash"}
    assert dying.world.report()["metadata"]["complete"] is True
    assert dying.junit() == [f"overlap[{name}]" for name in dying.ids]


@pytest.mark.parametrize(
    ("form", "killer", "split"),
    [
        *((form, "b2", "auto") for form in FORMS if form != "build"),
        ("coroutine", "b69", "auto"),
        ("query", "b2", "never"),
        ("coroutine", "b40", "never"),
    ],
)
def test_killer_case_of_a_large_unit_costs_one_result(dying, form, killer, split):
    dying.prepare(form, killer, units={"a": 6, "b": 70})
    result = dying.run("-n2", f"--heta-split={split}")
    result.assert_outcomes(passed=75, failed=1)
    assert dying.errors() == {killer: "crash"}
    assert dying.world.report()["metadata"]["complete"] is True
    assert dying.junit() == sorted(f"overlap[{name}]" for name in dying.ids)


@pytest.mark.parametrize("form", OVERLAPPING)
def test_killer_among_several_whose_code_is_executed_costs_one_result(dying, form):
    recipe, evaluator, options = OVERLAPPING[form]
    dying.prepare("evaluator", "b40", units={"a": 6, "b": 60})
    dying.world.extend_recipe(dedent(recipe))
    known = "KILLERS = ['apple b40']\n"
    names = "['recall@1', Judge()]" if evaluator else "['recall@1']"
    dying.world.suite(before=known + dedent(evaluator), evaluators=names)
    result = dying.run("-n2", "--heta-split=never", *options)
    result.assert_outcomes(passed=65, failed=1)
    assert dying.errors() == {"b40": "crash"}
    assert dying.world.report()["metadata"]["complete"] is True
    assert dying.junit() == sorted(f"overlap[{name}]" for name in dying.ids)


def test_several_killers_cost_one_result_each(dying):
    dying.prepare("query", "a0", "a1", "b5")
    dying.run("-n2").assert_outcomes(passed=9, failed=3)
    assert dying.errors() == dict.fromkeys(["a0", "a1", "b5"], "crash")


def test_survivors_run_the_rest_when_workers_are_not_replaced(dying):
    dying.prepare("query", "a2")
    result = dying.run("-n2", "--max-worker-restart=0", "--heta-gate=overlap.failure_rate <= 0.5")
    result.assert_outcomes(passed=12, failed=1)  # the gate passes
    assert dying.errors() == {"a2": "crash"}
    report = dying.world.report()
    assert report["metadata"]["complete"] is True
    assert report["gates"][0]["status"] == "passed"


def test_what_no_worker_is_left_for_is_named(dying):
    dying.prepare("query", "a2", "b2")
    gate = "--heta-gate=overlap.failure_rate <= 0.5"
    result = dying.run("-n2", "--max-worker-restart=0", gate)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert dying.errors() == {"a2": "crash", "b2": "crash"}
    report = dying.world.report()
    finished = {result["case_id"] for result in report["case_results"]}
    missing = [name for name in dying.ids if name not in finished]
    assert len(missing) >= 3
    assert report["metadata"]["complete"] is False
    assert report["gates"][0]["status"] == "skipped"
    first = f"bench_toys.py::toys::{missing[0][0]}::overlap[[]{missing[0]}[]]"
    result.stdout.fnmatch_lines(
        [
            "*INCOMPLETE*",
            f"?tests-not-run? {len(missing)} tests were not run, *: {first},*",
        ]
    )


@pytest.mark.parametrize("arguments", ["--maxfail=1", "-x"])
def test_run_that_stops_at_a_failure_ends(dying, arguments):
    dying.prepare("query", "a2")
    result = dying.run("-n2", arguments)
    assert result.ret in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}
    assert dying.errors() == {"a2": "crash"}
    report = dying.world.report()
    done = len(report["case_results"])
    assert report["metadata"]["complete"] is (done == 12)
    assert report["metadata"]["interrupted"]


def test_worker_that_dies_while_it_collects_is_not_passed_over(dying):
    dying.prepare("query")
    (dying.world.path / "conftest.py").write_text(
        "import os\n"
        "def pytest_collection_modifyitems(items):\n"
        "    if os.environ.get('PYTEST_XDIST_WORKER') == 'gw1':\n"
        "        os._exit(9)\n",
        encoding="utf-8",
    )
    result = dying.run("-n2", "--max-worker-restart=0")
    # Whether the other one had collected is up to chance; nothing was run in either case.
    assert result.ret in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED}
    assert "passed" not in result.parseoutcomes()
    result.stdout.fnmatch_lines(["*worker gw1 crashed and worker restarting disabled*"])
    # With another worker in its place, nothing is lost.
    dying.run("-n2").assert_outcomes(passed=12)


def test_ordinary_tests_that_nobody_ran_are_named_too(dying):
    dying.prepare("query")
    dying.world.suite(
        extra="""
        import os, pytest

        @pytest.mark.parametrize("number", range(4))
        def test_plain(number):
            if number == 1:
                os._exit(9)
        """
    )
    result = dying.run("-n1", "--max-worker-restart=0", "-k", "test_plain")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["?tests-not-run? 2 tests *: bench_toys.py::test_plain[[]2[]], *::test_plain[[]3[]]"]
    )


def test_selection_is_known_to_the_controller(dying):
    """Which sample died is told by the node id alone, whatever was deselected around it."""
    dying.prepare("query", "b4")
    result = dying.run("-n2", "-k", "a1 or a3 or b0 or b4 or b5")
    result.assert_outcomes(passed=4, failed=1)
    assert dying.errors() == {"b4": "crash"}
    metadata = dying.world.report()["metadata"]
    assert (metadata["selected_samples"], metadata["finished_samples"]) == (5, 5)
    assert json.loads((dying.world.path / "report.json").read_text())["run"]["complete"] is False
