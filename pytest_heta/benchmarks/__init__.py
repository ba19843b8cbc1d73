"""Benchmark adapters: from files to documents, cases and run units.

An adapter reads and checks; it builds nothing, asks nothing and scores nothing.
"""

from __future__ import annotations

from pytest_heta.benchmarks._archive import extract
from pytest_heta.benchmarks._download import download
from pytest_heta.benchmarks.beir import BeirBenchmark
from pytest_heta.benchmarks.folder import benchmark_from_folder
from pytest_heta.benchmarks.jsonl import JsonlBenchmark

__all__ = ["BeirBenchmark", "JsonlBenchmark", "benchmark_from_folder", "download", "extract"]
