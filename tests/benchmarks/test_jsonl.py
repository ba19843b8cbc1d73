"""Documents and cases of one's own: fields, run units, evaluators, and faults."""

import asyncio
import base64
import sys

import pytest

from pytest_heta.benchmarks import JsonlBenchmark
from pytest_heta.errors import (
    ConfigurationError,
    DatasetInvalidError,
    DatasetNotFoundError,
    DuplicateIdError,
    ModelInvalidError,
    PlanInvalidError,
)
from pytest_heta.models import BenchmarkWorkspace
from pytest_heta.protocols import BenchmarkProtocol

DOCUMENTS = [{"id": "d1", "text": "tin roof"}, {"id": "d2", "text": "slate roof"}]


def case(case_id="c1", **fields):
    return {"case_id": case_id, "query": "roof", **fields}


def names(benchmark):
    return [evaluator.name for evaluator in benchmark.evaluators()]


def units(loaded):
    return {unit.unit_id: (unit.document_ids, unit.case_ids) for unit in loaded.units}


def test_folder_becomes_documents_cases_and_one_unit(jsonl, load):
    benchmark = JsonlBenchmark(
        jsonl([case(evidence=["d1"], answers=["tin"])], DOCUMENTS, name="my-data")
    )
    loaded = load(benchmark)
    assert isinstance(benchmark, BenchmarkProtocol)
    assert benchmark.manifest.name == "my-data"
    assert benchmark.manifest.build_scope == "corpus"
    assert [(d.document_id, d.name, d.data) for d in loaded.documents] == [
        ("d1", "d1.txt", b"tin roof"),
        ("d2", "d2.txt", b"slate roof"),
    ]
    assert loaded.cases[0].query == "roof"
    assert loaded.cases[0].expected.answers == ("tin",)
    assert [e.reference_id for e in loaded.cases[0].expected.evidence] == ["d1"]
    assert units(loaded) == {"corpus": ((), ())}


def test_reading_twice_gives_the_same(jsonl, load):
    benchmark = JsonlBenchmark(jsonl([case(unit="a", documents=["d1"])], DOCUMENTS))
    assert load(benchmark) == load(benchmark)


# --- documents ---


@pytest.mark.parametrize("field", ["document_id", "id", "_id"])
@pytest.mark.parametrize("value", [7, 7.0, "7"])
def test_ids_of_documents_have_three_names_and_one_form(jsonl, load, field, value):
    loaded = load(JsonlBenchmark(jsonl([case(evidence=[7])], [{field: value, "text": "x"}])))
    assert loaded.documents[0].document_id == "7"
    assert loaded.cases[0].expected.evidence[0].reference_id == "7"


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ({"text": "x"}, "x"),
        ({"text": "x", "title": None}, "x"),
        ({"text": "x", "title": ""}, "x"),
        ({"text": "x", "title": "T"}, "T\n\nx"),
        ({"text": None, "title": "T"}, "T"),
        ({"text": None}, ""),
        ({"text": "", "path": None}, ""),
        ({"text": "咖啡 🚲"}, "咖啡 🚲"),
        ({"data_base64": base64.b64encode("é".encode()).decode()}, "é"),
    ],
)
def test_contents_that_stand_in_the_file(jsonl, load, fields, content):
    loaded = load(JsonlBenchmark(jsonl([case()], [{"id": "d", **fields}])))
    assert loaded.documents[0].data.decode("utf-8") == content


