"""How fast measures are computed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from pytest_heta.measures import MeasureSet, parse_measure

MEASURES = ("recall@5", "ndcg@10", "map@100", "mrr@10", "precision@5", "hit@1")


def test_six_measures_over_a_hundred_documents(benchmark: Callable[..., Any]) -> None:
    choice = random.Random(3)
    ranked = [f"d{number}" for number in choice.sample(range(1000), 100)]
    grades = {name: grade for grade, name in enumerate(choice.sample(ranked, 8), start=-1)}
    grades |= {f"d{number}": 1 for number in range(1000, 1004)}
    measures = MeasureSet(map(parse_measure, MEASURES))

    values = benchmark(measures.compute, ranked, grades)

    assert len(values) == len(MEASURES)
    assert all(0 <= value <= 1 for value in values)
