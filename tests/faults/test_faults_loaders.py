"""Whatever bytes a file holds, who reads it reads it, or raises an error with a code.

Those of datasets' own formats are tried where the loaders are tested.
"""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_heta.benchmarks import extract
from pytest_heta.benchmarks.folder import benchmark_from_folder
from pytest_heta.core.recorded import RecordedRun
from pytest_heta.core.run_folder import RunFolder
from pytest_heta.errors import HetaError
from pytest_heta.reports import read_reports

unhurried = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)


def spoilt(valid):
    """Valid content, some of its bytes replaced, dropped or put in."""
    edit = st.tuples(st.integers(0, len(valid)), st.integers(0, 4), st.binary(max_size=4))

    def apply(edits):
        content = valid
        for place, dropped, put_in in edits:
            content = content[:place] + put_in + content[place + dropped :]
        return content

    return st.binary(max_size=200) | st.lists(edit, min_size=1, max_size=3).map(apply)


def archive(kind):
    """Return a small archive of two files in a folder."""
    target = io.BytesIO()
    files = {"deep/a.jsonl": b'{"_id": "a"}\n' * 20, "b.tsv": b"q\tdoc\t1\n" * 9}
    if kind == "zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in files.items():
                packed.writestr(name, content)
        return target.getvalue()
    with tarfile.open(fileobj=target, mode=f"w:{kind}") as packed:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return target.getvalue()


@unhurried
@pytest.mark.parametrize("kind", ["zip", "", "gz", "bz2", "xz"])
@given(data=st.data())
def test_archives(kind, data):
    content = data.draw(spoilt(archive(kind)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "given").write_bytes(content)
        try:
            extract(folder / "given", folder / "out")
        except HetaError:
            # Nothing is left, and nothing is half there.
            assert [path.name for path in folder.iterdir()] == ["given"]
        else:
            assert (folder / "out").is_dir()


@pytest.fixture(scope="module")
def report_bytes(tmp_path_factory):
    from fault_world import FaultWorld, Tally

    world = FaultWorld(tmp_path_factory.mktemp("reported"), Tally())
    assert world.run("--heta-limit=1", "--heta-top-k=1", "--heta-no-gates").code == 0
    (session,) = world.path.glob("runs/*/session-1")
    return {
        "report.json": (world.path / "report.json").read_bytes(),
        "run.json": (session.parent / "run.json").read_bytes(),
        "results.jsonl": (session / "results.jsonl").read_bytes(),
        "spool.jsonl": (session / "spool" / "main.jsonl").read_bytes(),
    }


@unhurried
@given(data=st.data())
def test_reports(report_bytes, data):
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "report.json"
        path.write_bytes(data.draw(spoilt(report_bytes["report.json"])))
        with suppress(HetaError):
            assert read_reports(path).reports is not None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def changed(draw, value):
    """Return JSON data, one value of which has become another."""
    if isinstance(value, dict) and value and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: changed(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 9)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], changed(draw, value[place]), *value[place + 1 :]]
    return draw(JSON)


@unhurried
@given(data=st.data())
def test_reports_with_another_value(report_bytes, data):
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "report.json"
        path.write_text(json.dumps(changed(data.draw, json.loads(report_bytes["report.json"]))))
        with suppress(HetaError):
            assert read_reports(path).reports is not None


@unhurried
@given(data=st.data())
def test_files_of_a_run(report_bytes, data):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "one"
        (folder / "session-1" / "spool").mkdir(parents=True)
        if data.draw(st.booleans()):
            content = data.draw(spoilt(report_bytes["run.json"]))
        else:
            value = changed(data.draw, json.loads(report_bytes["run.json"]))
            content = json.dumps(value).encode()
        (folder / "run.json").write_bytes(content)
        for file, known in (("results", "results.jsonl"), ("spool/main", "spool.jsonl")):
            path = folder / "session-1" / f"{file}.jsonl"
            path.write_bytes(data.draw(spoilt(report_bytes[known])))
        assert len(RecordedRun([folder / "session-1"])) <= 2
        RunFolder.runs(folder.parent)
        try:
            opened = RunFolder.open(folder)
        except HetaError:
            return
        opened.begin_session()
        assert opened.session_path.is_dir()
        opened.end_session(complete=False, interrupted="x")
        opened.release()


FILES = ["corpus.jsonl", "queries.jsonl", "cases.jsonl", "documents.jsonl", "qrels/test.tsv"]


@unhurried
@given(
    present=st.dictionaries(
        st.sampled_from([*FILES, "qrels/dev.tsv", "qrels/x.txt", "qrels"]), st.binary(max_size=20)
    ),
    folders=st.sets(st.sampled_from([*FILES, "qrels"])),
)
def test_folders_of_datasets(present, folders):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in folders:
            (folder / path).mkdir(parents=True, exist_ok=True)
        for path, content in present.items():
            with suppress(OSError):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(content)
        with suppress(HetaError):
            benchmark_from_folder(folder)
        shutil.rmtree(folder / "qrels", ignore_errors=True)
