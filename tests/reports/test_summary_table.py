"""The table of a report, as a person reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.models import (
    EvaluationError,
    LatencySummary,
    MetricSummary,
    ModeSummary,
    UnitBuild,
)
from pytest_heta.reports import summary_table
from pytest_heta.reports._layout import display_width


def text_of(report, width=80, **options):
    return "\n".join(summary_table(report, width, **options)) + "\n"


@pytest.fixture
def usual(make_report, make_mode, make_metric):
    """Three modes; judged metrics, one deeper than asked, one about answers."""

    def mode(name, shift, failed=0):
        judged = {"unjudged": 2, "errored": failed}
        reasons = {"no positive judgment": 2}
        return make_mode(
            name,
            [
                make_metric("ndcg@10", 0.8123 + shift, reasons=reasons, **judged),
                make_metric(
                    "recall@10", 0.9032 + shift, reasons=reasons, distinct_documents=6.42, **judged
                ),
                make_metric("map@100", None, skipped=62, reasons={"depth": 62}),
                make_metric("answer_contains", 0.7 + shift, errored=failed),
            ],
            failed=failed,
        )

    return make_report(
        [mode("full_text_search", 0), mode("vector_search", -0.1, failed=3), mode("hybrid", 0.05)],
        unit_builds=[UnitBuild(unit_id="all", build_seconds=1.3)],
    )


def test_eighty_columns(usual):
    assert (
        text_of(usual)
        == """\
handbook: 62 cases, 3 modes, 1 knowledge base built in 1.30 s

mode              ndcg@10  recall@10  scored  errored  unjudged
---------------------------------------------------------------
full_text_search   0.8123     0.9032      60        0         2
vector_search      0.7123     0.8032      57        3         2
hybrid             0.8623     0.9532      60        0         2

mode              map@100  scored  skipped | answer_contains  scored  errored
-----------------------------------------------------------------------------
full_text_search        -       0       62 |          0.7000      62        0
vector_search           -       0       62 |          0.6000      59        3
hybrid                  -       0       62 |          0.7500      62        0

mode              failed  samples | p50 ms  p95 ms  timed
---------------------------------------------------------
full_text_search       0       62 |   1.23    12.3     62
vector_search          3       62 |   1.23    12.3     59
hybrid                 0       62 |   1.23    12.3     62

without a value: ndcg@10, recall@10: no positive judgment (2)
without a value: map@100: depth (62)
distinct documents: 6.4 on average, for recall@10
"""
    )


def test_one_hundred_and_twenty_columns(usual):
    assert text_of(usual, 120).split("\n\n")[1:3] == [
        """\
mode              ndcg@10  recall@10  scored  errored  unjudged | map@100  scored  skipped
------------------------------------------------------------------------------------------
full_text_search   0.8123     0.9032      60        0         2 |       -       0       62
vector_search      0.7123     0.8032      57        3         2 |       -       0       62
hybrid             0.8623     0.9532      60        0         2 |       -       0       62""",
        """\
mode              answer_contains  scored  errored | failed  samples | p50 ms  p95 ms  timed
--------------------------------------------------------------------------------------------
full_text_search           0.7000      62        0 |      0       62 |   1.23    12.3     62
vector_search              0.6000      59        3 |      3       62 |   1.23    12.3     59
hybrid                     0.7500      62        0 |      0       62 |   1.23    12.3     62""",
    ]


def test_one_block_is_enough_for_a_few_metrics(make_report, make_mode, make_metric):
    metrics = [make_metric("ndcg@10", 0.98), make_metric("mrr@10", 1.0)]
    assert (
        text_of(make_report([make_mode("fts", metrics)]))
        == """\
handbook: 62 cases, 1 mode

mode  ndcg@10  mrr@10  scored | failed  samples | p50 ms  p95 ms  timed
-----------------------------------------------------------------------
fts    0.9800  1.0000      62 |      0       62 |   1.23    12.3     62
"""
    )


def test_wide_names_are_aligned_and_hostile_ones_inert(make_report, make_mode, make_metric):
    modes = [
        make_mode("全文检索", [make_metric("准确率@10", 0.5)]),
        make_mode("fts\x1b[2J", [make_metric("准确率@10", 0.25)]),
    ]
    assert (
        text_of(make_report(modes, label="手册"))
        == r"""手册: 62 cases, 2 modes

