"""What a single score says, in words."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_heta.errors import one_line
from pytest_heta.models import EvaluationScore

__all__ = ["missing_reason"]


def missing_reason(score: EvaluationScore) -> str:
    """Return why a score has no value: its error, or its reason to be skipped or unjudged."""
    error = score.metadata.get("error")
    if isinstance(error, Mapping):
        parts = (error.get("type"), error.get("message"))
        return one_line(": ".join(str(part) for part in parts if part)) or "error"
    reason = score.metadata.get("reason")
    if score.status == "errored":
        return one_line(error or reason or "no value")
    return one_line(reason or score.status)
