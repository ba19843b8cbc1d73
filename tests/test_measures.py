"""Measures: agreement with trec_eval, with hand-made values, and their names."""

import itertools
import math
import random
import re

import pytest
import pytrec_eval
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_heta.errors import ConfigurationError, MeasureUnknownError
from pytest_heta.measures import (
    Measure,
    MeasureSet,
    likely_measure,
    measure_families,
    parse_measure,
)

KS = (1, 2, 3, 5, 10, 100)
DOCUMENTS = [f"d{number}" for number in range(40)]


def compute(text, ranked, grades):
    return MeasureSet([parse_measure(text)]).compute(ranked, grades)[0]


# --- against trec_eval ---------------------------------------------------------

# trec_eval has no cut-off for the reciprocal rank; below k it counts as 0.
TREC_NAMES = {
    "ndcg": "ndcg_cut_{}",
    "map": "map_cut_{}",
    "recall": "recall_{}",
    "precision": "P_{}",
    "hit": "success_{}",
    "mrr": "recip_rank",
}
TREC_MEASURES = {
    f"{name}.{','.join(map(str, KS))}" for name in ("ndcg_cut", "map_cut", "recall", "P", "success")
} | {"recip_rank"}


def trec_eval(rankings, judgments):
    """Return {query: {measure: value}} by trec_eval, for rankings in their own order."""
    run = {
        # Scores that fall with the rank: trec_eval itself would order ties by id.
        query: {document: float(len(ranked) - rank) for rank, document in enumerate(ranked)}
        for query, ranked in rankings.items()
    }
    evaluated = pytrec_eval.RelevanceEvaluator(judgments, TREC_MEASURES).evaluate(run)
    expected = {}
    for query, values in evaluated.items():
        expected[query] = {
            f"{family}@{k}": values[trec_name.format(k)]
            for (family, trec_name), k in itertools.product(TREC_NAMES.items(), KS)
        }
        for k in KS:
            if values["recip_rank"] < 1 / k - 1e-9:
                expected[query][f"mrr@{k}"] = 0.0
    return expected


def assert_agrees(rankings, judgments):
    expected = trec_eval(rankings, judgments)
    assert set(expected) == set(rankings)
    names = [f"{family}@{k}" for family, k in itertools.product(TREC_NAMES, KS)]
    measures = MeasureSet(map(parse_measure, names))
    for query, ranked in rankings.items():
        values = dict(zip(names, measures.compute(ranked, judgments[query]), strict=True))
        assert values == pytest.approx(expected[query], rel=0, abs=1e-12), query


# Below -1 trec_eval's grades have other meanings, and if all are it crashes: such grades
# are compared with the formulas, further down.
whole_grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 5), min_size=1)
rankings = st.lists(st.sampled_from(DOCUMENTS), unique=True, min_size=1)


@settings(deadline=None, max_examples=300)
@given(ranked=rankings, grades=whole_grades)
def test_agrees_with_trec_eval(ranked, grades):
    assert_agrees({"q": ranked}, {"q": grades})


def test_agrees_with_trec_eval_on_deep_rankings():
    rng = random.Random(20)
    rankings, judgments = {}, {}
    for query in map(str, range(500)):
        pool = [f"d{number}" for number in rng.sample(range(5000), rng.randint(1, 300))]
        judgments[query] = {
            document: rng.choice((-1, 0, 0, 1, 1, 2, 3, 50))
            for document in rng.sample(pool, rng.randint(1, len(pool)))
        }
        rankings[query] = rng.sample(pool, rng.randint(1, len(pool)))
    assert_agrees(rankings, judgments)


# Tied scores are the oracle's matter: here the order is given, whatever the ids.
@pytest.mark.parametrize("ranked", [*itertools.permutations(["x", "y", "gold"])])
def test_agrees_with_trec_eval_in_every_order_of_ties(ranked):
    assert_agrees({"q": list(ranked)}, {"q": {"gold": 1, "y": 2}})