def test_contents_in_files_beside_it(jsonl, load):
    folder = jsonl(
        [case()],
        [
            {"id": "a", "path": "pdf/a.pdf", "title": "A"},
            {"id": "b", "path": "missing.md"},
            {"id": "c", "path": "./x/../c.TXT", "name": "own.md", "media_type": "text/x-own"},
        ],
    )
    loaded = load(JsonlBenchmark(folder))
    a, b, c = loaded.documents
    assert (a.path, a.name, a.media_type) == (folder / "pdf/a.pdf", "a.pdf", "application/pdf")
    assert (a.data, a.metadata) == (None, {"title": "A"})
    assert (b.path, b.media_type) == (folder / "missing.md", "text/markdown")
    assert (c.path.resolve(), c.name, c.media_type) == (
        (folder / "c.TXT").resolve(),
        "own.md",
        "text/x-own",
    )


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "..", "../data2/x"])
def test_paths_out_of_the_folder_need_to_be_allowed(jsonl, load, path):
    folder = jsonl([case()], [{"id": "d", "path": path}])
    with pytest.raises(DatasetInvalidError, match=r"leads out of .*allow_outside=True") as caught:
        load(JsonlBenchmark(folder))
    assert caught.value.where == f"{folder / 'documents.jsonl'}:1"
    loaded = load(JsonlBenchmark(folder, allow_outside=True))
    assert loaded.documents[0].path == folder / path


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_links_out_of_the_folder_need_to_be_allowed(jsonl, load, tmp_path):
    folder = jsonl([case()], [{"id": "d", "path": "link/x.txt"}])
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(DatasetInvalidError, match="leads out"):
        load(JsonlBenchmark(folder))
    assert load(JsonlBenchmark(folder, allow_outside=True)).documents


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_folder_that_is_a_link_is_no_way_out(jsonl, load, tmp_path):
    folder = jsonl([case()], [{"id": "d", "path": "x.txt"}])
    (tmp_path / "latest").symlink_to(folder)
    assert load(JsonlBenchmark(tmp_path / "latest")).documents[0].name == "x.txt"


def test_documents_file_in_a_folder_below_may_name_files_of_the_dataset(jsonl, load, datasets):
    folder = jsonl([case()])
    datasets.write_file(folder / "meta" / "docs.jsonl", [{"id": "d", "path": "../pdf/a.pdf"}])
    loaded = load(JsonlBenchmark(folder, documents="meta/docs.jsonl"))
    assert loaded.documents[0].path.resolve() == (folder / "pdf" / "a.pdf").resolve()


def test_documents_file_elsewhere_has_its_own_folder(jsonl, load, datasets, tmp_path):
    folder = jsonl([case()])
    inside = [{"id": "d", "path": "a.pdf"}]
    file = datasets.write_file(tmp_path / "shared" / "docs.jsonl", inside)
    loaded = load(JsonlBenchmark(folder, documents=file))
    assert loaded.documents[0].path == tmp_path / "shared" / "a.pdf"
    datasets.write_file(file, [{"id": "d", "path": "../data/a.pdf"}])
    with pytest.raises(DatasetInvalidError, match="leads out"):
        load(JsonlBenchmark(folder, documents=file))


def test_addresses_need_to_be_allowed(jsonl, load):
    folder = jsonl(
        [case()],
        [{"id": "d", "source_uri": "s3://b/c/d.pdf?v=1"}, {"id": "e", "source_uri": "memory://"}],
    )
    with pytest.raises(DatasetInvalidError, match=r'"source_uri" = .* leads out'):
        load(JsonlBenchmark(folder))
    d, e = load(JsonlBenchmark(folder, allow_outside=True)).documents
    assert (d.source_uri, d.name, d.media_type) == (
        "s3://b/c/d.pdf?v=1",
        "d.pdf",
        "application/pdf",
    )
    assert e.source_uri == "memory://"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "x"}, '"document_id" or "id" or "_id" is missing'),
        ({"id": "d"}, "exactly one of .* there is none"),
        ({"id": "d", "title": "T"}, "exactly one of"),
        ({"id": "d", "path": None}, "exactly one of"),
        ({"id": "d", "text": "x", "path": "y"}, 'there is "text" and "path"'),
        ({"id": "d", "document_id": "e", "text": "x"}, '"document_id" and "id" differ'),
        ({"id": "d", "text": ["x"]}, '"text" = .* must be a string'),
        ({"id": "d", "path": 7}, '"path" = 7 must be a string'),
        ({"id": "d", "path": " "}, "names no file"),
        ({"id": "d", "path": "a\0b"}, "cannot be a path"),
        ({"id": "d", "data_base64": "%%%"}, "is not base64"),
        ({"id": "d", "data_base64": "é"}, "is not base64"),
        ({"id": "d", "text": "x", "metadata": []}, '"metadata" = '),
        ({"id": "d", "text": "x", "media-type": "a/b"}, 'did you mean "media_type"'),
    ],
)
def test_wrong_document_is_named_with_its_line(jsonl, load, record, message):
    folder = jsonl([case()], ["\n", record])
    with pytest.raises(DatasetInvalidError, match=message) as caught:
        load(JsonlBenchmark(folder))
    assert caught.value.where == f"{folder / 'documents.jsonl'}:2"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_link_that_leads_to_itself_is_never_another_exception(jsonl, load):
    folder = jsonl([case()], [{"id": "d", "path": "loop"}])
    (folder / "loop").symlink_to("loop")
    if sys.version_info < (3, 13):
        with pytest.raises(DatasetInvalidError, match="cannot be a path"):
            load(JsonlBenchmark(folder))
    else:
        assert load(JsonlBenchmark(folder)).documents


