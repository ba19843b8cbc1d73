"""Selecting cases: expressions, markers, node ids, and what failed last."""

import pytest

CASES = [
    {"case_id": "pie", "query": "apple pie", "evidence": ["apple"], "labels": {"kind": "food"}},
    {
        "case_id": "x/1:维修",
        "query": "bike repair",
        "evidence": ["bike"],
        "labels": {"kind": "техника", "tags": ["two wheels", "Straße"], "hard": True, "level": 3},
    },
    {
        "case_id": "rain",
        "query": "rain cloud",
        "evidence": ["cloud"],
        "labels": {"kind": "sky", "with-dash": "yes", "mode": "mine", "level": None},
    },
]
REPAIR = "x/1:维修"
TWO_UNITS = [
    {"case_id": "pie", "query": "apple pie", "unit": "sweet", "documents": ["apple"]},
    {"case_id": "tart", "query": "apple tart", "unit": "sweet", "documents": ["apple"]},
    {"case_id": "rain", "query": "rain", "unit": "wet", "documents": ["cloud"]},
    {"case_id": "snow", "query": "snow", "unit": "wet", "documents": ["cloud"]},
]


@pytest.fixture
def selected(world):
    """Run with the given arguments and return what ran: (mode, case id) pairs."""
    world.dataset(CASES)

    def run(*args: str) -> list[tuple[str, str]]:
        result = world.run(*args)
        if result.ret == pytest.ExitCode.NO_TESTS_COLLECTED:
            return []
        assert result.ret == pytest.ExitCode.OK
        results = world.report()["case_results"]
        return [(r["query_mode"], r["case_id"]) for r in results]

    return run


@pytest.fixture
def with_cache(world):
    """Run pytest with its cache."""

    def run(*args: str) -> pytest.RunResult:
        return world.run(*args, cache=True)

    return run


def both(case_id: str) -> list[tuple[str, str]]:
    return [("overlap", case_id), ("backwards", case_id)]


# --- -k ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "case_id"),
    [
        ("pie", "pie"),
        ("PIE", "pie"),
        ("food", "pie"),
        ("not pie and not sky", REPAIR),
        ("x/1:维修", REPAIR),
        ("维", REPAIR),
        ("техника", REPAIR),
        ("ТЕХНИКА", REPAIR),
        ("straße", REPAIR),
        ("wheels", REPAIR),
        ("yes", "rain"),
        ("mine", "rain"),
        ("sky or nothing", "rain"),
    ],
)
def test_expression_sees_case_ids_and_labels(selected, expression, case_id):
    assert selected("-k", expression) == both(case_id)


def test_expression_sees_modes(selected):
    assert selected("-k", "backwards") == [("backwards", c["case_id"]) for c in CASES]
    assert selected("-k", "backwards and rain") == [("backwards", "rain")]


def test_expression_sees_units_and_benchmarks(world):
    world.dataset(TWO_UNITS)
    world.run("-k", "wet").assert_outcomes(passed=4, deselected=4)
    assert {r["metadata"]["unit_id"] for r in world.report()["case_results"]} == {"wet"}
    world.run("-k", "toys and sweet and overlap").assert_outcomes(passed=2, deselected=6)


def test_expression_sees_a_unit_by_its_raw_id(world):
    cases = [{**case, "unit": f"天 {case['unit']}"} for case in TWO_UNITS]
    world.dataset(cases)
    world.run("-k", "天 and wet").assert_outcomes(passed=4, deselected=4)


def test_nothing_selected_is_no_success(world):
    result = world.run("-k", "nothing")
    result.assert_outcomes(deselected=6)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


# --- -m ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("heta(mode='overlap')", [("overlap", c["case_id"]) for c in CASES]),
        ("heta(kind='food')", both("pie")),
        ("heta(kind='техника')", both(REPAIR)),
        ("heta(hard=True)", both(REPAIR)),
        ("heta(level=3)", both(REPAIR)),
        ("heta(level=None)", both("rain")),
        ("heta(mode='backwards', kind='sky')", [("backwards", "rain")]),
        (
            "heta(mode='backwards') and not heta(kind='sky')",
            [("backwards", "pie"), ("backwards", REPAIR)],
        ),
        ("heta(unit='corpus', benchmark='toys', recipe='toy', kind='food')", both("pie")),
        ("heta(mode='mine')", []),
        ("heta(unit='other')", []),
        ("not heta", []),
    ],
)
def test_marker_expression(selected, expression, expected):
    assert selected("-m", expression) == expected


def test_marker_names_the_benchmark_whatever_the_number_of_recipes(world):
    source = (world.path / "recipe.py").read_text(encoding="utf-8")
    world.recipe(source.replace('name = "toy"', 'name = "other"'), name="other.py")
    other = "--heta-recipe=other.py:recipe"
    world.run(other, "-m", "heta(benchmark='toys')").assert_outcomes(passed=12)
    world.run(other, "-m", "heta(recipe='other')").assert_outcomes(passed=6, deselected=6)


