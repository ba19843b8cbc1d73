"""The classes of errors."""

from __future__ import annotations

from typing import Final

from pytest_heta.codes._row import COLLECTION, SAMPLE, TRACEBACK, UNIT, USAGE, WARNING, Code

__all__ = ["ERRORS"]

ERRORS: Final = (
    Code(
        "error",
        "A plugin or adapter raised the base class itself.",
        "Raise one of its subclasses, which say more.",
        "that of the place where it is raised",
    ),
    Code(
        "configuration-invalid",
        "A name, a number or an argument of `suite(...)` or `pytest_heta.api.run` that is not "
        "allowed; in `pytest-heta`, a path that does not exist.",
        "Correct what the line names; the allowed values stand in it.",
        f"{USAGE}; in `pytest-heta`, exit code 2",
    ),
    Code(
        "option-invalid",
        "A typing error in the value of an option or ini key, or two options that exclude each "
        "other.",
        "Give a value that the line allows, or look the option up in "
        "[options](reference/options.md).",
        f"{USAGE}; in `pytest-heta`, exit code 2",
    ),
    Code(
        "recipe-not-found",
        "`--heta-recipe` misspells a name, a module, a file or an attribute.",
        "Write a name that `--heta-list` shows, `package.module:attribute` or "
        "`path/file.py:attribute`.",
        USAGE,
    ),
    Code(
        "recipe-invalid",
        "The recipe's module raises while it is imported, or the object has no `name` or no "
        "`create` method.",
        TRACEBACK,
        USAGE,
    ),
    Code(
        "gate-invalid",
        "A misspelt mode, metric or operator in a gate, or a threshold that cannot be reached.",
        "Correct the gate; the line says what is planned. See [gates](reference/gates.md).",
        USAGE,
    ),
    Code(
        "measure-unknown",
        "A misspelt measure, such as `recal@5`, in a suite.",
        "Write one of [the measures](reference/measures.md), with its `@k`.",
        USAGE,
    ),
    Code(
        "mode-unknown",
        "`--heta-mode`, or the modes of a suite, name a mode that the recipe does not have.",
        "Write one of the modes that the line lists.",
        USAGE,
    ),
    Code(
        "extra-missing",
        "A recipe of the extra `local` without its packages.",
        "Run the `pip install` that the line gives.",
        USAGE,
    ),
    Code(
        "model-invalid",
        "An adapter makes a case, document, run unit or score with a field that is missing or "
        "of the wrong type.",
        "Correct the field that the line names where the adapter makes the object.",
        COLLECTION,
    ),
    Code(
        "benchmark-invalid",
        "An adapter raises, yields no documents, or `--heta-strict` finds the dataset odd.",
        "Correct the adapter or the dataset; `pytest-heta validate` lists what is odd.",
        f"while collecting, {COLLECTION}; while building, {UNIT}",
    ),
    Code(
        "suite-invalid",
        "A `bench_*.py` file has a syntax error, imports what is not there, or raises.",
        TRACEBACK,
        COLLECTION,
    ),
    Code(
        "dataset-not-found",
        "A file that a dataset consists of is not in its folder.",
        "Correct the path, or put the file there; see [datasets](reference/datasets.md).",
        COLLECTION,
    ),
    Code(
        "dataset-invalid",
        "A line that is not JSON, lacks a field, or is not UTF-8.",
        "Correct the line of the file that is named; `pytest-heta validate` checks it in a second.",
        COLLECTION,
    ),
    Code(
        "duplicate-id",
        "Two cases, documents or run units have one id: files were joined, or written twice.",
        "Remove one of the two, or give it another id.",
        f"while collecting, {COLLECTION}; for documents, {UNIT}",
    ),
    Code(
        "plan-invalid",
        "A run unit names cases or documents that do not exist, or a case is in no run unit.",
        "Correct what `run_units()` yields, or `unit` and `documents` of the cases.",
        COLLECTION,
    ),
    Code(
        "document-unavailable",
        "A document's file is missing, empty or cannot be read.",
        "Put the file there, or take the document out of the dataset.",
        f"{WARNING}; what needs the document fails, and `pytest-heta validate` has exit code 1",
        kinds=("document_unavailable",),
    ),
    Code(
        "download-failed",
        "No network, a server that fails, or an address that is out of date.",
        "Run again: what is there is kept. Or put the file where the line says.",
        COLLECTION,
    ),
    Code(
        "checksum-mismatch",
        "The file on the server was changed, or a download was altered on its way.",
        "Look whether there is a new version; correct checksum and size of the resource only if "
        "you trust it.",
        COLLECTION,
    ),
    Code(
        "archive-unsafe",
        "An archive that is cut off, or has links, absolute paths or `..` in it.",
        "Download it again, or extract it by hand and look at it first.",
        COLLECTION,
    ),
    Code(
        "offline",
        "`--heta-offline` or `HETA_OFFLINE=1`, and a file that was never downloaded.",
        "Run once with network, or put the file where the line says.",
        COLLECTION,
    ),
    Code("execution-failed", "A plugin raised the base class itself.", TRACEBACK, SAMPLE),
    Code(
        "build-failed",
        "The recipe's `create` raises, or returns what has no `query` method; a fixture that "
        "overrides `heta_kb` raises.",
        TRACEBACK,
        UNIT,
        kinds=("build",),
    ),
    Code(
        "build-timeout",
        "Building takes longer than `--heta-build-timeout`.",
        "Give it more time, or find out what it waits for.",
        UNIT,
    ),
    Code(
        "query-failed",
        "The knowledge base's `query` raises.",
        TRACEBACK,
        SAMPLE,
        kinds=("query",),
    ),
    Code(
        "query-timeout",
        "A query takes longer than `--heta-timeout`, or than pytest-timeout allows.",
        "Give it more time, lower `--heta-concurrency`, or find out what it waits for.",
        SAMPLE,
        kinds=("timeout",),
    ),
    Code(
        "loop-blocked",
        "A coroutine calls something that blocks, such as `time.sleep` or `requests.get`.",
        "Await what takes long: `asyncio.to_thread`.",
        UNIT,
    ),
    Code(
        "response-invalid",
        "`query` returns None, or results that have not the fields of a response.",
        "Return a mapping with `results`; see [recipes](how-to/recipes.md).",
        SAMPLE,
        kinds=("response_invalid",),
    ),
    Code(
        "report-invalid",
        "The folder of a report cannot be written, the disk is full, or `--heta-baseline` names "
        "a file that is no report.",
        "Choose another path, or make the baseline again.",
        f"before the first build, {USAGE}; at the end of a run, exit code 1",
    ),
    Code(
        "cache-unusable",
        "A saved knowledge base is damaged or cannot be loaded, or its folder cannot be written.",
        "Nothing: it is built. Remove it by `pytest-heta cache prune --all`, or choose another "
        "`--heta-cache-dir`.",
        f"{WARNING}; in `pytest-heta cache`, exit code 1",
    ),
    Code(
        "run-unusable",
        "The folder of runs cannot be written, or the files of a run are damaged.",
        "Choose another `--heta-runs-dir`, or begin a new run without `--heta-resume`.",
        USAGE,
    ),
    Code(
        "run-not-found",
        "`--heta-resume` without a run before it, or with a wrong id.",
        "Name one of the runs that the line lists, or its folder.",
        USAGE,
    ),
    Code(
        "run-in-use",
        "Another session runs, or resumes, the same run.",
        "Wait for its end, or begin another run.",
        USAGE,
    ),
    Code(
        "run-format",
        "Another version of pytest-heta wrote the run.",
        "Go on with that version, or begin a new run.",
        USAGE,
    ),
    Code(
        "resume-refused",
        "Recipe, dataset, evaluators, options or selection changed since the run began.",
        "Undo the change that the line names, or begin a new run.",
        USAGE,
    ),
    Code(
        "internal-error",
        "A fault of pytest-heta, or a hook in a `conftest.py` or another plugin that raises.",
        "Run again with `--heta-debug` (`pytest-heta --debug`); if the traceback ends in "
        "pytest-heta, report it.",
        "the session ends: exit code 3; in `pytest-heta`, exit code 1",
    ),
)
"""Classes of `pytest_heta.errors`, in their order."""
