"""``--heta-show``: cases in full, after the run."""

from itertools import pairwise

import pytest


@pytest.fixture(autouse=True)
def evaluators(world):
    world.suite(evaluators='["recall@1"]')


def shown(result):
    """Return the node ids of the cases that are shown."""
    return [line for line in section(result) if line.startswith("bench_toys.py::")]


def section(result):
    titles = [i for i, line in enumerate(result.outlines) if line.startswith("===")]
    for start, end in pairwise(titles):
        if "heta cases" in result.outlines[start]:
            return [line for line in result.outlines[start + 1 : end] if line]
    return []


def node_id(mode, case):
    return f"bench_toys.py::toys::corpus::{mode}[{case}]"


BACKWARDS = [node_id("backwards", case) for case in ("pie", "repair", "rain")]


def test_no_case_is_shown_by_default(world):
    assert section(world.run()) == []


def test_misses_are_shown(world):
    assert shown(world.run("--heta-show=misses")) == BACKWARDS


def test_much_verbosity_shows_the_misses(world):
    assert shown(world.run("-vv")) == BACKWARDS
    assert section(world.run("-v")) == []


def test_the_option_wins_over_verbosity(world):
    assert shown(world.run("-vv", "--heta-show=pie")) == [
        node_id("overlap", "pie"),
        node_id("backwards", "pie"),
    ]


def test_all_cases_are_shown_in_order(world):
    assert shown(world.run("--heta-show=all")) == [
        node_id(mode, case)
        for mode in ("overlap", "backwards")
        for case in ("pie", "repair", "rain")
    ]


def test_a_case_is_shown_with_query_expectation_results_and_scores(world):
    world.dataset(
        [
            {
                "case_id": "pie",
                "query": "apple pie",
                "evidence": ["apple", "ghost"],
                "answers": ["cinnamon"],
            }
        ]
    )
    lines = section(world.run("--heta-show=pie", "--heta-mode=backwards"))
    assert lines[:4] == [
        node_id("backwards", "pie"),
        "  query      apple pie",
        '  expected   answers: "cinnamon"',
        "             evidence: apple, ghost",
    ]
    assert lines[4] == "  retrieved  4 results, 1 of them expected (*)"
    assert lines[5].split() == ["rank", "id", "document", "score", "text"]
    assert lines[6].split()[:4] == [
        "1", "raw/benchmarks/toys/test/drum/drum.txt#0", "drum", "1.0000"
    ]  # fmt: skip
    assert any(line.split()[:2] == ["4", "*"] for line in lines)
    assert any("drum tuning for beginners" in line for line in lines)
    assert "  scores     recall@1 = 0.0000" in lines
    assert any(line.startswith("  latency") and line.endswith(" ms") for line in lines)


def test_a_failed_case_is_a_miss_and_shows_its_error(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            if text == "apple pie":
                raise RuntimeError("down")
            return super().query(text, mode=mode, top_k=top_k)
    """)
    lines = section(world.run("--heta-show=misses", "--heta-mode=overlap"))
    assert lines[0] == node_id("overlap", "pie")
    assert any(
        "[query-failed] recipe.py:" in line and "RuntimeError: down" in line for line in lines
    )


def test_a_failed_build_shows_its_error(world):
    world.extend_recipe("""
    class Recipe(Recipe):
        def create(self, **given):
            raise OSError("disk full")

    recipe = Recipe()
    """)
    lines = section(world.run("--heta-show=pie", "--heta-mode=overlap"))
    assert lines[0] == node_id("overlap", "pie")
    assert any("disk full" in line for line in lines)


def test_full_texts_are_shown_whatever_the_report_keeps(world):
    lines = section(world.run("--heta-show=pie", "--heta-mode=overlap", "--heta-responses=ids"))
    assert any("apple pie with cinnamon" in line for line in lines)


def test_cases_are_shown_in_the_same_order_with_two_workers(world):
    serial = shown(world.run("--heta-show=all"))
    assert shown(world.run("--heta-show=all", "-n2")) == serial


def test_the_ini_key_shows_and_the_command_line_wins(world):
    world.ini("heta_show = misses")
    assert shown(world.run()) == BACKWARDS
    assert len(shown(world.run("--heta-show=rain"))) == 2


def test_an_unknown_case_is_refused_before_the_first_build(world, count_builds):
    assert world.usage_error("--heta-show=piee") == (
        "--heta-show: no case 'piee' is planned; did you mean 'pie'? "
        "Give misses, all or the id of a planned case"
    )
    world.ini("heta_show = nonsense")
    assert world.usage_error() == (
        "heta_show: no case 'nonsense' is planned; give misses, all or the id of a planned case"
    )
    assert count_builds() == 0


def test_a_planned_case_that_is_not_selected_is_no_error(world):
    result = world.run("--heta-show=rain", "-k", "pie")
    result.assert_outcomes(passed=2, deselected=4)
    assert section(result) == []