@pytest.mark.parametrize(
    ("ranked", "grades"),
    [
        pytest.param(["a"], {"a": 1}, id="k deeper than the corpus"),
        pytest.param(["a", "b"], {"a": -1, "b": 1}, id="negative grade on top"),
        pytest.param(["a", "b"], {"a": 0, "b": -1}, id="nothing relevant"),
        pytest.param(["a", "b"], {"c": 2, "d": 1}, id="nothing found"),
        pytest.param([f"d{i}" for i in range(10)], {f"d{i}": 1 for i in range(20)}, id="R above k"),
        pytest.param(
            [f"x{i}" for i in range(2999)] + ["gold"], {"gold": 1, "ghost": 3}, id="3000 deep"
        ),
    ],
)
def test_agrees_with_trec_eval_at_the_edges(ranked, grades):
    assert_agrees({"q": ranked}, {"q": grades})


# --- against a slow and direct reading of the formulas ----------------------------


def reference(family, k, ranked, grades):
    """Return a measure computed rank by rank; grades may have fractions."""
    positive = {document: max(0.0, grade) for document, grade in grades.items()}
    total = sum(grade > 0 for grade in positive.values())
    if not total:
        return 0.0
    relevant = [positive.get(document, 0.0) > 0 for document in ranked]
    if family in {"ndcg", "ndcg_exp"}:

        def gain(grade):
            return grade if family == "ndcg" else 2.0**grade - 1

        def dcg(of_grades):
            return math.fsum(
                gain(grade) / math.log2(rank + 1) for rank, grade in enumerate(of_grades[:k], 1)
            )

        best = dcg(sorted(positive.values(), reverse=True))
        return dcg([positive.get(document, 0.0) for document in ranked]) / best
    if family == "map":
        return (
            math.fsum(
                sum(relevant[:rank]) / rank
                for rank in range(1, min(k, len(ranked)) + 1)
                if relevant[rank - 1]
            )
            / total
        )
    if family == "mrr":
        return max((1 / rank for rank, hit in enumerate(relevant[:k], 1) if hit), default=0.0)
    found = sum(relevant[:k])
    return {"recall": found / total, "precision": found / k, "hit": float(found > 0)}[family]


grades_with_fractions = st.dictionaries(
    st.sampled_from(DOCUMENTS),
    st.integers(-2, 6) | st.floats(0.001, 10.0),
)


@settings(deadline=None)
@given(
    ranked=st.lists(st.sampled_from(DOCUMENTS), unique=True),
    grades=grades_with_fractions,
    k=st.integers(1, 60),
)
def test_agrees_with_the_formulas(ranked, grades, k):
    measures = [Measure(family, k) for family in measure_families()]
    expected = [reference(measure.family, k, ranked, grades) for measure in measures]
    assert MeasureSet(measures).compute(ranked, grades) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "ranked", "grades", "value"),
    [
        ("ndcg@10", ["a", "b"], {"a": 0.5, "b": 1.5}, 0.7967),
        ("ndcg@10", ["a", "b"], {"a": 1, "b": 3}, 0.7967),
        ("ndcg@1", ["a", "b"], {"a": 1, "b": 3}, 0.3333),
        ("ndcg_exp@10", ["a", "b"], {"a": 1, "b": 3}, 0.7098),
        ("map@10", ["x", "a", "b"], {"a": 1, "b": 1, "c": 1}, (1 / 2 + 2 / 3) / 3),
        ("map@2", ["x", "a", "b"], {"a": 1, "b": 1, "c": 1}, 1 / 2 / 3),
        ("recall@2", ["x", "a", "b"], {"a": 1, "b": 1}, 0.5),
        ("precision@10", ["a", "b"], {"a": 1, "b": 2}, 0.2),
        ("mrr@3", ["x", "y", "a"], {"a": 1}, 1 / 3),
        ("mrr@2", ["x", "y", "a"], {"a": 1}, 0.0),
        ("hit@3", ["x", "y", "a"], {"a": 1}, 1.0),
        ("hit@2", ["x", "y", "a"], {"a": 1}, 0.0),
    ],
)
def test_values_by_hand(text, ranked, grades, value):
    assert compute(text, ranked, grades) == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize("rank", [1, 1023, 1024, 1025, 3000])
def test_depths_have_no_limit(rank):
    ranked = [f"x{number}" for number in range(rank - 1)] + ["a"]
    judged = {f"b{number}": 1 for number in range(2999)} | {"a": 1}
    for family in measure_families():
        measure = Measure(family, 3000)
        assert MeasureSet([measure]).compute(ranked, judged) == pytest.approx(
            [reference(family, 3000, ranked, judged)], abs=1e-12
        )
        assert compute(f"{family}@999999999", ranked, {"a": 1}) > 0.0


