"""The report file: written whole or not at all, read with clear errors."""

import json
import math
import os
import stat
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_heta.errors import ReportError
from pytest_heta.models import (
    EvaluationError,
    EvaluationReport,
    EvaluationScore,
    PagedResults,
    QueryResponse,
    QueryResult,
    SampleTally,
    UnitBuild,
)
from pytest_heta.reports import ReportFile, check_writable, read_reports, write_reports


def strict(path):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(path.read_bytes().decode("utf-8"), parse_constant=refuse)


def names(folder):
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def full_report(make_report, make_mode, make_metric, make_result, make_gate, make_score):
    response = QueryResponse(
        mode="fts",
        results=[QueryResult(id="d1#0", text="naïve 咖啡 🚲", source={"document_id": "d1"})],
    )
    return make_report(
        [make_mode("fts", [make_metric("ndcg@10", 0.5)])],
        case_results=[
            make_result("q1", make_score(value=0.5), response=response, latency_ms=1.5),
            make_result("q2", error=EvaluationError(message="no", error_type="query")),
        ],
        gates=[make_gate(0.5, threshold=0.4)],
        unit_builds=[UnitBuild(unit_id="all", build_seconds=1.25)],
        config_snapshot={"python": "3.11", "top_k": 10},
        score_summary={"fts.ndcg@10": 0.5},
    )


# --- writing and reading back ------------------------------------------------


def test_a_report_comes_back_as_it_was(tmp_path, full_report):
    path = tmp_path / "report.json"
    write_reports(path, {"complete": True, "workers": 2}, [full_report, full_report])
    assert read_reports(path) == ReportFile(
        "1", {"complete": True, "workers": 2}, (full_report, full_report)
    )


def test_the_file_has_the_documented_layout(tmp_path, full_report):
    path = tmp_path / "report.json"
    write_reports(path, {"complete": True}, iter([full_report]))
    data = strict(path)
    assert list(data) == ["schema_version", "run", "reports"]
    assert list(data["reports"][0]) == list(EvaluationReport.model_fields)
    assert data["reports"][0] == full_report.model_dump(mode="json")


def test_every_case_result_has_a_line_of_its_own(tmp_path, full_report):
    path = tmp_path / "report.json"
    write_reports(path, {}, [full_report])
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line.rstrip(","))["case_id"] for line in lines if "case_id" in line] == [
        "q1",
        "q2",
    ]
    assert '"python": "3.11",' in lines


def test_no_reports_is_a_report_file_too(tmp_path):
    path = tmp_path / "report.json"
    write_reports(path, {}, [])
    assert read_reports(path) == ReportFile("1", {}, ())


def test_numbers_that_are_not_finite_become_null(tmp_path, make_report, make_result, make_score):
    path = tmp_path / "report.json"
    result = make_result("q1", make_score(value=math.nan, seen=[math.inf, 1.0]), latency_ms=1.0)
    write_reports(path, {"budget": math.inf}, [make_report(case_results=[result])])
    data = strict(path)
    assert data["run"] == {"budget": None}
    score = data["reports"][0]["case_results"][0]["scores"][0]
    assert score["value"] is None
    assert score["metadata"] == {"seen": [None, 1.0]}


def test_lone_surrogates_are_written_as_escapes(tmp_path, make_report, make_result):
    path = tmp_path / "report.json"
    write_reports(path, {}, [make_report(case_results=[make_result("q\ud800", query="\udfff")])])
    (result,) = read_reports(path).reports[0].case_results
    assert (result.case_id, result.query) == ("q\\ud800", "\\udfff")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    text=st.text(st.characters(exclude_categories=())),
    value=st.none() | st.floats() | st.booleans(),
    metadata=st.dictionaries(
        st.text(), st.recursive(st.none() | st.floats() | st.text() | st.integers(), st.lists)
    ),
)
def test_any_report_can_be_written_and_read(
    tmp_path, make_report, make_result, make_score, text, value, metadata
):
    path = tmp_path / "report.json"
    result = make_result("q", make_score(name="m", value=value), query=text, metadata=metadata)
    report = make_report(case_results=[result], metadata=metadata)
    write_reports(path, metadata, [report])
    (read,) = read_reports(path).reports
    assert strict(path)["reports"][0] == read.model_dump(mode="json")
    if isinstance(value, float) and not math.isfinite(value):
        assert read.case_results[0].scores[0].value is None
    else:
        assert read.case_results[0].scores[0].value == value


