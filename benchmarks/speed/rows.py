"""The rows of docs/performance.md: what is run beside what, and which numbers come of it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from processes import Figures, MeasuringError, Peer, Workload, measure, median

OWN: Final = "{py} -m pytest -q own --heta-recipe=own/recipe.py:recipe"
PLAIN: Final = "{py} -m pytest -q pytest_plain"
NO_TESTS: Final = 5
SUITE: Final = Path(__file__).resolve().parent / "workload"
CRANFIELD: Final = Path(__file__).resolve().parents[1] / "bench_cranfield.py"


@dataclass(frozen=True)
class Value:
    """One number of a row, beside what it should be.

    Attributes:
        label: What it is.
        value: The number.
        target: What is aimed at, None for a number that is only told.
        limit: What it may be at most.
    """

    label: str
    value: float
    target: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class Context:
    """What all rows need.

    Attributes:
        perf: Folder of the peer comparison.
        venvs: Folder of the peers' environments.
        python: Interpreter of an environment with pytest-heta alone.
        local_python: Interpreter of one with its extra ``local``.
        data: Folder with the collection ``cranfield``.
        rounds: Runs of each peer that count.
        warmup: Runs of each peer before.
        scale: Part of the cases, to try the script out.
    """

    perf: Path
    venvs: Path
    python: Path
    local_python: Path
    data: Path | None
    rounds: int
    warmup: int
    scale: float

    def count(self, cases: int) -> int:
        return max(1, round(cases * self.scale))

    def workload(self, cases: int = 1, **settings: float) -> Workload:
        return Workload(self.perf / "peers", SUITE, self.count(cases), **settings)  # type: ignore[arg-type]

    def plain(self, name: str = "pytest", command: str = PLAIN) -> Peer:
        return Peer(name, command, self.venvs / "plain" / "bin" / "python")

    def own(self, name: str = "own", more: str = "", command: str = OWN) -> Peer:
        return Peer(name, f"{command} {more}".strip(), self.python)

    def measure(self, workload: Workload, *peers: Peer) -> dict[str, Figures]:
        """Measure, print the table, and return the medians."""
        figures = measure(workload, peers, rounds=self.rounds, warmup=self.warmup)
        medians = {name: median(runs) for name, runs in figures.items()}
        print("\n| peer | runs | wall s (min) | cpu s (min) | peak MiB |")
        print("|---|---|---|---|---|")
        for name, runs in figures.items():
            middle = medians[name]
            wall, cpu = min(run.wall for run in runs), min(run.cpu for run in runs)
            print(
                f"| {name} | {len(runs)} | {middle.wall:.3f} ({wall:.3f}) |"
                f" {middle.cpu:.3f} ({cpu:.3f}) | {middle.peak:.0f} |",
                flush=True,
            )
        return medians


Row = Callable[[Context], list[Value]]


# --- rows that the peer comparison measures itself ---------------------------


def _compared(context: Context, peers: str, *arguments: str) -> dict[str, dict[str, float]]:
    """Run ``bench.py``, show its table, and return its medians by peer."""
    with tempfile.TemporaryDirectory(prefix="heta-speed-") as temporary:
        path = Path(temporary) / "medians.json"
        command = [sys.executable, str(context.perf / "bench.py"), "run", *arguments]
        command += ["--venvs", str(context.venvs), "--peers", peers, "--timeout", "600"]
        command += ["-n", str(context.rounds), "--warmup", str(context.warmup)]
        command += ["--own-python", str(context.python), "--own-dir", str(SUITE)]
        command += ["--own-cmd", OWN, "--json", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(f"\n{done.stdout}", flush=True)
        if done.returncode or not path.exists():
            raise MeasuringError(done.stderr)
        medians: dict[str, dict[str, float]] = json.loads(path.read_text("utf-8"))["median"]
    missing = [peer for peer in peers.split(",") if peer not in medians]
    if missing:
        raise MeasuringError(f"no figures of {', '.join(missing)}")
    return medians


def _cases(cases: int, target: float, limit: float, context: Context) -> list[Value]:
    found = _compared(context, "floor,pytest,heta,own", "--cases", str(context.count(cases)))
    base = found["pytest"]["cpu"]
    return [
        Value("CPU / pytest", found["own"]["cpu"] / base, target, limit),
        Value("CPU of Heta's runner / pytest", found["heta"]["cpu"] / base),
    ]


def _units(context: Context) -> list[Value]:
    units = context.count(4_000)
    arguments = ["--cases", str(5 * units), "--units", str(units), "--base", "pytest-units"]
    found = _compared(context, "pytest-units,own", *arguments)
    ratio = found["own"]["cpu"] / found["pytest-units"]["cpu"]
    return [Value("CPU / class fixtures", ratio, 0.80, 1.0)]


def _latency(kind: str, conc: int, limits: tuple[float, float], context: Context) -> list[Value]:
    arguments = ["--cases", str(context.count(400)), "--lat", kind, "--conc", str(conc)]
    found = _compared(context, "floor,own", *arguments, "--base", "floor")
    ratio = found["own"]["window"] / found["floor"]["window"]
    return [Value("query window / floor", ratio, *limits)]


# --- rows of our own ---------------------------------------------------------


def _heta(context: Context) -> Peer:
    return Peer("heta", "{py} heta_runner.py", context.venvs / "heta" / "bin" / "python")


def _builds(context: Context) -> list[Value]:
    """Compare builds with those of Heta's runner, and count ours.

    They are CPU time of one thread each: one process can only save what is
    around them.
    """
    units = context.count(200)
    workload = replace(context.workload(), cases=5 * units, units=units, build_ms=30)
    serial, workers = (
        replace(
            context.own(name, more),
            environment={"HETA_SPEED_BUILDS": "builds.txt"},
            read=_count_builds,
        )
        for name, more in (("own", ""), ("own, two workers", "-n 2"))
    )
    found = context.measure(workload, _heta(context), serial, workers)
    runner = found["heta"].wall
    return [
        Value("wall of two workers / Heta's runner", found[workers.name].wall / runner, 0.7, 0.8),
        Value("wall / Heta's runner", found[serial.name].wall / runner),
        *(
            Value(f"builds of {peer.name}", found[peer.name].notes["builds"], units, units)
            for peer in (serial, workers)
        ),
    ]


def _count_builds(folder: Path) -> Mapping[str, float]:
    return {"builds": len((folder / "builds.txt").read_text("utf-8").splitlines())}


def _protocol(context: Context) -> list[Value]:
    found = context.measure(
        context.workload(20_000),
        context.plain(),
        context.own("own, ordinary protocol", "--heta-protocol=pytest"),
    )
    ratio = found["own, ordinary protocol"].cpu / found["pytest"].cpu
    return [Value("CPU / pytest", ratio, 1.20, 1.30)]


def _junit(context: Context) -> list[Value]:
    found = context.measure(
        context.workload(20_000),
        context.plain("pytest", f"{PLAIN} --junitxml=junit.xml"),
        context.own("own", "--junitxml=junit.xml"),
    )
    return [
        Value("CPU / pytest, both with JUnit", found["own"].cpu / found["pytest"].cpu, 0.40, 0.50)
    ]


def _session(context: Context) -> list[Value]:
    def import_both(folder: Path) -> None:
        conftest = folder / "pytest_plain" / "conftest.py"
        conftest.write_text(f"import numpy, pydantic\n{conftest.read_text('utf-8')}", "utf-8")

    importing = context.own("pytest, importing numpy and pydantic", command=PLAIN)
    bare = context.own("pytest, same environment", command=PLAIN)
    found = context.measure(
        context.workload(225),
        replace(importing, prepare=import_both),
        bare,
        context.plain("pytest, its own environment"),
        context.own(),
    )
    own = found["own"].cpu
    return [
        Value(
            "CPU / pytest importing numpy and pydantic", own / found[importing.name].cpu, 1.15, 1.30
        ),
        Value("CPU / pytest, same environment", own / found[bare.name].cpu),
        Value("CPU / pytest, its own environment", own / found["pytest, its own environment"].cpu),
    ]


def _memory(context: Context) -> list[Value]:
    """Compare peaks, ours with full responses; ten results of 120 characters each."""
    words = {"HETA_SPEED_WORDS": "20"}
    full = "--heta-responses=full"
    empty = replace(_empty_session(context, "empty session"), environment=words)
    one = replace(context.own("own, one case", full), environment={**words, "PERF_CASES": "1"})
    found = context.measure(
        context.workload(20_000),
        context.plain(),
        _heta(context),
        empty,
        replace(one, checked=False),
        replace(context.own("own", full), environment=words),
    )
    own = found["own"].peak
    return [
        Value("MiB over an empty session", own - found["empty session"].peak, 130, 200),
        Value("MiB over a session of one case", own - found["own, one case"].peak),
        Value("MiB of pytest", found["pytest"].peak),
        Value("MiB of Heta's runner", found["heta"].peak),
    ]


def _shards(context: Context) -> list[Value]:
    command = "{py} -m pytest -q own --heta-recipe=own/recipe.py:cpu_recipe"
    found = context.measure(
        context.workload(2_000),
        context.own("serial", command=command),
        context.own("two workers", "-n 2", command=command),
    )
    return [Value("wall / serial", found["two workers"].wall / found["serial"].wall, 0.60, 0.75)]


def _collection(context: Context) -> list[Value]:
    workload = context.workload(100_000)
    plain = replace(context.plain(command=f"{PLAIN} --collect-only"), checked=False)
    own = replace(context.own(more="--collect-only"), checked=False)
    found = context.measure(workload, plain, own)
    more = (found["own"].cpu - found["pytest"].cpu) / workload.cases * 1e6
    return [
        Value("µs CPU over pytest per item", more, 25, 25),
        Value("MiB", found["own"].peak, 450, 450),
        Value("MiB of pytest", found["pytest"].peak),
    ]


def _empty_session(context: Context, name: str, more: str = "") -> Peer:
    peer = context.own(name, more, command="{py} -m pytest -q empty")
    return replace(
        peer,
        prepare=lambda folder: (folder / "empty").mkdir(),
        exit_codes=(NO_TESTS,),
        checked=False,
    )


def _start(context: Context) -> list[Value]:
    workload = Workload(None, SUITE)
    found = context.measure(
        workload,
        _empty_session(context, "without the plugin", "-p no:heta"),
        _empty_session(context, "with the plugin"),
    )
    ratio = found["with the plugin"].cpu / found["without the plugin"].cpu
    return [Value("CPU / -p no:heta", ratio, 1.10, 1.15)]


def _cache(recipe: str, context: Context) -> list[Value]:
    """Run Cranfield twice on one cache; each round begins with an empty one."""
    if context.data is None:
        raise MeasuringError("name the folder with cranfield/ by --data")
    environment = {"HETA_DATA_DIR": str(context.data)}
    with tempfile.TemporaryDirectory(prefix="heta-speed-") as temporary:
        cache = Path(temporary) / "cache"
        command = f"{{py}} -m pytest -q {CRANFIELD} --heta-recipe={recipe} --heta-no-gates"
        command += f" --heta-cache-dir={cache} --heta-report=json:report.json -p no:cacheprovider"
        first = Peer(
            "first run",
            f"{command} --heta-rebuild",
            context.local_python,
            environment,
            read=_reported_builds,
            checked=False,
        )
        second = replace(first, name="second run", command=command)
        found = context.measure(Workload(None, SUITE), first, second)
    once, again = found["first run"], found["second run"]
    if again.notes["built"]:
        raise MeasuringError(f"the second run built {again.notes['built']:.0f} knowledge bases")
    load = again.notes["load"] / once.notes["build"]
    if recipe == "local":
        return [
            Value("load / build", load, 0.3, 0.5),
            Value("wall / first run", again.wall / once.wall),
        ]
    return [
        Value("wall / first run", again.wall / once.wall, 0.2, 0.35),
        Value("load / build", load),
    ]


def _reported_builds(folder: Path) -> Mapping[str, float]:
    (report,) = json.loads((folder / "report.json").read_text("utf-8"))["reports"]
    builds = report["unit_builds"]
    return {
        "built": sum(not build.get("reused") for build in builds),
        "build": sum(build["build_seconds"] or 0 for build in builds),
        "load": sum(build.get("load_seconds") or 0 for build in builds),
    }


ROWS: Final[Mapping[str, Row]] = {
    "cases-20000": partial(_cases, 20_000, 0.25, 0.40),
    "cases-2000": partial(_cases, 2_000, 0.40, 0.50),
    "junit": _junit,
    "protocol": _protocol,
    "units": _units,
    "session": _session,
    "memory": _memory,
    "latency-8": partial(_latency, "fixed", 8, (1.03, 1.10)),
    "latency-32": partial(_latency, "fixed", 32, (1.06, 1.15)),
    "lognormal-8": partial(_latency, "lognormal", 8, (1.03, 1.10)),
    "lognormal-32": partial(_latency, "lognormal", 32, (1.03, 1.10)),
    "builds": _builds,
    "shards": _shards,
    "cache-minilm": partial(_cache, "local-minilm"),
    "cache-local": partial(_cache, "local"),
    "collect": _collection,
    "start": _start,
}
