"""What goes wrong is told in one line: code, place, what, and what to do; never by a traceback."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

QUERY = """
class KnowledgeBase(KnowledgeBase):
    def query(self, text, *, mode, top_k):
        {}
"""

BUILD = """
class Recipe(Recipe):
    def create(self, *, name, objects, source_keys, workspace):
        raise OSError("no room")

recipe = Recipe()
"""

JUDGE = """
class Judge:
    name = "judge"

    async def evaluate(self, *, case, response):
        {}
"""

ADAPTER = """
class JsonlBenchmark(JsonlBenchmark):
    async def cases(self, prepared):
        raise RuntimeError("no rows")
        yield
"""

PROPERTY = """
class Recipe(Recipe):
    @property
    def max_concurrency(self):
        raise OSError("no limit")

recipe = Recipe()
"""

FIXTURE = """
import pytest

@pytest.fixture(scope="class")
def heta_kb():
    raise ConnectionError("staging is down")
"""

HOOK = """
def pytest_heta_case_completed(config, result):
    raise RuntimeError("no dashboard")
"""


def break_recipe(world):
    world.recipe("import math\n1 / 0\n", "broken.py")


def misspell_recipe_syntax(world):
    world.recipe("import math\nrecipe = (\n", "broken.py")


def let_recipe_miss_a_module(world):
    world.recipe("def load():\n    import no_such_package\n\nload()\n", "broken.py")


def let_recipe_leave(world):
    world.recipe("\nraise SystemExit('set MY_KEY')\n", "broken.py")


def misspell_measure(world):
    world.suite(evaluators='["recal@1"]')


def make_a_file_of(name):
    return lambda world: (world.path / name).write_text("", encoding="utf-8")


def nothing(world):
    """Everything is well."""


class Wrong(NamedTuple):
    """Something that goes wrong.

    Attributes:
        prepare: Makes it go wrong, in a world.
        arguments: Arguments of the run.
        line: What the line looks like.
        source: What its traceback shows of the users' code.
    """

    prepare: object
    arguments: tuple[str, ...]
    line: str
    source: str = "Traceback (most recent call last):"
    recipe: str | None = "recipe.py:recipe"


REFUSED = {
    "recipe raises": Wrong(
        break_recipe,
        (),
        "?recipe-invalid? --heta-recipe, broken.py:2: recipe 'broken.py:recipe' cannot be imported:"
        " ZeroDivisionError: division by zero; correct the line that is named",
        "1 / 0",
        "broken.py:recipe",
    ),
    "recipe cannot be parsed": Wrong(
        misspell_recipe_syntax,
        (),
        "?recipe-invalid? --heta-recipe, broken.py:2: recipe *: SyntaxError: *; correct the line*",
        "recipe = (",
        "broken.py:recipe",
    ),
    "recipe imports what is not there": Wrong(
        let_recipe_miss_a_module,
        (),
        "?recipe-invalid? --heta-recipe, broken.py:2: recipe *: No module named *; correct*",
        "import no_such_package",
        "broken.py:recipe",
    ),
    "recipe leaves": Wrong(
        let_recipe_leave,
        (),
        "?recipe-invalid? --heta-recipe, broken.py:2: recipe *: SystemExit: set MY_KEY*",
        "raise SystemExit",
        "broken.py:recipe",
    ),
    "attribute of a recipe raises": Wrong(
        lambda world: world.extend_recipe(PROPERTY),
        (),
        "?recipe-invalid? --heta-recipe, recipe.py:*: recipe *: OSError: no limit*",
        'raise OSError("no limit")',
    ),
    "no such recipe": Wrong(
        nothing,
        (),
        "?recipe-not-found? --heta-recipe: there is no recipe 'lokal'; did you mean 'local'?*",
        recipe="lokal",
    ),
    "no such mode": Wrong(
        nothing,
        ("--heta-mode=overlapp",),
        "?mode-unknown? --heta-mode: recipe 'toy' has no mode 'overlapp'; did you mean 'overlap'?*",
    ),
    "no gate": Wrong(
        nothing,
        ("--heta-gate=overlap.recall@1",),
        "?gate-invalid? --heta-gate: gate 'overlap.recall@1': there is no operator; the*",
    ),
    "gate on nothing": Wrong(
        nothing,
        ("--heta-gate=overlap.recal@1 >= 0.5",),
        "?gate-invalid? *recal@1*; did you mean *",
    ),
    "no number": Wrong(
        nothing,
        ("--heta-top-k=ten",),
        "?option-invalid? --heta-top-k: 'ten' is not a whole number of at least 1",
    ),
    "no choice": Wrong(
        nothing,
        ("--heta-split=always",),
        "?option-invalid? --heta-split: 'always' is not one of auto, never",
    ),
    "no case": Wrong(
        nothing,
        ("--heta-show=rian",),
        "?option-invalid? --heta-show: no case 'rian' is planned; did you mean 'rain'? Give*",
    ),
    "report in a file": Wrong(
        nothing,
        ("--heta-report=json:recipe.py/report.json",),
        "?report-invalid? --heta-report, *recipe.py/report.json: *; *",
    ),
    "no baseline": Wrong(
        nothing,
        ("--heta-baseline=before.json",),
        "?report-invalid? --heta-baseline, before.json: there is no such report file*",
    ),
    "no run": Wrong(
        nothing,
        ("--heta-resume=other",),
        "?run-not-found? --heta-resume: there is no run 'other'; known runs: none",
    ),
    "cache in a file": Wrong(
        make_a_file_of("kept"),
        ("--heta-cache-dir=kept",),
        "?option-invalid? --heta-cache-dir: 'kept' is not a folder",
    ),
    "no measure": Wrong(
        misspell_measure,
        (),
        "?measure-unknown? bench_toys.py::toys: *'recal@1'*; did you mean 'recall@1'*",
    ),
}


def break_a_line(world):
    path = world.path / "toys" / "cases.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], lines[1] + ",", lines[2]]), encoding="utf-8")


def repeat_an_id(world):
    world.dataset([{"case_id": "pie", "query": "a"}, {"case_id": "pie", "query": "b"}])


def remove_the_dataset(world):
    (world.path / "toys" / "cases.jsonl").unlink()


UNCOLLECTED = {
    "broken line": Wrong(break_a_line, (), "?dataset-invalid? *cases.jsonl:2: *", "cases.jsonl:2"),
    "same id": Wrong(
        repeat_an_id, (), "?duplicate-id? *cases.jsonl:2: *'pie'*", "DuplicateIdError"
    ),
    "no file": Wrong(
        remove_the_dataset,
        (),
        "?dataset-not-found? *toys: file 'cases.jsonl' is missing; expected: *",
        "DatasetNotFoundError",
    ),
    "adapter raises": Wrong(
        lambda world: world.suite(before=ADAPTER),
        (),
        "?benchmark-invalid? bench_toys.py:*: the adapter fails: RuntimeError: no rows; --heta-*",
        'raise RuntimeError("no rows")',
    ),
    "suite raises": Wrong(
        lambda world: world.suite(before="1 / 0"),
        (),
        "?suite-invalid? bench_toys.py:4: the suite cannot be imported: ZeroDivisionError:"
        " division by zero; --heta-debug shows the traceback",
        "1 / 0",
    ),
    "suite cannot be parsed": Wrong(
        lambda world: world.suite(before="x = ("),
        (),
        "?suite-invalid? bench_toys.py:4: the suite cannot be imported: SyntaxError: *; --heta-*",
        "x = (",
    ),
    "suite imports what is not there": Wrong(
        lambda world: world.suite(before="import no_such_package"),
        (),
        "?suite-invalid? bench_toys.py:4: *: No module named 'no_such_package'; --heta-debug*",
        "import no_such_package",
    ),
}


def query(statement):
    return lambda world: world.extend_recipe(QUERY.format(statement))


def judge(statement):
    return lambda world: world.suite(
        before=JUDGE.format(statement), evaluators='["recall@1", Judge()]'
    )


def conftest(text):
    return lambda world: world.pytester.makeconftest(text)


def lose_a_gold_document(world):
    world.dataset([{"case_id": "lost", "query": "ghost", "evidence": ["ghost9"]}])


FAILED = {
    "build raises": Wrong(
        lambda world: world.extend_recipe(BUILD),
        (),
        "?build-failed? recipe.py:*: run unit corpus: OSError: no room; --heta-debug shows the*",
        'raise OSError("no room")',
    ),
    "fixture raises": Wrong(
        conftest(FIXTURE),
        (),
        "?build-failed? conftest.py:5: ConnectionError: staging is down; --heta-debug shows the*",
        'raise ConnectionError("staging is down")',
    ),
    "query raises": Wrong(
        query('raise RuntimeError("no bikes")'),
        (),
        "?query-failed? recipe.py:*: RuntimeError: no bikes; --heta-debug shows the traceback",
        'raise RuntimeError("no bikes")',
    ),
    "query raises in a library": Wrong(
        query('return json.loads("{")'),
        (),
        "?query-failed? recipe.py:*: JSONDecodeError: *; --heta-debug shows the traceback",
        'return json.loads("{")',
    ),
    "query returns nothing": Wrong(
        query("return None"),
        (),
        "?response-invalid? case pie: the knowledge base returned None with neither results nor"
        " answer; return a QueryResponse, or a mapping or an object of its shape",
    ),
    "evaluator raises": Wrong(
        judge('raise ValueError("cannot tell")'),
        (),
        "?evaluator-failed? score judge, bench_toys.py:*: ValueError: cannot tell; --heta-debug*",
        'raise ValueError("cannot tell")',
    ),
    "evaluator returns a list": Wrong(
        judge("return [1]"),
        (),
        "?score-wrong-type? score judge: a score is a number, a bool or a label, not a list",
        "",
    ),
    "evaluator divides by zero": Wrong(
        judge('return float("nan")'), (), "?score-non-finite? score judge: the score is nan", ""
    ),
    "dataset is odd": Wrong(
        lose_a_gold_document,
        ("--heta-strict",),
        "?benchmark-invalid? benchmark toys: ?dangling-gold? 1 gold document is not in the corpus:"
        " ghost9; correct the dataset, or run without strict",
        "BenchmarkError",
    ),
}


def everything(result):
    """Return all that a run printed."""
    return [*result.outlines, *result.errlines]


def assert_no_traceback(result):
    text = "\n".join(everything(result))
    assert "Traceback" not in text
    assert '  File "' not in text
    assert not re.search(r"^E   +[^ \[]", text, re.MULTILINE)  # nor an assertion's


def parametrized(table):
    return pytest.mark.parametrize("wrong", table.values(), ids=table)


either_way = pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])


@parametrized(REFUSED)
def test_what_is_refused_is_one_line(world, count_builds, wrong):
    wrong.prepare(world)
    result = world.run(*wrong.arguments, recipe=wrong.recipe)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line]
    pytest.LineMatcher([line]).fnmatch_lines([f"ERROR: {wrong.line}"])
    assert_no_traceback(result)
    assert count_builds() == 0


@parametrized(REFUSED)
def test_its_traceback_is_shown_when_debugging(world, wrong):
    wrong.prepare(world)
    result = world.run(*wrong.arguments, "--heta-debug", recipe=wrong.recipe)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {wrong.line}"])
    assert "Traceback (most recent call last):" in result.errlines
    assert wrong.source in result.stderr.str()


@either_way
@parametrized(UNCOLLECTED)
def test_what_cannot_be_collected_is_one_line(world, count_builds, wrong, workers):
    wrong.prepare(world)
    result = world.run(*workers)
    assert result.ret in {pytest.ExitCode.INTERRUPTED, pytest.ExitCode.TESTS_FAILED}
    result.stdout.fnmatch_lines([wrong.line])
    assert_no_traceback(result)
    assert count_builds() == 0


@parametrized(UNCOLLECTED)
def test_the_traceback_of_what_cannot_be_collected_is_shown_when_debugging(world, wrong):
    wrong.prepare(world)
    result = world.run("--heta-debug")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert wrong.source in result.stdout.str()
    assert any("File" in line or ": in " in line for line in result.outlines)


@either_way
@parametrized(FAILED)
def test_what_fails_a_sample_is_one_line(world, wrong, workers):
    wrong.prepare(world)
    result = world.run("--heta-mode=overlap", *wrong.arguments, *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([wrong.line])
    assert_no_traceback(result)


@pytest.mark.parametrize("flags", [("-vv",), ("--heta-debug", "-n2")], ids=" ".join)
@parametrized({name: wrong for name, wrong in FAILED.items() if wrong.source})
def test_the_traceback_of_a_sample_is_shown_when_debugging(world, wrong, flags):
    wrong.prepare(world)
    result = world.run("--heta-mode=overlap", *flags, *wrong.arguments)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert wrong.source in result.stdout.str()


def test_a_hook_that_raises_is_one_line(world):
    world.pytester.makeconftest(HOOK)
    result = world.run()
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    line = "[internal-error] conftest.py:2: RuntimeError: no dashboard;"
    assert f"INTERNALERROR> {line} --heta-debug shows the traceback" in result.outlines
    assert_no_traceback(result)


def test_its_traceback_is_shown_when_debugging_too(world):
    world.pytester.makeconftest(HOOK)
    result = world.run("--heta-debug")
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    result.stdout.fnmatch_lines(['INTERNALERROR> *raise RuntimeError("no dashboard")'])


def test_a_worker_that_dies_is_one_line(world):
    world.extend_recipe(QUERY.format("os._exit(3)"))
    result = world.run("--heta-mode=overlap", "-n2", "--heta-limit=1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["?worker-crashed? case pie: worker 'gw?' crashed while running *"])
    assert_no_traceback(result)


def test_a_gate_that_fails_says_its_code(world):
    result = world.run("--heta-mode=overlap", "--heta-gate=overlap.recall@1 < 0.5")
    result.stdout.fnmatch_lines(["?gate-failed? toys: overlap.recall@1 = 1 >= 0.5 (n=3)"])


def test_a_gate_that_is_not_decided_says_its_code_if_it_has_to_be(world):
    result = world.run(
        "--heta-mode=overlap", "-kpie", "--heta-gate=overlap.recall@1 > 0", "--heta-require-gates"
    )
    result.stdout.fnmatch_lines(["?gate-undecided? toys: overlap.recall@1 > 0 *"])


def test_errors_that_no_gate_is_about_say_their_code(world):
    world.extend_recipe(QUERY.format("raise KeyError(text)"))
    result = world.run("--heta-mode=overlap", "--heta-fail-on=gate")
    result.stdout.fnmatch_lines(["?errors-uncovered? toys: overlap: 3 of 3 samples failed, and*"])


def test_a_report_that_cannot_be_written_at_the_end_is_one_line(world):
    world.extend_recipe(
        """
        class KnowledgeBase(KnowledgeBase):
            def query(self, text, *, mode, top_k):
                folder = pathlib.Path("out")
                if folder.is_dir():
                    folder.rmdir()
                folder.write_text("")
                return super().query(text, mode=mode, top_k=top_k)
        """
    )
    (world.path / "out").mkdir()
    result = world.run("--heta-report=json:out/report.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["?report-invalid? *report.json: cannot write the report: *; *"])
    assert_no_traceback(result)


def test_what_stops_a_run_holds_no_control_characters(world):
    line = world.usage_error("--heta-baseline=\x1b[31mgone.json")
    assert "\x1b" not in line
    assert r"--heta-baseline, \x1b[31mgone.json: " in line


@pytest.mark.parametrize("option", ["--heta-cache-dir", "--heta-runs-dir"])
@pytest.mark.parametrize("value", ["", " "])
def test_a_folder_without_a_name_is_refused(world, option, value):
    assert world.usage_error(f"{option}={value}") == f"{option}: {value!r} names no folder"
    assert not list(world.path.glob(" "))
