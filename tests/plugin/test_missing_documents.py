"""Documents that the dataset names and nobody can read: the cases that need them are errors."""

from __future__ import annotations

import json

import pytest

from pytest_heta import api
from pytest_heta.benchmarks import JsonlBenchmark

DOCUMENTS = [
    {"document_id": "apple", "text": "apple pie with cinnamon"},
    {"document_id": "bike", "text": "mountain bike repair"},
    {"document_id": "cloud", "path": "cloud.txt"},
    {"document_id": "absent", "path": "absent.txt"},
    {"document_id": "empty", "path": "empty.txt"},
]
NEEDS = {"pie": "apple", "fog": "absent", "rain": "cloud", "void": "empty", "fix": "bike"}
WORKERS = pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "distributed"])
WARNING = "[document-unavailable] 2 of 5 documents cannot be read: absent, empty; 2 of 5 cases fail"


def a_case(name, **fields):
    document = NEEDS[name]
    return {"case_id": name, "query": document, "evidence": [document], **fields}


def outcomes(report):
    """Return the error type of each case, None for those that were asked."""
    return {
        result["case_id"]: result["error"] and result["error"]["error_type"]
        for result in report["case_results"]
    }


EXPECTED = dict.fromkeys(NEEDS) | dict.fromkeys(("fog", "void"), "document_unavailable")


@pytest.fixture
def write(world):
    """Write the dataset, of whose five documents one is absent and one has no bytes."""

    def run(**fields):
        documents = DOCUMENTS
        if fields.pop("by_case", False):
            cases = [a_case(name, documents=[NEEDS[name]]) for name in NEEDS]
        else:
            cases = [a_case(name, **fields) for name in NEEDS]
        folder = world.dataset(cases, documents)
        (folder / "cloud.txt").write_text("cloud types and rain", encoding="utf-8")
        (folder / "empty.txt").write_bytes(b"")
        return folder

    return run


