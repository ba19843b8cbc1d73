"""``--heta-mode``: which query modes are asked."""

import pytest


def modes_asked(world):
    report = world.report()
    seen = dict.fromkeys(result["query_mode"] for result in report["case_results"])
    assert list(seen) == report["query_modes"] == list(report["mode_summaries"])
    return report["query_modes"]


def test_all_modes_of_the_recipe_are_asked_by_default(world):
    world.run().assert_outcomes(passed=6)
    assert modes_asked(world) == ["overlap", "backwards"]


def test_only_the_given_mode_is_asked(world):
    world.run("--heta-mode=backwards").assert_outcomes(passed=3)
    assert modes_asked(world) == ["backwards"]
    report = world.report()
    assert report["score_summary"]["backwards.recall@1"] == 0
    assert report["config_snapshot"]["modes"] == ["backwards"]
    assert report["metadata"]["complete"] is True


@pytest.mark.parametrize(
    "given",
    [
        ["--heta-mode=backwards", "--heta-mode=overlap"],
        ["--heta-mode=backwards,overlap"],
        ["--heta-mode= backwards , overlap,backwards"],
    ],
)
def test_several_modes_keep_their_order_and_stand_once(world, given):
    world.run(*given).assert_outcomes(passed=6)
    assert modes_asked(world) == ["backwards", "overlap"]


def test_the_ini_key_names_modes(world):
    world.ini("heta_mode = backwards")
    world.run().assert_outcomes(passed=3)
    assert modes_asked(world) == ["backwards"]


def test_the_command_line_wins_over_the_ini_file(world):
    world.ini("heta_mode = backwards")
    world.run("--heta-mode=overlap").assert_outcomes(passed=3)
    assert modes_asked(world) == ["overlap"]


def test_the_option_wins_over_the_suite(world):
    world.suite('modes=["overlap"]')
    world.run().assert_outcomes(passed=3)
    assert modes_asked(world) == ["overlap"]
    world.run("--heta-mode=backwards").assert_outcomes(passed=3)
    assert modes_asked(world) == ["backwards"]


def test_an_unknown_mode_is_refused_before_the_first_build(world, count_builds):
    error = world.usage_error("--heta-mode=overlapp")
    assert error == (
        "[mode-unknown] --heta-mode: recipe 'toy' has no mode 'overlapp'; did you mean 'overlap'? "
        "Known: overlap, backwards"
    )
    assert count_builds() == 0


def test_an_unknown_mode_of_the_ini_file_is_refused_by_its_key(world):
    world.ini("heta_mode = sideways")
    error = world.usage_error()
    assert error == (
        "[mode-unknown] heta_mode: recipe 'toy' has no mode 'sideways'; known: overlap, backwards"
    )


def test_an_empty_mode_is_refused(world):
    assert world.usage_error("--heta-mode=overlap,,backwards") == (
        "--heta-mode: 'overlap,,backwards' holds an empty mode name"
    )


def test_a_mode_that_only_the_knowledge_base_can_refuse_fails_its_cases(world):
    world.extend_recipe("del Recipe.available_queries")
    result = world.run("--heta-mode=sideways")
    result.assert_outcomes(failed=3)
    summary = world.report()["mode_summaries"]["sideways"]
    assert (summary["failed_cases"], summary["successful_cases"]) == (3, 0)
    result.stdout.fnmatch_lines(["*no mode 'sideways'; known: overlap, backwards*"])


def test_a_name_that_cannot_stand_in_a_node_id_is_refused(world):
    world.extend_recipe("del Recipe.available_queries")
    assert world.usage_error("--heta-mode=a.b") == (
        "[configuration-invalid] --heta-mode: mode name 'a.b' is not allowed; "
        "use A-Z, a-z, 0-9, _ and -"
    )
