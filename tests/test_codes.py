"""Every code that the package can show is registered and documented."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_heta
from pytest_heta import codes
from pytest_heta.codes import coded, sample_code, score_code

PACKAGE = Path(pytest_heta.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}
SCORING = frozenset(path for path in TREES if re.match(r"core/(score|_returned|_evaluat)", path))
KIND = re.compile(r"[a-z]+(_[a-z]+)*")
HOW = "add a row to the table of its kind in pytest_heta/codes, then run: python docs/generate.py"

documented = pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not here")


def texts(node: ast.AST | None) -> set[str]:
    """Return the texts in an expression, of which it may be each."""
    nodes = ast.walk(node) if node is not None else ()
    return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def calls(name: str) -> Iterator[ast.Call]:
    """Yield the calls of a function or method, wherever it is imported from."""
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if called.lstrip("_") == name:
                    yield node


def argument(call: ast.Call, position: int, keyword: str = "") -> ast.AST | None:
    """Return an argument of a call, None if it is not given."""
    named = [given.value for given in call.keywords if given.arg == keyword]
    placed = call.args[position : position + 1]
    return (named or placed or [None])[0]


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield every function with its file."""
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield path, node


# --- what the code says -----------------------------------------------------------


def codes_of_classes() -> set[str]:
    """Return what is given to ``code`` in the body of a class, wherever it is."""
    bodies = (node.body for tree in TREES.values() for node in ast.walk(tree) if is_class(node))
    return {
        text
        for body in bodies
        for line in body
        if isinstance(line, ast.Assign | ast.AnnAssign)
        for target in (line.targets if isinstance(line, ast.Assign) else [line.target])
        if getattr(target, "id", "") == "code"
        for text in texts(line.value)
    }


def is_class(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef)


def error_types() -> set[str]:
    """Return what stands in ``error_type`` of failed samples."""
    found: set[str] = set()
    for call in calls("EvaluationError"):
        found |= texts(argument(call, 99, "error_type"))
    for name in ("evaluation_error", "failed"):
        for call in calls(name):
            found |= texts(argument(call, 1, "error_type"))
    for _, function in functions():
        if function.name == "_error_type":
            returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
            found |= {text for node in returns for text in results(node.value)}
    return {text for text in found if KIND.fullmatch(text)}


def results(node: ast.AST | None) -> set[str]:
    """Return the texts that an expression gives, not those that it compares with."""
    if isinstance(node, ast.IfExp):
        return results(node.body) | results(node.orelse)
    return texts(node)


def score_types() -> set[str]:
    """Return what stands in ``type`` of lost scores, beside classes of exceptions."""
    found = {text for call in calls("errored_score") for text in texts(argument(call, 1, "kind"))}
    for path, tree in TREES.items():
        if path not in SCORING and not path.startswith("evaluators/"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                found |= {
                    text for key, value in pairs if texts(key) == {"type"} for text in texts(value)
                }
            if isinstance(node, ast.Tuple) and len(node.elts) == 2 and is_message(node.elts[1]):
                found |= texts(node.elts[0])
    return {text for text in found if KIND.fullmatch(text)}


def is_message(node: ast.AST) -> bool:
    """Whether an expression is a text for people: it has words."""
    return isinstance(node, ast.JoinedStr) or any(" " in text for text in texts(node))


def codes_of_warnings() -> set[str]:
    """Return the codes of warnings and findings that are written where they are told."""
    found = {text for call in calls("coded") for text in texts(argument(call, 0))}
    found |= {text for call in calls("Finding") for text in texts(argument(call, 0))}
    return found | {text for call in calls("listed") for text in texts(argument(call, 0))}


# --- the registry -------------------------------------------------------------------


def test_codes_are_their_own_and_say_everything():
    rows = codes.all_codes()
    assert len({row.code for row in rows}) == len(rows)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", row.code) for row in rows)
    assert all(row.cause and row.remedy and row.outcome for row in rows)
    assert all(bool(row.meaning) is (row not in codes.ERRORS) for row in rows)


def test_every_class_of_error_is_registered():
    registered = {row.code for row in codes.ERRORS}
    found = codes_of_classes()
    assert {"error", "build-failed", "option-invalid"} <= found
    assert found - registered == set(), HOW
    assert registered - found == set(), "a row for a class that is not there"


def test_every_type_of_failed_sample_has_a_code():
    found = error_types()
    assert {"query", "timeout", "response_invalid", "build", "crash", "call"} <= found
    registered = {kind for row in (*codes.ERRORS, *codes.SAMPLES) for kind in row.kinds}
    assert found - registered == set(), f"in `kinds`: {HOW}"


def test_every_type_of_lost_score_has_a_code():
    found = score_types()
    assert {"wrong_type", "non_finite", "no_value", "execution_error", "evaluator"} <= found
    registered = {kind for row in codes.SCORES for kind in row.kinds}
    assert found - registered == set(), f"in `kinds`: {HOW}"


def test_every_warning_is_registered():
    found = codes_of_warnings()
    assert {"unjudged-query", "foreign-results", "gate-failed", "results-not-kept"} <= found
    assert found - {row.code for row in codes.all_codes()} == set(), HOW


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("UsageError", {"usage_error", "check_refusals"}),
        ("CollectError", {"collect_error", "declarations_of"}),
    ],
)
def test_the_session_is_stopped_only_by_what_has_a_code(name, allowed):
    makers = {
        function.name
        for path, function in functions()
        if path.startswith("plugin/")
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == name
    }
    assert makers == allowed, "use `refuse` or `usage_error`, which give the line a code"


def test_an_unknown_code_of_a_warning_is_a_mistake():
    assert coded("dangling-gold", "text") == "[dangling-gold] text"
    with pytest.raises(KeyError, match="no-such-code"):
        coded("no-such-code", "text")


@pytest.mark.parametrize(
    ("error_type", "code"),
    [
        ("query", "query-failed"),
        ("timeout", "query-timeout"),
        ("crash", "worker-crashed"),
        ("of another version", "case-failed"),
    ],
)
def test_a_failed_sample_has_the_code_of_its_type(error_type, code):
    assert sample_code(error_type) == code


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("wrong_type", "score-wrong-type"),
        ("execution_error", "sample-failed"),
        ("ZeroDivisionError", "evaluator-failed"),
    ],
)
def test_a_lost_score_has_the_code_of_its_type(kind, code):
    assert score_code(kind) == code


# --- the page -------------------------------------------------------------------------


@documented
@pytest.mark.parametrize("row", codes.all_codes(), ids=lambda row: row.code)
def test_every_code_is_documented(row):
    sections = PAGE.read_text(encoding="utf-8").split("\n### ")
    (section,) = [part for part in sections if part.startswith(f"`{row.code}`\n")]
    for text in (row.meaning, row.cause, row.remedy, row.outcome):
        assert text in section, HOW
    assert all(f"`{kind}`" in section for kind in row.kinds)
