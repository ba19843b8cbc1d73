"""Properties of a JUnit file: plain strings in a fixed order."""

import xml.etree.ElementTree as ET
from xml.sax.saxutils import quoteattr

import pytest

from pytest_heta.models import EvaluationError
from pytest_heta.reports import case_properties, suite_properties


def test_the_aggregates_of_a_report(make_report, make_mode, make_metric, make_gate):
    report = make_report(
        [
            make_mode(
                "fts",
                [
                    make_metric("ndcg@10", 0.8123456789, errored=1, unjudged=2),
                    make_metric("map@100", None, skipped=62),
                ],
                failed=1,
            )
        ],
        gates=[
            make_gate(0.8123456789),
            make_gate(0.8123456789, origin="command line"),
            make_gate(None, status="undecided", n=0, threshold=0.9),
        ],
    )
    assert suite_properties([report]) == [
        ("handbook.fts.ndcg@10", "0.8123456789"),
        ("handbook.fts.ndcg@10.n", "62"),
        ("handbook.fts.ndcg@10.n_scored", "59"),
        ("handbook.fts.ndcg@10.n_errored", "1"),
        ("handbook.fts.ndcg@10.n_skipped", "0"),
        ("handbook.fts.ndcg@10.n_unjudged", "2"),
        ("handbook.fts.map@100.n", "62"),
        ("handbook.fts.map@100.n_scored", "0"),
        ("handbook.fts.map@100.n_errored", "0"),
        ("handbook.fts.map@100.n_skipped", "62"),
        ("handbook.fts.map@100.n_unjudged", "0"),
        ("handbook.fts.total_cases", "62"),
        ("handbook.fts.failed_cases", "1"),
        ("handbook.fts.failure_rate", str(1 / 62)),
        ("handbook.fts.scoring_errors", "0"),
        ("handbook.fts.p50_latency_ms", "1.234"),
        ("handbook.fts.p95_latency_ms", "12.345"),
        ("handbook.fts.n_latency", "61"),
        (
            "handbook.gate[handbook:fts.ndcg@10 >= 0.75]",
            "PASSED handbook: fts.ndcg@10 = 0.8123 >= 0.75 (n=62)",
        ),
        (
            "handbook.gate[handbook:fts.ndcg@10 >= 0.9]",
            "UNDECIDED handbook: fts.ndcg@10 >= 0.9 (n=0)",
        ),
    ]


def test_a_part_says_how_much_was_planned(make_report, make_mode, make_metric):
    metrics = [make_metric("ndcg@10", 1.0, n=12)]
    part = make_mode("fts", metrics, samples=12, planned_samples=62)
    properties = dict(suite_properties([make_report([part])]))
    assert properties["handbook.fts.total_cases"] == "12"
    assert properties["handbook.fts.planned_samples"] == "62"


def test_labels_are_counted(make_report, make_mode, make_metric):
    metric = make_metric("verdict", None, value_counts={"yes": 60, "no": 2})
    properties = dict(suite_properties([make_report([make_mode("fts", [metric])])]))
    assert properties["handbook.fts.verdict[yes]"] == "60"
    assert properties["handbook.fts.verdict[no]"] == "2"
    assert "handbook.fts.verdict" not in properties


def test_each_report_has_its_label(make_report, make_mode):
    reports = [
        make_report([make_mode("fts", [], samples=0)], label=label)
        for label in ("handbook@local", "handbook@mine")
    ]
    reports.append(make_report([make_mode("fts", [])], metadata={}))
    names = [name for name, _ in suite_properties(reports)]
    assert len(names) == len(set(names))
    assert "handbook@local.fts.total_cases" in names
    assert "handbook@local.fts.failure_rate" not in names
    assert "handbook.fts.failure_rate" in names


def test_the_scores_of_a_sample(make_result, make_score):
    result = make_result(
        "q",
        make_score("ndcg@10", 0.625),
        make_score("answer_contains", True, True),
        make_score("answer_exact_match", False, False),
        make_score("verdict", "yes"),
        make_score("map@100", skipped=True, reason="depth"),
        make_score("mrr@10", unjudged=True, reason="no positive judgment"),
        make_score("judge", error={"type": "ValueError", "message": "x" * 500}),
        latency_ms=1.23456,
    )
    assert case_properties(result) == [
        ("ndcg@10", "0.625"),
        ("answer_contains", "1"),
        ("answer_exact_match", "0"),
        ("verdict", "yes"),
        ("map@100.reason", "depth"),
        ("mrr@10.reason", "no positive judgment"),
        ("judge.reason", f"[evaluator-failed] ValueError: {'x' * 166}..."),
        ("latency_ms", "1.235"),
    ]


def test_a_failed_sample_names_the_kind_of_error(make_result):
    error = EvaluationError(message="no", error_type="query")
    assert case_properties(make_result("q", error=error)) == [("error_type", "query")]


@pytest.mark.parametrize("name", ["a\x00b", "\x1b[2J", "\ufffe", "\ud800", '"><b>'])
def test_properties_survive_a_strict_xml_parser(
    make_report, make_mode, make_metric, make_result, make_score, name
):
    metric = make_metric(name, None, value_counts={name: 1})
    report = make_report([make_mode(name, [metric])], label=name)
    properties = suite_properties([report]) + case_properties(
        make_result("q", make_score(name, name))
    )
    for key, value in properties:
        element = ET.fromstring(f"<p name={quoteattr(key)} value={quoteattr(value)}/>".encode())
        assert (element.get("name"), element.get("value")) == (key, value)
