"""``--heta-sample`` and ``--heta-seed``: cases chosen at random, the same every time."""

import os
import random

import pytest

CASES = [
    {"case_id": f"case{number:02}", "query": "apple pie", "evidence": ["apple"]}
    for number in range(20)
]


@pytest.fixture(autouse=True)
def many_cases(world):
    world.dataset(CASES)


def chosen(world, *options):
    result = world.run("--heta-mode=overlap", *options)
    report = world.report()
    cases = [result["case_id"] for result in report["case_results"]]
    result.assert_outcomes(passed=len(cases))
    return cases


def test_so_many_different_cases_run_in_the_order_of_the_dataset(world):
    cases = chosen(world, "--heta-sample=6")
    assert len(cases) == len(set(cases)) == 6
    assert cases == sorted(cases)
    assert cases != [case["case_id"] for case in CASES[:6]]


def test_the_choice_is_the_same_every_time_and_the_seed_is_zero(world):
    first = chosen(world, "--heta-sample=6")
    random.seed(os.urandom(8))
    assert chosen(world, "--heta-sample=6", "--heta-seed=0") == first


def test_the_choice_does_not_depend_on_the_hash_seed_or_the_version(world):
    assert chosen(world, "--heta-sample=3", "--heta-seed=1") == ["case13", "case15", "case16"]


def test_another_seed_chooses_other_cases(world):
    assert chosen(world, "--heta-sample=6", "--heta-seed=5") != chosen(world, "--heta-sample=6")


def test_a_sample_as_large_as_the_dataset_is_the_dataset(world):
    assert chosen(world, "--heta-sample=20") == [case["case_id"] for case in CASES]
    assert len(chosen(world, "--heta-sample=21")) == 20


def test_the_report_says_that_the_plan_was_reduced(world):
    chosen(world, "--heta-sample=6")
    metadata = world.report()["metadata"]
    assert (metadata["planned_cases"], metadata["dataset_cases"]) == (6, 20)
    assert metadata["reduced"] is True
    assert metadata["complete"] is True


def test_the_ini_keys_choose_and_the_command_line_wins(world):
    by_option = chosen(world, "--heta-sample=4", "--heta-seed=9")
    world.ini("heta_sample = 4", "heta_seed = 9")
    assert chosen(world) == by_option
    assert len(chosen(world, "--heta-sample=2")) == 2
    assert chosen(world, "--heta-seed=10") != by_option


@pytest.mark.parametrize(
    ("option", "value", "least"),
    [("sample", "0", 1), ("sample", "some", 1), ("seed", "-1", 0), ("seed", "x", 0)],
)
def test_a_wrong_number_is_refused(world, option, value, least):
    assert world.usage_error(f"--heta-{option}={value}") == (
        f"--heta-{option}: {value!r} is not a whole number of at least {least}"
    )
