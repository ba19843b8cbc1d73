"""What the measured code works on: synthetic, the same in every run."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pytest

if TYPE_CHECKING:
    from pytest_heta.recipes.local import LocalRecipe

# Its suite needs the module of the peer comparison; the folder is importable, but no file.
_workload = find_spec("workload")
collect_ignore = [] if _workload and _workload.origin else ["workload"]

DOCUMENT_COUNT = 2_000
WORDS_A_DOCUMENT = 100
VOCABULARY = 20_000
QUERY_COUNT = 200


class TextStore:
    """An object store of texts in memory."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._contents = {key: text.encode() for key, text in texts.items()}

    def get(self, key: str) -> bytes:
        return self._contents[key]

    def open(self, key: str) -> BinaryIO:
        return io.BytesIO(self._contents[key])

    def exists(self, key: str) -> bool:
        return key in self._contents

    def list(self, prefix: str = "") -> Iterable[str]:
        return (key for key in self._contents if key.startswith(prefix))


class Words:
    """Words that are as rare as in real texts: the n-th is 1/n as frequent as the first."""

    def __init__(self) -> None:
        self._choice = random.Random(5)
        self._words = [f"word{number}" for number in range(VOCABULARY)]
        self._weights = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))

    def text(self, count: int) -> str:
        return " ".join(self._choice.choices(self._words, cum_weights=self._weights, k=count))


@pytest.fixture(scope="session")
def words() -> Words:
    return Words()


@pytest.fixture(scope="session")
def lexical_recipe() -> LocalRecipe:
    """The ``local`` recipe with its lexical mode alone, which needs no model."""
    pytest.importorskip("bm25s", reason="run: pip install 'pytest-heta[local]'")
    from pytest_heta.recipes.local import LocalRecipe  # noqa: PLC0415 - its packages are optional

    return LocalRecipe(modes=["full_text_search"])


@pytest.fixture(scope="session")
def lexical_knowledge_base(
    lexical_recipe: LocalRecipe, words: Words, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    texts = {
        f"raw/benchmarks/speed/test/d{number}/text.txt": words.text(WORDS_A_DOCUMENT)
        for number in range(DOCUMENT_COUNT)
    }
    return lexical_recipe.create(
        name="speed",
        objects=TextStore(texts),
        source_keys=list(texts),
        workspace=tmp_path_factory.mktemp("workspace"),
    )


@pytest.fixture(scope="session")
def queries(words: Words) -> list[str]:
    return [words.text(6) for _ in range(QUERY_COUNT)]


@pytest.fixture(scope="session")
def saved_knowledge_base(
    lexical_recipe: LocalRecipe,
    lexical_knowledge_base: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "speed"
    lexical_recipe.save(lexical_knowledge_base, folder)
    return folder
