"""``--heta-option``: options that go to the knowledge base with each query."""

import pytest


def options_asked(world):
    (first, *others) = [options for _, _, _, options in world.asked()]
    assert all(options == first for options in others)
    return first


@pytest.fixture(autouse=True)
def recorded(world):
    world.record_queries()


def test_there_are_no_options_by_default(world):
    world.run().assert_outcomes(passed=6)
    assert options_asked(world) == {}
    assert world.report()["config_snapshot"]["options"] == {}


def test_values_are_read_as_json_where_they_are_json(world):
    world.run(
        "--heta-option=rrf_k=30",
        "--heta-option= weight = 0.5 ",
        "--heta-option=rerank=true",
        "--heta-option=none=null",
        '--heta-option=filter={"kind": ["a", "b"]}',
        '--heta-option=quoted="30"',
        "--heta-option=name=bm25",
        "--heta-option=expression=a=b",
        "--heta-option=empty=",
    ).assert_outcomes(passed=6)
    expected = {
        "rrf_k": 30,
        "weight": 0.5,
        "rerank": True,
        "none": None,
        "filter": {"kind": ["a", "b"]},
        "quoted": "30",
        "name": "bm25",
        "expression": "a=b",
        "empty": "",
    }
    assert options_asked(world) == expected
    assert world.report()["config_snapshot"]["options"] == expected


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_in_json_is_text(world, value):
    world.run(f"--heta-option=x={value}").assert_outcomes(passed=6)
    assert world.report()["config_snapshot"]["options"] == {"x": value}


def test_the_last_value_of_a_key_holds(world):
    world.run("--heta-option=a=1", "--heta-option=a=2").assert_outcomes(passed=6)
    assert options_asked(world) == {"a": 2}


def test_the_ini_key_takes_one_option_a_line(world):
    world.ini("heta_option =", "    rrf_k=30", "    name=bm25")
    world.run().assert_outcomes(passed=6)
    assert options_asked(world) == {"rrf_k": 30, "name": "bm25"}


def test_the_command_line_wins_over_the_ini_file(world):
    world.ini("heta_option = rrf_k=30")
    world.run("--heta-option=rrf_k=60").assert_outcomes(passed=6)
    assert options_asked(world) == {"rrf_k": 60}


def test_the_option_wins_over_the_suite_key_by_key(world):
    world.suite("options={'rrf_k': 1, 'kept': 2}")
    world.run("--heta-option=rrf_k=60").assert_outcomes(passed=6)
    assert options_asked(world) == {"rrf_k": 60, "kept": 2}


@pytest.mark.parametrize("value", ["rrf_k", "=30", " =30", ""])
def test_what_is_not_key_and_value_is_refused(world, value):
    assert world.usage_error(f"--heta-option={value}") == (
        f"--heta-option: {value!r} is not of the form KEY=VALUE"
    )


def test_a_wrong_option_of_the_ini_file_is_refused_by_its_key(world):
    world.ini("heta_option = rrf_k")
    assert world.usage_error() == "heta_option: 'rrf_k' is not of the form KEY=VALUE"


def test_a_value_too_deep_for_json_is_text(world):
    deep = "[" * 20_000
    result = world.run("--heta-mode=overlap", "--heta-limit=1", f"--heta-option=depth={deep}")
    result.assert_outcomes(passed=1)
    assert options_asked(world) == {"depth": deep}
