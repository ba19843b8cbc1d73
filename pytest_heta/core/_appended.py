"""A file that grows at its end, whose text is never lost to a full disk."""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path

from pytest_heta.core import _sync
from pytest_heta.core._plain import exception_text

__all__ = ["AppendedFile"]


class AppendedFile:
    """Bytes in the order they came: the first ones in a file, the others in memory.

    What is appended is with the operating system when `append` returns, and soon
    on the disk. After the first error nothing more is written: it stays in
    memory. The file is made with the first bytes.

    Args:
        path: The file; there must be none yet.

    Attributes:
        problem: Why nothing is written any more, in one line; None if all is well.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None
        self._written = 0
        self._waiting = bytearray()
        self._is_closed = False
        self.problem: str | None = None

    def append(self, line: bytes) -> int:
        """Append bytes.

        Returns:
            Where they begin.

        Raises:
            FileExistsError: if the first find a file that is somebody else's.
        """
        if self._file is None and self.problem is None:
            self._open()
        offset = self._written + len(self._waiting)
        self._waiting += line
        if self.problem is None:
            self._write()
        return offset

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes, wherever they are.

        Raises:
            OSError: if the file cannot be read, as after `close`.
        """
        if self._is_closed:
            raise OSError(f"the journal {self._path} is closed")
        end = offset + length
        of_file = b""
        if offset < self._written and self._file is not None:
            self._file.seek(offset)
            of_file = self._file.read(min(end, self._written) - offset)
        if end <= self._written:
            return of_file
        return of_file + self._waiting[max(0, offset - self._written) : end - self._written]

    def close(self) -> None:
        """Write what waits, and close the file; may be called twice."""
        file, self._is_closed = self._file, True
        if file is not None:
            if self.problem is None:
                self._write()
            self._file = None
            _sync.forget(file.fileno())
            try:
                with file:
                    os.fsync(file.fileno())
            except OSError as error:
                self.problem = self.problem or exception_text(error)
        self._waiting.clear()

    def _open(self) -> None:
        try:
            # Read and written at once, each at a place of its own: a buffer would not help.
            self._file = self._path.open("x+b", buffering=0)
        except FileExistsError:
            raise
        except OSError as error:
            self.problem = exception_text(error)

    def _write(self) -> None:
        file = self._file
        try:
            while self._waiting and file is not None:
                # What an interrupt kept from being counted is written again, at its place.
                file.seek(self._written)
                count = file.write(self._waiting)
                del self._waiting[:count]
                self._written += count
            if file is not None:
                _sync.note(file.fileno())
        except OSError as error:
            self.problem = exception_text(error)
