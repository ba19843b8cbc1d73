"""FORMAT:PATH asks for a report file."""

from pathlib import Path

import pytest

from pytest_heta.errors import ConfigurationError
from pytest_heta.reports import ReportTarget, parse_report_option


@pytest.mark.parametrize("path", ["report.json", r"C:\results\report.json", "a:b.json", "out/x"])
def test_the_format_ends_at_the_first_colon(path):
    assert parse_report_option(f"json:{path}") == ReportTarget("json", Path(path))


@pytest.mark.parametrize("name", ["md", "html", "csv", "trec", "benchmark"])
def test_formats_of_later_versions_are_not_available_yet(name):
    with pytest.raises(ConfigurationError, match=rf"'{name}' is not available yet.*formats: json"):
        parse_report_option(f"{name}:report")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("report.json", "'report.json' names no format"),
        (r"C:\report.json", "'C' is not a report format"),
        ("yaml:report.yaml", "'yaml' is not a report format"),
        ("JSON:report.json", "'JSON' is not a report format"),
        ("", "'' names no format"),
        ("json", "'json' names no format"),
        ("html", "'html' names no format"),
        ("json:", "'json:' names no file"),
        ("json: ", "'json: ' names no file"),
        ("json:out/", "'out/' is a folder"),
        ("json:out\\", r"is a folder"),
    ],
)
def test_anything_else_is_refused_with_the_formats(text, problem):
    with pytest.raises(ConfigurationError) as caught:
        parse_report_option(text)
    assert problem in str(caught.value)
    assert "formats: json" in str(caught.value)
    assert "\n" not in str(caught.value)
