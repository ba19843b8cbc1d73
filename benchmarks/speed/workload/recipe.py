"""Recipes for the workload that the peers share: its own retriever, with nothing around it.

The module ``workload`` comes with the peer comparison, which says by
environment variables how many cases and units there are and how long a query
takes.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import workload as w
from workload_cases import BY_QUERY

CPU_MS: Final = float(os.environ.get("HETA_SPEED_CPU_MS", "5"))
"""CPU milliseconds of a query of `cpu_recipe`."""

BUILDS: Final = os.environ.get("HETA_SPEED_BUILDS")
"""File that gets a line for each build, if it is wanted."""

RESULT_TEXT: Final = "words " * int(os.environ.get("HETA_SPEED_WORDS", "0"))
"""Text of each result; none by default, as for the peers."""

Ranked = Sequence[str]
Response = dict[str, list[dict[str, Any]]]


def response_of(ranked: Ranked) -> Response:
    """Return the ranked ids as a response."""
    if RESULT_TEXT:
        return {"results": [{"id": document_id, "text": RESULT_TEXT} for document_id in ranked]}
    return {"results": [{"id": document_id} for document_id in ranked]}


def _unit_of(name: str) -> int:
    """Return the workload's number of the run unit in a knowledge base's name."""
    for part in name.split("-"):
        if part[:1] == "u" and part[1:].isdecimal():
            return int(part[1:])
    return 0


class AsyncKnowledgeBase:
    """Asks the workload's retriever; it waits as long as the case's latency says."""

    def __init__(self, built: Mapping[str, int]) -> None:
        self.built = built

    async def query(self, text: str) -> Response:
        return response_of(await w.retrieve(BY_QUERY[text]))


class SyncKnowledgeBase(AsyncKnowledgeBase):
    """The same without an event loop, as the ordinary peers ask."""

    def query(self, text: str) -> Response:  # type: ignore[override]
        return response_of(w.retrieve_sync(BY_QUERY[text]))


class CpuKnowledgeBase(AsyncKnowledgeBase):
    """Computes for `CPU_MS` of this thread's CPU time at each query."""

    def query(self, text: str) -> Response:  # type: ignore[override]
        end = time.thread_time() + CPU_MS / 1000
        number = 1
        while time.thread_time() < end:
            for _ in range(200):
                number = (number * 1103515245 + 12345) & 0x7FFFFFFF
        return response_of(BY_QUERY[text].ranked)


class Recipe:
    """Builds one kind of knowledge base by the workload's own build.

    Args:
        name: Name of the recipe.
        kind: What it builds.
        max_concurrency: Queries at once, where the recipe says.
    """

    def __init__(
        self,
        name: str,
        kind: Callable[[Mapping[str, int]], AsyncKnowledgeBase],
        max_concurrency: int | None,
    ) -> None:
        self.name = name
        self.kind = kind
        if max_concurrency is not None:
            self.max_concurrency = max_concurrency

    def manifest(self) -> Mapping[str, Any]:
        return {"name": self.name, "build_ms": w.BUILD_MS}

    def create(self, *, name: str) -> AsyncKnowledgeBase:
        if BUILDS:
            with Path(BUILDS).open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")
        return self.kind(w.build_kb(_unit_of(name)))


class SavedRecipe(Recipe):
    """A recipe whose knowledge bases can be kept and loaded."""

    def save(self, knowledge_base: AsyncKnowledgeBase, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        text = json.dumps(dict(knowledge_base.built))
        (path / "built.json").write_text(text, encoding="utf-8")

    def load(self, path: Path) -> AsyncKnowledgeBase:
        return self.kind(json.loads((path / "built.json").read_text(encoding="utf-8")))


recipe = Recipe("workload", AsyncKnowledgeBase, w.CONC)
sync_recipe = Recipe("workload-sync", SyncKnowledgeBase, w.CONC)
cpu_recipe = SavedRecipe("workload-cpu", CpuKnowledgeBase, None)
