"""Render the reference pages that repeat what the code says.

    python docs/generate.py

writes ``reference/options.md`` from the table of options, the marker and the
docstrings of fixtures and hooks, ``errors.md`` from the registry of codes and
the docstrings of the errors, and ``reference/python.md`` from those of functions. A test
compares the pages with what this renders.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

from pytest_heta import api, codes, errors
from pytest_heta.plugin import MARKER, execution, fixtures, hookspecs
from pytest_heta.plugin.option_table import OPTIONS, Option

DOCS: Final = Path(__file__).parent

_NOTICE: Final = "<!-- Rendered by docs/generate.py from the code: change it there. -->"
_SECTION: Final = re.compile(r"(Attributes|Args|Raises|Returns|Yields):")
_ENTRY: Final = re.compile(r"(?P<name>[\w*.]+): (?P<text>.+)")
_FLAG: Final = re.compile(r"(?<![\w`])(--heta-[a-z-]+|-vv|HETA_DATA_DIR)(?!\w)")

_OPTIONS_INTRODUCTION: Final = """\
Every option has a flag for the command line and a key for the ini file (`pytest.ini`, or
`[tool.pytest.ini_options]` in `pyproject.toml`). The command line wins, but for gates: those of
both, and of the suites, all apply. `pytest -o KEY=VALUE` sets a key for one run, which is how a
flag of the ini file is taken back: `-o heta_strict=false`.

What takes several values takes the flag several times, and one value a line in the ini file. Paths
of recipes, baseline, cache and data folder in the ini file start from the ini file's folder; paths
on the command line, and those of reports, from the current one.

A wrong value is a usage error: the session ends with exit code 4 before anything is built."""

_ERRORS_INTRODUCTION: Final = """\
Whatever goes wrong is told in one line: `[code] where: what is wrong; what to do about it`. *Where*
is a file with its line, a case, a run unit or an option. Codes are stable: search for one here.

There is no traceback, also for a fault in a recipe's or a suite's own file; `--heta-debug`, or
`-vv`, shows the tracebacks of all errors, and so does `pytest-heta --debug` for that command. In
reports, a failed sample has an `error_type` and a lost score the `type` of its error: those are
named with their codes.

What becomes of an error depends on its kind:

* `ConfigurationError`: an option, an ini key, a gate, or the way a suite is declared is wrong. It
  is a usage error: exit code 4, and nothing is built.
* `BenchmarkError`: a benchmark's data is wrong. When that is found while collecting, it is a
  collection error: exit code 2, and nothing is built unless `--continue-on-collection-errors`.
* `ExecutionError`: a build or a query failed. The sample fails and counts as the worst score; the
  run goes on.
* Whatever an evaluator raises: one score is lost and counts as the worst; the sample keeps its
  latency.
* A warning changes nothing but what is printed and stands in the report."""

_ERROR_CLASSES: Final = """\
The classes are in `pytest_heta.errors`. Catch `HetaError` for all of them; each has `code`,
`message`, `where` and `hint`."""

_CODE_SECTIONS: Final = (
    ("Errors", codes.ERRORS),
    ("Samples that fail", codes.SAMPLES),
    ("Scores that are lost", codes.SCORES),
    ("Gates that fail a run", codes.GATES),
    ("Warnings", codes.WARNINGS),
)


_PYTHON_INTRODUCTION: Final = """\
`pytest_heta.api` runs a benchmark in one call, for a notebook or a script. Failures of units and
samples are in the report, as with pytest; there are no test items and no exit code.

