"""What becomes of a test item, and of the run, when something goes wrong."""

import pytest

FAILING_QUERY = """
class KnowledgeBase(KnowledgeBase):
    def query(self, text, *, mode, top_k):
        if text == "bike repair" and mode == "overlap":
            raise RuntimeError("no bikes\\ntoday")
        return super().query(text, mode=mode, top_k=top_k)
"""

JUDGES = """
class Judge:
    name = "judge"

    async def evaluate(self, *, case, response):
        if case.case_id == "repair":
            raise ValueError("cannot tell")
        return 1.0


class Friendly:
    name = "friendly"

    async def evaluate(self, *, case, response):
        return case.case_id != "rain"
"""

TWO_UNITS = [
    {"case_id": "pie", "query": "apple pie", "evidence": ["apple"], "unit": "good"},
    {"case_id": "repair", "query": "bike repair", "evidence": ["bike"], "unit": "bad"},
    {"case_id": "unknown", "query": "what", "unit": "bad"},
]
for case in TWO_UNITS:
    case["documents"] = ["apple", "bike"]

FAILING_BUILD = """
class Recipe(Recipe):
    builds = 0

    def create(self, *, name, objects, source_keys, workspace):
        if "-bad-" in name:
            Recipe.builds += 1
            raise OSError(f"disk full, attempt {Recipe.builds}")
        return super().create(
            name=name, objects=objects, source_keys=source_keys, workspace=workspace
        )


recipe = Recipe()
"""

NO_GATE = "*no decided gate covers that*"


def summary(world, mode="overlap"):
    return world.report()["mode_summaries"][mode]


def result_of(world, case, mode="overlap"):
    (result,) = [
        result
        for result in world.report()["case_results"]
        if (result["case_id"], result["query_mode"]) == (case, mode)
    ]
    return result


def scores_of(result):
    return {score["name"]: score for score in result["scores"]}


# --- a query that raises ---------------------------------------------------------


@pytest.fixture
def failing_query(world):
    world.extend_recipe(FAILING_QUERY)


@pytest.mark.parametrize("fail_on", ["error", "miss"])
def test_a_query_that_raises_fails_its_item_and_no_other(world, failing_query, fail_on):
    result = world.run(f"--heta-fail-on={fail_on}", "-rf")
    result.assert_outcomes(passed=5, failed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "[[]query-failed] recipe.py:*: RuntimeError: no bikes today; --heta-debug shows*",
            "FAILED bench_toys.py::toys::corpus::overlap?repair? - *",
        ]
    )


def test_a_failed_query_counts_as_worst_and_has_no_latency(world, failing_query):
    world.run()
    counts = summary(world)
    assert (counts["total_cases"], counts["successful_cases"], counts["failed_cases"]) == (3, 2, 1)
    assert counts["failure_rate"] == pytest.approx(1 / 3)
    assert counts["scoring_errors"] == 0
    recall = counts["metrics"]["recall@1"]
    assert recall["mean"] == pytest.approx(2 / 3)
    assert (recall["n"], recall["n_scored"], recall["n_errored"]) == (3, 2, 1)
    assert recall["reasons"] == {"execution_error": 1}
    assert counts["latency"]["n"] == 2
    failed = result_of(world, "repair")
    assert failed["error"]["error_type"] == "query"
    assert failed["error"]["message"] == "RuntimeError: no bikes today"
    assert failed["error"]["metadata"]["exception"] == "RuntimeError"
    assert failed["latency_ms"] is None
    assert failed["response"] is None
    assert scores_of(failed)["recall@1"]["metadata"]["error"]["type"] == "execution_error"


def test_results_stand_in_the_order_of_the_dataset_whatever_failed(world, failing_query):
    world.run()
    order = [(r["query_mode"], r["case_id"]) for r in world.report()["case_results"]]
    assert order == [
        (mode, case) for mode in ("overlap", "backwards") for case in ("pie", "repair", "rain")
    ]


