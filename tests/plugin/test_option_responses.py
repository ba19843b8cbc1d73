"""``--heta-responses``: how much of each response the report keeps."""

import pytest

LONG = "apple pie " + "x" * 300


@pytest.fixture(autouse=True)
def long_answers(world):
    world.dataset(
        [{"case_id": "pie", "query": "apple pie", "evidence": ["apple"]}],
        [{"document_id": "apple", "text": LONG}],
    )
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            response = super().query(text, mode=mode, top_k=top_k)
            response["answer"] = "because " * 500
            response["trace"] = ["looked", "found"]
            response["citations"] = [{"id": "c1", "text": "y" * 300}]
            response["results"][0]["metadata"] = {"extra": 1}
            return response
    """)


def response(world, *options):
    world.run("--heta-mode=overlap", *options).assert_outcomes(passed=1)
    (result,) = world.report()["case_results"]
    return result["response"]


@pytest.mark.parametrize("options", [[], ["--heta-responses=short"]])
def test_the_first_200_characters_of_texts_are_kept_by_default(world, options):
    kept = response(world, *options)
    assert kept["results"][0]["text"] == LONG[:200] + "…"
    assert kept["citations"][0]["text"] == "y" * 200 + "…"
    assert kept["results"][0]["source"]["source_key"].endswith("/apple/apple.txt")
    assert kept["results"][0]["metadata"] == {}
    assert kept["trace"] == []


def test_ids_keeps_no_text(world):
    kept = response(world, "--heta-responses=ids")
    assert kept["results"][0]["text"] == ""
    assert kept["answer"] is None
    assert kept["citations"][0]["text"] is None
    assert kept["results"][0]["id"].endswith("apple.txt#0")
    assert kept["results"][0]["score"] == 1.0
    assert kept["results"][0]["source"]["source_key"].endswith("/apple/apple.txt")


def test_full_keeps_everything(world):
    kept = response(world, "--heta-responses=full")
    assert kept["results"][0]["text"] == LONG
    assert kept["answer"] == "because " * 500
    assert kept["citations"][0]["text"] == "y" * 300
    assert kept["results"][0]["metadata"] == {"extra": 1}
    assert kept["trace"] == ["looked", "found"]


def test_scores_do_not_depend_on_what_is_kept(world):
    for level in ("ids", "short", "full"):
        response(world, f"--heta-responses={level}")
        assert world.report()["score_summary"]["overlap.recall@1"] == 1


def test_the_ini_key_sets_the_level_and_the_command_line_wins(world):
    world.ini("heta_responses = ids")
    assert response(world)["results"][0]["text"] == ""
    assert response(world, "--heta-responses=full")["results"][0]["text"] == LONG


def test_another_level_is_refused(world):
    error = world.usage_error("--heta-responses=long")
    assert error == "--heta-responses: 'long' is not one of ids, short, full"
