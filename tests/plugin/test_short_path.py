"""The short path and pytest's own: the same suite on both gives the same results."""

import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from textwrap import dedent

import pytest

from pytest_heta.core import _loop
from pytest_heta.plugin import _phases

CASES = 24
"""Cases of each unit: some of them at its edges, most inside."""

ASYNC = """
import asyncio

class Asynchronous(KnowledgeBase):
    async def query(self, text, *, mode, top_k, options=None):
        await asyncio.sleep(0)
        return KnowledgeBase.query(self, text, mode=mode, top_k=top_k)

class Recipe(Recipe):
    def create(self, **arguments):
        return Asynchronous(super().create(**arguments).texts)

recipe = Recipe()
"""
"""The toy recipe, asked asynchronously: its class is ``Asynchronous``."""

BEFORE_QUERY = """
plain_query = KnowledgeBase.query

def query(self, text, *, mode, top_k, options=None):
    {statements}
    return plain_query(self, text, mode=mode, top_k=top_k)

KnowledgeBase.query = query
"""

TWO_UNITS = """
class Benchmark(JsonlBenchmark):
    async def run_units(self, prepared):
        ids = [case.case_id async for case in self.cases(prepared)]
        half = len(ids) // 2
        documents = ("apple", "bike", "cloud", "drum")
        for name, chosen in (("one", ids[:half]), ("two", ids[half:])):
            yield BenchmarkRunUnit(unit_id=name, document_ids=documents, case_ids=tuple(chosen))

JsonlBenchmark = Benchmark
"""

JUDGE = """
class Judge:
    name = "judge"
    async def evaluate(self, *, case, response):
        {statements}
        return len(case.query) / 100
"""
LENGTH = """
class Length:
    name = "length"
    def evaluate(self, *, case, response):
        {statements}
        return len(response.results) / 10
"""

WAYS = ("--heta-protocol=auto", "--heta-protocol=pytest")


class SetUps:
    """A plugin that counts the cases that were set up: on the short path few are."""

    def __init__(self):
        self.cases = 0

    def pytest_fixture_setup(self, fixturedef):
        self.cases += fixturedef.argname == "heta_case"


class Run:
    """What one run of a suite left."""

    def __init__(self, world, result, cases_set_up):
        self.world = world
        self.result = result
        self.cases_set_up = cases_set_up
        path = world.path / "junit.xml"
        self.junit = ET.parse(path).getroot() if path.exists() else None
        self.reports = world.reports() if (world.path / "report.json").exists() else None


@pytest.fixture
def toys(world, monkeypatch):
    """A world of more cases, each asked for a word that its document has."""
    # All latencies are alike.
    monkeypatch.setattr(_loop, "perf_counter", lambda: 0.0)
    words = [("apple pie", "apple"), ("bike repair", "bike"), ("rain cloud", "cloud")]
    world.dataset(
        {
            "case_id": f"c{n:02}",
            "query": f"{words[n % 3][0]} q{n}",
            "evidence": [words[n % 3][1]],
            "labels": {"kind": f"k{n % 2}"},
        }
        for n in range(CASES)
    )
    return world


@pytest.fixture
def run_both(toys):
    """Return a function that runs a suite on both ways: the short path, and pytest's own."""

    def run(*args, junit=True, before=lambda: None):
        runs = []
        for way in WAYS:
            for name in ("report.json", "junit.xml"):
                (toys.path / name).unlink(missing_ok=True)
            before()
            set_ups = SetUps()
            given = [*toys.quiet, "--heta-recipe=recipe.py:recipe", way, *args]
            if junit:
                given.append("--junitxml=junit.xml")
            result = toys.pytester.runpytest_inprocess(
                *given, plugins=[set_ups], no_reraise_ctrlc=True
            )
            runs.append(Run(toys, result, set_ups.cases))
        return runs

    return run


@pytest.fixture
def both(run_both, comparable):
    """Return a function that runs a suite on both ways, and asserts that nothing differs."""

    def run(*args, **arguments):
        short, ordinary = run_both(*args, **arguments)
        assert short.result.ret == ordinary.result.ret
        assert shown(short.result) == shown(ordinary.result)
        assert comparable(short.reports) == comparable(ordinary.reports)
        assert xml(short.junit) == xml(ordinary.junit)
        return short, ordinary

    return run


def shown(result):
    """Return what the terminal showed, without times and what depends on them."""
    return re.sub(r"[=-]{3,}", "---", without_times("\n".join(result.outlines)))


