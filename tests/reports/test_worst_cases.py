"""The worst cases of each mode, with node ids to copy."""

import random

import pytest

from pytest_heta.models import EvaluationError, PagedResults, SampleTally
from pytest_heta.reports import WorstCase, worst_cases, worst_cases_lines

BOOM = EvaluationError(message="boom", error_type="query")


@pytest.fixture
def report_of(make_report, make_mode, make_metric):
    def report(results, metrics=None, modes=("fts",), **metadata):
        metrics = metrics or [make_metric("ndcg@10", 0.5)]
        return make_report(
            [make_mode(mode, metrics) for mode in modes],
            case_results=results,
            metadata={"label": "handbook", **metadata},
        )

    return report


@pytest.fixture
def scored(make_result, make_score):
    def result(case_id, value, name="ndcg@10", **rest):
        return make_result(case_id, make_score(name, value), **rest)

    return result


def ids(cases):
    return [case.case_id for case in cases]


def test_errors_come_first_then_the_lowest_values(report_of, scored, make_result, make_score):
    results = [
        scored("half", 0.5),
        scored("none", 0.0),
        scored("most", 0.9),
        make_result("failed", error=BOOM),
        make_result("lost", make_score(error={"type": "ValueError", "message": "bad"})),
        scored("half2", 0.5),
    ]
    cases = worst_cases(report_of(results))
    assert ids(cases) == ["failed", "lost", "none", "half", "half2"]
    assert [case.value for case in cases] == [None, None, 0.0, 0.5, 0.5]
    assert [case.error for case in cases[:3]] == [
        "[query-failed] case failed: boom",
        "[evaluator-failed] score ndcg@10: ValueError: bad",
        None,
    ]
    assert cases[2] == WorstCase(
        mode="fts",
        case_id="none",
        node_id="bench.py::handbook::all::fts[none]",
        query="What is none?",
        metric="ndcg@10",
        value=0.0,
        error=None,
    )


def test_lower_can_be_better(report_of, scored, make_metric):
    metrics = [make_metric("hallucination", 0.5, direction="lower", worst=1.0)]
    results = [scored(str(value), value, "hallucination") for value in (0.25, 0.0, 1.0, 0.5)]
    assert ids(worst_cases(report_of(results, metrics))) == ["1.0", "0.5", "0.25"]


def test_perfect_cases_are_not_the_worst(report_of, scored):
    assert worst_cases(report_of([scored("a", 1.0), scored("b", True)])) == []
    assert ids(worst_cases(report_of([scored("a", 1.0), scored("b", False)]))) == ["b"]


def test_one_is_not_perfect_where_values_are_not_bounded(report_of, scored):
    results = [scored("a", 1.0), scored("b", 7.5)]
    assert ids(worst_cases(report_of(results))) == ["a", "b"]


def test_cases_without_a_value_are_left_out(report_of, make_result, make_score):
    results = [
        make_result("unjudged", make_score(unjudged=True)),
        make_result("skipped", make_score(skipped=True, reason="depth")),
        make_result("other", make_score("recall@5", 0.0)),
        make_result("label", make_score(value="no")),
    ]
    assert worst_cases(report_of(results)) == []


def test_each_mode_has_its_own_in_the_order_of_the_modes(report_of, scored):
    results = [
        scored(f"{mode}{number}", number / 10, mode=mode)
        for number in range(9)
        for mode in ("vector", "fts", "unplanned")
    ]
    cases = worst_cases(report_of(results, modes=("fts", "vector")), per_mode=2)
    assert ids(cases) == ["fts0", "fts1", "vector0", "vector1", "unplanned0", "unplanned1"]
    assert len(worst_cases(report_of(results))) == 15


def test_the_metric_is_the_first_with_numbers(report_of, make_result, make_score, make_metric):
    metrics = [
        make_metric("verdict", None, value_counts={"yes": 2}),
        make_metric("recall@5", 0.5),
        make_metric("mrr@10", 0.5),
    ]
    results = [
        make_result("a", make_score("recall@5", 0.1), make_score("mrr@10", 0.9)),
        make_result("b", make_score("recall@5", 0.2), make_score("mrr@10", 0.8)),
    ]
    assert ids(worst_cases(report_of(results, metrics))) == ["a", "b"]
    assert ids(worst_cases(report_of(results, [metrics[0], *metrics[:0:-1]]))) == ["b", "a"]


def test_without_numbers_only_errors_are_shown(make_report, make_result):
    report = make_report(case_results=[make_result("a", error=BOOM), make_result("b")])
    (case,) = worst_cases(report)
    assert (case.case_id, case.metric) == ("a", None)
    assert worst_cases_lines(report)[0] == "fts"


def test_lines_have_the_whole_node_id_and_shortened_text(report_of, scored, make_result):
    long_id = "benchmarks/bench_handbook.py::handbook::all::fts[" + "x" * 60 + "]"
    results = [
        make_result("e", error=EvaluationError(message="no\x1b[2J\nroute", error_type="query")),
        scored("low", 0.1234, query="word " * 40, metadata={"node_id": long_id}),
        scored("new", 0.25, query="  ", metadata={}),
        scored("v", 0.5, mode="vector"),
    ]
    assert worst_cases_lines(report_of(results, modes=("fts", "vector")), 80) == [
        "fts by ndcg@10",
        "  ERROR   bench.py::handbook::all::fts[e]",
        "          What is e?",
        r"          [query-failed] case e: no\x1b[2J route",
        f"  0.1234  {long_id}",
        f"          {'word ' * 13}wo...",
        "  0.2500  new",
        "",
        "vector by ndcg@10",
        "  0.5000  bench.py::handbook::all::vector[v]",
        "          What is v?",
    ]


def test_no_worst_cases_are_no_lines(make_report):
    assert worst_cases_lines(make_report()) == []


def test_of_results_on_disk_only_the_worst_are_read(report_of, scored):
    results = [scored(f"q{number}", number % 7 / 10) for number in range(50)]
    read = []

    def text(index):
        read.append(index)
        return results[index].model_dump_json().encode()

    pages = PagedResults(list(map(SampleTally.of, results)), text)
    assert worst_cases(report_of(pages)) == worst_cases(report_of(tuple(results)))
    assert sorted(read) == [0, 7, 14, 21, 28]


@pytest.mark.parametrize("seed", range(20))
def test_the_worst_are_those_of_a_whole_sort(report_of, scored, make_result, seed):
    draw = random.Random(seed)
    largest = draw.choice([1, 3])
    results = [
        make_result(f"q{number}", error=BOOM)
        if draw.random() < 0.05
        else scored(f"q{number}", float(draw.randint(0, largest)))
        for number in range(20)
    ]
    values = [result.scores[0].value if result.error is None else -1.0 for result in results]
    places = sorted(range(20), key=lambda index: values[index])
    if max(values) <= 1:
        places = [index for index in places if values[index] != 1.0]
    expected = [f"q{index}" for index in places[:5]]
    assert ids(worst_cases(report_of(results))) == expected
