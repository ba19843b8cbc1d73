"""What a saved knowledge base is found by: a change of anything that decides it misses."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_heta.api import load_recipe
from pytest_heta.core import _cache_key
from pytest_heta.core.build import build_knowledge_base
from pytest_heta.core.cache import KnowledgeBaseCache, is_cacheable
from pytest_heta.core.staging import stage_documents
from pytest_heta.models import BenchmarkRunUnit

SOURCE = """
from helpers import split
import far.near


class Base:
    def save(self, knowledge_base, path): ...
    def load(self, path): ...


class Recipe(Base):
    name = "own"

    def manifest(self):
        return {"size": 3}

    def create(self):
        from late import tokens
        return split
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with the module of a recipe, and a function that imports the recipe anew."""
    folder = tmp_path / "project"
    (folder / "far" / "near").mkdir(parents=True)
    (folder / "recipe.py").write_text(SOURCE, encoding="utf-8")
    (folder / "helpers.py").write_text("def split(): ...\n", encoding="utf-8")
    (folder / "late.py").write_text("tokens = 1\n", encoding="utf-8")
    (folder / "aside.py").write_text("nothing = 1\n", encoding="utf-8")
    (folder / "far" / "__init__.py").write_text("", encoding="utf-8")
    (folder / "far" / "near" / "__init__.py").write_text("from .deep import x\n", encoding="utf-8")
    (folder / "far" / "near" / "deep.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    names = ("recipe", "helpers", "late", "far", "far.near", "far.near.deep")

    def made():
        for name in names:
            sys.modules.pop(name, None)
        spec = importlib.util.spec_from_file_location("recipe", folder / "recipe.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "recipe", module)
        spec.loader.exec_module(module)
        return module.Recipe()

    yield SimpleNamespace(folder=folder, recipe=made)
    for name in names:
        sys.modules.pop(name, None)


def key(recipe, tmp_path, **changed):
    cache = KnowledgeBaseCache(tmp_path, max_bytes=1)
    given = {"name": "kb", "benchmark": "b", "unit_id": "u", "documents": "d"}
    return cache.key_of(recipe, **{**given, **changed})


def digest(recipe, tmp_path, **changed):
    return key(recipe, tmp_path, **changed).digest


def test_the_same_gives_the_same_key(project, tmp_path):
    first = key(project.recipe(), tmp_path)
    assert first == key(project.recipe(), tmp_path)
    assert (first.recipe, first.benchmark, first.unit_id) == ("own", "b", "u")


@pytest.mark.parametrize("part", ["name", "unit_id", "documents"])
def test_name_unit_and_documents_count(project, tmp_path, part):
    recipe = project.recipe()
    assert digest(recipe, tmp_path, **{part: "other"}) != digest(recipe, tmp_path)


def test_the_name_of_the_recipe_counts(project, tmp_path):
    recipe = project.recipe()
    before = digest(recipe, tmp_path)
    recipe.name = "other"
    assert digest(recipe, tmp_path) != before


def test_everything_in_the_manifest_counts(project, tmp_path):
    recipe = project.recipe()
    values = [
        3,
        3.5,
        "3",
        [3],
        {"x": 3},
        None,
        float("inf"),
        float("nan"),
        b"ab",
        b"ac",
        "x" * 30_000,
        "x" * 30_001,
    ]
    values += [[0] * 20_000, [0] * 20_001, print, len, "\ud800", "\ud801", "\ufffd"]
    digests = set()
    for value in values:
        recipe.manifest = lambda value=value: {"value": value}
        assert digest(recipe, tmp_path) == digest(recipe, tmp_path)
        digests.add(digest(recipe, tmp_path))
    assert len(digests) == len(values)


def test_sets_have_no_order(project, tmp_path):
    recipe = project.recipe()
    recipe.manifest = functools.partial(dict, words=set(map(str, range(50))))
    first = digest(recipe, tmp_path)
    recipe.manifest = functools.partial(dict, words=set(map(str, reversed(range(50)))))
    assert digest(recipe, tmp_path) == first


@pytest.mark.parametrize(
    "file",
    ["recipe.py", "helpers.py", "late.py", "far/__init__.py", "far/near/deep.py"],
)
def test_the_recipes_own_code_counts_however_it_is_imported(project, tmp_path, file):
    before = digest(project.recipe(), tmp_path)
    with (project.folder / file).open("a", encoding="utf-8") as source:
        source.write("changed = 1\n")
    assert digest(project.recipe(), tmp_path) != before


def test_other_files_beside_it_do_not_count(project, tmp_path):
    before = digest(project.recipe(), tmp_path)
    (project.folder / "aside.py").write_text("changed = 1\n", encoding="utf-8")
    assert digest(project.recipe(), tmp_path) == before


def test_the_code_of_attributes_counts(project, tmp_path):
    part = project.recipe()
    recipe = SimpleNamespace(
        name="r",
        manifest=dict,
        save=functools.partial(part.save),
        load=part.load,
        create=part.create,
    )
    before = digest(recipe, tmp_path)
    assert digest(recipe, tmp_path) == before
    (project.folder / "helpers.py").write_text("def split(): return 1\n", encoding="utf-8")
    assert digest(recipe, tmp_path) != before


def test_a_neighbour_in_the_recipes_package_counts(project, tmp_path):
    package = project.folder / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "made.py").write_text(SOURCE.partition("\n\n\n")[2], encoding="utf-8")
    (package / "beside.py").write_text("x = 1\n", encoding="utf-8")
    made = importlib.import_module("pack.made")
    try:
        before = digest(made.Recipe(), tmp_path)
        (package / "beside.py").write_text("x = 2\n", encoding="utf-8")
        assert digest(made.Recipe(), tmp_path) != before
    finally:
        del sys.modules["pack"], sys.modules["pack.made"]


def test_versions_of_packages_count(project, tmp_path, monkeypatch):
    recipe = project.recipe()
    before = digest(recipe, tmp_path)
    versions = {"numpy": "0", "pytest": "1"}
    monkeypatch.setattr(_cache_key, "package_versions", lambda: versions)
    _cache_key.environment.cache_clear()
    try:
        assert digest(recipe, tmp_path) != before
        changed = digest(recipe, tmp_path)
        versions["pytest"] = "2"
        _cache_key.environment.cache_clear()
        assert digest(recipe, tmp_path) == changed
    finally:
        _cache_key.environment.cache_clear()


def test_where_a_recipes_file_lies_does_not_count(project, tmp_path):
    made_of_parts = """
