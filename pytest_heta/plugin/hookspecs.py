"""Hooks that conftest files and other plugins may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from pytest_heta.models import EvaluationCaseResult, EvaluationReport


def pytest_heta_case_completed(config: pytest.Config, result: EvaluationCaseResult) -> None:
    """Called on the controller when the result of a sample has arrived."""


def pytest_heta_report(config: pytest.Config, report: EvaluationReport) -> None:
    """Called on the controller for each report, after the gates and before it is written."""
