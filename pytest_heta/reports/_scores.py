"""Errors of samples and scores as lines for a person."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pytest_heta.codes import EVALUATOR_FAILED, sample_code, score_code
from pytest_heta.errors import from_here, one_line
from pytest_heta.models import EvaluationCaseResult, EvaluationScore

__all__ = ["error_line", "missing_reason", "sample_error", "score_error"]

_CODED: Final = re.compile(r"\[(?P<code>[a-z]+(?:-[a-z]+)*)\] (?P<text>.*)")


def error_line(code: str, message: object, *places: object) -> str:
    """Return an error as the line ``[code] place, place: message``.

    Args:
        code: Its code, unless the message has one of its own.
        message: What is wrong.
        places: Where; what is empty, or stands in the message, is left out.
    """
    text = one_line(message or "")
    coded = _CODED.fullmatch(text)
    if coded is not None:
        code, text = coded["code"], coded["text"]
    shown = (from_here(one_line(place)) for place in places if place)
    where = ", ".join(place for place in shown if not text.startswith(place))
    # The text of one of our errors may go on with a place of its own.
    return f"[{code}] {': '.join(part for part in (where, text) if part)}".rstrip()


def sample_error(result: EvaluationCaseResult) -> str:
    """Return why a sample failed: code, place in the user's code or case, and what."""
    error = result.error
    if error is None:
        return ""
    where = error.metadata.get("raised_at")
    if not where and error.error_type != "build":  # of which the run unit is the place
        where = f"case {result.case_id}"
    return error_line(sample_code(error.error_type), error.message, where)


def score_error(score: EvaluationScore) -> str:
    """Return why a score was lost: code, metric, place in the user's code, and what."""
    return _score_line(score, f"score {score.name}")


def missing_reason(score: EvaluationScore) -> str:
    """Return why a score has no value: its error, or its reason to be skipped or unjudged."""
    if score.status == "errored":
        return _score_line(score)
    return one_line(score.metadata.get("reason") or score.status)


def _score_line(score: EvaluationScore, *places: str) -> str:
    error = score.metadata.get("error")
    if isinstance(error, Mapping):
        kind, text = one_line(error.get("type") or ""), one_line(error.get("message") or "")
        code = score_code(kind)
        if code == EVALUATOR_FAILED and not text.startswith((f"{kind}:", "[")):
            text = f"{kind}: {text}" if text else kind  # the class of an exception
        return error_line(code, text, *places, error.get("raised_at"))
    if error:
        return error_line(score_code("evaluator"), error, *places)
    return error_line(score_code("no_value"), score.metadata.get("reason") or "no value", *places)
