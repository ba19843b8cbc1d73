"""How users' functions are called, and what becomes of their exceptions."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from traceback import format_exception, walk_tb
from typing import Any, Final
from weakref import WeakKeyDictionary

from pytest_heta.core._plain import exception_text, plain_text, safe_str
from pytest_heta.core.retries import is_retryable
from pytest_heta.errors import BuildTimeoutError, HetaError, QueryTimeoutError, from_here
from pytest_heta.models import EvaluationError

__all__ = [
    "CallShape",
    "accepted_keywords",
    "call_shape",
    "error_text",
    "evaluation_error",
    "later_keywords",
    "place_of",
    "raised_at",
    "traceback_text",
]

_NAMED: Final = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_TEXT_NAMES: Final = ("text", "query", "question")
_OURS: Final = f"{Path(__file__).parents[1]}{os.sep}"
_STANDARD_LIBRARY: Final = f"{Path(os.__file__).parent}{os.sep}"
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


@dataclass(frozen=True, slots=True)
class CallShape:
    """What a function of one text and some keywords can be called with.

    Attributes:
        names: Keywords that it takes; None means any.
        text: Keyword of the text, where it is not positional.
    """

    names: frozenset[str] | None = None
    text: str | None = None

    def arguments(
        self, text: str, keywords: Mapping[str, Any]
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Return the arguments of a call with ``text`` and ``keywords``."""
        names = self.names
        taken = {name: value for name, value in keywords.items() if names is None or name in names}
        if self.text is None:
            return (text,), taken
        taken[self.text] = text
        return (), taken


# By function and not by class: a knowledge base may carry a function of its own.
_SHAPES: WeakKeyDictionary[Callable[..., Any], CallShape] = WeakKeyDictionary()


def call_shape(function: Callable[..., Any]) -> CallShape:
    """Return what ``function`` can be called with; worked out once for each."""
    underlying = getattr(function, "__func__", function)
    try:
        shape = _SHAPES.get(underlying)
        if shape is None:
            shape = _SHAPES[underlying] = _read_shape(function)
    except TypeError:  # it has no hash, or cannot be referred to weakly
        return _read_shape(function)
    return shape


def _read_shape(function: Callable[..., Any]) -> CallShape:
    parameters = _parameters(function)
    if not parameters:
        return CallShape()
    first = parameters[0]
    text = None
    if first.kind in {first.KEYWORD_ONLY, first.VAR_KEYWORD}:
        # Of a function of keywords alone, one has to be the text.
        named = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
        text = next((name for name in _TEXT_NAMES if name in named), _TEXT_NAMES[0])
    else:
        parameters = parameters[1:]  # the text's, or all positional ones
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return CallShape(None, text)
    return CallShape(frozenset(p.name for p in parameters if p.kind in _NAMED), text)


def accepted_keywords(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the keyword arguments ``given`` that a function takes."""
    parameters = _parameters(function)
    if parameters is None or any(p.kind is p.VAR_KEYWORD for p in parameters):
        return dict(given)
    names = {p.name for p in parameters if p.kind in _NAMED}
    return {name: value for name, value in given.items() if name in names}


def later_keywords(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of ``given`` that a function takes beside its first, positional argument."""
    taken = accepted_keywords(function, given)
    parameters = _parameters(function)
    if parameters:
        taken.pop(parameters[0].name, None)
    return taken


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in C without a signature
        return None


def evaluation_error(error: BaseException, error_type: str) -> EvaluationError:
    """Return an exception as the record of why a sample could not be run."""
    metadata: dict[str, Any] = {"exception": type(error).__name__}
    where = raised_at(error)
    if where is not None:
        metadata["raised_at"] = where
    return EvaluationError(
        message=error_text(error),
        error_type=error_type,
        retryable=isinstance(error, QueryTimeoutError | BuildTimeoutError) or is_retryable(error),
        metadata=metadata,
    )


def error_text(error: BaseException) -> str:
    """Return an exception as one line: one of ours says all by itself, others need their type."""
    return safe_str(error) if isinstance(error, HetaError) else exception_text(error)


def raised_at(error: BaseException) -> str | None:
    """Return ``file:line`` of the users' code that an exception comes from, if any.

    That is the innermost frame that is neither ours nor of the standard
    library nor of an installed package, or else the innermost one of a package
    that was called by us. A syntax error is where it stands, and one of our
    errors where its cause was raised.
    """
    if isinstance(error, HetaError) and error.__cause__ is not None:
        error = error.__cause__
    frames = [(f.f_code.co_filename, line) for f, line in walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        frames.append((error.filename, error.lineno))
    installed: list[tuple[str, int]] = []
    users: list[tuple[str, int]] = []
    for frame in frames:
        if frame[0].startswith(_OURS):
            installed.clear()  # they called us: pytest, for one
        elif any(part in frame[0] for part in _INSTALLED):
            installed.append(frame)
        elif not frame[0].startswith((_STANDARD_LIBRARY, "<")):
            users.append(frame)
    if not users + installed:
        return None
    path, line = (users or installed)[-1]
    return plain_text(f"{path}:{line}")


def place_of(error: BaseException) -> str | None:
    """Return where an exception comes from, as `raised_at`, relative to the current folder."""
    place = raised_at(error)
    return None if place is None else from_here(place)


def traceback_text(error: BaseException) -> str | None:
    """Return the traceback of an exception if ``HETA_DEBUG`` asks for it, else None."""
    if not os.environ.get("HETA_DEBUG"):
        return None
    return plain_text("".join(format_exception(error)))