def test_a_response_that_is_none_is_an_error_of_its_case(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            return None if text == "bike repair" else super().query(text, mode=mode, top_k=top_k)
    """)
    world.run("--heta-mode=overlap").assert_outcomes(passed=2, failed=1)
    assert result_of(world, "repair")["error"]["error_type"] == "response_invalid"
    assert summary(world)["failed_cases"] == 1


def test_no_result_is_an_honest_zero(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            if text == "bike repair":
                return {"results": []}
            return super().query(text, mode=mode, top_k=top_k)
    """)
    world.run("--heta-mode=overlap").assert_outcomes(passed=3)
    counts = summary(world)
    assert counts["failed_cases"] == 0
    assert counts["metrics"]["recall@1"]["mean"] == pytest.approx(2 / 3)
    assert counts["metrics"]["recall@1"]["n_scored"] == 3
    assert scores_of(result_of(world, "repair"))["recall@1"]["value"] == 0


# --- an evaluator that raises ------------------------------------------------------


@pytest.fixture
def judged(world):
    world.suite(before=JUDGES, evaluators='["recall@1", Judge()]')


@pytest.mark.parametrize("fail_on", ["error", "miss"])
def test_an_evaluator_that_raises_loses_one_score_and_fails_the_item(world, judged, fail_on):
    result = world.run("--heta-mode=overlap", f"--heta-fail-on={fail_on}")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["[[]evaluator-failed] score judge, bench_toys.py:*: ValueError: *cannot tell; --heta-*"]
    )
    scores = scores_of(result_of(world, "repair"))
    assert scores["judge"]["value"] is None
    assert scores["judge"]["metadata"]["error"]["type"] == "ValueError"
    assert scores["recall@1"]["value"] == 1


def test_a_lost_score_is_no_failed_case_and_keeps_its_latency(world, judged):
    world.run("--heta-mode=overlap")
    counts = summary(world)
    assert (counts["failed_cases"], counts["failure_rate"], counts["scoring_errors"]) == (0, 0, 1)
    assert counts["latency"]["n"] == 3
    assert result_of(world, "repair")["latency_ms"] > 0
    assert result_of(world, "repair")["error"] is None
    judge = counts["metrics"]["judge"]
    assert judge["mean"] == pytest.approx(2 / 3)
    assert (judge["n"], judge["n_scored"], judge["n_errored"]) == (3, 2, 1)
    assert judge["reasons"] == {"ValueError": 1}


# --- misses ------------------------------------------------------------------------


def test_a_bad_value_is_no_miss_without_a_threshold(world):
    world.suite(evaluators='["recall@1"]')
    world.run("--heta-fail-on=miss").assert_outcomes(passed=6)


def test_a_value_at_its_threshold_is_no_miss(world):
    world.suite(evaluators='["recall@1>=1", "ndcg@10>=0.43067655807339306"]')
    world.run("--heta-fail-on=miss", "--heta-mode=overlap").assert_outcomes(passed=3)


def test_a_boolean_evaluator_gives_its_value_as_verdict(world):
    world.suite(before=JUDGES, evaluators="[Friendly()]")
    result = world.run("--heta-fail-on=miss", "--heta-mode=overlap")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["missed: friendly = False"])
    metric = summary(world)["metrics"]["friendly"]
    assert metric["mean"] == pytest.approx(2 / 3)
    assert metric["n_passed"] == 2


def test_a_case_that_is_not_judged_is_no_miss(world):
    world.dataset([{"case_id": "open", "query": "apple"}])
    world.suite(evaluators='["recall@1>=0.5", "answer_contains"]')
    world.run("--heta-fail-on=miss", "--heta-mode=overlap").assert_outcomes(passed=1)
    metrics = summary(world)["metrics"]
    assert (metrics["recall@1"]["n_unjudged"], metrics["answer_contains"]["n_skipped"]) == (1, 1)


# --- only gates ---------------------------------------------------------------------


def test_errors_pass_as_expected_failures_when_only_gates_fail(world, failing_query):
    result = world.run("--heta-fail-on=gate", "--heta-gate=overlap.failure_rate <= 0.4", "-rx")
    result.assert_outcomes(passed=5 + 1, xfailed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["XFAIL *::overlap?repair? - ?query-failed? recipe.py:*: RuntimeError: no bikes*"]
    )