def xml(root):
    """Return a JUnit file without times and the machine's name."""
    if root is None:
        return None
    for parent in [*root.iter("testsuite")]:
        # pytest leaves one without a name where it was interrupted in a test.
        for nameless in [case for case in parent.iter("testcase") if not case.get("name")]:
            parent.remove(nameless)
    for element in root.iter():
        for name in ("time", "timestamp", "hostname"):
            element.attrib.pop(name, None)
        if element.get("name", "").endswith(("seconds", "_ms")):
            del element.attrib["value"]
    return without_times(ET.tostring(root, encoding="unicode"))


def without_times(text):
    """Return a text without times and addresses of objects."""
    text = re.sub(r"\b\d+(\.\d+)? ?(ms|s|µs)\b", "TIME", text)
    text = re.sub(r"\d{8}-\d{6}-[0-9a-f]{4}", "RUN", text)
    text = re.sub(r"--heta-resume=\S+", "--heta-resume=RUN", text)
    return re.sub(r"0x[0-9a-f]+", "ADDRESS", text)


def took_short_path(short, ordinary, *, units=1):
    """Assert that of the cases only the first of each unit was set up."""
    assert ordinary.cases_set_up > units
    assert short.cases_set_up == units


def query_does(world, statements, *, asynchronous=True):
    """Let queries do something first; ``n`` is the number of the case."""
    body = "n = int(text.rpartition('q')[2])\n    " + "\n    ".join(
        dedent(statements).strip().splitlines()
    )
    world.extend_recipe(BEFORE_QUERY.format(statements=body))
    if asynchronous:
        world.extend_recipe(ASYNC)


KINDS = {"async": True, "sync": False}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def asynchronous(request):
    return request.param


# --- suites --------------------------------------------------------------------


class TestSuites:
    def test_passing_cases(self, toys, both, asynchronous):
        if asynchronous:
            toys.extend_recipe(ASYNC)
        short, ordinary = both()
        short.result.assert_outcomes(passed=2 * CASES)
        took_short_path(short, ordinary)

    def test_evaluators_that_are_coroutines(self, toys, both, asynchronous):
        if asynchronous:
            toys.extend_recipe(ASYNC)
        toys.suite(before=JUDGE.format(statements="pass"), evaluators='["recall@1", Judge()]')
        took_short_path(*both())

    def test_evaluators_that_are_functions(self, toys, both, asynchronous):
        if asynchronous:
            toys.extend_recipe(ASYNC)
        toys.suite(
            before=JUDGE.format(statements="pass") + LENGTH.format(statements="pass"),
            evaluators='[Length(), "recall@1", Judge()]',
        )
        took_short_path(*both())

    def test_failing_queries(self, toys, both, asynchronous):
        query_does(toys, "if n in (0, 3, 7, 23): 1 / 0", asynchronous=asynchronous)
        short, ordinary = both("-rA")
        short.result.assert_outcomes(passed=2 * (CASES - 4), failed=8)
        took_short_path(short, ordinary)

    def test_invalid_responses(self, toys, both, asynchronous):
        query_does(toys, "if n == 5: return None", asynchronous=asynchronous)
        short, ordinary = both("-rf")
        short.result.assert_outcomes(passed=2 * (CASES - 1), failed=2)
        took_short_path(short, ordinary)

    @pytest.mark.parametrize("evaluator", [JUDGE, LENGTH], ids=["judge", "length"])
    def test_failing_evaluators(self, toys, both, asynchronous, evaluator):
        if asynchronous:
            toys.extend_recipe(ASYNC)
        failing = evaluator.format(statements="assert case.case_id != 'c04', 'no verdict'")
        name = "Judge" if evaluator is JUDGE else "Length"
        toys.suite(before=failing, evaluators=f'["recall@1", {name}()]')
        short, ordinary = both("-rf")
        short.result.assert_outcomes(passed=2 * (CASES - 1), failed=2)
        took_short_path(short, ordinary)

    def test_misses(self, toys, both, asynchronous):
        if asynchronous:
            toys.extend_recipe(ASYNC)
        toys.suite(evaluators='["recall@1>=0.8"]')
        short, ordinary = both("--heta-fail-on=miss", "-rf")
        short.result.assert_outcomes(passed=CASES, failed=CASES)
        took_short_path(short, ordinary)

    def test_errors_that_only_gates_see(self, toys, both, asynchronous):
        query_does(toys, "if n in (3, 7): 1 / 0", asynchronous=asynchronous)
        short, ordinary = both("--heta-fail-on=gate", "--heta-gate=*.failure_rate <= 0.1", "-rx")
        short.result.assert_outcomes(passed=2 * (CASES - 2) + 2, xfailed=4)
        took_short_path(short, ordinary)

    def test_a_failing_build(self, toys, both):
        toys.extend_recipe("""
        class Recipe(Recipe):
            def create(self, **arguments):
                raise OSError("no space left")

        recipe = Recipe()
        """)
        short, _ = both("-rE")
        short.result.assert_outcomes(errors=2 * CASES)

    def test_units_and_modes(self, toys, both, asynchronous):
        query_does(toys, "if n in (0, 11, 12, 23): 1 / 0", asynchronous=asynchronous)
        toys.suite(before="from pytest_heta import BenchmarkRunUnit\n" + TWO_UNITS)
        short, ordinary = both()
        short.result.assert_outcomes(passed=2 * (CASES - 4), failed=8)
        took_short_path(short, ordinary, units=2)

    def test_several_files_and_ordinary_tests_between(self, toys, both):
        toys.extend_recipe(ASYNC)
        toys.suite(extra="def bench_ordinary(): pass\ndef test_ordinary(): pass\n")
        both("-rA")

    @pytest.mark.parametrize("concurrency", [1, 3])
    @pytest.mark.parametrize("warmup", [0, 2])
    def test_concurrency_and_warm_up(self, toys, both, asynchronous, concurrency, warmup):
        if asynchronous:
            toys.extend_recipe(ASYNC)
        took_short_path(*both(f"--heta-concurrency={concurrency}", f"--heta-warmup={warmup}"))

    @pytest.mark.parametrize("level", ["ids", "full"])
    def test_responses(self, toys, both, level):
        toys.extend_recipe(ASYNC)
        took_short_path(*both(f"--heta-responses={level}"))


