"""From names and import strings to objects, and a run in one call."""

import asyncio
import functools
import math
import re
import sys
import threading
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from pytest_heta import api
from pytest_heta.api import as_suite, available_recipes, data_dir, load_recipe, run, suite
from pytest_heta.core.plan import Suite
from pytest_heta.errors import (
    ConfigurationError,
    ExtraMissingError,
    GateInvalidError,
    LoopBlockedError,
    ModeUnknownError,
    RecipeInvalidError,
    RecipeNotFoundError,
)
from pytest_heta.evaluators import AnswerContains, MeasureEvaluator
from pytest_heta.models import (
    BenchmarkCase,
    BenchmarkDocument,
    BenchmarkEvidence,
    BenchmarkExpected,
    BenchmarkManifest,
    BenchmarkRunUnit,
    PreparedBenchmark,
)


class Benchmark:
    manifest = BenchmarkManifest(name="tiny")

    def resources(self):
        return ()

    async def prepare(self, workspace):
        return PreparedBenchmark(manifest=self.manifest, root_dir=workspace.root_dir)

    async def documents(self, prepared):
        for name in ("a", "b"):
            yield BenchmarkDocument(document_id=name, name=f"{name}.txt", data=name.encode())

    async def cases(self, prepared):
        for name in ("a", "b"):
            evidence = (BenchmarkEvidence(reference_id=name),)
            yield BenchmarkCase(
                case_id=f"q-{name}", query=name, expected=BenchmarkExpected(evidence=evidence)
            )

    async def run_units(self, prepared):
        yield BenchmarkRunUnit(unit_id="all")

    def evaluators(self):
        return ("ndcg@10",)


class Recipe:
    """The recipe of ten lines."""

    name = "ten-lines"

    def manifest(self):
        return {}

    def create(self, *, objects, source_keys, **_):
        texts = {key: objects.get(key).decode() for key in source_keys}

        class KnowledgeBase:
            available_queries = ("exact",)

            def query(self, text, *, top_k):
                found = [key for key, content in texts.items() if content == text]
                return {"results": [{"id": k, "source": {"source_key": k}} for k in found[:top_k]]}

        return KnowledgeBase()


def make_recipe():
    return Recipe()


class TestDataDir:
    def test_it_is_the_folder_that_the_environment_names(self, monkeypatch, tmp_path):
        monkeypatch.setenv("HETA_DATA_DIR", str(tmp_path))
        assert data_dir() == tmp_path

    def test_what_is_no_folder_is_a_mistake(self, monkeypatch):
        monkeypatch.setenv("HETA_DATA_DIR", "no/such/folder")
        with pytest.raises(ConfigurationError, match="HETA_DATA_DIR: 'no/such/folder' is not a"):
            data_dir()

    @pytest.mark.parametrize("value", [None, ""])
    def test_without_one_there_is_none(self, monkeypatch, value):
        monkeypatch.delenv("HETA_DATA_DIR", raising=False)
        if value is not None:
            monkeypatch.setenv("HETA_DATA_DIR", value)
        assert data_dir() is None


