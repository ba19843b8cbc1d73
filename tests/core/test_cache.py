"""Knowledge bases that are kept: saved whole, checked, loaded, and removed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from pytest_heta.core import cache as cache_module
from pytest_heta.core._loop import LoopThread
from pytest_heta.core.build import build_knowledge_base
from pytest_heta.core.cache import CacheKey, KnowledgeBaseCache
from pytest_heta.errors import BuildError, BuildTimeoutError

KEY = CacheKey("0" * 64, "r", "b", "u")


def key(number):
    return CacheKey(f"{number:064}", "r", "b", f"u{number}")


class KnowledgeBase:
    available_queries = ("exact",)

    def __init__(self, text="kb", source="create"):
        self.text, self.source, self.closed = text, source, 0

    def query(self, text): ...

    def manifest(self):
        return {"text": self.text}

    def close(self):
        self.closed += 1


class Recipe:
    """A recipe that keeps a text in two files."""

    name = "r"

    def __init__(self, text="kb"):
        self.text, self.made = text, []

    def _made(self, text, source):
        self.made.append(KnowledgeBase(text, source))
        return self.made[-1]

    def create(self, *, source_keys):
        return self._made(self.text, "create")

    def save(self, knowledge_base, path):
        (path / "text").write_text(knowledge_base.text, encoding="utf-8")
        (path / "deep" / "empty").mkdir(parents=True)
        (path / "deep" / "more").write_bytes(b"\x00more")

    def load(self, path):
        return self._made((path / "text").read_text(encoding="utf-8"), "load")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def cache(folder):
    """Return a function that opens the cache as another run."""

    def opened(**settings):
        return KnowledgeBaseCache(folder, **{"max_bytes": 1 << 20, **settings})

    return opened


@pytest.fixture
def build(tmp_path, cache):
    def run(recipe, opened=None, key=KEY, *, keep_using=False, limit_s=None):
        built = asyncio.run(
            build_knowledge_base(
                recipe,
                name="kb",
                unit_id="u",
                objects=None,
                source_keys=["a", "b"],
                workspace=tmp_path / "work",
                cache=opened or cache(),
                key=key,
                limit_s=limit_s,
            )
        )
        if not keep_using:
            built.release()
        return built

    return run


def warnings(built):
    return built.build.metadata.get("cache_warnings", [])


def everything(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


class TestReuse:
    def test_the_second_run_loads(self, build, folder):
        first, second = build(Recipe()), build(Recipe())
        assert (first.knowledge_base.source, second.knowledge_base.source) == ("create", "load")
        assert second.knowledge_base.text == "kb"
        assert second.available_queries == ("exact",)
        assert everything(folder / "v1" / KEY.digest) == [
            "entry.json",
            "saved",
            "saved/deep",
            "saved/deep/empty",
            "saved/deep/more",
            "saved/text",
        ]
        assert list((folder / "v1" / "partial").iterdir()) == []

    def test_the_record_tells_building_from_loading(self, build):
        first, second = build(Recipe()).build, build(Recipe()).build
        assert (first.reused, first.load_seconds) == (False, None)
        assert second.reused
        assert second.load_seconds > 0
        assert second.build_seconds == first.build_seconds > 0
        assert second.document_count == first.document_count == 2
        assert second.knowledge_base_manifest == first.knowledge_base_manifest == {"text": "kb"}
        assert "first_built" in second.metadata
        assert "first_built" not in first.metadata

    def test_another_process_of_the_run_loads_what_is_not_from_before(self, build, cache):
        build(Recipe(), cache(run="one"))
        second = build(Recipe(), cache(run="one"))
        assert second.knowledge_base.source == "load"
        assert not second.build.reused
        assert second.build.load_seconds > 0
        assert build(Recipe(), cache(run="two")).build.reused

    def test_the_entry_says_what_it_is(self, build, cache):
        built = build(Recipe(), cache(run="one"))
        (entry,) = cache().entries()
        assert entry.as_json() == {
            "key": KEY.digest,
            "recipe": "r",
            "benchmark": "b",
            "unit_id": "u",
            "build_seconds": built.build.build_seconds,
            "created": entry.created,
            "run": "one",
            "size_bytes": 7,
            "last_used": entry.last_used,
        }
        assert {name: size for name, (size, _) in entry.files.items()} == {
            "text": 2,
            "deep/more": 5,
        }

    def test_another_key_is_another_knowledge_base(self, build):
        build(Recipe("one"), key=key(1))
        assert build(Recipe("two"), key=key(2)).knowledge_base.text == "two"
        assert build(Recipe(), key=key(1)).knowledge_base.text == "one"

    def test_without_a_key_or_a_cache_nothing_is_kept(self, build, folder, tmp_path):
        recipe = Recipe()
        build(recipe, key=None)
        work = tmp_path / "work"
        given = {"name": "kb", "unit_id": "u", "objects": None, "source_keys": [], "key": KEY}
        asyncio.run(build_knowledge_base(recipe, **given, workspace=work, cache=None))
        assert [made.source for made in recipe.made] == ["create"] * 2
        assert not folder.exists()

    def test_a_rebuild_builds_once_in_a_run(self, build, cache):
        build(Recipe("old"))
        rebuilt = build(Recipe("new"), cache(rebuild=True, run="one"))
        assert (rebuilt.knowledge_base.source, rebuilt.build.reused) == ("create", False)
        again = build(Recipe("newer"), cache(rebuild=True, run="one"))
        assert (again.knowledge_base.source, again.knowledge_base.text) == ("load", "new")
        assert build(Recipe("newest")).knowledge_base.text == "new"


class TestRecipes:
    def test_coroutine_functions_work_as_well(self, build):
        class Async(Recipe):
            async def create(self, *, source_keys):
                await asyncio.sleep(0)
                return super().create(source_keys=source_keys)

            async def save(self, knowledge_base, path):
                await asyncio.sleep(0)
                super().save(knowledge_base, path)

            async def load(self, path):
                await asyncio.sleep(0)
                return super().load(path)

        build(Async())
        assert build(Async()).knowledge_base.source == "load"

    def test_load_gets_what_it_takes(self, build, folder, tmp_path):
        class Asking(Recipe):
            def load(self, folder, *, workspace, verified, source_keys, **more):
                self.given = (folder, workspace, verified, source_keys, sorted(more))
                return super().load(folder)

        recipe = Asking()
        build(recipe)
        build(recipe)
        saved = folder / "v1" / KEY.digest / "saved"
        assert recipe.given == (saved, tmp_path / "work", True, ("a", "b"), ["name", "objects"])

    def test_ordinary_functions_stay_in_the_callers_thread(self, tmp_path, cache):
        threads = []

        class Noting(Recipe):
            def create(self, *, source_keys):
                threads.append(threading.current_thread())
                return super().create(source_keys=source_keys)

            def load(self, path):
                threads.append(threading.current_thread())
                return super().load(path)

        loop = LoopThread()
        for _ in range(2):
            loop.drive(
                build_knowledge_base(
                    Noting(),
                    name="kb",
                    unit_id="u",
                    objects=None,
                    source_keys=["a"],
                    workspace=tmp_path / "work",
                    cache=cache(),
                    key=KEY,
                )
            )
        loop.close()
        assert threads == [threading.main_thread()] * 2

    def test_a_failed_build_keeps_nothing(self, build, cache):
        class Failing(Recipe):
            def create(self, *, source_keys):
                raise ValueError("no")

        with pytest.raises(BuildError, match="ValueError: no"):
            build(Failing())
        assert cache().entries() == []
        assert build(Recipe()).build.metadata == {}


class TestTrouble:
    def test_a_knowledge_base_that_cannot_be_saved_is_used(self, build, cache, folder):
        class Full(Recipe):
            def save(self, knowledge_base, path):
                (path / "half").write_bytes(b"half")
                raise OSError(28, "No space left on device")

        built = build(Full())
        assert built.knowledge_base.source == "create"
        assert warnings(built) == [
            "the knowledge base was not saved: OSError: [Errno 28] No space left on device"
        ]
        assert cache().entries() == []
        assert list((folder / "v1" / "partial").iterdir()) == []

    def test_a_full_disk_at_the_last_file_leaves_nothing(self, build, cache, folder, monkeypatch):
        def full(self, folder):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(cache_module.CacheEntry, "write", full)
        assert "No space left" in warnings(build(Recipe()))[0]
        assert [path for path in folder.rglob("*") if path.is_file()] == [
            folder / "v1" / "locks" / f"{KEY.digest}.lock"
        ]

    def test_an_interrupted_save_leaves_nothing(self, build, cache, folder):
        class Stopped(Recipe):
            def save(self, knowledge_base, path):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            build(Stopped())
        assert list((folder / "v1" / "partial").iterdir()) == []
        assert build(Recipe()).knowledge_base.source == "create"

    @pytest.mark.parametrize(
        ("loaded", "expected"),
        [
            (ValueError("bad\nfile"), "ValueError: bad file"),
            (None, "the recipe returned None, which has no `query` method"),
            (3, "the recipe returned a int, which has no `query` method"),
        ],
    )
    def test_what_cannot_be_loaded_is_built_anew(self, build, loaded, expected):
        class Broken(Recipe):
            def load(self, path):
                if isinstance(loaded, Exception):
                    raise loaded
                return loaded

        build(Recipe("old"))
        built = build(Broken("new"))
        assert (built.knowledge_base.source, built.build.reused) == ("create", False)
        assert warnings(built) == [f"the saved knowledge base was not used: {expected}"]
        assert build(Recipe()).knowledge_base.text == "new"

    def test_a_loaded_knowledge_base_without_modes_is_closed(self, build):
        class Broken(Recipe):
            def load(self, path):
                base = super().load(path)
                base.available_queries = lambda: 1 / 0
                return base

        recipe = Broken()
        build(recipe)
        built = build(recipe)
        assert "`available_queries` cannot be read" in warnings(built)[0]
        assert [base.closed for base in recipe.made] == [0, 1, 0]

    def test_a_folder_that_cannot_be_used_is_a_warning(self, build, folder):
        folder.write_text("a file", encoding="utf-8")
        built = build(Recipe())
        assert built.knowledge_base.source == "create"
        assert warnings(built)[0].startswith("the cache cannot be used: ")

    @pytest.mark.parametrize("name", ["saved/text", "saved/deep/more", "entry.json"])
    def test_every_flipped_bit_and_every_cut_is_noticed(self, build, folder, name):
        build(Recipe())
        path = folder / "v1" / KEY.digest / name
        size = path.stat().st_size
        step = max(1, size // 40)
        harms = [lambda data: data[:-1], lambda data: data[: size // 2], lambda data: b""]
        harms += [_flipping(place, bit) for place in range(0, size, step) for bit in (0, 5)]
        for harm in harms:
            whole = path.read_bytes()
            path.write_bytes(harm(whole))
            is_same = name == "entry.json" and _same_json(harm(whole), whole)
            built = build(Recipe())
            assert built.build.reused is is_same
            assert [path.name in text for text in warnings(built)] == ([] if is_same else [True])

    def test_a_missing_file_is_noticed(self, build, folder):
        build(Recipe())
        (folder / "v1" / KEY.digest / "saved" / "deep" / "more").unlink()
        built = build(Recipe())
        assert warnings(built) == [
            "the saved knowledge base was not used: deep/more cannot be read: FileNotFoundError"
        ]
        assert build(Recipe()).knowledge_base.source == "load"

    @pytest.mark.parametrize("text", ["[]", "{}", "null", '{"entry": 3, "sha256": 4}', "[" * 9999])
    def test_an_entry_of_another_shape_is_damaged(self, build, folder, text):
        build(Recipe())
        (folder / "v1" / KEY.digest / "entry.json").write_text(text, encoding="utf-8")
        assert "entry.json" in warnings(build(Recipe()))[0]
        assert build(Recipe()).knowledge_base.source == "load"

    def test_a_folder_without_an_entry_is_damaged(self, build, folder):
        (folder / "v1" / KEY.digest).mkdir(parents=True)
        assert "entry.json" in warnings(build(Recipe()))[0]
        assert build(Recipe()).knowledge_base.source == "load"


def _flipping(place, bit):
    def flip(data):
        place_there = min(place, len(data) - 1)
        flipped = data[place_there] ^ 1 << bit
        return data[:place_there] + bytes([flipped]) + data[place_there + 1 :]

    return flip


def _same_json(data, whole):
    """Whether a change is one of white space, which says nothing."""
    try:
        return json.loads(data) == json.loads(whole)
    except ValueError:
        return False


class TestSize:
    def ages(self, folder, *keys):
        """Let entries have been used one after the other, long ago."""
        for age, one in enumerate(reversed(keys), start=1):
            used = time.time() - 10_000 * age
            os.utime(folder / "v1" / one.digest / "entry.json", (used, used))

    def kept(self, cache):
        return [entry.unit_id for entry in cache().entries()]

    def test_the_least_recently_used_go_first(self, build, cache, folder):
        for number in range(3):
            build(Recipe(), key=key(number))
        self.ages(folder, key(1), key(2), key(0))
        build(Recipe(), key=key(1))  # it is used again
        build(Recipe(), cache(max_bytes=21), key=key(4))
        assert self.kept(cache) == ["u0", "u1", "u4"]

    def test_what_the_run_has_used_stays_until_its_end(self, build, cache, folder):
        build(Recipe(), key=key(0))
        self.ages(folder, key(0))
        opened = cache(max_bytes=7)
        for number in range(3):
            build(Recipe(), opened, key=key(number))
        assert self.kept(cache) == ["u0", "u1", "u2"]
        assert [entry.unit_id for entry in opened.prune(all_runs=True)] == ["u0", "u1"]
        assert self.kept(cache) == ["u2"]

    def test_what_other_processes_of_the_run_use_stays_too(self, build, cache):
        began = time.time()
        build(Recipe(), key=key(0))
        build(Recipe(), cache(max_bytes=7, since=began), key=key(1))
        assert self.kept(cache) == ["u0", "u1"]

    def test_an_entry_that_is_locked_stays(self, build, cache, folder):
        build(Recipe())
        lock = asyncio.run(cache().lock(KEY))
        try:
            assert cache(max_bytes=0).prune(all_runs=True) == []
        finally:
            lock.release()
        assert len(cache(max_bytes=0).prune(all_runs=True)) == 1
        assert not (folder / "v1" / KEY.digest).exists()

    @pytest.mark.parametrize("step", ["create", "save"])
    def test_one_that_takes_longer_than_it_may_keeps_nothing(self, build, cache, folder, step):
        gate = threading.Event()

        class Slow(Recipe):
            pass

        setattr(Slow, step, lambda *_, **__: gate.wait())
        with pytest.raises(BuildTimeoutError):
            build(Slow(), limit_s=0.2)
        gate.set()
        assert cache().find(KEY) is None
        assert build(Recipe()).knowledge_base.source == "create"

    def test_waiting_for_another_that_builds_it_is_not_ones_own_time(self, build, cache):
        lock = asyncio.run(cache().lock(KEY))
        limit_s = 0.5
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(build, Recipe(), limit_s=limit_s)
            wait([waiting], timeout=2 * limit_s)
            lock.release()
            assert waiting.result(60).knowledge_base.source == "create"

    def test_one_that_is_too_large_costs_no_other_its_place(self, build, cache, folder):
        build(Recipe(), key=key(0))
        self.ages(folder, key(0))
        opened = cache(max_bytes=10)
        built = build(Recipe("x" * 100), opened, key=key(1))
        assert warnings(built) == [
            "the knowledge base was not saved: its 105 B are more than the cache may take, 10 B"
        ]
        opened.prune(all_runs=True)
        assert self.kept(cache) == ["u0"]

    def test_damaged_entries_and_old_leftovers_are_swept(self, build, cache, folder):
        build(Recipe(), key=key(0))
        build(Recipe(), key=key(1))
        (folder / "v1" / key(1).digest / "entry.json").write_bytes(b"")
        partial = folder / "v1" / "partial"
        for name in ("old", "new"):
            (partial / f"{key(2).digest}-{name}" / "saved").mkdir(parents=True)
        long_ago = time.time() - 100_000
        os.utime(partial / f"{key(2).digest}-old", (long_ago, long_ago))
        cache().prune()
        assert [path.name for path in partial.iterdir()] == [f"{key(2).digest}-new"]
        assert not (folder / "v1" / key(1).digest).exists()
        assert self.kept(cache) == ["u0"]

    def test_an_empty_folder_has_nothing_to_prune(self, cache, folder):
        assert cache().prune() == []
        assert not folder.exists()


class TestUse:
    @pytest.fixture(params=["built", "loaded"])
    def used(self, request, build):
        """A knowledge base that is in use, as its builder has it or as it was loaded."""
        if request.param == "loaded":
            build(Recipe("used"))
        used = build(Recipe("used"), keep_using=True)
        yield used
        used.release()

    def test_what_is_in_use_stays_until_it_is_released(self, used, cache, folder):
        (entry,) = cache().entries()
        assert cache().is_in_use(entry)
        assert cache(max_bytes=0).prune(all_runs=True) == []
        assert (folder / "v1" / KEY.digest / "saved" / "text").read_text() == "used"
        used.release()
        used.release()  # a second time is nothing
        assert not cache().is_in_use(entry)
        assert len(cache(max_bytes=0).prune(all_runs=True)) == 1
        assert list((folder / "v1" / "uses").iterdir()) == []

    def test_each_use_counts(self, used, build, cache):
        other = build(Recipe(), keep_using=True)
        used.release()
        assert cache(max_bytes=0).prune(all_runs=True) == []
        other.release()
        assert len(cache(max_bytes=0).prune(all_runs=True)) == 1

    def test_one_that_is_not_used_goes_in_its_place(self, used, build, cache):
        build(Recipe("next"), key=key(1))
        removed = cache(max_bytes=9).prune(all_runs=True)
        assert [entry.unit_id for entry in removed] == ["u1"]

    def test_a_rebuild_leaves_what_is_in_use_and_uses_its_own(self, used, build, cache, folder):
        rebuilt = build(Recipe("new"), cache(rebuild=True))
        assert (rebuilt.knowledge_base.text, rebuilt.build.reused) == ("new", False)
        assert warnings(rebuilt) == [
            "the knowledge base was not saved: the saved one is in use and stays"
        ]
        assert (folder / "v1" / KEY.digest / "saved" / "text").read_text() == "used"
        assert list((folder / "v1" / "partial").iterdir()) == []
        used.release()
        assert warnings(build(Recipe("new"), cache(rebuild=True))) == []
        assert build(Recipe()).knowledge_base.text == "new"

    def test_a_damaged_one_stays_while_it_is_in_use(self, used, build, cache, folder):
        more = folder / "v1" / KEY.digest / "saved" / "deep" / "more"
        more.write_bytes(b"")
        built = build(Recipe("new"))
        assert built.knowledge_base.source == "create"
        assert warnings(built) == [
            "the saved knowledge base was not used: deep/more has changed",
            "the knowledge base was not saved: the saved one is in use and stays",
        ]
        assert more.exists()
        used.release()
        assert len(warnings(build(Recipe("new")))) == 1
        assert build(Recipe()).knowledge_base.text == "new"

    @pytest.mark.parametrize("method", ["save", "load"])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
    def test_one_that_never_came_to_be_is_not_in_use(self, build, folder, method, error):
        def fails(*_):
            raise error

        recipe = Recipe()
        if method == "load":
            build(Recipe())
        setattr(recipe, method, fails)
        try:
            built = build(recipe, keep_using=True)
        except KeyboardInterrupt:
            built = None
        leases = list((folder / "v1" / "uses").iterdir())
        # What could not be loaded was built and saved: that is in use.
        assert len(leases) == (1 if built is not None and method == "load" else 0)


PROGRAM = """
import asyncio, os, signal, sys, pathlib
from pytest_heta.core.build import build_knowledge_base
from pytest_heta.core.cache import CacheKey, KnowledgeBaseCache

