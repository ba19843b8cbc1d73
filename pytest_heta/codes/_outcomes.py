"""What fails samples, loses scores, or is said of gates."""

from __future__ import annotations

from typing import Final

from pytest_heta.codes._row import SAMPLE, SCORE, TEST, TRACEBACK, Code

__all__ = ["GATES", "SAMPLES", "SCORES"]

SAMPLES: Final = (
    Code(
        "worker-crashed",
        "A process of a distributed run died: `os._exit`, a segmentation fault, or out of memory.",
        "Run the case alone, with fewer workers or a lower `--heta-concurrency`.",
        SAMPLE,
        "The worker that was asking the sample ended.",
        kinds=("crash",),
    ),
    Code(
        "rate-limited",
        "A service answers 429, or asks to come back later, in spite of all retries.",
        "Lower `--heta-rate` or `--heta-concurrency`, and go on with `--heta-resume`.",
        SAMPLE,
        "A service is asked too much; see [rate limits](how-to/rate-limits.md).",
        kinds=("rate_limited",),
    ),
    Code(
        "tests-not-run",
        "Workers died, and `--max-worker-restart` did not let others take their places.",
        "Look at what crashed, then go on with the run by `--heta-resume`.",
        "the run is not complete, its gates are not decided: exit code 1",
        "No worker was left to run some of the tests.",
    ),
    Code(
        "case-failed",
        "A fixture or another plugin raised while the case ran.",
        TRACEBACK,
        SAMPLE,
        "A case failed outside of query and build.",
        kinds=("call",),
    ),
)
"""What fails a sample beside the errors above."""

SCORES: Final = (
    Code(
        "evaluator-failed",
        "An evaluator's `evaluate` or `applies` raises; the line begins with the exception.",
        TRACEBACK,
        SCORE,
        "An evaluator raised an exception.",
    ),
    Code(
        "evaluator-refused",
        "An evaluator put `error` into the metadata of its score.",
        "Read what it says; a judge that is busy may answer in the next run.",
        SCORE,
        "An evaluator says by itself that it has no score.",
        kinds=("evaluator",),
    ),
    Code(
        "evaluator-timeout",
        "An evaluator takes longer than `--heta-timeout`.",
        "Give it more time, or find out what it waits for.",
        SCORE,
        "An evaluator took too long.",
        kinds=("timeout",),
    ),
    Code(
        "evaluator-rate-limited",
        "The service behind a judge answers 429 in spite of all retries.",
        "Lower `--heta-concurrency`, and go on with `--heta-resume`.",
        SCORE,
        "The service of an evaluator is asked too much.",
        kinds=("rate_limited",),
    ),
    Code(
        "score-wrong-type",
        "An evaluator returns None, a list, or `passed` that is no truth value.",
        "Return a number, a bool, a label, or an `EvaluationScore`.",
        SCORE,
        "What an evaluator returned is no score.",
        kinds=("wrong_type",),
    ),
    Code(
        "score-non-finite",
        "A division by zero in an evaluator.",
        "Decide what the score of such a case is, or skip it with a reason.",
        SCORE,
        "A score is NaN or infinite.",
        kinds=("non_finite",),
    ),
    Code(
        "score-missing",
        "An evaluator returns a score of None without `skipped`, or no score was recorded.",
        'Return a value, or `metadata={"skipped": True, "reason": ...}`.',
        SCORE,
        "There is neither a score nor a reason why not.",
        kinds=("no_value", "missing"),
    ),
    Code(
        "sample-failed",
        "Build or query of the sample failed.",
        "See the error of the sample.",
        SCORE,
        "There is no response to score.",
        kinds=("execution_error",),
    ),
)
"""Why a score is lost."""

GATES: Final = (
    Code(
        "gate-failed",
        "The aggregate is on the wrong side of the threshold.",
        "Look at the worst cases that are shown, and at [gates](how-to/gates.md).",
        TEST,
        "A gate does not hold.",
    ),
    Code(
        "gate-undecided",
        "A part of the planned samples did not run (`-k`, `-x`, a crash), and "
        "`--heta-require-gates` is given.",
        "Run all planned samples, or take the option away.",
        TEST,
        "A gate that has to be decided was not.",
    ),
    Code(
        "errors-uncovered",
        'Samples or scores failed under `fail_on = "gate"`, and no gate limits how many may.',
        "Correct the errors, or add a gate on `failure_rate` or `scoring_errors`.",
        TEST,
        "Errors were let pass, and no gate was decided on them.",
    ),
)
"""What gates fail a run for."""
