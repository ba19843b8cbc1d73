"""A row of the registry, and what becomes of a run."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["COLLECTION", "SAMPLE", "SCORE", "TEST", "TRACEBACK", "UNIT", "USAGE", "WARNING", "Code"]

USAGE: Final = "usage error: exit code 4, and nothing is built"
COLLECTION: Final = "collection error: exit code 2, and nothing is built"
SAMPLE: Final = "the sample fails and counts as the worst score; the run goes on, exit code 1"
UNIT: Final = "all samples of the run unit fail; the run goes on, exit code 1"
SCORE: Final = "the score counts as the worst, the sample keeps its latency; exit code 1"
WARNING: Final = "a warning in the terminal and the report; the exit code does not change"
TEST: Final = "a failed test of the run: exit code 1"
TRACEBACK: Final = "Read the line that is named; `--heta-debug` shows the traceback."


class Code(NamedTuple):
    """One code.

    Attributes:
        code: The code as it is printed, without brackets.
        cause: What it usually comes from.
        remedy: What to do about it.
        outcome: What becomes of the run, with the exit code.
        meaning: What it means; empty for a class of error, whose docstring says it.
        kinds: Types in reports (``error_type``, or ``type`` of a lost score)
            that are shown by this code.
    """

    code: str
    cause: str
    remedy: str
    outcome: str
    meaning: str = ""
    kinds: tuple[str, ...] = ()