# --- what is selected, what is shown ---------------------------------------------


FAILING = "if n in (3, 4, 9) and mode == 'overlap': 1 / 0"


class TestOptionsOfPytest:
    @pytest.mark.parametrize(
        "args",
        [
            ["-rA"],
            ["-v", "-rA"],
            ["-vv"],
            ["-q"],
            ["-qq", "-rf"],
            ["-s"],
            ["-x"],
            ["--maxfail=2"],
            ["--tb=short"],
            ["--tb=line"],
            ["--tb=no"],
            ["--tb=native"],
            ["--show-capture=no"],
            ["--capture=sys"],
            ["--no-summary"],
            ["--no-header", "-rfp"],
            ["-k", "c03 or c05 or c06 or c07"],
            ["--deselect", "bench_toys.py::toys::corpus::overlap[c05]"],
            ["--heta-show=misses"],
            ["--heta-show=c05"],
            ["-ojunit_logging=all"],
            ["-ojunit_family=legacy"],
            ["-oconsole_output_style=count"],
            ["-oconsole_output_style=classic"],
            ["-oconsole_output_style=times"],
            ["-pno:terminal"],
            ["-pno:logging"],
            ["-pno:capture"],
            ["-pno:faulthandler"],
            ["-pno:warnings"],
            ["-pno:skipping"],
            ["-pno:junitxml"],
            ["-pno:stepwise"],
            ["-pno:unraisableexception", "-pno:threadexception"],
            ["-pno:benchmark"],
            ["-ofaulthandler_timeout=60"],
            ["--continue-on-collection-errors"],
        ],
        ids=" ".join,
    )
    def test_it_works_on_both(self, both, toys, asynchronous, args):
        query_does(toys, FAILING, asynchronous=asynchronous)
        both(*args, junit="-pno:junitxml" not in args)

    def test_durations(self, run_both, toys, asynchronous):
        query_does(toys, FAILING, asynchronous=asynchronous)
        for run in run_both("--durations=0", "-vv"):
            run.result.assert_outcomes(passed=2 * CASES - 3, failed=3)
            calls = [line for line in run.result.outlines if re.search(r"s call +bench", line)]
            assert len(calls) == 2 * CASES

    @pytest.mark.parametrize(
        "args", [["--lf"], ["--ff"], ["--nf"], ["--sw"], ["--sw", "--sw-skip"]], ids=" ".join
    )
    def test_a_second_run_knows_the_first(self, toys, asynchronous, args):
        query_does(toys, FAILING, asynchronous=asynchronous)
        seen = []
        for way in WAYS:
            shutil.rmtree(toys.path / ".pytest_cache", ignore_errors=True)
            first = toys.run(way, *args, cache=True)
            second = toys.run(way, "-v", *args, cache=True)
            seen.append([first.parseoutcomes(), second.ret, verbose_lines(second)])
        assert seen[0] == seen[1]


def verbose_lines(result):
    """Return what ``-v`` showed of each item."""
    return [line.rsplit("[", 1)[0].strip() for line in result.outlines if "::" in line]


# --- what others want to see -------------------------------------------------------


def conftest(world, source):
    (world.path / "conftest.py").write_text(
        "import pytest\n"
        "def note(*what):\n"
        "    with open('seen.txt', 'a') as file:\n"
        "        file.write(' '.join(map(str, what)) + '\\n')\n" + dedent(source),
        encoding="utf-8",
    )


