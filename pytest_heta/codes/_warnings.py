"""What is odd, but fails nothing."""

from __future__ import annotations

from typing import Final

from pytest_heta.codes._row import WARNING, Code

__all__ = ["WARNINGS"]

WARNINGS: Final = (
    Code(
        "dangling-gold",
        "Corpus and judgments come from different versions.",
        "Add the documents, or remove the judgments; `--heta-strict` makes it an error.",
        WARNING,
        "Relevant documents are not in the corpus, so that recall cannot reach 1.",
    ),
    Code(
        "gold-outside-unit",
        "`documents` of a run unit leave out what its cases expect.",
        "Add the documents to the run unit.",
        WARNING,
        "Relevant documents are not in the run unit of their case.",
    ),
    Code(
        "unjudged-query",
        "A query without a row in the judgments.",
        "Judge it, or remove it.",
        WARNING,
        "Queries expect nothing by which a response could be judged.",
    ),
    Code("empty-query", "A field left empty.", "Write the query.", WARNING, "A query has no text."),
    Code(
        "duplicate-query",
        "Files were joined.",
        "Remove one of them, if they expect the same.",
        WARNING,
        "Queries have the same text.",
    ),
    Code(
        "empty-document",
        "A text that could not be extracted.",
        "Correct or remove the document.",
        WARNING,
        "A document has no content.",
    ),
    Code(
        "duplicate-document",
        "A corpus that was not de-duplicated.",
        "Remove all but one, and judge that one.",
        WARNING,
        "Documents have the same content.",
    ),
    Code(
        "unit-means-all",
        "An adapter of heta-framework with several run units, one of them with empty ids.",
        "Name the ids in the run unit.",
        WARNING,
        "A run unit beside others names no cases or documents, and gets all.",
    ),
    Code(
        "foreign-results",
        "The recipe loses the documents' ids, so that every measure is 0.",
        "Let results have a `source` with `source_key` or `document_id`.",
        WARNING,
        "Responses name no document of the benchmark.",
    ),
    Code(
        "recipe-warning",
        "`warnings` in the manifest of a knowledge base or in the metadata of its responses.",
        "Read what it says; it is not pytest-heta's.",
        WARNING,
        "A knowledge base warns of something.",
    ),
    Code(
        "close-failed",
        "`close` or `aclose` of a knowledge base raises.",
        "Correct it: what it holds may stay open. Results are not affected.",
        WARNING,
        "A knowledge base could not be closed.",
    ),
    Code(
        "fixture-overridden",
        "A `conftest.py` overrides `heta_kb` and builds without `heta_unit.build`.",
        "Nothing, if that is meant; the report says so.",
        WARNING,
        "What was asked is not what the recipe's manifest describes.",
    ),
    Code(
        "baseline-incomplete",
        "A benchmark or recipe that is new, or was renamed, since the baseline.",
        "Make the baseline again.",
        WARNING,
        "The baseline has no report to compare a report with.",
    ),
    Code(
        "byte-order-mark",
        "A program on Windows wrote the file.",
        "Nothing: it is left out. `--heta-strict` makes it an error.",
        WARNING,
        "A file of a dataset begins with a byte order mark.",
    ),
    Code(
        "doubtful-encoding",
        "A conversion with the wrong encoding spoilt the text before it came here.",
        "Convert the original again; `--heta-strict` makes it an error.",
        WARNING,
        "Lines hold replacement characters, or look like UTF-8 that was read as something else.",
    ),
    Code(
        "mixed-ids",
        "Ids are numbers in one place and texts in another.",
        "Nothing: they are compared as texts. `--heta-strict` makes it an error.",
        WARNING,
        "Ids of one kind are of several types.",
    ),
    Code(
        "warm-up-failed",
        "A query of `--heta-warmup` takes longer than `--heta-timeout`.",
        "Give it more time, or warm up with more queries.",
        WARNING,
        "A warm-up query took too long; no result shows it.",
    ),
    Code(
        "latencies-mixed",
        "A run was gone on with at another `--heta-concurrency` or number of workers.",
        "Compare its quality, not its latencies.",
        WARNING,
        "Latencies of one report were measured at different concurrency.",
    ),
    Code(
        "results-not-kept",
        "The disk is full, or the folder of the run cannot be written.",
        "Make room: the report is written from memory, and a killed run cannot be resumed.",
        WARNING,
        "Results, or responses, are not written down as they come.",
    ),
    Code(
        "run-not-kept",
        "The folder of runs, or the file of the run in it, cannot be written.",
        "Make room, or name another folder by `--heta-runs-dir`. All results are in the report.",
        WARNING,
        "The run is in a temporary folder, or `--heta-resume` may not be able to go on with it.",
    ),
    Code(
        "records-damaged",
        "The session was killed while it wrote, or the disk is damaged.",
        "Nothing if it was killed, else check the disk: what the records told is asked again.",
        WARNING,
        "Some of what earlier sessions of a run wrote down cannot be read.",
    ),
    Code(
        "crash-not-traceable",
        "The folder of the run cannot be written.",
        "Make room, or choose another folder for temporary files.",
        WARNING,
        "Which sample kills a worker would not be known.",
    ),
)
"""What is odd, but fails nothing."""