class TestSuite:
    def test_it_carries_what_is_said(self):
        benchmark = Benchmark()
        made = suite(
            benchmark,
            name="other",
            modes=["fts"],
            top_k=5,
            gates=["fts.ndcg@10 >= 0.3"],
            fail_on="miss",
            evaluators=["recall@5"],
            options={"rrf_k": 60},
        )
        assert made == Suite(
            benchmark=benchmark,
            name="other",
            modes=("fts",),
            top_k=5,
            gates=("fts.ndcg@10 >= 0.3",),
            fail_on="miss",
            evaluators=("recall@5",),
            options={"rrf_k": 60},
        )

    def test_one_text_stands_for_itself(self):
        made = suite(Benchmark(), modes="fts", gates="fts.ndcg@10 >= 0.3", evaluators="ndcg@10")
        assert made.modes == ("fts",)
        assert made.gates == ("fts.ndcg@10 >= 0.3",)
        assert made.evaluators == ("ndcg@10",)

    def test_a_set_has_one_order(self):
        assert suite(Benchmark(), modes={"c", "a", "b"}).modes == ("a", "b", "c")
        made = suite(Benchmark(), evaluators={"recall@5", AnswerContains(), "ndcg@10"})
        assert [str(getattr(e, "name", e)) for e in made.evaluators] == [
            "answer_contains",
            "ndcg@10",
            "recall@5",
        ]

    def test_an_iterator_is_read_once_and_kept(self):
        made = suite(Benchmark(), gates=iter(["fts.ndcg@10 >= 0.3"]), evaluators=iter(["map@5"]))
        assert made.gates == ("fts.ndcg@10 >= 0.3",)
        assert made.evaluators == ("map@5",)

    @pytest.mark.parametrize(
        ("options", "kind", "message"),
        [
            ({"name": "a.b"}, ConfigurationError, "benchmark name 'a.b' is not allowed"),
            ({"modes": ["a.b"]}, ConfigurationError, "mode name 'a.b' is not allowed"),
            ({"modes": [3]}, ConfigurationError, "modes: 3 is not a text"),
            ({"gates": ["fts.ndcg@10"]}, GateInvalidError, "there is no operator"),
            ({"gates": [None]}, ConfigurationError, "gates: None is not a text"),
            ({"fail_on": "never"}, ConfigurationError, "'never' is not allowed; use error, miss"),
            ({"top_k": 0}, ConfigurationError, "top_k = 0 is not allowed"),
            ({"top_k": True}, ConfigurationError, "top_k = True is not allowed"),
            ({"top_k": "10"}, ConfigurationError, "top_k = '10' is not allowed"),
            ({"evaluators": 5}, ConfigurationError, "evaluators = 5 is no list"),
        ],
    )
    def test_what_is_wrong_is_refused_where_it_is_written(self, options, kind, message):
        with pytest.raises(kind, match=re.escape(message)):
            suite(Benchmark(), **options)

    @pytest.mark.parametrize(
        ("obj", "what"), [(Benchmark, "class Benchmark"), ("path", "a str"), (None, "a NoneType")]
    )
    def test_what_is_no_benchmark_is_refused(self, obj, what):
        with pytest.raises(ConfigurationError, match=f"{what} is not a benchmark"):
            suite(obj)


class Unbound:
    """A lazy proxy, which is not to be touched yet."""

    def __getattribute__(self, name):
        raise RuntimeError("there is nothing behind this")


class Wrapped:
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


class TestAsSuite:
    def test_a_benchmark_becomes_one_and_a_suite_stays(self):
        benchmark = Benchmark()
        made = as_suite(benchmark)
        assert made == Suite(benchmark)
        assert as_suite(made) is made

    def test_a_benchmark_made_of_attributes_is_one(self):
        names = ("manifest", "resources", "prepare", "documents", "cases", "run_units")
        parts = {name: getattr(Benchmark(), name) for name in (*names, "evaluators")}
        assert as_suite(SimpleNamespace(**parts)) is not None
        parts.pop("cases")
        assert as_suite(SimpleNamespace(**parts)) is None

    @pytest.mark.parametrize(
        "obj", [Benchmark, None, 3, "text", api, MagicMock(), object()], ids=range(7)
    )
    def test_anything_else_is_none(self, obj):
        assert as_suite(obj) is None

    def test_an_object_that_must_not_be_touched_is_not(self):
        assert as_suite(Unbound()) is None

    def test_a_benchmark_that_another_hands_on_has_to_be_declared(self):
        wrapped = Wrapped(Benchmark())
        assert as_suite(wrapped) is None
        assert suite(wrapped).benchmark is wrapped
        assert run(wrapped, Recipe).metadata["complete"] is True


def install(monkeypatch, **recipes):
    points = [EntryPoint(name, value, api.RECIPES) for name, value in recipes.items()]
    monkeypatch.setattr(api, "entry_points", lambda group: points if group == api.RECIPES else [])


class Broken(Recipe):
    @property
    def name(self):
        return str(1 / 0)