@pytest.fixture
def seen(toys, both):
    """Return a function that runs both ways, and returns what the conftest file noted."""
    path = toys.path / "seen.txt"
    notes = []

    def begin():
        if path.exists():
            notes.append(path.read_text(encoding="utf-8"))
            path.unlink()

    def run(*args, **arguments):
        runs = both(*args, before=begin, **arguments)
        begin()
        first, second = notes
        assert first.splitlines() == second.splitlines()
        return first.splitlines(), runs

    return run


HOOKS = {
    "setup": "def pytest_runtest_setup(item): note(item.name)",
    "call": "def pytest_runtest_call(item): note(item.name)",
    "teardown": "def pytest_runtest_teardown(item): note(item.name)",
    "wrapped call": """
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_call(item):
            note(item.name)
            return (yield)
        """,
    "makereport": """
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            if call.when == "call":
                note(item.name, report.outcome)
            return report
        """,
    "logreport": """
        def pytest_runtest_logreport(report):
            if report.when == "call":
                note(report.nodeid, report.outcome)
        """,
    "logstart": "def pytest_runtest_logstart(nodeid, location): note(nodeid, *location)",
    "logfinish": "def pytest_runtest_logfinish(nodeid, location): note(nodeid, *location)",
    "pyfunc_call": "def pytest_pyfunc_call(pyfuncitem): note(pyfuncitem.name)",
    "protocol": "def pytest_runtest_protocol(item, nextitem): note(item.name, nextitem)",
    "wrapped protocol": """
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(item, nextitem):
            note(item.name)
            return (yield)
        """,
    "fixture": """
        @pytest.fixture(autouse=True)
        def noted(request):
            note(request.node.name)
            yield
        """,
    "status": """
        def pytest_report_teststatus(report, config):
            if report.when == "call":
                note(report.nodeid)
                if report.passed:
                    return "fine", "F", "FINE"
        """,
}


class TestHooks:
    @pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS)
    def test_everybody_sees_every_item(self, toys, seen, asynchronous, hook):
        query_does(toys, FAILING, asynchronous=asynchronous)
        conftest(toys, hook)
        notes, (short, _) = seen("-v")
        assert len(set(notes)) == 2 * CASES
        # Of a failure the status is asked for twice.
        assert len(notes) == 2 * CASES + (3 if "teststatus" in hook else 0)
        assert sum(short.result.parseoutcomes().values()) == 2 * CASES

    def test_reports_are_whole_where_somebody_reads_them(self, toys, seen, asynchronous):
        query_does(toys, FAILING + "\nprint('asked', text)", asynchronous=asynchronous)
        conftest(
            toys,
            """
            def pytest_runtest_logreport(report):
                note(report.when, report.nodeid, report.outcome, report.location)
                note(sorted(report.keywords))
                note(report.user_properties)
                note([(name, text) for name, text in report.sections])
            """,
        )
        notes, (short, ordinary) = seen()
        assert len(notes) == 2 * CASES * 3 * 4
        took_short_path(short, ordinary)

    def test_a_hook_of_one_folder_alone(self, toys, seen):
        toys.extend_recipe(ASYNC)
        folder = toys.path / "inner"
        folder.mkdir()
        (folder / "conftest.py").write_text(
            (
                "def pytest_runtest_call(item):\n"
                "    open('seen.txt', 'a').write(item.name + '\\n')\n"
            ),
            encoding="utf-8",
        )
        toys.dataset(name="inner/toys")
        toys.suite(name="inner/bench_inner.py")
        text = (folder / "bench_inner.py").read_text(encoding="utf-8")
        (folder / "bench_inner.py").write_text(
            text.replace('name="toys"', 'name="inner"'), encoding="utf-8"
        )
        notes, (short, _) = seen()
        assert len(notes) == 6
        # Those six, and the first of the other.
        assert short.cases_set_up == 6 + 1

    @pytest.mark.parametrize("scope", ["class", "module", "session"])
    def test_fixtures_of_wider_scopes_stop_nobody(self, toys, seen, scope):
        toys.extend_recipe(ASYNC)
        conftest(
            toys,
            f"""
            @pytest.fixture(scope={scope!r}, autouse=True)
            def wide():
                note("set up")
                yield
                note("torn down")
            """,
        )
        notes, runs = seen()
        assert notes == ["set up", "torn down"]
        took_short_path(*runs)

    def test_a_knowledge_base_of_ones_own(self, toys, seen, asynchronous):
        if asynchronous:
            toys.extend_recipe(ASYNC)
        conftest(
            toys,
            """
            @pytest.fixture(scope="class")
            def heta_kb(heta_unit, heta_recipe):
                note("opened")
                yield heta_unit.build(heta_recipe)
                note("closed")
            """,
        )
        notes, runs = seen()
        assert notes == ["opened", "closed"]
        took_short_path(*runs)

    def test_a_knowledge_base_for_each_case(self, toys, seen, asynchronous):
        if asynchronous:
            toys.extend_recipe(ASYNC)
        conftest(
            toys,
            """
            @pytest.fixture
            def heta_kb(heta_unit, heta_recipe):
                note("opened")
                return heta_unit.build(heta_recipe)
            """,
        )
        notes, _ = seen()
        assert notes == ["opened"] * 2 * CASES


