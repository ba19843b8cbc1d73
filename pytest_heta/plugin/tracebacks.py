"""One line in place of a traceback, where pytest would show one."""

from __future__ import annotations

from typing import Any, Final

import pytest

from pytest_heta.core._calls import error_text, place_of
from pytest_heta.errors import HetaError, InternalError

__all__ = ["TRACEBACK_HINT", "InternalErrors"]

TRACEBACK_HINT: Final = "--heta-debug shows the traceback"
"""What to do about an exception of users' code."""


class InternalErrors:
    """Says in one line what ends a session that nobody expected to end."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excrepr: Any, excinfo: pytest.ExceptionInfo[Any]) -> None:
        """Let those that print the error, here and on the controller, print one line."""
        error = excinfo.value
        known = error
        if not isinstance(error, HetaError):
            known = InternalError(error_text(error), where=place_of(error), hint=TRACEBACK_HINT)
        line = str(known)
        excrepr.toterminal = lambda terminal: terminal.line(line)
