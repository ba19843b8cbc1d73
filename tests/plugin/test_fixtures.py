"""The fixtures of a run unit, as users override and use them."""

from textwrap import dedent

import pytest

TWO_UNITS = [
    {"case_id": "pie", "query": "apple pie", "unit": "sweet", "documents": ["apple"]},
    {"case_id": "tart", "query": "apple tart", "unit": "sweet", "documents": ["apple", "bike"]},
    {"case_id": "rain", "query": "rain", "unit": "wet", "documents": ["cloud"]},
]


@pytest.fixture
def conftest(world):
    """Write the world's conftest file."""

    def write(text: str, folder: str = ".") -> None:
        (world.path / folder / "conftest.py").write_text(dedent(text), encoding="utf-8")

    return write


@pytest.fixture
def log(world, monkeypatch):
    """Return what the world's files wrote to the file that LOG names."""
    path = world.path / "log.txt"
    path.touch()
    monkeypatch.setenv("LOG", str(path))
    return lambda: path.read_text(encoding="utf-8").split()


LOG = """
import os
from pathlib import Path


def log(*words):
    with Path(os.environ["LOG"]).open("a", encoding="utf-8") as file:
        file.write(" ".join(map(str, words)) + " ")
"""


# --- what they are -------------------------------------------------------------


def test_unit_tells_what_it_is(world, conftest, log):
    world.dataset(TWO_UNITS)
    conftest(
        LOG
        + """
import pytest


@pytest.fixture(scope="class")
def heta_kb(heta_unit, heta_recipe):
    keys = heta_unit.source_keys
    assert heta_unit.benchmark.name == "toys"
    assert heta_recipe.name == "toy"
    assert list(heta_unit.objects.list()) == list(keys)
    texts = [heta_unit.objects.get(key).decode() for key in keys]
    assert not heta_unit.objects.exists("raw/benchmarks/toys/test/drum/drum.txt")
    log(heta_unit.unit_id, ",".join(heta_unit.document_ids), ",".join(heta_unit.case_ids))
    log(len(texts), texts[0].split()[0], heta_unit.workspace.is_dir())
    return heta_unit.build(heta_recipe)
"""
    )
    world.run("--heta-mode=overlap").assert_outcomes(passed=3)
    assert log() == [
        *("sweet", "apple,bike", "pie,tart", "2", "apple", "True"),
        *("wet", "cloud", "rain", "1", "cloud", "True"),
    ]


def test_case_ids_are_the_planned_ones(world, conftest, log):
    conftest(
        LOG
        + """
import pytest

@pytest.fixture(autouse=True, scope="class")
def note(heta_unit):
    log(",".join(heta_unit.case_ids))
"""
    )
    world.run("--heta-limit=2", "--heta-mode=overlap").assert_outcomes(passed=2)
    assert log() == ["pie,repair"]


def test_workspace_is_one_for_each_unit_and_removed(world, conftest, log):
    world.dataset(TWO_UNITS)
    conftest(
        LOG
        + """
import pytest

class Recipe:
    name = "writes"

    def __init__(self, recipe):
        self.recipe = recipe

    def create(self, *, name, objects, source_keys, workspace):
        (workspace / "index").write_text("x")
        log(workspace)
        return self.recipe.create(
            name=name, objects=objects, source_keys=source_keys, workspace=workspace
        )

@pytest.fixture(scope="class")
def heta_kb(heta_unit, heta_recipe):
    return heta_unit.build(Recipe(heta_recipe))
"""
    )
    world.run().assert_outcomes(passed=6)
    first, second = log()
    assert first != second
    assert not any(world.path.__class__(path).exists() for path in (first, second))


# --- overriding ----------------------------------------------------------------


def test_knowledge_base_may_be_another(world, conftest):
    conftest(
        """
        import pytest

        class Deployed:
            available_queries = ("overlap", "backwards")

            def query(self, text, *, mode, top_k):
                result = {"id": "1", "text": "b", "metadata": {"document_id": "bike"}}
                return {"results": [result]}

        @pytest.fixture(scope="class")
        def heta_kb():
            return Deployed()
        """
    )
    world.run("--heta-mode=overlap").assert_outcomes(passed=3)
    report = world.report()
    assert report["score_summary"]["overlap.recall@1"] == pytest.approx(1 / 3)
    assert report["unit_builds"] == []
    assert report["metadata"]["overridden_units"] == ["corpus"]
    (warning,) = report["metadata"]["warnings"]
    assert warning.startswith("[fixture-overridden] heta_kb is overridden for 1 of 1 run units: ")