def test_strange_labels_are_no_obstacle(world):
    labels = {"self": "a", "class": "b", "名": "c", "1x": "d", "": "e", "list": [1], "unit": "f"}
    world.dataset([{"case_id": "pie", "query": "apple", "evidence": ["apple"], "labels": labels}])
    world.run("-m", "heta(名='c', unit='corpus')").assert_outcomes(passed=2)
    world.run("-k", "f and e").assert_outcomes(passed=2)
    assert world.report()["case_results"][0]["metadata"]["labels"] == labels


# --- node ids ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "passed"),
    [
        ("bench_toys.py::toys", 8),
        ("bench_toys.py::toys::sweet", 4),
        ("bench_toys.py::toys::sweet::backwards", 2),
        ("bench_toys.py::toys::sweet::backwards[tart]", 1),
    ],
)
def test_node_id_selects(world, argument, passed):
    world.dataset(TWO_UNITS)
    world.run(argument).assert_outcomes(passed=passed)


def test_node_id_builds_only_its_unit(world, monkeypatch):
    builds = world.path / "builds"
    builds.mkdir()
    monkeypatch.setenv("TOY_BUILDS", str(builds))
    world.dataset(TWO_UNITS)
    world.run("bench_toys.py::toys::wet").assert_outcomes(passed=4)
    (build,) = builds.iterdir()
    assert build.name.startswith("toys-wet-")
    assert build.read_text() == "x"


def test_several_node_ids(world):
    ids = [
        "bench_toys.py::toys::corpus::overlap[rain]",
        "bench_toys.py::toys::corpus::overlap[pie]",
    ]
    world.run(*ids).assert_outcomes(passed=2)
    # The report keeps the order of the dataset.
    assert [r["case_id"] for r in world.report()["case_results"]] == ["pie", "rain"]


def test_wrong_node_id_is_an_error(world):
    result = world.run("bench_toys.py::toys::corpus::overlap[nothing]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: not found: *bench_toys.py::toys::corpus::overlap*"])


def test_deselected_node_id(world):
    world.run("--deselect", "bench_toys.py::toys::corpus::overlap[pie]").assert_outcomes(
        passed=5, deselected=1
    )
    world.run("--deselect", "bench_toys.py::toys::corpus::overlap").assert_outcomes(
        passed=3, deselected=3
    )
    assert {r["query_mode"] for r in world.report()["case_results"]} == {"backwards"}


# --- what failed last ----------------------------------------------------------


@pytest.fixture
def failing(world):
    """A world whose recipe fails for the query of the case ``rain``, until it is mended."""
    source = (world.path / "recipe.py").read_text(encoding="utf-8")
    world.recipe(source.replace("words = ", "assert not text.startswith('rain'); words = "))
    world.mend = lambda: world.recipe(source)
    return world


def test_last_failed(failing, with_cache):
    with_cache().assert_outcomes(passed=4, failed=2)
    with_cache("--lf").assert_outcomes(failed=2)
    assert {r["case_id"] for r in failing.report()["case_results"]} == {"rain"}
    failing.mend()
    with_cache("--lf").assert_outcomes(passed=2)
    with_cache("--lf").assert_outcomes(passed=6)


def test_failed_first(failing, with_cache, collected_ids):
    with_cache("--heta-mode=overlap").assert_outcomes(passed=2, failed=1)
    result = with_cache("--heta-mode=overlap", "--ff", "--collect-only", "-q")
    assert [node_id.partition("[")[2] for node_id in collected_ids(result)] == [
        "rain]",
        "pie]",
        "repair]",
    ]


def test_failed_first_keeps_units_together(failing, with_cache, collected_ids):
    failing.dataset(
        [
            {**case, "query": "rain" if case["case_id"] in {"tart", "snow"} else "x"}
            for case in TWO_UNITS
        ]
    )
    with_cache("--heta-mode=overlap").assert_outcomes(passed=2, failed=2)
    result = with_cache("--heta-mode=overlap", "--ff", "--collect-only", "-q")
    assert [node_id.partition("toys::")[2] for node_id in collected_ids(result)] == [
        "sweet::overlap[tart]",
        "sweet::overlap[pie]",
        "wet::overlap[snow]",
        "wet::overlap[rain]",
    ]


def test_stepwise(failing, with_cache):
    result = with_cache("--sw")
    result.assert_outcomes(passed=2, failed=1)
    failing.mend()
    with_cache("--sw").assert_outcomes(passed=4, deselected=2)


def test_exit_first(failing):
    result = failing.run("-x")
    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    report = failing.report()
    assert [r["case_id"] for r in report["case_results"]] == ["pie", "repair", "rain"]
    assert report["metadata"]["complete"] is False
    assert report["metadata"]["interrupted"] == "stopping after 1 failures"


def test_collect_only_runs_nothing(world, monkeypatch):
    builds = world.path / "builds"
    builds.mkdir()
    monkeypatch.setenv("TOY_BUILDS", str(builds))
    result = world.run("--collect-only")
    assert result.ret == pytest.ExitCode.OK
    assert list(builds.iterdir()) == []
    assert not (world.path / "report.json").exists()
