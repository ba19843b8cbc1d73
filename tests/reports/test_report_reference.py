"""The reference of the report file describes every field, and no other."""

import re
from pathlib import Path

import pytest

from pytest_heta import models

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reference" / "report.md"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not here")

MODELS = [
    "BenchmarkManifest",
    "EvaluationCaseResult",
    "EvaluationError",
    "EvaluationReport",
    "EvaluationScore",
    "GateResult",
    "LatencySummary",
    "MetricSummary",
    "ModeSummary",
    "QueryCitation",
    "QueryResponse",
    "QueryResult",
    "UnitBuild",
]


def documented_fields(title):
    """Return the fields in the first table of a section, in order."""
    section = re.search(
        rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert section, f"report.md has no section {title}"
    table = section[1].split("| field |")[1].split("\n\n")[0]
    return re.findall(r"(?m)^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", table)


@pytest.mark.parametrize("name", MODELS)
def test_every_field_of_a_model_is_described(name):
    assert documented_fields(name) == list(getattr(models, name).model_fields)


def test_the_fields_of_the_file_are_described():
    assert documented_fields("The file") == ["schema_version", "run", "reports"]


def test_links_lead_to_sections():
    text = PAGE.read_text("utf-8")
    sections = {
        title.lower().replace(" ", "-") for title in re.findall(r"^## (.+)$", text, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= sections


def test_the_documented_version_is_the_one_that_is_written():
    assert f'a whole number: `"{models.SCHEMA_VERSION}"`' in PAGE.read_text("utf-8")
