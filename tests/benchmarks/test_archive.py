"""Extracting archives: complete, inside the folder, or not at all."""

from __future__ import annotations

import io
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_heta.benchmarks._archive import extract
from pytest_heta.errors import ArchiveError


def a_tar(path: Path, *members: tarfile.TarInfo, mode: str = "w") -> Path:
    with tarfile.open(path, mode) as file:
        for member in members:
            file.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def a_member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.size, member.linkname = kind, size, "/etc/passwd"
    return member


def refused(archive: Path, folder: Path, **limits: int) -> str:
    before = set(folder.parent.iterdir())
    with pytest.raises(ArchiveError) as caught:
        extract(archive, folder, **limits)
    assert set(folder.parent.iterdir()) == before
    return str(caught.value)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_is_extracted(tmp_path: Path, mode: str) -> None:
    archive = a_tar(tmp_path / "a", a_member("./d/a.txt", size=3), mode=mode)
    folder = extract(archive, tmp_path / "out")
    assert (folder / "d" / "a.txt").read_bytes() == b"xxx"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "out"]


def test_a_zip_is_extracted(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as file:
        file.writestr("d/a.txt", "xxx")
    assert (extract(tmp_path / "a", tmp_path / "out") / "d" / "a.txt").read_bytes() == b"xxx"


@pytest.mark.parametrize("name", ["../a", "d/../../a", "/a", "C:a", "C:/a", "..\\a"])
def test_names_outside_are_refused(tmp_path: Path, name: str) -> None:
    assert "lead out" in refused(a_tar(tmp_path / "a", a_member(name)), tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "b", "w") as file:
        file.writestr(name, "x")
    assert "lead out" in refused(tmp_path / "b", tmp_path / "out")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_links_and_devices_of_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    assert "link" in refused(a_tar(tmp_path / "a", a_member("a", kind)), tmp_path / "out")


def test_links_of_a_zip_are_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("a")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a", "w") as file:
        file.writestr(info, "/etc/passwd")
    assert "link" in refused(tmp_path / "a", tmp_path / "out")


def test_duplicates_are_refused_whatever_their_case(tmp_path: Path) -> None:
    archive = a_tar(tmp_path / "a", a_member("a"), a_member("A"))
    assert "twice" in refused(archive, tmp_path / "out")


def test_bombs_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "b", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a", bytes(4 << 20))
    assert "too large" in refused(tmp_path / "b", tmp_path / "out")
    archive = a_tar(tmp_path / "a", a_member("a", size=4 << 20), mode="w:gz")
    assert "too large" in refused(archive, tmp_path / "out")
    assert "too large" in refused(archive, tmp_path / "out", max_ratio=10**6, max_bytes=10)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=600), st.sampled_from([b"", b"PK\x05\x06", b"\x1f\x8b\x08", b"BZh9"]))
def test_garbage_is_an_error_of_archives_or_inside(data: bytes, start: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        archive, folder = Path(name, "a"), Path(name, "out")
        archive.write_bytes(start + data)
        try:
            extract(archive, folder)
        except ArchiveError:
            assert not folder.exists()
        assert {path.name for path in Path(name).iterdir()} <= {"a", "out"}
