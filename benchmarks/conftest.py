"""Leaves ``speed/`` out of a run of the suites, unless it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

SPEED = Path(__file__).resolve().parent / "speed"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the folder when no argument is it, or within it.

    Speed is measured alone: it would make every run of the suites longer, and
    they would disturb what it measures.
    """
    if collection_path.name != SPEED.name or collection_path.resolve() != SPEED:
        return None
    folder = config.invocation_params.dir
    named = ((folder / argument.partition("::")[0]).resolve() for argument in config.args)
    return None if any(path.is_relative_to(SPEED) for path in named) else True
