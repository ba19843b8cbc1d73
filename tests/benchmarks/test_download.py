"""Downloads: whole and checked, or an error that names file and address."""

from __future__ import annotations

import hashlib
import io
import socketserver
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pytest_heta.benchmarks import _download
from pytest_heta.benchmarks._download import download
from pytest_heta.errors import ChecksumError, DownloadError, OfflineError
from pytest_heta.models import BenchmarkResource

DATA = bytes(range(256)) * 400
SHA256 = "sha256:" + hashlib.sha256(DATA).hexdigest()


class Server(ThreadingHTTPServer):
    """A server whose faults are switched on.

    Attributes:
        ranges: The ``Range`` header of each request.
        released: What a stalled answer waits for.
    """

    daemon_threads = False
    status, cut, tag = 200, False, '"1"'
    ignores: tuple[str, ...] = ()
    content_range: str | None = None
    most: int | None = None
    length: str | None = "right"
    chunked = stalls = False
    location: str | None = None
    data = DATA

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges: list[str | None] = []
        self.released = threading.Event()
        self.half_sent = threading.Event()

    def resource(self, **fields: Any) -> BenchmarkResource:
        uri = f"http://127.0.0.1:{self.server_port}/file"
        return BenchmarkResource(name="data.bin", uri=uri, **fields)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        server = self.server
        self.close_connection = True
        wanted = self.headers.get("Range")
        server.ranges.append(wanted)
        start, data = 0, server.data
        current = self.headers.get("If-Range") == server.tag or "If-Range" in server.ignores
        if wanted and current and "Range" not in server.ignores:
            start = int(wanted[6:-1])
        if server.location is not None and self.path == "/file":
            self.send_response(302)
            self.send_header("Location", server.location)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start and server.status == 200 else server.status)
        end = len(data) if server.most is None else start + server.most
        self.send_headers(start, end)
        body = data[start : len(data) // 2 if server.cut else end]
        if server.chunked:
            body = b"%x\r\n%b\r\n" % (len(body), body) + (b"" if server.cut else b"0\r\n\r\n")
        self.wfile.write(body)
        if server.stalls:
            server.half_sent.set()
            server.released.wait()

    def send_headers(self, start: int, end: int) -> None:
        server = self.server
        if start:
            right = f"bytes {start}-{end - 1}/{len(server.data)}"
            self.send_header("Content-Range", server.content_range or right)
        self.send_header("ETag", server.tag)
        if server.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif server.length is not None:
            right = str(end - start)
            self.send_header("Content-Length", right if server.length == "right" else server.length)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(_download, "_PAUSE_S", 0)
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.released.set()
        made.shutdown()
        thread.join()


@pytest.mark.parametrize("tag", ['"1"', 'W/"1"'])
def test_a_half_download_is_an_error_and_the_next_run_recovers(
    server: Server, tmp_path: Path, tag: str
) -> None:
    server.cut, server.tag = True, tag
    with pytest.raises(DownloadError, match=r"data\.bin from http://127"):
        download(server.resource(), tmp_path)
    assert not (tmp_path / "data.bin").exists()
    server.cut = False
    assert download(server.resource(), tmp_path).read_bytes() == DATA
    assert server.ranges[-1] == (f"bytes={len(DATA) // 2}-" if tag == '"1"' else None)


def test_a_part_of_another_version_is_not_gone_on_with(server: Server, tmp_path: Path) -> None:
    server.cut = True
    with pytest.raises(DownloadError):
        download(server.resource(), tmp_path)
    server.cut, server.tag, server.data = False, '"2"', DATA[::-1]
    assert download(server.resource(), tmp_path).read_bytes() == DATA[::-1]


@pytest.mark.parametrize(("status", "requests"), [(404, 1), (500, 3)])
def test_an_error_of_the_server(server: Server, tmp_path: Path, status: int, requests: int) -> None:
    server.status = status
    with pytest.raises(DownloadError, match=f"{status}"):
        download(server.resource(), tmp_path)
    assert len(server.ranges) == requests


def test_checksums(server: Server, tmp_path: Path) -> None:
    with pytest.raises(ChecksumError, match=r"data\.bin from http"):
        download(server.resource(checksum="md5:" + "0" * 32), tmp_path)
    with pytest.raises(ChecksumError, match="bytes"):
        download(server.resource(size_bytes=7), tmp_path)
    assert not (tmp_path / "data.bin").exists()
    assert download(server.resource(checksum=SHA256), tmp_path).read_bytes() == DATA


def test_a_file_that_is_another_is_downloaded_again(server: Server, tmp_path: Path) -> None:
    resource = server.resource(checksum=SHA256)
    (tmp_path / "data.bin").write_bytes(b"spoilt")
    with pytest.raises(ChecksumError, match=r"data\.bin from http.*: its sha256 is"):
        download(resource, tmp_path, offline=True)
    assert (tmp_path / "data.bin").read_bytes() == b"spoilt"
    assert download(resource, tmp_path).read_bytes() == DATA
    assert download(resource, tmp_path).read_bytes() == DATA
    assert len(server.ranges) == 1


def half_of_it(server: Server, folder: Path) -> None:
    """Leave half of the file where the next download finds it."""
    server.cut = True
    with pytest.raises(DownloadError, match=f"sent {len(DATA) // 2} of {len(DATA)} bytes"):
        download(server.resource(), folder)
    server.cut = False
    server.ranges.clear()


HALF = f"bytes={len(DATA) // 2}-"


@pytest.mark.parametrize(
    ("fault", "ranges"),
    [
        ({"ignores": ("Range",)}, [HALF]),
        ({"content_range": "bytes 0-9/10"}, [HALF, None]),
        ({"content_range": "bytes 7"}, [HALF, None]),
        ({"ignores": ("If-Range",), "tag": '"2"', "data": DATA[::-1]}, [HALF, None]),
    ],
    ids=["the whole in place of a part", "another part", "nonsense", "a part of another version"],
)
def test_what_does_not_go_on_from_the_half_is_begun_again(
    server: Server, tmp_path: Path, fault: dict[str, Any], ranges: list[str | None]
) -> None:
    half_of_it(server, tmp_path)
    for name, value in fault.items():
        setattr(server, name, value)
    assert download(server.resource(), tmp_path).read_bytes() == server.data
    assert server.ranges == ranges


def test_a_part_that_ends_too_early_is_not_the_whole(server: Server, tmp_path: Path) -> None:
    half_of_it(server, tmp_path)
    server.most = 10
    with pytest.raises(DownloadError, match=f"sent {len(DATA) // 2 + 30} of {len(DATA)} bytes"):
        download(server.resource(), tmp_path)
    assert not (tmp_path / "data.bin").exists()
    server.most = None
    assert download(server.resource(), tmp_path).read_bytes() == DATA
    assert server.ranges[-1] == f"bytes={len(DATA) // 2 + 30}-"


def test_a_range_that_is_refused_is_forgotten(server: Server, tmp_path: Path) -> None:
    half_of_it(server, tmp_path)
    server.status = 416
    with pytest.raises(DownloadError, match="refuses every part"):
        download(server.resource(), tmp_path)
    assert server.ranges[0] == HALF
    assert set(server.ranges[1:]) == {None}
    server.status = 200
    assert download(server.resource(), tmp_path).read_bytes() == DATA


@pytest.mark.parametrize("length", [None, "-5", "many", "1, 2", "9" * 5000])
def test_a_size_that_says_nothing_needs_a_checksum(
    server: Server, tmp_path: Path, length: str | None
) -> None:
    server.length = length
    with pytest.raises(DownloadError, match="does not say its size"):
        download(server.resource(), tmp_path)
    resource = server.resource(checksum=SHA256)
    assert download(resource, tmp_path).read_bytes() == DATA


def test_chunks_need_no_size(server: Server, tmp_path: Path) -> None:
    server.chunked, server.cut = True, True
    with pytest.raises(DownloadError):
        download(server.resource(), tmp_path)
    server.cut = False
    assert download(server.resource(), tmp_path).read_bytes() == DATA


@pytest.mark.parametrize("size", [len(DATA) - 1, len(DATA) + 1, 0])
def test_another_size_than_the_resource_s(server: Server, tmp_path: Path, size: int) -> None:
    with pytest.raises(ChecksumError, match=f"bytes .*not {size}"):
        download(server.resource(size_bytes=size), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".data.bin.lock"]
    assert download(server.resource(size_bytes=len(DATA)), tmp_path).read_bytes() == DATA


def test_what_is_too_large_is_not_kept(server: Server, tmp_path: Path) -> None:
    server.chunked = True
    with pytest.raises(DownloadError, match="more than 1000 bytes"):
        download(server.resource(), tmp_path, max_bytes=1000)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".data.bin.lock"]