def test_average_precision_divides_by_all_relevant_documents():
    ranked = [f"d{number}" for number in range(10)]
    grades = {f"d{number}": 1 for number in range(20)}
    assert compute("map@10", ranked, grades) == pytest.approx(0.5)


@pytest.mark.parametrize("family", measure_families())
def test_an_empty_ranking_and_an_empty_judgment_are_zero(family):
    assert compute(f"{family}@10", [], {"a": 1}) == 0.0
    assert compute(f"{family}@10", ["a"], {}) == 0.0
    assert compute(f"{family}@10", ["a"], {"a": 0, "b": -1}) == 0.0


def test_no_measures_have_no_values():
    assert MeasureSet([]).compute(["a"], {"a": 1}) == []


def test_exponential_gain_neither_overflows_nor_loses_small_grades():
    assert compute("ndcg_exp@10", ["b", "a"], {"a": 5000, "b": 5000}) == pytest.approx(1.0)
    assert compute("ndcg_exp@10", ["b", "a"], {"a": 5000, "b": 4000}) == pytest.approx(
        0.6309, abs=1e-4
    )
    # For grades near 0 the gain is all but linear.
    small = {"a": 1e-12, "b": 3e-12}
    assert compute("ndcg_exp@10", ["a", "b"], small) == pytest.approx(0.7967, abs=1e-4)


# --- properties ----------------------------------------------------------------


@settings(deadline=None)
@given(
    ranked=st.lists(st.sampled_from(DOCUMENTS), unique=True),
    grades=grades_with_fractions,
    k=st.integers(1, 60),
)
def test_every_value_lies_between_0_and_1(ranked, grades, k):
    values = MeasureSet(Measure(family, k) for family in measure_families()).compute(ranked, grades)
    assert all(0.0 <= value <= 1.0 for value in values)
    assert all(type(value) is float for value in values)


def test_rounding_makes_no_order_better_than_the_best():
    high, low = 0.932289285779147, 0.9322892857791468
    grades = dict(zip("abcdef", [high, high, low, high, (high + low) / 2, low], strict=True))
    for ranked in itertools.permutations("abcdef"):
        assert compute("ndcg@10", ranked, grades) <= 1.0


@settings(deadline=None)
@given(ranked=rankings, grades=grades_with_fractions)
@pytest.mark.parametrize("family", ["hit", "recall", "map", "mrr"])
def test_looking_deeper_finds_no_less(family, ranked, grades):
    measures = MeasureSet(Measure(family, k) for k in range(1, 50))
    values = measures.compute(ranked, grades)
    assert values == sorted(values)


@settings(deadline=None)
@given(
    grades=st.dictionaries(
        st.sampled_from(DOCUMENTS), st.floats(0.001, 10.0) | st.integers(1, 5), min_size=1
    ),
    k=st.integers(1, 60),
)
def test_a_perfect_ranking_scores_1(grades, k):
    ranked = sorted(grades, key=grades.__getitem__, reverse=True)
    total = len(grades)
    expected = {
        "ndcg": 1.0,
        "ndcg_exp": 1.0,
        "mrr": 1.0,
        "hit": 1.0,
        "map": min(k, total) / total,
        "recall": min(k, total) / total,
        "precision": min(k, total) / k,
    }
    for family in measure_families():
        assert compute(f"{family}@{k}", ranked, grades) == pytest.approx(expected[family]), family


@settings(deadline=None)
@given(
    ranked=rankings,
    grades=grades_with_fractions,
    k=st.integers(1, 60),
    names=st.permutations(DOCUMENTS),
)
def test_the_names_of_documents_do_not_matter(ranked, grades, k, names):
    renamed = dict(zip(DOCUMENTS, names, strict=True))
    measures = MeasureSet(Measure(family, k) for family in measure_families())
    assert measures.compute(ranked, grades) == measures.compute(
        [renamed[document] for document in ranked],
        {renamed[document]: grade for document, grade in grades.items()},
    )


@settings(deadline=None)
@given(ranked=rankings, grades=grades_with_fractions)
def test_one_pass_equals_one_by_one(ranked, grades):
    measures = [Measure(family, k) for family in measure_families() for k in (1, 3, 10, 100)]
    one_by_one = [MeasureSet([measure]).compute(ranked, grades)[0] for measure in measures]
    assert MeasureSet(measures).compute(ranked, grades) == one_by_one


