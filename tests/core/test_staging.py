"""The step that stages documents."""

import asyncio
import io
import json
import multiprocessing
import os
from pathlib import Path

import pytest
from filelock import FileLock

from pytest_heta.core import staging
from pytest_heta.core._loop import LoopThread
from pytest_heta.core.plan import LoadedBenchmark, Suite
from pytest_heta.core.staging import stage_documents
from pytest_heta.errors import BenchmarkError, DocumentUnavailableError, DuplicateIdError
from pytest_heta.models import (
    BenchmarkDocument,
    BenchmarkEvidence,
    BenchmarkExpected,
    BenchmarkManifest,
    BenchmarkRunUnit,
    PreparedBenchmark,
    raw_key,
)
from pytest_heta.protocols import ObjectStore

UNUSUAL_IDS = [
    "con",
    "a:b|c",
    "../x",
    "dot.",
    "Case",
    "case",
    "中文",
    "a/b",
    "a%2Fb",
    "x" * 900,
    " ",
]


@pytest.fixture
def stage(fakes, tmp_path):
    def run(documents, cases=(), units=None, *, root=None, strict=False, run_key=None, **manifest):
        more = {} if units is None else {"units": units}
        benchmark = fakes.Benchmark(list(documents), cases, **more, **manifest)
        loaded = fakes.load(benchmark, tmp_path)
        folder = root or tmp_path / "stage"
        return asyncio.run(stage_documents(loaded, folder, run_key=run_key, strict=strict))

    return run