def test_other_fields_of_documents_are_metadata(jsonl, load):
    record = {"id": "d", "text": "x", "title": "T", "url": "u", "metadata": {"year": 1}}
    loaded = load(JsonlBenchmark(jsonl([case()], [record])))
    assert loaded.documents[0].metadata == {"url": "u", "year": 1, "title": "T"}


def test_name_of_a_text_follows_its_media_type(jsonl, load):
    loaded = load(
        JsonlBenchmark(
            jsonl(
                [case()],
                [
                    {"id": "a/1", "text": "# x", "media_type": "text/markdown"},
                    {"id": "b", "data_base64": "", "name": "b.pdf"},
                ],
            )
        )
    )
    assert [(d.name, d.media_type) for d in loaded.documents] == [
        ("a_1.md", "text/markdown"),
        ("b.pdf", "application/pdf"),
    ]


def test_duplicate_document_ids_name_both_lines(jsonl, load):
    folder = jsonl([case()], [{"id": 7, "text": "a"}, {"_id": "7", "text": "a"}])
    with pytest.raises(DuplicateIdError, match=r"documents.jsonl:2: .*'7'.*documents.jsonl:1"):
        load(JsonlBenchmark(folder))


# --- documents within cases ---


def test_cases_may_hold_their_documents(tmp_path, datasets, load):
    shared = {"id": "d2", "text": "slate"}
    file = datasets.write_file(
        tmp_path / "sets" / "one-file.jsonl",
        [
            case("c1", documents=[{"id": "d1", "text": "tin"}, shared]),
            case("c2", documents=[{"text": "slate", "id": "d2"}, {"id": "d3", "path": "d3.md"}]),
        ],
    )
    benchmark = JsonlBenchmark(file)
    loaded = load(benchmark)
    assert benchmark.manifest.name == "one-file"
    assert benchmark.manifest.build_scope == "case"
    assert [d.document_id for d in loaded.documents] == ["d1", "d2", "d3"]
    assert loaded.document("d3").path == tmp_path / "sets" / "d3.md"
    assert units(loaded) == {"c1": (("d1", "d2"), ("c1",)), "c2": (("d2", "d3"), ("c2",))}
    assert load(JsonlBenchmark(cases=file)) == loaded


def test_document_that_cases_do_not_agree_on_names_both_lines(jsonl, load):
    folder = jsonl(
        [
            case("c1", documents=[{"id": "d", "text": "a"}]),
            case("c2", documents=[{"id": "d", "text": "b"}]),
        ]
    )
    with pytest.raises(DuplicateIdError, match=r"cases.jsonl:2: .*'d'.*cases.jsonl:1"):
        load(JsonlBenchmark(folder))


def test_document_of_a_case_and_of_the_documents_file_names_both_lines(jsonl, load):
    folder = jsonl([case(documents=[{"id": "d1", "text": "tin roof"}])], DOCUMENTS)
    with pytest.raises(DuplicateIdError, match=r"cases.jsonl:1: .*documents.jsonl:1"):
        load(JsonlBenchmark(folder))


def test_documents_of_cases_are_checked_as_any(jsonl, load):
    folder = jsonl([case(documents=[{"id": "d"}])])
    with pytest.raises(DatasetInvalidError, match=r'cases.jsonl:1: .*"documents\[0\].text"'):
        load(JsonlBenchmark(folder))
    folder = jsonl([case(documents=[{"id": "d", "path": "../../x"}])])
    with pytest.raises(DatasetInvalidError, match="leads out"):
        load(JsonlBenchmark(folder))


# --- cases ---


