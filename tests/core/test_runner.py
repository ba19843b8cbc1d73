"""A whole run, as events."""

import asyncio
import threading

import pytest

from pytest_heta.core.cache import KnowledgeBaseCache
from pytest_heta.core.gates import parse_gate
from pytest_heta.core.plan import PlanSettings, Suite
from pytest_heta.core.runner import RunnerOptions, run_benchmark, unit_workspace
from pytest_heta.errors import BenchmarkError, GateInvalidError, ModeUnknownError
from pytest_heta.models import BenchmarkRunUnit


@pytest.fixture
def run(tmp_path):
    """Run, and return the events; an exception is the last of them."""

    def events(benchmark, recipe, cancelled=lambda seen: False, **options):
        suite = {name: options.pop(name) for name in ("gates", "modes") if name in options}
        own_gates = tuple(parse_gate(text, "run") for text in options.pop("own_gates", ()))
        run_options = RunnerOptions(gates=own_gates, **options)
        seen = []

        async def consume():
            stream = run_benchmark(
                Suite(benchmark, **suite),
                recipe,
                workspace=tmp_path / "run",
                options=run_options,
                cancelled=lambda: cancelled(seen),
            )
            try:
                async for event in stream:
                    seen.append(event)  # noqa: PERF401 - what came before an exception counts
            except Exception as error:  # noqa: BLE001 - looked at below
                seen.append(error)

        asyncio.run(consume())
        return seen

    return events


def names(events):
    return [type(event).__name__ for event in events]


@pytest.fixture
def three(fakes):
    documents = [fakes.document(f"d{i}", f"word{i}") for i in range(3)]
    cases = [fakes.case(f"q{i}", f"word{i}", f"d{i}") for i in range(3)]
    return fakes.Benchmark(documents, cases)


@pytest.fixture
def by_unit(fakes):
    """Three units of one document and one case each."""
    documents = [fakes.document(f"d{i}", f"word{i}") for i in range(3)]
    cases = [fakes.case(f"q{i}", f"word{i}", f"d{i}") for i in range(3)]
    units = [
        BenchmarkRunUnit(unit_id=f"u{i}", document_ids=(f"d{i}",), case_ids=(f"q{i}",))
        for i in range(3)
    ]
    return fakes.Benchmark(documents, cases, units)


class TestEvents:
    def test_a_run_tells_what_it_does(self, run, fakes, three):
        recipe = fakes.Recipe(modes=("a", "b"))
        events = run(three, recipe, gates=("*.ndcg@10 >= 1",))
        assert names(events) == [
            "RunStarted",
            "UnitBuilt",
            *["CaseCompleted"] * 6,
            "RunCompleted",
        ]
        started = events[0]
        assert (started.benchmark, started.recipe) == ("tiny", "fake")
        assert (started.query_modes, started.planned_samples, started.unit_count) == (
            ("a", "b"),
            6,
            1,
        )
        report = events[-1].report
        assert [(r.query_mode, r.case_id) for r in report.case_results] == [
            (mode, f"q{i}") for mode in "ab" for i in range(3)
        ]
        assert report.score_summary == {"a.ndcg@10": 1.0, "b.ndcg@10": 1.0}
        assert [gate.status for gate in report.gates] == ["passed", "passed"]
        assert report.metadata["complete"] is True
        assert report.metadata["dataset_documents"] == 3
        assert report.config_snapshot["benchmark"]["dataset_sha256"]
        assert recipe.built[0].closed == 1

    def test_the_recipe_is_given_its_units_documents(self, run, fakes, by_unit, tmp_path):
        recipe = fakes.Recipe()
        run(by_unit, recipe)
        assert [call["source_keys"] for call in recipe.calls] == [
            (f"raw/benchmarks/tiny/test/d{i}/d{i}.txt",) for i in range(3)
        ]
        assert len({call["name"] for call in recipe.calls}) == 3
        folders = [call["workspace"] for call in recipe.calls]
        assert folders == [unit_workspace(tmp_path / "run", "tiny", f"u{i}") for i in range(3)]
        assert len(set(folders)) == 3
        assert [base.closed for base in recipe.built] == [1, 1, 1]

    def test_units_have_folders_of_their_own_on_every_file_system(self, tmp_path):
        units = ["con", "a:b", "../x", "A", "a", "x" * 500]
        folders = {str(unit_workspace(tmp_path, "tiny", unit)).casefold() for unit in units}
        assert len(folders) == len(units)
        for folder in folders:
            assert str(tmp_path).casefold() in folder
            assert ".." not in folder


