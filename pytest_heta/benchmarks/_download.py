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
from typing import Any, Final, NamedTuple, NoReturn
from urllib.parse import urlsplit

from filelock import FileLock

from pytest_heta.errors import (
    BenchmarkError,
    ChecksumError,
    DownloadError,
    OfflineError,
    shown,
)
from pytest_heta.models import BenchmarkResource

__all__ = ["download"]

_ATTEMPTS: Final = 3
_PAUSE_S: Final = 0.2
_MOST_BYTES: Final = 50 * 2**30
_CHUNK: Final = 1 << 20
_HEX_DIGITS: Final = {"sha256": 64, "md5": 32}
_PARTIAL: Final = 206
_RANGE_REFUSED: Final = 416
_SERVER_ERROR: Final = 500
_LENGTH: Final = re.compile(r"\s*(\d{1,18})\s*")
_RANGE: Final = re.compile(r"\s*bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)\s*")


class _BrokenOffError(Exception):
    """A download that may go better another time."""


def download(
    resource: BenchmarkResource,
    folder: Path,
    *,
    offline: bool = False,
    timeout_s: float = 60.0,
    max_bytes: int = _MOST_BYTES,
) -> Path:
    """Return the file of a resource, which is downloaded unless it is in the folder.

    Processes that want the same file wait for each other, and one downloads it.
    A file that is there with another size or checksum is downloaded again. One
    that breaks off is tried three times, and gone on with where it stopped if
    the server says that it still has the same file.

    Args:
        resource: What to download; its name is the file's name.
        folder: Where the file is kept. It is not written to if the file is
            there and right.
        offline: Whether the network may not be used; ``HETA_OFFLINE=1`` in the
            environment says so, too.
        timeout_s: Seconds for which the server may be silent.
        max_bytes: Most bytes that are written, where the resource does not say
            its size.

    Raises:
        OfflineError: if the file is missing and the network may not be used.
        ChecksumError: if size or checksum are not those of the resource.
        DownloadError: if the file cannot be downloaded or written, or the
            server leads to another address than http or https.
    """
    wanted = _Download(resource, folder, timeout_s, max_bytes)
    return wanted.run(offline=offline or os.environ.get("HETA_OFFLINE") == "1")