@WORKERS
@pytest.mark.parametrize("concurrency", [(), ("--heta-concurrency=3",)], ids=["one", "three"])
def test_in_a_corpus_only_the_cases_whose_document_is_gone_fail(
    world, write, builds, workers, concurrency
):
    write()
    result = world.run("--heta-mode=overlap", *workers, *concurrency)
    result.assert_outcomes(passed=3, failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert builds() == {"corpus": 1}
    report = world.report()
    assert outcomes(report) == EXPECTED
    message = report["case_results"][1]["error"]["message"]
    assert message.startswith("[document-unavailable] case fog: document 'absent' cannot be read")
    recall = report["mode_summaries"]["overlap"]["metrics"]["recall@1"]
    assert (recall["n"], recall["n_scored"], recall["n_errored"]) == (5, 3, 2)
    assert recall["mean"] == 3 / 5
    (build,) = report["unit_builds"]
    assert (build["error"], build["document_count"]) == (None, 3)
    metadata = report["metadata"]
    assert metadata["warnings"] == [WARNING]
    assert list(metadata["unavailable_documents"]) == ["absent", "empty"]
    assert metadata["unavailable_documents"]["empty"] == "the file is empty"
    assert (metadata["unavailable_document_count"], metadata["dataset_documents"]) == (2, 5)
    assert metadata["cases_without_document"] == 2
    result.stdout.fnmatch_lines([f"warning: {WARNING}"])


@WORKERS
def test_a_unit_that_is_made_of_a_document_fails_with_it(world, write, builds, workers):
    write(by_case=True)
    result = world.run("--heta-mode=overlap", *workers)
    result.assert_outcomes(passed=3, errors=2)
    assert builds() == {"pie": 1, "rain": 1, "fix": 1}
    report = world.report()
    assert outcomes(report) == EXPECTED
    assert (
        "document 'empty' cannot be read: the file is empty"
        in (report["case_results"][3]["error"]["message"])
    )
    builds_by_unit = {build["unit_id"]: build["error"] for build in report["unit_builds"]}
    assert builds_by_unit["void"]["error_type"] == "document_unavailable"
    assert report["metadata"]["cases_without_document"] == 2


def test_the_recipe_sees_the_documents_that_are_there(world, write):
    write()
    world.extend_recipe(
        """
        class Recipe(Recipe):
            def create(self, *, objects, source_keys, **given):
                assert list(objects.list()) == list(source_keys)
                names = [key.split("/")[-2] for key in source_keys]
                pathlib.Path(__file__).with_name("seen.json").write_text(json.dumps(names))
                return super().create(objects=objects, source_keys=source_keys, **given)

        recipe = Recipe()
        """
    )
    world.run("--heta-mode=overlap")
    assert json.loads((world.path / "seen.json").read_text()) == ["apple", "bike", "cloud"]


@pytest.mark.parametrize("concurrency", ["1", "4"])
def test_queries_that_cannot_be_answered_are_not_asked(world, write, concurrency):
    write()
    world.record_queries()
    world.run("--heta-mode=overlap", f"--heta-concurrency={concurrency}")
    assert sorted(text for text, *_ in world.asked()) == ["apple", "bike", "cloud"]


@WORKERS
def test_a_run_with_missing_documents_can_be_resumed(world, write, workers):
    write()
    world.record_queries()
    world.run("--heta-mode=overlap", *workers, cache=True)
    asked = len(world.asked())
    (world.path / "report.json").unlink()
    result = world.run("--heta-mode=overlap", "--heta-resume", *workers, cache=True)
    result.assert_outcomes(passed=3, failed=2)
    assert outcomes(world.report()) == EXPECTED
    assert len(world.asked()) == asked == 3


def test_a_mended_file_makes_all_pass(world, write):
    folder = write()
    world.run("--heta-mode=overlap").assert_outcomes(passed=3, failed=2)
    (folder / "absent.txt").write_text("absent no more", encoding="utf-8")
    (folder / "empty.txt").write_text("empty no more", encoding="utf-8")
    world.run("--heta-mode=overlap").assert_outcomes(passed=5)
    assert world.report()["metadata"]["unavailable_documents"] == {}


@WORKERS
def test_strict_refuses_it_before_anything_is_built(world, write, count_builds, workers):
    write()
    result = world.run("--heta-mode=overlap", "--heta-strict", *workers)
    result.assert_outcomes(errors=5)
    assert count_builds() == 0
    (build,) = world.report()["unit_builds"]
    assert WARNING in build["error"]["message"]


@WORKERS
def test_documents_of_an_adapter_of_one_s_own(world, workers):
    """By address and by path, in an adapter that yields them without a look."""
    world.dataset([{"case_id": "x", "query": "x"}])
    (world.path / "there.txt").write_text("there", encoding="utf-8")
    world.suite(
        before="""
        from pytest_heta import BenchmarkDocument, BenchmarkCase, BenchmarkEvidence
        from pytest_heta import BenchmarkExpected

        class Own(JsonlBenchmark):
            async def documents(self, prepared):
                here = Path(__file__).parent
                origins = {
                    "a": {"path": here / "there.txt"},
                    "b": {"path": here / "gone.txt"},
                    "c": {"source_uri": (here / "there.txt").as_uri()},
                    "d": {"source_uri": (here / "gone.txt").as_uri()},
                }
                for name, origin in origins.items():
                    yield BenchmarkDocument(document_id=name, name="t.txt", **origin)

            async def cases(self, prepared):
                for name in "abcd":
                    locator = {"document_id": name, "page_index": 0}
                    expected = BenchmarkExpected(evidence=(BenchmarkEvidence(locator=locator),))
                    yield BenchmarkCase(case_id=name, query="there", expected=expected)

        JsonlBenchmark = Own
        """
    )
    result = world.run("--heta-mode=overlap", *workers)
    result.assert_outcomes(passed=2, failed=2)
    unavailable = "document_unavailable"
    assert outcomes(world.report()) == {"a": None, "b": unavailable, "c": None, "d": unavailable}


def test_the_python_interface_does_the_same(world, write):
    folder = write()
    world.recipe()
    recipe = f"{world.path / 'recipe.py'}:recipe"
    report = api.run(JsonlBenchmark(folder), recipe, modes=["overlap"])
    found = {r.case_id: r.error and r.error.error_type for r in report.case_results}
    assert found == EXPECTED
    metric = report.mode_summaries["overlap"].metrics["recall@5"]
    assert (metric.n, metric.n_scored, metric.n_errored) == (5, 3, 2)
    assert report.metadata["warnings"] == [WARNING]