class TestMarkers:
    @staticmethod
    def mark(world, marker, which):
        conftest(
            world,
            f"""
            def pytest_collection_modifyitems(items):
                for item in items:
                    case = item.callspec.params["heta_case"].case
                    if {which}:
                        item.add_marker({marker})
            """,
        )

    @pytest.mark.parametrize("concurrency", [1, 2])
    def test_more_skipped_cases_than_the_window_holds(self, toys, both, asynchronous, concurrency):
        # The window of one query at the same time holds 16.
        count = 100
        toys.dataset(
            {"case_id": f"c{n:02}", "query": f"apple pie q{n}", "evidence": ["apple"]}
            for n in range(count)
        )
        if asynchronous:
            toys.extend_recipe(ASYNC)
        self.mark(toys, "pytest.mark.skip(reason='not today')", "'c01' <= case < 'c90'")
        short, _ = both("-rs", f"--heta-concurrency={concurrency}")
        short.result.assert_outcomes(passed=22, skipped=178)

    def test_all_but_the_first_are_skipped(self, toys, both, asynchronous):
        if asynchronous:
            toys.extend_recipe(ASYNC)
        self.mark(toys, "pytest.mark.skipif(True, reason='not today')", "case != 'c00'")
        both("--heta-concurrency=1")[0].result.assert_outcomes(passed=2, skipped=2 * CASES - 2)

    def test_xfail(self, toys, both, asynchronous):
        query_does(toys, FAILING, asynchronous=asynchronous)
        self.mark(toys, "pytest.mark.xfail(reason='slow')", "case in ('c03', 'c06')")
        both("-rxX")[0].result.assert_outcomes(passed=2 * CASES - 6, failed=2, xfailed=1, xpassed=3)

    def test_usefixtures(self, toys, both, asynchronous):
        if asynchronous:
            toys.extend_recipe(ASYNC)
        self.mark(toys, "pytest.mark.usefixtures('tmp_path')", "case in ('c03', 'c06')")
        both()

    def test_marks_of_the_file(self, toys, both, asynchronous):
        if asynchronous:
            toys.extend_recipe(ASYNC)
        toys.suite(extra="import pytest\npytestmark = pytest.mark.skip(reason='not today')\n")
        both("-rs")[0].result.assert_outcomes(skipped=2 * CASES)


# --- what cases do beside answering ------------------------------------------------

ENDS = {
    "exit": "import pytest; pytest.exit('enough', returncode=7)",
    "interrupt": "raise KeyboardInterrupt",
    "system exit": "raise SystemExit(3)",
    "skip": "import pytest; pytest.skip('not this one')",
    "fail": "import pytest; pytest.fail('by hand')",
    "xfail": "import pytest; pytest.xfail('known')",
    "cancelled": "import asyncio; raise asyncio.CancelledError",
}


class TestUnusualEnds:
    @pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
    def test_of_a_query(self, toys, both, asynchronous, end):
        query_does(toys, f"if n == 5 and mode == 'overlap': {end}", asynchronous=asynchronous)
        both("-rA", "--tb=line")

    @pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
    @pytest.mark.parametrize("evaluator", [JUDGE, LENGTH], ids=["judge", "length"])
    def test_of_an_evaluator(self, toys, both, asynchronous, end, evaluator):
        if asynchronous:
            toys.extend_recipe(ASYNC)
        body = f"if case.case_id == 'c05': {end}"
        name = "Judge" if evaluator is JUDGE else "Length"
        toys.suite(before=evaluator.format(statements=body), evaluators=f"[{name}()]")
        both("-rA", "--tb=line")

    @pytest.mark.parametrize("option", ["-x", "--maxfail=2"])
    def test_stopping_cancels_what_waits(self, toys, run_both, option):
        toys.extend_recipe("""
        import asyncio

        class Endless(KnowledgeBase):
            async def query(self, text, *, mode, top_k, options=None):
                number = int(text.rpartition("q")[2])
                if number in (3, 4):
                    raise KeyError(number)
                if number > 4:
                    with open("cancelled.txt", "a") as file:
                        try:
                            await asyncio.Event().wait()
                        finally:
                            file.write(f"{number} ")
                return KnowledgeBase.query(self, text, mode=mode, top_k=top_k)

            async def aclose(self):
                with open("cancelled.txt", "a") as file:
                    file.write("closed")

        class Recipe(Recipe):
            def create(self, **arguments):
                return Endless(super().create(**arguments).texts)

        recipe = Recipe()
        """)
        for run in run_both(option, "--heta-concurrency=3"):
            failed = 1 if option == "-x" else 2
            run.result.assert_outcomes(passed=3, failed=failed)
            results = [result["case_id"] for result in run.reports[0]["case_results"]]
            assert results == [f"c{n:02}" for n in range(3 + failed)]
        # The last that was begun first, and all before the knowledge base is closed.
        text = (toys.path / "cancelled.txt").read_text(encoding="utf-8")
        assert text == "7 6 5 closed" * 2