mode        准确率@10  scored | failed  samples | p50 ms  p95 ms  timed
-----------------------------------------------------------------------
全文检索       0.5000      62 |      0       62 |   1.23    12.3     62
fts\x1b[2J     0.2500      62 |      0       62 |   1.23    12.3     62
"""
    )


def test_no_cases(make_report, make_mode, make_metric):
    assert text_of(make_report([make_mode("fts", [make_metric("ndcg@10", None, n=0)], 0)])) == (
        "handbook: 0 cases, 1 mode\n"
    )
    assert text_of(make_report()) == "handbook: 0 cases, 0 modes\n"


def test_everything_errored(make_report, make_mode, make_metric):
    mode = make_mode(
        "fts", [make_metric("ndcg@10", 0.0, errored=62, reasons={"execution_error": 62})], failed=62
    )
    build = UnitBuild(unit_id="all", error=EvaluationError(message="no", error_type="build"))
    assert (
        text_of(make_report([mode], unit_builds=[build]))
        == """\
handbook: 62 cases, 1 mode, 0 of 1 knowledge base built

mode  ndcg@10  scored  errored | failed  samples | p50 ms  p95 ms  timed
------------------------------------------------------------------------
fts    0.0000       0       62 |     62       62 |      -       -      0

without a value: ndcg@10: execution_error (62)
"""
    )


def test_labels_have_a_column_each(make_report, make_mode, make_metric):
    metrics = [make_metric("verdict", None, errored=1, value_counts={"no": 20, "yes": 41})]
    assert (
        text_of(make_report([make_mode("fts", metrics), make_mode("vector", [])]))
        == """\
handbook: 62 cases, 2 modes

mode    verdict=yes  verdict=no  scored  errored | failed  samples
------------------------------------------------------------------
fts              41          20      61        1 |      0       62
vector            -           -       -        - |      0       62

mode    p50 ms  p95 ms  timed
-----------------------------
fts       1.23    12.3     62
vector    1.23    12.3     62
"""
    )


def test_many_labels_share_a_column_that_says_so(make_report, make_mode, make_metric):
    counts = {f"label{number:02}": number for number in range(1, 12)} | {"x" * 100: 50}
    text = text_of(make_report([make_mode("fts", [make_metric("v", None, value_counts=counts)])]))
    assert f"v={'x' * 27}... " in text
    assert "v=label05" in text
    assert "v=label04" not in text
    header = next(line for line in text.splitlines() if "v: 4 others" in line)
    row = text.splitlines()[text.splitlines().index(header) + 2]
    assert row[: header.index("others") + 6].split()[-1] == str(1 + 2 + 3 + 4)


def test_verdicts_are_shown_where_they_differ_from_the_values(make_report, make_mode, make_metric):
    metrics = [
        make_metric("answer_contains", 0.5, n_passed=31),
        make_metric("recall@5", 0.5, n_passed=12),
    ]
    text = text_of(make_report([make_mode("fts", metrics)]), 120)
    assert "answer_contains  recall@5  recall@5 passed  scored" in text
    assert "0.5000    0.5000               12      62" in text
    modes = [make_mode("fts", metrics), make_mode("vector", [make_metric("recall@5", 0.5)])]
    row = summary_table(make_report(modes), 120)[-1]
    assert row.split() == [
        "vector",
        "-",
        "-",
        "|",
        "0.5000",
        "-",
        "62",
        "|",
        "0",
        "62",
        "|",
        "1.23",
        "12.3",
        "62",
    ]


def test_units_that_were_built(make_report, make_mode, make_metric):
    builds = [
        UnitBuild(unit_id="a", build_seconds=1.25),
        UnitBuild(unit_id="b", build_seconds=2.5),
        UnitBuild(unit_id="c", error=EvaluationError(message="no", error_type="build")),
        UnitBuild(unit_id="d"),
    ]
    report = make_report([make_mode("fts", [])], unit_builds=builds)
    assert summary_table(report, 100)[0] == (
        "handbook: 62 cases, 1 mode, 3 of 4 knowledge bases built in 3.75 s (longest 2.50 s: b)"
    )
    assert all(len(line) <= 60 for line in summary_table(report, 60))


def test_what_was_loaded_is_told_from_what_was_built(make_report):
    reused = [
        UnitBuild(unit_id="a", build_seconds=2.0, reused=True, load_seconds=0.1),
        UnitBuild(unit_id="b", build_seconds=3.0, reused=True, load_seconds=0.15),
    ]
    built = [UnitBuild(unit_id="c", build_seconds=4.0)]
    failed = [UnitBuild(unit_id="d", error=EvaluationError(message="no", error_type="build"))]

    def said(builds):
        return summary_table(make_report(unit_builds=builds), 200)[0].partition("modes, ")[2]

    loaded = "loaded from the cache in 250 ms (first built in 5.00 s)"
    assert said(reused) == f"2 knowledge bases {loaded}"
    assert said([*reused, *built]) == f"1 of 3 knowledge bases built in 4.00 s, 2 {loaded}"
    assert said([*reused, *failed]) == f"0 of 3 knowledge bases built, 2 {loaded}"


def test_short_builds_are_in_milliseconds(make_report):
    report = make_report(unit_builds=[UnitBuild(unit_id="a", build_seconds=0.00432)])
    assert summary_table(report, 100)[0].endswith("1 knowledge base built in 4.32 ms")


def test_what_did_not_run_is_said(make_report, make_mode):
    mode = make_mode("fts", [], samples=12, planned_samples=62, distinct_cases=12)
    metadata = {"label": "handbook@local", "dataset_cases": 225, "complete": False}
    lines = summary_table(make_report([mode], metadata=metadata), 80)
    assert lines[0] == "handbook@local: 12 of 225 cases, 1 mode, INCOMPLETE"
    assert "12 of 62" in lines[-1]


def test_modes_stand_in_the_order_they_were_asked(make_report, make_mode):
    modes = [make_mode("b", []), make_mode("a", []), make_mode("extra", [])]
    lines = summary_table(make_report(modes, query_modes=("a", "missing", "b")), 80)
    assert [line.split()[0] for line in lines[4:]] == ["a", "b", "extra"]


def test_notes_name_the_modes_they_hold_for(make_report, make_mode, make_metric):
    modes = [
        make_mode("a", [make_metric("m", 0.5, errored=1, reasons={"ValueError": 1})]),
        make_mode("b", [make_metric("m", 0.5)]),
    ]
    assert "without a value: m: ValueError (1) [a]" in summary_table(make_report(modes), 80)


@pytest.mark.parametrize(
    ("mean", "shown"),
    [
        (None, "-"),
        (0.0, "0.0000"),
        (0.99995, "1.0000"),
        (1e-6, "1.0e-06"),
        (-0.5, "-0.5000"),
        (1234.56789, "1234.5679"),
        (123456789.0, "1.23457e+08"),
        (float("inf"), "inf"),
    ],
)
def test_means_have_four_digits(make_report, make_mode, make_metric, mean, shown):
    lines = summary_table(make_report([make_mode("fts", [make_metric("m", mean)])]), 80)
    assert lines[4].split()[1] == shown


@pytest.mark.parametrize(
    ("latency", "shown"),
    [
        (0.0123, "0.01"),
        (9.99, "9.99"),
        (9.996, "10.0"),
        (99.96, "100"),
        (1234.5, "1234"),
        (float("inf"), "inf"),
    ],
)
def test_latencies_have_three_digits_that_count(make_report, make_mode, latency, shown):
    lines = summary_table(make_report([make_mode("fts", [], p50=latency)]), 80)
    assert lines[4].split("|")[1].split()[0] == shown


def test_changes_since_a_baseline_stand_beside_the_means(make_report, make_mode, make_metric):
    metrics = [make_metric("ndcg@10", 0.8123), make_metric("m", None), make_metric("new@5", 0.5)]
    baseline = make_report(score_summary={"fts.ndcg@10": 0.8})
    lines = summary_table(make_report([make_mode("fts", metrics)]), 120, baseline=baseline)
    assert "0.8123 (+0.0123)" in lines[4]
    assert "0.5000 (new)" in lines[4]
    assert "  -  " in lines[4]
    assert lines[-1] == "in parentheses: the change since 2026-01-02 03:04"


METRIC = st.builds(
    MetricSummary,
    metric=st.sampled_from(["ndcg@10", "recall@100", "verdict", "answer_exact_match", "准"]),
    mean=st.none() | st.floats(0, 1),
    n_scored=st.integers(0, 99999),
    n_errored=st.integers(0, 3),
    n_skipped=st.integers(0, 3),
    n_unjudged=st.integers(0, 3),
    n_passed=st.none() | st.integers(0, 9),
    value_counts=st.none() | st.dictionaries(st.sampled_from(["yes", "no"]), st.integers(0, 9)),
)
MODE = st.builds(
    lambda name, metrics: ModeSummary(
        mode=name,
        total_cases=5,
        metrics={metric.metric: metric for metric in metrics},
        latency=LatencySummary(),
    ),
    st.sampled_from(["full_text_search", "vector_search", "模式"]),
    st.lists(METRIC, max_size=5),
)


@given(st.lists(MODE, min_size=1, max_size=3), st.integers(80, 200))
def test_every_line_fits_and_every_metric_is_there(make_report, modes, width):
    report = make_report(modes)
    lines = summary_table(report, width)
    assert all(display_width(line) <= width for line in lines)
    headers = " ".join(line for line in lines if line.startswith("mode "))
    for mode in report.mode_summaries.values():
        for name in mode.metrics:
            labels = mode.metrics[name].value_counts
            assert labels == {} or name in headers
            assert all(f"{name}={label}" in headers for label in labels or ())


@pytest.mark.parametrize("width", [0, 1, 20, 40])
def test_a_terminal_that_is_too_narrow_loses_nothing(usual, width):
    narrow = "".join("".join(summary_table(usual, width)).split())
    for part in ("ndcg@10", "0.8123", "answer_contains", "0.7500", "12.3", "nopositivejudgment(2)"):
        assert part in narrow
