"""Extracting archives: complete, inside the folder, or not at all."""

from __future__ import annotations

import io
import tarfile
import tempfile
import warnings
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


def a_zip(path: Path, *members: zipfile.ZipInfo) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for member in members:
            file.writestr(member, b"x")
    return path


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


KINDS = {
    "symbolic link": tarfile.SYMTYPE,
    "hard link": tarfile.LNKTYPE,
    "character device": tarfile.CHRTYPE,
    "block device": tarfile.BLKTYPE,
    "pipe": tarfile.FIFOTYPE,
    "sparse file": tarfile.GNUTYPE_SPARSE,
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_links_and_devices_of_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    archive = a_tar(tmp_path / "a", a_member("fine"), a_member("a", kind))
    assert "'a' is a link, a device" in refused(archive, tmp_path / "out")


@pytest.mark.parametrize("kind", [0o120000, 0o020000, 0o060000, 0o010000, 0o140000])
def test_links_and_devices_of_a_zip_are_refused(tmp_path: Path, kind: int) -> None:
    info = zipfile.ZipInfo("a")
    info.external_attr = (kind | 0o777) << 16
    assert "link" in refused(a_zip(tmp_path / "a", info), tmp_path / "out")


def test_what_is_encrypted_is_refused(tmp_path: Path) -> None:
    path = a_zip(tmp_path / "a", zipfile.ZipInfo("a"))
    content = bytearray(path.read_bytes())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(header) + flags] |= 1
    path.write_bytes(content)
    assert "'a' is encrypted; extract it by hand" in refused(path, tmp_path / "out")


@pytest.mark.parametrize(
    "names",
    [
        ("a", "A"),
        ("a", "a"),
        ("d/x", "D/X"),
        ("e\u0301", "é"),
        ("a", "A/x"),
        ("A/x", "a"),
        ("a", "./a"),
    ],
    ids=ascii,
)
def test_names_that_some_file_system_takes_for_one_are_refused(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    assert "twice" in refused(a_tar(tmp_path / "a", *map(a_member, names)), tmp_path / "out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a name is there twice
        a_zip(tmp_path / "b", *map(zipfile.ZipInfo, names))
    assert "twice" in refused(tmp_path / "b", tmp_path / "out")


def test_a_folder_may_stand_there_twice(tmp_path: Path) -> None:
    members = a_member("d", tarfile.DIRTYPE), a_member("d/a"), a_member("d", tarfile.DIRTYPE)
    assert [
        path.name for path in extract(a_tar(tmp_path / "a", *members), tmp_path / "out").iterdir()
    ] == ["d"]


def test_bombs_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "b", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a", bytes(4 << 20))
    assert "too large" in refused(tmp_path / "b", tmp_path / "out")
    assert extract(tmp_path / "b", tmp_path / "wanted", max_ratio=2_000)
    for mode in ("w:gz", "w:bz2", "w:xz"):
        archive = a_tar(tmp_path / "a", a_member("a", size=4 << 20), mode=mode)
        assert "too large" in refused(archive, tmp_path / "out")
    assert "too large" in refused(archive, tmp_path / "out", max_ratio=10**6, max_bytes=10)


def test_too_many_members_are_refused(tmp_path: Path) -> None:
    archive = a_tar(tmp_path / "a", *(a_member(str(number)) for number in range(4)))
    message = refused(archive, tmp_path / "out", max_members=3)
    assert "more than 3 members" in message
    assert len(list(extract(archive, tmp_path / "out", max_members=4).iterdir())) == 4


def test_a_zip_that_lies_about_sizes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a", bytes(4 << 20))
    content = path.read_bytes().replace((4 << 20).to_bytes(4, "little"), (9).to_bytes(4, "little"))
    path.write_bytes(content)
    assert refused(path, tmp_path / "out")


@pytest.mark.parametrize("levels", [101, 5_000])
def test_names_of_endless_depth_are_refused(tmp_path: Path, levels: int) -> None:
    archive = a_tar(tmp_path / "a", a_member("d/" * (levels - 1) + "a"))
    assert "levels" in refused(archive, tmp_path / "out")


def test_a_cut_tar_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    members = a_member("a.txt", size=700), a_member("b.txt", size=10)
    for mode in ("w", "w:gz", "w:bz2", "w:xz"):
        whole = a_tar(tmp_path / "a", *members, mode=mode).read_bytes()
        # Of zeros at the end of a tar, all but the first block are filling.
        end = 2560 + 512 if mode == "w" else len(whole)
        step = 64 if mode == "w" else 1
        for size in range(0, end, step):
            (tmp_path / "a").write_bytes(whole[:size])
            refused(tmp_path / "a", tmp_path / "out")
        (tmp_path / "a").write_bytes(whole[:end])
        extract(tmp_path / "a", tmp_path / f"out-{mode[2:]}")


def test_a_cut_zip_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("d/a.txt", "xyz" * 50)
    whole = (tmp_path / "a").read_bytes()
    for size in range(len(whole)):
        (tmp_path / "a").write_bytes(whole[:size])
        refused(tmp_path / "a", tmp_path / "out")


def test_a_damaged_header_is_not_the_end(tmp_path: Path) -> None:
    path = a_tar(tmp_path / "a", a_member("a", size=10), a_member("b"), a_member("c"))
    content = bytearray(path.read_bytes())
    content[1024 + 150] ^= 1  # the checksum of b's header
    path.write_bytes(content)
    assert "damaged" in refused(path, tmp_path / "out")


def test_a_tar_that_ends_in_a_zip_is_a_tar(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "inner.zip", "w") as file:
        file.writestr("inner.txt", "x")
    with tarfile.open(tmp_path / "a", "w") as tar:
        tar.add(tmp_path / "inner.zip", "inner.zip")
    folder = extract(tmp_path / "a", tmp_path / "out")
    assert [path.name for path in folder.iterdir()] == ["inner.zip"]


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
