"""What a run is about, part by part: results may be taken over only if none of it changed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

from pytest_heta.core._cache_key import description_digest
from pytest_heta.core._plain import canonical_json, plain
from pytest_heta.core._recipe_code import code_digest, is_ours, recipe_modules
from pytest_heta.core._recipe_state import (
    UndescribableError,
    instance_values,
    state_digest,
)
from pytest_heta.core.plan import BenchmarkPlan
from pytest_heta.core.snapshot import package_versions
from pytest_heta.models import BenchmarkCase

__all__ = ["changed_parts", "fingerprints_of"]

_ADDRESS: Final = re.compile(rb" at 0x[0-9a-f]+")
"""Where an object without a text of its own lies in memory."""

_NAMES: Final = {
    "recipe": "the recipe",
    "dataset": "queries, expectations or run units of the dataset",
    "documents": "the documents",
    "evaluators": "the evaluators",
    "top_k": "top_k",
    "options": "modes, query options, repeats, --heta-warmup or --heta-responses",
    "selection": "the selection of cases",
    "version": "the version of pytest-heta",
}
"""How people call the parts."""


def fingerprints_of(
    plan: BenchmarkPlan,
    evaluators: Iterable[object],
    recipe: object,
    *,
    cases: Mapping[str, BenchmarkCase],
    responses: str,
    warmup: int,
    selected_digest: str,
) -> dict[str, str]:
    """Return a hash for each part of what a plan's results depend on.

    Hashes are the same in every process. Attributes whose state cannot be told,
    such as a connection, are left out, and they alone.

    Args:
        plan: The plan.
        evaluators: Its evaluators, in order.
        recipe: Its recipe.
        cases: The cases with their expectations, by id; more than are planned is fine.
        responses: How much of a response a result keeps.
        warmup: Queries that are asked first.
        selected_digest: Hash of the samples that are selected.
    """
    description = _description(recipe, plan.recipe_manifest)
    return {
        "recipe": _hash(plan.recipe_name, description, _code(recipe)),
        "dataset": _dataset(plan, cases),
        "evaluators": _hash(*plan.metrics, *map(_evaluator, evaluators)),
        "top_k": str(plan.top_k),
        "options": _hash(
            plan.modes, _described(plan.options).decode(), plan.repeat, responses, warmup
        ),
        "selection": _hash(selected_digest),
        "version": str(package_versions().get("pytest-heta")),
    }


def changed_parts(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return what people call the parts that are not as they were."""
    parts = sorted({*before, *now}, key=[*_NAMES, *before, *now].index)
    return [_NAMES.get(part, part) for part in parts if before.get(part) != now.get(part)]


def _hash(*parts: object) -> str:
    return sha256(canonical_json(parts)).hexdigest()


def _dataset(plan: BenchmarkPlan, cases: Mapping[str, BenchmarkCase]) -> str:
    digest = sha256(_described(plan.benchmark.model_dump()))
    for case_id in plan.cases:
        text = _described(cases[case_id].model_dump())
        digest.update(b"%d " % len(text))
        digest.update(text)
    for unit in plan.units:
        digest.update(canonical_json([unit.unit_id, unit.document_ids, unit.case_ids]))
    return digest.hexdigest()


def _described(value: Any) -> bytes:
    """Return the text of a value, the same in every process: sets are in order."""
    text = canonical_json(plain(value, max_nodes=sys.maxsize, max_text=sys.maxsize))
    return _ADDRESS.sub(b"", text)


def _description(recipe: object, manifest: Mapping[str, Any]) -> Any:
    try:
        return description_digest(recipe)
    except UndescribableError:
        return [_described(manifest).decode(), _attributes(recipe)]


def _code(value: object) -> str | None:
    return code_digest(recipe_modules(value))


def _evaluator(evaluator: object) -> list[Any]:
    kind = type(evaluator)
    state: Any = _attributes(evaluator)
    if not is_ours(kind.__module__):
        with suppress(UndescribableError):
            state = state_digest(evaluator, None)  # with what its class consists of
    return [f"{kind.__module__}.{kind.__qualname__}", state, _evaluator_code(evaluator)]


def _attributes(value: object) -> dict[str, str | None]:
    """Return the hash of each attribute, None where its state cannot be told, as of a client."""
    return {name: _attribute(held) for name, held in sorted(instance_values(value).items())}


def _attribute(value: object) -> str | None:
    try:
        return state_digest([value], None)
    except UndescribableError:
        return None


def _evaluator_code(evaluator: object) -> str | None:
    # Ours are told by their names, and by the version.
    return None if is_ours(type(evaluator).__module__) else _code(evaluator)
