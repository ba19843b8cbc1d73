"""What the plans of a session are about, and which of their samples it asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256

import pytest

from pytest_heta.core._plain import canonical_json
from pytest_heta.core.fingerprint import fingerprints_of
from pytest_heta.core.plan import Sample
from pytest_heta.errors import HetaError
from pytest_heta.plugin.collect import sample_of, unit_node_of
from pytest_heta.plugin.recording import DOCUMENTS
from pytest_heta.plugin.state import PlanEntry, Run

__all__ = ["fingerprints", "selected_samples"]


def selected_samples(session: pytest.Session) -> Iterator[tuple[int, str, Sample]]:
    """Yield position, plan label and sample of each item of a benchmark."""
    for position, item in enumerate(session.items):
        unit = unit_node_of(item)
        if unit is not None:
            yield position, unit.entry.plan.label, sample_of(item)


def fingerprints(run: Run, session: pytest.Session) -> dict[str, dict[str, str]]:
    """Return what the session's plans are about, by plan label and part.

    Documents are read for it only where a run is resumed: results that were
    recorded with others must not be taken over.
    """
    by_label: dict[str, list[Sample]] = {}
    for _, label, sample in selected_samples(session):
        by_label.setdefault(label, []).append(sample)
    return {label: _of_plan(run, run.entries[label], by_label[label]) for label in by_label}


def _of_plan(run: Run, entry: PlanEntry, selected: Iterable[Sample]) -> dict[str, str]:
    parts = dict(
        fingerprints_of(
            entry.plan,
            entry.evaluators,
            entry.recipe,
            cases=entry.loaded.cases,
            responses=run.options.responses,
            warmup=run.options.warmup,
            # Other plugins may change the order, and repeat items.
            selected_digest=_digest_of(set(selected)),
        )
    )
    if run.recording.resumes:
        with suppress(HetaError):  # its units say so
            parts[DOCUMENTS] = run.staged(entry).facts.digest
    return parts


def _digest_of(samples: set[Sample]) -> str:
    return sha256(canonical_json(sorted(samples))).hexdigest()
