"""Lines and records: what is read, and how each fault is named with its line."""

import json
import os
import sys

import pytest

from pytest_heta.benchmarks._reading import MAX_DEPTH, read_lines, read_records
from pytest_heta.errors import DatasetInvalidError, DatasetNotFoundError


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "some.jsonl"
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


def fields(path):
    return [record.fields for record in read_records(path, "files")]


def test_records_come_in_order_with_their_lines(file):
    path = file('{"a": 1}\n{"a": 2}\n')
    records = list(read_records(path, "files"))
    assert [(r.line, r.fields) for r in records] == [(1, {"a": 1}), (2, {"a": 2})]
    assert records[1].where == f"{path}:2"


def test_byte_order_mark_crlf_and_blank_lines_do_not_count(file):
    path = file(b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \t \r\n{"a": 2}\r\n\n\xe3\x80\x80\n{"a": 3}')
    assert [(r.line, r.fields["a"]) for r in read_records(path, "files")] == [
        (1, 1),
        (4, 2),
        (7, 3),
    ]


def test_byte_order_mark_before_a_blank_first_line(file):
    assert fields(file(b'\xef\xbb\xbf\n{"a": 1}\n')) == [{"a": 1}]


def test_line_separators_of_unicode_do_not_end_a_line(file):
    text = "one\u2028two\u2029three\x85four"
    assert fields(file(json.dumps({"a": text}, ensure_ascii=False))) == [{"a": text}]


def test_all_of_unicode_is_read_whether_escaped_or_not(file):
    text = "naïve 咖啡 🚲 \x00\x1b\ufffe"
    escaped = json.dumps({"a": text})
    assert "\\ud83d\\udeb2" in escaped
    assert fields(file(escaped)) == [{"a": text}]


BROKEN = {
    "trailing comma": '{"a": 1,}',
    "truncated": '{"a": 1',
    "truncated string": '{"a": "x',
    "two values": '{"a": 1}{"a": 2}',
    "comma after the object": '{"a": 1},',
    "single quotes": "{'a': 1}",
    "list": "[1, 2]",
    "start of an array file": "[",
    "string": '"a"',
    "number": "7",
    "null": "null",
    "true": "true",
    "NaN": '{"a": NaN}',
    "Infinity": '{"a": Infinity}',
    "-Infinity": '{"a": -Infinity}',
    "number beyond floats": '{"a": 1e999}',
    "integer with too many digits": '{"a": ' + "9" * 5000 + "}",
    "lone surrogate": '{"a": "\\ud800"}',
    "lone surrogate in capitals": '{"a": "\\uDC00"}',
    "lone surrogate deep inside": '{"a": [{"b": ["\\udfff"]}]}',
    "lone surrogate in a field's name": '{"\\ud800": 1}',
    "surrogates the wrong way round": '{"a": "\\udc00\\ud800"}',
    "NUL byte": '{"a": "\0"}',
    "NUL byte outside": '{"a": 1}\0',
    "control character": '{"a": "\x01"}',
    "same field twice": '{"a": 1, "a": 1}',
    "same field twice inside": '{"a": [{"b": 1, "b": 2}]}',
    "invalid UTF-8": b'{"a": "\xff"}',
    "truncated UTF-8": b'{"a": "\xe4\xbd"}',
    "surrogate in UTF-8": b'{"a": "\xed\xa0\x80"}',
    "latin-1": 'naïve {"a": 1}'.encode("latin-1"),
    "byte order mark": b'\xef\xbb\xbf{"a": 1}',
    "lists too deep": '{"a": ' + "[" * 120 + "]" * 120 + "}",
    "objects too deep": '{"a":' * 120 + "1" + "}" * 120,
    "lists far too deep": "[" * 200_000,
    "objects far too deep": '{"a":' * 200_000,
}


@pytest.mark.parametrize("line", BROKEN.values(), ids=BROKEN)
def test_broken_line_is_an_error_that_names_it(file, line):
    raw = line if isinstance(line, bytes) else line.encode("utf-8")
    path = file(b'{"a": 0}\n\n' + raw + b'\n{"a": 1}\n')
    with pytest.raises(DatasetInvalidError) as caught:
        fields(path)
    assert caught.value.where == f"{path}:3"
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_are_named_on_the_first_line(file, coding):
    with pytest.raises(DatasetInvalidError, match=r":1: .*UTF-8"):
        fields(file('{"a": 1}\n'.encode(coding)))


def test_message_says_column_and_reason(file):
    with pytest.raises(
        DatasetInvalidError, match="not JSON at column 7: Expecting value"
    ) as caught:
        fields(file('{"a": x}'))
    assert caught.value.hint == "one JSON object on each line"


def test_nesting_up_to_the_limit_is_read(file):
    depth = MAX_DEPTH - 2
    line = '{"a": ' + "[" * depth + "1" + "]" * depth + "}"
    assert json.dumps(fields(file(line))[0]) == line


def test_many_brackets_side_by_side_are_not_deep(file):
    assert fields(file('{"a": [' + "[], " * 500 + "[]]}")) == [{"a": [[]] * 501}]


def test_depth_does_not_depend_on_the_recursion_limit(file):
    limit = sys.getrecursionlimit()
    path = file("[" * 3000 + "]" * 3000)
    try:
        sys.setrecursionlimit(10_000)
        with pytest.raises(DatasetInvalidError, match=f"deeper than {MAX_DEPTH} levels"):
            fields(path)
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b" \t\r\n"])
def test_file_without_records_is_an_error(file, content):
    path = file(content)
    with pytest.raises(DatasetInvalidError, match="holds no record") as caught:
        fields(path)
    assert caught.value.where == str(path)


def test_missing_file_names_file_folder_and_what_is_expected(tmp_path):
    with pytest.raises(DatasetNotFoundError) as caught:
        fields(tmp_path / "corpus.jsonl")
    assert "'corpus.jsonl' is missing" in str(caught.value)
    assert caught.value.where == str(tmp_path)
    assert caught.value.hint == "expected: files"


def test_missing_folder_is_said_to_be_missing(tmp_path):
    with pytest.raises(DatasetNotFoundError, match=r"folder does not exist.*'corpus.jsonl'"):
        fields(tmp_path / "nowhere" / "corpus.jsonl")


def test_folder_in_place_of_a_file_is_an_error(tmp_path):
    with pytest.raises(DatasetInvalidError, match="cannot be read"):
        fields(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_pipe_in_place_of_a_file_is_an_error_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(DatasetInvalidError, match=r"pipe\.jsonl: a pipe or a device"):
        list(read_records(tmp_path / "pipe.jsonl", "files"))


def test_undecodable_file_name_makes_a_message_that_can_be_written(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.jsonl")
    path.write_bytes(b"{")
    with pytest.raises(DatasetInvalidError) as caught:
        fields(path)
    assert "caf\\udce9.jsonl:1" in str(caught.value)
    str(caught.value).encode("utf-8")


def test_lines_are_read_one_by_one(file):
    # The fault on line 2 is met only when line 2 is asked for.
    records = read_records(file('{"a": 1}\n{broken\n'), "files")
    assert next(records).fields == {"a": 1}
    with pytest.raises(DatasetInvalidError, match=":2:"):
        next(records)


def test_reader_that_is_left_early_closes_its_file(file):
    # An open file would be a ResourceWarning, which is an error here.
    records = read_records(file('{"a": 1}\n{"a": 2}\n'), "files")
    next(records)
    records.close()


def test_lines_keep_tabs_and_inner_spaces(file):
    assert list(read_lines(file(b"\ta  b\t\r\n"), "files")) == [(1, "\ta  b\t")]
