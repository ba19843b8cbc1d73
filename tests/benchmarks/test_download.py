"""Downloads: whole and checked, or an error that names file and address."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
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


class Server(ThreadingHTTPServer):
    status, cut, tag = 200, False, '"1"'
    data = DATA

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges: list[str | None] = []

    def resource(self, **fields: Any) -> BenchmarkResource:
        uri = f"http://127.0.0.1:{self.server_port}/file"
        return BenchmarkResource(name="data.bin", uri=uri, **fields)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.ranges.append(wanted)
        start, data = 0, self.server.data
        if wanted and self.headers.get("If-Range") == self.server.tag:
            start = int(wanted[6:-1])
        self.send_response(206 if start else self.server.status)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("ETag", self.server.tag)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start : len(data) // 2 if self.server.cut else None])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(_download, "_PAUSE_S", 0)
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
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
    right = "sha256:" + hashlib.sha256(DATA).hexdigest()
    with pytest.raises(ChecksumError, match=r"data\.bin from http"):
        download(server.resource(checksum="md5:" + "0" * 32), tmp_path)
    with pytest.raises(ChecksumError, match="bytes"):
        download(server.resource(size_bytes=7), tmp_path)
    assert not (tmp_path / "data.bin").exists()
    assert download(server.resource(checksum=right), tmp_path).read_bytes() == DATA
    (tmp_path / "data.bin").write_bytes(b"spoilt")
    with pytest.raises(ChecksumError):
        download(server.resource(checksum=right), tmp_path)


def test_two_processes_download_once(server: Server, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from pytest_heta.benchmarks._download import download;"
        "from pytest_heta.models import BenchmarkResource as R;"
        "download(R(name='data.bin', uri=sys.argv[1]), pathlib.Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, server.resource().uri, str(tmp_path)]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert len(server.ranges) == 1


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
    [{"name": "../a"}, {"uri": "ftp://h/a"}, {"checksum": "crc:0"}, {"checksum": "md5:00"}],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, fields: dict[str, str]) -> None:
    with pytest.raises(DownloadError):
        download(BenchmarkResource(**{"name": "a", "uri": "file:///a", **fields}), tmp_path)
