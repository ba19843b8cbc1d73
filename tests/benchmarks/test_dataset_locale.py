"""Files are UTF-8 whatever the locale says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest_heta

TEXT = "naïve 咖啡 🚲"

SCRIPT = """
import asyncio, locale, sys
from pathlib import Path
from pytest_heta.benchmarks import benchmark_from_folder
from pytest_heta.models import BenchmarkWorkspace

assert sys.flags.utf8_mode == 0
assert locale.getencoding().lower() not in ("utf-8", "utf8")

async def read(folder):
    benchmark = benchmark_from_folder(folder)
    prepared = await benchmark.prepare(BenchmarkWorkspace(root_dir=folder, cache_dir=folder))
    async for document in benchmark.documents(prepared):
        print(ascii(document.data.decode("utf-8")))
    async for case in benchmark.cases(prepared):
        print(ascii((case.case_id, case.query, case.expected.evidence[0].reference_id)))

for folder in sys.argv[1:]:
    asyncio.run(read(Path(folder)))
"""


def test_locale_of_the_machine_does_not_matter(beir, jsonl):
    folders = [
        beir(
            corpus=[{"_id": "文", "text": TEXT}],
            queries=[{"_id": "é", "text": TEXT}],
            qrels="é\t文\t1\n",
            name="b",
        ),
        jsonl(
            [{"id": "é", "query": TEXT, "evidence": ["文"]}],
            [{"id": "文", "text": TEXT}],
            name="j",
        ),
    ]
    environment = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONPATH": str(Path(pytest_heta.__file__).parents[1]),
        "PYTHONWARNINGS": "error::EncodingWarning",
    }
    command = [sys.executable, "-X", "warn_default_encoding", "-c", SCRIPT, *map(str, folders)]
    done = subprocess.run(
        command, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [ascii(TEXT), ascii(("é", TEXT, "文"))] * 2
