"""Who watches over the interpreter, where users' code has a time limit."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import pytest

from pytest_heta.core._watchdog import Watchdog
from pytest_heta.plugin.options import RunOptions

__all__ = ["make_watchdog"]


def make_watchdog(config: pytest.Config, options: RunOptions) -> Watchdog | None:
    """Return what ends this process if its interpreter does not come back.

    Returns:
        None if there is no time limit, or if ``faulthandler_timeout`` is set:
        a process has only one such timer, and pytest has it then.
    """
    if options.timeout is None and options.build_timeout is None:
        return None
    with suppress(ValueError):  # without its plugin
        if float(config.getini("faulthandler_timeout") or 0) > 0:
            return None
    file = _copy_of_stderr()
    config.add_cleanup(lambda: os.close(file))
    return Watchdog(file)


def _copy_of_stderr() -> int:
    """Return a descriptor of standard error as it is now: pytest captures it later."""
    try:
        return os.dup(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2)
    except (OSError, ValueError):
        return os.open(os.devnull, os.O_WRONLY)
