"""A small world for the plugin's tests: a dataset, a recipe and a suite file."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

DOCUMENTS = [
    {"document_id": "apple", "text": "apple pie with cinnamon"},
    {"document_id": "bike", "text": "mountain bike repair"},
    {"document_id": "cloud", "text": "cloud types and rain"},
    {"document_id": "drum", "text": "drum tuning for beginners"},
]

# Hypothesis, where it is not in use, takes a second to say so at the end of a run.
NO_CACHE = "-pno:cacheprovider"
QUIET = ["-pno:randomly", NO_CACHE, "-pno:hypothesispytest", "-Werror"]
if find_spec("pytest_asyncio"):
    # It wants to be told.
    QUIET.append("-oasyncio_default_fixture_loop_scope=function")

CASES = [
    {"case_id": "pie", "query": "apple pie", "evidence": ["apple"], "labels": {"kind": "food"}},
    {"case_id": "repair", "query": "bike repair", "evidence": ["bike"], "labels": {"kind": "tech"}},
    {"case_id": "rain", "query": "rain cloud", "evidence": ["cloud"], "labels": {"kind": "sky"}},
]

RECIPE = """
import json, os, pathlib


class KnowledgeBase:
    available_queries = ("overlap", "backwards")

    def __init__(self, texts):
        self.texts = texts

    def query(self, text, *, mode, top_k, options=None):
        words = set(text.split())
        ranked = sorted(self.texts.items(), key=lambda item: -len(words & set(item[1].split())))
        if mode == "backwards":
            ranked.reverse()
        return {
            "results": [
                {"id": key + "#0", "text": body, "score": 1.0, "source": {"source_key": key}}
                for key, body in ranked[:top_k]
            ]
        }


class Recipe:
    name = "toy"
    available_queries = ("overlap", "backwards")

    def manifest(self):
        return {"kind": "word overlap"}

    def create(self, *, name, objects, source_keys, workspace):
        builds = os.environ.get("TOY_BUILDS")
        if builds:
            with (pathlib.Path(builds) / f"{name}-{os.getpid()}").open("a") as file:
                file.write("x")
        return KnowledgeBase({key: objects.get(key).decode("utf-8") for key in source_keys})


