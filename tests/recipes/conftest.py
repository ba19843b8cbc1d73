"""A store in memory, and small models that need no package."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from pytest_heta.recipes.local import LocalRecipe


class MemoryStore:
    """An object store; a document is its content, or content and metadata."""

    def __init__(self, documents: Mapping[str, str | bytes | tuple[str | bytes, Any]]) -> None:
        self.contents: dict[str, bytes] = {}
        self.about: dict[str, Any] = {}
        for key, document in documents.items():
            content, about = document if isinstance(document, tuple) else (document, None)
            self.contents[key] = content.encode() if isinstance(content, str) else content
            self.about[key] = about

    def get(self, key: str) -> bytes:
        return self.contents[key]

    def open(self, key: str) -> BinaryIO:
        return io.BytesIO(self.contents[key])

    def exists(self, key: str) -> bool:
        return key in self.contents

    def list(self, prefix: str = "") -> Iterable[str]:
        return (key for key in self.contents if key.startswith(prefix))

    def metadata(self, key: str) -> Any:
        return self.about[key]


class BareStore:
    """An object store with nothing but what the protocol asks for."""

    def __init__(self, store: MemoryStore) -> None:
        self.get, self.open, self.exists, self.list = (
            store.get,
            store.open,
            store.exists,
            store.list,
        )


class WordEmbedding:
    """A word is a direction: texts are alike when they share words."""

    name = "words-1"
    dimension = 64

    def __init__(self) -> None:
        self.document_calls: list[int] = []

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.document_calls.append(len(texts))
        return self._embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> Any:
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> Any:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, zlib.crc32(word.encode()) % self.dimension] += 1
        return vectors


class LengthReranker:
    """Longer texts are better."""

    name = "length-1"

    def __init__(self) -> None:
        self.given: list[str] = []

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        self.given = list(texts)
        return [len(text) for text in texts]


def key_of(document_id: str, name: str = "text.txt") -> str:
    return f"raw/benchmarks/demo/test/{document_id}/{name}"


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Any]:
    """Return a function: documents by id, and a recipe or its settings, to a knowledge base."""

    def function(
        documents: Mapping[str, Any], recipe: LocalRecipe | None = None, **settings: Any
    ) -> Any:
        store = MemoryStore({key_of(name): content for name, content in documents.items()})
        if recipe is None:
            recipe = LocalRecipe(**{"embedding": WordEmbedding(), **settings})
        workspace = tmp_path / "workspace"
        return recipe.create(
            name="demo", objects=store, source_keys=list(store.contents), workspace=workspace
        )

    return function


@pytest.fixture
def memory_store() -> type[MemoryStore]:
    return MemoryStore


@pytest.fixture
def bare_store() -> type[BareStore]:
    return BareStore


@pytest.fixture
def word_embedding() -> type[WordEmbedding]:
    return WordEmbedding


@pytest.fixture
def length_reranker() -> type[LengthReranker]:
    return LengthReranker


@pytest.fixture
def raw_key() -> Callable[..., str]:
    return key_of


@pytest.fixture
def found() -> Callable[[Any], list[str]]:
    """Return the document ids of a response, in order."""
    return lambda response: [result.source["document_id"] for result in response.results]
