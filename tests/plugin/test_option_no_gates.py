"""``--heta-no-gates``: no gate is decided."""

LOSING = "backwards.recall@1 >= 0.9"


def test_no_gate_of_any_origin_is_decided(world):
    world.ini(f"heta_gate = {LOSING}")
    world.suite(f"gates=['{LOSING}']")
    assert world.run(f"--heta-gate={LOSING}").ret == 1
    result = world.run(f"--heta-gate={LOSING}", "--heta-no-gates")
    result.assert_outcomes(passed=6)
    assert result.ret == 0
    assert world.report()["gates"] == []
    result.stdout.no_fnmatch_line("*heta gates*")


def test_the_measures_of_gates_are_still_computed(world):
    world.suite("gates=['overlap.mrr@5 >= 0.9']")
    world.run("--heta-no-gates", "--heta-gate=overlap.mrr@4 >= 0.9").assert_outcomes(passed=6)
    assert world.report()["score_summary"]["overlap.mrr@5"] == 1
    assert world.report()["score_summary"]["overlap.mrr@4"] == 1


def test_a_gate_that_cannot_be_parsed_is_refused_all_the_same(world):
    assert "there is no operator" in world.usage_error("--heta-no-gates", "--heta-gate=a.b")


def test_the_ini_key_decides_no_gate(world):
    world.ini("heta_no_gates = true")
    world.run(f"--heta-gate={LOSING}").assert_outcomes(passed=6)
    world.run(f"--heta-gate={LOSING}", "-o", "heta_no_gates=false").assert_outcomes(
        passed=6, failed=1
    )
