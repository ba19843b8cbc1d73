"""Node ids and JUnit names: what dashboards and copied ids depend on."""

import json
from textwrap import dedent
from xml.etree import ElementTree as ET

import pytest

MEMORY = '''
import json
from pathlib import Path

from pytest_heta.models import (
    BenchmarkCase,
    BenchmarkDocument,
    BenchmarkEvidence,
    BenchmarkExpected,
    BenchmarkManifest,
    BenchmarkRunUnit,
    PreparedBenchmark,
)


class Memory:
    """A benchmark of units with cases, whatever their ids are."""

    manifest = BenchmarkManifest(name="mem", version="1", split="test", build_scope="group")

    def __init__(self, units):
        self.units = units

    def resources(self):
        return ()

    async def prepare(self, workspace):
        return PreparedBenchmark(manifest=self.manifest, root_dir=workspace.root_dir)

    async def documents(self, prepared):
        yield BenchmarkDocument(
            document_id="d", name="d.txt", media_type="text/plain", data=b"apple"
        )

    async def cases(self, prepared):
        expected = BenchmarkExpected(evidence=(BenchmarkEvidence(reference_id="d"),))
        for cases in self.units.values():
            for case_id in cases:
                yield BenchmarkCase(case_id=case_id, query="apple", expected=expected)

    async def run_units(self, prepared):
        for unit_id, cases in self.units.items():
            yield BenchmarkRunUnit(unit_id=unit_id, document_ids=("d",), case_ids=tuple(cases))

    def evaluators(self):
        return ("recall@1",)


mem = Memory(json.loads(Path(__file__).with_name("units.json").read_text(encoding="utf-8")))
'''

LONG = "y" * 5000
NASTY = {
    "a::b": "a_b-78f0be89",
    "a b": "a_b-c8687a08",
    "a_b": "a_b",
    "x[1]": "x[1]",
    "m/n": "m/n",
    "with space": "with_space",
    "中文": "\\u4e2d\\u6587",
    "\\u4e2d\\u6587": "\\\\u4e2d\\\\u6587",
    "new\nline": "new_line",
    "nul\0": "nul_",
    "esc\x1b": "esc_",
    "\x85": "_-",
    "\ufffe": "\\ufffe",
    "\ud800": "\\ud800",
    LONG: "y" * 80 + "-",
    LONG[:-1] + "z": "y" * 80 + "-",
    "]": "]",
    "[": "[",
    "]::[": "]_[",
    "-": "-",
    "--help": "--help",
    "'\"": "'\"",
    "%s{}": "%s{}",
    "pie-rep2": "pie-rep2",
    "\u3000": "_-",
    "🚲": "\\U0001f6b2",
}


@pytest.fixture
def memory(world):
    """A world whose only suite has the given units: {unit id: [case id]}."""

    def write(units):
        (world.path / "bench_toys.py").unlink(missing_ok=True)
        (world.path / "bench_mem.py").write_text(dedent(MEMORY), encoding="utf-8")
        (world.path / "units.json").write_text(json.dumps(units), encoding="utf-8")
        return world

    return write


def shown(raw: str) -> str:
    """Return a raw id as a report has it: JSON text has no lone surrogates."""
    return raw.replace("\ud800", "\\ud800")


def junit_cases(path) -> list[tuple[str, str]]:
    return [
        (case.attrib["classname"], case.attrib["name"])
        for case in ET.parse(path).getroot().iter("testcase")
    ]


# --- golden --------------------------------------------------------------------


def test_node_ids(world, collected_ids):
    result = world.run("--collect-only", "-q")
    assert collected_ids(result) == [
        "bench_toys.py::toys::corpus::overlap[pie]",
        "bench_toys.py::toys::corpus::overlap[repair]",
        "bench_toys.py::toys::corpus::overlap[rain]",
        "bench_toys.py::toys::corpus::backwards[pie]",
        "bench_toys.py::toys::corpus::backwards[repair]",
        "bench_toys.py::toys::corpus::backwards[rain]",
    ]


