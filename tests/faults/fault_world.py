"""A benchmark in a folder of its own, whose recipe lets things go wrong when it is told to."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LONGEST_S = 60
"""Seconds after which a process that has not ended hangs."""

UNITS = {"a": 8, "b": 8}
CASES = [f"{unit}{number}" for unit, count in UNITS.items() for number in range(count)]
GATE = "--heta-gate=overlap.recall@1 >= 1"

SERIAL: tuple[str, ...] = ()
DISTRIBUTED = ("-n2",)

INSIDE = '''
import fcntl, json, os, pathlib, resource, signal

HERE = pathlib.Path(__file__).resolve().parent
FAULT = json.loads(os.environ.get("FAULT") or "{}")


def note(*words):
    """Append a line to the log that the test reads, whole or not at all."""
    file = os.open(HERE / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, " ".join(words).encode() + b"\\n")
    os.close(file)


def moment(place):
    """Be at a place where something may happen: at the counted time, it does."""
    if FAULT.get("place") != place:
        return
    with (HERE / "counter").open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(b".")
        file.flush()
        number = file.tell()
    if "code" not in FAULT:
        if number >= FAULT["number"] and not (HERE / "released").exists():
            meet()
    elif number == FAULT["number"] or (number > FAULT["number"] and FAULT.get("again")):
        note("fault")
        exec(FAULT["code"], globals())


def meet():
    """Tell the test that this process has come to the place, and wait for its word."""
    with (HERE / "reached").open("wb", buffering=0) as file:
        file.write(b"%d\\n" % os.getpid())
    word = None
    while word is None:
        try:
            with (HERE / "go").open("rb", buffering=0) as file:
                word = file.read(1)
        except KeyboardInterrupt:
            if not FAULT.get("is_heedless"):
                raise

'''

RECIPE = """
import json

from inside import moment, note


class KnowledgeBase:
    available_queries = ("overlap",)

    def __init__(self, texts):
        self.texts = texts

    def query(self, text, *, mode, top_k, options=None):
        note("asked", text)
        moment("query")
        words = set(text.split())
        ranked = sorted(self.texts.items(), key=lambda item: -len(words & set(item[1].split())))
        answer = {
            "results": [
                {"id": key + "#0", "text": body, "score": 1.0, "source": {"source_key": key}}
                for key, body in ranked[:top_k]
            ]
        }
        note("answered", text)
        return answer


class Recipe:
    name = "toy"
    available_queries = ("overlap",)

    def manifest(self):
        return {"kind": "word overlap"}

    def create(self, *, name, objects, source_keys, workspace):
        moment("build")
        return KnowledgeBase({key: objects.get(key).decode("utf-8") for key in source_keys})


recipe = Recipe()
"""

SAVING = """
class Recipe(Recipe):
    def save(self, knowledge_base, path):
        note("built")
        (path / "texts.json").write_text(json.dumps(knowledge_base.texts), encoding="utf-8")

    def load(self, path):
        return KnowledgeBase(json.loads((path / "texts.json").read_text(encoding="utf-8")))

recipe = Recipe()
"""

SUITE = """
from pathlib import Path
from inside import moment
from pytest_heta import JsonlBenchmark, suite

class Judge:
    name = "judge"

    def evaluate(self, *, case, response):
        moment("evaluator")
        return {"name": "judge", "value": float(len(response.results))}

class Adapter(JsonlBenchmark):
    async def documents(self, prepared):
        async for document in super().documents(prepared):
            moment("document")
            yield document

