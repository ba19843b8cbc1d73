"""What is collected: suite files, ordinary tests beside them, files that are not ours."""

import json
from textwrap import dedent

import pytest

ORDINARY = '''
"""Speed of theta joins; pytest_heta is not needed here."""

import pytest


@pytest.fixture
def numbers():
    return [3, 1, 2]


def test_sorted(numbers):
    assert sorted(numbers) == [1, 2, 3]


def test_speed(benchmark, numbers):
    assert benchmark(sorted, numbers) == [1, 2, 3]


class TestGroup:
    def test_method(self):
        pass


def helper():
    raise AssertionError("not a test")
'''
ORDINARY_IDS = [
    "bench_plain.py::test_sorted",
    "bench_plain.py::test_speed",
    "bench_plain.py::TestGroup::test_method",
]
TOYS_IDS = [
    f"bench_toys.py::toys::corpus::{mode}[{case}]"
    for mode in ("overlap", "backwards")
    for case in ("pie", "repair", "rain")
]


@pytest.fixture
def bare(world):
    """The world without its suite file."""
    (world.path / "bench_toys.py").unlink()
    return world


@pytest.fixture
def write(world):
    """Write a file of the world."""

    def write_file(name: str, text: str) -> None:
        path = world.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")

    return write_file


def error_lines(result: pytest.RunResult) -> list[str]:
    """Return the lines of collection errors."""
    start = next(i for i, line in enumerate(result.outlines) if "ERRORS" in line)
    end = next(i for i, line in enumerate(result.outlines) if "short test summary" in line)
    return result.outlines[start + 1 : end]


# --- suite files ---------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("bench_toys.py",),
        (".",),
        (),
        (".", "bench_toys.py"),
        pytest.param(
            ("bench_toys.py", "bench_toys.py"),
            marks=pytest.mark.skipif(
                pytest.version_tuple < (9, 0), reason="pytest 8 takes every argument by itself"
            ),
        ),
        ("-o", "python_files=bench_*.py"),
        ("-o", "python_files=bench_*.py", ".", "bench_toys.py"),
        ("-o", "python_files=test_*.py", "bench_toys.py"),
        ("--doctest-modules",),
        ("--import-mode=importlib",),
        ("--import-mode=append",),
    ],
)
def test_suite_file_is_collected_once(world, collected_ids, arguments):
    result = world.run("--collect-only", "-q", *arguments)
    assert result.ret == pytest.ExitCode.OK
    assert collected_ids(result) == TOYS_IDS


def test_suite_file_in_a_folder_of_a_package(world, write, collected_ids):
    (world.path / "pack" / "inner").mkdir(parents=True)
    for folder in ("pack", "pack/inner"):
        write(f"{folder}/__init__.py", "")
    (world.path / "bench_toys.py").rename(world.path / "pack" / "inner" / "bench_toys.py")
    (world.path / "toys").rename(world.path / "pack" / "inner" / "toys")
    result = world.run("--collect-only", "-q", "pack")
    assert collected_ids(result) == [f"pack/inner/{node_id}" for node_id in TOYS_IDS]


def test_ignored_files_and_folders_are_ignored(world, write):
    (world.path / "skipped").mkdir()
    (world.path / "bench_toys.py").rename(world.path / "skipped" / "bench_toys.py")
    no_tests = pytest.ExitCode.NO_TESTS_COLLECTED
    assert world.run("--collect-only", "--ignore=skipped").ret == no_tests
    assert world.run("--collect-only", "-o", "norecursedirs=skip*").ret == no_tests
    write("skipped/conftest.py", "collect_ignore = ['bench_toys.py']\n")
    assert world.run("--collect-only").ret == no_tests


@pytest.mark.parametrize("name", ["suite.py", "test_toys.py", "toys_bench.py"])
def test_benchmarks_elsewhere_are_not_collected(world, name):
    (world.path / "bench_toys.py").rename(world.path / name)
    assert world.run("--collect-only", name).ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize(
    "imports",
    [
        "import pytest_heta as h; JsonlBenchmark = h.JsonlBenchmark",
        "import pytest_heta.benchmarks; JsonlBenchmark = pytest_heta.benchmarks.JsonlBenchmark",
        "from pytest_heta.benchmarks import JsonlBenchmark",
        "import pytest; JsonlBenchmark = pytest.importorskip('pytest_heta').JsonlBenchmark",
        "if True:\n    from pytest_heta import JsonlBenchmark",
    ],
)
def test_every_way_of_importing_the_package_makes_a_suite(bare, write, collected_ids, imports):
    write("bench_toys.py", f"{imports}\ntoys = JsonlBenchmark('toys')\n")
    result = bare.run("--collect-only", "-q")
    assert collected_ids(result) == TOYS_IDS


def test_named_file_may_get_its_benchmark_from_elsewhere(bare, write, collected_ids):
    write("mine.py", "from pytest_heta import JsonlBenchmark\nmine = JsonlBenchmark('toys')\n")
    write("bench_toys.py", "from mine import mine\n")
    result = bare.run("--collect-only", "-q", "bench_toys.py")
    assert collected_ids(result) == TOYS_IDS