import dataclasses, helpers

@dataclasses.dataclass
class Part:
    size: int

def measure(): ...

class Recipe:
    name = "r"
    def create(self): ...
    def save(self, knowledge_base, path): ...
    def load(self, path): ...
    def manifest(self):
        return {"part": Part(3), "measure": measure, "object": object()}

recipe = Recipe()
"""
    (project.folder / "parts.py").write_text(made_of_parts, encoding="utf-8")
    copy = tmp_path / "copy"
    shutil.copytree(project.folder, copy)
    keys = []
    try:
        for folder in (project.folder, copy):
            sys.modules.pop("helpers", None)
            keys.append(digest(load_recipe(f"{folder / 'parts.py'}:recipe"), tmp_path))
        assert keys[0] == keys[1]
        (copy / "parts.py").write_text(made_of_parts + "changed = 1\n", encoding="utf-8")
        assert digest(load_recipe(f"{copy / 'parts.py'}:recipe"), tmp_path) != keys[0]
        (copy / "other.py").write_text(made_of_parts, encoding="utf-8")
        assert digest(load_recipe(f"{copy / 'other.py'}:recipe"), tmp_path) != keys[0]
    finally:
        for name in [name for name in sys.modules if name.startswith("heta_recipe_")]:
            del sys.modules[name]


def test_what_a_recipe_loads_at_first_use_does_not_make_it_another_one(tmp_path):
    recipe_module = pytest.importorskip("pytest_heta.recipes.local")
    recipe = recipe_module.local()
    before = digest(recipe, tmp_path)
    recipe._model.embed_queries(["something"])
    assert digest(recipe, tmp_path) == before


def test_without_a_manifest_public_attributes_count(tmp_path):
    class Recipe:
        name = "r"

        def __init__(self, size):
            self.size, self._loaded = size, object()
            self.model = object()

        def create(self): ...
        def save(self, knowledge_base, path): ...
        def load(self, path): ...

    assert digest(Recipe(1), tmp_path) == digest(Recipe(1), tmp_path)
    assert digest(Recipe(1), tmp_path) != digest(Recipe(2), tmp_path)


def failing():
    raise RuntimeError


async def asynchronous():
    return {}


@pytest.mark.parametrize("manifest", [failing, asynchronous])
def test_there_is_no_key_without_the_manifest(project, tmp_path, manifest):
    recipe = project.recipe()
    recipe.manifest = manifest
    assert key(recipe, tmp_path) is None


def test_code_that_is_in_no_file_is_found_in_the_same_run_only(tmp_path):
    space = {"__name__": "nowhere"}
    exec(SOURCE.partition("\n\n\n")[2], space)
    recipe = space["Recipe"]()
    given = {"name": "kb", "benchmark": "b", "unit_id": "u", "documents": "d"}
    keys = [
        KnowledgeBaseCache(tmp_path, max_bytes=1, run=run).key_of(recipe, **given)
        for run in ("first", "first", "second")
    ]
    assert keys[0] == keys[1] != keys[2]


class OnlySave:
    def save(self, knowledge_base, path): ...


class Both(OnlySave):
    async def load(self, path, *, workspace=None): ...


class OfItself:
    """As recipes of other frameworks are written and read: by themselves."""

    def save(self, path): ...
    def load(self, path): ...


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        (OnlySave(), False),
        (SimpleNamespace(save=None, load=None), False),
        (Both(), True),
        (OfItself(), False),
        (SimpleNamespace(save=max, load=len), True),
    ],
)
def test_recipes_that_can_save_and_load_are_cached(recipe, expected, tmp_path):
    assert is_cacheable(recipe) is expected
    if not expected:
        assert key(recipe, tmp_path) is None


VARIANTS = """
import dataclasses
import enum
import functools
import pathlib
from typing import NamedTuple

