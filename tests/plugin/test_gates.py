"""Gates: how they are decided, refused and shown."""

import json
import xml.etree.ElementTree as ET

import pytest

# recall@1 is 0.5 for each case: two judged documents, one of them first.
HALVES = [
    {"case_id": "pie", "query": "apple pie", "evidence": ["apple", "bike"]},
    {"case_id": "rain", "query": "rain cloud", "evidence": ["cloud", "bike"]},
]

FIXED = """
class Fixed:
    name = "fixed"
    bounded = True

    async def evaluate(self, *, case, response):
        return {value}
"""


def gate_of(world):
    (gate,) = world.report()["gates"]
    return gate


def fixed_score(world, value):
    world.suite(before=FIXED.format(value=value), evaluators="[Fixed()]")


# --- deciding ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "status"),
    [(">=", "passed"), ("<=", "passed"), ("==", "passed"), (">", "failed"), ("<", "failed")],
)
def test_a_value_equal_to_its_threshold(world, operator, status):
    world.dataset(HALVES)
    result = world.run("--heta-mode=overlap", f"--heta-gate=overlap.recall@1 {operator} 0.5")
    gate = gate_of(world)
    assert (gate["value"], gate["threshold"], gate["status"]) == (0.5, 0.5, status)
    assert result.ret == (0 if status == "passed" else 1)


@pytest.mark.parametrize(
    ("gate", "status"),
    [
        ("backwards.recall@1 >= 0", "passed"),
        ("backwards.recall@1 > 0", "failed"),
        ("overlap.recall@1 <= 0", "failed"),
        ("overlap.failed_cases <= 0", "passed"),
        ("overlap.failed_cases > 0", "failed"),
        ("overlap.scoring_errors == 0", "passed"),
        ("overlap.failure_rate <= 0.0", "passed"),
    ],
)
def test_zero_is_a_threshold_like_any_other(world, gate, status):
    result = world.run(f"--heta-gate={gate}")
    assert gate_of(world)["status"] == status
    assert gate_of(world)["threshold"] == 0
    assert result.ret == (0 if status == "passed" else 1)


def test_text_exit_code_junit_and_json_agree_on_a_near_miss(world):
    fixed_score(world, 0.7966)
    result = world.run(
        "--heta-mode=overlap", "--heta-gate=overlap.fixed >= 0.80", "--junitxml=j.xml"
    )
    assert result.ret == 1
    line = "toys: overlap.fixed = 0.7966 < 0.80 (n=3)"
    result.stdout.fnmatch_lines([f"?gate-failed? {line}", f"FAILED {line}"])
    gate = gate_of(world)
    assert (gate["status"], gate["threshold"]) == ("failed", 0.8)
    assert gate["value"] == pytest.approx(0.7966, abs=1e-12)
    root = ET.parse(world.path / "j.xml").getroot()
    failure = root.find(".//testcase[@name='gate[overlap.fixed >=]']/failure")
    assert failure.get("message") == f"[gate-failed] {line}"
    properties = {p.get("name"): p.get("value") for p in root.iterfind("testsuite/properties/*")}
    assert properties["toys.gate[toys:overlap.fixed >= 0.8]"] == f"FAILED {line}"


def test_enough_digits_are_shown_to_see_why(world):
    fixed_score(world, 0.79999995)
    result = world.run("--heta-mode=overlap", "--heta-gate=overlap.fixed >= 0.8")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED toys: overlap.fixed = 0.79999995 < 0.8 (n=3)"])


def test_a_difference_of_rounding_is_none(world):
    fixed_score(world, 0.8 - 1e-12)
    assert world.run("--heta-mode=overlap", "--heta-gate=overlap.fixed >= 0.8").ret == 0


def test_every_aggregate_can_be_gated(world):
    gates = [
        "failure_rate <= 0", "failed_cases <= 0", "successful_cases >= 3", "total_cases == 3",
        "distinct_cases == 3", "scoring_errors <= 0", "mean_latency_ms < 60000",
        "p50_latency_ms < 60000", "p95_latency_ms < 60000", "p99_latency_ms < 60000",
        "max_latency_ms < 60000", "mean(recall@1) == 1", "n(recall@1) == 3",
        "n_scored(recall@1) == 3", "n_errored(recall@1) == 0", "n_skipped(recall@1) == 0",
        "n_unjudged(recall@1) == 0",
    ]  # fmt: skip
    result = world.run("--heta-mode=overlap", *(f"--heta-gate=overlap.{gate}" for gate in gates))
    assert [gate["status"] for gate in world.report()["gates"]] == ["passed"] * len(gates)
    assert result.ret == 0