toys = suite(
    Adapter(Path(__file__).parent / "toys", name="toys"),
    evaluators=["recall@1", "ndcg@10", Judge()],
)
"""


@dataclass
class Tally:
    """What a test did and found, in numbers that can be added up."""

    injected: int = 0
    finished: int = 0
    recovered: int = 0
    hangs: int = 0
    damaged_files: int = 0
    bad_answers: int = 0
    longest_end_s: float = 0.0


@dataclass(frozen=True)
class Ended:
    """A process that has ended.

    Attributes:
        code: Its exit code; negative for a signal.
        text: What it printed.
        seconds: How long it took from the kill to the end of it and all its children.
    """

    code: int
    text: str
    seconds: float

    def has_line(self, *parts: str) -> bool:
        """Whether it printed a line with all of these in it, in whatever order."""
        return any(all(part in line for part in parts) for line in self.text.splitlines())

    def says(self, pattern: str) -> bool:
        return re.search(pattern, self.text, re.MULTILINE) is not None


class FaultWorld:
    """A folder with a dataset of two units, a recipe and a suite, and runs in it."""

    def __init__(self, path: Path, tally: Tally) -> None:
        self.path = path
        self.tally = tally
        documents = [{"document_id": name, "text": f"word {name}"} for name in CASES]
        cases = [
            {"case_id": name, "query": name, "evidence": [name], "unit": name[0],
             "documents": [other for other in CASES if other[0] == name[0]]}
            for name in CASES
        ]  # fmt: skip
        self.write_jsonl("toys/documents.jsonl", documents)
        self.write_jsonl("toys/cases.jsonl", cases)
        self.write("inside.py", INSIDE)
        self.write("recipe.py", RECIPE)
        self.write("bench_toys.py", SUITE)
        self.write("pytest.ini", "[pytest]\n")
        for name in ("reached", "go"):
            os.mkfifo(path / name)

    def write(self, name: str, text: str) -> None:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text, encoding="utf-8")

    def write_jsonl(self, name: str, records: Iterable[Any]) -> None:
        self.write(name, "".join(json.dumps(record) + "\n" for record in records))

    def extend_recipe(self, source: str) -> None:
        self.write("recipe.py", (self.path / "recipe.py").read_text(encoding="utf-8") + source)

    # -- running ------------------------------------------------------------------

    def start(
        self,
        *arguments: str,
        fault: Mapping[str, Any] | None = None,
        runs: str | None = "runs",
        **process: Any,
    ) -> Run:
        """Start pytest in a process of its own."""
        command = [sys.executable, "-m", "pytest", "-ppytest_heta.plugin", "-pxdist", "-Werror"]
        command += ["--heta-recipe=recipe.py:recipe", GATE]
        command += [f"--heta-runs-dir={runs}"] if runs is not None else []
        known = {key: os.environ[key] for key in os.environ if not key.startswith("PYTEST_")}
        # Other plugins take longer to be imported than the run does.
        environment = {**known, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"}
        environment["FAULT"] = json.dumps(fault or {})
        self.tally.injected += fault is not None
        return Run(self, [*command, *arguments], environment, process)

    def run(self, *arguments: str, **more: Any) -> Ended:
        """Run pytest to its end."""
        return self.start(*arguments, **more).end()

    def resume(self, *arguments: str, **more: Any) -> Ended:
        """Go on with the last run."""
        return self.run("--heta-resume", *arguments, **more)

    # -- what came of it ------------------------------------------------------------

    def log(self) -> list[list[str]]:
        """Return what the recipe and the test noted, in order."""
        path = self.path / "log.txt"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return [line.split() for line in text.splitlines()]

    def note(self, word: str) -> None:
        """Note something between what the recipe notes."""
        with (self.path / "log.txt").open("ab", buffering=0) as file:
            file.write(word.encode() + b"\n")

    def asked(self) -> Counter[str]:
        """Return how often each case was asked."""
        return Counter(words[1] for words in self.log() if words[0] == "asked")

    def answered(self, *, before_fault: bool = False) -> set[str]:
        """Return the cases whose query returned."""
        found = set()
        for words in self.log():
            if before_fault and words[0] == "fault":
                break
            if words[0] == "answered":
                found.add(words[1])
        return found

    def report(self, name: str = "report.json") -> dict[str, Any]:
        """Return the only report of the report file."""
        (report,) = json.loads((self.path / name).read_text(encoding="utf-8"))["reports"]
        return report

    def has_report(self) -> bool:
        return (self.path / "report.json").exists()


class Run:
    """A pytest process that is going on.

    Attributes:
        process: It; its children share its standard error.
    """

    def __init__(
        self,
        world: FaultWorld,
        command: Sequence[str],
        environment: Mapping[str, str],
        arguments: Mapping[str, Any],
    ) -> None:
        self._world = world
        self._begin: float | None = None
        self._pipes = {
            name: os.open(world.path / name, os.O_RDWR | os.O_NONBLOCK)
            for name in ("reached", "go")
        }
        self.process = subprocess.Popen(
            command,
            cwd=world.path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **arguments,
        )

    def wait_for(self, count: int) -> list[int]:
        """Wait until so many processes have come to the place; return their ids in order."""
        text, end = b"", time.monotonic() + LONGEST_S
        while text.count(b"\n") < count:
            ready, _, _ = select.select([self._pipes["reached"]], [], [], 1)
            if ready:
                text += os.read(self._pipes["reached"], 100)
            elif self.process.poll() is not None or time.monotonic() > end:
                self._give_up(f"{count} processes should have come to the place, but {text!r}")
        return [int(line) for line in text.split()]

    def release(self) -> None:
        """Let all go on that wait at the place, now and later."""
        (self._world.path / "released").touch()
        os.write(self._pipes["go"], b"." * 100)

    def signal(self, number: signal.Signals, process: int | None = None) -> None:
        """Send a signal, to the first process if none is named."""
        os.kill(process or self.process.pid, number)
        self._begin = self._begin or time.monotonic()

    def end(self) -> Ended:
        """Wait for the end of it and of all its children, who share its standard error."""
        begin = self._begin or time.monotonic()
        try:
            output, _ = self.process.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            self._give_up("it did not end")
        seconds = time.monotonic() - begin
        for pipe in self._pipes.values():
            os.close(pipe)
        if self._begin is not None:
            self._world.tally.longest_end_s = max(self._world.tally.longest_end_s, seconds)
        return Ended(self.process.returncode, output.decode("utf-8", "replace"), seconds)

    def _give_up(self, why: str) -> None:
        self._world.tally.hangs += 1
        os.killpg(self.process.pid, signal.SIGKILL)
        output, _ = self.process.communicate()
        pytest.fail(f"{why}: {output.decode('utf-8', 'replace')}")


def comparable(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of a report by case, without what differs between any two runs."""

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: strip(item)
                for key, item in value.items()
                if key not in {"worker", "cold"} and not key.endswith("_ms")
            }
        return [strip(item) for item in value] if isinstance(value, list) else value

    results = report["case_results"]
    # How a result was come by is told in its metadata.
    found = {result["case_id"]: strip({**result, "metadata": None}) for result in results}
    assert len(found) == len(results)
    return found
