"""The step that builds a knowledge base."""

import asyncio
import itertools
from types import SimpleNamespace

import pytest

from pytest_heta.core import _loop
from pytest_heta.core.build import (
    available_modes,
    build_knowledge_base,
    close_knowledge_base,
    failed_build,
    knowledge_base_name,
)
from pytest_heta.errors import BuildError, ConfigurationError


def build(recipe, tmp_path, keys=("a", "b")):
    return asyncio.run(
        build_knowledge_base(
            recipe,
            name="kb",
            unit_id="u",
            objects=None,
            source_keys=list(keys),
            workspace=tmp_path / "work" / "u",
        )
    )


class Recipe:
    """A recipe with a given ``create``."""

    def __init__(self, create):
        self.create = create


class TestBuilding:
    def test_an_ordinary_create_gets_everything(self, fakes, tmp_path):
        seen = {}

        def create(*, name, objects, source_keys, workspace):
            seen.update(name=name, keys=source_keys, there=workspace.is_dir())
            return fakes.KnowledgeBase(None, {"b", "a"})

        built = build(Recipe(create), tmp_path)
        assert seen == {"name": "kb", "keys": ("a", "b"), "there": True}
        assert built.available_queries == ("a", "b")
        assert built.build.unit_id == "u"
        assert built.build.document_count == 2
        assert built.build.build_seconds >= 0
        assert built.build.error is None

    def test_a_coroutine_function_works_as_well(self, fakes, tmp_path):
        async def create(*, source_keys):
            await asyncio.sleep(0)
            return fakes.KnowledgeBase(None)

        assert build(Recipe(create), tmp_path).available_queries == ("exact",)

    def test_only_the_time_inside_create_counts(self, fakes, tmp_path, monkeypatch):
        ticks = itertools.chain([1.0, 3.5], itertools.count(100.0))
        monkeypatch.setattr(_loop, "perf_counter", lambda: next(ticks))

        class SlowManifest(fakes.KnowledgeBase):
            def manifest(self):
                return {"kind": "slow"}

        built = build(Recipe(lambda **_: SlowManifest(None)), tmp_path)
        assert built.build.build_seconds == 2.5

    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (ValueError("no\nmodel"), "[build-failed] run unit u: ValueError: no model"),
            (BuildError("no", hint="try"), "[build-failed] run unit u: no; try"),
            (BuildError("no", where="doc 3"), "[build-failed] doc 3: no"),
            (
                ConfigurationError("bad"),
                "[build-failed] run unit u: ConfigurationError: [configuration-invalid] bad",
            ),
        ],
    )
    def test_what_create_raises_is_a_build_error(self, tmp_path, error, message):
        def create(**_):
            raise error

        with pytest.raises(BuildError) as raised:
            build(Recipe(create), tmp_path)
        assert str(raised.value) == message
        assert raised.value.__cause__ is error

    def test_an_interrupt_goes_through(self, tmp_path):
        def create(**_):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            build(Recipe(create), tmp_path)

    @pytest.mark.parametrize(("made", "kind"), [(None, "None"), (["x"], "a list")])
    def test_what_cannot_be_asked_is_no_knowledge_base(self, tmp_path, made, kind):
        with pytest.raises(BuildError, match=f"returned {kind}, which has no `query` method"):
            build(Recipe(lambda **_: made), tmp_path)

    def test_a_folder_that_cannot_be_made_is_a_build_error(self, fakes, tmp_path):
        (tmp_path / "work").write_text("in the way")
        with pytest.raises(BuildError, match="run unit u: its folder cannot be made"):
            build(fakes.Recipe(), tmp_path)

    def test_modes_that_cannot_be_read_are_a_build_error(self, tmp_path):
        class Broken:
            def query(self, text): ...

            @property
            def available_queries(self):
                raise ZeroDivisionError

        with pytest.raises(BuildError, match="`available_queries` cannot be read: ZeroDiv"):
            build(Recipe(lambda **_: Broken()), tmp_path)

    def test_a_failed_build_is_a_record(self):
        record = failed_build("u", BuildError("no"), 3)
        assert record.error.error_type == "build"
        assert record.error.message == "[build-failed] no"
        assert record.build_seconds is None
        assert record.document_count == 3