class TestStore:
    def test_documents_come_back_by_raw_key_in_order(self, stage, fakes):
        staged = stage([fakes.document("b", "second"), fakes.document("a", "first")])
        keys = staged.keys()
        assert keys == (
            "raw/benchmarks/tiny/test/b/b.txt",
            "raw/benchmarks/tiny/test/a/a.txt",
        )
        store = staged.store(keys)
        assert isinstance(store, ObjectStore)
        assert [store.get(key) for key in keys] == [b"second", b"first"]
        with store.open(keys[1]) as file:
            assert file.read(2) == b"fi"
        assert list(store.list()) == list(keys)
        assert list(store.list("raw/benchmarks/tiny/test/a/")) == [keys[1]]
        assert list(store.list("other")) == []
        assert (staged.document_count, staged.size_bytes) == (2, 11)

    def test_a_store_sees_only_its_own_keys(self, stage, fakes):
        staged = stage([fakes.document("a", "x"), fakes.document("b", "y")])
        mine, other = staged.keys(["a"])[0], staged.keys(["b"])[0]
        store = staged.store([mine])
        assert store.exists(mine)
        assert not store.exists(other)
        assert list(store.list()) == [mine]
        for call in (store.get, store.open, store.metadata):
            with pytest.raises(KeyError):
                call(other)

    def test_keys_come_in_the_benchmarks_order_whatever_was_asked(self, stage, fakes):
        staged = stage([fakes.document(name) for name in ("c", "a", "b")])
        assert staged.keys(["b", "c"]) == (
            "raw/benchmarks/tiny/test/c/c.txt",
            "raw/benchmarks/tiny/test/b/b.txt",
        )

    def test_metadata_comes_with_the_document(self, stage, fakes):
        staged = stage(
            [
                fakes.document("a", "x", metadata={"title": "naïve 咖啡", "name": "hidden"}),
                fakes.document("b", "y", name="b.md", media_type="text/markdown"),
            ]
        )
        store = staged.store(staged.keys())
        assert store.metadata(staged.keys(["a"])[0]) == {
            "title": "naïve 咖啡",
            "document_id": "a",
            "name": "a.txt",
            "media_type": "text/plain",
        }
        assert store.metadata(staged.keys(["b"])[0])["media_type"] == "text/markdown"

    def test_any_id_is_kept_apart_in_files_of_any_system(self, stage, fakes, tmp_path):
        documents = [fakes.document(name, f"text of {name}") for name in UNUSUAL_IDS]
        staged = stage(documents)
        keys = staged.keys()
        manifest = BenchmarkManifest(name="tiny")
        assert list(keys) == [raw_key(manifest, document) for document in documents]
        store = staged.store(keys)
        assert [store.get(key).decode() for key in keys] == [
            f"text of {name}" for name in UNUSUAL_IDS
        ]
        assert [store.metadata(key)["document_id"] for key in keys] == UNUSUAL_IDS
        paths = [path.relative_to(tmp_path / "stage") for path in staged.root.rglob("*")]
        files = {"contents.bin", "index.jsonl", "places.bin", "stage.json"}
        assert {path.name for path in paths} == files
        assert all(path.parts[0].isascii() and len(path.parts[0]) < 60 for path in paths)

    def test_a_store_of_all_keys_refuses_others(self, stage, fakes):
        staged = stage([fakes.document("a", "x"), fakes.document("b", "y")])
        keys = staged.keys()
        store = staged.store(keys)
        assert all(map(store.exists, keys))
        for other in (keys[0].replace("a.txt", "b.txt"), keys[0] + "x", "a", ""):
            assert not store.exists(other)
            for call in (store.get, store.open, store.metadata):
                with pytest.raises(KeyError):
                    call(other)

    def test_a_store_of_as_many_keys_is_not_one_of_all(self, stage, fakes):
        staged = stage([fakes.document("a", "x"), fakes.document("b", "y")])
        mine, other = staged.keys()
        assert not staged.store([mine, mine]).exists(other)

    def test_all_keys_are_held_once(self, stage, fakes):
        staged = stage([fakes.document(name) for name in "abc"])
        assert staged.keys() is staged.keys()
        assert staged.keys(["a", "b", "c"]) == staged.keys()

    def test_it_knows_its_documents_and_no_others(self, stage, fakes):
        documents = [fakes.document(f"d{number}") for number in range(500)]
        staged = stage([*documents, *map(fakes.document, UNUSUAL_IDS)])
        known = [document.document_id for document in documents] + UNUSUAL_IDS
        assert all(map(staged.knows, known))
        assert not any(map(staged.knows, ["d500", "d", "", "raw/benchmarks/tiny/test/d1/d1.txt"]))
        assert staged.keys(known[::-1]) == staged.keys()

    def test_equal_contents_are_two_documents(self, stage, fakes):
        staged = stage([fakes.document("a", "same"), fakes.document("b", "same")])
        assert staged.document_count == 2
        assert staged.store(staged.keys()).get(staged.keys(["b"])[0]) == b"same"

    def test_empty_data_is_an_empty_document(self, stage, fakes):
        staged = stage([fakes.document("a", "")])
        assert staged.store(staged.keys()).get(staged.keys()[0]) == b""
        assert staged.problems == {}