def test_errors_that_no_gate_covers_fail_the_run(world, failing_query):
    result = world.run("--heta-fail-on=gate", "-v")
    result.assert_outcomes(passed=5, xfailed=1, failed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "bench_toys.py::toys::errors?overlap? FAILED *?100%?",
            "*toys: overlap: 1 of 3 samples failed, and no decided gate covers that*",
            "FAILED bench_toys.py::toys::errors?overlap?*",
        ]
    )


@pytest.mark.parametrize("aggregate", ["failure_rate", "failed_cases"])
def test_a_gate_that_judges_failures_covers_them_whichever_way_it_decides(
    world, failing_query, aggregate
):
    held = world.run("--heta-fail-on=gate", f"--heta-gate=overlap.{aggregate} <= 1")
    held.assert_outcomes(passed=6, xfailed=1)
    assert held.ret == 0
    broken = world.run("--heta-fail-on=gate", f"--heta-gate=overlap.{aggregate} <= 0")
    broken.assert_outcomes(passed=5, xfailed=1, failed=1)
    assert broken.ret == 1
    broken.stdout.no_fnmatch_line(NO_GATE)


@pytest.mark.parametrize(
    "gate",
    [
        "overlap.recall@1 >= 0",
        "overlap.scoring_errors <= 3",
        "backwards.failure_rate <= 1",
        "overlap.failure_rate >= 0",
        "overlap.successful_cases <= 3",
        "overlap.n_errored(recall@1) <= 3",
    ],
)
def test_a_gate_about_something_else_does_not_cover_failures(world, failing_query, gate):
    result = world.run("--heta-fail-on=gate", f"--heta-gate={gate}")
    result.assert_outcomes(passed=5 + 1, xfailed=1, failed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines([NO_GATE])


def test_a_gate_that_was_not_decided_does_not_cover_failures(world, failing_query):
    result = world.run(
        "--heta-fail-on=gate", "--heta-gate=overlap.failure_rate <= 1", "-k", "repair"
    )
    result.assert_outcomes(passed=1, xfailed=1, skipped=1, failed=1, deselected=4)
    assert result.ret == 1


def test_no_gates_cover_nothing(world, failing_query):
    gate = "--heta-gate=overlap.failure_rate <= 1"
    result = world.run("--heta-fail-on=gate", gate, "--heta-no-gates")
    result.assert_outcomes(passed=5, xfailed=1, failed=1)
    assert result.ret == 1


def test_lost_scores_need_a_gate_of_their_own(world, judged):
    result = world.run("--heta-fail-on=gate", "--heta-gate=*.failure_rate <= 1")
    result.assert_outcomes(passed=4 + 2, xfailed=2, failed=2)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*toys: overlap: 1 score was lost to evaluators' errors*"])
    covered = world.run("--heta-fail-on=gate", "--heta-gate=*.scoring_errors <= 1")
    covered.assert_outcomes(passed=4 + 2, xfailed=2)
    assert covered.ret == 0


def test_the_lost_scores_of_one_metric_do_not_speak_for_another(world, judged):
    result = world.run("--heta-fail-on=gate", "--heta-gate=*.n_errored(recall@1) <= 0")
    assert result.ret == 1


def test_only_gates_may_be_said_by_the_suite(world, failing_query):
    world.suite("fail_on='gate', gates=['overlap.failure_rate <= 0.4']")
    result = world.run()
    result.assert_outcomes(passed=6, xfailed=1)
    assert result.ret == 0


def test_only_gates_is_never_implied_by_a_gate(world, failing_query):
    result = world.run("--heta-gate=overlap.failure_rate <= 1")
    result.assert_outcomes(passed=6, failed=1)
    assert result.ret == 1


def test_a_run_without_errors_needs_no_gate(world):
    result = world.run("--heta-fail-on=gate")
    result.assert_outcomes(passed=6)
    assert result.ret == 0


# --- a build that fails --------------------------------------------------------------


@pytest.fixture
def failing_build(world):
    world.dataset(TWO_UNITS)
    world.extend_recipe(FAILING_BUILD)


def test_a_build_that_fails_errors_its_own_samples_and_the_others_go_on(world, failing_build):
    result = world.run("--heta-mode=overlap")
    result.assert_outcomes(passed=1, errors=2)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["?build-failed? recipe.py:*: run unit bad: OSError: disk full, attempt 1; --heta-*"]
    )
    counts = summary(world)
    assert (counts["total_cases"], counts["successful_cases"], counts["failed_cases"]) == (3, 1, 2)
    assert [build["error"] is None for build in world.report()["unit_builds"]] == [True, False]
    failed = result_of(world, "repair")
    assert failed["error"]["error_type"] == "build"
    assert "disk full" in failed["error"]["message"]