def test_computing_changes_neither_ranking_nor_grades():
    ranked, grades = ["a", "b", "c"], {"b": 2, "c": -1}
    MeasureSet([Measure("ndcg", 2)]).compute(ranked, grades)
    assert (ranked, grades) == (["a", "b", "c"], {"b": 2, "c": -1})


# --- names -----------------------------------------------------------------------


@settings(deadline=None)
@given(family=st.sampled_from(measure_families()), k=st.integers(1, 999_999_999))
def test_a_name_stands_for_its_measure(family, k):
    measure = parse_measure(f"{family}@{k}")
    assert measure == Measure(family, k)
    assert parse_measure(measure.name) == measure


def test_the_families():
    assert measure_families() == ("ndcg", "map", "recall", "precision", "mrr", "hit", "ndcg_exp")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("recal@5", "recall@5"),
        ("NDCG@10", "ndcg@10"),
        ("nDCG@10", "ndcg@10"),
        ("recall@ 5", "recall@5"),
        (" recall@5", "recall@5"),
        ("recall@5\n", "recall@5"),
        ("recall@05", "recall@5"),
        ("recall@５", "recall@5"),
        ("recall@²", "recall@2"),
        ("p@10", "precision@10"),
        ("P_10", "precision@10"),
        ("rr@10", "mrr@10"),
        ("mmr@10", "mrr@10"),
        ("ap@100", "map@100"),
        ("recip_rank@5", "mrr@5"),
        ("success@1", "hit@1"),
        ("ndcg_cut_10", "ndcg@10"),
        ("map_cut.100", "map@100"),
        ("recall5", "recall@5"),
        ("ndcg-exp@5", "ndcg_exp@5"),
    ],
)
def test_a_wrong_name_gets_a_suggestion(text, meant):
    with pytest.raises(
        MeasureUnknownError, match=r"^\[measure-unknown\] measure .* is unknown; "
    ) as raised:
        parse_measure(text)
    assert raised.value.hint.startswith(f"did you mean {meant!r}? Known: ndcg@k, map@k")


@pytest.mark.parametrize("text", ["ndcg", "ndcg@", "NDCG", "ndgc"])
def test_a_missing_k_is_named(text):
    with pytest.raises(MeasureUnknownError, match="does not say how deep") as raised:
        parse_measure(text)
    assert raised.value.hint == "write ndcg@k, such as 'ndcg@10'"


@pytest.mark.parametrize(
    "k", ["0", "-1", "1.5", "ten", "1e3", "5>=0.8", "1000000000", "5_0", "9" * 5000]
)
def test_a_wrong_k_is_named(k):
    with pytest.raises(MeasureUnknownError, match="a whole number from 1 to 999999999") as raised:
        parse_measure(f"ndcg@{k}")
    assert raised.value.hint == "write ndcg@k, such as 'ndcg@10'"
    assert len(str(raised.value)) < 250


@pytest.mark.parametrize("text", ["", "@", "@5", "5", "foo@5", "f1@3", "什么@5", None, 5])
def test_what_resembles_no_measure_gets_the_list(text):
    with pytest.raises(MeasureUnknownError, match="is unknown") as raised:
        parse_measure(text)
    assert raised.value.hint == (
        "known: ndcg@k, map@k, recall@k, precision@k, mrr@k, hit@k, ndcg_exp@k"
    )


@settings(deadline=None)
@given(text=st.text() | st.from_regex(r"[a-z_@0-9 ]*"))
def test_every_other_text_is_refused_in_one_line(text):
    assume(not re.fullmatch(r"[a-z_]+@[1-9][0-9]{0,8}", text))
    with pytest.raises(MeasureUnknownError) as raised:
        parse_measure(text)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(("family", "k"), [("recal", 5), ("recall", 0), ("recall", 2.5)])
def test_a_measure_is_checked_however_it_is_made(family, k):
    with pytest.raises(ConfigurationError):
        Measure(family, k)


@pytest.mark.parametrize(
    ("text", "likely"),
    [("recal@5", "recall@5"), ("P_10", "precision@10"), ("ndcg", None), ("zzz@5", None)],
)
def test_the_measure_that_was_probably_meant(text, likely):
    assert likely_measure(text) == likely