from pytest_heta.recipes.local import LocalRecipe


class Base:
    name = "r"
    def create(self): return KnowledgeBase(self.cut())
    def save(self, knowledge_base, path): (path / "n").write_text(str(knowledge_base.n))
    def load(self, path): return KnowledgeBase(int((path / "n").read_text()))
    def cut(self): return 0


class KnowledgeBase:
    def __init__(self, n): self.n = n
    def query(self, text): ...


class Chunker:
    def __init__(self, n): self.n = n


class Slotted:
    __slots__ = ("__n",)
    def __init__(self, n): self.__n = n


class Pair(NamedTuple):
    chunker: object


class Size(enum.Enum):
    ONE = 1
    TWO = 2


class Words(dict):
    def __init__(self, n):
        super().__init__(a=1)
        self.n = n


def cut(n): ...
def cut_to(n): return lambda text: text[:n]
def cut_by(n=1):
    def function(text, n=n): return text[:n]
    return function


def ring(n):
    first, second = Chunker(n), Chunker(0)
    first.next, second.next = second, first
    return second


def local_class(n):
    class Local:
        def cut(self): return n
    return Local


class A(Base):
    def cut(self): return 1
class B(Base):
    def cut(self): return 2


class PerClass(Base):
    size = 1
class PerProperty(Base):
    @property
    def size(self): return Chunker(OF_PROPERTY)


@dataclasses.dataclass(slots=True)
class Slots(Base):
    size: int


class Says(Base):
    def __init__(self, n): self.__n = n
    def manifest(self): return {"ch": Chunker(self.__n)}


class Mine(LocalRecipe):
    create, save, load = Base.__dict__["create"], Base.save, Base.load
    def cut(self): return self.chunk_size


def array(n):
    import numpy
    return numpy.array([0, n])


def holding(value):
    recipe = Base()
    recipe._value = value
    return recipe


def per_class(n):
    PerClass.size = n
    return PerClass()


def per_property(n):
    global OF_PROPERTY
    OF_PROPERTY = n
    return PerProperty()