def test_override_in_the_suite_file_and_in_a_folder(world, conftest, log):
    (world.path / "deep").mkdir()
    (world.path / "deep" / "bench_deep.py").write_text(
        "from pytest_heta import JsonlBenchmark\ndeep = JsonlBenchmark('toys', name='deep')\n"
    )
    override = """
import pytest

@pytest.fixture(scope="class")
def heta_kb(heta_kb):
    log({0!r})
    return heta_kb
"""
    conftest(LOG + override.format("root"))
    conftest(LOG + override.format("deep"), "deep")
    world.suite(extra=LOG + override.format("suite"))
    world.run("--heta-mode=overlap").assert_outcomes(passed=6)
    assert log() == ["root", "suite", "root", "deep"]


def test_recipe_may_be_another(world, conftest):
    conftest(
        """
        import pytest

        @pytest.fixture(scope="class")
        def heta_recipe(heta_recipe):
            create = heta_recipe.create

            class Shouting:
                name = "shouting"

                def create(self, *, source_keys, **arguments):
                    return create(source_keys=source_keys[:1], **arguments)

            return Shouting()
        """
    )
    world.run("--heta-mode=overlap").assert_outcomes(passed=3)
    assert [len(r["response"]["results"]) for r in world.report()["case_results"]] == [1, 1, 1]


def test_unit_may_be_wrapped(world, conftest, log):
    conftest(
        LOG
        + """
import pytest

@pytest.fixture(scope="class")
def heta_unit(heta_unit):
    log("before")
    yield heta_unit
    log("after")
"""
    )
    world.run().assert_outcomes(passed=6)
    assert log() == ["before", "after"]


def test_asynchronous_knowledge_base_stays_on_one_loop(world, conftest, log):
    conftest(
        LOG
        + """
import asyncio
import pytest

class Client:
    available_queries = ("overlap", "backwards")

    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.lock = asyncio.Lock()

    async def query(self, text, *, mode, top_k):
        assert asyncio.get_running_loop() is self.loop
        async with self.lock:
            await asyncio.sleep(0)
        return {"results": []}

    async def aclose(self):
        assert asyncio.get_running_loop() is self.loop
        log("closed")

class Recipe:
    name = "async"

    async def create(self, *, name, objects, source_keys, workspace):
        return Client()

@pytest.fixture(scope="class")
def heta_kb(heta_unit):
    return heta_unit.build(Recipe())
"""
    )
    world.run().assert_outcomes(passed=6)
    assert log() == ["closed"]
    assert world.report()["mode_summaries"]["overlap"]["latency"]["n"] == 3


def test_several_knowledge_bases_are_all_closed(world, conftest, log):
    conftest(
        LOG
        + """
import pytest

class KnowledgeBase:
    available_queries = ("overlap", "backwards")

    def __init__(self, number):
        self.number = number

    def query(self, text, *, mode, top_k):
        return {"results": []}

    def aclose(self):
        log("closed", self.number)

class Recipe:
    name = "numbered"

    def __init__(self, number):
        self.number = number

    def create(self, *, name, objects, source_keys, workspace):
        return KnowledgeBase(self.number)

@pytest.fixture(scope="class")
def heta_kb(heta_unit):
    heta_unit.build(Recipe(1))
    return heta_unit.build(Recipe(2))
"""
    )
    world.run().assert_outcomes(passed=6)
    assert log() == ["closed", "2", "closed", "1"]


def test_knowledge_base_that_fails_to_close_is_a_warning(world):
    source = (world.path / "recipe.py").read_text(encoding="utf-8")
    world.recipe(
        source.replace(
            "    def query(",
            "    def aclose(self):\n        raise OSError('no close')\n\n    def query(",
        )
    )
    result = world.run()
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["warning: *corpus*could not be closed*no close*"])
    assert world.report()["metadata"]["complete"] is True


# --- autouse, skipping and failing ---------------------------------------------


def test_autouse_fixtures_of_every_scope(world, conftest, log):
    world.dataset(TWO_UNITS)
    conftest(
        LOG
        + """
import pytest

def fixture(scope):
    @pytest.fixture(autouse=True, scope=scope, name=f"auto_{scope}")
    def auto():
        log(scope[0])
        yield
        log(scope[0].upper())
    return auto

session, module, class_, function = map(fixture, ("session", "module", "class", "function"))
"""
    )
    world.run("--heta-mode=overlap").assert_outcomes(passed=3)
    assert "".join(log()) == "smcfFfFCcfFCMS"