class TestObjects:
    @pytest.mark.parametrize("spec", [Recipe, Recipe(), make_recipe, functools.partial(Recipe)])
    def test_a_recipe_a_class_or_a_factory_gives_a_recipe(self, spec):
        assert load_recipe(spec).name == "ten-lines"

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            (3, "recipe 'a int' gives a int, which has no `create` method"),
            (object, "gives a object, which has no `create` method"),
            (lambda: None, "gives a NoneType, which has no `create` method"),
            (SimpleNamespace(create=print), "which has no `name`"),
            (SimpleNamespace(create=3, name="x"), "which has no `create` method"),
            (SimpleNamespace(create=print, name=3), "which has no `name`"),
            (lambda needed: None, "cannot be made: TypeError"),
            (lambda: 1 / 0, "cannot be made: ZeroDivisionError: division by zero"),
            (Broken, "recipe 'class Broken' cannot be read: ZeroDivisionError"),
            (SimpleNamespace(create=print, name="x", available_queries=5), "`available_queries`"),
        ],
        ids=range(10),
    )
    def test_what_is_no_recipe_is_refused(self, spec, message):
        with pytest.raises(RecipeInvalidError, match=re.escape(message)):
            load_recipe(spec)

    def test_a_name_that_cannot_stand_in_an_id_is_refused(self):
        with pytest.raises(ConfigurationError, match="recipe name 'a b' is not allowed"):
            load_recipe(SimpleNamespace(create=print, name="a b"))


class TestNames:
    def test_the_installed_ones_are_known(self, monkeypatch):
        install(monkeypatch, b="m:b", a="m:a")
        assert available_recipes() == {"a": "m:a", "b": "m:b"}

    def test_the_real_entry_points_are_asked(self, monkeypatch):
        asked = []
        monkeypatch.setattr(api, "entry_points", lambda **query: asked.append(query) or [])
        assert available_recipes() == {}
        assert asked == [{"group": "pytest_heta.recipes"}]

    def test_a_name_is_loaded(self, monkeypatch):
        install(monkeypatch, tenlines=f"{__name__}:make_recipe", klass=f"{__name__}:Recipe")
        monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
        assert load_recipe("tenlines").name == "ten-lines"
        assert load_recipe(" klass ").name == "ten-lines"

    @pytest.mark.parametrize("name", ["locl", "", "pytest_heta.recipes.local"])
    def test_one_that_is_not_there_gets_the_list(self, monkeypatch, name):
        install(monkeypatch, local="m:a", other="m:b")
        with pytest.raises(RecipeNotFoundError) as raised:
            load_recipe(name)
        line = str(raised.value)
        assert f"there is no recipe {name!r}" in line
        assert "local, other" in line
        assert "package.module:attribute or path/file.py:attribute" in line

    def test_a_built_in_one_names_the_extra_that_is_missing(self, monkeypatch):
        def without_package():
            import no_such_package_of_the_extra  # noqa: F401

        install(monkeypatch, local="pytest_heta.recipes.local:local")
        monkeypatch.setattr(EntryPoint, "load", lambda self: without_package)
        with pytest.raises(ExtraMissingError) as raised:
            load_recipe("local")
        assert "needs the package 'no_such_package_of_the_extra'" in str(raised.value)
        assert "run: pip install 'pytest-heta[local]'" in str(raised.value)

    @pytest.mark.parametrize(
        ("module", "error", "message"),
        [
            ("other.recipes", ImportError("no b", name="b"), "ImportError: no b"),
            (
                "pytest_heta.recipes",
                ImportError("torn", name="pytest_heta.recipes.local"),
                "ImportError: torn",
            ),
            ("other.recipes", SyntaxError("bad"), "SyntaxError: bad"),
        ],
    )
    def test_another_failure_is_told_with_its_place(self, monkeypatch, module, error, message):
        def load(self):
            raise error

        install(monkeypatch, mine=f"{module}:make")
        monkeypatch.setattr(EntryPoint, "load", load)
        with pytest.raises(RecipeInvalidError) as raised:
            load_recipe("mine")
        line = str(raised.value)
        assert line.startswith(f"[recipe-invalid] {module}:make, ")
        assert f"{__file__}:" in str(Path.cwd() / line.split(", ")[1])
        assert f": recipe 'mine' cannot be imported: {message}" in line

    def test_an_error_of_ours_is_kept(self, monkeypatch):
        error = ExtraMissingError("x", hint="y")

        def load(self):
            raise error

        install(monkeypatch, mine="m:a")
        monkeypatch.setattr(EntryPoint, "load", load)
        with pytest.raises(ExtraMissingError) as raised:
            load_recipe("mine")
        assert raised.value is error


