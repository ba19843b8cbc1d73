"""Codes by what they stand for."""

from __future__ import annotations

from typing import Final

from pytest_heta.codes._errors import ERRORS
from pytest_heta.codes._outcomes import GATES, SAMPLES, SCORES
from pytest_heta.codes._row import Code
from pytest_heta.codes._warnings import WARNINGS

__all__ = ["EVALUATOR_FAILED", "all_codes", "coded", "sample_code", "score_code"]

EVALUATOR_FAILED: Final = "evaluator-failed"
"""Code of a score whose type is the class of an exception."""


def all_codes() -> tuple[Code, ...]:
    """Return every code there is."""
    return (*ERRORS, *SAMPLES, *SCORES, *GATES, *WARNINGS)


_SAMPLE_CODES: Final = {kind: row.code for row in (*ERRORS, *SAMPLES) for kind in row.kinds}
_SCORE_CODES: Final = {kind: row.code for row in SCORES for kind in row.kinds}
_KNOWN: Final = frozenset(row.code for row in all_codes())


def coded(code: str, text: str) -> str:
    """Return a warning, or what fails a gate, as the line ``[code] text``.

    Raises:
        KeyError: if the code is not registered.
    """
    if code not in _KNOWN:
        raise KeyError(code)
    return f"[{code}] {text}"


def sample_code(error_type: str) -> str:
    """Return the code of a failed sample, by the ``error_type`` of its record."""
    return _SAMPLE_CODES.get(error_type, "case-failed")


def score_code(kind: str) -> str:
    """Return the code of a lost score, by the ``type`` in its metadata.

    The type is the name of the exception's class if the evaluator raised one.
    """
    return _SCORE_CODES.get(kind, EVALUATOR_FAILED)