VARIANTS = {
    "class": lambda n: (A, B)[n - 1](),
    "class attribute": per_class,
    "property": per_property,
    "slots": Slots,
    "private slot": lambda n: holding(Slotted(n)),
    "object": lambda n: holding(Chunker(n)),
    "in a tuple": lambda n: holding((Chunker(n),)),
    "in a set": lambda n: holding({Pair(n), *"abcdefgh"}),
    "in a dictionary": lambda n: holding({"a": {"b": [Chunker(n)]}}),
    "key of a dictionary": lambda n: holding({(n,): 1}),
    "NamedTuple": lambda n: holding(Pair(Chunker(n))),
    "of a dictionary's class": lambda n: holding(Words(n)),
    "partial": lambda n: holding(functools.partial(cut, n=n)),
    "closure": lambda n: holding(cut_to(n)),
    "default": lambda n: holding(cut_by(n)),
    "code": lambda n: holding(eval(f"lambda: {n}")),
    "bound method": lambda n: holding(cut_by(n).__get__(Chunker(1))),
    "self of a method": lambda n: holding(cut_by(3).__get__(Chunker(n))),
    "ring": lambda n: holding(ring(n)),
    "class made in a function": lambda n: holding(local_class(n)),
    "object of such a class": lambda n: holding(local_class(n)()),
    "manifest": Says,
    "enum": lambda n: holding(Size(n)),
    "path": lambda n: holding(pathlib.PurePosixPath(str(n))),
    "array": lambda n: holding(array(n)),
    "subclass of ours": lambda n: Mine(chunk_size=n * 100),
}
"""


def build_once(recipe, tmp_path):
    cache = KnowledgeBaseCache(tmp_path / "kept", max_bytes=1 << 20)
    given = {"name": "kb", "unit_id": "u"}
    made = cache.key_of(recipe, benchmark="b", documents="d", **given)
    built = asyncio.run(
        build_knowledge_base(
            recipe,
            **given,
            objects=None,
            source_keys=[],
            workspace=tmp_path / "work",
            cache=cache,
            key=made,
        )
    )
    built.release()
    return built.build


def variants(tmp_path, monkeypatch):
    """Import the module of the variants anew, as another process does."""
    file = tmp_path / "heta_variants.py"
    file.write_text(VARIANTS, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("heta_variants", file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "heta_variants", module)
    spec.loader.exec_module(module)
    return module.VARIANTS


VARIANT_SPACE = {}
exec(VARIANTS, VARIANT_SPACE)


@pytest.mark.parametrize("variant", list(VARIANT_SPACE["VARIANTS"]))
def test_only_an_unchanged_recipe_loads_what_was_saved(tmp_path, monkeypatch, variant):
    reused = []
    for n in (1, 2, 1, 2):
        recipe = variants(tmp_path, monkeypatch)[variant](n)
        build = build_once(recipe, tmp_path)
        assert "cache_warnings" not in build.metadata
        reused.append(build.reused)
    assert reused == [False, False, True, True]


class Holder:
    name = "r"

    def __init__(self, **values):
        vars(self).update(values)

    def create(self):
        return SimpleNamespace(query=print)

    def save(self, knowledge_base, path): ...

    def load(self, path):
        return self.create()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (Path(__file__).open, "is a TextIOWrapper, whose state is unknown"),
        (threading.Lock, "is a lock, whose state is unknown"),
        (lambda: iter(n for n in "ab"), "is a generator, whose state is unknown"),
        (socket.socket, "is a socket, whose state is unknown"),
        (lambda: bytes(1 << 27), "is too large"),
        (lambda: [[0]] * 300_000, "is too large"),
        (lambda: functools.reduce(lambda inner, _: [inner], range(200), []), "too deeply"),
    ],
    ids=["file", "lock", "generator", "socket", "bytes", "list", "depth"],
)
@pytest.mark.parametrize("place", ["attribute", "manifest"])
def test_what_cannot_be_told_is_built_with_one_warning(tmp_path, make, why, place):
    held = make()
    inner = SimpleNamespace(deep={"held": held})
    if place == "attribute":
        recipe, where = Holder(_part=inner), "`_part.deep.held"
    else:
        recipe, where = Holder(manifest=partial_of(inner)), "`manifest().part.deep.held"
    try:
        for _ in range(2):
            build = build_once(recipe, tmp_path)
            assert not build.reused
            (warning,) = build.metadata["cache_warnings"]
            assert where in warning
            assert why in warning
        assert not list((tmp_path / "kept").rglob("entry.json"))
    finally:
        getattr(held, "close", lambda: None)()


def partial_of(inner):
    return functools.partial(dict, part=inner)


def test_a_property_that_fails_or_cannot_be_told_does_not_count(tmp_path):
    class Failing(Holder):
        @property
        def broken(self):
            raise RuntimeError

        @property
        def stream(self):
            return (n for n in "ab")

    assert not build_once(Failing(), tmp_path).reused
    assert build_once(Failing(), tmp_path).reused


@pytest.mark.parametrize("method", ["save", "load"])
@pytest.mark.parametrize("kind", [SystemExit, BaseException])
@pytest.mark.parametrize("is_coroutine", [False, True])
def test_ending_the_process_in_save_or_load_is_failing(tmp_path, method, kind, is_coroutine):
    def end(*args):
        raise kind("no")

    async def end_later(*args):
        raise kind("no")

    class Ending(Holder):
        save = end_later if is_coroutine else end

    class Loading(Holder):
        load = end_later if is_coroutine else end

    recipe = Ending() if method == "save" else Loading()
    first = build_once(recipe, tmp_path)
    second = build_once(recipe, tmp_path)
    assert not first.reused
    assert not second.reused
    (warning,) = second.metadata["cache_warnings"]
    assert f"{kind.__name__}: no" in warning


def test_the_key_is_the_same_in_every_process(tmp_path):
    (tmp_path / "heta_variants.py").write_text(VARIANTS, encoding="utf-8")
    asked = """