class TestOutput:
    def test_of_a_query(self, toys, both, asynchronous):
        query_does(
            toys,
            """
            import sys
            print("out of", text, mode)
            print("err of", text, mode, file=sys.stderr)
            if n in (0, 5): 1 / 0
            """,
            asynchronous=asynchronous,
        )
        short, ordinary = both("-rA")
        took_short_path(short, ordinary)
        for name, text in self.sections(short.result, "overlap[c05]").items():
            assert (
                text
                == ["out of rain cloud q5 overlap", "err of rain cloud q5 overlap"][
                    name == "Captured stderr call"
                ]
            )
        assert len(self.sections(short.result, "overlap[c05]")) == 2

    @pytest.mark.parametrize("evaluator", [JUDGE, LENGTH], ids=["judge", "length"])
    def test_of_an_evaluator(self, toys, both, asynchronous, evaluator):
        if asynchronous:
            toys.extend_recipe(ASYNC)
        body = "print('judging', case.case_id)\n        assert case.case_id != 'c05'"
        name = "Judge" if evaluator is JUDGE else "Length"
        toys.suite(before=evaluator.format(statements=body), evaluators=f"[{name}()]")
        short, ordinary = both("-rA")
        took_short_path(short, ordinary)
        assert self.sections(short.result, "overlap[c05]") == {
            "Captured stdout call": "judging c05"
        }

    def test_it_is_in_the_junit_file_where_that_is_asked_for(self, toys, both, asynchronous):
        query_does(toys, "print('asked', n)\nif n == 5: 1 / 0", asynchronous=asynchronous)
        short, _ = both("-ojunit_logging=system-out")
        texts = [element.text for element in short.junit.iter("system-out")]
        assert len(texts) == 2 * CASES
        assert all(text.count("asked") == 1 for text in texts)

    def test_logs_of_ordinary_functions(self, toys, both):
        query_does(
            toys,
            """
            import logging
            logging.getLogger("mine").warning("looking for %s", text)
            if n == 5: 1 / 0
            """,
            asynchronous=False,
        )
        short, ordinary = both("-rA")
        took_short_path(short, ordinary)
        (text,) = self.sections(short.result, "overlap[c05]").values()
        assert text.endswith("looking for rain cloud q5")

    def test_warnings_that_are_errors(self, toys, both, asynchronous):
        query_does(
            toys,
            "if n == 5:\n    import warnings; warnings.warn('deprecated')",
            asynchronous=asynchronous,
        )
        short, _ = both("-rf")
        short.result.assert_outcomes(passed=2 * CASES - 2, failed=2)

    def test_warnings(self, toys, run_both, asynchronous):
        query_does(
            toys,
            "if n == 5:\n    import warnings; warnings.warn('deprecated')",
            asynchronous=asynchronous,
        )
        for run in run_both("-Walways"):
            run.result.assert_outcomes(passed=2 * CASES, warnings=2)
            assert "UserWarning: deprecated" in run.result.stdout.str()

    @staticmethod
    def sections(result, name):
        """Return the captured sections that stand below the title of an item."""
        lines = iter(result.outlines)
        title = re.compile(rf"_+ .*{re.escape(name)} _+")
        for line in lines:
            if title.fullmatch(line):
                break
        found, current = {}, None
        for line in lines:
            if re.fullmatch(r"_+ .* _+|=+ .* =+", line):
                break
            header = re.fullmatch(r"-+ (Captured .*) -+", line)
            if header:
                current = found.setdefault(header[1], [])
            elif current is not None:
                current.append(line)
        return {header: "\n".join(lines) for header, lines in found.items()}


# --- where pytest is not what it was ------------------------------------------------