def test_a_build_that_failed_is_not_tried_again(world, failing_build):
    world.run().assert_outcomes(passed=2, errors=4)
    for case in ("repair", "unknown"):
        for mode in ("overlap", "backwards"):
            assert "attempt 1" in result_of(world, case, mode)["error"]["message"]


@pytest.mark.parametrize(
    ("raised", "text"),
    [("SystemExit(3)", "SystemExit: 3"), ("asyncio.CancelledError", "CancelledError")],
)
def test_a_build_that_gives_up_the_process_fails_like_any_other(world, raised, text):
    world.extend_recipe(f"""
        import asyncio


        class Recipe(Recipe):
            def create(self, **given):
                raise {raised}


        recipe = Recipe()
    """)
    world.run().assert_outcomes(errors=6)
    messages = {result["error"]["message"] for result in world.report()["case_results"]}
    assert messages == {f"[build-failed] run unit corpus: {text}"}


def test_a_recipe_may_skip_the_tests_of_a_unit(world):
    world.extend_recipe("""
        import pytest


        class Recipe(Recipe):
            def create(self, **given):
                pytest.skip("no GPU")


        recipe = Recipe()
    """)
    world.run().assert_outcomes(skipped=6)
    assert world.report()["metadata"]["complete"] is False


def test_what_does_not_apply_to_a_case_is_no_zero_when_its_build_fails(world, failing_build):
    world.suite(evaluators='["recall@1", "answer_contains"]')
    world.run("--heta-mode=overlap")
    metrics = summary(world)["metrics"]
    recall = metrics["recall@1"]
    assert (recall["n_scored"], recall["n_errored"], recall["n_unjudged"]) == (1, 1, 1)
    assert recall["mean"] == 0.5
    answers = metrics["answer_contains"]
    assert (answers["n"], answers["n_skipped"], answers["n_errored"]) == (3, 3, 0)
    assert answers["mean"] is None
    assert scores_of(result_of(world, "unknown"))["recall@1"]["metadata"]["unjudged"] is True


def test_a_measure_deeper_than_asked_is_skipped_also_when_the_build_fails(world, failing_build):
    world.run("--heta-mode=overlap", "--heta-top-k=5")
    deep = summary(world)["metrics"]["ndcg@10"]
    assert (deep["n_skipped"], deep["n_unjudged"], deep["n_errored"]) == (2, 1, 0)


def test_failed_builds_are_expected_failures_when_only_gates_fail(world, failing_build):
    result = world.run(
        "--heta-fail-on=gate", "--heta-mode=overlap", "--heta-gate=overlap.failure_rate <= 0.7"
    )
    result.assert_outcomes(passed=1 + 1, xfailed=2)
    assert result.ret == 0


def test_a_fixture_that_fails_to_make_a_knowledge_base_is_counted(world):
    world.pytester.makeconftest("""
        import pytest

        @pytest.fixture(scope="class")
        def heta_kb(heta_unit):
            raise ConnectionError("the staging system is down")
    """)
    result = world.run("--heta-mode=overlap")
    result.assert_outcomes(errors=3)
    counts = summary(world)
    assert (counts["failed_cases"], counts["failure_rate"]) == (3, 1)
    assert counts["metrics"]["recall@1"]["mean"] == 0
    error = result_of(world, "pie")["error"]
    assert error["error_type"] == "build"
    assert error["message"] == "ConnectionError: the staging system is down"


