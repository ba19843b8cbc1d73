"""``--heta-fail-on``: what fails a test item, and where it is said."""

import pytest


@pytest.fixture(autouse=True)
def suite_with_a_threshold(world):
    # backwards misses in all three cases, overlap in none.
    world.suite(evaluators='["recall@1>=0.5"]')


def test_a_miss_fails_nothing_by_default(world):
    world.run().assert_outcomes(passed=6)
    summary = world.report()["mode_summaries"]["backwards"]["metrics"]["recall@1"]
    assert (summary["mean"], summary["n_passed"]) == (0, 0)


def test_a_miss_fails_the_item_when_asked_for(world):
    result = world.run("--heta-fail-on=miss")
    result.assert_outcomes(passed=3, failed=3)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["missed: recall@1 = 0.0"])
    summary = world.report()["mode_summaries"]["backwards"]
    assert (summary["failed_cases"], summary["scoring_errors"]) == (0, 0)


def test_the_suite_says_it(world):
    world.suite("fail_on='miss'", evaluators='["recall@1>=0.5"]')
    world.run().assert_outcomes(passed=3, failed=3)


def test_the_ini_key_says_it(world):
    world.ini("heta_fail_on = miss")
    world.run().assert_outcomes(passed=3, failed=3)


def test_the_option_wins_over_suite_and_ini_file(world):
    world.suite("fail_on='miss'", evaluators='["recall@1>=0.5"]')
    world.ini("heta_fail_on = miss")
    world.run("--heta-fail-on=error").assert_outcomes(passed=6)
    world.run("--heta-fail-on=gate").assert_outcomes(passed=6)


def test_another_value_is_refused(world):
    error = world.usage_error("--heta-fail-on=never")
    assert error == "--heta-fail-on: 'never' is not one of error, miss, gate"
    world.ini("heta_fail_on = never")
    assert world.usage_error() == "heta_fail_on: 'never' is not one of error, miss, gate"


def test_another_value_of_a_suite_is_refused(world):
    world.suite("fail_on='never'")
    error = world.usage_error()
    assert error.endswith("suite: fail_on = 'never' is not allowed; use error, miss or gate")


def test_what_no_gate_sees_fails_whatever_the_option_says(world):
    world.pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_call():
            yield
            raise ValueError("somebody else's")
        """
    )
    result = world.run("--heta-fail-on=gate", "--heta-mode=overlap", "--heta-limit=1")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ValueError: somebody else's"])
