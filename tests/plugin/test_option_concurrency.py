"""``--heta-concurrency``: how many queries are under way at the same time."""

import pytest

ASYNCHRONOUS = """
import asyncio

now = most = 0

class Counting(KnowledgeBase):
    async def query(self, text, *, mode, top_k, options=None):
        global now, most
        now += 1
        most = max(most, now)
        # Whoever may come has come after so many turns.
        for _ in range(50):
            await asyncio.sleep(0)
        now -= 1
        note(most)
        return KnowledgeBase.query(self, text, mode=mode, top_k=top_k)
"""
IN_THREADS = """
import threading

now = most = 0
lock = threading.Lock()
barrier = threading.Barrier(AT_ONCE, timeout=30)

class Counting(KnowledgeBase):
    def query(self, text, *, mode, top_k, options=None):
        global now, most
        with lock:
            now += 1
            most = max(most, now)
        barrier.wait()
        with lock:
            now -= 1
        note(most)
        return super().query(text, mode=mode, top_k=top_k)
"""
RECIPE = """
def note(what):
    with pathlib.Path(__file__).with_name("most.txt").open("a") as file:
        file.write(f"{what}\\n")

class Recipe(Recipe):
    MAX
    def create(self, **arguments):
        return Counting(super().create(**arguments).texts)

recipe = Recipe()
"""
CASES = 24


@pytest.fixture
def toys(world):
    """A world of more cases than are asked at once by default."""
    world.dataset(
        {"case_id": f"c{n:02}", "query": "apple pie", "evidence": ["apple"]} for n in range(CASES)
    )
    return world


def counting(world, source, *, of_recipe=None):
    maximum = "" if of_recipe is None else f"max_concurrency = {of_recipe!r}"
    world.extend_recipe(source + RECIPE.replace("MAX", maximum))


def most(world):
    """Return how many queries were under way at the same time."""
    path = world.path / "most.txt"
    return max(int(line) for line in path.read_text(encoding="utf-8").split())


def snapshot(world):
    return world.report()["config_snapshot"]["concurrency"]


class TestCoroutines:
    def test_eight_by_default(self, toys):
        counting(toys, ASYNCHRONOUS)
        toys.run("--heta-mode=overlap").assert_outcomes(passed=CASES)
        assert most(toys) == snapshot(toys) == 8

    @pytest.mark.parametrize("number", [1, 3, 20])
    def test_as_many_as_the_command_line_says(self, toys, number):
        counting(toys, ASYNCHRONOUS, of_recipe=5)
        result = toys.run("--heta-mode=overlap", f"--heta-concurrency={number}")
        result.assert_outcomes(passed=CASES)
        assert most(toys) == snapshot(toys) == number

    def test_else_as_the_ini_file_says(self, toys):
        counting(toys, ASYNCHRONOUS, of_recipe=5)
        toys.ini("heta_concurrency = 3")
        toys.run("--heta-mode=overlap").assert_outcomes(passed=CASES)
        assert most(toys) == snapshot(toys) == 3

    def test_the_command_line_comes_before_the_ini_file(self, toys):
        counting(toys, ASYNCHRONOUS)
        toys.ini("heta_concurrency = 3")
        toys.run("--heta-mode=overlap", "--heta-concurrency=2").assert_outcomes(passed=CASES)
        assert most(toys) == snapshot(toys) == 2

    def test_else_as_the_recipe_says(self, toys):
        counting(toys, ASYNCHRONOUS, of_recipe=5)
        toys.run("--heta-mode=overlap").assert_outcomes(passed=CASES)
        assert most(toys) == snapshot(toys) == 5