def expected_of(jsonl, load, **fields):
    return load(JsonlBenchmark(jsonl([case(**fields)], DOCUMENTS))).cases[0].expected


@pytest.mark.parametrize("field", ["case_id", "id", "_id"])
@pytest.mark.parametrize("query", ["query", "question"])
def test_ids_and_queries_have_several_names(jsonl, load, field, query):
    loaded = load(JsonlBenchmark(jsonl([{field: 1, query: "naïve 咖啡"}], DOCUMENTS)))
    assert (loaded.cases[0].case_id, loaded.cases[0].query) == ("1", "naïve 咖啡")


@pytest.mark.parametrize(
    ("fields", "answers"),
    [
        ({}, ()),
        ({"answers": None}, ()),
        ({"answers": []}, ()),
        ({"answers": ["a", "b"]}, ("a", "b")),
        ({"answer": "a"}, ("a",)),
        ({"answer": ["a", 3]}, ("a", "3")),
        ({"answers": 42}, ("42",)),
        ({"answer": 0.5}, ("0.5",)),
        ({"expected": {"answers": ["a"]}}, ("a",)),
    ],
)
def test_answers_are_one_or_a_list(jsonl, load, fields, answers):
    assert expected_of(jsonl, load, **fields).answers == answers


def test_evidence_of_all_kinds(jsonl, load):
    evidence = expected_of(
        jsonl,
        load,
        evidence=[
            "d1",
            2,
            {"document_id": 3, "relevance": 0.5},
            {"reference_id": "d1", "locator": {"page_index": 3}, "metadata": {"note": "n"}},
            {"locator": {"document_id": 4, "document_ids": [5.0, "x"], "chunk_id": None}},
            {"text": "tin roof", "relevance": None},
            {"reference_id": "d9", "text": " ", "metadata": {"relevance": 2}},
        ],
    ).evidence
    assert [e.reference_id for e in evidence] == ["d1", "2", "3", "d1", None, None, "d9"]
    assert [e.grade for e in evidence] == [1, 1, 0.5, 1, 1, 1, 2]
    assert evidence[3].locator == {"page_index": 3}
    assert evidence[3].metadata == {"note": "n"}
    assert evidence[4].locator == {"document_id": "4", "document_ids": ["5", "x"]}
    assert [e.text for e in evidence[5:]] == ["tin roof", None]


def test_expected_may_stand_in_an_object(jsonl, load):
    expected = expected_of(
        jsonl,
        load,
        expected={
            "answers": ["a"],
            "evidence": ["d1"],
            "value": {"x": [1]},
            "metadata": {"m": 1},
            "source": "s",
        },
    )
    assert expected.answers == ("a",)
    assert expected.evidence[0].reference_id == "d1"
    assert expected.value == {"x": [1]}
    assert expected.metadata == {"m": 1, "source": "s"}