class TestFailures:
    def test_one_bad_case_does_not_end_the_run(self, run, fakes, three):
        def answer(query, mode):
            if query == "word1":
                raise KeyError("boom")
            return fakes.hits(query.replace("word", "d"))

        events = run(three, fakes.Recipe(answer), gates=("*.failure_rate <= 0.1",))
        report = events[-1].report
        assert [result.error is None for result in report.case_results] == [True, False, True]
        summary = report.mode_summaries["exact"]
        assert summary.metrics["ndcg@10"].mean == pytest.approx(2 / 3, abs=1e-15)
        assert (summary.failed_cases, summary.failure_rate) == (1, 1 / 3)
        (gate,) = report.gates
        assert (gate.status, gate.reason) == ("failed", "0.3333 > 0.1")

    def test_missing_answers_are_not_left_out(self, run, fakes):
        cases = [fakes.case(f"q{i}", f"word{i}", f"d{i}") for i in range(4)]
        benchmark = fakes.Benchmark([fakes.document(f"d{i}") for i in range(4)], cases)

        def answer(query, mode):
            found = query in {"word0", "word1"}
            return fakes.hits(query.replace("word", "d")) if found else {"results": []}

        report = run(benchmark, fakes.Recipe(answer))[-1].report
        assert report.score_summary == {"exact.ndcg@10": 0.5}
        assert report.mode_summaries["exact"].failed_cases == 0

    def test_a_unit_that_cannot_be_built_errors_its_own_samples(self, run, fakes, by_unit):
        class Fragile(fakes.Recipe):
            def create(self, **given):
                if "d1" in given["source_keys"][0]:
                    raise MemoryError("too large")
                return super().create(**given)

        report = run(by_unit, Fragile())[-1].report
        errors = [result.error for result in report.case_results]
        assert errors[0] is errors[2] is None
        assert errors[1].error_type == "build"
        assert "run unit u1: MemoryError: too large" in errors[1].message
        assert [build.error is None for build in report.unit_builds] == [True, False, True]
        assert report.mode_summaries["exact"].failed_cases == 1
        assert report.score_summary["exact.ndcg@10"] == pytest.approx(2 / 3, abs=1e-15)

    def test_documents_that_cannot_be_read_error_the_units_that_need_them(
        self, run, fakes, by_unit, tmp_path
    ):
        (tmp_path / "empty.txt").write_bytes(b"")
        by_unit._documents = [
            fakes.document("d0", "word0"),
            fakes.document("d1", path=tmp_path / "absent.txt"),
            fakes.document("d2", path=tmp_path / "empty.txt"),
        ]
        report = run(by_unit, fakes.Recipe())[-1].report
        messages = [r.error.message if r.error else None for r in report.case_results]
        assert messages[0] is None
        assert "document 'd1' cannot be read: FileNotFoundError" in messages[1]
        assert "document 'd2' cannot be read: the file is empty" in messages[2]
        summary = report.mode_summaries["exact"].metrics["ndcg@10"]
        assert (summary.n, summary.n_scored, summary.n_errored) == (3, 1, 2)
        assert summary.mean == pytest.approx(1 / 3, abs=1e-15)
        assert report.metadata["warnings"] == [
            "[document-unavailable] 2 of 3 documents cannot be read: d1, d2; 2 of 3 cases fail"
        ]

    def test_a_knowledge_base_that_cannot_be_closed_is_a_warning(self, run, fakes, three):
        class Sticky(fakes.Recipe):
            def create(self, **given):
                made = super().create(**given)
                made.aclose = lambda: 1 / 0
                return made

        report = run(three, Sticky())[-1].report
        (warning,) = report.metadata["warnings"]
        assert warning.startswith("[close-failed] run unit all could not be closed: ")
        assert warning.endswith(": ZeroDivisionError: division by zero")
        assert report.metadata["complete"] is True

    @pytest.mark.parametrize(
        ("options", "kind", "code"),
        [
            ({"gates": ("*.ndgc@10 > 0",)}, GateInvalidError, "gate-invalid"),
            ({"modes": ("exat",)}, ModeUnknownError, "mode-unknown"),
            ({"strict": True}, BenchmarkError, "benchmark-invalid"),
        ],
    )
    def test_a_run_that_cannot_begin_says_why_and_raises(self, run, fakes, options, kind, code):
        recipe = fakes.Recipe()
        benchmark = fakes.Benchmark([fakes.document("d")], [fakes.case("q", "?", "ghost")])
        *_, failed, error = run(benchmark, recipe, **options)
        assert type(failed).__name__ == "RunFailed"
        assert failed.code == code
        assert isinstance(error, kind)
        assert failed.message == str(error)
        assert recipe.calls == []

    def test_an_error_that_is_not_ours_is_told_as_well(self, run, fakes):
        class Broken(fakes.Benchmark):
            async def cases(self, prepared):
                raise ZeroDivisionError("no cases")
                yield

        failed, error = run(Broken(), fakes.Recipe())
        assert (failed.code, failed.message) == ("error", "ZeroDivisionError: no cases")
        assert isinstance(error, ZeroDivisionError)


