"""``--heta-require-gates``: a run whose gates were not all decided fails."""

GATE = "--heta-gate=overlap.recall@1 >= 0.9"


def test_an_undecided_gate_fails_the_run(world):
    result = world.run(GATE, "-k", "pie", "--heta-require-gates")
    result.assert_outcomes(passed=2, failed=1, deselected=4)
    assert result.ret == 1
    (gate,) = world.report()["gates"]
    assert gate["status"] == "skipped"
    result.stdout.fnmatch_lines(["FAILED bench_toys.py::toys::gate?overlap.recall@1 >=?*"])


def test_without_the_option_it_does_not(world):
    assert world.run(GATE, "-k", "pie").ret == 0


def test_decided_gates_pass(world):
    world.run(GATE, "--heta-require-gates").assert_outcomes(passed=7)


def test_there_need_not_be_a_gate(world):
    assert world.run("--heta-require-gates").ret == 0


def test_ordinary_tests_alone_decide_nothing(world):
    world.suite(extra="def test_plain(): pass")
    result = world.run(GATE, "-k", "test_plain", "--heta-require-gates")
    result.assert_outcomes(passed=1, failed=1, deselected=6)
    assert result.ret == 1


def test_a_gate_on_a_mode_that_this_run_leaves_out_is_not_decided(world):
    world.suite("gates=['overlap.recall@1 >= 0.9']")
    result = world.run("--heta-mode=backwards")
    result.assert_outcomes(passed=3, skipped=1)
    assert world.report()["gates"][0]["reason"] == "mode not in this run"
    assert world.run("--heta-mode=backwards", "--heta-require-gates").ret == 1


def test_the_ini_key_requires_gates(world):
    world.ini("heta_require_gates = true")
    assert world.run(GATE, "-k", "pie").ret == 1
    assert world.run(GATE, "-k", "pie", "-o", "heta_require_gates=false").ret == 0


def test_requiring_gates_and_deciding_none_is_refused(world):
    error = world.usage_error("--heta-require-gates", "--heta-no-gates")
    assert error == "--heta-no-gates and --heta-require-gates: only one of the two may be given"