class TestOrdinaryFunctions:
    def test_one_by_default(self, toys):
        counting(toys, IN_THREADS.replace("AT_ONCE", "1"))
        toys.run("--heta-mode=overlap").assert_outcomes(passed=CASES)
        assert most(toys) == snapshot(toys) == 1

    @pytest.mark.parametrize(("of_recipe", "args"), [(3, ()), (None, ("--heta-concurrency=3",))])
    def test_in_threads_where_somebody_says_so(self, toys, of_recipe, args):
        counting(toys, IN_THREADS.replace("AT_ONCE", "3"), of_recipe=of_recipe)
        toys.run("--heta-mode=overlap", *args).assert_outcomes(passed=CASES)
        assert most(toys) == snapshot(toys) == 3

    def test_a_recipe_that_takes_more_can_be_held_to_one(self, toys):
        counting(toys, IN_THREADS.replace("AT_ONCE", "1"), of_recipe=3)
        toys.run("--heta-mode=overlap", "--heta-concurrency=1").assert_outcomes(passed=CASES)
        assert most(toys) == snapshot(toys) == 1


class TestSnapshot:
    def test_processes_count_as_often_as_they_ask(self, toys):
        counting(toys, ASYNCHRONOUS, of_recipe=3)
        toys.run("--heta-mode=overlap", "-n2").assert_outcomes(passed=CASES)
        assert snapshot(toys) == 6

    def test_each_recipe_has_its_own(self, toys):
        counting(toys, ASYNCHRONOUS, of_recipe=3)
        toys.extend_recipe("""
        class Another(Recipe):
            name = "another"
            max_concurrency = 5

        another = Another()
        """)
        toys.run("--heta-recipe=recipe.py:another", "--heta-mode=overlap")
        reports = {report["knowledge_base_name"]: report for report in toys.reports()}
        found = {name: r["config_snapshot"]["concurrency"] for name, r in reports.items()}
        assert sorted(found.values()) == [3, 5]


@pytest.mark.parametrize("protocol", ["auto", "pytest"])
def test_a_fixture_of_each_test_keeps_queries_from_being_asked_ahead(toys, protocol):
    counting(toys, ASYNCHRONOUS)
    (toys.path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(autouse=True)\ndef mine(): pass\n", encoding="utf-8"
    )
    arguments = ("--heta-mode=overlap", f"--heta-protocol={protocol}")
    toys.run(*arguments).assert_outcomes(passed=CASES)
    assert most(toys) == snapshot(toys) == 1
    # Whoever says how many knows that it does no harm.
    toys.run(*arguments, "--heta-concurrency=3").assert_outcomes(passed=CASES)
    assert most(toys) == snapshot(toys) == 3


def test_all_gives_the_same_report(toys, comparable):
    counting(toys, ASYNCHRONOUS)
    reports = []
    for number in (1, 4, 30):
        toys.run(f"--heta-concurrency={number}").assert_outcomes(passed=2 * CASES)
        reports.append(comparable(toys.report()))
    assert reports[0] == reports[1] == reports[2]


def test_one_process_says_which_samples_were_cold(toys):
    counting(toys, ASYNCHRONOUS)
    toys.run("--heta-concurrency=4")
    cold = [r["case_id"] for r in toys.report()["case_results"] if r["metadata"]["cold"]]
    assert cold == ["c00", "c00"]


class TestWrongValues:
    @pytest.mark.parametrize("value", ["0", "-1", "2.5", "many", ""])
    def test_on_the_command_line(self, world, value):
        line = world.usage_error(f"--heta-concurrency={value}")
        assert line.startswith("--heta-concurrency")
        assert "whole number" in line

    @pytest.mark.parametrize("value", ["0", "many"])
    def test_in_the_ini_file(self, world, value):
        world.ini(f"heta_concurrency = {value}")
        assert world.usage_error().startswith("heta_concurrency")

    @pytest.mark.parametrize("value", [0, -3, 2.5, "4", True])
    def test_of_a_recipe(self, world, value):
        world.extend_recipe(f"Recipe.max_concurrency = {value!r}\n")
        line = world.usage_error()
        assert line.startswith("[recipe-invalid] --heta-recipe")
        assert f"recipe 'toy': max_concurrency = {value!r} is not allowed" in line
        assert line.endswith("use a whole number from 1")

    def test_of_a_recipe_from_the_ini_file(self, world):
        world.extend_recipe("Recipe.max_concurrency = 0\n")
        world.ini("heta_recipe = recipe.py:recipe")
        assert world.usage_error(recipe=None).startswith("[recipe-invalid] heta_recipe")
