"""The step that asks a knowledge base one query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_heta.core._calls import call_shape, evaluation_error
from pytest_heta.core._limited import LimitedCalls
from pytest_heta.core._loop import Called, call, is_coroutine_function
from pytest_heta.core._threads import DaemonThreads
from pytest_heta.core.build import available_modes
from pytest_heta.core.pace import Pace
from pytest_heta.core.plan import DEFAULT_MODE
from pytest_heta.core.retries import is_rate_limit
from pytest_heta.errors import (
    DocumentUnavailableError,
    HetaError,
    QueryError,
    QueryTimeoutError,
    ResponseInvalidError,
    did_you_mean,
)
from pytest_heta.models import EvaluationError, QueryResponse

__all__ = [
    "PreparedQuery",
    "QueryOutcome",
    "as_response",
    "blocked_query",
    "not_asked",
    "query_case",
    "query_limits",
]


@dataclass(frozen=True, slots=True)
class QueryOutcome:
    """What came of a query: a response with its latency, or an error.

    Attributes:
        response: The response, None if the query failed.
        error: Why it failed: ``error_type`` is ``query``, ``timeout``,
            ``rate_limited``, ``response_invalid`` or ``document_unavailable``.
        latency_ms: Milliseconds inside ``query``; None if it failed.
        exception: What was raised, for a traceback; it is in no record.
        attempts: How often was asked.
    """

    response: QueryResponse | None = None
    error: EvaluationError | None = None
    latency_ms: float | None = None
    exception: Exception | None = field(default=None, compare=False, repr=False)
    attempts: int = 1


def not_asked(error: DocumentUnavailableError) -> QueryOutcome:
    """Return the outcome of a query that was not asked, for a document that is not there."""
    return QueryOutcome(error=evaluation_error(error, "document_unavailable"))


class PreparedQuery:
    """How a knowledge base is asked in one mode: what does not depend on the text.

    ``query`` may be a coroutine function or an ordinary one, and is given
    those of ``mode``, ``top_k``, ``options`` and ``trace`` that it takes.

    Args:
        knowledge_base: The knowledge base.
        mode: Query mode; `DEFAULT_MODE` stands for the only one there is.
        top_k: Depth that is asked for. Results beyond it are dropped.
        options: Query options.

    Attributes:
        function: What is called; None if there is nothing to call.
        is_coroutine_function: Whether it runs on the event loop.
        problem: Why nothing can be asked, None if it can.
    """

    def __init__(
        self, knowledge_base: Any, *, mode: str, top_k: int, options: Mapping[str, Any]
    ) -> None:
        self._mode = mode
        self._top_k = top_k
        self._options = options
        self.function: Callable[..., Any] | None = None
        self.is_coroutine_function = False
        self.problem: QueryOutcome | None = None
        try:
            self._mode = _known_mode(knowledge_base, mode)
            function = knowledge_base.query
            self._shape = call_shape(function)
            self.is_coroutine_function = is_coroutine_function(function)
            self.function = function
        except Exception as error:  # noqa: BLE001 - attributes of users' code
            self.problem = _failed(error, "query")

    def arguments(self, text: str) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Return the arguments of a call; options are a copy, for the callee to change."""
        keywords = {
            "mode": self._mode,
            "top_k": self._top_k,
            "options": dict(self._options),
            "trace": False,
        }
        return self._shape.arguments(text, keywords)

    def outcome(self, called: Called) -> QueryOutcome:
        """Return what came of a call, its response validated and cut to the depth asked."""
        if called.error is not None:
            return _failed(called.error, _error_type(called.error), called.attempts)
        try:
            response = as_response(called.value, self._mode)
        except Exception as error:  # noqa: BLE001 - attributes of users' objects
            return _failed(error, "response_invalid", called.attempts)
        if len(response.results) > self._top_k:
            response = _cut(response, self._top_k)
        return QueryOutcome(
            response=response, latency_ms=called.seconds * 1000, attempts=called.attempts
        )

    async def ask(
        self, text: str, *, limited: LimitedCalls | None = None, pace: Pace | None = None
    ) -> QueryOutcome:
        """Ask one query.

        A failure is a value; what is no `Exception` (an interrupt, a cancelled
        task) goes through.

        Args:
            text: The query.
            limited: Calls it within a time limit; None for any time.
            pace: How fast and how often is asked; None for once, right now.
        """
        if self.function is None or self.problem is not None:
            return self.problem or QueryOutcome()
        if pace is None:
            return self.outcome(await self._call(text, limited))
        return self.outcome(await pace.ask(lambda _: self._call(text, limited)))

    async def _call(self, text: str, limited: LimitedCalls | None) -> Called:
        assert self.function is not None  # noqa: S101 - for the type checker
        # Anew for each attempt: the options are the callee's to change.
        args, kwargs = self.arguments(text)
        if limited is not None:
            return await limited.call(self.function, args, kwargs)
        return await call(self.function, *args, **kwargs)


def query_limits(limit_s: float, threads: DaemonThreads | None = None) -> LimitedCalls:
    """Return what asks the queries of one run unit within a time limit.

    Args:
        limit_s: Seconds that a query may take.
        threads: Where ordinary queries are asked; None for the loop's own thread.
    """
    return LimitedCalls(limit_s, what="query", error=QueryTimeoutError, threads=threads)


def blocked_query(limits: LimitedCalls) -> QueryOutcome:
    """Return what came of a query that blocks the event loop."""
    return _failed(limits.blocked(), "timeout")


async def query_case(
    knowledge_base: Any,
    *,
    query: str,
    mode: str,
    top_k: int,
    options: Mapping[str, Any],
    limited: LimitedCalls | None = None,
    pace: Pace | None = None,
) -> QueryOutcome:
    """Ask a knowledge base one query, as `PreparedQuery` does.

    Args:
        knowledge_base: The knowledge base.
        query: Text of the query.
        mode: Query mode; `DEFAULT_MODE` stands for the only one there is.
        top_k: Depth that is asked for. Results beyond it are dropped.
        options: Query options.
        limited: Calls it within a time limit; None for any time.
        pace: How fast and how often is asked; None for once, right now.
    """
    prepared = PreparedQuery(knowledge_base, mode=mode, top_k=top_k, options=options)
    return await prepared.ask(query, limited=limited, pace=pace)


def _failed(error: Exception, error_type: str, attempts: int = 1) -> QueryOutcome:
    failure = evaluation_error(error, error_type)
    if attempts > 1:
        failure.metadata["attempts"] = attempts
    return QueryOutcome(error=failure, exception=error, attempts=attempts)


def _error_type(error: Exception) -> str:
    if isinstance(error, QueryTimeoutError):
        return "timeout"
    return "rate_limited" if is_rate_limit(error) else "query"


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