class TestOptions:
    def test_gates_beside_the_suites_apply_as_well(self, run, fakes, three):
        recipe = fakes.Recipe()
        suite, own = ("exact.recall@3 >= 0.5",), ("exact.recall@3 >= 1", "*.failed_cases == 0")
        report = run(three, recipe, gates=suite, own_gates=own)[-1].report
        assert [(gate.origin, gate.written, gate.status) for gate in report.gates] == [
            ("run", own[0], "passed"),
            ("run", own[1], "passed"),
            ("suite", suite[0], "passed"),
        ]
        # The suite has no evaluator for it.
        assert report.score_summary["exact.recall@3"] == 1.0

    def test_the_first_sample_of_a_mode_is_cold(self, run, fakes, three):
        report = run(three, fakes.Recipe(modes=("a", "b")))[-1].report
        assert [result.metadata["cold"] for result in report.case_results] == [
            True,
            False,
            False,
        ] * 2
        assert report.mode_summaries["a"].cold_latency.n == 1

    def test_warming_up_asks_without_recording(self, run, fakes, three):
        asked = []

        def answer(query, mode):
            asked.append((mode, query))
            return {"results": []}

        report = run(three, fakes.Recipe(answer), warmup=2)[-1].report
        assert asked == [("exact", word) for word in ("word0", "word1", "word0", "word1", "word2")]
        assert len(report.case_results) == 3
        assert not any(result.metadata["cold"] for result in report.case_results)
        assert report.config_snapshot["warmup"] == 2

    def test_repeats_and_limits_change_the_plan(self, run, fakes, three):
        settings = PlanSettings(repeat=2, limit=2)
        report = run(three, fakes.Recipe(), settings=settings, gates=("*.ndcg@10 > 0",))[-1].report
        assert [(r.case_id, r.metadata["repeat"]) for r in report.case_results] == [
            ("q0", 0),
            ("q0", 1),
            ("q1", 0),
            ("q1", 1),
        ]
        assert report.gates[0].reason == "1 > 0, on 2 of 3 cases"

    def test_responses_are_kept_as_asked(self, run, fakes, three):
        def answer(query, mode):
            return {"results": [{"id": "c", "text": "x" * 500}]}

        lengths = [
            len(run(three, fakes.Recipe(answer), responses=level)[-1].report.case_results[0]
                .response.results[0].text)
            for level in ("ids", "short", "full")
        ]  # fmt: skip
        assert lengths == [0, 201, 500]

    def test_a_gate_on_a_mode_of_another_run_is_skipped(self, run, fakes, three):
        settings = PlanSettings(modes=("a",))
        recipe = fakes.Recipe(modes=("a", "b"))
        report = run(three, recipe, settings=settings, gates=("b.ndcg@10 > 0",))[-1].report
        assert [(g.status, g.reason) for g in report.gates] == [("skipped", "mode not in this run")]


SAVED = {}
"""What a recipe saved; whatever it held itself would be a part of its key."""