class TestOrigins:
    def test_files_and_addresses_are_copied(self, stage, fakes, tmp_path):
        (tmp_path / "here.txt").write_bytes(b"relative")
        large = os.urandom(3 << 20)
        (tmp_path / "large.bin").write_bytes(large)
        staged = stage(
            [
                fakes.document("relative", path=Path("here.txt")),
                fakes.document("absolute", path=tmp_path / "large.bin"),
                fakes.document("address", source_uri=(tmp_path / "here.txt").as_uri()),
            ]
        )
        keys = staged.keys()
        store = staged.store(keys)
        assert [store.get(key) for key in keys] == [b"relative", large, b"relative"]
        assert staged.size_bytes == len(large) + 16

    def test_what_cannot_be_read_fails_the_units_that_name_it(self, stage, fakes, tmp_path):
        (tmp_path / "empty.pdf").write_bytes(b"")
        os.mkfifo(tmp_path / "pipe.pdf")
        staged = stage(
            [
                fakes.document("fine", "x"),
                fakes.document("absent", path=Path("nowhere.pdf")),
                fakes.document("empty", path=Path("empty.pdf")),
                fakes.document("remote", source_uri="nosuchprotocol://x/y"),
                fakes.document("pipe", path=Path("pipe.pdf")),
                fakes.document("address", source_uri=(tmp_path / "pipe.pdf").as_uri()),
                fakes.document("scan", "", media_type="application/pdf"),
            ]
        )
        for name, problem in (
            ("absent", "FileNotFoundError"),
            ("empty", "the file is empty"),
            ("remote", "nosuchprotocol"),
            ("pipe", "is no file"),
            ("address", "is no file"),
            ("scan", "the content is empty"),
        ):
            message = f"document '{name}' cannot be read: .*{problem}"
            with pytest.raises(DocumentUnavailableError, match=message):
                staged.keys(["fine", name])
            assert staged.knows(name)
        with pytest.raises(DocumentUnavailableError, match=r"'empty' cannot .*\(nor can remote\)"):
            staged.keys(["empty", "fine", "remote"])
        # The rest of the corpus is one.
        assert staged.keys() == staged.keys(["fine"])
        store = staged.store(staged.keys())
        assert [store.get(key) for key in store.list()] == [b"x"]
        assert staged.warnings == (
            (
                "[document-unavailable] 6 of 7 documents cannot be read:"
                " absent, empty, remote, pipe, address, …; 0 of 0 cases fail"
            ),
        )
        assert staged.document_count == 7

    def test_cases_that_need_what_cannot_be_read_are_known(self, stage, fakes):
        cases = [
            fakes.case("gold", "?", "fine", "lost"),
            fakes.case("place", "?").model_copy(
                update={
                    "expected": BenchmarkExpected(
                        evidence=(
                            BenchmarkEvidence(locator={"document_id": "lost", "page_index": 3}),
                        )
                    )
                }
            ),
            fakes.case("irrelevant", "?", "fine", lost=0),
            fakes.case("other", "?", "fine"),
            fakes.case("ghost", "?", "ghost9"),
        ]
        documents = [fakes.document("fine", "x"), fakes.document("lost", path=Path("nowhere"))]
        staged = stage(documents, cases)
        assert staged.missing_gold == {"gold": ("lost",), "place": ("lost",)}
        error = staged.problem_of("place")
        assert isinstance(error, DocumentUnavailableError)
        assert str(error).startswith("[document-unavailable] case place: document 'lost' cannot be")
        assert [staged.problem_of(name) for name in ("irrelevant", "other", "ghost")] == [None] * 3
        # What no document has as its id is another matter: it caps the scores.
        assert staged.dangling == ("ghost9",)
        assert staged.warnings[-1].endswith("lost; 2 of 5 cases fail")
        facts = staged.facts
        assert list(facts.unavailable) == ["lost"]
        assert (facts.unavailable_count, facts.affected_count, facts.document_count) == (1, 2, 2)

    def test_a_corpus_of_which_nothing_can_be_read_is_staged(self, stage, fakes):
        documents = [fakes.document(name, path=Path(name)) for name in ("a", "b", "c")]
        staged = stage(documents, [fakes.case("q", "?", "a")])
        with pytest.raises(DocumentUnavailableError, match=r"'a' cannot .*\(nor can b, c\)"):
            staged.keys()

    def test_a_reason_is_not_endless(self, stage, fakes):
        (reason,) = stage([fakes.document("a", path=Path("x" * 5_000))]).problems.values()
        assert reason.startswith("OSError")
        assert len(reason) == 500

    def test_reports_name_the_first_of_many(self, stage, fakes):
        documents = [fakes.document(f"d{n}", path=Path("nowhere")) for n in range(300)]
        facts = stage(documents).facts
        assert (len(facts.unavailable), facts.unavailable_count) == (100, 300)

    @pytest.mark.parametrize("order", [1, -1])
    def test_an_id_twice_is_an_error_also_where_one_cannot_be_read(self, stage, fakes, order):
        documents = [fakes.document("a", "x"), fakes.document("a", path=Path("nowhere"))]
        for both in (documents[::order], documents[1:] * 2):
            with pytest.raises(DuplicateIdError, match="document id 'a' stands twice"):
                stage(both)

    def test_what_is_left_out_makes_another_dataset(self, stage, fakes):
        broken = [fakes.document("a", "x"), fakes.document("b", path=Path("nowhere"))]
        assert stage(broken).dataset_digest != stage(broken[:1]).dataset_digest

    def test_a_document_that_is_not_there_fails_the_units_that_name_it(self, stage, fakes):
        staged = stage([fakes.document("a")])
        with pytest.raises(DocumentUnavailableError, match="document 'ghost' is not in the corpus"):
            staged.keys(["a", "ghost"])

    def test_an_origin_that_breaks_while_it_is_read_is_a_problem(
        self, stage, fakes, monkeypatch, tmp_path
    ):
        class Torn:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                return None

            blocks = iter([b"the first half"])

            def read(self, size):
                for block in self.blocks:
                    return block
                raise ConnectionResetError("half of it")

        monkeypatch.setattr(staging, "_open_origin", lambda *_: Torn())
        documents = [fakes.document("a", "before"), fakes.document("torn", path=Path("x"))]
        staged = stage([*documents, fakes.document("b", "after")])
        assert staged.problems == {"torn": "ConnectionResetError: half of it"}
        keys = staged.keys(["a", "b"])
        assert [staged.store(keys).get(key) for key in keys] == [b"before", b"after"]
        assert staged.size_bytes == 11


