"""A dataset folder as an argument: recognised, named in node ids, and left as it was."""

from pathlib import Path

import pytest

BEIR = {
    "corpus.jsonl": '{"_id": "apple", "title": "", "text": "apple pie"}\n'
    '{"_id": "bike", "title": "", "text": "bike repair"}\n',
    "queries.jsonl": '{"_id": "q1", "text": "apple"}\n{"_id": "q2", "text": "bike"}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\tapple\t1\nq2\tbike\t1\n",
}
JSONL_IDS = [
    f"toys/cases.jsonl::toys::corpus::{mode}[{case}]"
    for mode in ("overlap", "backwards")
    for case in ("pie", "repair", "rain")
]


def write_beir(folder: Path, **changes: str) -> Path:
    for name, text in {**BEIR, **changes}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Return everything below a folder, the folder included, with times and sizes."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in (folder, *folder.rglob("*"))
    }


@pytest.fixture
def alone(world):
    """The world without its suite file."""
    (world.path / "bench_toys.py").unlink()
    return world


@pytest.fixture
def run_with_cache(world):
    """Run pytest as users do, with its cache."""

    def run(*args: str) -> pytest.RunResult:
        return world.run(*args, recipe=f"{world.path}/recipe.py:recipe", cache=True)

    return run


# --- what is collected ---------------------------------------------------------


def test_jsonl_folder_is_a_benchmark(alone, collected_ids):
    assert collected_ids(alone.run("toys", "--collect-only", "-q")) == JSONL_IDS


def test_beir_folder_is_a_benchmark(alone):
    write_beir(alone.path / "fruit")
    result = alone.run("fruit", "--heta-mode=overlap", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "fruit/queries.jsonl::fruit::corpus::overlap[[]q1[]] PASSED*",
            "fruit/queries.jsonl::fruit::corpus::overlap[[]q2[]] PASSED*",
        ]
    )
    report = alone.report()
    assert report["benchmark"]["name"] == "fruit"
    assert report["score_summary"]["overlap.ndcg@10"] == 1.0


def test_beir_folder_with_a_cases_file_is_one_benchmark(alone, collected_ids):
    folder = write_beir(alone.path / "fruit")
    (folder / "cases.jsonl").write_text('{"case_id": "a", "query": "x"}\n', encoding="utf-8")
    ids = collected_ids(alone.run("fruit", "--heta-mode=overlap", "--collect-only", "-q"))
    assert ids == [f"fruit/queries.jsonl::fruit::corpus::overlap[{q}]" for q in ("q1", "q2")]


@pytest.mark.parametrize("argument", ["toys/", "./toys", "toys/../toys", "toys/cases.jsonl"])
def test_folder_may_be_written_in_any_way(alone, collected_ids, argument):
    assert collected_ids(alone.run(argument, "--collect-only", "-q")) == JSONL_IDS


def test_absolute_path(alone, collected_ids):
    assert collected_ids(alone.run(str(alone.path / "toys"), "--collect-only", "-q")) == JSONL_IDS


def test_folder_is_not_recognised_while_recursing(alone):
    result = alone.run(".")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result = alone.run("--collect-only", "-q", "--", str(alone.path))
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_folder_within_a_dataset_folder_is_not_recognised(alone, collected_ids):
    alone.dataset(name="toys/inner")
    assert collected_ids(alone.run("toys", "--collect-only", "-q")) == JSONL_IDS


def test_current_folder_is_not_an_argument(alone, monkeypatch):
    monkeypatch.chdir(alone.path / "toys")
    recipe = f"{alone.path / 'recipe.py'}:recipe"
    result = alone.run("--collect-only", recipe=recipe)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_folder_is_nothing_without_a_recipe(alone):
    result = alone.run("toys", recipe=None)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "heta" not in "".join(line for line in result.outlines if "plugins:" not in line)


def test_folder_with_a_suite_file_is_left_to_it(alone, collected_ids):
    text = (
        "from pathlib import Path\n"
        "from pytest_heta import JsonlBenchmark\n"
        "toys = JsonlBenchmark(Path(__file__).parent)\n"
    )
    (alone.path / "toys" / "bench_own.py").write_text(text, encoding="utf-8")
    ids = collected_ids(alone.run("toys", "--heta-mode=overlap", "--collect-only", "-q"))
    assert ids == [
        f"toys/bench_own.py::toys::corpus::overlap[{case}]" for case in ("pie", "repair", "rain")
    ]


def test_several_folders(alone, collected_ids):
    write_beir(alone.path / "fruit")
    ids = collected_ids(alone.run("fruit", "toys", "--heta-mode=overlap", "--collect-only", "-q"))
    assert [node_id.partition("::")[0] for node_id in ids] == [
        *["fruit/queries.jsonl"] * 2,
        *["toys/cases.jsonl"] * 3,
    ]


