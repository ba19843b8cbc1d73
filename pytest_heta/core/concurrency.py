"""How many queries are asked at the same time."""

from __future__ import annotations

from typing import Final

from pytest_heta.core._loop import is_coroutine_function
from pytest_heta.errors import RecipeInvalidError, shown

__all__ = ["LOOKAHEAD", "has_coroutine_query", "query_concurrency", "recipe_concurrency"]

DEFAULT_CONCURRENCY: Final = 8
"""Queries at the same time, where ``query`` is a coroutine function."""

LOOKAHEAD: Final = 16
"""Samples that are asked ahead for each query at the same time: one slow query stops few."""


def recipe_concurrency(recipe: object) -> int | None:
    """Return the queries that a recipe's knowledge bases take at the same time, if it says so.

    Raises:
        RecipeInvalidError: if ``max_concurrency`` is not a whole number from 1.
    """
    limit = getattr(recipe, "max_concurrency", None)
    if limit is None or (type(limit) is int and limit >= 1):
        return limit
    raise RecipeInvalidError(
        f"recipe {getattr(recipe, 'name', '?')!r}: max_concurrency = {shown(limit)} is not allowed",
        hint="use a whole number from 1",
    )


def has_coroutine_query(knowledge_base: object) -> bool:
    """Whether a knowledge base's ``query`` is a coroutine function."""
    try:
        function = getattr(knowledge_base, "query", None)
        return callable(function) and is_coroutine_function(function)
    except Exception:  # noqa: BLE001 - attributes of users' objects
        return False


def query_concurrency(chosen: int | None, recipe: object, *, coroutines: bool) -> int:
    """Return how many queries are asked at the same time.

    Args:
        chosen: What the user chose, if anything; it comes first.
        recipe: The recipe, whose ``max_concurrency`` comes next.
        coroutines: Whether ``query`` is a coroutine function. One that is not
            is asked alone, in the thread that runs the tests, if nobody says
            that it may be asked otherwise.
    """
    return chosen or recipe_concurrency(recipe) or (DEFAULT_CONCURRENCY if coroutines else 1)