```python
from pytest_heta import api

report = api.run("shop", "my_recipe.py:Recipe", concurrency=4, cache_dir="kept")
print(report.score_summary, report.config_snapshot["concurrency"])
```"""

_FUNCTIONS: Final = (api.run, api.load_recipe, api.available_recipes)


# --- docstrings ----------------------------------------------------------------


def as_markdown(docstring: str) -> str:
    """Return a docstring as Markdown: its code, its literals, its lists of attributes."""
    lines: list[str] = []
    in_code = False
    for line in inspect.cleandoc(docstring).splitlines():
        indented = line.startswith("    ")
        if in_code and line and not indented:
            in_code = False
            lines = [*_without_last_blanks(lines), "```", ""]
        if in_code:
            lines.append(line.removeprefix("    "))
        elif line.endswith("::"):
            lines += [_inline(line[:-1]), "", "```python"]
            in_code = True
        elif _SECTION.fullmatch(line):
            # A list of attributes needs no title; what is raised does.
            lines += ["", "Raises:", ""] if line == "Raises:" else [""]
        elif indented:
            lines.append(_list_line(line))
        else:
            lines.append(_inline(line))
    if in_code:
        lines = [*_without_last_blanks(lines), "```"]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
    return re.sub(r"```python\n\n", "```python\n", text).strip()


def _list_line(line: str) -> str:
    entry = _ENTRY.fullmatch(line.strip())
    if entry is None or line.startswith("     "):
        return f"  {_inline(line.strip())}"
    return f"* `{entry['name']}`: {_inline(entry['text'])}"


def _inline(text: str) -> str:
    return text.replace("``", "`")


def _without_last_blanks(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines


def _functions(module: ModuleType) -> Iterator[ast.FunctionDef]:
    tree = ast.parse(inspect.getsource(module))
    yield from (node for node in tree.body if isinstance(node, ast.FunctionDef))


# --- options, marker, fixtures, hooks --------------------------------------------


def options_page() -> str:
    """Return the page of options, marker, fixtures and hooks."""
    return _page(
        "# Options, marker, fixtures, hooks",
        _OPTIONS_INTRODUCTION,
        "## Options",
        *(_option(option) for option in OPTIONS),
        "## Marker",
        _marker(),
        "## Fixtures",
        "Override them by name in a `conftest.py`. All but `heta_case` live as long as a run unit.",
        *(_fixture(node) for node in _functions(fixtures) if _fixture_scope(node)),
        "### What the fixtures give",
        f"`heta_unit` gives a `RunUnit`. {_about(fixtures.RunUnit)}",
        as_markdown(f"`heta_unit.build(recipe)`. {inspect.getdoc(fixtures.RunUnit.build)}"),
        f"`heta_case` gives a `CaseItem`. {_about(execution.CaseItem)}",
        "## Hooks",
        "Implement them in a `conftest.py` or a plugin.",
        *(_hook(node) for node in _functions(hookspecs)),
    )


def _page(*blocks: str) -> str:
    title, *rest = blocks
    return "\n\n".join([title, _NOTICE, *rest]) + "\n"


def _option(option: Option) -> str:
    flag = f"{option.flag} {option.metavar}".strip()
    title = f"### `{flag if option.command_line else option.key}`"
    facts = []
    if option.command_line:
        facts.append(f"ini key `{option.key}`")
    else:
        facts.append("ini key only")
    if option.many:
        facts.append("takes several values")
    if option.default:
        facts.append(f"default: {option.default}")
    text = _FLAG.sub(r"`\1`", option.text)
    return f"{title}\n\n{text}\n\n*{'; '.join(facts)}*"


def _marker() -> str:
    signature, _, text = MARKER.partition(": ")
    return f"### `{signature}`\n\n{text[0].upper()}{text[1:]}"


def _fixture_scope(node: ast.FunctionDef) -> str | None:
    """Return the scope of a function that is a fixture, None of one that is not."""
    for decorator in node.decorator_list:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(call) == "pytest.fixture":
            keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
            return next(
                (ast.literal_eval(k.value) for k in keywords if k.arg == "scope"), "function"
            )
    return None


def _fixture(node: ast.FunctionDef) -> str:
    scope = {"class": "run unit", "function": "case"}[str(_fixture_scope(node))]
    return f"### `{node.name}`\n\n{as_markdown(ast.get_docstring(node) or '')}\n\n*scope: {scope}*"


def _about(kind: type) -> str:
    return f"{as_markdown(inspect.getdoc(kind) or '')}\n{_properties(kind)}".strip()


def _properties(kind: type) -> str:
    return "\n".join(
        f"* `{name}`: {_first_line(value)}"
        for name, value in vars(kind).items()
        if isinstance(value, property)
    )


def _hook(node: ast.FunctionDef) -> str:
    text = as_markdown(ast.get_docstring(node) or "")
    return f"### `{node.name}({ast.unparse(node.args)})`\n\n{text}"


# --- errors -----------------------------------------------------------------------


def errors_page() -> str:
    """Return the page of errors, with a section for each code."""
    tree = re.search(r"    HetaError\n(?:    .+\n)+", inspect.getsource(errors))
    if tree is None:
        raise LookupError("the docstring of pytest_heta.errors draws no tree")
    meanings = {kind.code: (kind.__name__, _first_line(kind)) for kind in error_classes()}
    blocks = []
    for title, rows in _CODE_SECTIONS:
        blocks += [f"## {title}", *(_code(row, *meanings.get(row.code, ("", ""))) for row in rows)]
    return _page(
        "# Errors",
        _ERRORS_INTRODUCTION,
        *blocks,
        "## Classes",
        _ERROR_CLASSES,
        f"```text\n{inspect.cleandoc(tree[0])}\n```",
    )


def _code(row: codes.Code, kind: str, meaning: str) -> str:
    """Return the section of a code; errors have their meaning with their class."""
    facts = [f"`{kind}`"] if kind else []
    facts += [f"in reports: {', '.join(f'`{name}`' for name in row.kinds)}"] if row.kinds else []
    lines = [
        f"### `{row.code}`",
        "",
        row.meaning or meaning,
        *(["", f"*{'; '.join(facts)}*"] if facts else []),
        "",
        f"* Usual cause: {row.cause}",
        f"* What to do: {row.remedy}",
        f"* Outcome: {row.outcome}.",
    ]
    return "\n".join(lines)


def error_classes() -> list[type[errors.HetaError]]:
    """Return the error classes as they stand in the module: each below its base."""
    return [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.HetaError)
    ]


def _first_line(described: object) -> str:
    return _inline((inspect.getdoc(described) or "").split("\n\n")[0].replace("\n", " "))


# --- functions ----------------------------------------------------------------------


def python_page() -> str:
    """Return the page of the functions that run benchmarks without pytest."""
    return _page(
        "# From Python", _PYTHON_INTRODUCTION, *(_callable(function) for function in _FUNCTIONS)
    )


def _callable(function: Callable[..., object]) -> str:
    names = ", ".join(_parameters(function))
    return f"## `{function.__name__}({names})`\n\n{as_markdown(inspect.getdoc(function) or '')}"


def _parameters(function: Callable[..., object]) -> Iterator[str]:
    """Yield the parameters of a function with their defaults, without types."""
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    parameters = list(inspect.signature(function).parameters.values())
    for before, parameter in zip([None, *parameters], parameters, strict=False):
        if parameter.kind is keyword_only and (before is None or before.kind is not keyword_only):
            yield "*"
        yield str(parameter.replace(annotation=inspect.Parameter.empty))


PAGES: Final = {
    "reference/options.md": options_page,
    "errors.md": errors_page,
    "reference/python.md": python_page,
}

if __name__ == "__main__":
    for name, render in PAGES.items():
        (DOCS / name).write_text(render(), encoding="utf-8", newline="\n")
