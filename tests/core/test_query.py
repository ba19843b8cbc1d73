"""The step that asks a query."""

import asyncio
import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from pytest_heta.core import _loop
from pytest_heta.core._loop import LoopThread
from pytest_heta.core.plan import DEFAULT_MODE
from pytest_heta.core.query import query_case
from pytest_heta.models import QueryResponse, QueryResult


def ask(knowledge_base, mode="exact", top_k=10, options=None):
    work = query_case(knowledge_base, query="why?", mode=mode, top_k=top_k, options=options or {})
    return asyncio.run(work)


@dataclasses.dataclass
class Result:
    id: object
    text: str = ""
    score: float | None = None
    kind: str = "chunk"
    source: dict = dataclasses.field(default_factory=dict)
    metadata: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Response:
    """A response of another package, by shape."""

    mode: str
    results: object = ()
    insights: tuple = ()


class TestAnswers:
    @pytest.mark.parametrize(
        "answer",
        [
            QueryResponse(mode="exact", results=(QueryResult(id="7"),)),
            {"mode": "exact", "results": [{"id": "7"}]},
            {"results": [{"id": 7}]},
            {"results": (QueryResult(id="7"),)},
            {"results": iter([{"id": "7"}])},
            {"results": [Result("7")], "mode": "exact"},
            Response("exact", [Result(7.0)]),
            SimpleNamespace(mode="exact", results=[SimpleNamespace(id="7")]),
            SimpleNamespace(results=[SimpleNamespace(id="7")]),
            {"mode": None, "results": [{"id": np.int64(7)}]},
        ],
        ids=range(10),
    )
    def test_a_response_of_any_shape_is_understood(self, fakes, answer):
        outcome = ask(fakes.KnowledgeBase(lambda text, mode: answer))
        assert outcome.error is None
        assert isinstance(outcome.response, QueryResponse)
        assert outcome.response.mode == "exact"
        assert [result.id for result in outcome.response.results] == ["7"]

    def test_a_validated_response_is_taken_as_it_is(self, fakes):
        answer = QueryResponse(mode="exact")
        assert ask(fakes.KnowledgeBase(lambda text, mode: answer)).response is answer

    def test_an_empty_list_is_an_honest_answer(self, fakes):
        outcome = ask(fakes.KnowledgeBase(lambda text, mode: {"results": []}))
        assert outcome.error is None
        assert outcome.response.results == ()

    def test_an_answer_without_results_is_one_too(self, fakes):
        outcome = ask(fakes.KnowledgeBase(lambda text, mode: {"answer": "42"}))
        assert outcome.response.answer == "42"

    def test_the_same_id_twice_is_kept_twice(self, fakes):
        outcome = ask(fakes.KnowledgeBase(lambda text, mode: {"results": [{"id": "a"}] * 2}))
        assert [result.id for result in outcome.response.results] == ["a", "a"]

    def test_results_beyond_the_depth_are_dropped_and_noted(self, fakes):
        answer = {"results": [{"id": str(i)} for i in range(5)], "metadata": {"tokens": 3}}
        outcome = ask(fakes.KnowledgeBase(lambda text, mode: answer), top_k=2)
        assert [result.id for result in outcome.response.results] == ["0", "1"]
        assert outcome.response.metadata == {
            "tokens": 3,
            "truncated": "results beyond top_k dropped",
            "returned": 5,
        }

    def test_fewer_results_than_asked_for_are_fine(self, fakes):
        outcome = ask(fakes.KnowledgeBase(lambda text, mode: fakes.hits("a")), top_k=10)
        assert "truncated" not in outcome.response.metadata


class TestNoAnswers:
    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (None, "returned None with neither results nor answer"),
            ([], "returned a list with neither"),
            (["id1", "id2"], "returned a list with neither"),
            ([QueryResult(id="a")], "returned a list with neither"),
            ("text", "returned a str with neither"),
            (42, "returned a int with neither"),
            ({}, "returned a dict with neither"),
            ({"hits": []}, "returned a dict with neither"),
            ({"results": None}, "QueryResponse.results = None"),
            ({"results": "abc"}, "QueryResponse.results = 'abc'"),
            ({"results": [{}]}, "QueryResponse.results.0.id: a value is required"),
            ({"results": [{"id": ""}]}, "an id must not be empty"),
            ({"results": ["d1"]}, "QueryResponse.results.0 = 'd1'"),
            ({"results": [], "hits": 3}, "QueryResponse.hits = 3"),
            ({"results": {"a"}}, "the results are a set, which has no order"),
            (SimpleNamespace(hits=[]), "returned a SimpleNamespace with neither"),
        ],
        ids=range(16),
    )
    def test_what_is_no_response_is_an_error_of_its_own_kind(self, fakes, answer, message):
        outcome = ask(fakes.KnowledgeBase(lambda text, mode: answer))
        assert outcome.response is None
        assert outcome.latency_ms is None
        assert outcome.error.error_type == "response_invalid"
        assert outcome.error.message.startswith("[response-invalid] ")
        assert message in outcome.error.message
        assert "\n" not in outcome.error.message

    def test_attributes_that_raise_are_an_invalid_response(self, fakes):
        class Broken:
            mode = "exact"

            @property
            def results(self):
                raise ZeroDivisionError("no results")

        outcome = ask(fakes.KnowledgeBase(lambda text, mode: Broken()))
        assert outcome.error.error_type == "response_invalid"
        assert "no results" in outcome.error.message