recipe = Recipe()
"""

SUITE = """
from pathlib import Path
from pytest_heta import JsonlBenchmark, suite
{before}
toys = suite(
    JsonlBenchmark(Path(__file__).parent / "toys", name="toys"),
    evaluators={evaluators},
    {arguments}
)
"""

RECORDING = """
class KnowledgeBase(KnowledgeBase):
    def query(self, text, *, mode, top_k, options=None):
        with pathlib.Path(__file__).with_name("asked.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps([text, mode, top_k, options]) + "\\n")
        return super().query(text, mode=mode, top_k=top_k, options=options)
"""


SAVING = """
class Recipe(Recipe):
    def save(self, knowledge_base, path):
        (path / "texts.json").write_text(json.dumps(knowledge_base.texts), encoding="utf-8")

    def load(self, path):
        return KnowledgeBase(json.loads((path / "texts.json").read_text(encoding="utf-8")))

recipe = Recipe()
"""


def write_jsonl(path: Path, records: Iterable[Any]) -> None:
    """Write one JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


class World:
    """A folder with a dataset ``toys``, ``recipe.py`` and ``bench_toys.py``.

    Attributes:
        quiet: Arguments that keep other plugins out of a run.
    """

    quiet = tuple(QUIET)

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.dataset()
        self.recipe()
        self.suite()

    def dataset(
        self,
        cases: Iterable[Any] = CASES,
        documents: Iterable[Any] = DOCUMENTS,
        name: str = "toys",
    ) -> Path:
        """Write a JSONL dataset."""
        folder = self.path / name
        write_jsonl(folder / "documents.jsonl", documents)
        write_jsonl(folder / "cases.jsonl", cases)
        return folder

    def recipe(self, source: str = RECIPE, name: str = "recipe.py") -> None:
        """Write the recipe's module."""
        (self.path / name).write_text(dedent(source), encoding="utf-8")

    def extend_recipe(self, source: str) -> None:
        """Append to the recipe's module, for example ``class KnowledgeBase(KnowledgeBase)``."""
        path = self.path / "recipe.py"
        path.write_text(path.read_text(encoding="utf-8") + dedent(source), encoding="utf-8")

    def record_queries(self) -> None:
        """Let the recipe's knowledge bases write down what they are asked."""
        self.extend_recipe(RECORDING)

    def save_knowledge_bases(self) -> None:
        """Let the recipe save and load its knowledge bases."""
        self.extend_recipe(SAVING)

    def asked(self) -> list[list[Any]]:
        """Return text, mode, top_k and options of each recorded query, in order."""
        lines = (self.path / "asked.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def suite(
        self,
        arguments: str = "",
        *,
        before: str = "",
        evaluators: str = '["recall@1", "ndcg@10"]',
        extra: str = "",
        name: str = "bench_toys.py",
    ) -> None:
        """Write the suite file; ``arguments`` go into the call of ``suite``."""
        text = SUITE.format(before=dedent(before), evaluators=evaluators, arguments=arguments)
        (self.path / name).write_text(text + dedent(extra), encoding="utf-8")

    def ini(self, *lines: str) -> None:
        """Write the ini file."""
        self.pytester.makeini("[pytest]\n" + "\n".join(lines) + "\n")

    def run(
        self, *args: str, recipe: str | None = "recipe.py:recipe", cache: bool = False
    ) -> pytest.RunResult:
        """Run pytest in this process."""
        given = [] if recipe is None else [f"--heta-recipe={recipe}"]
        quiet = [word for word in self.quiet if not (cache and word == NO_CACHE)]
        return self.pytester.runpytest_inprocess(*quiet, *given, *args)

    def usage_error(self, *args: str, recipe: str | None = "recipe.py:recipe") -> str:
        """Run pytest, which refuses to run, and return the line that says why.

        It begins with a code, which is left out if it is that of options.
        """
        result = self.run(*args, recipe=recipe)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        (line,) = [line for line in result.errlines if line.startswith("ERROR: ")]
        assert re.match(r"ERROR: \[[a-z-]+\] ", line)
        return line.removeprefix("ERROR: ").removeprefix("[option-invalid] ")

    def report(self, path: str = "report.json") -> dict[str, Any]:
        """Return the only report of the report file, parsed strictly."""
        (report,) = self.reports(path)
        return report

    def reports(self, path: str = "report.json") -> list[dict[str, Any]]:
        """Return the reports of the report file, parsed strictly."""
        text = (self.path / path).read_text(encoding="utf-8")

        def refuse(name: str) -> None:
            raise AssertionError(f"{name} is not JSON")

        reports: list[dict[str, Any]] = json.loads(text, parse_constant=refuse)["reports"]
        return reports


@pytest.fixture
def world(pytester: pytest.Pytester) -> World:
    """The small world, in an empty folder."""
    return World(pytester)


@pytest.fixture
def collected_ids() -> Callable[[pytest.RunResult], list[str]]:
    """Return the node ids that ``--collect-only -q`` printed."""
    return lambda result: [line for line in result.outlines if "::" in line]


HARMFUL_CASES = """
harmful = "nul \\x00 esc \\x1b[31m fffe \\ufffe lone \\ud800 <b>&\\"' 中 🚲"

class JsonlBenchmark(JsonlBenchmark):
    async def cases(self, prepared):
        async for case in super().cases(prepared):
            yield case.model_copy(
                update={
                    "case_id": f"{case.case_id} {harmful}",
                    "query": harmful,
                    "labels": {"text": harmful},
                }
            )
"""


@pytest.fixture
def harmful_cases() -> str:
    """Source of a benchmark whose ids, queries and labels hold what terminals and XML fear."""
    return HARMFUL_CASES


@pytest.fixture
def count_builds(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], int]:
    """Return a function that counts the knowledge bases that were built so far."""
    folder = tmp_path_factory.mktemp("builds")
    monkeypatch.setenv("TOY_BUILDS", str(folder))
    return lambda: sum(len(path.read_text(encoding="utf-8")) for path in folder.iterdir())


