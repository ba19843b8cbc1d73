"""The command ``pytest-heta``: one module for each of its commands.

It looks after what runs leave behind. Benchmarks are run by ``pytest``.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from pytest_heta.cli import cache, validate
from pytest_heta.errors import ConfigurationError, HetaError

__all__ = ["main"]

COMMANDS = (cache, validate)
"""Modules with ``add_parser(commands)``, which sets ``run(arguments) -> int`` as a default."""

_FAILED = 1
_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command.

    Args:
        arguments: The command line without the program; ``sys.argv`` by default.

    Returns:
        The exit code: 0, or 1 when the command failed, or 2 when it was
        written wrongly (which argparse says by `SystemExit`).
    """
    parser = argparse.ArgumentParser(
        prog="pytest-heta", description="Look after what benchmark runs leave behind."
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    given = parser.parse_args(arguments)
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
        sys.stderr.write(f"pytest-heta: {error}\n")
        return _USAGE if isinstance(error, ConfigurationError) else _FAILED
    return code
