"""The registry of codes: what each means, what it usually comes from, and what to do.

Every error, failed sample, lost score, gate that fails a run, and warning that
a user meets is one line ``[code] where: what; what to do``. A class of
`pytest_heta.errors` has its code and its meaning with it, and a row of
`ERRORS` here; everything else has all in its row. ``docs/errors.md`` is
rendered from this module, and a test fails for a code that is not in it.

To add a code, add a row to the table of its kind and run
``python docs/generate.py``.
"""

from __future__ import annotations

from pytest_heta.codes._errors import ERRORS
from pytest_heta.codes._lookup import EVALUATOR_FAILED, all_codes, coded, sample_code, score_code
from pytest_heta.codes._outcomes import GATES, SAMPLES, SCORES
from pytest_heta.codes._row import Code
from pytest_heta.codes._warnings import WARNINGS

__all__ = [
    "ERRORS",
    "EVALUATOR_FAILED",
    "GATES",
    "SAMPLES",
    "SCORES",
    "WARNINGS",
    "Code",
    "all_codes",
    "coded",
    "sample_code",
    "score_code",
]
