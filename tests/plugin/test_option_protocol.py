"""``--heta-protocol``: whether the cases inside a unit take the short path."""

import pytest


class SetUps:
    """A plugin that counts the cases that are set up: on the short path, the first of a unit."""

    def __init__(self):
        self.cases = 0

    def pytest_fixture_setup(self, fixturedef):
        self.cases += fixturedef.argname == "heta_case"


@pytest.fixture
def set_up(world):
    """Return a function that runs the toys, and returns how many of the six were set up."""

    def run(*args):
        set_ups = SetUps()
        result = world.pytester.runpytest_inprocess(
            *world.quiet, "--heta-recipe=recipe.py:recipe", *args, plugins=[set_ups]
        )
        result.assert_outcomes(passed=6)
        return set_ups.cases

    return run


def test_the_short_path_is_the_default(set_up):
    assert set_up() == set_up("--heta-protocol=auto") == 1


def test_pytests_own_protocol_can_be_had(set_up):
    assert set_up("--heta-protocol=pytest") == 6


def test_the_ini_file_says_it_too(world, set_up):
    world.ini("heta_protocol = pytest")
    assert set_up() == 6
    assert set_up("--heta-protocol=auto") == 1


@pytest.mark.parametrize("value", ["fast", "", "AUTO"])
def test_another_value_is_refused_with_those_that_there_are(world, value):
    line = world.usage_error(f"--heta-protocol={value}")
    assert line.startswith("--heta-protocol")
    assert "auto" in line
    assert "pytest" in line


def test_so_is_one_in_the_ini_file(world):
    world.ini("heta_protocol = fast")
    assert world.usage_error().startswith("heta_protocol")


def test_workers_do_as_they_are_told(world):
    (world.path / "conftest.py").write_text(
        "def pytest_fixture_setup(fixturedef):\n"
        "    if fixturedef.argname == 'heta_case':\n"
        "        with open('set_up.txt', 'a') as file:\n"
        "            file.write('x')\n",
        encoding="utf-8",
    )
    path = world.path / "set_up.txt"
    for value, expected in (("auto", 1), ("pytest", 6)):
        world.run("-n1", f"--heta-protocol={value}").assert_outcomes(passed=6)
        assert len(path.read_text(encoding="utf-8")) == expected
        path.unlink()
