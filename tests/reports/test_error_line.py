"""An error is shown as ``[code] place, place: what``."""

import pytest

from pytest_heta.models import EvaluationError
from pytest_heta.reports import error_line, missing_reason, sample_error, score_error


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("query-failed", "no route"), "[query-failed] no route"),
        (("query-failed", "no\nroute", "a.py:3"), "[query-failed] a.py:3: no route"),
        (("x-y", "no", "score m", "a.py:3"), "[x-y] score m, a.py:3: no"),
        (("x-y", "no", "", None, "a.py:3"), "[x-y] a.py:3: no"),
        (("x-y", "", "a.py:3"), "[x-y] a.py:3"),
        (("x-y", None), "[x-y]"),
        # One of ours says by itself what it is.
        (
            ("query-failed", "[build-failed] run unit a: full", "a.py:3"),
            "[build-failed] a.py:3: run unit a: full",
        ),
        (("x-y", "[model-invalid] case a: bad", "case a"), "[model-invalid] case a: bad"),
        (("x-y", "[1] is no score"), "[x-y] [1] is no score"),
    ],
)
def test_a_line(arguments, line):
    assert error_line(*arguments) == line


def failed(make_result, error_type, message, **metadata):
    error = EvaluationError(message=message, error_type=error_type, metadata=metadata)
    return make_result("q7", error=error)


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (
            ("query", "KeyError: 'a'", {"raised_at": "b.py:3"}),
            "[query-failed] b.py:3: KeyError: 'a'",
        ),
        (("query", "KeyError: 'a'", {}), "[query-failed] case q7: KeyError: 'a'"),
        (("timeout", "[query-timeout] slow", {}), "[query-timeout] case q7: slow"),
        (("build", "[build-failed] run unit u: full", {}), "[build-failed] run unit u: full"),
        (("crash", "worker gone", {}), "[worker-crashed] case q7: worker gone"),
    ],
)
def test_a_failed_sample_is_told_with_its_place_or_its_case(make_result, result, line):
    error_type, message, metadata = result
    assert sample_error(failed(make_result, error_type, message, **metadata)) == line


def test_a_sample_that_did_not_fail_has_no_line(make_result):
    assert sample_error(make_result("q")) == ""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            {"type": "KeyError", "message": "KeyError: 'a'", "raised_at": "b.py:3"},
            "[evaluator-failed] score m, b.py:3: KeyError: 'a'",
        ),
        ({"type": "Refused", "message": "busy"}, "[evaluator-failed] score m: Refused: busy"),
        ({"type": "Refused"}, "[evaluator-failed] score m: Refused"),
        ({"type": "non_finite", "message": "it is nan"}, "[score-non-finite] score m: it is nan"),
        ({"type": "ModelError", "message": "[model-invalid] bad"}, "[model-invalid] score m: bad"),
        ("busy", "[evaluator-refused] score m: busy"),
    ],
)
def test_a_lost_score_is_told_with_its_metric_and_place(make_score, error, line):
    score = make_score("m", error=error)
    assert score_error(score) == line
    assert missing_reason(score) == line.replace("score m, ", "").replace("score m: ", "")


def test_a_score_that_says_nothing_is_missing(make_score):
    assert score_error(make_score("m")) == "[score-missing] score m: no value"


def test_a_score_that_does_not_count_has_a_reason_and_no_code(make_score):
    assert missing_reason(make_score("m", skipped=True, reason="depth")) == "depth"
    assert missing_reason(make_score("m", unjudged=True)) == "unjudged"
