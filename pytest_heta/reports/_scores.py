"""What a single score says, in words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pytest_heta.errors import one_line
from pytest_heta.models import EvaluationScore

__all__ = ["error_line", "missing_reason"]


def error_line(kind: object, message: object, raised_at: object = None) -> str:
    """Return an error as one line: its kind, unless the message begins with it, and its place."""
    text = one_line(message or "")
    kind_text = one_line(kind or "")
    if kind_text and not text.startswith((f"{kind_text}:", "[")):
        text = f"{kind_text}: {text}" if text else kind_text
    elif text == f"{kind_text}:":
        text = kind_text
    return f"{text} (at {_from_here(one_line(raised_at))})" if raised_at else text or "error"


def _from_here(place: str) -> str:
    """Return ``file:line`` relative to the current folder, if it is in there."""
    folder = f"{Path.cwd()}{os.sep}"
    return place.removeprefix(folder)


def missing_reason(score: EvaluationScore) -> str:
    """Return why a score has no value: its error, or its reason to be skipped or unjudged."""
    error = score.metadata.get("error")
    if isinstance(error, Mapping):
        return error_line(error.get("type"), error.get("message"), error.get("raised_at"))
    reason = score.metadata.get("reason")
    if score.status == "errored":
        return one_line(error or reason or "no value")
    return one_line(reason or score.status)