class _Half(NamedTuple):
    """What is here of a file: its first bytes, and what the server calls this version of it."""

    size: int
    validator: str


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows a server only to http and https, and from https only to https."""

    def redirect_request(  # noqa: PLR0917 - the base's
        self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any
    ) -> Any:
        """Return the request to follow with.

        Raises:
            _RefusedError: if the server leads elsewhere.
        """
        scheme = urlsplit(newurl).scheme
        if scheme != "https" and (scheme != "http" or req.type == "https"):
            fp.close()
            raise _RefusedError(f"the server leads to {shown(newurl)}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _RefusedError(Exception):
    """Something that another attempt would not change."""


_HANDLERS: Final = (
    urllib.request.ProxyHandler,
    urllib.request.UnknownHandler,
    urllib.request.HTTPHandler,
    urllib.request.HTTPSHandler,
    urllib.request.HTTPDefaultErrorHandler,
    urllib.request.HTTPErrorProcessor,
    urllib.request.FileHandler,
    _SafeRedirects,
)


def _opener() -> urllib.request.OpenerDirector:
    """Return what opens addresses: nothing but http, https and file."""
    director = urllib.request.OpenerDirector()
    for handler in _HANDLERS:
        director.add_handler(handler())
    return director


class _Download:
    """One resource on its way into a folder."""

    def __init__(
        self, resource: BenchmarkResource, folder: Path, timeout_s: float, max_bytes: int
    ) -> None:
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._resource = resource
        self._target = folder / resource.name
        self._where = f"{self._target} from {resource.uri}"
        if not re.fullmatch(r"\w[\w. -]*", resource.name):
            self._fail("the name of the resource is not a plain file name")
        if re.match("(https?|file):", resource.uri, re.IGNORECASE) is None:
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
            # Without the lock: a file is here only when it is whole, and its
            # folder may be one that is only read.
            if self._is_right(offline=offline):
                return self._target
            if offline:
                raise OfflineError(
                    "it is not there, and the network may not be used",
                    where=self._where,
                    hint="run once without offline, or put the file there",
                )
            self._target.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self._target.parent / f".{self._target.name}.lock"):
                if not self._is_right(offline=False):
                    self._fetch()
        except OSError as error:
            self._fail(f"{type(error).__name__}: {error}", error)
        return self._target

    def _is_right(self, *, offline: bool) -> bool:
        """Whether the file is there, with the size and checksum of the resource.

        Raises:
            ChecksumError: if it is another and cannot be replaced, being offline.
        """
        if not self._target.exists():
            return False
        try:
            self._check(self._target)
        except ChecksumError:
            if offline:
                raise
            return False
        return True

    def _fail(self, message: str, cause: BaseException | None = None) -> NoReturn:
        raise DownloadError(message, where=self._where, hint="see the address") from cause

    def _fetch(self) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._receive()
                break
            except (_RefusedError, ValueError) as error:
                self._fail(_text(error), error)
            except (_BrokenOffError, OSError, http.client.HTTPException) as error:
                status = error.code if isinstance(error, urllib.error.HTTPError) else None
                if status == _RANGE_REFUSED:
                    self._forget()
                elif attempt == _ATTEMPTS or (status is not None and status < _SERVER_ERROR):
                    self._fail(_text(error), error)
                time.sleep(_PAUSE_S * attempt)
        else:
            self._fail("the server refuses every part of it")
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
        half = self._half()
        if half is not None:
            request.add_header("Range", f"bytes={half.size}-")
            request.add_header("If-Range", half.validator)
        with _opener().open(request, timeout=self._timeout_s) as response:
            if getattr(response, "status", None) == _PARTIAL:
                total = self._checked_total(response.headers, half)
                self._write(response, half.size if half is not None else 0, total)
            else:
                self._forget()
                self._remember(response.headers)
                self._write(response, 0, _length_of(response.headers))

    def _checked_total(self, headers: Any, half: _Half | None) -> int | None:
        """Return the size of the whole file that a server sends a part of, None if unsaid.

        Raises:
            _BrokenOffError: if it is not the part that goes on from what is here.
        """
        tag, found = headers.get("ETag"), _RANGE.fullmatch(headers.get("Content-Range") or "")
        if half is None or found is None or int(found[1]) != half.size:
            self._forget()
            raise _BrokenOffError("the server sent another part than asked for")
        if half.validator.startswith('"') and tag not in (None, half.validator):
            self._forget()
            raise _BrokenOffError("the server sent a part of another version")
        length = _length_of(headers)
        if found[2] != "*":
            return int(found[2])
        return None if length is None else half.size + length

    def _half(self) -> _Half | None:
        """Return what is here of the file, if it can be gone on with."""
        try:
            memory = json.loads(self._memory.read_text(encoding="utf-8"))
            size = self._part.stat().st_size
            if memory["uri"] == self._resource.uri and size:
                return _Half(size, str(memory["validator"]))
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

    def _write(self, response: Any, start: int, total: int | None) -> None:
        """Write what the server sends behind the first ``start`` bytes.

        Args:
            response: What the server sends.
            start: How many bytes are here.
            total: Size that the whole file has by the server's word, None if unsaid.
        """
        expected = self._resource.size_bytes
        known = self._resource.checksum or expected is not None
        if total is None and not getattr(response, "chunked", False) and not known:
            raise _RefusedError(
                "the server does not say its size, so that a part looks like the whole"
            )
        size, most = start, self._max_bytes if expected is None else expected
        with self._part.open("ab" if start else "wb") as file:
            while size <= most and (chunk := response.read(_CHUNK)):
                size += len(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        if size > most:
            if expected is None:
                self._forget()
                raise _RefusedError(f"it has more than {most} bytes")
        elif total is not None and size != total:
            raise _BrokenOffError(f"the server sent {size} of {total} bytes")

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
        hint = "if the file is there, it is downloaded again; else correct the resource"
        raise ChecksumError(message, where=self._where, hint=hint)


def _length_of(headers: Any) -> int | None:
    """Return the length that a server announces, None if it says nothing sensible."""
    found = _LENGTH.fullmatch(headers.get("Content-Length") or "")
    return int(found[1]) if found is not None else None


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