from pathlib import Path
from heta_variants import VARIANTS
from pytest_heta.core.cache import KnowledgeBaseCache
cache = KnowledgeBaseCache(Path("kept"), max_bytes=1)
given = {"name": "kb", "benchmark": "b", "unit_id": "u", "documents": "d"}
for make in VARIANTS.values():
    print(cache.key_of(make(1), **given).digest)
"""
    printed = {
        subprocess.run(
            [sys.executable, "-c", asked],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert len(set(printed.pop().split())) == len(VARIANT_SPACE["VARIANTS"])


def test_an_interrupt_in_save_goes_through(tmp_path):
    class Interrupted(Holder):
        def save(self, knowledge_base, path):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_once(Interrupted(), tmp_path)


class TestDocuments:
    @pytest.fixture
    def digest_of(self, fakes, tmp_path):
        def run(documents, ids=(), **manifest):
            unit = BenchmarkRunUnit(unit_id="u", document_ids=tuple(ids))
            benchmark = fakes.Benchmark(documents, [fakes.case("c")], [unit], **manifest)
            loaded = fakes.load(benchmark, tmp_path)
            staged = asyncio.run(stage_documents(loaded, tmp_path / "stage"))
            return staged.digest_of(staged.keys(ids))

        return run

    def test_the_same_documents_have_the_same_digest(self, fakes, digest_of):
        documents = [fakes.document("a", "1"), fakes.document("b", "2")]
        assert digest_of(documents) == digest_of(documents)
        assert digest_of(documents, ["a", "b"]) == digest_of(documents)

    def test_only_the_units_own_count(self, fakes, digest_of):
        a, b = fakes.document("a", "1"), fakes.document("b", "2")
        changed = fakes.document("b", "3")
        assert digest_of([a, b], ["a"]) == digest_of([a, changed], ["a"])
        assert digest_of([a, b], ["b"]) != digest_of([a, changed], ["b"])
        assert digest_of([a, b], ["a"]) != digest_of([a, b], ["b"])

    @pytest.mark.parametrize(
        "changes",
        [
            {"text": "other"},
            {"name": "other.txt"},
            {"media_type": "text/markdown"},
            {"metadata": {"title": "other"}},
            {"document_id": "other"},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_everything_about_a_document_counts(self, fakes, digest_of, changes):
        about = {"document_id": "a", "text": "1", "name": "a.txt"}
        before = digest_of([fakes.document(**about), fakes.document("b")])
        after = digest_of([fakes.document(**{**about, **changes}), fakes.document("b")])
        assert after != before

    def test_order_counts(self, fakes, digest_of):
        a, b = fakes.document("a", "1"), fakes.document("b", "2")
        assert digest_of([a, b]) != digest_of([b, a])
        assert digest_of([a, b, fakes.document("c")], ["a", "b"]) != digest_of(
            [b, a, fakes.document("c")], ["a", "b"]
        )

    def test_the_benchmarks_name_and_split_count(self, fakes, digest_of):
        documents = [fakes.document("a", "1")]
        digests = {
            digest_of(documents),
            digest_of(documents, name="other"),
            digest_of(documents, split="dev"),
        }
        assert len(digests) == 3