def test_several_benchmarks_in_one_file(world, write, collected_ids):
    world.dataset([{"case_id": "only", "query": "apple"}], name="others")
    write(
        "bench_toys.py",
        """
        from pytest_heta import JsonlBenchmark, suite

        zebra = JsonlBenchmark("toys")
        apples = suite(JsonlBenchmark("others"), name="apples", modes=["backwards"])

        def test_between():
            pass

        monkey = suite(JsonlBenchmark("others"), name="monkey", modes=["overlap"])
        """,
    )
    result = world.run("--collect-only", "-q", "-k", "not repair and not rain")
    assert collected_ids(result) == [
        "bench_toys.py::toys::corpus::overlap[pie]",
        "bench_toys.py::toys::corpus::backwards[pie]",
        "bench_toys.py::apples::corpus::backwards[only]",
        "bench_toys.py::test_between",
        "bench_toys.py::monkey::corpus::overlap[only]",
    ]
    world.run().assert_outcomes(passed=9)
    assert [report["benchmark"]["name"] for report in world.reports()] == [
        "toys",
        "apples",
        "monkey",
    ]


def test_benchmark_that_a_suite_wraps_is_declared_once(bare, write, collected_ids):
    write(
        "bench_toys.py",
        """
        from pytest_heta import JsonlBenchmark, suite

        benchmark = JsonlBenchmark("toys")
        toys = suite(benchmark, modes=["overlap"])
        again = toys
        _private = JsonlBenchmark("toys", name="private")
        BenchmarkClass = JsonlBenchmark
        """,
    )
    assert collected_ids(bare.run("--collect-only", "-q")) == TOYS_IDS[:3]


def test_one_benchmark_in_two_suites(bare, write, collected_ids):
    write(
        "bench_toys.py",
        """
        from pytest_heta import JsonlBenchmark, suite

        data = JsonlBenchmark("toys")
        shallow = suite(data, name="shallow", modes=["overlap"], top_k=1)
        deep = suite(data, name="deep", modes=["overlap"], top_k=4)
        """,
    )
    bare.run().assert_outcomes(passed=6)
    found = {
        report["benchmark"]["name"]: len(report["case_results"][0]["response"]["results"])
        for report in bare.reports()
    }
    assert found == {"shallow": 1, "deep": 4}


# --- errors --------------------------------------------------------------------


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["serial", "distributed"])
def test_one_name_in_two_files_is_an_error(world, write, workers):
    text = (world.path / "bench_toys.py").read_text(encoding="utf-8")
    write("bench_zoo.py", text)
    result = world.run(*workers)
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["*benchmark 'toys' is declared in bench_toys.py and in bench_zoo.py;*suite(*name=*"]
    )


def test_one_name_twice_in_a_file_is_an_error(bare, write):
    write(
        "bench_toys.py",
        """
        from pytest_heta import JsonlBenchmark

        one, two = JsonlBenchmark("toys"), JsonlBenchmark("toys")
        """,
    )
    result = bare.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        ["*benchmark 'toys' is declared in bench_toys.py and in bench_toys.py*"]
    )


def test_broken_data_names_the_line(world):
    path = world.path / "toys" / "cases.jsonl"
    path.write_text(path.read_text(encoding="utf-8") + '{"case_id": 1,\n', encoding="utf-8")
    result = world.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    lines = error_lines(result)
    assert len(lines) == 2
    assert "ERROR collecting bench_toys.py" in lines[0]
    assert f"{path}:4: not JSON" in lines[1]


def test_broken_data_names_the_line_in_a_distributed_run(world):
    path = world.path / "toys" / "cases.jsonl"
    path.write_text('{"case_id": 1,\n', encoding="utf-8")
    result = world.run("-n1")
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines([f"*{path}:1*"])


def test_other_benchmarks_are_run_in_spite_of_a_broken_one(world, write):
    world.dataset(name="broken")
    (world.path / "broken" / "cases.jsonl").write_text("[]\n", encoding="utf-8")
    write(
        "bench_broken.py", "from pytest_heta import JsonlBenchmark\nb = JsonlBenchmark('broken')\n"
    )
    result = world.run("--continue-on-collection-errors")
    result.assert_outcomes(passed=6, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert world.report()["benchmark"]["name"] == "toys"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from pytest_heta import nothing\n", "*cannot import name 'nothing'*"),
        ("from pytest_heta import suite\nraise ValueError('broken suite')\n", "*broken suite*"),
        ("from pytest_heta import suite\nx = = 1\n", "*SyntaxError*"),
    ],
)
def test_broken_suite_file_is_a_collection_error(world, write, text, message):
    write("bench_toys.py", text)
    result = world.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])


def test_suite_declared_wrongly_is_refused_by_its_line(world, write):
    write("bench_toys.py", "from pytest_heta import suite\n\nx = suite(1)\n")
    assert world.usage_error().startswith("[configuration-invalid] bench_toys.py:3, suite: a int ")