FILE = """
from dataclasses import dataclass
import helper

@dataclass
class Made:
    name: str = "from-file"
    def create(self, **given): ...

def factory():
    return Made(helper.NAME)

recipe = Made()

class holder:
    inner = recipe
"""


@pytest.fixture
def recipe_file(tmp_path):
    folder = tmp_path / "my recipes"
    folder.mkdir()
    (folder / "helper.py").write_text("NAME = 'from-helper'\n")
    path = folder / "mine.py"
    path.write_text(FILE)
    yield path
    sys.modules.pop("helper", None)


class TestFiles:
    @pytest.mark.parametrize(
        ("attribute", "name"),
        [
            ("recipe", "from-file"),
            ("Made", "from-file"),
            ("factory", "from-helper"),
            ("holder.inner", "from-file"),
        ],
    )
    def test_an_attribute_of_a_file_is_loaded(self, recipe_file, attribute, name):
        before = list(sys.path)
        assert load_recipe(f"{recipe_file}:{attribute}").name == name
        assert sys.path == before

    def test_a_relative_path_starts_from_the_base(self, recipe_file, tmp_path, monkeypatch):
        assert load_recipe("my recipes/mine.py:recipe", base=tmp_path).name == "from-file"
        monkeypatch.chdir(tmp_path)
        assert load_recipe("./my recipes/mine.py:recipe").name == "from-file"

    def test_a_changed_file_is_read_again(self, recipe_file):
        assert load_recipe(f"{recipe_file}:recipe").name == "from-file"
        recipe_file.write_text(FILE.replace("from-file", "from-the-changed-file"))
        assert load_recipe(f"{recipe_file}:recipe").name == "from-the-changed-file"

    def test_files_of_one_name_are_told_apart(self, recipe_file, tmp_path):
        other = tmp_path / "mine.py"
        other.write_text(FILE.replace("from-file", "other").replace("import helper", ""))
        first, second = load_recipe(f"{recipe_file}:recipe"), load_recipe(f"{other}:recipe")
        assert (first.name, second.name) == ("from-file", "other")
        assert sys.modules[type(first).__module__].__file__ == str(recipe_file)
        assert type(first).__module__ != type(second).__module__

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ("nowhere.py:recipe", "there is no file"),
            ("mine.py", "names a file but nothing in it; write mine.py:NAME"),
            ("folder/mine", "names a file but nothing in it"),
            ("folder\\mine", "names a file but nothing in it"),
            ("C:\\recipes\\mine.py", "names a file but nothing in it"),
            ("mine.py:recip", "has no 'recip'; did you mean 'recipe'?"),
            ("mine.py:holder.other", "has no 'holder.other'"),
            ("mine.py:", "has no ''"),
        ],
    )
    def test_what_is_not_there_is_named(self, recipe_file, spec, message):
        with pytest.raises(RecipeNotFoundError, match=re.escape(message)):
            load_recipe(spec, base=recipe_file.parent)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("1 / 0", "ZeroDivisionError: division by zero"),
            ("def", "SyntaxError"),
            ("import no_such_module_here", "ModuleNotFoundError"),
            ("raise SystemExit", None),
        ],
    )
    def test_a_file_that_cannot_be_imported_is_named(self, tmp_path, text, message):
        path = tmp_path / "broken.py"
        path.write_text(text)
        before = list(sys.path), set(sys.modules)
        with pytest.raises((RecipeInvalidError, SystemExit)) as raised:
            load_recipe(f"{path}:recipe")
        if message is None:
            assert raised.type is SystemExit
        else:
            assert message in str(raised.value)
            assert str(path) in str(raised.value)
            assert not {name for name in set(sys.modules) - before[1] if "heta_recipe" in name}
        assert sys.path == before[0]

    def test_a_path_with_a_drive_is_a_path(self, monkeypatch):
        seen = []
        monkeypatch.setattr(
            api,
            "_module_from_file",
            lambda path, spec: seen.append(path) or SimpleNamespace(r=Recipe),
        )
        load_recipe("C:\\recipes\\mine.py:r", base=Path("base"))
        assert str(seen[0]).endswith("C:\\recipes\\mine.py")


