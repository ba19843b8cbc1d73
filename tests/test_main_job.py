"""The main job: the demo suite with the embedded recipe, offline and repeatable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent

NO_NETWORK = '''
"""Every attempt to reach another machine raises."""
import socket


def refuse(*args, **kwargs):
    raise OSError("this session is offline")


socket.socket.connect = refuse
socket.socket.connect_ex = refuse
socket.getaddrinfo = refuse
'''


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which Python code reaches no network."""
    (tmp_path / "no_network.py").write_text(NO_NETWORK, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if name != "HETA_DATA_DIR"}
    return {**kept, "PYTHONPATH": str(tmp_path), "PYTEST_ADDOPTS": ""}


def main_job(
    report: Path, environment: dict[str, str], *arguments: str, recipe: str = "local"
) -> list[dict[str, Any]]:
    """Run the main job, which has to be green, and return its reports."""
    command = [sys.executable, "-m", "pytest", "-p", "no_network", "-p", "no:cacheprovider"]
    command += ["-p", "no:randomly"]  # another order, another first query
    command += ["benchmarks", f"--heta-recipe={recipe}", f"--heta-report=json:{report}"]
    command += arguments
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    reports: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["reports"]
    return reports


def comparable(report: dict[str, Any]) -> dict[str, Any]:
    """Return what two runs of the same inputs must agree in: all but times and ids."""
    latencies = ("latency", "cold_latency", "warm_latency")
    return {
        "scores": report["score_summary"],
        "modes": {
            mode: {name: value for name, value in summary.items() if name not in latencies}
            for mode, summary in report["mode_summaries"].items()
        },
        "cases": [
            {name: value for name, value in case.items() if name != "latency_ms"}
            for case in report["case_results"]
        ],
        "gates": report["gates"],
        "dataset": report["config_snapshot"]["benchmark"],
    }


def test_main_job_is_green_offline_and_says_the_same_twice(
    tmp_path: Path, offline: dict[str, str]
) -> None:
    first = main_job(tmp_path / "first.json", offline)
    second = main_job(tmp_path / "second.json", offline)

    assert [report["metadata"]["label"] for report in first] == ["handbook", "manuals"]
    assert all(report["metadata"]["complete"] for report in first)
    assert all(gate["status"] == "passed" for report in first for gate in report["gates"])
    assert [comparable(report) for report in first] == [comparable(report) for report in second]


def test_better_embeddings_run_offline_too(tmp_path: Path, offline: dict[str, str]) -> None:
    reports = main_job(
        tmp_path / "report.json",
        offline,
        "--heta-mode=vector_search",
        "--heta-limit=20",
        "--heta-no-gates",
        recipe="local-minilm",
    )

    assert [len(report["case_results"]) for report in reports] == [20, 20]
    assert {report["config_snapshot"]["embedding"]["dimension"] for report in reports} == {384}
