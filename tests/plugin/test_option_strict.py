"""``--heta-strict``: what is odd about a dataset is an error."""

import pytest

CASES = [
    {"case_id": "pie", "query": "apple pie", "evidence": ["apple"]},
    {"case_id": "lost", "query": "ghost", "evidence": ["ghost9"]},
]
WARNING = "[dangling-gold] 1 gold document is not in the corpus: ghost9"


@pytest.fixture(autouse=True)
def dangling(world):
    world.dataset(CASES)


def test_a_judged_document_outside_the_corpus_is_a_warning_by_default(world):
    result = world.run("--heta-mode=overlap")
    result.assert_outcomes(passed=2)
    report = world.report()
    assert report["metadata"]["warnings"] == [WARNING]
    assert report["metadata"]["dangling_ids"] == ["ghost9"]
    assert report["score_summary"]["overlap.recall@1"] == 0.5
    result.stdout.fnmatch_lines([f"warning: [[]{WARNING[1:]}"])


def test_it_is_an_error_when_strict(world, count_builds):
    result = world.run("--heta-mode=overlap", "--heta-strict")
    result.assert_outcomes(errors=2)
    assert result.ret == 1
    assert count_builds() == 0
    summary = world.report()["mode_summaries"]["overlap"]
    assert (summary["failed_cases"], summary["total_cases"]) == (2, 2)
    (build,) = world.report()["unit_builds"]
    assert WARNING in build["error"]["message"]


def test_a_dataset_without_oddities_passes_when_strict(world):
    world.dataset()
    world.run("--heta-strict").assert_outcomes(passed=6)


CHANGED = {
    "marked": ("cases.jsonl", lambda text: "\ufeff" + text, "a byte order mark"),
    "spoilt": ("documents.jsonl", lambda text: text.replace("pie", "pi\ufffd"), "spoilt: 1"),
    "mixed": ("documents.jsonl", lambda text: text.replace('"drum"', "7"), "1 numbers"),
    "repeated": (
        "documents.jsonl",
        lambda text: text.replace("drum tuning for beginners", "mountain bike repair"),
        "documents of the same text: 1 (bike = drum)",
    ),
    "same query": (
        "cases.jsonl",
        lambda text: text.replace("bike repair", "apple pie"),
        "queries of the same text: 1 (pie = repair)",
    ),
}


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
@pytest.mark.parametrize("change", CHANGED)
def test_what_validate_warns_of_is_an_error_when_strict(world, change, workers):
    name, edit, message = CHANGED[change]
    path = world.dataset() / name
    path.write_text(edit(path.read_text(encoding="utf-8")), encoding="utf-8")
    if not workers:
        world.run("--heta-mode=overlap").assert_outcomes(passed=3)
    result = world.run("--heta-mode=overlap", "--heta-strict", *workers)
    result.assert_outcomes(errors=3)
    (build,) = world.report()["unit_builds"]
    assert message in build["error"]["message"]


def test_the_ini_key_is_strict(world):
    world.ini("heta_strict = true")
    world.run("--heta-mode=overlap").assert_outcomes(errors=2)
    world.run("--heta-mode=overlap", "-o", "heta_strict=false").assert_outcomes(passed=2)


def test_what_is_neither_true_nor_false_is_refused_by_its_key(world):
    world.ini("heta_strict = maybe")
    assert world.usage_error() == "heta_strict: invalid truth value 'maybe'"


@pytest.mark.parametrize(
    ("case", "document", "message"),
    [
        ({"case_id": "bare", "query": "x"}, {}, "queries without a judgment: 1 (bare)"),
        ({}, {"document_id": "blank", "text": ""}, "empty documents: 1 (blank)"),
    ],
)
def test_unjudged_queries_and_empty_documents_are_errors_when_strict(
    world, case, document, message
):
    documents = [{"document_id": "apple", "text": "apple pie"}, *([document] if document else [])]
    world.dataset([CASES[0], *([case] if case else [])], documents)
    count = 2 if case else 1
    world.run("--heta-mode=overlap").assert_outcomes(passed=count)
    world.run("--heta-mode=overlap", "--heta-strict").assert_outcomes(errors=count)
    (build,) = world.report()["unit_builds"]
    assert message in build["error"]["message"]
