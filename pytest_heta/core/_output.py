"""What users' code prints while several samples are asked at once."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import Any, Final, TextIO

__all__ = ["Printed", "print_to", "stop_routing"]

Printed = list[tuple[str, str]]
"""Pieces of text with the stream they were written to, ``stdout`` or ``stderr``."""

_PRINTED: ContextVar[Printed | None] = ContextVar("heta_printed", default=None)


class _Router:
    """Stands in for a stream: what a sample's code writes goes to the sample.

    Everything else goes on to the stream. A task has its sample from the
    context that it was created in.
    """

    def __init__(self, name: str, stream: TextIO) -> None:
        self.name_of_stream: Final = name
        self.stream: Final = stream

    def write(self, text: str) -> int:
        printed = _PRINTED.get()
        if printed is None:
            return self.stream.write(text)
        printed.append((self.name_of_stream, text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def print_to(printed: Printed | None) -> None:
    """Let the code that runs next in this context print to a sample's list.

    Whoever captures output puts streams of its own in place from time to time,
    so that this is called before every step of a sample's code.
    """
    _PRINTED.set(printed)
    if printed is None:
        return
    if type(sys.stdout) is not _Router:
        sys.stdout = _Router("stdout", sys.stdout)
    if type(sys.stderr) is not _Router:
        sys.stderr = _Router("stderr", sys.stderr)


def stop_routing() -> None:
    """Put the streams back that were there before."""
    if isinstance(sys.stdout, _Router):
        sys.stdout = sys.stdout.stream
    if isinstance(sys.stderr, _Router):
        sys.stderr = sys.stderr.stream
