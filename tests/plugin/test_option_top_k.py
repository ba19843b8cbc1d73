"""``--heta-top-k``: how many results are asked for."""

import pytest


def metric(world, mode, name):
    return world.report()["mode_summaries"][mode]["metrics"][name]


def depths_asked(world):
    return {top_k for _, _, top_k, _ in world.asked()}


def test_ten_results_are_asked_for_by_default(world):
    world.record_queries()
    world.run().assert_outcomes(passed=6)
    assert depths_asked(world) == {10}
    assert world.report()["config_snapshot"]["top_k"] == 10


def test_the_deepest_measure_of_the_suite_sets_the_default(world):
    world.record_queries()
    world.suite(evaluators='["recall@3", "ndcg@25"]')
    world.run().assert_outcomes(passed=6)
    assert depths_asked(world) == {25}


@pytest.mark.parametrize("arguments", ["gates=['overlap.recall@30 >= 0.5']", ""])
def test_the_deepest_gate_sets_the_default(world, arguments):
    world.record_queries()
    world.suite(arguments)
    options = [] if arguments else ["--heta-gate=overlap.recall@30 >= 0.5"]
    world.run(*options).assert_outcomes(passed=7)
    assert depths_asked(world) == {30}


def test_the_option_sets_the_depth(world):
    world.record_queries()
    world.run("--heta-top-k=2").assert_outcomes(passed=6)
    assert depths_asked(world) == {2}
    report = world.report()
    assert report["config_snapshot"]["top_k"] == 2
    assert {len(result["response"]["results"]) for result in report["case_results"]} == {2}


def test_a_measure_deeper_than_asked_has_no_value_and_says_why(world):
    world.run("--heta-top-k=2").assert_outcomes(passed=6)
    deep = metric(world, "overlap", "ndcg@10")
    assert deep["mean"] is None
    assert (deep["n"], deep["n_scored"], deep["n_skipped"]) == (3, 0, 3)
    assert deep["reasons"] == {"depth": 3}
    assert metric(world, "overlap", "recall@1")["mean"] == 1
    assert "overlap.ndcg@10" not in world.report()["score_summary"]


def test_the_depth_asked_for_counts_and_not_what_comes_back(world):
    # Four documents in the corpus: ten are asked for and four come.
    world.run("--heta-top-k=10").assert_outcomes(passed=6)
    assert metric(world, "overlap", "ndcg@10")["n_scored"] == 3


def test_the_ini_key_sets_the_depth_and_the_command_line_wins(world):
    world.record_queries()
    world.ini("heta_top_k = 3")
    world.run()
    assert depths_asked(world) == {3}
    (world.path / "asked.jsonl").unlink()
    world.run("--heta-top-k=4")
    assert depths_asked(world) == {4}


def test_the_option_wins_over_the_suite(world):
    world.record_queries()
    world.suite("top_k=3")
    world.run("-k", "pie and overlap")
    world.run("-k", "rain and overlap", "--heta-top-k=4")
    assert [(query, top_k) for query, _, top_k, _ in world.asked()] == [
        ("apple pie", 3),
        ("rain cloud", 4),
    ]


@pytest.mark.parametrize("origin", ["command line", "ini", "suite"])
def test_a_depth_below_a_gated_measure_is_refused_before_the_first_build(
    world, count_builds, origin
):
    gate = "overlap.ndcg@10 >= 0.5"
    options = []
    if origin == "command line":
        options = [f"--heta-gate={gate}"]
    elif origin == "ini":
        world.ini(f"heta_gate = {gate}")
    else:
        world.suite(f"gates=['{gate}']")
    error = world.usage_error("--heta-top-k=9", *options)
    assert "top_k = 9 is below the k of the gated metric 'ndcg@10'" in error
    assert "ask for at least 10 results" in error
    assert count_builds() == 0


def test_a_suite_that_contradicts_its_own_gate_is_refused(world):
    world.suite("top_k=9, gates=['overlap.ndcg@10 >= 0.5']")
    assert "top_k = 9 is below the k" in world.usage_error()
    world.run("--heta-top-k=10").assert_outcomes(passed=7)


@pytest.mark.parametrize("value", ["0", "-1", "ten", "1.5", ""])
def test_a_wrong_number_is_refused(world, value):
    assert world.usage_error(f"--heta-top-k={value}") == (
        f"--heta-top-k: {value!r} is not a whole number of at least 1"
    )


def test_a_wrong_number_of_the_ini_file_is_refused_by_its_key(world):
    world.ini("heta_top_k = 0")
    assert world.usage_error() == "heta_top_k: '0' is not a whole number of at least 1"