class TestFallback:
    def test_without_the_parts_of_pytest_that_it_needs_there_is_no_short_path(
        self, toys, both, asynchronous, monkeypatch
    ):
        query_does(toys, FAILING, asynchronous=asynchronous)
        monkeypatch.setattr(_phases, "runs_phases_alone", lambda config: False)
        short, ordinary = both("-rA")
        assert short.cases_set_up == ordinary.cases_set_up == 2 * CASES

    @pytest.mark.parametrize(
        "name",
        ["caplog_handler_key", "caplog_records_key", "call_and_report"],
    )
    def test_it_looks_for_each_of_them(self, toys, monkeypatch, name):
        module = "_pytest.runner" if name == "call_and_report" else "_pytest.logging"
        config = toys.pytester.parseconfig()
        assert _phases.runs_phases_alone(config)
        with monkeypatch.context() as patched:  # pytest needs it for this test, too
            patched.delattr(f"{module}.{name}")
            runs = _phases.runs_phases_alone(config)
        assert not runs

    def test_it_looks_for_what_captures_output(self, toys, monkeypatch):
        config = toys.pytester.parseconfig()
        manager = config.pluginmanager.getplugin("capturemanager")
        monkeypatch.setattr(manager, "item_capture", None, raising=False)
        assert not _phases.runs_phases_alone(config)

    def test_dots_one_by_one(self, toys, both, asynchronous, monkeypatch):
        query_does(toys, FAILING, asynchronous=asynchronous)
        together = both("-rA")
        monkeypatch.setattr(_phases.PassedDots, "find", lambda config, hooks: None)
        one_by_one = both("-rA")
        took_short_path(*one_by_one)
        assert shown(one_by_one[0].result) == shown(together[0].result)

    def test_a_terminal_of_another_make(self, toys, monkeypatch):
        config = toys.pytester.parseconfigure()
        terminal = config.pluginmanager.getplugin("terminalreporter")
        # As it is when the first test has been reported.
        terminal._session = pytest.Session.from_config(config)
        terminal._tests_ran = True
        assert _phases.PassedDots.find(config, config.hook) is not None
        with monkeypatch.context() as patched:
            patched.delattr(type(terminal), "_add_stats")
            found = _phases.PassedDots.find(config, config.hook)
        assert found is None
        monkeypatch.setattr(terminal, "_progress_nodeids_reported", {})
        assert _phases.PassedDots.find(config, config.hook) is None

    def test_workers_that_cannot_see_what_they_will_run(self, toys, comparable):
        toys.extend_recipe(ASYNC)
        toys.run("-n2", *WAYS[:1]).assert_outcomes(passed=2 * CASES)
        known = toys.report()
        conftest(
            toys,
            """
            from pytest_heta.plugin import _phases
            _phases.coming_indices = lambda config: None
            """,
        )
        # In workers alone: those of this run are processes of their own.
        coming = _phases.coming_indices
        try:
            toys.run("-n2", *WAYS[:1]).assert_outcomes(passed=2 * CASES)
        finally:
            _phases.coming_indices = coming
        assert comparable(toys.report()) == comparable(known)

    def test_a_queue_of_another_make(self):
        class WorkerInteractor:
            torun = None

        class Config:
            class pluginmanager:  # noqa: N801
                @staticmethod
                def get_plugins():
                    return [object(), WorkerInteractor()]

        assert _phases.coming_indices(Config) is None
        Config.pluginmanager.get_plugins = staticmethod(list)
        assert _phases.coming_indices(Config) is None


@pytest.mark.parametrize("way", WAYS)
def test_on_workers_it_is_the_same(toys, comparable, asynchronous, way):
    query_does(toys, FAILING, asynchronous=asynchronous)
    toys.run("--junitxml=one.xml", WAYS[1]).assert_outcomes(passed=2 * CASES - 3, failed=3)
    serial = toys.report()
    toys.run("--junitxml=two.xml", "-n2", way).assert_outcomes(passed=2 * CASES - 3, failed=3)
    assert comparable(toys.report()) == comparable(serial)
    one, two = (xml_cases(toys.path / name) for name in ("one.xml", "two.xml"))
    assert one == two


def xml_cases(path):
    """Return the test cases of a JUnit file, in an order of its own."""
    root = ET.parse(path).getroot()
    xml(root)
    return sorted(ET.tostring(case) for case in root.iter("testcase"))