def test_labels_value_metadata_and_other_fields(jsonl, load):
    record = case(labels={"type": "x"}, value=3, metadata={"m": 1}, source="s")
    one = load(JsonlBenchmark(jsonl([record], DOCUMENTS))).cases[0]
    assert (one.labels, one.expected.value, one.metadata) == (
        {"type": "x"},
        3,
        {"source": "s", "m": 1},
    )


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"query": "x"}, '"case_id" or "id" or "_id" is missing'),
        ({"id": True, "query": "x"}, '"id" = True'),
        ({"id": "c"}, '"query" or "question" is missing'),
        ({"id": "c", "query": None}, '"query" or "question" is missing'),
        ({"id": "c", "query": 5}, '"query" = 5 must be a string'),
        ({"id": "c", "query": "x", "question": "y"}, '"query" and "question" differ'),
        (case(answers=["a", ""]), "\"answers\" has '', which is no answer"),
        (case(answers=[" "]), "no answer"),
        (case(answer=True), "no answer"),
        (case(answers=[None]), "no answer"),
        (case(answers={"text": ["a"]}), "no answer"),
        (case(answer="a", answers=["b"]), '"answers" and "answer" differ'),
        (case(evidence="d1"), '"evidence" = .* must be a list'),
        (case(evidence=["d1", None]), r'"evidence\[1\]" is null'),
        (case(evidence=[["d1"]]), r'"evidence\[0\]" is a list'),
        (case(evidence=[{}]), "a reference_id, a locator or a text is required"),
        (case(evidence=[{"text": " "}]), "is required"),
        (case(evidence=["d1", {"document_id": ""}]), r'"evidence\[1\].document_id" = '),
        (case(evidence=[{"document_id": "d", "reference_id": "e"}]), "differ"),
        (case(evidence=[{"document_id": "d", "relevance": "2"}]), r"relevance\" = '2' must be a n"),
        (case(evidence=[{"document_id": "d", "relevance": True}]), "must be a number"),
        (case(evidence=[{"document_id": "d", "metadata": {"relevance": "x"}}]), "must be a number"),
        (
            case(evidence=[{"document_id": "d", "relevance": 1, "metadata": {"relevance": 2}}]),
            "differ: 1 and 2",
        ),
        (case(evidence=[{"document_id": "d", "relevence": 2}]), 'did you mean "relevance"'),
        (
            case(evidence=[{"document_id": "d", "page_index": 2}]),
            "unknown field 'evidence.*locator",
        ),
        (case(evidence=[{"locator": {"document_id": [True]}}]), "locator.document_id"),
        (case(evidence=[{"locator": {"document_ids": {}}}]), "locator.document_ids"),
        (case(labels=["a"]), '"labels" = .* must be an object'),
        (case(metadata="m"), '"metadata" = '),
        (case(documents="d1"), '"documents" = .* must be a list'),
        (case(documents=[None]), r'"documents\[0\]" = None'),
        (case(documents=[{"text": "x"}]), r'"documents\[0\].document_id" or .* is missing'),
        (case(unit=["a"]), '"unit" = '),
        (case(evidnce=["d1"]), 'did you mean "evidence"'),
        (case(expected=["a"]), '"expected" = .* must be an object'),
        (case(expected={"answers": ["a"]}, evidence=["d1"]), '"evidence" stands beside "expected"'),
        (case(expected={"answrs": ["a"]}), 'did you mean "answers"'),
    ],
)
def test_wrong_case_is_named_with_its_line(jsonl, load, record, message):
    folder = jsonl([case("c0"), "  \n", record], DOCUMENTS)
    with pytest.raises(DatasetInvalidError, match=message) as caught:
        load(JsonlBenchmark(folder))
    assert caught.value.where == f"{folder / 'cases.jsonl'}:3"


def test_document_judged_twice_in_a_case_is_an_error(jsonl, load):
    folder = jsonl([case(evidence=["d1", {"document_id": "d1", "relevance": 2}])], DOCUMENTS)
    with pytest.raises(DuplicateIdError, match=r"cases.jsonl:1: .*'d1' twice"):
        load(JsonlBenchmark(folder))


def test_places_in_one_document_are_several_pieces_of_evidence(jsonl, load):
    pieces = [{"document_id": "d1", "text": text} for text in ("tin", "roof")]
    assert len(expected_of(jsonl, load, evidence=pieces).evidence) == 2


def test_duplicate_case_ids_name_both_lines(jsonl, load):
    folder = jsonl([case("1"), case("2"), case(1)], DOCUMENTS)
    with pytest.raises(DuplicateIdError, match=r"cases.jsonl:3: case id '1' .*cases.jsonl:1"):
        load(JsonlBenchmark(folder))


def test_id_syntax_of_other_tools_is_kept_in_case_ids(jsonl, load):
    ids = ["a::b", "x[1]", "m/n", "two words", "中", "*", "-x"]
    loaded = load(JsonlBenchmark(jsonl([case(i) for i in ids], DOCUMENTS)))
    assert [c.case_id for c in loaded.cases] == ids


# --- files ---


@pytest.mark.parametrize("name", ["cases.jsonl", "documents.jsonl"])
def test_byte_order_marks_crlf_and_blank_lines_change_nothing(jsonl, load, name):
    folder = jsonl([case("c1"), case("c2"), case("c3")], DOCUMENTS)
    plain = load(JsonlBenchmark(folder))
    path = folder / name
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n \t\r\n\r\n".join(lines))
    decorated = load(JsonlBenchmark(folder))
    assert (decorated.cases, decorated.documents) == (plain.cases, plain.documents)


