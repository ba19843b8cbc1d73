"""``--heta-recipe``: which recipe is evaluated, and how it is found."""

import re

import pytest

OTHER = """
from recipe import KnowledgeBase, Recipe


class Other(Recipe):
    name = "other"

    def manifest(self):
        return {"kind": "another"}


def make():
    return Other()


other = Other()
nothing = 3


class Twin(Recipe):
    pass
"""


def recipe_names(world):
    return [report["config_snapshot"]["recipe"]["name"] for report in world.reports()]


def test_the_recipe_of_a_file_is_evaluated(world):
    world.run().assert_outcomes(passed=6)
    report = world.report()
    assert report["recipe_manifest"] == {"kind": "word overlap"}
    assert recipe_names(world) == ["toy"]
    assert report["report_key"] == "toys-test@toy"


def test_the_ini_key_names_a_recipe(world):
    world.ini("heta_recipe = recipe.py:recipe")
    world.run(recipe=None).assert_outcomes(passed=6)
    assert recipe_names(world) == ["toy"]


def test_the_command_line_wins_over_the_ini_file(world):
    world.recipe(OTHER, "other.py")
    world.ini("heta_recipe = recipe.py:recipe")
    world.run(recipe="other.py:other").assert_outcomes(passed=6)
    assert recipe_names(world) == ["other"]


def test_a_path_in_the_ini_file_starts_from_the_ini_file(world, monkeypatch):
    world.ini("heta_recipe = recipe.py:recipe")
    folder = world.path / "results"
    folder.mkdir()
    monkeypatch.chdir(folder)
    world.run("../bench_toys.py", recipe=None).assert_outcomes(passed=6)
    (report,) = world.reports("results/report.json")
    assert report["report_key"] == "toys-test@toy"


def test_a_path_on_the_command_line_starts_from_the_current_folder(world, monkeypatch):
    world.ini("")
    folder = world.path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    world.recipe(OTHER.replace("from recipe", "import sys; sys.path.append('..')\nfrom recipe"))
    (world.path / "recipe.py").rename(folder / "mine.py")
    world.recipe()
    world.run("../bench_toys.py", recipe="mine.py:other").assert_outcomes(passed=6)
    (report,) = world.reports("elsewhere/report.json")
    assert report["report_key"] == "toys-test@other"


def test_several_recipes_give_a_report_each(world):
    world.recipe(OTHER, "other.py")
    result = world.run("--heta-recipe=other.py:other", "-v")
    result.assert_outcomes(passed=12)
    assert recipe_names(world) == ["toy", "other"]
    assert [report["metadata"]["label"] for report in world.reports()] == ["toys@toy", "toys@other"]
    result.stdout.fnmatch_lines(["heta recipes: toy, other"])
    result.stdout.fnmatch_lines(["*::toys@other::corpus::backwards?pie? PASSED*"])


def test_the_ini_key_takes_several_recipes_one_a_line(world):
    world.recipe(OTHER, "other.py")
    world.ini("heta_recipe =", "    recipe.py:recipe", "    other.py:other")
    world.run(recipe=None).assert_outcomes(passed=12)
    assert recipe_names(world) == ["toy", "other"]


@pytest.mark.parametrize("attribute", ["make", "Other", "other"])
def test_a_factory_a_class_and_an_object_are_recipes(world, attribute):
    world.recipe(OTHER, "other.py")
    world.run("-k", "pie and overlap", recipe=f"other.py:{attribute}").assert_outcomes(
        passed=1, deselected=5
    )
    assert recipe_names(world) == ["other"]


def test_a_recipe_of_a_package_is_named_by_its_module(world):
    package = world.path / "team"
    package.mkdir()
    (package / "__init__.py").touch()
    (world.path / "recipe.py").rename(package / "knowledge.py")
    world.run("-k", "pie", recipe="team.knowledge:recipe").assert_outcomes(passed=2, deselected=4)


def test_two_recipes_of_one_name_are_refused(world, count_builds):
    world.recipe(OTHER, "other.py")
    error = world.usage_error("--heta-recipe=other.py:Twin")
    assert "--heta-recipe: two recipes are named 'toy'" in error
    assert count_builds() == 0


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        ("lokal", "there is no recipe 'lokal'; did you mean 'local'? Known: local, local-minilm"),
        ("missing.py:recipe", "there is no file"),
        ("recipe.py", "names a file but nothing in it; write recipe.py:NAME"),
        ("recipe.py:recipes", "has no 'recipes'; did you mean 'recipe'?"),
        ("no_such_module:recipe", "there is no module 'no_such_module'"),
        ("other.py:nothing", "gives a int, which has no `create` method"),
        ("broken.py:recipe", "cannot be imported: ZeroDivisionError: division by zero"),
    ],
)
def test_a_wrong_recipe_is_refused_with_what_is_right(world, recipe, expected):
    world.recipe(OTHER, "other.py")
    world.recipe("1 / 0", "broken.py")
    error = world.usage_error(recipe=recipe)
    assert re.match(r"\[recipe-(invalid|not-found)\] --heta-recipe[:,] ", error)
    assert expected in error


def test_a_wrong_recipe_of_the_ini_file_is_refused_by_its_key(world):
    world.ini("heta_recipe = lokal")
    assert world.usage_error(recipe=None).startswith("[recipe-not-found] heta_recipe: ")


def test_a_recipe_name_that_cannot_stand_in_a_node_id_is_refused(world):
    world.extend_recipe("Recipe.name = 'a b'")
    assert "recipe name 'a b' is not allowed; use A-Z, a-z, 0-9, _ and -" in world.usage_error()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raise SystemExit('set MY_KEY')", "SystemExit: set MY_KEY"),
        ("import pytest; pytest.importorskip('no_such_package')", "could not import"),
        ("def recipe(): raise SystemExit(0)", "SystemExit: 0"),
    ],
)
def test_a_recipe_that_leaves_while_it_is_loaded_is_refused(world, text, expected):
    world.recipe(text, "leaving.py")
    error = world.usage_error(recipe="leaving.py:recipe")
    assert error.startswith(
        "[recipe-invalid] --heta-recipe, leaving.py:1: recipe 'leaving.py:recipe'"
    )
    assert expected in error
