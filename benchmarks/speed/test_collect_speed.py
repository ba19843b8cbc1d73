"""How fast a suite is collected, in a process of its own as users have it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CASE_COUNT = 2_000

SUITE = f"""
from pathlib import Path
from pytest_heta import BenchmarkCase, BenchmarkDocument, BenchmarkEvidence, BenchmarkExpected
from pytest_heta import BenchmarkManifest, BenchmarkRunUnit, PreparedBenchmark


class Benchmark:
    manifest = BenchmarkManifest(name="speed")

    def resources(self):
        return ()

    async def prepare(self, workspace):
        return PreparedBenchmark(manifest=self.manifest, root_dir=workspace.root_dir)

    async def documents(self, prepared):
        yield BenchmarkDocument(document_id="d0", name="d0.txt", data=b"text")

    async def cases(self, prepared):
        expected = BenchmarkExpected(evidence=(BenchmarkEvidence(reference_id="d0"),))
        for number in range({CASE_COUNT}):
            yield BenchmarkCase(
                case_id=f"c{{number:05d}}", query=f"question {{number}}", expected=expected
            )

    async def run_units(self, prepared):
        yield BenchmarkRunUnit(unit_id="u0")

    def evaluators(self):
        return ["recall@5", "ndcg@10"]


speed = Benchmark()
"""

RECIPE = """
class Recipe:
    name = "empty"

    def create(self):
        return self

    def query(self, text):
        return {"results": []}
"""


def test_collection_of_two_thousand_cases(benchmark: Any, tmp_path: Path) -> None:
    (tmp_path / "bench_speed.py").write_text(SUITE, encoding="utf-8")
    (tmp_path / "recipe.py").write_text(RECIPE, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "bench_speed.py"]
    command += ["--heta-recipe=recipe.py:Recipe", "-pno:cacheprovider"]
    environment = {name: text for name, text in os.environ.items() if "PYTEST" not in name}

    def collect() -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    printed = benchmark.pedantic(collect, rounds=3, iterations=1, warmup_rounds=1)

    assert f"bench_speed.py: {CASE_COUNT}" in printed