class TestBadBenchmarks:
    def test_an_id_twice_is_an_error(self, stage, fakes):
        with pytest.raises(DuplicateIdError, match="document id 'a' stands twice"):
            stage([fakes.document("a", "x"), fakes.document("a", "y")])

    def test_the_first_id_that_stands_twice_is_named(self, stage, fakes, tmp_path):
        names = [*(f"d{number}" for number in range(100)), "d7", "d3", "d7"]
        for run_key in (None, "bench_tiny.py"):
            with pytest.raises(
                DuplicateIdError, match="benchmark tiny: document id 'd7' stands twice"
            ):
                stage(map(fakes.document, names), run_key=run_key)
            # Nobody takes it for a finished stage.
            assert not list((tmp_path / "stage").rglob("stage.json"))

    def test_a_number_and_its_text_are_the_same_id(self, stage):
        documents = [
            {"document_id": 7, "name": "a.txt", "data": b"x"},
            {"document_id": "7", "name": "b.txt", "data": b"y"},
        ]
        with pytest.raises(DuplicateIdError, match="document id '7' stands twice"):
            stage(documents)

    def test_no_documents_are_an_error(self, stage):
        with pytest.raises(BenchmarkError, match="benchmark tiny: there are no documents"):
            stage([])

    def test_an_adapter_that_raises_is_an_error(self, fakes, tmp_path):
        class Broken(fakes.Benchmark):
            async def documents(self, prepared):
                yield fakes.document("a")
                raise ZeroDivisionError("row 2")

        loaded = fakes.load(Broken(), tmp_path)
        with pytest.raises(BenchmarkError, match="cannot be staged: ZeroDivisionError: row 2"):
            asyncio.run(stage_documents(loaded, tmp_path))

    def test_a_folder_that_cannot_be_written_is_an_error(self, stage, fakes, tmp_path):
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(BenchmarkError, match="benchmark tiny: the documents cannot be staged"):
            stage([fakes.document("a")], root=tmp_path / "file" / "below")

    def test_a_disk_that_is_full_is_no_problem_of_a_document(self, stage, fakes, monkeypatch):
        class Full(io.BytesIO):
            def write(self, block):
                raise OSError(28, "No space left on device")

        begin = staging._begin

        def begin_full(folder):
            begin(folder).close()
            return Full()

        monkeypatch.setattr(staging, "_begin", begin_full)
        with pytest.raises(BenchmarkError, match="No space left"):
            stage([fakes.document("a", "x")])