def test_results_on_disk_are_copied_as_they_stand(tmp_path, make_report, make_result):
    results = (make_result("q1"), make_result("问题"))
    texts = [result.model_dump_json().encode().replace(b'":', b'": ') for result in results]
    pages = PagedResults(list(map(SampleTally.of, results)), texts.__getitem__)
    path = tmp_path / "report.json"
    write_reports(path, {}, [make_report(case_results=pages)])
    assert read_reports(path).reports[0].case_results == results
    lines = path.read_bytes().splitlines()
    assert [line for line in lines if b"case_id" in line] == [texts[0] + b",", texts[1]]


def test_the_text_is_never_in_memory_as_a_whole(tmp_path, make_report, make_result, make_score):
    result = make_result("q", make_score(value=0.5), query="x" * 1000)
    report = make_report(case_results=[result] * 4000)
    path = tmp_path / "report.json"
    tracemalloc.start()
    try:
        write_reports(path, {}, [report])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 4_000_000
    assert peak < 1_000_000


def test_the_folder_is_made(tmp_path):
    path = tmp_path / "a" / "b" / "report.json"
    write_reports(path, {}, [])
    assert path.is_file()


# --- nothing half written ----------------------------------------------------


def test_the_old_report_stays_when_the_new_one_fails(tmp_path, full_report):
    path = tmp_path / "report.json"
    write_reports(path, {"run": "old"}, [full_report])

    def reports():
        yield full_report
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_reports(path, {"run": "new"}, reports())
    assert read_reports(path).run == {"run": "old"}
    assert names(tmp_path) == ["report.json"]


def test_a_value_that_contains_itself_is_a_report_error(tmp_path):
    run = {}
    run["again"] = run
    path = tmp_path / "report.json"
    with pytest.raises(ReportError, match=r"report\.json: cannot write the report: .*itself"):
        write_reports(path, run, [])
    assert names(tmp_path) == []


def test_a_link_is_followed_not_replaced(tmp_path):
    target = tmp_path / "target.json"
    link = tmp_path / "link.json"
    try:
        link.symlink_to(target)
    except OSError:
        pytest.skip("no symbolic links here")
    write_reports(link, {}, [])
    assert link.is_symlink()
    assert read_reports(target).reports == ()


@pytest.mark.skipif(sys.platform == "win32", reason="file modes of POSIX")
def test_the_file_has_the_mode_that_the_umask_gives(tmp_path):
    path = tmp_path / "report.json"
    before = os.umask(0o022)
    try:
        write_reports(path, {}, [])
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


# --- checking before the run -------------------------------------------------


def test_check_writable_makes_the_folder_and_leaves_nothing_else(tmp_path):
    check_writable(tmp_path / "new" / "report.json")
    assert names(tmp_path) == ["new"]
    assert names(tmp_path / "new") == []


def test_check_writable_keeps_an_old_report(tmp_path):
    path = tmp_path / "report.json"
    path.write_text("old", encoding="utf-8")
    check_writable(path)
    assert path.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("action", [check_writable, lambda path: write_reports(path, {}, [])])
def test_what_is_no_file_is_refused(tmp_path, action):
    with pytest.raises(ReportError, match=r"the path is a folder; name a file"):
        action(tmp_path)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ReportError, match="cannot write the report"):
        action(tmp_path / "file" / "report.json")
    with pytest.raises(ReportError, match="cannot write the report"):
        action(tmp_path / ("x" * 5000))
    with pytest.raises(ReportError, match="cannot write the report"):
        action(Path("a\0b"))


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="no devices here")
def test_a_device_is_never_replaced():
    with pytest.raises(ReportError, match="not a regular file"):
        check_writable(Path(os.devnull))


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(ReportError, match=r"Permission denied; choose another path"):
        check_writable(tmp_path / "report.json")