def test_folder_beside_its_suite_names_the_clash(world):
    result = world.run("toys", "bench_toys.py")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        ["*benchmark 'toys' is declared in toys/cases.jsonl and in bench_toys.py*name=*"]
    )


def test_node_id_reruns_one_case(alone):
    result = alone.run(JSONL_IDS[1])
    result.assert_outcomes(passed=1)
    (only,) = alone.report()["case_results"]
    assert (only["case_id"], only["query_mode"]) == ("repair", "overlap")
    assert only["metadata"]["node_id"] == JSONL_IDS[1]


def test_part_of_a_node_id_selects_the_unit(alone):
    alone.run("toys/cases.jsonl::toys::corpus").assert_outcomes(passed=6)
    alone.run("toys/cases.jsonl::toys::corpus::overlap").assert_outcomes(passed=3)


def test_folder_of_nothing_is_nothing(alone):
    (alone.path / "empty").mkdir()
    assert alone.run("empty").ret == pytest.ExitCode.NO_TESTS_COLLECTED


# --- broken folders ------------------------------------------------------------


def test_broken_line_is_named(alone):
    (alone.path / "toys" / "cases.jsonl").write_text(
        '{"case_id": "a", "query": "x"}\n{"case_id": "b", \n', encoding="utf-8"
    )
    result = alone.run("toys")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*toys/cases.jsonl:2: *"])
    assert not any("Traceback" in line or "site-packages" in line for line in result.outlines)


def test_beir_folder_without_judgments_says_so(alone):
    folder = write_beir(alone.path / "fruit")
    (folder / "qrels" / "test.tsv").unlink()
    result = alone.run("fruit")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*fruit/qrels*no judgments*test.tsv*"])
    assert not any("collect.py" in line for line in result.outlines)


# --- nothing is written --------------------------------------------------------


def test_folder_stays_as_it_was(alone, run_with_cache):
    before = listing(alone.path / "toys")
    run_with_cache("toys").assert_outcomes(passed=6)
    assert listing(alone.path / "toys") == before
    assert (alone.path / "report.json").is_file()


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Another folder, which is the current one."""
    path = tmp_path / "elsewhere"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


def test_folder_stays_as_it_was_when_it_is_the_root(alone, run_with_cache, elsewhere):
    toys = alone.path / "toys"
    before = listing(toys)
    result = run_with_cache(str(toys), f"--rootdir={toys}")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines([f"rootdir: {toys}"])
    assert listing(toys) == before
    assert {path.name for path in elsewhere.iterdir()} == {
        ".benchmarks",
        ".pytest_cache",
        "report.json",
    }


def test_folder_stays_as_it_was_when_it_is_listed(alone, elsewhere):
    toys = alone.path / "toys"
    before = listing(toys)
    result = alone.run("--heta-list", str(toys), f"--rootdir={toys}", recipe=None, cache=True)
    result.stdout.fnmatch_lines([f"rootdir: {toys}", "  toys  (*"])
    assert listing(toys) == before


def test_last_failed_is_remembered_when_the_folder_is_the_root(alone, run_with_cache, elsewhere):
    toys = alone.path / "toys"
    source = (alone.path / "recipe.py").read_text(encoding="utf-8")
    alone.recipe(source.replace("words = set", "assert 'pie' not in text; words = set"))
    arguments = (str(toys), f"--rootdir={toys}", "--heta-mode=overlap")
    run_with_cache(*arguments).assert_outcomes(passed=2, failed=1)
    run_with_cache(*arguments, "--lf").assert_outcomes(failed=1)
    (only,) = alone.report(str(elsewhere / "report.json"))["case_results"]
    assert only["case_id"] == "pie"


def test_folder_stays_as_it_was_when_pytest_runs_in_it(alone, run_with_cache, monkeypatch):
    toys = alone.path / "toys"
    monkeypatch.chdir(toys)
    before = listing(toys)
    result = run_with_cache(".")
    result.assert_outcomes(passed=6)
    assert listing(toys) == before
    assert alone.report("report.json")["metadata"]["suite"].endswith("cases.jsonl")
    assert (alone.path / ".pytest_cache").is_dir()


def test_report_goes_into_the_folder_only_when_it_is_asked_to(alone, monkeypatch):
    toys = alone.path / "toys"
    monkeypatch.chdir(toys)
    recipe = f"{alone.path / 'recipe.py'}:recipe"
    alone.run(".", "--heta-report=json:mine.json", recipe=recipe).assert_outcomes(passed=6)
    assert (toys / "mine.json").is_file()
    assert not (alone.path / "report.json").exists()