@pytest.mark.parametrize("name", ["cases.jsonl", "documents.jsonl"])
def test_broken_line_is_never_a_partial_load(jsonl, load, name):
    folder = jsonl([case("c1"), case("c2")], DOCUMENTS)
    path = folder / name
    path.write_bytes(path.read_bytes().replace(b"}\n", b",}\n"))
    with pytest.raises(DatasetInvalidError) as caught:
        load(JsonlBenchmark(folder))
    assert caught.value.where == f"{path}:1"


@pytest.mark.parametrize("name", ["cases.jsonl", "documents.jsonl"])
def test_empty_file_is_an_error(jsonl, load, name):
    folder = jsonl([case()], DOCUMENTS)
    (folder / name).write_bytes(b"\n")
    with pytest.raises(DatasetInvalidError, match="holds no record"):
        load(JsonlBenchmark(folder))


@pytest.mark.parametrize("name", ["cases.jsonl", "documents.jsonl"])
def test_missing_file_names_file_folder_and_all_that_is_expected(jsonl, load, name):
    folder = jsonl([case(documents=["d1"])], DOCUMENTS)
    (folder / name).unlink()
    with pytest.raises(DatasetNotFoundError) as caught:
        load(JsonlBenchmark(folder))
    assert repr(name) in caught.value.message
    assert caught.value.where == str(folder)
    assert "cases.jsonl and documents.jsonl" in caught.value.hint


@pytest.mark.parametrize("path", ["nowhere", "nowhere/cases.jsonl"])
def test_missing_folder_is_said_to_be_missing(load, tmp_path, path):
    with pytest.raises(DatasetNotFoundError, match=r"does not exist.*'cases.jsonl'"):
        load(JsonlBenchmark(tmp_path / path))


def test_named_documents_file_has_to_exist(jsonl, load):
    folder = jsonl([case()], DOCUMENTS)
    with pytest.raises(DatasetNotFoundError, match=r"'other.jsonl' is missing"):
        load(JsonlBenchmark(folder, documents="other.jsonl"))


def test_files_can_be_named(tmp_path, datasets, load, monkeypatch):
    datasets.write_file(tmp_path / "q" / "some.ndjson", [case()])
    datasets.write_file(tmp_path / "d" / "docs.jsonl", DOCUMENTS)
    loaded = load(JsonlBenchmark(cases="q/some.ndjson", documents="d/docs.jsonl"))
    assert len(loaded.documents) == 2
    assert loaded.prepared.manifest.name == "some"
    loaded = load(JsonlBenchmark("q", cases="some.ndjson", documents=tmp_path / "d/docs.jsonl"))
    assert loaded.prepared.manifest.name == "q"
    assert [r.uri for r in loaded.prepared.resources] == [
        str(tmp_path / "q" / "some.ndjson"),
        str(tmp_path / "d" / "docs.jsonl"),
    ]
    monkeypatch.chdir(tmp_path / "q")
    assert len(load(JsonlBenchmark("some.ndjson", documents="../d/docs.jsonl")).documents) == 2


def test_cases_file_called_cases_is_named_like_its_folder(jsonl):
    folder = jsonl([case()], DOCUMENTS, name="my-data")
    assert JsonlBenchmark(folder / "cases.jsonl").manifest.name == "my-data"
    assert repr(JsonlBenchmark(folder)) == f"JsonlBenchmark({str(folder)!r})"


def test_resources_are_the_files_that_are_there(jsonl):
    folder = jsonl([case()], DOCUMENTS)
    assert [(r.name, r.uri) for r in JsonlBenchmark(folder).resources()] == [
        ("cases", str(folder / "cases.jsonl")),
        ("documents", str(folder / "documents.jsonl")),
    ]


@pytest.mark.parametrize("wrong", [{}, {"documents": "d.jsonl"}])
def test_folder_or_cases_have_to_be_named(wrong):
    with pytest.raises(ConfigurationError, match="needs a folder or a cases file"):
        JsonlBenchmark(**wrong)


def test_unknown_scope_lists_the_known_ones(tmp_path):
    with pytest.raises(
        ConfigurationError, match="'unit' is not known; one of: corpus, case, group"
    ):
        JsonlBenchmark(tmp_path, build_scope="unit")


