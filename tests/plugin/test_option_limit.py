"""``--heta-limit``: only the first cases of each benchmark."""

import pytest

UNIT_CASES = [
    {"case_id": "a1", "query": "apple pie", "evidence": ["apple"], "unit": "one"},
    {"case_id": "a2", "query": "bike", "evidence": ["bike"], "unit": "one"},
    {"case_id": "b1", "query": "rain", "evidence": ["cloud"], "unit": "two"},
]
for case in UNIT_CASES:
    case["documents"] = ["apple", "bike", "cloud"]


def cases_of(report):
    return list(dict.fromkeys(result["case_id"] for result in report["case_results"]))


def test_the_first_cases_of_each_benchmark_run(world):
    world.dataset(name="more")
    world.suite(extra="more = suite(JsonlBenchmark(Path(__file__).parent / 'more', name='more'))")
    world.run("--heta-limit=2").assert_outcomes(passed=8)
    for report in world.reports():
        assert cases_of(report) == ["pie", "repair"]
        assert report["metadata"]["planned_cases"] == 2
        assert report["metadata"]["dataset_cases"] == 3
        assert report["metadata"]["complete"] is True


def test_the_corpus_is_untouched(world):
    world.run("--heta-limit=1").assert_outcomes(passed=2)
    (build,) = world.report()["unit_builds"]
    assert build["document_count"] == 4
    assert len(world.report()["case_results"][0]["response"]["results"]) == 4


def test_a_unit_without_planned_cases_is_not_built(world, count_builds):
    world.dataset(UNIT_CASES)
    world.run("--heta-limit=2").assert_outcomes(passed=4)
    assert count_builds() == 1
    assert [build["unit_id"] for build in world.report()["unit_builds"]] == ["one"]


def test_the_table_says_how_many_of_how_many_cases(world):
    world.run("--heta-limit=2").stdout.fnmatch_lines(["toys: 2 of 3 cases,*"])


def test_a_limit_above_the_number_of_cases_runs_all(world):
    result = world.run("--heta-limit=99")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["toys: 3 cases,*"])


def test_the_ini_key_limits_and_the_command_line_wins(world):
    world.ini("heta_limit = 1")
    world.run().assert_outcomes(passed=2)
    world.run("--heta-limit=2").assert_outcomes(passed=4)


@pytest.mark.parametrize("value", ["0", "-3", "few"])
def test_a_wrong_number_is_refused(world, value):
    assert world.usage_error(f"--heta-limit={value}") == (
        f"--heta-limit: {value!r} is not a whole number of at least 1"
    )


def test_a_wrong_number_of_the_ini_file_is_refused_by_its_key(world):
    world.ini("heta_limit = few")
    assert world.usage_error() == "heta_limit: 'few' is not a whole number of at least 1"


def test_limit_and_sample_together_are_refused(world):
    error = world.usage_error("--heta-limit=1", "--heta-sample=1")
    assert error == "--heta-limit and --heta-sample: only one of the two may be given"


@pytest.mark.parametrize(("ini", "option"), [("limit", "sample"), ("sample", "limit")])
def test_the_command_line_wins_over_the_other_of_the_two_in_the_ini_file(world, ini, option):
    world.ini(f"heta_{ini} = 1")
    world.run(f"--heta-{option}=2").assert_outcomes(passed=4)