class TestSavedKnowledgeBases:
    @pytest.fixture
    def cache(self, tmp_path):
        return KnowledgeBaseCache(tmp_path / "kept", max_bytes=1 << 20)

    @pytest.fixture
    def saving(self, fakes):
        class Saving(fakes.Recipe):
            def manifest(self):
                return {}

            def save(self, knowledge_base, path):
                SAVED["one"] = knowledge_base

            def load(self, path):
                return SAVED["one"]

        yield Saving
        SAVED.clear()

    @pytest.mark.parametrize("runs", [1, 2], ids=["built", "loaded"])
    def test_what_a_run_uses_is_kept_while_it_uses_it(self, run, saving, three, cache, runs):
        in_use = []

        def look(seen):
            if len(seen) > 1:
                in_use.append([cache.is_in_use(entry) for entry in cache.entries()])
            return False

        for _ in range(runs):
            in_use.clear()
            recipe = saving()
            run(three, recipe, cancelled=look, cache=cache)
        assert in_use[0] == [True]
        assert [cache.is_in_use(entry) for entry in cache.entries()] == [False]
        assert len(recipe.built) == 2 - runs

    @pytest.mark.parametrize("during", ["query", "close"])
    def test_an_interrupted_run_lets_it_go(self, saving, three, cache, tmp_path, during):
        recipe = saving()

        def create(**given):
            base = create_base(**given)
            base.aclose = base.close = stopped
            return base

        def stopped(*_, **__):
            raise KeyboardInterrupt

        if during == "close":
            create_base, recipe.create = recipe.create, create

        async def listen():
            options = RunnerOptions(cache=cache)
            stream = run_benchmark(Suite(three), recipe, workspace=tmp_path / "w", options=options)
            async for event in stream:
                if during == "query" and type(event).__name__ == "CaseCompleted":
                    asyncio.current_task().cancel()

        with pytest.raises(KeyboardInterrupt if during == "close" else asyncio.CancelledError):
            asyncio.run(listen())
        assert [cache.is_in_use(entry) for entry in cache.entries()] == [False]


class TestCancelling:
    def test_it_ends_between_samples_with_what_there_is(self, run, fakes, three):
        recipe = fakes.Recipe()
        events = run(
            three,
            recipe,
            cancelled=lambda seen: len(seen) >= 3,
            gates=("*.ndcg@10 > 0",),
        )
        assert names(events) == ["RunStarted", "UnitBuilt", "CaseCompleted", "RunCancelled"]
        report = events[-1].report
        assert report.metadata["complete"] is False
        assert len(report.case_results) == 1
        assert [(g.status, g.reason) for g in report.gates] == [("skipped", "1 of 3 samples ran")]
        assert recipe.built[0].closed == 1

    def test_no_later_unit_is_built(self, run, fakes, by_unit):
        recipe = fakes.Recipe()
        events = run(by_unit, recipe, cancelled=lambda seen: len(seen) >= 3)
        assert names(events) == ["RunStarted", "UnitBuilt", "CaseCompleted", "RunCancelled"]
        assert len(recipe.calls) == 1

    def test_samples_of_a_unit_that_failed_can_be_cancelled(self, run, fakes, three):
        class Fragile(fakes.Recipe):
            def create(self, **given):
                raise MemoryError

        events = run(three, Fragile(), cancelled=lambda seen: len(seen) >= 3)
        assert names(events) == ["RunStarted", "UnitBuilt", "CaseCompleted", "RunCancelled"]

    def test_cancelled_after_the_last_sample_it_is_complete(self, run, fakes, three):
        events = run(three, fakes.Recipe(), cancelled=lambda seen: len(seen) >= 5)
        assert names(events)[-1] == "RunCompleted"

    def test_one_who_stops_listening_leaves_nothing_open(self, fakes, three, tmp_path):
        recipe = fakes.Recipe()

        async def listen():
            stream = run_benchmark(Suite(three), recipe, workspace=tmp_path)
            async for event in stream:
                if type(event).__name__ == "CaseCompleted":
                    break
            await stream.aclose()

        asyncio.run(listen())
        assert recipe.built[0].closed == 1


