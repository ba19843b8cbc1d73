"""The examples of README and docs do what they say, and the links lead somewhere."""

from __future__ import annotations

import re
import shlex
from itertools import zip_longest
from pathlib import Path

import pytest

from pytest_heta.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^<!-- (?P<kind>file|run|output)(?:: (?P<what>[^\n]+))? -->\n```\w*\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
DEMO_CASE = re.compile(r"bench_demo\.py::(\w+)::[\w-]+::\w+\[([^\]\n]+)\]")
LINK = re.compile(r"\]\((?!https?://|#)(?P<target>[^)#\s]+)(?:#[^)]*)?\)")


def examples(page: Path) -> list[tuple[str, str | None, str]]:
    """Return the marked blocks of a page as (kind, what, text)."""
    text = page.read_text(encoding="utf-8")
    return [(match["kind"], match["what"], match["text"]) for match in BLOCK.finditer(text)]


WITH_COMMANDS = [page for page in PAGES if any(kind == "run" for kind, _, _ in examples(page))]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_run_as_printed(
    page: Path, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files are written, and commands run, in the page's order.

    ``<!-- run -->`` promises exit code 0, ``<!-- run: 1 -->`` exit code 1, and
    ``<!-- output -->`` what the last ``pytest-heta`` prints, with … for any end
    of a line.
    """
    pytester.makeini("[pytest]\n")
    printed: list[str] = []
    for kind, what, text in examples(page):
        if kind == "file":
            assert what is not None
            path = pytester.path / what
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            continue
        if kind == "output":
            assert [
                _shown(line, expected) for line, expected in zip_longest(printed, text.splitlines())
            ] == text.splitlines()
            continue
        for command in text.strip().replace("\\\n", " ").splitlines():
            program, *arguments = shlex.split(command)
            if program == "pytest-heta":
                capsys.readouterr()
                assert main(arguments) == int(what or 0), command
                printed = capsys.readouterr().out.splitlines()
                continue
            assert program == "pytest"
            result = pytester.runpytest_inprocess("-p", "no:randomly", "-W", "error", *arguments)
            assert result.ret == int(what or 0), command


def _shown(line: str | None, expected: str | None) -> str | None:
    """Return a line as the page prints it."""
    begin = (expected or "").partition("…")[0]
    is_cut = line is not None and begin != expected and line.startswith(begin)
    return expected if is_cut else line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page: Path) -> None:
    targets = [match["target"] for match in LINK.finditer(page.read_text(encoding="utf-8"))]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_node_ids_of_the_demo_suite_name_its_cases() -> None:
    named = {match for page in PAGES for match in DEMO_CASE.findall(page.read_text("utf-8"))}
    assert named
    for benchmark, case_id in named:
        cases = ROOT / "benchmarks" / "data" / benchmark / "cases.jsonl"
        assert f'"case_id": "{case_id}"' in cases.read_text("utf-8")


def test_there_are_examples_to_run() -> None:
    assert ROOT / "README.md" in WITH_COMMANDS