class TestModules:
    def test_an_attribute_of_a_module_is_loaded(self, tmp_path):
        package = tmp_path / "my_recipe_package"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "parts.py").write_text(FILE.replace("import helper", ""))
        before = list(sys.path)
        try:
            loaded = load_recipe("my_recipe_package.parts:recipe", base=tmp_path)
            assert loaded.name == "from-file"
            assert sys.path == before
        finally:
            for name in ("my_recipe_package", "my_recipe_package.parts"):
                sys.modules.pop(name, None)

    @pytest.mark.parametrize(
        ("spec", "missing"),
        [
            ("no_such_package:recipe", "no_such_package"),
            ("no_such_package.parts:recipe", "no_such_package"),
            ("pytest_heta.no_such_module:recipe", "pytest_heta.no_such_module"),
        ],
    )
    def test_one_that_is_not_there_is_named(self, spec, missing):
        with pytest.raises(RecipeNotFoundError, match=f"there is no module '{missing}'"):
            load_recipe(spec)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("import no_such_module_here", "ModuleNotFoundError: No module named"),
            ("1 / 0", "ZeroDivisionError"),
        ],
    )
    def test_one_that_cannot_be_imported_is_named(self, tmp_path, text, message):
        (tmp_path / "broken_recipe_module.py").write_text(text)
        with pytest.raises(RecipeInvalidError, match=message):
            load_recipe("broken_recipe_module:recipe", base=tmp_path)
        sys.modules.pop("broken_recipe_module", None)

    def test_one_that_clears_the_path_does_no_harm(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys, "path", list(sys.path))
        (tmp_path / "tidy_recipe_module.py").write_text(
            f"import sys\nsys.path.remove({str(tmp_path)!r})\nname = 'x'\ncreate = print\n"
            "class recipe:\n    name = 'tidy'\n    create = print\n"
        )
        assert load_recipe("tidy_recipe_module:recipe", base=tmp_path).name == "tidy"
        sys.modules.pop("tidy_recipe_module", None)


