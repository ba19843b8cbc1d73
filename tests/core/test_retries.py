"""Which errors may pass by themselves, and how long to wait."""

from __future__ import annotations

from datetime import UTC, datetime
from email.message import Message
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import pytest

from pytest_heta.core._calls import evaluation_error
from pytest_heta.core.retries import (
    http_status,
    is_retryable,
    is_throttling,
    pause_s,
    retry_after_s,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def error_with(**attributes: Any) -> Exception:
    error = Exception("no answer")
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def http_error(status: int, retry_after: str | None = None) -> HTTPError:
    headers = Message()
    if retry_after is not None:
        headers["Retry-After"] = retry_after
    return HTTPError("http://localhost/", status, "no", headers, None)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_statuses_that_pass_are_retryable(status: int) -> None:
    assert is_retryable(http_error(status))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 501])
def test_statuses_that_stay_are_not_retryable(status: int) -> None:
    assert not is_retryable(http_error(status))


@pytest.mark.parametrize(
    "error",
    [
        error_with(status_code=429),
        error_with(status=429),
        error_with(code=429),
        error_with(response=SimpleNamespace(status_code=429)),
        error_with(response={"ResponseMetadata": {"HTTPStatusCode": 429}}),
    ],
)
def test_a_status_is_found_wherever_libraries_put_it(error: Exception) -> None:
    assert http_status(error) == 429
    assert is_retryable(error)
    assert is_throttling(error)


def test_what_an_error_says_itself_comes_first() -> None:
    assert not is_retryable(error_with(retryable=False, status_code=429))
    assert is_retryable(error_with(retryable=True, status_code=400))


def test_a_code_that_is_no_status_says_nothing() -> None:
    assert http_status(error_with(code="rate_limit")) is None
    assert http_status(error_with(code=True)) is None
    assert not is_retryable(error_with(code=7))


def test_an_attribute_that_fails_says_nothing() -> None:
    class BrokenError(Exception):
        @property
        def status_code(self) -> int:
            raise RuntimeError

    assert not is_retryable(BrokenError())


@pytest.mark.parametrize("error", [ConnectionResetError(), TimeoutError()])
def test_builtin_connection_errors_and_timeouts_are_retryable(error: Exception) -> None:
    assert is_retryable(error)


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [
        ("httpx", "ConnectError", True),
        ("httpcore._exceptions", "ReadTimeout", True),
        ("openai", "APITimeoutError", True),
        ("httpx", "InvalidURL", False),
        ("shop", "ConnectError", False),
    ],
)
def test_classes_of_http_libraries_are_known_by_name(
    module: str, name: str, *, expected: bool
) -> None:
    kind = type(name, (Exception,), {"__module__": module})
    derived = type("Mine", (kind,), {})
    assert is_retryable(kind()) is expected
    assert is_retryable(derived()) is expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str | None, seconds: float | None) -> None:
    assert retry_after_s(http_error(429, text), now=NOON) == seconds


def test_retry_after_is_found_in_the_response() -> None:
    response = SimpleNamespace(status_code=429, headers={"retry-after": "3"})
    assert retry_after_s(error_with(response=response)) == 3.0


def test_pauses_grow_up_to_a_bound() -> None:
    error = http_error(503)
    assert 0.5 <= pause_s(1, error) <= 1.0
    assert 2.0 <= pause_s(3, error) <= 2.5
    assert pause_s(50, error) == 30.0


def test_a_pause_is_never_less_than_retry_after() -> None:
    assert pause_s(1, http_error(429, "20")) == 20.0


def test_the_record_of_a_failure_says_whether_it_may_pass() -> None:
    assert evaluation_error(http_error(429), "query").retryable
    assert not evaluation_error(http_error(404), "query").retryable
