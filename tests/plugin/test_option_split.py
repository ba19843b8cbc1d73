"""``--heta-split``: the cases of one large unit on several workers."""

import json

import pytest

LARGE = 80
"""Cases that make a unit large enough for two workers."""

SAVING = """
import pickle

def note(what):
    with pathlib.Path(__file__).with_name(what).open("a") as file:
        file.write(os.environ.get("PYTEST_XDIST_WORKER", "main") + "\\n")

class KnowledgeBase(KnowledgeBase):
    def query(self, text, *, mode, top_k, options=None):
        note("asked.txt")
        return super().query(text, mode=mode, top_k=top_k, options=options)

class Recipe(Recipe):
    def create(self, *, name, **arguments):
        note("built.txt")
        return super().create(name=name, **arguments)

    def save(self, knowledge_base, path):
        pathlib.Path(path).mkdir(parents=True, exist_ok=True)
        (pathlib.Path(path) / "texts").write_bytes(pickle.dumps(knowledge_base.texts))

    def load(self, path):
        note("loaded.txt")
        return KnowledgeBase(pickle.loads((pathlib.Path(path) / "texts").read_bytes()))

recipe = Recipe()
"""

NO_LOADING = """
class Recipe(Recipe):
    load = None

recipe = Recipe()
"""


@pytest.fixture
def large(world):
    """A world with one unit of many cases, and a recipe that loads what it saved."""
    queries = [("apple pie", "apple"), ("bike repair", "bike"), ("rain cloud", "cloud")]
    world.dataset(
        {"case_id": f"c{n}", "query": queries[n % 3][0], "evidence": [queries[n % 3][1]]}
        for n in range(LARGE)
    )
    world.extend_recipe(SAVING)
    return world


def workers(world, what: str) -> list[str]:
    """Return which processes built, loaded or asked, in order."""
    path = world.path / what
    found = path.read_text(encoding="utf-8").split() if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def test_large_unit_is_built_by_one_worker_and_loaded_by_the_other(large, comparable):
    large.run("--heta-mode=overlap", "--heta-cache-size=0").assert_outcomes(passed=LARGE)
    serial = large.report()
    for what in ("built.txt", "loaded.txt", "asked.txt"):
        workers(large, what)
    result = large.run("-n2", "--heta-mode=overlap", "--heta-cache-size=0")
    result.assert_outcomes(passed=LARGE)
    (built,) = workers(large, "built.txt")
    (loaded,) = workers(large, "loaded.txt")
    assert {built, loaded} == {"gw0", "gw1"}
    asked = workers(large, "asked.txt")
    assert len(asked) == LARGE
    # Each has its first shard before anybody runs.
    assert min(asked.count("gw0"), asked.count("gw1")) >= 16
    report = large.report()
    assert report["config_snapshot"]["concurrency"] == 2
    assert [r["case_id"] for r in report["case_results"]] == [f"c{n}" for n in range(LARGE)]
    assert report["score_summary"] == serial["score_summary"]
    assert comparable(report["case_results"]) == comparable(serial["case_results"])
    assert report["metadata"]["complete"] is True


def test_modes_of_a_split_unit_come_one_after_the_other(large):
    large.run("-n2").assert_outcomes(passed=2 * LARGE)
    report = large.report()
    assert [(r["query_mode"], r["case_id"]) for r in report["case_results"]] == [
        (mode, f"c{n}") for mode in ("overlap", "backwards") for n in range(LARGE)
    ]
    assert len(workers(large, "built.txt")) == 1


def whole(world) -> bool:
    """Whether one worker alone asked all cases."""
    asked = workers(world, "asked.txt")
    assert len(asked) == LARGE
    return len(set(asked)) == 1


@pytest.mark.parametrize("given", ["option", "ini"])
def test_never_keeps_units_whole(large, given):
    if given == "ini":
        large.ini("heta_split = never")
    arguments = ["--heta-split=never"] if given == "option" else []
    large.run("-n2", "--heta-mode=overlap", *arguments).assert_outcomes(passed=LARGE)
    assert whole(large)
    assert len(workers(large, "built.txt")) == 1


def test_unit_of_a_recipe_that_cannot_load_stays_whole(large):
    large.extend_recipe(NO_LOADING)
    large.run("-n2", "--heta-mode=overlap").assert_outcomes(passed=LARGE)
    assert whole(large)
    assert len(workers(large, "built.txt")) == 1


@pytest.mark.parametrize("name", ["heta_kb", "heta_recipe", "heta_unit"])
def test_unit_whose_knowledge_base_comes_from_elsewhere_stays_whole(large, name):
    body = "heta_unit.build(heta_recipe)" if name == "heta_kb" else name
    asks = "heta_unit, heta_recipe" if name == "heta_kb" else name
    (large.path / "conftest.py").write_text(
        f"import pytest\n@pytest.fixture(scope='class')\ndef {name}({asks}):\n    return {body}\n",
        encoding="utf-8",
    )
    large.run("-n2", "--heta-mode=overlap").assert_outcomes(passed=LARGE)
    assert whole(large)
    assert len(workers(large, "built.txt")) == 1


def test_other_values_are_refused(large):
    message = large.usage_error("--heta-split=always")
    assert message.startswith("--heta-split: ")
    assert "'always'" in message
    assert "auto" in message
    assert "never" in message


def test_whoever_writes_the_plans_says_what_may_be_split(large):
    (large.path / "conftest.py").write_text(
        "import pathlib, pytest\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_runtestloop(session):\n"
        "    if hasattr(session.config, 'workerinput'):\n"
        "        folder = pathlib.Path(session.config.workerinput['heta_directory'])\n"
        "        plans = (folder / 'plans.json').read_text()\n"
        "        pathlib.Path(__file__).with_name('plans.json').write_text(plans)\n",
        encoding="utf-8",
    )
    large.run("-n1")
    plans = json.loads((large.path / "plans.json").read_text(encoding="utf-8"))
    assert plans["splittable"] == [["toys", "corpus"]]
    # A stretch for each mode, however many cases it has.
    assert plans["selected"] == [
        [0, LARGE, "toys", "corpus", "overlap", 0],
        [LARGE, LARGE, "toys", "corpus", "backwards", 0],
    ]
