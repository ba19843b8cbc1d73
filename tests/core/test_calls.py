"""Users' functions get the arguments they take, and their exceptions a record."""

import functools
from unittest.mock import Mock

import pytest

from pytest_heta.core._calls import (
    CallShape,
    accepted_keywords,
    call_shape,
    evaluation_error,
    place_of,
    raised_at,
    traceback_text,
)
from pytest_heta.errors import BuildError, QueryError

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


class TestWhere:
    """The place of an exception is a line of the users' code, where there is one."""

    @staticmethod
    def place(function):
        with pytest.raises(Exception) as raised:  # noqa: PT011 - any
            function()
        return raised_at(raised.value)

    @pytest.fixture
    def module(self, tmp_path):
        """Return a function that makes a function of a source file in a folder."""

        def make(source, folder=""):
            path = tmp_path / folder / "mine.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source, encoding="utf-8")
            names = {}
            exec(compile(source, str(path), "exec"), names)
            return names["run"], str(path)

        return make

    def test_it_is_the_innermost_line(self, module):
        run, path = module("def deep():\n    1 / 0\n\ndef run():\n    deep()\n")
        assert self.place(run) == f"{path}:2"

    def test_it_is_not_in_the_standard_library(self, module):
        run, path = module("import json\ndef run():\n    json.loads('{')\n")
        assert self.place(run) == f"{path}:3"

    def test_it_is_not_in_an_installed_package(self, module):
        library, _ = module("def run():\n    1 / 0\n", "site-packages")
        assert self.place(library).startswith(f"{__file__}:")

    def test_it_is_in_an_installed_package_that_nobody_else_called(self, module):
        library, path = module("def run():\n    1 / 0\n", "site-packages")
        with pytest.raises(ZeroDivisionError) as raised:
            library()
        assert raised_at(raised.value.with_traceback(raised.tb.tb_next)) == f"{path}:2"

    def test_it_is_not_in_ours(self, module):
        run, path = module(
            "from pytest_heta.measures import parse_at_k as f\ndef run():\n    f(0)\n"
        )
        assert self.place(run) == f"{path}:3"

    def test_a_syntax_error_is_where_it_stands(self, module):
        run, _ = module("def run():\n    compile('x =\\n', 'other.py', 'exec')\n")
        assert self.place(run) == "other.py:1"

    def test_one_of_ours_is_where_its_cause_was_raised(self, module):
        run, path = module("def run():\n    1 / 0\n")
        try:
            run()
        except ZeroDivisionError as error:
            ours = BuildError("it failed")
            ours.__cause__ = error
        assert raised_at(ours) == f"{path}:2"

    def test_what_was_not_raised_has_none(self):
        assert raised_at(ValueError()) is None

    def test_it_is_told_from_the_current_folder(self, module, monkeypatch, tmp_path):
        run, _ = module("def run():\n    1 / 0\n")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ZeroDivisionError) as raised:
            run()
        assert place_of(raised.value) == "mine.py:2"

    def test_a_traceback_is_kept_only_when_debugging(self, monkeypatch):
        monkeypatch.delenv("HETA_DEBUG", raising=False)
        assert traceback_text(ValueError("x")) is None
        monkeypatch.setenv("HETA_DEBUG", "1")
        assert traceback_text(ValueError("x")) == "ValueError: x\n"
