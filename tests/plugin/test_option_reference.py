"""Every option and every error is documented, and the pages say what the code says."""

import importlib.util
import re
from pathlib import Path

import pytest

from pytest_heta import errors
from pytest_heta.plugin.option_table import OPTIONS

DOCS = Path(__file__).parents[2] / "docs"
OPTIONS_PAGE = DOCS / "reference" / "options.md"
ERRORS_PAGE = DOCS / "errors.md"

documented = pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not here")

ERRORS = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, errors.HetaError)
]


@pytest.fixture(scope="module")
def generate():
    """The script that renders the pages."""
    spec = importlib.util.spec_from_file_location("heta_docs_generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@documented
@pytest.mark.parametrize("page", ["reference/options.md", "errors.md", "reference/python.md"])
def test_the_page_is_what_the_code_renders(generate, page):
    written = (DOCS / page).read_text(encoding="utf-8")
    assert written == generate.PAGES[page](), "run: python docs/generate.py"


@documented
@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_is_documented_with_its_ini_key(option):
    sections = OPTIONS_PAGE.read_text(encoding="utf-8").partition("## Marker")[0].split("\n### ")
    (section,) = [
        part for part in sections if re.match(rf"`({option.flag}|{option.key})[ `]", part)
    ]
    assert f"`{option.key}`" in section
    assert section.startswith(f"`{option.flag}") is option.command_line
    assert option.metavar in section or not option.command_line
    assert option.default in section


@documented
@pytest.mark.parametrize(
    "name",
    [
        "heta_recipe", "heta_unit", "heta_kb", "heta_case", "pytest_heta_case_completed",
        "pytest_heta_report", "heta(benchmark, recipe, unit, mode, **labels)", "source_keys",
    ],
)  # fmt: skip
def test_fixtures_hooks_and_the_marker_are_documented(name):
    assert f"`{name}" in OPTIONS_PAGE.read_text(encoding="utf-8")


def test_pytest_knows_exactly_the_options_of_the_table(pytester):
    text = pytester.runpytest_inprocess("--help", "-p", "no:hypothesispytest").stdout.str()
    flags = set(re.findall(r"^  (--heta-[a-z-]+)", text, re.MULTILINE))
    keys = set(re.findall(r"^  (heta_\w+) \(\w+\):", text, re.MULTILINE))
    assert flags == {option.flag for option in OPTIONS if option.command_line}
    assert keys == {option.key for option in OPTIONS}


def test_pytest_describes_the_marker(pytester):
    result = pytester.runpytest_inprocess("--markers", "-p", "no:hypothesispytest")
    result.stdout.fnmatch_lines(["@pytest.mark.heta(benchmark, recipe, unit, mode, **labels): *"])


def test_pytest_describes_the_fixtures(world):
    result = world.run("--fixtures", "bench_toys.py")
    result.stdout.fnmatch_lines(
        ["heta_kb ?class scope? -- *", "*The knowledge base of the current*"]
    )


@documented
@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_is_documented_with_its_code(kind):
    page = ERRORS_PAGE.read_text(encoding="utf-8")
    assert re.search(rf"^### `{kind.code}`\n\n\S.+\n\n\*`{kind.__name__}`", page, re.MULTILINE)
    assert re.search(rf"^[│├└─ ]*{kind.__name__}\b", page, re.MULTILINE)


def test_codes_of_errors_are_their_own_and_all_are_public():
    assert len({kind.code for kind in ERRORS}) == len(ERRORS)
    assert {kind.__name__ for kind in ERRORS} <= set(errors.__all__)


@documented
def test_docstrings_become_markdown(generate):
    text = generate.as_markdown(
        """Return ``x``.

        Like so::

            first()

            second()

        And on.

        Attributes:
            name: What it is
                called.

        Raises:
            HetaError: if not.
        """
    )
    assert text == (
        "Return `x`.\n\nLike so:\n\n```python\nfirst()\n\nsecond()\n```\n\nAnd on.\n\n"
        "* `name`: What it is\n  called.\n\nRaises:\n\n* `HetaError`: if not."
    )
