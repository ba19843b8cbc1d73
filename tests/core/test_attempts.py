"""A result tells what was tried before it, and how often in all."""

import pytest

from pytest_heta.core.attempts import MOST_ATTEMPTS, Attempt, with_attempts


def attempt(session, **changes):
    return Attempt(session, "query", "boom", None, reused=False, tries=session)._replace(**changes)


def told(fakes, earlier, *, own=None, reused_response=False):
    result = fakes.result("q1", {"hit": 1.0})
    if own is not None:
        result = result.model_copy(update={"metadata": {**result.metadata, "attempts": own}})
    return with_attempts(result, earlier, reused_response=reused_response).metadata


def test_without_any_a_result_is_as_it_was(fakes):
    result = fakes.result("q1", {"hit": 1.0})
    assert with_attempts(result, (), reused_response=False) is result


@pytest.mark.parametrize(
    ("own", "reused_response", "last", "total"),
    [
        (None, False, "query", 3),  # an attempt of one query
        (4, False, "query", 6),  # retried within the session
        (None, True, "query", 3),  # returned after the failure, in a session that was killed
        (None, True, "scoring", 2),  # counted with the result that lost a score
    ],
)
def test_attempts_are_those_of_all_sessions(fakes, own, reused_response, last, total):
    earlier = [attempt(1), attempt(2, error_type=last)]
    metadata = told(fakes, earlier, own=own, reused_response=reused_response)
    assert metadata["attempts"] == total
    assert [one["session"] for one in metadata["earlier_attempts"]] == [1, 2]
    assert metadata.get("reused_response", False) is reused_response


def test_what_is_told_is_bounded(fakes):
    metadata = told(fakes, [attempt(n, message="x" * 10_000) for n in range(1, 31)])
    earlier = metadata["earlier_attempts"]
    assert [one["session"] for one in earlier] == list(range(21, 31))
    assert len(earlier) == MOST_ATTEMPTS
    assert max(len(one["message"]) for one in earlier) == 501
    assert metadata["attempts"] == 31
