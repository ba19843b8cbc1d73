"""The command ``pytest-heta``: one module for each of its commands.

It looks after what runs leave behind. Benchmarks are run by ``pytest``.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from pytest_heta.cli import cache, validate
from pytest_heta.core._calls import error_text, place_of
from pytest_heta.errors import ConfigurationError, HetaError, InternalError, OptionInvalidError
from pytest_heta.reports import plain_text

__all__ = ["main"]

COMMANDS = (cache, validate)
"""Modules with ``add_parser(commands)``, which sets ``run(arguments) -> int`` as a default."""

_FAILED = 1
_USAGE = 2


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line, with a code."""

    def error(self, message: str) -> NoReturn:
        """Exit with what is wrong about the command line."""
        option, colon, what = message.removeprefix("argument ").partition(": ")
        is_about_one = bool(colon) and message.startswith("argument ")
        found = OptionInvalidError(
            what if is_about_one else message,
            where=option if is_about_one else self.prog,
            hint=f"{self.prog} --help says what there is",
        )
        self.exit(_USAGE, f"pytest-heta: {plain_text(str(found))}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command.

    Args:
        arguments: The command line without the program; ``sys.argv`` by default.

    Returns:
        The exit code: 0, or 1 when the command failed, or 2 when it was
        written wrongly (which argparse says by `SystemExit`).
    """
    given = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names may be in any script
    try:
        code: int = given.run(given)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python must not write the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except HetaError as error:
        return _failed(error, error, debug=given.debug)
    except Exception as error:  # noqa: BLE001 - a user is shown a line, not a traceback
        hint = "pytest-heta --debug shows the traceback"
        known = InternalError(error_text(error), where=place_of(error), hint=hint)
        return _failed(error, known, debug=given.debug)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="pytest-heta", description="Look after what benchmark runs leave behind.")
    parser.add_argument("--debug", action="store_true", help="show the tracebacks of errors")
    commands: Any = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return parser


def _failed(error: Exception, known: HetaError, *, debug: bool) -> int:
    """Say why the command failed, and return its exit code."""
    if debug:
        traceback.print_exception(error)
    sys.stderr.write(f"pytest-heta: {plain_text(str(known))}\n")
    return _USAGE if isinstance(known, ConfigurationError) else _FAILED