def test_node_ids_of_several_recipes(world, collected_ids):
    source = (world.path / "recipe.py").read_text(encoding="utf-8")
    world.recipe(source.replace('name = "toy"', 'name = "other-toy"'), name="other.py")
    result = world.run("--collect-only", "-q", "--heta-recipe=other.py:recipe", "-k", "pie")
    assert collected_ids(result) == [
        "bench_toys.py::toys@toy::corpus::overlap[pie]",
        "bench_toys.py::toys@toy::corpus::backwards[pie]",
        "bench_toys.py::toys@other-toy::corpus::overlap[pie]",
        "bench_toys.py::toys@other-toy::corpus::backwards[pie]",
    ]


def test_tree(world):
    result = world.run("--collect-only", "-k", "pie")
    lines = [line.strip() for line in result.outlines if line.strip().startswith("<")]
    assert lines[1:] == [
        "<Suite bench_toys.py>",
        "<Benchmark toys>",
        "<RunUnit corpus>",
        "<Function overlap[pie]>",
        "<Function backwards[pie]>",
    ]


def test_junit_names(world):
    folder = world.path / "suites" / "deep"
    folder.mkdir(parents=True)
    (world.path / "bench_toys.py").rename(folder / "bench_toys.py")
    (world.path / "toys").rename(folder / "toys")
    world.run("suites", "--junitxml=junit.xml", "--heta-mode=overlap").assert_outcomes(passed=3)
    assert junit_cases(world.path / "junit.xml") == [
        ("suites.deep.bench_toys.toys.corpus", f"overlap[{case}]")
        for case in ("pie", "repair", "rain")
    ]


def test_junit_names_of_several_recipes_and_units(world):
    world.dataset(
        [
            {"case_id": "a", "query": "x", "unit": "one", "documents": ["apple"]},
            {"case_id": "b", "query": "x", "unit": "two", "documents": ["bike"]},
        ]
    )
    source = (world.path / "recipe.py").read_text(encoding="utf-8")
    world.recipe(source.replace('name = "toy"', 'name = "other"'), name="other.py")
    world.run(
        "--junitxml=junit.xml", "--heta-mode=overlap", "--heta-recipe=other.py:recipe"
    ).assert_outcomes(passed=4)
    assert junit_cases(world.path / "junit.xml") == [
        ("bench_toys.toys@toy.one", "overlap[a]"),
        ("bench_toys.toys@toy.two", "overlap[b]"),
        ("bench_toys.toys@other.one", "overlap[a]"),
        ("bench_toys.toys@other.two", "overlap[b]"),
    ]


def test_location_is_the_suite_file(world):
    broken = (world.path / "recipe.py").read_text(encoding="utf-8").replace("words = ", "1 / 0 #")
    world.recipe(broken)
    result = world.run("-k", "pie and overlap", "-v")
    result.stdout.fnmatch_lines(["bench_toys.py::toys::corpus::overlap[[]pie[]] FAILED*"])


# --- case ids ------------------------------------------------------------------


def test_case_ids_as_node_ids(memory, collected_ids):
    ids = collected_ids(
        memory({"u": list(NASTY)}).run("--heta-mode=overlap", "--collect-only", "-q")
    )
    names = [node_id.partition("::overlap[")[2][:-1] for node_id in ids]
    assert len(set(names)) == len(NASTY)
    for name, (raw, expected) in zip(names, NASTY.items(), strict=True):
        if expected.endswith("-") and raw != "-":
            # A digest of eight hexadecimal digits follows.
            assert name.startswith(expected), raw
            assert len(name) == len(expected) + 8, raw
            assert set(name[len(expected) :]) <= set("0123456789abcdef"), raw
        else:
            assert name == expected, raw


def test_copied_node_ids_rerun_their_cases(memory):
    world = memory({"u": list(NASTY), "v": ["other"]})
    world.run("--heta-mode=overlap").assert_outcomes(passed=len(NASTY) + 1)
    node_ids = [result["metadata"]["node_id"] for result in world.report()["case_results"]]
    for raw, node_id in zip(NASTY, node_ids, strict=False):
        world.run(node_id, "--junitxml=junit.xml").assert_outcomes(passed=1)
        (only,) = world.report()["case_results"]
        assert only["case_id"] == shown(raw), node_id
        assert len(junit_cases(world.path / "junit.xml")) == 1


