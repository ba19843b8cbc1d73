"""Extracting archives that nobody has reason to trust."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import shutil
import stat
import tarfile
import tempfile
import unicodedata
import zipfile
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from pytest_heta.errors import ArchiveError, HetaError, shown

__all__ = ["extract"]

_CHUNK: Final = 1 << 20
_SMALL: Final = 1 << 20
"""Up to this many bytes any ratio of compression is harmless."""
_MOST_LEVELS: Final = 100
"""Folders within folders; a name is not to take longer to look at than its file to write."""
_BLOCK: Final = 512
_ENCRYPTED: Final = 0x1
_AGAIN: Final = "download it again"
_COMPRESSIONS: Final = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open))


def extract(
    archive: Path,
    folder: Path,
    *,
    max_bytes: int = 50 * 2**30,
    max_ratio: float = 200,
    max_members: int = 100_000,
) -> Path:
    """Extract a zip or tar archive into a folder that appears only when it is complete.

    Args:
        archive: The file; its content says what it is.
        folder: The folder to make; it must not be there.
        max_bytes: Most bytes that the members may have together.
        max_ratio: Most bytes that come of one byte of the archive, beyond 1 MiB.
        max_members: Most files and folders.

    Returns:
        The folder.

    Raises:
        ArchiveError: if the archive is damaged, cut off, encrypted or no
            archive, is too large, holds a link, a device, a name twice (also
            in other letter case) or a name outside the folder, or if the
            folder is there or cannot be written.
    """
    where = str(archive)
    if folder.exists():
        raise ArchiveError(f"the folder {folder} is there already", where=where, hint="remove it")
    temporary: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        most = min(max_bytes, max(_SMALL, int(max_ratio * archive.stat().st_size)))
        _Extraction(archive, temporary / "content", most, max_members).run()
        (temporary / "content").rename(folder)
    except HetaError:
        raise
    except Exception as error:  # zipfile and tarfile raise nearly anything on garbage
        message = f"it cannot be extracted: {type(error).__name__}: {error}"
        raise ArchiveError(message, where=where, hint=_AGAIN) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
    return folder


class _Extraction:
    """One archive on its way into a folder."""

    def __init__(self, archive: Path, folder: Path, most: int, most_members: int) -> None:
        self._archive = archive
        self._folder = folder
        self._left = most
        self._seen: dict[str, bool] = {}  # whether it is a folder
        self._members = 0
        self._most_members = most_members

    def run(self) -> None:
        self._folder.mkdir()
        with self._archive.open("rb") as file:
            # By its beginning: a tar may end in a zip.
            is_zip = file.read(2) == b"PK"
        if is_zip:
            self._zip()
        else:
            self._tar()

    def _zip(self) -> None:
        with zipfile.ZipFile(self._archive) as file:
            for info in file.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)
                if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                    self._refuse(f"{shown(info.filename)} is a link or a device")
                if info.flag_bits & _ENCRYPTED:
                    self._refuse(f"{shown(info.filename)} is encrypted", "extract it by hand")
                path = self._place(info.filename, is_folder=info.is_dir())
                if not info.is_dir():
                    with file.open(info) as content:
                        self._write(path, content)

    def _tar(self) -> None:
        with self._archive.open("rb") as raw:
            start = raw.read(6)
            raw.seek(0)
            plain: Any = raw
            for magic, opener in _COMPRESSIONS:
                if start.startswith(magic):
                    plain = opener(raw, "rb")
            # Headers count, too: one of them alone could fill the memory.
            bounded = _Bounded(plain, 2 * self._left + _SMALL, self)
            with tarfile.open(fileobj=bounded, mode="r|") as file:
                for member in file:
                    self._tar_member(file, member)
                end = file.offset
            while bounded.read(_CHUNK):  # the checksum stands at the end
                pass
            # The module takes whatever it cannot read for the end.
            if bounded.size < end + _BLOCK or bounded.last_content > end:
                self._refuse("it is cut off or damaged: its end is not where it should be", _AGAIN)

    def _tar_member(self, file: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        if member.issparse() or not (member.isreg() or member.isdir()):
            self._refuse(f"{shown(member.name)} is a link, a device or a sparse file")
        path = self._place(member.name, is_folder=member.isdir())
        content = file.extractfile(member)
        if content is not None:
            self._write(path, content)

    def _place(self, name: str, *, is_folder: bool) -> Path:
        self._members += 1
        if self._members > self._most_members:
            self._refuse(f"it has more than {self._most_members} members")
        relative = PurePosixPath(name)
        outside = relative.is_absolute() or ".." in relative.parts or "\\" in name or "\0" in name
        if outside or re.match("[A-Za-z]:", name) or not (relative.parts or is_folder):
            self._refuse(f"the name {shown(name)} could lead out of the folder")
        if len(relative.parts) > _MOST_LEVELS:
            self._refuse(f"the name {shown(name)} has more than {_MOST_LEVELS} levels")
        self._note(relative, is_folder=is_folder)
        for parent in relative.parents:
            self._note(parent, is_folder=True)
        path = self._folder / relative
        (path if is_folder else path.parent).mkdir(parents=True, exist_ok=True)
        return path

    def _note(self, path: PurePosixPath, *, is_folder: bool) -> None:
        # Some file systems do not tell these apart.
        key = unicodedata.normalize("NFC", str(path)).casefold()
        if key in self._seen and not (is_folder and self._seen[key]):
            self._refuse(f"the name {shown(str(path))} stands in it twice")
        self._seen[key] = is_folder

    def _write(self, path: Path, content: IO[bytes]) -> None:
        with path.open("xb") as target:
            while chunk := content.read(_CHUNK):
                self._left -= len(chunk)
                if self._left < 0:
                    self.refuse_size()
                target.write(chunk)

    def refuse_size(self) -> None:
        self._refuse("it is too large when extracted, or compressed too well to be true")

    def _refuse(self, message: str, hint: str = "do not trust its source") -> None:
        raise ArchiveError(message, where=str(self._archive), hint=hint)


class _Bounded(io.RawIOBase):
    """A stream that ends in an error after so many bytes.

    Attributes:
        size: Bytes that were read.
        last_content: Where the last of them stands that is not zero, from 1.
    """

    def __init__(self, stream: IO[bytes], most: int, extraction: _Extraction) -> None:
        self._stream = stream
        self._left = most
        self._extraction = extraction
        self.size = self.last_content = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            self._extraction.refuse_size()
        if content := len(data.rstrip(b"\0")):
            self.last_content = self.size + content
        self.size += len(data)
        return data
