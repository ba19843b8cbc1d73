"""The record of a sample, and how much of a response it keeps."""

import dataclasses
import json
import math
from datetime import UTC, datetime
from types import MappingProxyType

import numpy as np
import pytest

from pytest_heta.core.plan import CasePlan, MetricSpec, Sample
from pytest_heta.core.query import QueryOutcome
from pytest_heta.core.result import case_result, failed_result, trim_response
from pytest_heta.models import (
    EvaluationError,
    EvaluationScore,
    QueryCitation,
    QueryResponse,
    QueryResult,
)

SAMPLE = Sample("tiny", "fake", "u", "exact", "q1", 2)
LONG = "naïve " * 100
START = datetime(2026, 1, 2, tzinfo=UTC)


def response():
    loop = {}
    loop["again"] = loop
    return QueryResponse(
        mode="exact",
        results=(
            QueryResult(
                id="c1",
                text=LONG,
                score=0.5,
                source={"document_id": "d1", "loop": loop},
                metadata={"vector": [0.5] * 2_000, "document_id": "d1"},
            ),
            QueryResult(id="c2", text="short", score=math.nan, source={"document_id": "d1"}),
            QueryResult(id="c3\ud800", score=-math.inf, source={"document_id": "d\ud800"}),
        ),
        answer=LONG * 10,
        citations=(
            QueryCitation(id="1", result_id="c1", text=LONG, source={"page_index": 3}),
            QueryCitation(id="2"),
        ),
        trace=({"stage": "search", "loop": loop},),
        metadata={"tokens": 7, "loop": loop},
    )


class TestTrimming:
    def test_short_keeps_the_beginning_of_texts(self):
        kept = trim_response(response(), "short")
        assert kept.results[0].text == LONG[:200] + "…"
        assert kept.results[1].text == "short"
        assert kept.answer == (LONG * 10)[:2_000] + "…"
        assert kept.citations[0].text == LONG[:200] + "…"
        assert kept.citations[0].source == {"page_index": 3}
        assert kept.trace == ()
        assert kept.metadata == {"tokens": 7, "loop": {"again": "…"}}

    def test_ids_keeps_no_text(self):
        kept = trim_response(response(), "ids")
        assert [result.text for result in kept.results] == ["", "", ""]
        assert kept.answer is None
        assert [citation.text for citation in kept.citations] == [None, None]
        assert [result.id for result in kept.results] == ["c1", "c2", "c3\ufffd"]
        assert kept.results[0].source["document_id"] == "d1"

    def test_full_keeps_everything(self):
        kept = trim_response(response(), "full")
        assert kept.results[0].text == LONG
        assert kept.answer == LONG * 10
        assert kept.trace == ({"stage": "search", "loop": {"again": "…"}},)
        assert kept.citations[1].text is None

    @pytest.mark.parametrize("level", ["ids", "short", "full"])
    def test_whatever_is_kept_is_strict_json_and_reads_back(self, level):
        kept = trim_response(response(), level)
        text = json.dumps(kept.model_dump(mode="json"), allow_nan=False, ensure_ascii=False)
        assert QueryResponse.model_validate(json.loads(text.encode())) == kept

    @pytest.mark.parametrize("level", ["ids", "short", "full"])
    def test_scores_that_are_not_finite_become_none_with_a_note(self, level):
        kept = trim_response(response(), level)
        assert [result.score for result in kept.results] == [0.5, None, None]
        assert kept.results[1].metadata["non_finite_score"] == "nan"
        assert kept.results[2].metadata["non_finite_score"] == "-inf"

    def test_metadata_of_results_is_kept_in_full_only_but_for_the_document(self):
        assert trim_response(response(), "short").results[0].metadata == {"document_id": "d1"}
        full = trim_response(response(), "full").results[0].metadata
        assert full["document_id"] == "d1"
        assert full["vector"][0] == 0.5
        assert full["vector"][-1] == "…"

    @pytest.mark.parametrize("level", ["ids", "short", "full"])
    @pytest.mark.parametrize(
        "fields",
        [
            {"text": "x" * 200},
            {"text": "x" * 201},
            {"text": "naïve \ud800"},
            {"text": "", "kind": "table"},
            {"text": np.str_("x")},
            {"kind": "\ud800"},
            {"score": math.inf},
            {"score": 0.5, "source": {"document_id": "d", "page": 3}},
            {"source": {"page": np.int64(3), "when": START}},
            {"source": {"text": "x" * 300, "ratio": math.nan}},
            {"source": {"origin": {"document_id": "d"}}},
            {"source": MappingProxyType({"a": 1})},
            {"metadata": {"document_id": "d", "other": 1}},
        ],
        ids=range(13),
    )
    def test_a_result_that_needs_nothing_is_kept_as_the_others_are(self, fields, level):
        """Metadata of a result lead it the long way, on which nothing is taken for granted."""
        values = {"text": "", "score": None, "kind": "chunk", "source": {}, "metadata": {}}
        plain = QueryResult.trusted(id="c", **values | fields)
        marked = plain.replaced(metadata={**plain.metadata, "document_ids": ["m"]})
        response = QueryResponse(mode="m").replaced(results=(plain, marked))
        short, long = trim_response(response, level).results
        assert long.metadata.pop("document_ids") == ["m"]
        assert short == long
        assert {name: type(value) for name, value in vars(short).items()} == {
            name: type(value) for name, value in vars(long).items()
        }

    def test_the_response_itself_is_unchanged(self):
        original = response()
        trim_response(original, "ids")
        assert original.results[0].text == LONG