def test_a_fixture_that_fails_is_an_expected_failure_when_only_gates_fail(world):
    world.pytester.makeconftest("""
        import pytest

        @pytest.fixture
        def heta_case(heta_case):
            if heta_case.case.case_id == "rain":
                raise ConnectionError("the staging system is down")
            return heta_case
    """)
    result = world.run(
        "--heta-fail-on=gate", "--heta-mode=overlap", "--heta-gate=*.failed_cases <= 1", "-rx"
    )
    result.assert_outcomes(passed=2 + 1, xfailed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["XFAIL *?rain? - ?build-failed? conftest.py:6: ConnectionError: the staging system*"]
    )


def test_an_item_that_is_skipped_has_no_result(world):
    world.pytester.makeconftest("""
        import pytest

        @pytest.fixture
        def heta_case(heta_case):
            if heta_case.case.case_id == "rain":
                pytest.skip("not today")
            return heta_case
    """)
    result = world.run("--heta-mode=overlap", "--heta-gate=overlap.recall@1 >= 1")
    result.assert_outcomes(passed=2, skipped=2)
    report = world.report()
    assert [r["case_id"] for r in report["case_results"]] == ["pie", "repair"]
    assert report["metadata"]["complete"] is False
    assert report["gates"][0]["status"] == "skipped"


def test_a_knowledge_base_that_cannot_be_closed_does_not_spoil_the_results(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def close(self):
            raise OSError("still busy")
    """)
    result = world.run("--heta-mode=overlap")
    assert summary(world)["failed_cases"] == 0
    assert result.ret == 0
    warning = "[close-failed] run unit corpus could not be closed: OSError: still busy"
    assert world.report()["metadata"]["warnings"] == [warning]
    assert f"warning: {warning}" in result.outlines


# --- a suite that is declared wrongly -------------------------------------------------

WRONG_SUITES = [
    ("modes=['overlapp']", '["recall@1"]', "has no mode 'overlapp'; did you mean 'overlap'?"),
    ("", '["recal@1"]', "did you mean 'recall@1'"),
    ("", '["recall@1", "recall@1"]', "evaluator 'recall@1' stands twice"),
]


@pytest.mark.parametrize(("arguments", "evaluators", "problem"), WRONG_SUITES)
def test_a_suite_that_is_declared_wrongly_is_a_usage_error(
    world, count_builds, arguments, evaluators, problem
):
    world.suite(arguments, evaluators=evaluators)
    assert problem in world.usage_error()
    assert count_builds() == 0


def test_all_wrong_suites_are_named(world):
    world.suite(
        "modes=['overlapp']", extra="more = suite(toys.benchmark, name='more', modes=['x'])"
    )
    result = world.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert ["'overlapp'" in errors[0], "'x'" in errors[1], len(errors)] == [True, True, 2]


def test_a_suite_that_is_declared_wrongly_is_a_usage_error_with_workers_too(world, count_builds):
    world.suite("modes=['overlapp']")
    assert "did you mean 'overlap'?" in world.usage_error("-n2")
    assert count_builds() == 0


def test_wrong_data_is_a_collection_error_and_other_benchmarks_can_go_on(world):
    world.dataset(name="more", cases=[{"case_id": "x"}])
    world.suite(extra="more = suite(JsonlBenchmark(Path(__file__).parent / 'more', name='more'))")
    result = world.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*more/cases.jsonl:1: *query*"])
    goes_on = world.run("--continue-on-collection-errors", "--heta-gate=toys:*.recall@1 >= 0")
    goes_on.assert_outcomes(passed=6 + 2, errors=1)
    assert goes_on.ret == 1


def test_a_gate_on_a_benchmark_that_cannot_be_collected_does_not_hide_why(world):
    world.dataset(cases=[{"case_id": "x"}])
    world.dataset(name="more")
    world.suite(extra="more = suite(JsonlBenchmark(Path(__file__).parent / 'more', name='more'))")
    result = world.run("--heta-gate=toys:overlap.recall@1 >= 0")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*toys/cases.jsonl:1: *query*"])
