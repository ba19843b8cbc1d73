"""What earlier sessions tried in vain stays with the result that came in the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pytest_heta.models import EvaluationCaseResult

__all__ = ["Attempt", "with_attempts"]

MOST_ATTEMPTS: Final = 10
"""Earlier attempts that a result tells of: the last ones."""

_MOST_CHARACTERS: Final = 500


class Attempt(NamedTuple):
    """A result with an error, of an earlier session.

    Attributes:
        session: Number of the session.
        error_type: Kind of the error; ``scoring`` where a score was lost.
        message: What it said.
        latency_ms: Milliseconds inside ``query``, None if it failed.
        reused: Whether its response was one of a session before that.
        tries: How often the sample had been tried by then, over all sessions.
    """

    session: int
    error_type: str
    message: str
    latency_ms: float | None
    reused: bool
    tries: int

    def as_data(self) -> dict[str, Any]:
        """Return what a report tells of it."""
        message = self.message
        if len(message) > _MOST_CHARACTERS:
            message = message[:_MOST_CHARACTERS] + "…"
        known = {**self._asdict(), "message": message}
        del known["tries"]
        return known


def with_attempts(
    result: EvaluationCaseResult, earlier: Sequence[Attempt], *, reused_response: bool
) -> EvaluationCaseResult:
    """Return a result that tells what went before it.

    Its ``attempts`` become those of all sessions: its own, 1 unless it says more,
    and those before.

    Args:
        result: The result.
        earlier: Results of the sample in earlier sessions, in order.
        reused_response: Whether its response was taken over from an earlier session.
    """
    if not earlier and not reused_response:
        return result
    metadata = dict(result.metadata)
    if reused_response:
        metadata["reused_response"] = True
    if earlier:
        last = earlier[-1]
        # A response that was scored before was counted with that result.
        was_counted = reused_response and last.error_type == "scoring"
        metadata["attempts"] = last.tries + (0 if was_counted else metadata.get("attempts", 1))
        metadata["earlier_attempts"] = [known.as_data() for known in earlier[-MOST_ATTEMPTS:]]
    return result.model_copy(update={"metadata": metadata})