def test_a_star_stands_for_every_mode_and_benchmark(world):
    world.dataset(name="more")
    world.suite(
        extra="""
        more = suite(
            JsonlBenchmark(Path(__file__).parent / "more", name="more"), evaluators=["recall@1"]
        )
        """
    )
    world.run("--heta-gate=*:*.recall@1 >= 0", "--heta-gate=more:*.recall@1 >= 0")
    counts = {r["benchmark"]["name"]: len(r["gates"]) for r in world.reports()}
    assert counts == {"toys": 2, "more": 4}


# --- refusing -------------------------------------------------------------------------

MISSPELT = [
    (
        "overlap.recal@1 >= 0.5",
        "no metric 'recal@1' is planned; did you mean 'recall@1'",
    ),
    ("overlapp.recall@1 >= 0.5", "mode 'overlapp' is not planned; did you mean 'overlap'?"),
    ("toy:overlap.recall@1 >= 0.5", "benchmark 'toy' is not planned; did you mean 'toys'?"),
    ("toys@tou:overlap.recall@1 >= 0.5", "recipe 'tou' is not planned; did you mean 'toy'?"),
    (
        "overlap.failure_rat <= 0.5",
        "no metric 'failure_rat' is planned; did you mean 'failure_rate'",
    ),
]


@pytest.mark.parametrize(("gate", "problem"), MISSPELT)
def test_a_misspelt_gate_is_refused_before_the_first_build(world, count_builds, gate, problem):
    error = world.usage_error(f"--heta-gate={gate}")
    assert error.startswith(f"[gate-invalid] gate {gate!r}: {problem}")
    assert count_builds() == 0
    assert not (world.path / "report.json").exists()


@pytest.mark.parametrize(
    ("gate", "problem"), [MISSPELT[0], ("overlapp.recall@1 >= 0.5", "mode 'overlapp'")]
)
@pytest.mark.parametrize("origin", ["ini", "suite"])
def test_a_misspelt_gate_of_ini_file_or_suite_is_refused(
    world, count_builds, origin, gate, problem
):
    if origin == "ini":
        world.ini(f"heta_gate = {gate}")
    else:
        world.suite(f"gates=['{gate}']")
    assert problem in world.usage_error()
    assert count_builds() == 0


def test_a_misspelt_gate_is_refused_by_several_workers_too(world, count_builds):
    error = world.usage_error("-n2", "--heta-gate=overlap.recal@1 >= 0.5")
    assert "no metric 'recal@1' is planned; did you mean 'recall@1'" in error
    assert count_builds() == 0
    assert not (world.path / "report.json").exists()


@pytest.mark.parametrize(
    ("gate", "hint"),
    [
        ("overlap.recall@1 >= 80", "write 0.8"),
        ("overlap.recall@1 >= 80%", "write 0.8;"),
        ("overlap.failure_rate <= 5", "write 0.05"),
        ("overlap.recall@1 <= -0.1", "write a number in 0..1"),
    ],
)
def test_a_percentage_of_what_lies_between_0_and_1_is_refused(world, count_builds, gate, hint):
    assert hint in world.usage_error(f"--heta-gate={gate}")
    assert count_builds() == 0


def test_one_means_one(world):
    assert world.run("--heta-mode=overlap", "--heta-gate=overlap.recall@1 >= 1").ret == 0


def test_a_metric_that_may_be_endlessly_bad_cannot_be_gated(world, count_builds):
    world.suite(
        before="""
        class Distance:
            name = "distance"
            direction = "lower"

            async def evaluate(self, *, case, response):
                return 3.0
        """,
        evaluators="[Distance()]",
    )
    error = world.usage_error("--heta-gate=overlap.distance <= 5")
    assert "metric 'distance' has no finite worst value" in error
    assert count_builds() == 0


# --- what was not measured ---------------------------------------------------------------