class TestRecord:
    def test_a_success_is_recorded(self):
        outcome = QueryOutcome(response=response(), latency_ms=12.5)
        scores = [EvaluationScore(name="ndcg@10", value=0.5)]
        record = case_result(
            SAMPLE,
            CasePlan("q1", "why \ud800?", {"type": "hard", "tags": {2, 1}}),
            outcome,
            scores,
            level="ids",
            cold=True,
            metadata={"node_id": "n"},
        )
        assert record.case_id == "q1"
        assert record.query == "why \ufffd?"
        assert record.query_mode == "exact"
        assert record.scores == tuple(scores)
        assert record.latency_ms == 12.5
        assert record.response.results[0].text == ""
        assert record.metadata == {
            "unit_id": "u",
            "repeat": 2,
            "cold": True,
            "labels": {"type": "hard", "tags": [1, 2]},
            "distinct_documents": 2,
            "node_id": "n",
        }

    def test_a_failure_is_recorded(self):
        error = EvaluationError(message="no", error_type="query")
        record = case_result(SAMPLE, CasePlan("q1", "why?"), QueryOutcome(error=error), ())
        assert record.error == error
        assert record.response is None
        assert record.latency_ms is None
        assert "distinct_documents" not in record.metadata

    def test_a_sample_that_was_never_asked_is_scored_by_its_plan(self, fakes, tmp_path):
        metrics = [
            MetricSpec("hit@3", k=3),
            MetricSpec("hit@20", k=20),
            MetricSpec("mine"),
            MetricSpec("judged"),
        ]
        plan = fakes.plan(tmp_path, "q1", metrics=metrics)
        exempt = CasePlan("q1", "?", exempt={"mine": "skipped", "judged": "unjudged"})
        plan = dataclasses.replace(plan, cases={"q1": exempt})
        error = EvaluationError(message="no", error_type="build")
        record = failed_result(plan, next(plan.samples()), error, metadata={"node_id": "n"})
        assert record.error == error
        assert record.metadata["node_id"] == "n"
        told = [(score.name, score.status, score.metadata.get("reason")) for score in record.scores]
        assert told == [
            ("hit@3", "errored", None),
            ("hit@20", "skipped", "depth"),
            ("mine", "skipped", "not applicable"),
            ("judged", "unjudged", "no positive judgment"),
        ]
