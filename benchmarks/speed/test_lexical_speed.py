"""How fast the embedded recipe answers a lexical query, and loads what it has built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_heta.core.cache import CacheKey, KnowledgeBaseCache

if TYPE_CHECKING:
    from pytest_heta.recipes.local import LocalRecipe

MODE = "full_text_search"


def test_bm25_query(
    benchmark: Callable[..., Any], lexical_knowledge_base: Any, queries: Sequence[str]
) -> None:
    texts = cycle(queries)

    response = benchmark(lambda: lexical_knowledge_base.query(next(texts), mode=MODE, top_k=10))

    assert len(response.results) == 10


def test_load_of_a_saved_knowledge_base(
    benchmark: Callable[..., Any],
    lexical_recipe: LocalRecipe,
    saved_knowledge_base: Path,
    lexical_knowledge_base: Any,
    queries: Sequence[str],
) -> None:
    loaded = benchmark(lexical_recipe.load, saved_knowledge_base)

    answers = [base.query(queries[0], mode=MODE) for base in (loaded, lexical_knowledge_base)]
    assert answers[0] == answers[1]


def test_load_of_a_cached_knowledge_base(
    benchmark: Callable[..., Any],
    lexical_recipe: LocalRecipe,
    lexical_knowledge_base: Any,
    queries: Sequence[str],
    tmp_path: Path,
) -> None:
    """The cache checks every file before it hands the folder out, and the recipe does again."""
    cache = KnowledgeBaseCache(tmp_path, max_bytes=1 << 30)
    key = CacheKey(digest="0" * 64, recipe="local", benchmark="speed", unit_id="u0")
    written = cache.begin(key)
    lexical_recipe.save(lexical_knowledge_base, written.saved)
    cache.publish(key, written, build_seconds=1.0)

    def load() -> Any:
        assert cache.find(key) is not None
        return lexical_recipe.load(cache.saved_at(key))

    loaded = benchmark(load)

    answers = [base.query(queries[0], mode=MODE) for base in (loaded, lexical_knowledge_base)]
    assert answers[0] == answers[1]