class TestDanglingGold:
    def test_it_is_counted_and_named(self, stage, fakes):
        cases = [fakes.case("q1", "?", "d1", "ghost9"), fakes.case("q2", "?", "ghost9", "ghost2")]
        staged = stage([fakes.document("d1")], cases)
        assert staged.dangling == ("ghost9", "ghost2")
        assert staged.warnings == (
            "[dangling-gold] 2 gold documents are not in the corpus: ghost9, ghost2",
        )

    def test_one_is_one(self, stage, fakes):
        staged = stage([fakes.document("d1")], [fakes.case("q1", "?", "ghost")])
        assert staged.warnings == ("[dangling-gold] 1 gold document is not in the corpus: ghost",)

    def test_many_are_cut_in_the_warning_and_not_in_the_list(self, stage, fakes):
        ghosts = [f"g{number}" for number in range(20)]
        staged = stage([fakes.document("d1")], [fakes.case("q1", "?", *ghosts)])
        assert staged.dangling == tuple(ghosts)
        assert staged.warnings == (
            "[dangling-gold] 20 gold documents are not in the corpus: g0, g1, g2, g3, g4, …",
        )

    def test_strict_makes_it_an_error(self, stage, fakes):
        cases = [fakes.case("q1", "?", "ghost")]
        with pytest.raises(BenchmarkError, match=r"\[dangling-gold\] 1 gold document is not"):
            stage([fakes.document("d1", "x")], cases, strict=True)
        stage([fakes.document("d1", "x")], [fakes.case("q1", "?", "d1")], strict=True)

    def test_what_is_judged_irrelevant_may_be_absent(self, stage, fakes):
        staged = stage([fakes.document("d1")], [fakes.case("q1", "?", "d1", ghost=0, other=-1)])
        assert staged.dangling == ()
        assert staged.warnings == ()

    def test_gold_outside_the_unit_of_the_case_is_named_too(self, stage, fakes):
        units = (
            BenchmarkRunUnit(unit_id="u1", document_ids=("d1",), case_ids=("q1", "q2")),
            BenchmarkRunUnit(unit_id="u2", document_ids=("d2",), case_ids=("q3",)),
        )
        cases = [
            fakes.case("q1", "?", "d1"),
            fakes.case("q2", "?", "d2"),
            fakes.case("q3", "?", "d2", "ghost"),
        ]
        staged = stage([fakes.document("d1"), fakes.document("d2")], cases, units, strict=False)
        assert staged.dangling == ("ghost",)
        assert staged.warnings == (
            "[dangling-gold] 1 gold document is not in the corpus: ghost",
            "[gold-outside-unit] 1 gold document is not in the run unit of the case: d2 (case q2)",
        )

    def test_judgments_that_are_no_numbers_are_left_to_the_scores(self, stage, fakes):
        staged = stage([fakes.document("d1")], [fakes.case("q1", "?", ghost="high")])
        assert staged.dangling == ()


