"""``--heta-gate``: where gates come from, and what is refused as one."""

import pytest


def gates(world):
    return [(gate["gate"], gate["origin"], gate["status"]) for gate in world.report()["gates"]]


def test_a_gate_of_the_command_line_is_decided(world):
    result = world.run("--heta-gate=overlap.recall@1 >= 0.9")
    result.assert_outcomes(passed=7)
    assert result.ret == 0
    assert gates(world) == [("toys:overlap.recall@1 >= 0.9", "command line", "passed")]


def test_the_option_repeats(world):
    result = world.run(
        "--heta-gate=overlap.recall@1 >= 0.9", "--heta-gate=backwards.recall@1 >= 0.9"
    )
    result.assert_outcomes(passed=7, failed=1)
    assert result.ret == 1
    assert [status for *_, status in gates(world)] == ["passed", "failed"]


def test_the_ini_key_takes_one_gate_a_line(world):
    world.ini("heta_gate =", "    overlap.recall@1 >= 0.9", "    *.failure_rate <= 0")
    world.run().assert_outcomes(passed=9)
    assert gates(world) == [
        ("toys:overlap.recall@1 >= 0.9", "ini", "passed"),
        ("toys:overlap.failure_rate <= 0", "ini", "passed"),
        ("toys:backwards.failure_rate <= 0", "ini", "passed"),
    ]


def test_gates_of_all_origins_apply_and_none_loosens_another(world):
    world.ini("heta_gate = backwards.ndcg@10 >= 0.3")
    world.suite("gates=['backwards.ndcg@10 >= 0.9']")
    result = world.run("--heta-gate=backwards.ndcg@10 >= 0.2")
    result.assert_outcomes(passed=6 + 2, failed=1)
    assert result.ret == 1
    assert gates(world) == [
        ("toys:backwards.ndcg@10 >= 0.2", "command line", "passed"),
        ("toys:backwards.ndcg@10 >= 0.3", "ini", "passed"),
        ("toys:backwards.ndcg@10 >= 0.9", "suite", "failed"),
    ]
    result.stdout.fnmatch_lines(
        [
            "*heta gates*",
            "PASSED toys: backwards.ndcg@10 = 0.4307 >= 0.2 (n=3)",
            "PASSED toys: backwards.ndcg@10 = 0.4307 >= 0.3 (n=3)",
            "FAILED toys: backwards.ndcg@10 = 0.4307 < 0.9 (n=3)",
        ]
    )


def test_a_gate_of_a_suite_is_about_its_own_benchmark(world):
    world.dataset(name="more")
    world.suite(
        "gates=['overlap.recall@1 >= 0.9']",
        extra="""
        more = suite(
            JsonlBenchmark(Path(__file__).parent / "more", name="more"), evaluators=["recall@1"]
        )
        """,
    )
    world.run().assert_outcomes(passed=13)
    assert [len(report["gates"]) for report in world.reports()] == [1, 0]


def test_a_measure_that_only_a_gate_names_is_computed(world):
    world.run("--heta-gate=overlap.mrr@5 >= 1").assert_outcomes(passed=7)
    assert world.report()["score_summary"]["overlap.mrr@5"] == 1


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        ("overlap.recall@1", "there is no operator; the operators are >= > <= < =="),
        ("overlap.recall@1 => 0.5", "'=>' is not an operator; the operators are >= > <= < =="),
        ("overlap.recall@1 != 0.5", "'!=' is not an operator; the operators are >= > <= < =="),
        ("overlap.recall@1 >=", "there is no threshold behind the operator"),
        ("overlap.recall@1 >= high", "'high' is not a threshold; write a number, 'baseline'"),
        ("overlap.recall@1 >= 80%", "'80%' is not a threshold; write 0.8;"),
        ("overlap >= 0.5", "before the operator stand a mode, a dot and a metric"),
        ("overlap.median(recall@1) >= 0.5", "'median' is not an aggregate of a metric"),
    ],
)
def test_what_is_no_gate_is_refused(world, gate, problem):
    error = world.usage_error(f"--heta-gate={gate}")
    assert error.startswith(f"[gate-invalid] --heta-gate: gate {gate!r}: {problem}")


def test_what_is_no_gate_in_the_ini_file_is_refused_by_its_key(world):
    world.ini("heta_gate = overlap.recall@1")
    assert world.usage_error().startswith("[gate-invalid] heta_gate: gate 'overlap.recall@1': ")


@pytest.mark.parametrize("key", ["gate", "mode", "option", "recipe", "report"])
def test_a_number_in_a_list_of_toml_is_refused_by_its_key(world, key):
    world.pytester.makepyprojecttoml(f"[tool.pytest.ini_options]\nheta_{key} = [1.5]\n")
    error = world.usage_error(recipe=None if key == "recipe" else "recipe.py:recipe")
    assert f"heta_{key}" in error.partition(": ")[0]


def test_what_is_no_gate_in_a_suite_is_refused_by_its_place(world):
    world.suite("gates=['overlap.recall@1']")
    error = world.usage_error()
    assert error.startswith("[gate-invalid] bench_toys.py:5: gate 'overlap.recall@1': there is no")


@pytest.mark.parametrize(
    ("gate", "form"),
    [
        ("overlap.recall@1 >= baseline", "a baseline as threshold"),
        ("overlap.recall@1 >= baseline - 0.02", "a baseline as threshold"),
        ("overlap.recall@1 >= baseline ± 5%", "a baseline as threshold"),
        ("overlap.ci_low(recall@1) >= 0.5", "ci_low(…)"),
        ("overlap.recall@1{kind=food} >= 0.5", "a label"),
    ],
)
def test_a_form_that_is_not_built_yet_says_so(world, count_builds, gate, form):
    error = world.usage_error(f"--heta-gate={gate}")
    assert f"[gate-invalid] gate {gate!r}: {form} is not available yet; " in error
    assert count_builds() == 0


def test_a_gate_without_any_benchmark_is_refused(world):
    world.pytester.makepyfile(test_plain="def test_plain(): pass")
    error = world.usage_error("test_plain.py", "--heta-gate=overlap.recall@1 >= 0.5")
    assert error == "--heta-gate: no benchmark is planned; name a suite file or a dataset folder"


def test_a_gate_of_the_ini_file_does_not_keep_ordinary_tests_from_running(world):
    world.pytester.makepyfile(test_plain="def test_plain(): pass")
    world.ini("heta_gate = overlap.recall@1 >= 0.5", "heta_require_gates = true")
    world.run("test_plain.py").assert_outcomes(passed=1)
