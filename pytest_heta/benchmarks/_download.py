"""Downloading the resources of a benchmark: whole and checked, or not at all."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from filelock import FileLock

from pytest_heta.errors import BenchmarkError, ChecksumError, DownloadError, OfflineError
from pytest_heta.models import BenchmarkResource

__all__ = ["download"]

_ATTEMPTS: Final = 3
_PAUSE_S: Final = 0.2
_TIMEOUT_S: Final = 60.0
_CHUNK: Final = 1 << 20
_HEX_DIGITS: Final = {"sha256": 64, "md5": 32}
_PARTIAL: Final = 206
_RANGE_REFUSED: Final = 416
_SERVER_ERROR: Final = 500


class _BrokenOffError(Exception):
    """A download that may go better another time."""


def download(resource: BenchmarkResource, folder: Path, *, offline: bool = False) -> Path:
    """Return the file of a resource, which is downloaded unless it is in the folder.

    Processes that want the same file wait for each other, and one downloads it.

    Args:
        resource: What to download; its name is the file's name.
        folder: Where the file is kept.
        offline: Whether the network may not be used; ``HETA_OFFLINE=1`` in the
            environment says so, too.

    Raises:
        OfflineError: if the file is missing and the network may not be used.
        ChecksumError: if size or checksum are not those of the resource.
        DownloadError: if the file cannot be downloaded or written.
    """
    return _Download(resource, folder).run(offline=offline or os.environ.get("HETA_OFFLINE") == "1")


class _Download:
    """One resource on its way into a folder."""

    def __init__(self, resource: BenchmarkResource, folder: Path) -> None:
        self._resource = resource
        self._target = folder / resource.name
        self._where = f"{self._target} from {resource.uri}"
        if not re.fullmatch(r"\w[\w. -]*", resource.name):
            self._fail("the name of the resource is not a plain file name")
        if urlsplit(resource.uri).scheme not in ("http", "https", "file"):
            self._fail("its address is none of http, https and file")
        self._algorithm, _, self._digest = (resource.checksum or "").lower().partition(":")
        digits = _HEX_DIGITS.get(self._algorithm)
        if resource.checksum and not (
            digits and re.fullmatch(f"[0-9a-f]{{{digits}}}", self._digest)
        ):
            self._fail(f"{resource.checksum!r} is no checksum such as sha256:HEX or md5:HEX")
        self._part = folder / f".{resource.name}.part"
        self._memory = folder / f".{resource.name}.part.json"

    def run(self, *, offline: bool) -> Path:
        try:
            if offline and not self._target.exists():
                raise OfflineError(
                    "it is not there, and the network may not be used",
                    where=self._where,
                    hint="run once without offline, or put the file there",
                )
            self._target.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self._target.parent / f".{self._target.name}.lock"):
                if self._target.exists():
                    self._check(self._target)
                else:
                    self._fetch()
        except OSError as error:
            self._fail(f"{type(error).__name__}: {error}", error)
        return self._target

    def _fail(self, message: str, cause: BaseException | None = None) -> NoReturn:
        raise DownloadError(message, where=self._where, hint="see the address") from cause

    def _fetch(self) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._receive()
                break
            except (_BrokenOffError, OSError, http.client.HTTPException) as error:
                final = isinstance(error, urllib.error.HTTPError) and (
                    error.code < _SERVER_ERROR and error.code != _RANGE_REFUSED
                )
                if isinstance(error, urllib.error.HTTPError) and error.code == _RANGE_REFUSED:
                    self._forget()
                if final or attempt == _ATTEMPTS:
                    self._fail(f"{error or type(error).__name__}", error)
                time.sleep(_PAUSE_S * attempt)
        try:
            self._check(self._part)
        except BenchmarkError:
            self._forget()
            raise
        self._part.replace(self._target)
        self._forget()

    def _forget(self) -> None:
        self._part.unlink(missing_ok=True)
        self._memory.unlink(missing_ok=True)

    def _receive(self) -> None:
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked
            self._resource.uri, headers={"Accept-Encoding": "identity"}
        )
        validator = self._remembered()
        if validator:
            request.add_header("Range", f"bytes={self._part.stat().st_size}-")
            request.add_header("If-Range", validator)
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310
            resumed = getattr(response, "status", None) == _PARTIAL
            start = self._part.stat().st_size if resumed else 0
            if resumed and not str(response.headers.get("Content-Range")).startswith(
                f"bytes {start}-"
            ):
                self._forget()
                raise _BrokenOffError("the server sent another range than asked for")
            if not resumed:
                self._forget()
                self._remember(response.headers)
            self._write(response, start)

    def _remembered(self) -> str | None:
        """Return what says that the file on the server is still the one half of which is here."""
        try:
            memory = json.loads(self._memory.read_text(encoding="utf-8"))
            if memory["uri"] == self._resource.uri and self._part.stat().st_size:
                return str(memory["validator"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def _remember(self, headers: Any) -> None:
        tag = headers.get("ETag")
        # A weak tag does not promise the same bytes.
        validator = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")
        if validator:
            memory = {"uri": self._resource.uri, "validator": validator}
            self._memory.write_text(json.dumps(memory), encoding="utf-8")

    def _write(self, response: Any, start: int) -> None:
        length = response.headers.get("Content-Length")
        known = self._resource.checksum or self._resource.size_bytes is not None
        if length is None and not getattr(response, "chunked", False) and not known:
            self._fail("the server does not say its size, so that a part looks like the whole")
        received = 0
        with self._part.open("ab" if start else "wb") as file:
            while chunk := response.read(_CHUNK):
                received += len(chunk)
                file.write(chunk)
                most = self._resource.size_bytes
                if most is not None and start + received > most:
                    break  # too much already; the check says so
            else:
                if length is not None and received != int(length):
                    raise _BrokenOffError(f"the server sent {received} of {length} bytes")
            file.flush()
            os.fsync(file.fileno())

    def _check(self, path: Path) -> None:
        size, expected = path.stat().st_size, self._resource.size_bytes
        if expected is not None and size != expected:
            self._mismatch(f"it has {size} bytes (or more), not {expected}")
        if self._digest:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, self._algorithm).hexdigest()
            if found != self._digest:
                self._mismatch(f"its {self._algorithm} is {found}, not {self._digest}")

    def _mismatch(self, message: str) -> NoReturn:
        hint = "remove the file if it is there, and download it again"
        raise ChecksumError(message, where=self._where, hint=hint)