class TestManifest:
    @pytest.mark.parametrize(
        ("value", "recorded"),
        [
            ({"model": "m", "sizes": {2, 1}}, {"model": "m", "sizes": [1, 2]}),
            ("version 3", {"manifest": "version 3"}),
            (None, {"manifest": None}),
        ],
    )
    def test_it_is_recorded_as_plain_data(self, fakes, tmp_path, value, recorded):
        knowledge_base = fakes.KnowledgeBase(None)
        knowledge_base.manifest = lambda: value
        built = build(Recipe(lambda **_: knowledge_base), tmp_path)
        assert built.build.knowledge_base_manifest == recorded

    def test_one_that_fails_does_not_fail_the_build(self, fakes, tmp_path):
        async def manifest():
            raise ZeroDivisionError

        knowledge_base = fakes.KnowledgeBase(None)
        knowledge_base.manifest = manifest
        built = build(Recipe(lambda **_: knowledge_base), tmp_path)
        assert built.build.knowledge_base_manifest == {}
        assert built.build.metadata == {"manifest_error": "ZeroDivisionError"}


@pytest.mark.parametrize(
    ("declared", "modes"),
    [
        (("b", "a"), ("b", "a")),
        (["b", "a"], ("b", "a")),
        (frozenset({"b", "a", "c"}), ("a", "b", "c")),
        ("only", ("only",)),
        (None, ()),
        (lambda: ["x"], ("x",)),
    ],
)
def test_modes_have_a_stable_order(fakes, declared, modes):
    assert available_modes(fakes.KnowledgeBase(None, declared)) == modes
    assert available_modes(object()) == ()


class TestClosing:
    def test_either_kind_of_aclose_is_called(self, fakes):
        knowledge_base = fakes.KnowledgeBase(None)
        assert asyncio.run(close_knowledge_base(knowledge_base)) is None
        assert knowledge_base.closed == 1

        async def aclose():
            knowledge_base.closed += 1

        knowledge_base.aclose = aclose
        assert asyncio.run(close_knowledge_base(knowledge_base)) is None
        assert knowledge_base.closed == 2

    def test_close_is_called_where_there_is_no_aclose(self):
        class Closable:
            closed = False

            def close(self):
                self.closed = True

        knowledge_base = Closable()
        asyncio.run(close_knowledge_base(knowledge_base))
        assert knowledge_base.closed

    def test_why_it_failed_is_told(self, fakes):
        def aclose():
            raise OSError("gone")

        knowledge_base = fakes.KnowledgeBase(None)
        knowledge_base.aclose = aclose
        assert asyncio.run(close_knowledge_base(knowledge_base)) == "OSError: gone"

    def test_what_cannot_be_closed_is_left(self):
        assert asyncio.run(close_knowledge_base(object())) is None

    def test_one_whose_modes_cannot_be_read_is_not_left_open(self, fakes, tmp_path):
        class Broken(fakes.KnowledgeBase):
            @property
            def available_queries(self):
                raise OSError("gone")

            @available_queries.setter
            def available_queries(self, modes):
                pass

        made = Broken(None)
        recipe = SimpleNamespace(create=lambda: made)
        with pytest.raises(BuildError, match="OSError: gone"):
            build(recipe, tmp_path)
        assert made.closed == 1


class TestName:
    def test_it_begins_with_benchmark_and_unit(self):
        assert knowledge_base_name("cranfield", "all").startswith("cranfield-all-")

    def test_names_are_the_same_in_every_run_and_collide_in_none(self):
        asked = [
            ("a-b", "c", ""),
            ("a", "b-c", ""),
            ("a", "b-c", "other"),
            ("a", "B-C", ""),
            ("a", "b/c", ""),
            ("a", "b_c", ""),
            ("a", "x" * 500, ""),
            ("a", "x" * 501, ""),
        ]
        names = [knowledge_base_name(*parts) for parts in asked]
        assert names == [knowledge_base_name(*parts) for parts in asked]
        assert len({name.casefold() for name in names}) == len(asked)
        assert all(len(name) <= 100 for name in names)
