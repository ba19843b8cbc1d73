"""One line in place of a traceback, where pytest would show one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import extract_tb, format_exception
from typing import Any, Final

import pytest

from pytest_heta.core._calls import error_text, place_of
from pytest_heta.core._plain import exception_text
from pytest_heta.errors import (
    BenchmarkError,
    ConfigurationError,
    HetaError,
    InternalError,
    SuiteInvalidError,
)
from pytest_heta.plugin.state import run_of
from pytest_heta.reports import plain_text

__all__ = ["TRACEBACK_HINT", "InternalErrors", "adapter_error", "collect_error", "declarations_of"]

TRACEBACK_HINT: Final = "--heta-debug shows the traceback"
"""What to do about an exception of users' code."""


@contextmanager
def declarations_of(module: pytest.Module) -> Iterator[None]:
    """Turn what is wrong with a suite file into one line that says where."""
    try:
        yield
    except HetaError as error:
        frames = extract_tb(error.__traceback__)
        lines = [0, *(f.lineno for f in frames if f.filename == str(module.path))]
        raise collect_error(module.config, error, f"{module.nodeid}:{lines[-1]}") from error
    except Exception as error:
        cause: BaseException = error
        if isinstance(error, module.CollectError):
            # pytest tells a file that cannot be imported by a traceback, and the rest by a line.
            if not isinstance(error.__cause__, ImportError | SyntaxError):
                raise
            cause = error.__cause__
        if run_of(module.config).options.debug:
            raise
        found = SuiteInvalidError(
            f"the suite cannot be imported: {exception_text(cause)}",
            where=place_of(cause) or module.nodeid,
            hint=TRACEBACK_HINT,
        )
        raise module.CollectError(str(found)) from error


def collect_error(
    config: pytest.Config, error: HetaError, source: str | None = None
) -> pytest.Collector.CollectError:
    """Return what pytest shows for an error: one line; a suite's declarations end the session.

    Args:
        config: pytest's config.
        error: The error.
        source: Where it comes from, if the error does not say so.
    """
    run = run_of(config)
    text = str(error if source is None else error.blaming(source))
    details = "".join(format_exception(error))
    if isinstance(error, ConfigurationError):
        run.refusals[text] = details
    return pytest.Collector.CollectError(f"{text}\n{details}" if run.options.debug else text)


def adapter_error(error: Exception) -> BenchmarkError:
    """Return what an adapter of the user raised as an error with a code."""
    found = BenchmarkError(f"the adapter fails: {exception_text(error)}", hint=TRACEBACK_HINT)
    found.__cause__ = error
    return found


class InternalErrors:
    """Says in one line what ends a session that nobody expected to end."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excrepr: Any, excinfo: pytest.ExceptionInfo[Any]) -> None:
        """Let those that print the error, here and on the controller, print one line."""
        error = excinfo.value
        known = error
        if not isinstance(error, HetaError):
            known = InternalError(error_text(error), where=place_of(error), hint=TRACEBACK_HINT)
        line = plain_text(known)
        excrepr.toterminal = lambda terminal: terminal.line(line)
