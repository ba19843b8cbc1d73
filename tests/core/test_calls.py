"""Users' functions get the arguments they take, and their exceptions a record."""

import functools
from unittest.mock import Mock

import pytest

from pytest_heta.core._calls import CallShape, accepted_keywords, call_shape, evaluation_error
from pytest_heta.errors import QueryError

ALL = {"mode": "m", "top_k": 10, "options": {}, "trace": False}


class Methods:
    def everything(self, text, *, mode, top_k, options, trace): ...

    def little(self, text, *, mode): ...

    def positional(self, question, mode, top_k=5): ...

    def any_keyword(self, text, **rest): ...

    def any_at_all(self, *args, **kwargs): ...

    def only_arguments(self, *args): ...

    def keywords(self, *, mode, query): ...

    def named_text(self, *, text, **rest): ...

    def only_keywords(self, **rest): ...

    def nothing(self): ...

    def __call__(self, text, *, top_k): ...


@pytest.mark.parametrize(
    ("method", "positional", "names"),
    [
        ("everything", True, {"mode", "top_k", "options", "trace"}),
        ("little", True, {"mode"}),
        ("positional", True, {"mode", "top_k"}),
        ("any_keyword", True, set(ALL)),
        ("any_at_all", True, set(ALL)),
        ("only_arguments", True, set()),
        ("keywords", False, {"mode", "query"}),
        ("named_text", False, {*ALL, "text"}),
        ("only_keywords", False, {*ALL, "text"}),
        ("nothing", True, set(ALL)),
        ("__call__", True, {"top_k"}),
    ],
)
def test_a_method_gets_what_it_takes(method, positional, names):
    args, kwargs = call_shape(getattr(Methods(), method)).arguments("why?", ALL)
    assert args == (("why?",) if positional else ())
    assert set(kwargs) == names
    if not positional:
        assert kwargs.get("text", kwargs.get("query")) == "why?"


def test_functions_of_other_kinds_are_understood():
    assert call_shape(Methods()).names == {"top_k"}
    assert call_shape(functools.partial(Methods().little, mode="x")).names == {"mode"}
    assert call_shape(Mock()) == CallShape()
    # Written in C, without a signature.
    assert call_shape(iter) == CallShape()


def test_a_function_without_hash_is_understood():
    class Unhashable:
        __hash__ = None

        def __call__(self, text, *, mode): ...

    assert call_shape(Unhashable()).names == {"mode"}


def test_the_shape_is_worked_out_once_for_a_function(monkeypatch):
    methods = Methods()
    first = call_shape(methods.little)
    assert call_shape(methods.little) is first
    assert call_shape(Methods().little) is first


def test_a_function_on_one_object_is_not_taken_for_the_classes():
    one, other = Methods(), Methods()
    one.little = lambda text, *, top_k: None
    assert call_shape(one.little).names == {"top_k"}
    assert call_shape(other.little).names == {"mode"}


def test_keywords_are_kept_that_a_function_takes():
    assert accepted_keywords(Methods().little, {"text": 1, "mode": 2, "x": 3}) == {
        "text": 1,
        "mode": 2,
    }
    assert accepted_keywords(Methods().any_keyword, {"x": 3}) == {"x": 3}
    assert accepted_keywords(iter, {"x": 3}) == {"x": 3}


class TestEvaluationError:
    def test_an_exception_is_recorded_with_its_type_and_place(self):
        try:
            {}["key"]
        except KeyError as error:
            record = evaluation_error(error, "query")
        assert record.message == "KeyError: 'key'"
        assert record.error_type == "query"
        assert not record.retryable
        assert record.metadata["exception"] == "KeyError"
        assert record.metadata["raised_at"].startswith(__file__)

    def test_one_of_ours_keeps_its_words(self):
        record = evaluation_error(QueryError("no", hint="try"), "query")
        assert record.message == "[query-failed] no; try"
        assert record.metadata == {"exception": "QueryError"}

    @pytest.mark.parametrize("kind", [TimeoutError, ConnectionError, ConnectionResetError])
    def test_what_may_pass_can_be_tried_again(self, kind):
        assert evaluation_error(kind(), "query").retryable