def test_manifest_that_is_not_legal_is_refused_at_once(tmp_path):
    with pytest.raises(ModelInvalidError, match=r"BenchmarkManifest.name"):
        JsonlBenchmark(tmp_path, name="a b")


def test_manifest_says_what_it_is_told_also_of_a_broken_dataset(jsonl):
    folder = jsonl(["{broken\n"], DOCUMENTS)
    benchmark = JsonlBenchmark(folder, name="x", version="2", split="dev", about={"license": "l"})
    manifest = benchmark.manifest
    assert (manifest.name, manifest.version, manifest.split) == ("x", "2", "dev")
    assert (manifest.license, manifest.build_scope) == ("l", "corpus")
    assert JsonlBenchmark(folder, build_scope="case").manifest.build_scope == "case"


# --- run units ---


def test_cases_with_the_same_unit_share_its_documents(jsonl, load):
    benchmark = JsonlBenchmark(
        jsonl(
            [
                case("c1", unit=1, documents=["d2"]),
                case("c2", unit="b", documents=["d1"]),
                case("c3", unit="1", documents=["d1", "d2"]),
            ],
            DOCUMENTS,
        )
    )
    loaded = load(benchmark)
    assert loaded.prepared.manifest.build_scope == "group"
    assert units(loaded) == {"1": (("d2", "d1"), ("c1", "c3")), "b": (("d1",), ("c2",))}
    assert [unit.metadata for unit in loaded.units] == [{"unit": "1"}, {"unit": "b"}]


def test_documents_may_name_their_units(jsonl, load):
    loaded = load(
        JsonlBenchmark(
            jsonl(
                [case("c1", unit="a"), case("c2", unit="b", documents=["d4"])],
                [
                    {"id": "d1", "text": "x", "unit": "a"},
                    {"id": "d2", "text": "x", "unit": ["a", "b"]},
                    {"id": "d3", "text": "x", "unit": "unused"},
                    {"id": "d4", "text": "x"},
                ],
            )
        )
    )
    assert units(loaded) == {"a": (("d1", "d2"), ("c1",)), "b": (("d4", "d2"), ("c2",))}


def test_unit_names_are_made_legal_and_stay_apart(jsonl, load):
    given = ["a", "a b", "a/b", "中", "文", "A"]
    loaded = load(
        JsonlBenchmark(
            jsonl(
                [case(f"c{n}", unit=unit, documents=["d1"]) for n, unit in enumerate(given)],
                DOCUMENTS,
            )
        )
    )
    ids = [unit.unit_id for unit in loaded.units]
    assert len(set(ids)) == len(given)
    assert all(
        set(i) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
        for i in ids
    )
    assert ids[0] == "a"
    assert [unit.metadata["unit"] for unit in loaded.units] == given


def test_only_a_single_unit_may_mean_all_documents(jsonl, load):
    assert units(load(JsonlBenchmark(jsonl([case("c1", unit="a")], DOCUMENTS)))) == {
        "a": ((), ("c1",))
    }
    folder = jsonl([case("c1", unit="a", documents=["d1"]), case("c2", unit="b")], DOCUMENTS)
    with pytest.raises(PlanInvalidError, match="run unit 'b' names no documents") as caught:
        load(JsonlBenchmark(folder))
    assert caught.value.where == f"{folder / 'cases.jsonl'}:2"


def test_case_without_a_unit_among_others_is_named(jsonl, load):
    folder = jsonl([case("c1", unit="a"), case("c2")], DOCUMENTS)
    with pytest.raises(DatasetInvalidError, match=r"cases.jsonl:2: case 'c2' names no run unit"):
        load(JsonlBenchmark(folder))


def test_unit_document_that_does_not_exist_is_named(jsonl, load):
    folder = jsonl([case("c1", documents=["d1", "d9"])], DOCUMENTS)
    with pytest.raises(DatasetInvalidError, match=r"cases.jsonl:1: case 'c1' .*'d9', which does"):
        load(JsonlBenchmark(folder))


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("corpus", {"corpus": ((), ())}),
        ("case", {"c1": (("d1",), ("c1",)), "c2": (("d1", "d2"), ("c2",))}),
        ("group", {"u": (("d1", "d2"), ("c1", "c2"))}),
        (None, {"u": (("d1", "d2"), ("c1", "c2"))}),
    ],
)
def test_scope_can_be_said(jsonl, load, scope, expected):
    folder = jsonl(
        [case("c1", unit="u", documents=["d1"]), case("c2", unit="u", documents=["d1", "d2"])],
        DOCUMENTS,
    )
    benchmark = JsonlBenchmark(folder, build_scope=scope)
    assert benchmark.manifest.build_scope == (scope or "group")
    assert units(load(benchmark)) == expected