UNSTABLE_KEYS = frozenset(
    # The cold sample of a unit and mode is the first that was asked.
    {"report_id", "started_at", "finished_at", "build_seconds", "worker", "latency_ms", "cold"}
    | {"load_seconds", "run_id", "ended_at", "seconds", "duration_seconds"}
    # How many processes asked at the same time.
    | {"concurrency"}
)


@pytest.fixture
def comparable() -> Callable[[Any], Any]:
    """Return a report without times, ids of the run and names of workers."""

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: strip(item)
                for key, item in value.items()
                if key not in UNSTABLE_KEYS and not key.endswith("_ms")
            }
        return [strip(item) for item in value] if isinstance(value, list) else value

    return strip


@pytest.fixture
def builds(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, int]]:
    """Return how often the toy recipe built each unit, by unit id."""
    folder = world.path / "builds"
    folder.mkdir()
    monkeypatch.setenv("TOY_BUILDS", str(folder))

    def count() -> dict[str, int]:
        counts: dict[str, int] = {}
        for path in folder.iterdir():
            # Written as {benchmark}-{unit}-{digest}-{process}.
            unit = path.name.split("-", 1)[1].rsplit("-", 2)[0]
            counts[unit] = counts.get(unit, 0) + len(path.read_text())
        return counts

    return count


COUNTING = """
import asyncio, signal

class KnowledgeBase(KnowledgeBase):
    async def query(self, text, *, mode, top_k, options=None):
        with pathlib.Path(__file__).with_name("asked.txt").open("a") as file:
            file.write(text + "\\n")
        DO = os.environ.get("DO", "")
        if text == os.environ.get("AT", "word7") and DO:
            exec(DO)
            await asyncio.sleep(float(os.environ.get("THEN_WAIT", "0")))
        return super().query(text, mode=mode, top_k=top_k)

class Recipe(Recipe):
    available_queries = ("overlap",)
    max_concurrency = 1
    def create(self, *, name, objects, source_keys, workspace):
        with pathlib.Path(__file__).with_name("built.txt").open("a") as file:
            file.write("x")
        return KnowledgeBase({key: objects.get(key).decode() for key in source_keys})

recipe = Recipe()
"""


class Asked:
    """What the recipe was asked, counted in files beside it.

    Case ``c7`` asks ``word7`` and is answered by document ``d7``; of the others it is
    likewise. When it (or the query in the environment's ``AT``) is asked, the code in
    ``DO`` is executed, and its answer takes ``THEN_WAIT`` seconds.

    Attributes:
        cases: The cases of the dataset.
        documents: Its documents.
        words: The queries in order.
    """

    def __init__(self, world: World, count: int = 12) -> None:
        self._world = world
        numbers = range(count)
        self.words = [f"word{number}" for number in numbers]
        self.documents = [{"document_id": f"d{n}", "text": f"word{n}"} for n in numbers]
        self.cases = [
            {"case_id": f"c{n}", "query": f"word{n}", "evidence": [f"d{n}"]} for n in numbers
        ]
        world.dataset(self.cases, self.documents)

    def _taken(self, name: str) -> list[str]:
        path = self._world.path / name
        lines = path.read_text().split() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def texts(self) -> list[str]:
        """Return the queries since the last call."""
        return self._taken("asked.txt")

    def builds(self) -> int:
        """Return the builds since the last call."""
        return len("".join(self._taken("built.txt")))


@pytest.fixture
def asked(world: World) -> Asked:
    """A dataset of 12 cases, and what is asked of it."""
    world.extend_recipe(COUNTING)
    return Asked(world)


@pytest.fixture
def run_elsewhere(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """Return a function that runs pytest in a process of its own, which may be killed."""

    def run(*arguments: str, do: str = "") -> pytest.RunResult:
        monkeypatch.setenv("DO", do)
        quiet = [word for word in world.quiet if word != "-pno:cacheprovider"]
        command = [sys.executable, "-m", "pytest", *quiet, "--heta-recipe=recipe.py:recipe"]
        result = world.pytester.run(*command, *arguments, timeout=60)
        monkeypatch.setenv("DO", "")
        return result

    return run
