"""The step that asks a knowledge base one query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_heta.core._calls import call_shape, evaluation_error
from pytest_heta.core._loop import call
from pytest_heta.core.build import available_modes
from pytest_heta.core.plan import DEFAULT_MODE
from pytest_heta.errors import HetaError, QueryError, ResponseInvalidError, did_you_mean
from pytest_heta.models import EvaluationError, QueryResponse

__all__ = ["QueryOutcome", "as_response", "query_case"]


@dataclass(frozen=True, slots=True)
class QueryOutcome:
    """What came of a query: a response with its latency, or an error.

    Attributes:
        response: The response, None if the query failed.
        error: Why it failed: ``error_type`` is ``query`` or
            ``response_invalid``.
        latency_ms: Milliseconds inside ``query``; None if it failed.
        exception: What was raised, for a traceback; it is in no record.
    """

    response: QueryResponse | None = None
    error: EvaluationError | None = None
    latency_ms: float | None = None
    exception: Exception | None = field(default=None, compare=False, repr=False)


async def query_case(
    knowledge_base: Any, *, query: str, mode: str, top_k: int, options: Mapping[str, Any]
) -> QueryOutcome:
    """Ask a knowledge base one query.

    ``query`` may be a coroutine function or an ordinary one, and is given
    those of ``mode``, ``top_k``, ``options`` and ``trace`` that it takes.
    A failure is a value; what is no `Exception` (an interrupt, a cancelled
    task) goes through.

    Args:
        knowledge_base: The knowledge base.
        query: Text of the query.
        mode: Query mode; `DEFAULT_MODE` stands for the only one there is.
        top_k: Depth that is asked for. Results beyond it are dropped.
        options: Query options.
    """
    try:
        asked = _known_mode(knowledge_base, mode)
        function = knowledge_base.query
    except Exception as error:  # noqa: BLE001 - attributes of users' code
        return _failed(error, "query")
    keywords = {"mode": asked, "top_k": top_k, "options": dict(options), "trace": False}
    args, kwargs = call_shape(function).arguments(query, keywords)
    called = await call(function, *args, **kwargs)
    if called.error is not None:
        return _failed(called.error, "query")
    try:
        response = as_response(called.value, asked)
    except Exception as error:  # noqa: BLE001 - attributes of users' objects
        return _failed(error, "response_invalid")
    if len(response.results) > top_k:
        response = _cut(response, top_k)
    return QueryOutcome(response=response, latency_ms=called.seconds * 1000)


def _failed(error: Exception, error_type: str) -> QueryOutcome:
    return QueryOutcome(error=evaluation_error(error, error_type), exception=error)


def _known_mode(knowledge_base: Any, mode: str) -> str:
    modes = available_modes(knowledge_base)
    if not modes or mode in modes:
        return mode
    if mode != DEFAULT_MODE:
        raise QueryError(f"the knowledge base has no mode {mode!r}", hint=did_you_mean(mode, modes))
    if len(modes) > 1:
        raise QueryError(
            f"the knowledge base has several modes: {', '.join(modes)}",
            hint="say which by --heta-mode, or let the recipe have `available_queries`",
        )
    return modes[0]


def as_response(value: Any, mode: str) -> QueryResponse:
    """Return what a knowledge base answered as a validated `QueryResponse`.

    One that does not say its ``mode`` gets ``mode``.

    Raises:
        ResponseInvalidError: if it has not the shape of a response.
    """
    if isinstance(value, QueryResponse):
        return value
    if isinstance(value, Mapping):
        fields = dict(value)
    else:
        names = QueryResponse.model_fields
        fields = {name: getattr(value, name) for name in names if hasattr(value, name)}
    if not fields.keys() & {"results", "answer"}:
        kind = "None" if value is None else f"a {type(value).__name__}"
        raise ResponseInvalidError(
            f"the knowledge base returned {kind} with neither results nor answer",
            hint="return a QueryResponse, or a mapping or an object of its shape",
        )
    if isinstance(fields.get("results"), set | frozenset):
        raise ResponseInvalidError(
            "the results are a set, which has no order", hint="return them best first"
        )
    if fields.get("mode") is None:
        fields["mode"] = mode
    try:
        return QueryResponse.model_validate(fields)
    except HetaError as error:
        raise ResponseInvalidError(error.message, hint=error.hint) from error


def _cut(response: QueryResponse, top_k: int) -> QueryResponse:
    note = {"truncated": "results beyond top_k dropped", "returned": len(response.results)}
    return response.model_copy(
        update={
            "results": response.results[:top_k],
            "metadata": {**response.metadata, **note},
        }
    )