def test_units_can_be_read_by_another_instance_than_the_one_that_prepared(jsonl, load):
    folder = jsonl([case("c1", documents=["d1"])], DOCUMENTS)
    prepared = load(JsonlBenchmark(folder)).prepared

    async def read():
        return [unit async for unit in JsonlBenchmark(folder).run_units(prepared)]

    assert [unit.unit_id for unit in asyncio.run(read())] == ["c1"]


# --- evaluators ---


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"evidence": ["d1"]}, ["ndcg@10", "recall@5", "mrr@10"]),
        ({"evidence": [{"locator": {"document_id": "d1"}}]}, ["ndcg@10", "recall@5", "mrr@10"]),
        (
            {"evidence": [{"document_id": "d1", "text": "tin"}]},
            ["ndcg@10", "recall@5", "mrr@10", "evidence_recall@5"],
        ),
        (
            {"evidence": [{"document_id": "d1", "locator": {"page_index": 0}}]},
            ["ndcg@10", "recall@5", "mrr@10", "evidence_recall@5"],
        ),
        ({"evidence": [{"text": "tin"}]}, ["evidence_recall@5"]),
        ({"answers": ["tin"]}, ["answer_contains"]),
        (
            {"evidence": ["d1"], "answers": ["tin"]},
            ["ndcg@10", "recall@5", "mrr@10", "answer_contains"],
        ),
    ],
)
def test_evaluators_suit_what_the_cases_carry(jsonl, load, fields, expected):
    benchmark = JsonlBenchmark(jsonl([case("c0"), case("c1", **fields)], DOCUMENTS))
    assert names(benchmark) == expected
    load(benchmark)
    assert names(benchmark) == expected


def test_evaluators_can_be_chosen(jsonl):
    folder = jsonl([case(answers=["x"])], DOCUMENTS)
    assert names(JsonlBenchmark(folder, evaluators=["hit@1"])) == ["hit@1"]
    assert names(JsonlBenchmark(folder, evaluators=[])) == []


def test_evaluators_follow_the_files_when_they_are_prepared_again(jsonl, load):
    benchmark = JsonlBenchmark(jsonl([case()], DOCUMENTS))
    assert names(benchmark) == []
    jsonl([case(answers=["x"])], DOCUMENTS)
    load(benchmark)
    assert names(benchmark) == ["answer_contains"]


# --- gold documents ---


def test_strict_refuses_gold_documents_that_do_not_exist(jsonl, load):
    folder = jsonl(
        [
            case("c1", evidence=["d1", "ghost"]),
            case("c2", evidence=[{"document_id": "ghost0", "relevance": 0}]),
        ],
        DOCUMENTS,
    )
    kept = load(JsonlBenchmark(folder)).case("c1").expected.evidence
    assert [e.reference_id for e in kept] == ["d1", "ghost"]
    with pytest.raises(DatasetInvalidError, match=r"cases.jsonl:1: 1 gold document is .*'ghost'"):
        load(JsonlBenchmark(folder, strict=True))
    complete = jsonl([case(evidence=["d1"])], DOCUMENTS)
    assert load(JsonlBenchmark(complete, strict=True)).documents


# --- streaming ---


def test_iteration_that_is_left_early_closes_the_files(jsonl, tmp_path):
    # An open file would be a ResourceWarning, which is an error here.
    async def look():
        benchmark = JsonlBenchmark(jsonl([case("a", unit="u"), case("b", unit="u")], DOCUMENTS))
        prepared = await benchmark.prepare(
            BenchmarkWorkspace(root_dir=tmp_path, cache_dir=tmp_path)
        )
        for iterate in (benchmark.documents, benchmark.cases, benchmark.run_units):
            async for _ in iterate(prepared):
                break

    asyncio.run(look())
