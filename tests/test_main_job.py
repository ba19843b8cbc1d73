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
    report: Path, environment: dict[str, str], *arguments: str, code: int = 0
) -> list[dict[str, Any]]:
    """Run the main job and return its reports."""
    command = [sys.executable, "-m", "pytest", "-p", "no_network", "-p", "no:cacheprovider"]
    command += ["benchmarks", "--heta-recipe=local", f"--heta-report=json:{report}", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
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
        "dataset": report["config_snapshot"]["dataset"],
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


def test_better_embeddings_pass_the_same_gates(tmp_path: Path, offline: dict[str, str]) -> None:
    (report,) = main_job(
        tmp_path / "report.json",
        offline,
        "--heta-recipe=local-minilm",
        "--heta-mode=vector_search",
        "-k",
        "manuals and not local_only",
        "-o",
        "heta_recipe=",
        code=0,
    )[-1:]

    assert report["config_snapshot"]["embedding"]["dimension"] == 384
