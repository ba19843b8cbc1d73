"""Which errors may pass by themselves, and how long to wait before asking again.

Errors are known by their shape: what raises them need not be installed, and
is never imported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

__all__ = [
    "LONGEST_RETRY_AFTER_S",
    "http_status",
    "is_rate_limit",
    "is_retryable",
    "is_throttling",
    "pause_s",
    "retry_after_s",
]

LONGEST_RETRY_AFTER_S: Final = 120.0
"""Who is told to come back later than this, in seconds, does not wait for it."""

_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_TOO_MANY: Final = 429
_THROTTLING: Final = frozenset({_TOO_MANY, 503})
_STATUS_NAMES: Final = ("status_code", "status", "code")
_LIBRARIES: Final = frozenset({"httpx", "httpcore", "requests", "urllib3", "aiohttp", "openai"})
_PASSING: Final = ("connect", "timeout", "timedout")
_INITIAL_S: Final = 0.5
_LONGEST_S: Final = 30.0


def is_retryable(error: BaseException) -> bool:
    """Whether another attempt may succeed.

    What the error says itself comes first (a truth value ``retryable``), then
    the status of an HTTP response, then its class.
    """
    said = _attribute(error, "retryable")
    if isinstance(said, bool):
        return said
    status = http_status(error)
    if status is not None:
        return status in _STATUSES
    return isinstance(error, ConnectionError | TimeoutError) or _is_connection_error(error)


def is_throttling(error: BaseException) -> bool:
    """Whether a service says that it is asked too much."""
    return http_status(error) in _THROTTLING


def is_rate_limit(error: BaseException) -> bool:
    """Whether a service refused to answer because it was asked too much.

    A service that is unavailable (503) may be so for any reason, unless it
    says when to come back.
    """
    status = http_status(error)
    return status == _TOO_MANY or (status in _THROTTLING and retry_after_s(error) is not None)


def http_status(error: BaseException) -> int | None:
    """Return the HTTP status that an error stands for, None if it has none."""
    response = _attribute(error, "response")
    for owner in (error, response):
        for name in _STATUS_NAMES:
            status = _status(_attribute(owner, name))
            if status is not None:
                return status
    return _status(_response_metadata(response).get("HTTPStatusCode"))


def retry_after_s(error: BaseException, *, now: datetime | None = None) -> float | None:
    """Return in how many seconds a service wants to be asked again.

    Args:
        error: What was raised.
        now: The time that dates are compared to; None for the present.

    Returns:
        At least 0; None where ``Retry-After`` is missing or unreadable.
    """
    for headers in _headers(error):
        for name, value in headers.items():
            if str(name).lower() == "retry-after":
                return _seconds(str(value).strip(), now or datetime.now(UTC))
    return None


def pause_s(attempt: int, error: BaseException) -> float:
    """Return how many seconds to wait before asking again.

    It doubles with every attempt from 0.5 s up to 30 s, with some chance in it
    so that not all come back at once, and is never less than ``Retry-After``.

    Args:
        attempt: How often was asked so far, from 1.
        error: What the last attempt raised.
    """
    # Seldom needed, and not cheap to import.
    from tenacity import RetryCallState, wait_exponential, wait_random  # noqa: PLC0415

    state = RetryCallState(retry_object=None, fn=None, args=(), kwargs={})  # type: ignore[arg-type]
    state.attempt_number = attempt
    # Not `wait_exponential_jitter`: its parameters were renamed within tenacity 9.
    wait = wait_exponential(multiplier=_INITIAL_S) + wait_random(0, _INITIAL_S)
    return max(min(float(wait(state)), _LONGEST_S), retry_after_s(error) or 0.0)


def _attribute(owner: Any, name: str) -> Any:
    # Attributes of users' errors may be properties that fail.
    with suppress(Exception):
        return getattr(owner, name, None)
    return None


def _status(value: Any) -> int | None:
    # A `code` may be anything: only what can be a status of HTTP is one.
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if is_number and 100 <= value <= 599 else None  # noqa: PLR2004


def _response_metadata(response: Any) -> Mapping[str, Any]:
    if isinstance(response, Mapping):
        metadata = response.get("ResponseMetadata")
        if isinstance(metadata, Mapping):
            return metadata
    return {}


def _headers(error: BaseException) -> Iterator[Any]:
    response = _attribute(error, "response")
    for headers in (
        _attribute(error, "headers"),
        _attribute(response, "headers"),
        _response_metadata(response).get("HTTPHeaders"),
    ):
        if callable(_attribute(headers, "items")):
            yield headers


def _seconds(text: str, now: datetime) -> float | None:
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())


def _is_connection_error(error: BaseException) -> bool:
    return any(
        kind.__module__.partition(".")[0] in _LIBRARIES
        and any(word in kind.__name__.lower() for word in _PASSING)
        for kind in type(error).__mro__
    )