@pytest.mark.parametrize("way", WAYS)
def test_knowledge_bases_go_when_their_unit_ends(toys, asynchronous, way):
    toys.extend_recipe("""
    import gc, weakref
    alive = weakref.WeakSet()
    """)
    if asynchronous:
        toys.extend_recipe(ASYNC)
    toys.extend_recipe("""
    class Recipe(Recipe):
        def create(self, **arguments):
            gc.collect()
            assert not alive, "the last one is still there"
            knowledge_base = super().create(**arguments)
            alive.add(knowledge_base)
            return knowledge_base

    recipe = Recipe()
    """)
    toys.suite(before="from pytest_heta import BenchmarkRunUnit\n" + TWO_UNITS)
    toys.run(way).assert_outcomes(passed=2 * CASES)


# --- interrupts ------------------------------------------------------------------------

WAITS_FOR_EVER = """
import asyncio

class Endless(KnowledgeBase):
    async def query(self, text, *, mode, top_k, options=None):
        number = int(text.rpartition("q")[2])
        if number >= 4:
            if number == 6:
                with open("asked.pipe", "w") as pipe:
                    pipe.write("asked")
            await asyncio.Event().wait()
        return KnowledgeBase.query(self, text, mode=mode, top_k=top_k)

class Recipe(Recipe):
    def create(self, **arguments):
        return Endless(super().create(**arguments).texts)

recipe = Recipe()
"""
WAITS_IN_THREADS = """
import threading

class Endless(KnowledgeBase):
    def query(self, text, *, mode, top_k, options=None):
        number = int(text.rpartition("q")[2])
        if number >= 4:
            if number == 6:
                with open("asked.pipe", "w") as pipe:
                    pipe.write("asked")
            threading.Event().wait()
        return KnowledgeBase.query(self, text, mode=mode, top_k=top_k)

class Recipe(Recipe):
    def create(self, **arguments):
        return Endless(super().create(**arguments).texts)

recipe = Recipe()
"""
ARRIVED = """
def pytest_heta_case_completed(result):
    if result.case_id == "c03":
        with open("arrived.pipe", "w") as pipe:
            pipe.write("c03")
"""
# A shell's background jobs ignore interrupts, and so would all that they start.
INTERRUPTIBLE = """
import signal, sys, pytest

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(pytest.main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name == "nt", reason="named pipes and SIGINT are POSIX")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
@pytest.mark.parametrize("waits", [WAITS_FOR_EVER, WAITS_IN_THREADS], ids=["async", "threads"])
def test_an_interrupt_ends_what_would_wait_for_ever(toys, way, workers, waits):
    toys.extend_recipe(waits)
    (toys.path / "conftest.py").write_text(ARRIVED, encoding="utf-8")
    pipes = [toys.path / "asked.pipe", toys.path / "arrived.pipe"]
    for pipe in pipes:
        os.mkfifo(pipe)
    arguments = ["--heta-recipe=recipe.py:recipe", "--heta-mode=overlap", "--heta-concurrency=3"]
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *toys.quiet, *arguments, way, *workers],
        cwd=toys.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        # Opening a pipe waits for the other end.
        assert [pipe.read_text(encoding="utf-8") for pipe in pipes] == ["asked", "c03"]
        # As a terminal does: to every process of the group.
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    (report,) = toys.reports()
    assert [result["case_id"] for result in report["case_results"]] == ["c00", "c01", "c02", "c03"]
    assert report["metadata"]["complete"] is False


PARAMETRIZED = """
import pytest

@pytest.fixture(scope="class", params=["one", "two"])
def heta_kb(heta_unit, request):
    built = heta_unit.build(heta_unit.recipe)

    class Named:
        available_queries = built.available_queries
        asked = []

        def query(self, text, *, mode, top_k):
            self.asked.append(text)
            print("asked", request.param)
            return built.query(text, mode=mode, top_k=top_k)

    knowledge_base = Named()
    yield knowledge_base
    print("closed", request.param, len(knowledge_base.asked))
"""


@pytest.mark.parametrize("protocol", ["auto", "pytest"])
def test_each_parameter_of_a_knowledge_base_has_its_own_cases(world, protocol):
    world.pytester.makeconftest(PARAMETRIZED)
    result = world.run("-s", "--heta-mode=overlap", f"--heta-protocol={protocol}")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["*closed one 3*", "*closed two 3*"])


LOGSTART = """
import pytest

ITEMS = {}

def pytest_collection_finish(session):
    ITEMS.update((item.nodeid, item) for item in session.items)

def pytest_runtest_logstart(nodeid):
    if "rain" in nodeid:
        ITEMS[nodeid].add_marker(pytest.mark.skip)
"""


@pytest.mark.parametrize("protocol", ["auto", "pytest"])
def test_a_marker_added_when_a_test_starts_counts(world, protocol):
    world.pytester.makeconftest(LOGSTART)
    result = world.run("--heta-mode=overlap", f"--heta-protocol={protocol}")
    result.assert_outcomes(passed=2, skipped=1)
