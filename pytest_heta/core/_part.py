"""A part of a file, read as if it were a file of its own."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import BinaryIO, cast

__all__ = ["open_part"]


def open_part(path: Path, start: int, end: int) -> BinaryIO:
    """Open the bytes from ``start`` up to ``end`` of a file for reading."""
    part = io.BufferedReader(_Part(path, start, end))
    return cast("BinaryIO", part)


class _Part(io.RawIOBase):
    """The raw stream; it holds no more than its place."""

    def __init__(self, path: Path, start: int, end: int) -> None:
        super().__init__()
        # Buffered by whom it is given to.
        self._file = path.open("rb", buffering=0)
        self._start, self._size = start, end - start
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        if origin + offset < 0:
            raise ValueError(f"negative seek position {origin + offset}")
        self._place = origin + offset
        return self._place

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        room = memoryview(buffer)[: max(0, self._size - self._place)]
        self._file.seek(self._start + self._place)
        count = self._file.readinto(room)
        self._place += count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