def test_a_silent_server_is_left(server: Server, tmp_path: Path) -> None:
    server.cut = server.stalls = True
    with pytest.raises(DownloadError, match="timed out"):
        download(server.resource(), tmp_path, timeout_s=0.05)
    server.cut = server.stalls = False
    assert download(server.resource(), tmp_path).read_bytes() == DATA


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0\xff" * 500,
        b"HTTP/1.1",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        b"HTTP/1.1 206 Partial\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 302 Found\r\nLocation: http://[\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: //\xff:x\r\n\r\n",
        b"HTTP/1.1 302 Found\r\n\r\n",
        b"HTTP/1.1 " + b"9" * 70_000,
    ],
    ids=range(11),
)
def test_garbage_is_an_error_of_downloads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: bytes
) -> None:
    monkeypatch.setattr(_download, "_PAUSE_S", 0)

    class Garbage(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            self.wfile.write(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Garbage) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        resource = BenchmarkResource(name="a", uri=f"http://127.0.0.1:{made.server_address[1]}/")
        with pytest.raises(DownloadError, match="a from http"):
            download(resource, tmp_path)
        made.shutdown()
        thread.join()
    assert not (tmp_path / "a").exists()


def test_a_server_may_lead_to_another_address(server: Server, tmp_path: Path) -> None:
    server.location = "/elsewhere"
    assert download(server.resource(), tmp_path).read_bytes() == DATA


@pytest.mark.parametrize("scheme", ["file", "ftp", "data", "FILE", "gopher"])
def test_a_server_may_not_lead_to_files_of_this_machine(
    server: Server, tmp_path: Path, scheme: str
) -> None:
    (tmp_path / "secret").write_text("secret")
    uri = (tmp_path / "secret").as_uri()
    server.location = uri.replace("file", scheme, 1)
    with pytest.raises(DownloadError, match=r"which is not followed|is not allowed"):
        download(server.resource(), tmp_path / "kept")
    assert len(server.ranges) == 1
    assert not (tmp_path / "kept" / "data.bin").exists()


@pytest.mark.parametrize(
    ("before", "after", "followed"),
    [("https", "http", False), ("https", "https", True), ("http", "https", True)],
)
def test_a_safe_address_stays_one(before: str, after: str, followed: bool) -> None:
    request = urllib.request.Request(f"{before}://a.example/x")
    arguments = io.BytesIO(), 302, "Found", {}, f"{after}://b.example/y"
    redirects = _download._SafeRedirects()
    if followed:
        assert redirects.redirect_request(request, *arguments).full_url == arguments[-1]
    else:
        with pytest.raises(_download._RefusedError):
            redirects.redirect_request(request, *arguments)


DOWNLOADING = (
    "import sys, pathlib; from pytest_heta.benchmarks._download import download;"
    "from pytest_heta.models import BenchmarkResource as R;"
    "download(R(name='data.bin', uri=sys.argv[1]), pathlib.Path(sys.argv[2]))"
)


def downloading(server: Server, folder: Path) -> subprocess.Popen[bytes]:
    """Start a process that downloads the file."""
    return subprocess.Popen([sys.executable, "-c", DOWNLOADING, server.resource().uri, str(folder)])


def test_a_killed_download_is_gone_on_with(server: Server, tmp_path: Path) -> None:
    server.cut = server.stalls = True
    process = downloading(server, tmp_path)
    assert server.half_sent.wait(60)
    process.kill()
    process.wait(60)
    server.released.set()
    server.cut = server.stalls = False
    both = [downloading(server, tmp_path) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert (tmp_path / "data.bin").read_bytes() == DATA
    assert len(server.ranges) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [".data.bin.lock", "data.bin"]


def test_two_processes_recover_from_half_a_download(server: Server, tmp_path: Path) -> None:
    half_of_it(server, tmp_path)
    both = [downloading(server, tmp_path) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert (tmp_path / "data.bin").read_bytes() == DATA
    assert server.ranges == [HALF]


def test_two_processes_download_once(server: Server, tmp_path: Path) -> None:
    both = [downloading(server, tmp_path) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert len(server.ranges) == 1


def test_a_file_that_is_there_needs_no_folder_to_write_to(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(DATA)
    (tmp_path / ".data.bin.lock").mkdir()  # nobody can lock it, as in a folder only to be read
    for offline in (True, False):
        resource = server.resource(checksum=SHA256, size_bytes=len(DATA))
        assert download(resource, tmp_path, offline=offline).read_bytes() == DATA
    with pytest.raises(DownloadError, match="Error"):
        download(server.resource(size_bytes=1), tmp_path)
    assert server.ranges == []


def test_offline(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OfflineError, match=r"data\.bin from http"):
        download(server.resource(), tmp_path, offline=True)
    monkeypatch.setenv("HETA_OFFLINE", "1")
    with pytest.raises(OfflineError):
        download(server.resource(), tmp_path)
    (tmp_path / "data.bin").write_bytes(DATA)
    assert download(server.resource(), tmp_path).read_bytes() == DATA
    assert server.ranges == []


def test_a_file_is_copied(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(DATA)
    resource = BenchmarkResource(name="b", uri=(tmp_path / "a").as_uri())
    assert download(resource, tmp_path / "kept").read_bytes() == DATA


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "../a"},
        {"uri": "ftp://h/a"},
        {"uri": "http://["},
        {"uri": "http://a b/"},
        {"checksum": "crc:0"},
        {"checksum": "md5:00"},
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, fields: dict[str, str]) -> None:
    with pytest.raises(DownloadError):
        download(BenchmarkResource(**{"name": "a", "uri": "file:///a", **fields}), tmp_path)
