"""Items that the plugin makes itself: the same as those that pytest would make."""

import copy
from textwrap import dedent

import pytest

from pytest_heta.plugin import _internals
from pytest_heta.plugin._case_function import CaseFunction

CASES = [
    {
        "case_id": "pie",
        "query": "apple pie",
        "unit": "sweet",
        "documents": ["apple"],
        "labels": {"kind": "food", "level": 1, "with-dash": "x", "tags": ["round", "warm"]},
    },
    {"case_id": "a b::[c]", "query": "apple", "unit": "sweet", "documents": ["apple"]},
    {"case_id": "中\\文", "query": "rain", "unit": "wet & cold", "documents": ["cloud"]},
    {"case_id": "rain", "query": "rain", "unit": "wet & cold", "documents": ["cloud"]},
    {"case_id": "rain-2", "query": "rain", "unit": "wet & cold", "documents": ["cloud"]},
]

FAILING = """
class KnowledgeBase(KnowledgeBase):
    def query(self, text, *, mode, top_k, options=None):
        if text == "apple" and mode == "backwards":
            raise ValueError("no apples")
        return super().query(text, mode=mode, top_k=top_k, options=options)
"""


class Look:
    """Looks at the items of a session, as other plugins do."""

    def __init__(self):
        self.items = []
        self.seen = []

    def pytest_itemcollected(self, item):
        self.seen.append((item.nodeid, sorted(item.extra_keyword_matches)))

    def pytest_collection_finish(self, session):
        self.items = list(session.items)

    @property
    def types(self):
        return {type(item) for item in self.items}


@pytest.fixture
def units(world):
    """A world of two units with labels and ids of all kinds."""
    world.dataset(CASES)
    return world


@pytest.fixture
def collect(units):
    """Collect the world, and return what other plugins see of it."""

    def run(*args: str, **kwargs: str) -> Look:
        look = Look()
        arguments = [*units.quiet, "--collect-only", "-q", "--heta-recipe=recipe.py:recipe", *args]
        assert units.pytester.inline_run(*arguments, plugins=[look]).ret == pytest.ExitCode.OK
        assert look.items
        return look

    return run


@pytest.fixture
def by_pytest(monkeypatch):
    """Let pytest make all items from now on."""

    def force() -> None:
        monkeypatch.setattr(_internals, "can_make_items", lambda: False)

    return force


@pytest.fixture
def conftest(units):
    """Write the conftest file."""
    return lambda text: (units.path / "conftest.py").write_text("import pytest\n" + text)


def seen_of(item: pytest.Function) -> dict:
    """Return all that others see of an item."""
    spec = item.callspec
    return {
        "name": item.name,
        "nodeid": item.nodeid,
        "id": str(getattr(item, "id", "")),
        "repr": repr(item),
        "originalname": item.originalname,
        "path": item.path,
        "location": item.location,
        "reportinfo": item.reportinfo(),
        "modpath": item.getmodpath(),
        "names": item.listnames(),
        "chain": [repr(node) for node in item.listchain()],
        "keywords": [(key, repr(item.keywords[key])) for key in item.keywords],
        "extra": item.listextrakeywords(),
        "own_markers": item.own_markers,
        "markers": [(node.nodeid, mark) for node, mark in item.iter_markers_with_node()],
        "closest": item.get_closest_marker("heta"),
        "fixturenames": item.fixturenames,
        "callspec": (spec.params, spec.indices, spec.id, spec.marks, spec.getparam("heta_case")),
        "scopes": spec._arg2scope,
        "function": item.function.__name__,
        "cls": item.cls.__name__,
        "module": item.module.__name__,
        "properties": (item.user_properties, item.funcargs, len(item.stash)),
        "sections": item._report_sections,
        "fixtures": sorted(item._fixtureinfo.name2fixturedefs),
        "request": (repr(item._request), item._request.node is item),
    }


# --- the same on both ways ---------------------------------------------------------


@pytest.mark.parametrize("args", [(), ("--heta-limit=2",), ("-k", "rain"), ("-p", "no:anyio")])
def test_items_look_as_if_pytest_had_made_them(collect, by_pytest, args):
    ours = collect(*args)
    by_pytest()
    stock = collect(*args)
    assert ours.types == {CaseFunction}
    assert stock.types == {pytest.Function}
    assert [seen_of(item) for item in ours.items] == [seen_of(item) for item in stock.items]
    assert ours.seen == stock.seen