def test_a_gate_on_an_unmeasured_metric_is_never_green(world):
    world.dataset([{"case_id": "open", "query": "apple"}])
    result = world.run("--heta-mode=overlap", "--heta-gate=overlap.recall@1 >= 0")
    assert result.ret == 1
    gate = gate_of(world)
    assert (gate["status"], gate["value"]) == ("undecided", None)
    assert gate["reason"] == "no value: 1 unjudged"
    result.stdout.fnmatch_lines(["UNDECIDED toys: overlap.recall@1 >= 0 *: no value: 1 unjudged"])


def test_a_gate_on_latencies_is_never_green_when_no_query_succeeded(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text):
            raise RuntimeError("down")
    """)
    result = world.run(
        "--heta-mode=overlap", "--heta-gate=overlap.p95_latency_ms <= 1000", "--heta-fail-on=gate"
    )
    assert result.ret == 1
    assert gate_of(world)["status"] == "undecided"
    assert gate_of(world)["reason"] == "no value: no latency was measured"


def test_a_gate_deeper_than_a_suite_without_it_is_measured_all_the_same(world):
    world.suite(evaluators='["recall@1"]')
    world.run("--heta-mode=overlap", "--heta-gate=overlap.ndcg@100 >= 0.9")
    assert gate_of(world)["status"] == "passed"
    assert world.report()["config_snapshot"]["top_k"] == 100


# --- reduced plans and subsets --------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["--heta-limit=1", "--heta-sample=1"])
def test_a_reduced_plan_is_decided_and_says_on_how_many_cases(world, reduction):
    result = world.run(reduction, "--heta-gate=overlap.recall@1 >= 0.9")
    result.assert_outcomes(passed=3)
    assert gate_of(world)["status"] == "passed"
    result.stdout.fnmatch_lines(["PASSED toys: overlap.recall@1 = 1 >= 0.9 (n=1): on 1 of 3 cases"])


def test_a_mode_left_out_of_the_plan_leaves_the_gates_of_others_decided(world):
    world.run("--heta-mode=overlap", "--heta-gate=overlap.recall@1 >= 0.9")
    assert gate_of(world)["status"] == "passed"
    assert "of 3" not in gate_of(world)["reason"]


STOPS = """
class KnowledgeBase(KnowledgeBase):
    def query(self, text, *, mode, top_k):
        if mode == "backwards" and text in ("apple pie", "bike repair"):
            raise RuntimeError("no")
        return super().query(text, mode=mode, top_k=top_k)
"""


@pytest.mark.parametrize(("option", "ran"), [("-x", 1), ("--maxfail=2", 2)])
def test_a_run_that_stops_early_leaves_a_partial_report_and_gates_skipped(world, option, ran):
    world.extend_recipe(STOPS)
    result = world.run(
        option, "--heta-gate=backwards.recall@1 >= 0", "--heta-gate=*.failed_cases <= 0"
    )
    assert result.ret == 1
    result.assert_outcomes(passed=3 + 1, failed=ran, skipped=2)
    report = world.report()
    assert len(report["case_results"]) == 3 + ran
    assert report["metadata"]["complete"] is False
    assert report["metadata"]["interrupted"] == f"stopping after {ran} failures"
    assert {(gate["gate"], gate["status"]) for gate in report["gates"]} == {
        ("toys:backwards.recall@1 >= 0", "skipped"),
        ("toys:backwards.failed_cases <= 0", "skipped"),
        # All samples of this mode ran before the stop.
        ("toys:overlap.failed_cases <= 0", "passed"),
    }
    file = json.loads((world.path / "report.json").read_text(encoding="utf-8"))
    assert file["run"]["complete"] is False
    assert file["run"]["interrupted"] == f"stopping after {ran} failures"
    result.stdout.fnmatch_lines(["toys: 3 cases,*INCOMPLETE", f"SKIPPED *: {ran} of 3 samples ran"])


def test_an_interrupt_leaves_a_partial_report(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            if text == "rain cloud":
                raise KeyboardInterrupt
            return super().query(text, mode=mode, top_k=top_k)
    """)
    result = world.pytester.runpytest_inprocess(
        "-p", "no:randomly", "-p", "no:hypothesispytest", "--heta-recipe=recipe.py:recipe",
        "--heta-gate=overlap.recall@1 >= 0", no_reraise_ctrlc=True,
    )  # fmt: skip
    assert result.ret == pytest.ExitCode.INTERRUPTED
    report = world.report()
    assert [r["case_id"] for r in report["case_results"]] == ["pie", "repair"]
    assert report["metadata"]["interrupted"] == "KeyboardInterrupt"
    assert gate_of(world)["status"] == "skipped"