class TestFailures:
    @pytest.mark.parametrize("how", ["run", "drive"])
    @pytest.mark.parametrize("asynchronous", [True, False])
    def test_an_exception_is_a_value(self, fakes, how, asynchronous):
        async def query(text, **_):
            raise KeyError("index")

        def fail(text, mode):
            raise KeyError("index")

        knowledge_base = fakes.KnowledgeBase(fail)
        if asynchronous:
            knowledge_base.query = query
        thread = LoopThread()
        work = query_case(knowledge_base, query="?", mode="exact", top_k=3, options={})
        outcome = getattr(thread, how)(work)
        thread.close()
        assert outcome.response is None
        assert outcome.latency_ms is None
        assert outcome.error.error_type == "query"
        assert outcome.error.message == "KeyError: 'index'"
        assert outcome.error.metadata["exception"] == "KeyError"
        assert "test_query.py:" in outcome.error.metadata["raised_at"]

    def test_an_exception_whose_text_raises_is_a_value(self, fakes):
        class BrokenError(Exception):
            def __str__(self):
                raise self

        def fail(text, mode):
            raise BrokenError

        outcome = ask(fakes.KnowledgeBase(fail))
        assert outcome.error.message == "BrokenError: <unprintable BrokenError>"

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
    def test_what_is_no_exception_goes_through(self, fakes, kind):
        def fail(text, mode):
            raise kind

        with pytest.raises(kind):
            ask(fakes.KnowledgeBase(fail))

    @pytest.mark.parametrize("how", ["run", "drive"])
    def test_a_query_may_skip_its_own_test(self, fakes, how):
        async def query(text, **_):
            pytest.skip("not today")

        knowledge_base, thread = fakes.KnowledgeBase(None), LoopThread()
        knowledge_base.query = query
        work = query_case(knowledge_base, query="?", mode="exact", top_k=3, options={})
        with pytest.raises(pytest.skip.Exception):
            getattr(thread, how)(work)
        thread.close()

    def test_one_failure_does_not_touch_the_next_query(self, fakes):
        answers = iter([ZeroDivisionError, fakes.hits("a")])

        def answer(text, mode):
            given = next(answers)
            if given is ZeroDivisionError:
                raise given
            return given

        knowledge_base = fakes.KnowledgeBase(answer)
        assert ask(knowledge_base).error is not None
        assert ask(knowledge_base).response is not None

    def test_a_knowledge_base_without_query_is_an_error(self):
        assert "no attribute 'query'" in ask(object()).error.message

    def test_an_argument_that_it_wants_and_we_do_not_have_is_named(self):
        class Demanding:
            def query(self, text, tenant): ...

        assert "tenant" in ask(Demanding()).error.message


class TestModes:
    def test_the_default_is_the_only_one(self, fakes):
        knowledge_base = fakes.KnowledgeBase(lambda text, mode: {"answer": mode}, ("hybrid",))
        assert ask(knowledge_base, DEFAULT_MODE).response.answer == "hybrid"

    def test_the_default_of_several_is_an_error_that_names_them(self, fakes):
        outcome = ask(fakes.KnowledgeBase(None, ("a", "b")), DEFAULT_MODE)
        assert "several modes: a, b" in outcome.error.message
        assert outcome.error.error_type == "query"

    def test_a_mode_that_it_lacks_is_an_error_before_the_query(self, fakes):
        outcome = ask(fakes.KnowledgeBase(None, ("hybrid",)), "hybird")
        assert "no mode 'hybird'; did you mean 'hybrid'?" in outcome.error.message

    def test_one_that_says_no_modes_is_given_any(self, fakes):
        knowledge_base = fakes.KnowledgeBase(lambda text, mode: {"answer": mode}, None)
        assert ask(knowledge_base, "x").response.answer == "x"
        assert ask(knowledge_base, DEFAULT_MODE).response.answer == DEFAULT_MODE


class TestCalls:
    def test_it_gets_the_arguments_that_it_takes(self):
        class TenLines:
            def query(self, text):
                return {"answer": text}

        assert ask(TenLines()).response.answer == "why?"

    def test_a_coroutine_function_gets_everything(self):
        class Everything:
            async def query(self, text, *, mode, top_k, options, trace):
                await asyncio.sleep(0)
                return {"answer": f"{text} {mode} {top_k} {options} {trace}"}

        response = ask(Everything(), "m", 3, {"a": 1}).response
        assert response.answer == "why? m 3 {'a': 1} False"

    def test_options_that_are_changed_stay_as_they_were(self, fakes):
        class Greedy:
            def query(self, text, *, options):
                options.clear()
                return {"answer": ""}

        options = {"a": 1}
        ask(Greedy(), options=options)
        assert options == {"a": 1}

    def test_only_the_time_inside_the_query_counts(self, fakes, monkeypatch):
        ticks = itertools.chain([1.0, 1.25], itertools.count(100.0))
        monkeypatch.setattr(_loop, "perf_counter", lambda: next(ticks))
        outcome = ask(fakes.KnowledgeBase(lambda text, mode: fakes.hits("a")))
        assert outcome.latency_ms == 250.0

    def test_a_client_that_is_bound_to_a_loop_works_for_every_query(self):
        class Client:
            lock = None

            async def query(self, text):
                self.lock = self.lock or asyncio.Queue()
                future = asyncio.get_running_loop().create_future()
                self.lock.put_nowait(future)
                asyncio.get_running_loop().call_soon(future.set_result, "done")
                return {"answer": await (await self.lock.get())}

        thread, client = LoopThread(), Client()
        for how in (thread.run, thread.drive):
            work = query_case(client, query="?", mode="m", top_k=1, options={})
            assert how(work).response.answer == "done"
        thread.close()