def test_items_of_several_recipes(collect, by_pytest, units):
    source = (units.path / "recipe.py").read_text(encoding="utf-8")
    units.recipe(source.replace('name = "toy"', 'name = "other"'), name="other.py")
    ours = collect("--heta-recipe=other.py:recipe")
    by_pytest()
    stock = collect("--heta-recipe=other.py:recipe")
    assert len(ours.items) == 20
    assert [seen_of(item) for item in ours.items] == [seen_of(item) for item in stock.items]


def test_items_with_fixtures_and_marks_of_the_suite_and_conftest(
    collect, by_pytest, units, conftest
):
    conftest(
        "@pytest.fixture(scope='class')\ndef heta_recipe(request): ...\n"
        "@pytest.fixture(autouse=True)\ndef always(tmp_path): ...\n"
        "@pytest.fixture\ndef used(): ...\n"
        "def pytest_generate_tests(metafunc): ...\n"
    )
    units.suite(extra="import pytest\npytestmark = [pytest.mark.usefixtures('used')]\n")
    ours = collect()
    by_pytest()
    stock = collect()
    assert ours.types == {CaseFunction}
    assert [seen_of(item) for item in ours.items] == [seen_of(item) for item in stock.items]
    assert {"always", "tmp_path", "used"} <= set(ours.items[-1].fixturenames)


def test_case_fixture_of_another_scope(collect, by_pytest, conftest):
    conftest("@pytest.fixture(scope='class')\ndef heta_case(request): ...\n")
    ours = collect()
    by_pytest()
    stock = collect()
    assert ours.types == {CaseFunction}
    assert [seen_of(item) for item in ours.items] == [seen_of(item) for item in stock.items]


SELECTIONS = [
    ("-k", "pie"),
    ("-k", "round and backwards"),
    ("-k", "cold or 文"),
    ("-m", "heta(mode='overlap')"),
    ("-m", "heta(kind='food', level=1)"),
    ("-m", "not heta"),
    ("bench_toys.py::toys::sweet::overlap",),
    ("bench_toys.py::toys::sweet::overlap[pie]", "bench_toys.py::toys::sweet::backwards[pie]"),
    ("--deselect", "bench_toys.py::toys::sweet::overlap[pie]"),
    ("--lf",),
    ("--ff",),
    ("--sw",),
    ("--lf", "--lfnf=none"),
]


@pytest.mark.parametrize("args", SELECTIONS, ids=" ".join)
def test_selections(units, by_pytest, args):
    units.extend_recipe(FAILING)

    def outcomes() -> list[str]:
        units.run("--cache-clear", cache=True).assert_outcomes(passed=9, failed=1)
        result = units.run("-v", *args, cache=True)
        return [line.partition(" [")[0] for line in result.outlines if "::" in line]

    ours = outcomes()
    by_pytest()
    assert ours == outcomes()
    assert bool(ours) == (args != ("-m", "not heta"))


def test_last_failed_by_the_other_way(units, by_pytest):
    units.extend_recipe(FAILING)
    units.run(cache=True).assert_outcomes(passed=9, failed=1)
    by_pytest()
    units.run("--lf", cache=True).assert_outcomes(failed=1)


def test_reports_of_both_ways_agree(units, by_pytest, comparable):
    units.extend_recipe(FAILING)
    units.run().assert_outcomes(passed=9, failed=1)
    ours = comparable(units.reports())
    by_pytest()
    units.run().assert_outcomes(passed=9, failed=1)
    assert ours == comparable(units.reports())


def test_ids_of_the_first_of_a_worker_and_the_serial_run(units, by_pytest):
    ours = units.run("-v", "-n1")
    by_pytest()
    ids = [line for line in units.run("--collect-only", "-q").outlines if "::" in line]
    assert {line.split(" PASSED ")[-1].strip() for line in ours.outlines if "PASSED" in line} == {
        *ids
    }


# --- what others may do to an item ---------------------------------------------------


def test_marks_added_in_a_hook_are_matched(units, conftest):
    conftest(
        "def pytest_itemcollected(item):\n"
        "    if 'pie' in item.name:\n"
        "        item.add_marker('slow')\n"
        "        item.own_markers.append(pytest.mark.own.mark)\n"
    )
    units.ini("markers =", "  slow", "  own")
    units.run("-m", "slow and own", "--strict-markers").assert_outcomes(passed=2, deselected=8)
    units.run("-k", "slow").assert_outcomes(passed=2, deselected=8)