def test_two_runs_give_the_same_report_but_for_times_and_ids(run, fakes, three):
    def comparable(report):
        data = report.model_dump(mode="json", exclude={"report_id", "started_at", "finished_at"})
        for build in data["unit_builds"]:
            build["build_seconds"] = None
        for result in data["case_results"]:
            result["latency_ms"] = None
        for summary in data["mode_summaries"].values():
            for name in ("latency", "cold_latency", "warm_latency"):
                summary[name] = summary[name]["n"]
        return data

    reports = [run(three, fakes.Recipe(modes=("a", "b")))[-1].report for _ in range(2)]
    assert comparable(reports[0]) == comparable(reports[1])
    assert reports[0].report_id != reports[1].report_id


class TestTimeLimits:
    """What takes longer than it may costs what it is part of, and the run goes on."""

    @pytest.fixture
    def gate(self):
        event = threading.Event()
        yield event
        event.set()

    @staticmethod
    def in_time(events):
        """Return the error types of the samples of a complete run, by case."""
        results = events[-1].report.case_results
        return {r.case_id: r.error.error_type if r.error else None for r in results}

    @pytest.mark.parametrize("concurrency", [1, 3])
    @pytest.mark.parametrize("kind", ["ordinary", "asynchronous"])
    def test_of_a_query(self, run, fakes, three, gate, kind, concurrency):
        async def for_ever():
            await asyncio.Event().wait()

        def answer(query, mode):
            if query == "word1":
                return gate.wait() if kind == "ordinary" else for_ever()
            return fakes.hits(query.replace("word", "d"))

        events = run(three, fakes.Recipe(answer), timeout_s=0.2, concurrency=concurrency)
        assert self.in_time(events) == {"q0": None, "q1": "timeout", "q2": None}
        error = events[-1].report.case_results[1].error
        assert error.message == "[query-timeout] the query took longer than 0.2 s"

    @pytest.mark.parametrize("kind", ["ordinary", "asynchronous"])
    def test_of_an_evaluator(self, run, fakes, three, gate, kind):
        class Ordinary:
            name = "judge"

            def evaluate(self, *, case, response):
                return gate.wait() if case.case_id == "q1" else 0.5

        class Asynchronous:
            name = "judge"

            async def evaluate(self, *, case, response):
                if case.case_id == "q1":
                    await asyncio.Event().wait()
                return 0.5

        three._evaluators = ("ndcg@10", Ordinary() if kind == "ordinary" else Asynchronous())
        report = run(three, fakes.Recipe(), timeout_s=0.2)[-1].report
        assert [[score.value for score in r.scores] for r in report.case_results] == [
            [1.0, 0.5],
            [1.0, None],
            [1.0, 0.5],
        ]
        late = report.case_results[1]
        assert late.latency_ms is not None
        assert late.scores[1].metadata["error"] == {
            "type": "timeout",
            "message": "the evaluator took longer than 0.2 s",
        }

    @pytest.mark.parametrize("kind", ["ordinary", "asynchronous"])
    def test_of_a_build(self, run, fakes, by_unit, gate, kind):
        class Recipe(fakes.Recipe):
            def create(self, **given):
                made = super().create(**given)
                if "/d1/" not in given["source_keys"][0]:
                    return made
                return gate.wait() if kind == "ordinary" else asyncio.Event().wait()

        events = run(by_unit, Recipe(), build_timeout_s=0.2)
        assert self.in_time(events) == {"q0": None, "q1": "timeout", "q2": None}
        builds = [event.build for event in events if type(event).__name__ == "UnitBuilt"]
        assert [build.error is None for build in builds] == [True, False, True]

    def test_of_closing_and_warming_up_it_is_told(self, run, fakes, three, gate):
        class Recipe(fakes.Recipe):
            def create(self, **given):
                made = super().create(**given)
                made.aclose = gate.wait
                return made

        asked = []

        def answer(query, mode):
            asked.append(query)
            return gate.wait() if len(asked) == 1 else fakes.hits("d0")

        recipe = Recipe(answer)
        report = run(three, recipe, warmup=1, timeout_s=0.2, build_timeout_s=0.2)[-1].report
        assert report.metadata["warnings"] == [
            "[close-failed] run unit all could not be closed: closing took longer than 0.2 s",
            (
                "[warm-up-failed] warming up run unit all, mode exact:"
                " the query took longer than 0.2 s"
            ),
        ]
        assert [r.error for r in report.case_results] == [None] * 3
