"""An error of ``pytest-heta`` is one line with its code; ``--debug`` shows its traceback."""

import re

import pytest

from pytest_heta.cli import cache, main, validate

HELP = "{} --help says what there is"


@pytest.fixture
def said(capsys):
    """Run a command; return its exit code and the lines that it wrote about errors."""

    def run(*arguments):
        try:
            code = main(arguments)
        except SystemExit as leaving:
            code = leaving.code
        return code, capsys.readouterr().err.splitlines()

    return run


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            (),
            "[option-invalid] pytest-heta: the following arguments are required: COMMAND; "
            + HELP.format("pytest-heta"),
        ),
        (
            ("cache", "prune", "--max-size=much"),
            "[option-invalid] --max-size: 'much' is not a size such as 500MB or 2GiB; "
            + HELP.format("pytest-heta cache prune"),
        ),
        (("validate", "nowhere"), "[configuration-invalid] PATH: there is no 'nowhere'"),
        (
            ("cache", "ls", "--cache-dir=nowhere"),
            "[configuration-invalid] --cache-dir: there is no folder 'nowhere'",
        ),
    ],
)
def test_a_wrong_command_line_is_one_line(said, tmp_path, monkeypatch, arguments, line):
    monkeypatch.chdir(tmp_path)
    assert said(*arguments) == (2, [f"pytest-heta: {line}"])


def test_what_nobody_expects_is_one_line(said, tmp_path, monkeypatch):
    def fail(path, split):
        raise PermissionError(13, "Permission denied", "data\x1b[2J")

    monkeypatch.setattr(validate, "_found", fail)
    code, (line,) = said("validate", str(tmp_path))
    assert code == 1
    assert re.match(r"pytest-heta: \[internal-error\] \S*test_cli_errors\.py:\d+: ", line)
    assert "PermissionError: [Errno 13] Permission denied: " in line
    assert line.endswith("; pytest-heta --debug shows the traceback")
    assert "\x1b" not in line


def test_debug_shows_the_traceback(said, tmp_path, monkeypatch):
    def fail(folder, max_bytes):
        raise OSError("torn")

    monkeypatch.setattr(cache, "KnowledgeBaseCache", fail)
    code, lines = said("--debug", "cache", "ls", f"--cache-dir={tmp_path}")
    assert code == 1
    assert lines[0] == "Traceback (most recent call last):"
    assert 'raise OSError("torn")' in [line.strip() for line in lines]
    assert lines[-1].startswith("pytest-heta: [internal-error] ")


def test_debug_shows_the_traceback_of_a_refusal(said):
    code, lines = said("--debug", "validate", "nowhere")
    assert code == 2
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "pytest-heta: [configuration-invalid] PATH: there is no 'nowhere'"
