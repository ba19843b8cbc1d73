"""A folder is recognised by its files; nothing is opened and nothing written."""

import shutil
import sys
from pathlib import Path

import pytest

from pytest_heta.benchmarks import BeirBenchmark, JsonlBenchmark, benchmark_from_folder
from pytest_heta.errors import ConfigurationError, DatasetNotFoundError


def tree(folder):
    return sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*"))


def test_beir_folder(beir, load):
    folder = beir(name="some-set")
    benchmark = benchmark_from_folder(folder)
    assert isinstance(benchmark, BeirBenchmark)
    assert benchmark.manifest.name == "some-set"
    assert len(load(benchmark).cases) == 2


def test_jsonl_folder(jsonl, load):
    folder = jsonl([{"id": "c", "query": "x"}], [{"id": "d", "text": "x"}], name="some-set")
    benchmark = benchmark_from_folder(str(folder))
    assert isinstance(benchmark, JsonlBenchmark)
    assert benchmark.manifest.name == "some-set"
    assert len(load(benchmark).cases) == 1


def test_folder_with_both_is_a_beir_folder(beir, jsonl):
    beir()
    assert isinstance(benchmark_from_folder(jsonl([])), BeirBenchmark)


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl"])
def test_folder_without_corpus_or_queries_is_not_known(beir, tmp_path, missing):
    folder = beir()
    (folder / missing).rename(tmp_path / "away")
    assert benchmark_from_folder(folder) is None


def test_other_folders_and_what_is_none_are_not_known(tmp_path):
    file = tmp_path / "cases.txt"
    file.write_bytes(b"")
    assert benchmark_from_folder(tmp_path) is None
    assert benchmark_from_folder(file) is None
    assert benchmark_from_folder(tmp_path / "nowhere") is None


def test_folder_that_cannot_be_looked_into_is_not_known(beir, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    folder = beir()
    monkeypatch.setattr(Path, "is_file", refuse)
    assert benchmark_from_folder(folder) is None


@pytest.mark.parametrize(
    ("splits", "chosen"),
    [
        ("dev test train", "test"),
        ("dev train", "dev"),
        ("train validation", "validation"),
        ("dev validation", "dev"),
        ("train", "train"),
        ("odd", "odd"),
    ],
)
def test_split_is_test_or_the_next_obvious_one(beir, load, splits, chosen):
    folder = beir(qrels=dict.fromkeys(splits.split(), "q1 dA 1\n"))
    benchmark = benchmark_from_folder(folder)
    assert benchmark.manifest.split == chosen
    assert load(benchmark).grades("q1") == {"dA": 1}


def test_split_that_is_not_clear_is_asked_for(beir):
    folder = beir(qrels={"train": "q1 dA 1\n", "odd": "q1 dA 1\n"})
    with pytest.raises(ConfigurationError, match=r"odd, train .* split='odd'"):
        benchmark_from_folder(folder)


def test_corpus_and_queries_without_judgments_are_an_error(beir):
    folder = beir()
    shutil.rmtree(folder / "qrels")
    with pytest.raises(DatasetNotFoundError, match="no judgments; expected") as caught:
        benchmark_from_folder(folder)
    assert caught.value.where == str(folder / "qrels")


def test_folder_without_judgments_says_so(beir):
    folder = beir()
    (folder / "qrels" / "test.tsv").unlink()
    with pytest.raises(DatasetNotFoundError, match=r"no judgments; expected: test.tsv") as caught:
        benchmark_from_folder(folder)
    assert caught.value.where == str(folder / "qrels")


def test_relative_folder_is_that_of_the_current_directory(beir, tmp_path, monkeypatch, load):
    beir(name="a/data")
    monkeypatch.chdir(tmp_path / "a")
    benchmark = benchmark_from_folder("data")
    monkeypatch.chdir(tmp_path)
    assert load(benchmark).prepared.root_dir == tmp_path / "a" / "data"


def test_no_file_is_opened_and_none_is_changed(beir, load, monkeypatch):
    folder = beir(corpus=b"\xff broken")
    before = tree(folder)
    assert benchmark_from_folder(folder) is not None
    assert tree(folder) == before


@pytest.mark.skipif(sys.platform == "win32", reason="folders have other modes on Windows")
def test_read_only_folder_is_enough(beir, jsonl, load):
    for folder in (
        beir(name="b"),
        jsonl([{"id": "c", "query": "x"}], [{"id": "d", "text": "x"}], name="j"),
    ):
        before = tree(folder)
        folder.chmod(0o555)
        try:
            assert load(benchmark_from_folder(folder)).documents
            assert tree(folder) == before
        finally:
            folder.chmod(0o755)