def test_names_do_not_depend_on_a_limit_or_the_order(memory, collected_ids):
    ids = ["a::b", "a b", "a_b", "a\tb"]
    names = {}
    for order in (ids, ids[::-1]):
        world = memory({"u": order})
        for limit in (1, 2, 4):
            result = world.run(
                "--heta-mode=overlap", f"--heta-limit={limit}", "--collect-only", "-q"
            )
            for raw, node_id in zip(order, collected_ids(result), strict=False):
                assert names.setdefault(raw, node_id) == node_id
    assert names["a_b"] == "bench_mem.py::mem::u::overlap[a_b]"
    assert len(set(names.values())) == len(ids)


def test_junit_file_with_nasty_ids_parses(memory):
    world = memory({"u": list(NASTY)})
    world.run("--junitxml=junit.xml", "--heta-mode=overlap").assert_outcomes(passed=len(NASTY))
    cases = junit_cases(world.path / "junit.xml")
    assert len(cases) == len(set(cases)) == len(NASTY)


def test_nasty_ids_reach_the_report_of_a_distributed_run(memory):
    world = memory({"a::b": list(NASTY), "中\n": ["other"]})
    result = world.run("-n1", "--junitxml=junit.xml", "--heta-mode=overlap")
    result.assert_outcomes(passed=len(NASTY) + 1)
    results = world.report()["case_results"]
    assert [r["case_id"] for r in results] == [*map(shown, NASTY), "other"]
    assert len(junit_cases(world.path / "junit.xml")) == len(NASTY) + 1


# --- unit ids ------------------------------------------------------------------

UNITS = [
    "a::b",
    "a.b",
    "a_b",
    "x[1]",
    "m/n",
    "a space",
    "中",
    "文",
    "\n",
    "\0",
    LONG,
    "\ud800",
    "-k",
]


def test_unit_names_are_made_of_plain_characters(memory, collected_ids):
    world = memory({unit: [f"case{i}"] for i, unit in enumerate(UNITS)})
    ids = collected_ids(world.run("--heta-mode=overlap", "--collect-only", "-q"))
    names = [node_id.split("::")[2] for node_id in ids]
    assert len(set(names)) == len(UNITS)
    plain = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
    for name, raw in zip(names, UNITS, strict=True):
        assert set(name) <= plain
        assert len(name) <= 89
        assert (name == raw) == (raw in {"a_b", "-k"})


def test_copied_node_ids_rerun_cases_of_their_units(memory):
    world = memory({unit: [f"case{i}"] for i, unit in enumerate(UNITS)})
    world.run("--heta-mode=overlap").assert_outcomes(passed=len(UNITS))
    node_ids = [result["metadata"]["node_id"] for result in world.report()["case_results"]]
    for raw, node_id in zip(UNITS, node_ids, strict=True):
        world.run(node_id).assert_outcomes(passed=1)
        report = world.report()
        (only,), (build,) = report["case_results"], report["unit_builds"]
        assert only["metadata"]["unit_id"] == build["unit_id"] == shown(raw), node_id


# --- where ids are read --------------------------------------------------------


def test_shown_node_id_is_that_of_the_current_folder(world, monkeypatch):
    folder = world.path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    recipe = f"{world.path / 'recipe.py'}:recipe"
    arguments = (f"--rootdir={world.path}", "--heta-mode=backwards")
    result = world.run("../bench_toys.py", *arguments, recipe=recipe)
    lines = [line.split() for line in result.outlines]
    shown_ids = [words[1] for words in lines if len(words) == 2 and "::" in words[1]]
    assert len(shown_ids) == 3
    world.run(shown_ids[1], *arguments, recipe=recipe).assert_outcomes(passed=1)
    (only,) = world.report("elsewhere/report.json")["case_results"]
    assert only["case_id"] == "repair"
    assert only["metadata"]["node_id"] == "bench_toys.py::toys::corpus::backwards[repair]"