def test_changes_of_an_item_stay(collect):
    look = collect()
    first, second, *others = look.items
    first.callspec.params["more"] = 1
    second.callspec.marks.clear()
    first.user_properties.append(("a", 1))
    first.stash[KEY] = "noted"
    first.extra_keyword_matches.add("extra")
    first.keywords["word"] = True
    first.fixturenames.append("some")
    for other in others:
        assert other.callspec.params == {"heta_case": other.sample}
    assert first.callspec.params == {"heta_case": first.sample, "more": 1}
    assert second.callspec.marks == []
    assert first.user_properties == [("a", 1)]
    assert first.stash[KEY] == first._store[KEY] == "noted"
    assert "extra" in first.listextrakeywords()
    assert first.keywords["word"] is True
    assert second.user_properties == []
    assert "word" not in second.keywords
    # As in pytest, the items of one function share it, and no others.
    with_fixture = [item.originalname for item in look.items if "some" in item.fixturenames]
    assert with_fixture == ["overlap", "overlap"]


KEY = pytest.StashKey[str]()


def test_parts_that_others_replace(collect):
    first, second, *_ = collect().items
    first.fixturenames = ["mine"]
    first.callspec = second.callspec
    first.obj = print
    assert first.fixturenames == ["mine"]
    assert second.fixturenames != ["mine"]
    assert first.callspec.params == {"heta_case": second.sample}
    assert first.function is print
    assert second.function.__name__ == "overlap"


def test_copies_of_an_item_ask_the_same(collect):
    item = collect().items[0]
    twin = copy.copy(item)
    assert twin is not item
    assert seen_of(twin) == seen_of(item)
    assert twin.sample == item.sample


def test_nothing_is_made_before_it_is_asked_for(collect):
    items = collect("-p", "no:anyio").items
    assert {name for item in items for name in vars(item)} <= {"extra_keyword_matches"}


@pytest.mark.parametrize("way", ["ours", "stock"])
def test_every_unit_has_a_class_of_its_own(units, conftest, by_pytest, way):
    conftest(
        "@pytest.fixture(scope='class', autouse=True)\n"
        "def own_class(request):\n"
        "    assert not hasattr(request.cls, 'taken')\n"
        "    request.cls.taken = True\n"
        "@pytest.fixture(autouse=True)\n"
        "def own_instance(request, own_class):\n"
        "    assert isinstance(request.instance, request.cls) and request.cls.taken\n"
        "    assert not vars(request.instance)\n"
        "    request.instance.used = True\n"
    )
    if way == "stock":
        by_pytest()
    units.run().assert_outcomes(passed=10)


# --- where pytest has to make them -----------------------------------------------------


LEFT_TO_PYTEST = {
    "parametrized fixture": (
        """
        @pytest.fixture(scope="class", params=["a", "b"])
        def heta_recipe(request): ...
        """,
        20,
    ),
    "parametrized autouse fixture": (
        """
        @pytest.fixture(autouse=True, params=["a", "b", "c"])
        def always(request): ...
        """,
        30,
    ),
    "parametrized test": (
        """
        def pytest_generate_tests(metafunc):
            metafunc.fixturenames.append("step")
            metafunc.parametrize("step", range(2))
        """,
        20,
    ),
    "marked items": (
        """
        @pytest.hookimpl(wrapper=True)
        def pytest_pycollect_makeitem(name):
            made = yield
            for item in made or () if name in ("overlap", "backwards") else ():
                item.add_marker("slow")
            return made
        """,
        10,
    ),
    "noted items": (
        """
        @pytest.hookimpl(wrapper=True)
        def pytest_pycollect_makeitem(name):
            made = yield
            for item in made or () if name in ("overlap", "backwards") else ():
                item.note = item.name
            return made
        """,
        10,
    ),
    "reversed items": (
        """
        @pytest.hookimpl(wrapper=True)
        def pytest_pycollect_makeitem(name):
            made = yield
            return made[::-1] if name in ("overlap", "backwards") else made
        """,
        10,
    ),
    "reversed calls": (
        """
        @pytest.hookimpl(wrapper=True)
        def pytest_generate_tests(metafunc):
            yield
            metafunc._calls.reverse()
        """,
        10,
    ),
}


@pytest.mark.parametrize(("text", "count"), LEFT_TO_PYTEST.values(), ids=LEFT_TO_PYTEST)
def test_left_to_pytest(collect, by_pytest, conftest, text, count):
    conftest(dedent(text))
    ours = collect()
    by_pytest()
    stock = collect()
    assert ours.types == stock.types == {pytest.Function}
    assert [seen_of(item) for item in ours.items] == [seen_of(item) for item in stock.items]
    assert ours.seen == stock.seen
    assert len(ours.items) == count


def test_tests_that_the_suite_generates(collect, units):
    units.suite(
        extra="def pytest_generate_tests(metafunc):\n"
        "    if metafunc.function.__name__ == 'overlap':\n"
        "        metafunc.fixturenames.append('step')\n"
        "        metafunc.parametrize('step', range(2))\n"
    )
    look = collect()
    assert look.types == {pytest.Function}
    assert len(look.items) == 15