class TestRun:
    def test_it_returns_the_report(self):
        report = run(Benchmark(), Recipe, gates=["*.ndcg@10 >= 1"])
        assert report.score_summary == {"default.ndcg@10": 1.0}
        assert report.gates[0].status == "passed"
        assert report.gates[0].origin == "run"
        assert report.metadata["complete"] is True

    def test_it_works_inside_a_running_loop(self):
        async def main():
            mine = asyncio.get_running_loop()
            report = run(Benchmark(), Recipe)
            return report, asyncio.get_running_loop() is mine

        report, untouched = asyncio.run(main())
        assert report.score_summary == {"default.ndcg@10": 1.0}
        assert untouched

    def test_knowledge_bases_are_kept_in_a_folder_that_is_named(self, tmp_path):
        class Saving(Recipe):
            def save(self, knowledge_base, path):
                (path / "texts").write_text("q-a")

            def load(self, path):
                return Recipe.create(self, objects={}, source_keys=())

        made = [
            run(Benchmark(), Saving(), cache_dir=folder).unit_builds[0].reused
            for folder in (None, tmp_path / "kept", str(tmp_path / "kept"), None)
        ]
        assert made == [False, False, True, False]

    def test_options_change_the_run(self):
        report = run(
            suite(Benchmark(), evaluators=["map@10"], gates="exact.map@3 > 0"),
            Recipe,
            modes="exact",
            top_k=3,
            options={"a": 1},
            limit=1,
            repeat=2,
            warmup=1,
            responses="ids",
            evaluators=["recall@2", MeasureEvaluator("hit@1")],
        )
        assert [result.case_id for result in report.case_results] == ["q-a", "q-a"]
        assert set(report.score_summary) == {"exact.recall@2", "exact.hit@1", "exact.map@3"}
        assert report.config_snapshot["options"] == {"a": 1}
        assert report.config_snapshot["top_k"] == 3

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"top_k": 0}, "run: top_k = 0 is not allowed; use a whole number from 1"),
            ({"limit": 0}, "run: limit = 0"),
            ({"sample": -1}, "run: sample = -1"),
            ({"repeat": 0}, "run: repeat = 0"),
            ({"repeat": 1.5}, "run: repeat = 1.5"),
            ({"warmup": -1}, "run: warmup = -1 is not allowed; use a whole number from 0"),
            ({"responses": "all"}, "run: responses = 'all' is not allowed; use ids, short"),
            ({"timeout": 0}, "run: timeout = 0 is not allowed; use a positive number of seconds"),
            ({"timeout": math.inf}, "run: timeout = inf"),
            ({"timeout": True}, "run: timeout = True"),
            ({"build_timeout": "1"}, "run: build_timeout = '1'"),
            ({"gates": ["x"]}, "there is no operator"),
            ({"evaluators": ["ndcg"]}, "ndcg"),
        ],
    )
    def test_options_that_are_wrong_are_refused(self, options, message):
        with pytest.raises(ConfigurationError, match=re.escape(message)):
            run(Benchmark(), Recipe, **options)

    def test_what_takes_too_long_costs_its_sample_or_its_unit(self):
        limit_s = 0.2

        class Slow(Recipe):
            async def create(self, **given):
                await asyncio.Event().wait()

        report = run(Benchmark(), Slow, build_timeout=limit_s)
        assert {result.error.error_type for result in report.case_results} == {"timeout"}

        class Base:
            async def query(self, text, **keywords):
                await asyncio.Event().wait()

        Slow.create = lambda self, **given: Base()
        report = run(Benchmark(), Slow, timeout=limit_s)
        assert {result.error.error_type for result in report.case_results} == {"timeout"}

    def test_what_blocks_the_event_loop_ends_the_run(self):
        gate = threading.Event()

        class Base:
            async def query(self, text, **keywords):
                gate.wait()

        class Blocking(Recipe):
            def create(self, **given):
                return Base()

        with pytest.raises(LoopBlockedError):
            run(Benchmark(), Blocking, timeout=0.2)
        gate.set()

    def test_a_mode_that_the_recipe_lacks_is_refused(self):
        with pytest.raises(ModeUnknownError, match="did you mean 'exact'"):
            run(Benchmark(), DeclaredModes, modes=["exat"])

    def test_its_files_are_removed_or_kept_where_told(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
        run(Benchmark(), Recipe)
        assert list(tmp_path.iterdir()) == []
        run(Benchmark(), Recipe, workspace=tmp_path / "kept")
        assert [path.name for path in tmp_path.iterdir()] == ["kept"]

    def test_a_folder_is_a_benchmark(self, tmp_path):
        (tmp_path / "corpus.jsonl").write_text('{"_id": 7, "text": "tin roof"}\n')
        (tmp_path / "queries.jsonl").write_text('{"_id": 1, "text": "tin roof"}\n')
        (tmp_path / "qrels").mkdir()
        (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\t7\t1\n")
        for folder in (tmp_path, str(tmp_path)):
            report = run(folder, Recipe, evaluators=["recall@1"])
            assert report.score_summary == {"default.recall@1": 1.0}

    @pytest.mark.parametrize(
        ("benchmark_", "message"),
        [("no/such/folder", "no/such/folder"), (3, "a int is not a benchmark")],
    )
    def test_what_is_no_benchmark_is_refused(self, benchmark_, message):
        with pytest.raises(ConfigurationError, match=message):
            run(benchmark_, Recipe)


class DeclaredModes(Recipe):
    available_queries = ("exact",)


class TogetherOnly:
    """Answers when three are asking at the same time."""

    def __init__(self):
        self.barrier = threading.Barrier(3, timeout=30)
        self.threads = set()

    def query(self, text):
        self.threads.add(threading.get_ident())
        self.barrier.wait()
        return {"results": [{"id": "a"}]}


class ManyCases(Benchmark):
    async def cases(self, prepared):
        for number in range(6):
            yield BenchmarkCase(case_id=str(number), query=str(number))


def test_ordinary_queries_are_asked_at_once_when_that_is_chosen():
    knowledge_base = TogetherOnly()
    recipe = SimpleNamespace(name="together", manifest=dict, create=lambda **_: knowledge_base)
    report = run(ManyCases(), recipe, concurrency=3)
    assert [result.error for result in report.case_results] == [None] * 6
    assert [result.case_id for result in report.case_results] == [str(n) for n in range(6)]
    assert len(knowledge_base.threads) == 3
    assert report.config_snapshot["concurrency"] == 3


def test_a_wrong_max_concurrency_is_refused_before_anything_is_built():
    recipe = SimpleNamespace(name="odd", manifest=dict, create=pytest.fail, max_concurrency="8")
    with pytest.raises(RecipeInvalidError, match="max_concurrency = '8'"):
        run(ManyCases(), recipe)
