"""The speed suite: left out unless it is named, and the workload's suite tells true means."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SPEED = BENCHMARKS / "speed"

WORKLOAD = '''
"""A small workload of the same shape as the one that the peers share."""
import json, os
from dataclasses import dataclass

UNITS = int(os.environ["PERF_UNITS"])
CONC, TOP_K, BUILD_MS = 8, 10, 0.0


@dataclass(frozen=True)
class C:
    id: str
    query: str
    unit: int
    ranked: tuple
    qrels: dict


def make_cases():
    return [
        C(f"c{i}", f"question {i}", i % UNITS, tuple(f"d{j}" for j in range(i, i + 10)),
          {f"d{i}": 3, f"d{i + 6}": 1} if i % 2 else {f"d{i + 12}": 1})
        for i in range(6)
    ]


async def retrieve(case):
    return case.ranked


def retrieve_sync(case):
    return case.ranked


def build_kb(unit):
    return {"unit": unit, "x": 1}


def write_means(n, recall, ndcg):
    with open(os.environ["PERF_OUT"], "w") as file:
        json.dump([n, recall, ndcg], file)
'''

QUIET = ["-p", "no:cacheprovider", "-p", "no:randomly"]


def run_pytest(
    *arguments: str, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own, as nobody's worker."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", *QUIET, *arguments],
        cwd=folder,
        env={**os.environ, "PYTEST_ADDOPTS": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


class TestLeavingOut:
    """What ``benchmarks/conftest.py`` does, in a folder like that."""

    @pytest.fixture(autouse=True)
    def benchmarks(self, pytester: pytest.Pytester) -> None:
        speed = pytester.path / "benchmarks" / "speed"
        speed.mkdir(parents=True)
        shutil.copy(BENCHMARKS / "conftest.py", speed.parent)
        (speed / "test_fast.py").write_text("def test_fast(): pass\n", encoding="utf-8")
        (speed.parent / "other").mkdir()
        for folder in (speed.parent, speed.parent / "other"):
            name = f"test_{folder.name}"
            (folder / f"{name}.py").write_text(f"def {name}(): pass\n", encoding="utf-8")
        pytester.makeini("[pytest]")

    @staticmethod
    def collected(pytester: pytest.Pytester, *arguments: str) -> set[str]:
        result = pytester.runpytest_inprocess("--collect-only", "-q", *QUIET, *arguments)
        return {line.rpartition("::")[2] for line in result.outlines if "::" in line}

    @pytest.mark.parametrize("arguments", [(), (".",), ("benchmarks",), ("benchmarks/",)])
    def test_it_is_left_out_of_a_run_of_the_suites(self, pytester, arguments):
        assert self.collected(pytester, *arguments) == {"test_benchmarks", "test_other"}

    def test_an_absolute_path_of_the_suites_leaves_it_out(self, pytester):
        found = self.collected(pytester, str(pytester.path / "benchmarks"))
        assert found == {"test_benchmarks", "test_other"}

    @pytest.mark.parametrize(
        "argument",
        [
            "benchmarks/speed",
            "benchmarks/speed/",
            "./benchmarks/../benchmarks/speed",
            "benchmarks/speed/test_fast.py",
            "benchmarks/speed/test_fast.py::test_fast",
        ],
    )
    def test_it_is_collected_where_it_is_named(self, pytester, argument):
        assert self.collected(pytester, argument) == {"test_fast"}

    def test_an_absolute_path_names_it(self, pytester):
        found = self.collected(pytester, str(pytester.path / "benchmarks" / "speed"))
        assert found == {"test_fast"}

    def test_a_path_through_a_link_names_it(self, pytester):
        link = pytester.path / "link"
        link.symlink_to(pytester.path / "benchmarks")
        assert self.collected(pytester, "link/speed") == {"test_fast"}
        assert self.collected(pytester, "link") == {"test_benchmarks", "test_other"}

    @pytest.mark.parametrize(
        ("folder", "arguments"),
        [("benchmarks/speed", ()), ("benchmarks", ("speed",)), ("benchmarks/other", ("../speed",))],
    )
    def test_it_is_named_from_within(self, pytester, monkeypatch, folder, arguments):
        monkeypatch.chdir(pytester.path / folder)
        assert self.collected(pytester, *arguments) == {"test_fast"}

    def test_it_stands_beside_the_suites_when_both_are_named(self, pytester):
        found = self.collected(pytester, "benchmarks", "benchmarks/speed")
        assert found == {"test_benchmarks", "test_other", "test_fast"}

    def test_another_folder_of_that_name_is_not_meant(self, pytester):
        folder = pytester.path / "benchmarks" / "other" / "speed"
        folder.mkdir()
        (folder / "test_deep.py").write_text("def test_deep(): pass\n", encoding="utf-8")
        assert "test_deep" in self.collected(pytester, "benchmarks")

    @pytest.mark.parametrize(
        ("argument", "passed"), [("benchmarks", 2), ("benchmarks/speed", 1)], ids=["left", "named"]
    )
    def test_workers_see_the_same(self, pytester, argument, passed):
        result = pytester.runpytest_inprocess("-n1", *QUIET, argument)
        result.assert_outcomes(passed=passed)


def test_every_hot_path_runs() -> None:
    pytest.importorskip("bm25s")
    done = run_pytest("benchmarks/speed", "-rA", "--benchmark-disable", folder=BENCHMARKS.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = {line.split("::")[0] for line in done.stdout.splitlines() if "PASSED" in line}
    assert passed == {f"PASSED benchmarks/speed/{path.name}" for path in SPEED.glob("test_*.py")}


class TestWorkload:
    """The suite that is measured beside the peers, on a small workload."""

    ANY_RECIPE = ("--heta-recipe=any.py:Recipe",)

    @pytest.fixture
    def peers(self, tmp_path: Path) -> Path:
        """Return a folder as the peer comparison makes it."""
        (tmp_path / "workload.py").write_text(WORKLOAD, encoding="utf-8")
        (tmp_path / "pytest.ini").write_text(
            "[pytest]\npythonpath = .\nfilterwarnings = error\n", encoding="utf-8"
        )
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(SPEED / "workload", tmp_path / "own", ignore=unwanted)
        return tmp_path

    @staticmethod
    def run(peers: Path, *arguments: str, units: int = 1, recipe: str = "recipe") -> Any:
        """Run the suite as the peer comparison does; return the means that it told."""
        done = run_pytest(
            "-q",
            "own",
            f"--heta-recipe=own/recipe.py:{recipe}",
            *arguments,
            folder=peers,
            PERF_UNITS=str(units),
            PERF_OUT=str(peers / "means.json"),
            PYTHONPATH=str(peers),
            HETA_SPEED_CPU_MS="0",
            HETA_SPEED_BUILDS=str(peers / "builds.txt"),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads((peers / "means.json").read_text(encoding="utf-8"))

    # Of six cases, three find nothing, and three the best document first and the other 7th.
    MEANS = (6, pytest.approx(0.25), pytest.approx((3 + 1 / 3) / (3 + 0.6309297535714575) / 2))

    @pytest.mark.parametrize("recipe", ["recipe", "sync_recipe", "cpu_recipe"])
    def test_means_come_from_the_report(self, peers, recipe):
        assert tuple(self.run(peers, recipe=recipe)) == self.MEANS

    def test_each_unit_has_a_knowledge_base_of_its_own(self, peers):
        assert tuple(self.run(peers, units=3)) == self.MEANS
        built = (peers / "builds.txt").read_text(encoding="utf-8").splitlines()
        assert sorted(name.split("-")[1] for name in built) == ["u0", "u1", "u2"]

    def test_nothing_about_the_dataset_is_odd(self, peers):
        self.run(peers, "--heta-report=json:report.json", units=3)
        (report,) = self.report(peers)["reports"]
        assert report["metadata"]["warnings"] == []

    def test_results_may_have_a_text(self, peers, monkeypatch):
        monkeypatch.setenv("HETA_SPEED_WORDS", "2")
        self.run(peers, "--heta-responses=full", "--heta-report=json:report.json")
        (report,) = self.report(peers)["reports"]
        texts = [r["text"] for r in report["case_results"][0]["response"]["results"]]
        assert texts == ["words words "] * 10

    def test_two_workers_tell_the_same(self, peers):
        assert tuple(self.run(peers, "-n2", units=3)) == self.MEANS
        built = (peers / "builds.txt").read_text(encoding="utf-8").splitlines()
        assert len(built) == 3

    @staticmethod
    def report(peers: Path) -> Mapping[str, Any]:
        report: Mapping[str, Any] = json.loads((peers / "report.json").read_text("utf-8"))
        return report

    @pytest.mark.parametrize("argument", ["speed/workload", "speed/workload/bench_workload.py"])
    def test_without_the_shared_module_it_is_skipped_and_says_why(self, alone, argument):
        done = run_pytest(argument, "-rs", *self.ANY_RECIPE, folder=alone, PYTHONPATH="")
        assert "the workload comes with the peer comparison" in done.stdout
        assert "1 skipped" in done.stdout

    @pytest.mark.parametrize("options", [(), ANY_RECIPE], ids=["no_recipe", "recipe"])
    def test_without_the_shared_module_the_hot_paths_stand_alone(self, alone, options):
        done = run_pytest("speed", *options, folder=alone, PYTHONPATH="")
        assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
        assert "workload" not in done.stdout

    @pytest.fixture
    def alone(self, tmp_path: Path) -> Path:
        """Return a folder with the suite where the peer comparison is not."""
        speed = tmp_path / "speed"
        speed.mkdir()
        shutil.copy(SPEED / "conftest.py", speed)
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(SPEED / "workload", speed / "workload", ignore=unwanted)
        (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        (tmp_path / "any.py").write_text(
            "class Recipe:\n    name = 'any'\n    def create(self): return self\n", encoding="utf-8"
        )
        return tmp_path


# --- measuring ---------------------------------------------------------------


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules of the measuring script: its rows, and how they are run."""
    monkeypatch.syspath_prepend(str(SPEED))
    for name in ("processes", "rows"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import processes
    import rows

    yield rows, processes
    for name in ("processes", "rows"):
        sys.modules.pop(name, None)


PEER_WORKLOAD = """
def expected_means():
    return 0.5, 0.25
"""


class TestProcesses:
    @pytest.fixture
    def workload(self, measuring, tmp_path):
        (tmp_path / "peers").mkdir()
        (tmp_path / "peers" / "workload.py").write_text(PEER_WORKLOAD, encoding="utf-8")
        return measuring[1].Workload(tmp_path / "peers", SPEED / "workload", cases=3)

    @staticmethod
    def peer(measuring, code: str, name: str = "peer", **settings: Any) -> Any:
        return measuring[1].Peer(name, f'{{py}} -c "{code}"', Path(sys.executable), **settings)

    @staticmethod
    def telling(n: int = 3, recall: float = 0.5, ndcg: float = 0.25) -> str:
        told = {"'n'": n, "'recall@5'": recall, "'ndcg@10'": ndcg}
        text = ", ".join(f"{key}: {value}" for key, value in told.items())
        return f"import json, os; json.dump({{{{{text}}}}}, open(os.environ['PERF_OUT'], 'w'))"

    def test_peers_run_in_turn_and_the_warm_up_does_not_count(self, measuring, workload, tmp_path):
        log = tmp_path / "log"
        peers = [
            self.peer(measuring, f"open('{log}', 'a').write('{name}')", name, checked=False)
            for name in "ab"
        ]
        figures = measuring[1].measure(workload, peers, rounds=2, warmup=1)
        assert log.read_text() == "ababab"
        assert {name: len(runs) for name, runs in figures.items()} == {"a": 2, "b": 2}

    def test_a_process_is_measured(self, measuring, workload):
        code = self.telling() + "; kept = bytearray(64 << 20)"
        (run,) = measuring[1].measure(workload, [self.peer(measuring, code)], rounds=1, warmup=0)[
            "peer"
        ]
        assert run.cpu > 0
        assert run.wall > 0
        assert run.peak > 64

    @pytest.mark.parametrize("wrong", [{"n": 2}, {"recall": 0.500001}, {"ndcg": 0.0}])
    def test_wrong_means_are_no_result(self, measuring, workload, wrong):
        peer = self.peer(measuring, self.telling(**wrong))
        with pytest.raises(measuring[1].MeasuringError, match=r"peer: it reports .* not 3 with"):
            measuring[1].measure(workload, [peer], rounds=1, warmup=0)

    def test_a_failure_is_no_result(self, measuring, workload):
        peer = self.peer(measuring, "raise SystemExit('broken')")
        with pytest.raises(measuring[1].MeasuringError, match="peer: exit code 1\nbroken"):
            measuring[1].measure(workload, [peer], rounds=1, warmup=0)

    def test_silence_is_no_result(self, measuring, workload):
        with pytest.raises(measuring[1].MeasuringError, match="peer: it wrote no report"):
            measuring[1].measure(workload, [self.peer(measuring, "")], rounds=1, warmup=0)

    def test_medians_are_those_of_each_number(self, measuring):
        figures = measuring[1].Figures
        runs = [figures(1, 9, 5, {"x": 1}), figures(2, 8, 6, {"x": 3}), figures(3, 7, 4, {"x": 2})]
        assert measuring[1].median(runs) == figures(2, 8, 5, {"x": 2})


class TestMeasure:
    def test_a_row_is_measured_alone(self, tmp_path):
        (tmp_path / "peers").mkdir()
        done = self.script("start", "--perf", str(tmp_path), "-n", "1", "--warmup", "0")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "| start | CPU / -p no:heta | " in done.stdout
        assert "cases-2000" not in done.stdout

    def test_a_row_that_cannot_be_measured_is_no_success(self, tmp_path):
        (tmp_path / "bench.py").write_text("raise SystemExit('broken')", encoding="utf-8")
        done = self.script("cases-2000", "--perf", str(tmp_path))
        assert done.returncode == 1
        assert "not measured: broken" in done.stdout

    def test_a_misspelt_row_is_refused(self, tmp_path):
        done = self.script("strat", "--perf", str(tmp_path))
        assert done.returncode == 2
        assert "no such row: strat" in done.stderr

    def test_the_peers_have_to_be_named(self):
        done = self.script("start")
        assert done.returncode == 2
        assert "--perf is required" in done.stderr

    def test_every_row_is_documented(self, measuring):
        page = (BENCHMARKS.parent / "docs" / "performance.md").read_text(encoding="utf-8")
        assert [name for name in measuring[0].ROWS if f"`{name}`" not in page] == []

    @staticmethod
    def script(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(SPEED / "measure.py"), *arguments],
            env={
                k: v for k, v in os.environ.items() if k not in {"HETA_PERF_DIR", "HETA_DATA_DIR"}
            },
            capture_output=True,
            text=True,
            check=False,
        )