@pytest.mark.parametrize("name", ["sweet", "wet"])
def test_hook_that_knows_units_is_asked_for_each(collect, by_pytest, conftest, name):
    conftest(
        "def pytest_generate_tests(metafunc):\n"
        f"    if metafunc.definition.parent.name.startswith({name!r}):\n"
        "        metafunc.parametrize('heta_recipe', ['x', 'y'], indirect=True)\n"
        "@pytest.fixture(scope='class')\ndef heta_recipe(request): ...\n"
    )
    ours = collect()
    by_pytest()
    stock = collect()
    assert [seen_of(item) for item in ours.items] == [seen_of(item) for item in stock.items]
    assert ours.seen == stock.seen
    assert len(ours.items) == {"sweet": 14, "wet": 16}[name]


@pytest.mark.parametrize("first", ["sweet", "wet"])
def test_marks_on_one_unit(units, conftest, first):
    conftest(
        "def pytest_collectstart(collector):\n"
        f"    if collector.name.startswith({first[:3]!r}):\n"
        "        collector.add_marker(pytest.mark.usefixtures('used'))\n"
        "@pytest.fixture(scope='class')\n"
        "def used(request):\n"
        "    print('used', request.node.name)\n"
    )
    result = units.run("-s")
    result.assert_outcomes(passed=10)
    used = [line for line in result.outlines if "used " in line]
    assert len(used) == 1
    assert first[:3] in used[0].split("used ")[1]


@pytest.mark.parametrize("name", ["sweet", "wet"])
def test_fixtures_registered_for_one_unit(units, conftest, name):
    conftest(
        dedent(
            f"""
            import types

            def fixtures():
                @pytest.fixture(scope="class")
                def heta_recipe(request):
                    print("used", request.node.name)
                    return request.node.parent.recipe

                holder = types.ModuleType("holder")
                holder.heta_recipe = heta_recipe
                return holder

            def pytest_collectstart(collector):
                if collector.name.startswith({name!r}):
                    manager = collector.session._fixturemanager
                    if pytest.version_tuple >= (9,):
                        manager.parsefactories(holder=fixtures(), node=collector)
                    else:
                        manager.parsefactories(fixtures(), collector.nodeid)
            """
        )
    )
    result = units.run("-s")
    result.assert_outcomes(passed=10)
    (used,) = [line for line in result.outlines if "used " in line]
    assert used.partition("used ")[2].startswith(name)


def test_ids_that_pytest_makes_distinct(collect, monkeypatch):
    monkeypatch.setattr(_internals, "escaped_id", lambda text, config: "rain")
    assert collect().types == {CaseFunction, pytest.Function}


@pytest.mark.parametrize(
    ("name", "value"),
    [("_CallSpec", object), ("_CallSpec", type("CallSpec", (), {})), ("_ID", "_name")],
)
def test_unknown_pytest(collect, monkeypatch, name, value):
    assert _internals.can_make_items()
    monkeypatch.setattr(_internals, name, value)
    assert not _internals.can_make_items()
    assert collect().types == {pytest.Function}


def test_a_location_that_is_made_in_another_way(collect, monkeypatch):
    known = [item.location for item in collect().items]
    made = pytest.Item.location.func
    monkeypatch.setattr(pytest.Item, "location", property(made))
    items = collect().items
    assert {type(item) for item in items} == {CaseFunction}
    assert [item.location for item in items] == known


@pytest.mark.parametrize("name", sorted(_internals._KNOWN - {"_instance", "_obj"}))
def test_attribute_that_is_not_known_of_an_item(collect, monkeypatch, name):
    monkeypatch.setattr(_internals, "_KNOWN", _internals._KNOWN - {name})
    assert collect().types == {pytest.Function}


# What is wrong on the first item is never made for the others.
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("originalname", "other"),
        ("own_markers", []),
        ("extra_keyword_matches", {"x"}),
        ("fixturenames", []),
        ("funcargs", {"x": 1}),
        ("user_properties", [1]),
        ("keywords", {}),
        ("callspec", None),
        ("_request", None),
        ("_report_sections", [1]),
        (_internals._ID, "other"),
    ],
)
def test_item_that_differs_from_the_one_of_pytest(collect, name, value):
    item, second, *_ = collect().items
    stock = item.parent.first_items()[0]
    item.extra_keyword_matches = set()
    assert _internals.difference(item, stock) is None
    setattr(stock, name, second.callspec if name == "callspec" else value)
    assert _internals.difference(item, stock) == name