def test_autouse_fixture_sees_the_case(world, conftest, log):
    conftest(
        LOG
        + """
import pytest

@pytest.fixture(autouse=True)
def note(heta_case):
    log(heta_case.case.case_id, heta_case.mode, heta_case.sample.unit)
"""
    )
    world.run("--heta-limit=1").assert_outcomes(passed=2)
    assert log() == ["pie", "overlap", "corpus", "pie", "backwards", "corpus"]


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["serial", "distributed"])
def test_skip_in_the_knowledge_base_is_not_run(world, conftest, workers):
    world.dataset(TWO_UNITS)
    conftest(
        """
        import pytest

        @pytest.fixture(scope="class")
        def heta_kb(heta_unit, heta_recipe):
            if heta_unit.unit_id == "wet":
                pytest.skip("no water here")
            return heta_unit.build(heta_recipe)
        """
    )
    result = world.run("-rs", "--heta-gate=overlap.failure_rate <= 0.5", *workers)
    # Two samples and the gate, which is not decided.
    result.assert_outcomes(passed=4, skipped=3)
    result.stdout.fnmatch_lines(["*no water here*"])
    report = world.report()
    assert [r["case_id"] for r in report["case_results"]] == ["pie", "tart", "pie", "tart"]
    assert report["metadata"]["complete"] is False
    (gate,) = report["gates"]
    assert gate["status"] == "skipped"
    summary = report["mode_summaries"]["overlap"]
    assert (summary["planned_samples"], summary["total_cases"]) == (3, 2)


def test_skip_with_required_gates_fails_the_run(world, conftest):
    conftest(
        """
        import pytest

        @pytest.fixture(scope="class")
        def heta_kb():
            pytest.skip("nothing here")
        """
    )
    result = world.run("--heta-gate=overlap.failure_rate <= 1", "--heta-require-gates")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    report = world.report()
    assert report["case_results"] == []
    assert report["metadata"]["complete"] is False
    assert report["gates"][0]["status"] == "skipped"


def test_skip_of_single_cases(world, conftest):
    conftest(
        """
        import pytest

        @pytest.fixture(autouse=True)
        def skip_some(heta_case):
            if heta_case.case.labels["kind"] == "sky":
                pytest.skip("not today")
        """
    )
    world.run("--heta-gate=*.failure_rate <= 1").assert_outcomes(passed=4, skipped=4)
    report = world.report()
    assert {r["case_id"] for r in report["case_results"]} == {"pie", "repair"}
    assert {gate["status"] for gate in report["gates"]} == {"skipped"}


def test_expected_failure_mark_hides_no_error_from_the_report(world, conftest):
    source = (world.path / "recipe.py").read_text(encoding="utf-8")
    world.recipe(source.replace("words = ", "assert 'pie' not in text; words = "))
    conftest(
        """
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                if "pie" in item.name:
                    item.add_marker(pytest.mark.xfail(reason="known"))
        """
    )
    result = world.run("--heta-gate=overlap.failure_rate <= 0")
    # The case that works with its mark is strict about it; the gate fails.
    assert result.parseoutcomes() == {"passed": 4, "xfailed": 2, "failed": 1}
    report = world.report()
    assert report["mode_summaries"]["overlap"]["failed_cases"] == 1
    assert report["gates"][0]["status"] == "failed"
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["serial", "distributed"])
def test_failing_fixture_errors_the_samples_of_its_unit(world, conftest, workers):
    world.dataset(TWO_UNITS)
    conftest(
        """
        import pytest

        @pytest.fixture(scope="class", autouse=True)
        def service(heta_unit):
            if heta_unit.unit_id == "wet":
                raise ConnectionError("no service")
        """
    )
    result = world.run("--heta-mode=overlap", *workers)
    result.assert_outcomes(passed=2, errors=1)
    report = world.report()
    assert report["metadata"]["complete"] is True
    assert [r["error"] and r["error"]["error_type"] for r in report["case_results"]] == [
        None,
        None,
        "build",
    ]
    assert "no service" in report["case_results"][2]["error"]["message"]
    assert report["mode_summaries"]["overlap"]["failure_rate"] == pytest.approx(1 / 3)


def test_failing_build_is_tried_once_and_errors_its_samples(world, monkeypatch):
    builds = world.path / "builds"
    builds.mkdir()
    monkeypatch.setenv("TOY_BUILDS", str(builds))
    world.dataset(TWO_UNITS)
    source = (world.path / "recipe.py").read_text(encoding="utf-8")
    world.recipe(
        source.replace(
            "        return KnowledgeBase({",
            "        assert 'sweet' not in name\n        return KnowledgeBase({",
        )
    )
    result = world.run()
    result.assert_outcomes(passed=2, errors=4)
    assert sorted(path.read_text() for path in builds.iterdir()) == ["x", "x"]
    report = world.report()
    assert [bool(r["error"]) for r in report["case_results"]] == [True] * 4 + [False] * 2
    assert [build["unit_id"] for build in report["unit_builds"]] == ["sweet", "wet"]


def test_user_fixtures_and_hooks_see_every_case(world, conftest, log):
    conftest(
        LOG
        + """
def pytest_runtest_setup(item):
    log("setup")

def pytest_runtest_call(item):
    log("call")

def pytest_runtest_teardown(item):
    log("teardown")
"""
    )
    world.run("--heta-mode=overlap").assert_outcomes(passed=3)
    assert log() == ["setup", "call", "teardown"] * 3