folder, how = pathlib.Path(sys.argv[1]), sys.argv[2]

class KnowledgeBase:
    def query(self, text): ...

class Recipe:
    name = "r"
    def create(self):
        with (folder.parent / "builds").open("a") as file:
            file.write("x")
        return KnowledgeBase()
    def save(self, knowledge_base, path):
        (path / "text").write_text("kb")
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        (path / "more").write_text("kb" * 100_000)
    def load(self, path):
        assert len((path / "more").read_text()) == 200_000
        return KnowledgeBase()

built = asyncio.run(build_knowledge_base(
    Recipe(), name="kb", unit_id="u", objects=None, source_keys=[], workspace=folder.parent / "w",
    cache=KnowledgeBaseCache(folder, max_bytes=1 << 30), key=CacheKey("0" * 64, "r", "b", "u"),
))
assert "cache_warnings" not in built.build.metadata, built.build.metadata
if how == "using":
    print("in use", flush=True)
    sys.stdin.read()
"""


def start(folder, how="whole", **more):
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder), how], **more)


class TestProcesses:
    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal here")
    def test_one_killed_while_it_saves_leaves_nothing_visible(self, cache, folder):
        assert start(folder, "killed").wait(60) == -signal.SIGKILL
        assert cache().entries() == []
        assert not (folder / "v1" / KEY.digest).exists()
        assert len(list((folder / "v1" / "partial").iterdir())) == 1
        assert start(folder).wait(60) == 0
        assert [entry.size_bytes for entry in cache().entries()] == [200_002]
        assert list((folder / "v1" / "partial").iterdir()) == []
        assert (folder.parent / "builds").read_text() == "xx"

    @pytest.mark.parametrize("first", ["whole", None], ids=["loaded", "built"])
    def test_what_a_process_uses_stays_until_it_is_killed(self, cache, folder, first):
        if first is not None:
            assert start(folder, first).wait(60) == 0
        with start(folder, "using", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline().strip() == b"in use"
            assert cache(max_bytes=0).prune(all_runs=True) == []
            assert (folder / "v1" / KEY.digest / "saved" / "more").exists()
            process.kill()
        cache().prune()
        assert list((folder / "v1" / "uses").iterdir()) == []  # what it left is swept
        assert len(cache(max_bytes=0).prune(all_runs=True)) == 1

    def test_several_at_once_build_once(self, folder):
        started = [start(folder) for _ in range(3)]
        assert [process.wait(60) for process in started] == [0, 0, 0]
        assert (folder.parent / "builds").read_text() == "x"

    def test_tasks_of_one_loop_wait_for_each_other(self, tmp_path, cache):
        recipe = Recipe()

        async def one():
            return await build_knowledge_base(
                recipe,
                name="kb",
                unit_id="u",
                objects=None,
                source_keys=[],
                workspace=tmp_path / "work",
                cache=cache(),
                key=KEY,
            )

        async def both():
            return await asyncio.gather(one(), one())

        asyncio.run(both())
        assert sorted(made.source for made in recipe.made) == ["create", "load"]

    def test_a_folder_may_go_away_between_runs(self, build, folder):
        build(Recipe())
        shutil.rmtree(folder)
        assert build(Recipe()).knowledge_base.source == "create"
        assert Path(folder).is_dir()