def test_nothing_selected_is_no_tests_and_no_gates(world):
    result = world.run("-k", "nothing_like_that", "--heta-gate=overlap.recall@1 >= 0")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.no_fnmatch_line("*heta gates*")
    result.stdout.no_fnmatch_line("*::gate*")
    assert not (world.path / "report.json").exists()


def test_nothing_selected_is_no_tests_with_workers_too(world):
    result = world.run("-n1", "-k", "nothing_like_that", "--heta-gate=overlap.recall@1 >= 0")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_run_that_asked_nothing_leaves_the_last_report_alone(world):
    world.run()
    before = (world.path / "report.json").read_bytes()
    world.run("-k", "nothing_like_that")
    world.suite(extra="def test_plain(): pass")
    world.run("-k", "test_plain").assert_outcomes(passed=1, deselected=6)
    assert (world.path / "report.json").read_bytes() == before


def test_collecting_only_decides_no_gate_and_writes_no_report(world, count_builds):
    result = world.run("--collect-only", "-q", "--heta-gate=overlap.recall@1 >= 0")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*gate?overlap*")
    assert not (world.path / "report.json").exists()
    assert count_builds() == 0


# --- as tests ---------------------------------------------------------------------------------


def test_gates_are_tests_of_the_terminal(world):
    result = world.run(
        "-v",
        "-rA",
        "--heta-mode=overlap",
        "--heta-gate=overlap.recall@1 >= 0.9",
        "--heta-gate=overlap.ndcg@10 < 0.9",
    )
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "bench_toys.py::toys::gate?overlap.recall@1 >=? PASSED*? 80%?",
            "bench_toys.py::toys::gate?overlap.ndcg@10 <? FAILED*?100%?",
            "*= FAILURES =*",
            "*toys.gate?overlap.ndcg@10 <?*",
            "?gate-failed? toys: overlap.ndcg@10 = 1 >= 0.9 (n=3)",
            "PASSED bench_toys.py::toys::gate?overlap.recall@1 >=?",
            "FAILED bench_toys.py::toys::gate?overlap.ndcg@10 <?*",
        ]
    )


def test_several_gates_on_one_aggregate_have_ids_of_their_own(world):
    result = world.run(
        "-v",
        "--heta-mode=overlap",
        "--heta-gate=overlap.recall@1 >= 0.5",
        "--heta-gate=overlap.recall@1 >= 0.6",
    )
    result.stdout.fnmatch_lines(
        ["*::gate?overlap.recall@1 >=? PASSED*", "*::gate?overlap.recall@1 >= #2? PASSED*"]
    )


@pytest.fixture
def run_with_cache(world):
    """Return a function that runs pytest with its cache of failed tests."""

    def run(*args):
        return world.pytester.runpytest_inprocess(
            "-p",
            "no:randomly",
            "-p",
            "no:hypothesispytest",
            "--heta-recipe=recipe.py:recipe",
            *args,
        )

    return run


def last_failed(world):
    path = world.path / ".pytest_cache" / "v" / "cache" / "lastfailed"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def test_running_the_last_failures_again_after_a_failed_gate_runs_everything(world, run_with_cache):
    failed = run_with_cache("--heta-gate=backwards.recall@1 >= 0.5")
    assert failed.ret == 1
    assert last_failed(world) == {"bench_toys.py::toys::gate[backwards.recall@1 >=]": True}
    # Another threshold is the same gate.
    passed = run_with_cache("--lf", "--heta-gate=backwards.recall@1 >= 0")
    passed.assert_outcomes(passed=7)
    assert passed.ret == 0
    assert last_failed(world) == {}


def test_a_failed_case_beside_a_failed_gate_is_run_alone_and_nothing_stays_stale(
    world, run_with_cache
):
    source = (world.path / "recipe.py").read_text(encoding="utf-8")
    world.extend_recipe(STOPS)
    gate = "--heta-gate=backwards.failed_cases <= 0"
    run_with_cache(gate).assert_outcomes(passed=4, failed=3)
    world.recipe(source)
    again = run_with_cache("--lf", gate)
    again.assert_outcomes(passed=2, skipped=1, deselected=4)
    assert last_failed(world) == {}
    run_with_cache("--lf", gate).assert_outcomes(passed=7)