# --- reading what is wrong ---------------------------------------------------


def refused(path):
    with pytest.raises(ReportError) as caught:
        read_reports(path)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    return text


def test_a_missing_file(tmp_path):
    assert "there is no such report file" in refused(tmp_path / "no.json")


def test_a_folder(tmp_path):
    assert "cannot be read" in refused(tmp_path)


def test_a_name_that_cannot_be():
    with pytest.raises(ReportError, match="cannot be read"):
        read_reports(Path("a\0b"))


@pytest.mark.parametrize("content", [b"", b" \n\n"])
def test_an_empty_file(tmp_path, content):
    path = tmp_path / "report.json"
    path.write_bytes(content)
    assert "is empty" in refused(path)


def test_a_file_cut_anywhere_is_called_cut_off(tmp_path, make_report):
    path = tmp_path / "report.json"
    write_reports(path, {"a": [1.5, "x\u00e9\n", True, None, {}, []]}, [make_report()])
    whole = path.read_bytes().rstrip()
    cut = tmp_path / "cut.json"
    for length in range(1, len(whole)):
        cut.write_bytes(whole[:length])
        assert "is cut off before its end" in refused(cut), whole[:length][-20:]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"<html>", "is not JSON"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a" 1}', "is not JSON"),
        (b'{"a": "\xff"}', "is not UTF-8: byte 7 is 0xff"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "not a report file"),
        (b'{"results": []}', "not a report file"),
        (b'{"schema_version": "1", "run": [], "reports": []}', "'run' is an object"),
        (b'{"schema_version": "1", "reports": {}}', "'reports' a list"),
        (b'{"schema_version": "one", "reports": []}', "'one' is not a version number"),
        (b'{"schema_version": null, "reports": []}', "None is not a version number"),
        (b'{"schema_version": "1", "reports": [7]}', "reports[0]"),
        (b'{"schema_version": "1", "reports": [{}]}', "a value is required"),
    ],
)
def test_files_that_are_something_else(tmp_path, content, problem):
    path = tmp_path / "report.json"
    path.write_bytes(content)
    assert problem in refused(path)


def test_a_newer_schema_names_both_versions(tmp_path, make_report):
    path = tmp_path / "report.json"
    path.write_text('{"schema_version": "7", "run": {}, "reports": [1]}', encoding="utf-8")
    assert "schema version 7, newer than version 1 that" in refused(path)
    report = make_report().model_copy(update={"schema_version": "8"})
    write_reports(path, {}, [report])
    assert "reports[0]: the report has schema version 8" in refused(path)


def test_a_field_that_is_not_known_is_named(tmp_path, full_report):
    path = tmp_path / "report.json"
    write_reports(path, {}, [full_report])
    text = path.read_text(encoding="utf-8").replace('"n_scored"', '"scored"')
    path.write_text(text, encoding="utf-8")
    assert "reports[0]" in refused(path)


def test_a_byte_order_mark_does_no_harm(tmp_path, full_report):
    path = tmp_path / "report.json"
    write_reports(path, {}, [full_report])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_reports(path).reports == (full_report,)


def test_scores_keep_their_types(tmp_path, make_report, make_result):
    path = tmp_path / "report.json"
    values = [0.5, 1.0, True, False, "yes", None]
    scores = [EvaluationScore(name=str(i), value=value) for i, value in enumerate(values)]
    write_reports(path, {}, [make_report(case_results=[make_result("q", *scores)])])
    (result,) = read_reports(path).reports[0].case_results
    read = [score.value for score in result.scores]
    assert [(type(value), value) for value in read] == [(type(value), value) for value in values]
