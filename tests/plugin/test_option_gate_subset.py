"""``--heta-gate-subset``: gates when only a part of their planned samples ran."""

import pytest

GATE = "--heta-gate=overlap.recall@1 >= 0.9"


def gate_of(world):
    (gate,) = world.report()["gates"]
    return gate


def test_a_gate_on_a_subset_is_skipped_by_default(world):
    result = world.run(GATE, "-k", "pie", "-rs")
    result.assert_outcomes(passed=2, skipped=1, deselected=4)
    assert result.ret == 0
    gate = gate_of(world)
    assert (gate["status"], gate["reason"]) == ("skipped", "1 of 3 samples ran")
    result.stdout.fnmatch_lines(
        [
            "SKIPPED toys: overlap.recall@1 >= 0.9 (n=1): 1 of 3 samples ran",
            "*SKIPPED * bench_toys.py:*1 of 3 samples ran*",
        ]
    )


def test_decide_decides_on_what_ran_and_says_on_how_much(world):
    result = world.run(GATE, "-k", "pie", "--heta-gate-subset=decide")
    result.assert_outcomes(passed=3, deselected=4)
    gate = gate_of(world)
    assert (gate["status"], gate["value"], gate["n"]) == ("passed", 1.0, 1)
    assert gate["reason"].endswith("1 of 3 samples ran")
    result.stdout.fnmatch_lines(
        ["PASSED toys: overlap.recall@1 = 1 >= 0.9 (n=1): 1 of 3 samples ran"]
    )


def test_decide_can_fail(world):
    gate = "--heta-gate=backwards.recall@1 >= 0.9"
    result = world.run(gate, "-k", "pie", "--heta-gate-subset=decide")
    result.assert_outcomes(passed=2, failed=1, deselected=4)
    assert result.ret == 1


def test_fail_fails_though_the_value_would_do(world):
    result = world.run(GATE, "-k", "pie", "--heta-gate-subset=fail")
    result.assert_outcomes(passed=2, failed=1, deselected=4)
    assert result.ret == 1
    gate = gate_of(world)
    assert (gate["status"], gate["reason"]) == ("failed", "1 of 3 samples ran")


@pytest.mark.parametrize("policy", ["skip", "decide", "fail"])
def test_the_policy_does_not_matter_when_all_samples_ran(world, policy):
    world.run(GATE, f"--heta-gate-subset={policy}").assert_outcomes(passed=7)
    assert gate_of(world)["status"] == "passed"


def test_a_selection_that_leaves_a_mode_whole_leaves_its_gates_decided(world):
    result = world.run(GATE, "--heta-gate=backwards.recall@1 >= 0.9", "-k", "overlap")
    result.assert_outcomes(passed=4, skipped=1, deselected=3)
    assert [gate["status"] for gate in world.report()["gates"]] == ["passed", "skipped"]


@pytest.mark.parametrize(
    "selection",
    [
        ["bench_toys.py::toys::corpus::overlap[pie]"],
        ["-m", "heta(kind='food')"],
        ["--deselect=bench_toys.py::toys::corpus::overlap[rain]"],
    ],
)
def test_every_way_to_select_makes_a_subset(world, selection):
    result = world.run(GATE, *selection)
    assert result.ret == 0
    assert gate_of(world)["status"] == "skipped"


def test_ordinary_tests_alone_are_an_empty_subset(world):
    world.suite(extra="def test_plain(): pass")
    result = world.run(GATE, "-k", "test_plain")
    result.assert_outcomes(passed=1, skipped=1, deselected=6)
    result.stdout.fnmatch_lines(["SKIPPED toys: overlap.recall@1 >= 0.9 (n=0): 0 of 3 samples ran"])


def test_the_ini_key_sets_the_policy_and_the_command_line_wins(world):
    world.ini("heta_gate_subset = fail")
    assert world.run(GATE, "-k", "pie").ret == 1
    assert world.run(GATE, "-k", "pie", "--heta-gate-subset=skip").ret == 0


def test_another_policy_is_refused(world):
    error = world.usage_error("--heta-gate-subset=ignore")
    assert error == "--heta-gate-subset: 'ignore' is not one of skip, decide, fail"
    world.ini("heta_gate_subset = ignore")
    assert world.usage_error() == "heta_gate_subset: 'ignore' is not one of skip, decide, fail"