class TestOnce:
    def staged_twice(self, fakes, tmp_path, first, second):
        folders = []
        for benchmark in (first, second):
            loaded = fakes.load(benchmark, tmp_path)
            folders.append(asyncio.run(stage_documents(loaded, tmp_path / "stage")))
        return folders

    def test_a_finished_stage_is_found(self, fakes, tmp_path):
        benchmarks = [fakes.Benchmark([fakes.document("a", "x")]) for _ in range(2)]
        first, second = self.staged_twice(fakes, tmp_path, *benchmarks)
        assert first.root == second.root
        assert first.digest == second.digest
        # Once to know which stage it is; once more by the one that wrote it.
        assert [benchmark.documents_read for benchmark in benchmarks] == [2, 1]
        assert second.store(second.keys()).get(second.keys()[0]) == b"x"

    def test_within_a_run_only_the_writer_reads_the_documents(self, fakes, tmp_path):
        benchmarks = [fakes.Benchmark([fakes.document("a", "x")]) for _ in range(3)]
        first, second, other = (
            asyncio.run(stage_documents(fakes.load(benchmark, tmp_path), tmp_path, run_key=run_key))
            for benchmark, run_key in zip(benchmarks, ("a.py", "a.py", "b.py"), strict=True)
        )
        assert [benchmark.documents_read for benchmark in benchmarks] == [1, 0, 1]
        assert first.root == second.root != other.root
        assert first.facts == second.facts == other.facts
        assert first.digest == second.digest == other.digest
        assert second.store(second.keys()).get(second.keys()[0]) == b"x"

    def test_a_benchmark_of_another_name_is_another_stage_of_the_run(self, fakes, tmp_path):
        roots = {
            asyncio.run(
                stage_documents(
                    fakes.load(fakes.Benchmark([fakes.document("a")], **manifest), tmp_path),
                    tmp_path,
                    run_key="a.py",
                )
            ).root
            for manifest in ({}, {"name": "other"}, {"split": "dev"}, {"version": "2"})
        }
        assert len(roots) == 4

    @pytest.mark.parametrize(
        "change",
        [
            {"text": "other"},
            {"document_id": "b"},
            {"name": "b.txt"},
            {"media_type": "text/html"},
            {"metadata": {"title": "t"}},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_a_changed_document_is_another_stage(self, fakes, tmp_path, change):
        before = {"document_id": "a", "text": "x"}
        pair = [
            fakes.Benchmark([fakes.document(**document)])
            for document in (before, {**before, **change})
        ]
        first, second = self.staged_twice(fakes, tmp_path, *pair)
        assert first.root != second.root
        assert first.digest != second.digest
        assert first.dataset_digest != second.dataset_digest

    def test_another_order_is_another_stage(self, fakes, tmp_path):
        documents = [fakes.document("a"), fakes.document("b")]
        pair = [fakes.Benchmark(documents), fakes.Benchmark(documents[::-1])]
        first, second = self.staged_twice(fakes, tmp_path, *pair)
        assert first.digest != second.digest
        assert second.keys() == first.keys()[::-1]

    def test_a_changed_file_is_another_stage(self, fakes, tmp_path):
        path = tmp_path / "a.txt"
        made = []
        for text, time in (("one", 1), ("two", 2), ("longer", 2)):
            path.write_text(text)
            os.utime(path, (time, time))
            loaded = fakes.load(fakes.Benchmark([fakes.document("a", path=path)]), tmp_path)
            made.append(asyncio.run(stage_documents(loaded, tmp_path / "stage")))
        assert len({staged.root for staged in made}) == 3
        assert len({staged.digest for staged in made}) == 3

    def test_the_digest_is_of_the_contents_and_not_of_where_they_were(self, fakes, tmp_path):
        (tmp_path / "a.txt").write_text("x")
        pair = [
            fakes.Benchmark([fakes.document("a", path=tmp_path / "a.txt")]),
            fakes.Benchmark([fakes.document("a", "x")]),
        ]
        first, second = self.staged_twice(fakes, tmp_path, *pair)
        assert first.digest == second.digest

    def test_other_cases_are_the_same_stage_and_another_dataset(self, fakes, tmp_path):
        documents = [fakes.document("a")]
        pair = [
            fakes.Benchmark(documents, [fakes.case("q", "?", "a")]),
            fakes.Benchmark(documents, [fakes.case("q", "?", a=2)]),
        ]
        first, second = self.staged_twice(fakes, tmp_path, *pair)
        assert first.root == second.root
        assert first.dataset_digest != second.dataset_digest

    def test_every_case_of_a_large_unit_is_part_of_the_dataset(self, fakes, tmp_path):
        names = [f"q{number}" for number in range(12_000)]
        swapped = [*names[:-2], names[-1], names[-2]]
        cases = [fakes.case(name) for name in names]
        pair = [
            fakes.Benchmark(
                [fakes.document("a")],
                cases,
                [BenchmarkRunUnit(unit_id="all", document_ids=("a",), case_ids=order)],
            )
            for order in (names, swapped)
        ]
        first, second = self.staged_twice(fakes, tmp_path, *pair)
        assert first.root == second.root
        assert first.dataset_digest != second.dataset_digest

    def test_what_a_killed_process_left_is_written_again(self, fakes, tmp_path):
        loaded = fakes.load(fakes.Benchmark([fakes.document("a", "x")]), tmp_path)
        first = asyncio.run(stage_documents(loaded, tmp_path / "stage"))
        (first.root / "stage.json").unlink()
        (first.root / "index.jsonl").write_text("torn")
        second = asyncio.run(stage_documents(loaded, tmp_path / "stage"))
        assert second.digest == first.digest
        assert second.keys() == first.keys()

    def test_it_can_be_driven_from_a_thread_without_loop(self, fakes, tmp_path):
        loaded = fakes.load(fakes.Benchmark([fakes.document("a", "x")]), tmp_path)
        thread = LoopThread()
        staged = thread.drive(stage_documents(loaded, tmp_path / "stage"))
        thread.close()
        assert staged.document_count == 1

    def test_two_tasks_of_one_loop_wait_for_each_other(self, fakes, tmp_path):
        benchmark = fakes.Benchmark([fakes.document(f"d{number}", "x") for number in range(50)])
        loaded = fakes.load(benchmark, tmp_path)

        async def both():
            return await asyncio.gather(
                *(stage_documents(loaded, tmp_path / "stage") for _ in range(3))
            )

        first, *others = asyncio.run(both())
        assert all(other.root == first.root for other in others)
        assert benchmark.documents_read == 4 * 50

    def test_the_index_is_plain_ascii_json(self, stage, fakes):
        staged = stage([fakes.document("中", "x", metadata={"when": Path("a"), "n": float("nan")})])
        (line,) = (staged.root / "index.jsonl").read_bytes().splitlines()
        assert line.isascii()
        assert json.loads(line)["metadata"] == {"when": "a", "n": None}


class SharedBenchmark:
    """A benchmark that a process started anew can import."""

    manifest = BenchmarkManifest(name="shared")

    def documents(self, prepared):
        return self._documents()

    async def _documents(self):
        for number in range(20):
            yield BenchmarkDocument(
                document_id=f"d{number}", name="text.txt", data=f"text {number}".encode()
            )


def stage_in_child(root, refused, results):
    """Stage; whoever writes waits until the other one has found the lock taken."""
    write = staging._write_stage
    sleep = asyncio.sleep

    async def slow_write(loaded, folder):
        with FileLock(root / "log.lock"), (root / "log").open("a") as log:
            log.write(f"{os.getpid()}\n")
        assert refused.wait(timeout=120)
        await write(loaded, folder)

    async def told_sleep(delay):
        refused.set()
        await sleep(delay)

    staging._write_stage = slow_write
    asyncio.sleep = told_sleep
    manifest = SharedBenchmark.manifest
    loaded = LoadedBenchmark(
        suite=Suite(SharedBenchmark()),
        manifest=manifest,
        prepared=PreparedBenchmark(manifest=manifest, root_dir=root),
        cases={},
        units=(BenchmarkRunUnit(unit_id="all"),),
        evaluators=(),
    )
    staged = asyncio.run(stage_documents(loaded, root / "stage"))
    keys = staged.keys()
    store = staged.store(keys)
    results.put((staged.digest, [store.get(key) for key in keys]))


def test_two_processes_at_once_stage_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    refused, results = context.Event(), context.Queue()
    children = [
        context.Process(target=stage_in_child, args=(tmp_path, refused, results)) for _ in range(2)
    ]
    for child in children:
        child.start()
    found = [results.get(timeout=120) for _ in children]
    for child in children:
        child.join(timeout=120)
    assert [child.exitcode for child in children] == [0, 0]
    assert found[0] == found[1]
    assert found[0][1] == [f"text {number}".encode() for number in range(20)]
    assert len((tmp_path / "log").read_text().splitlines()) == 1