def test_wrong_manifest_in_a_suite_file_is_one_line(world, write):
    write(
        "bench_toys.py", "from pytest_heta import BenchmarkManifest\nBenchmarkManifest(name='a b')"
    )
    result = world.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["?model-invalid? bench_toys.py:2: BenchmarkManifest.name = *"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_suite_file_may_skip_itself(world, write):
    write(
        "bench_toys.py",
        """
        import pytest
        from pytest_heta import JsonlBenchmark

        pytest.skip("no data here", allow_module_level=True)
        """,
    )
    result = world.run("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*no data here"])


# --- ordinary tests in a suite file ---------------------------------------------


def test_ordinary_tests_beside_a_benchmark(world, write):
    world.suite(extra=ORDINARY)
    result = world.run("-v", "--heta-mode=overlap")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(
        [
            "bench_toys.py::toys::corpus::overlap[[]pie[]] PASSED*",
            "bench_toys.py::test_sorted PASSED*",
            "bench_toys.py::test_speed PASSED*",
            "bench_toys.py::TestGroup::test_method PASSED*",
            "*benchmark: 1 tests*",
        ]
    )
    assert len(world.report()["case_results"]) == 3


def test_fixtures_of_benchmarks_are_refused_to_ordinary_tests(world):
    world.suite(extra="def test_kb(heta_kb):\n    pass\n")
    result = world.run("-k", "test_kb")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*only there for benchmark cases*"])


@pytest.mark.parametrize("mode", ["prepend", "append", "importlib"])
@pytest.mark.parametrize("folder", ["", "plain/", "pack/"])
def test_assertions_of_ordinary_tests_are_explained(world, write, mode, folder):
    if folder == "pack/":
        write("pack/__init__.py", "")
    write(
        f"{folder}bench_other.py",
        """
        import pytest_heta

        def test_numbers():
            left = 6 * 7
            assert left == 43
        """,
    )
    result = world.run(f"--import-mode={mode}", "-k", "test_numbers")
    result.assert_outcomes(failed=1, deselected=6)
    result.stdout.fnmatch_lines(["E       assert 42 == 43"])


def test_suite_imported_by_another_is_no_obstacle(world, write):
    write("bench_also.py", "import pytest_heta\nimport bench_toys\n\ndef test_also():\n    pass\n")
    world.run("bench_also.py", "bench_toys.py", "--heta-mode=overlap").assert_outcomes(passed=4)


# --- files that are not suites ---------------------------------------------------


@pytest.mark.parametrize("recipe", ["recipe.py:recipe", None])
@pytest.mark.parametrize(
    "arguments",
    [
        ("bench_plain.py",),
        (".",),
        ("-o", "python_files=bench_*.py"),
        ("-o", "python_files=bench_*.py", ".", "bench_plain.py"),
        ("bench_plain.py", "-o", "python_functions=helper"),
    ],
)
def test_other_bench_files_are_collected_as_without_the_plugin(bare, write, arguments, recipe):
    write("bench_plain.py", ORDINARY)
    arguments = ("-v", "--collect-only", *arguments)
    with_plugin = bare.run(*arguments, recipe=recipe)
    without = bare.run("-p", "no:heta", *arguments, recipe=None)
    assert with_plugin.ret == without.ret
    assert tree(with_plugin) == tree(without)


def tree(result: pytest.RunResult) -> list[str]:
    start = next(i for i, line in enumerate(result.outlines) if " collected " in f" {line}")
    lines = [line for line in result.outlines[start:] if line.strip()]
    return [*lines[:-1], lines[-1].partition(" in ")[0]]


def test_other_bench_file_is_not_even_imported(world, write):
    write("bench_plain.py", "raise AssertionError('imported')  # theta, pytest_heta\n")
    world.run().assert_outcomes(passed=6)


def test_other_bench_file_runs_as_ever(world, write, collected_ids):
    write("bench_plain.py", ORDINARY)
    result = world.run("--collect-only", "-q", "bench_plain.py", recipe=None)
    assert collected_ids(result) == ORDINARY_IDS
    world.run("bench_plain.py", recipe=None).assert_outcomes(passed=3)
    world.run("bench_plain.py", "bench_toys.py").assert_outcomes(passed=9)


def test_objects_that_answer_to_any_name_are_no_benchmarks(world, write):
    write(
        "bench_plain.py",
        """
        from unittest.mock import MagicMock, Mock

        mock, magic = Mock(), MagicMock()

        class Anything:
            def __getattr__(self, name):
                return lambda *args: None

        anything = Anything()

        def test_nothing():
            pass
        """,
    )
    world.run("bench_plain.py").assert_outcomes(passed=1)


def test_unreadable_suite_is_reported(world, write):
    (world.path / "bench_toys.py").write_bytes(b"import pytest_heta\nx = '\xff'\n")
    result = world.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*SyntaxError*"])


def test_report_has_the_place_of_the_suite(world, write):
    (world.path / "deep").mkdir()
    (world.path / "bench_toys.py").rename(world.path / "deep" / "bench_toys.py")
    (world.path / "toys").rename(world.path / "deep" / "toys")
    world.run("--heta-mode=overlap").assert_outcomes(passed=3)
    assert world.report()["metadata"]["suite"] == "deep/bench_toys.py"
    assert json.dumps(world.report()["query_modes"]) == '["overlap"]'
