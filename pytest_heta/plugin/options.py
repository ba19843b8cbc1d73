"""The options of the plugin: one table for command line, ini and documentation.

This module is imported by every pytest session, so it imports nothing heavy.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, get_args

import pytest

__all__ = [
    "OPTIONS",
    "VERY_VERBOSE",
    "Option",
    "RunOptions",
    "add_options",
    "data_dir_of_ini",
    "given_recipes",
    "ini_folder",
    "read_options",
    "refuse",
    "source_of",
    "wants_listing",
]

# The core has these types, too; to import it here would cost every session.
GateSubset = Literal["skip", "decide", "fail"]
FailOn = Literal["error", "miss", "gate"]
Responses = Literal["ids", "short", "full"]

GROUP: Final = "heta"

VERY_VERBOSE: Final = 2
"""``-vv`` shows tracebacks of users' code, and cases that missed; below it an error is one line."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option, on the command line and in the ini file.

    Attributes:
        name: Name without its prefix: ``top-k`` is ``--heta-top-k`` and
            ``heta_top_k``.
        text: What it does, for ``--help`` and the documentation.
        metavar: Placeholder of the value; empty for a flag.
        many: Whether it may be given several times (in the ini file: one
            value a line).
        default: What holds when it is not given, for the documentation.
        command_line: Whether there is a command line option.
    """

    name: str
    text: str
    metavar: str = ""
    many: bool = False
    default: str = ""
    command_line: bool = True

    @property
    def flag(self) -> str:
        """Name on the command line."""
        return f"--heta-{self.name}"

    @property
    def key(self) -> str:
        """Key in the ini file, and name in the parsed options."""
        return f"heta_{self.name.replace('-', '_')}"


OPTIONS: Final = (
    Option(
        "recipe",
        "Knowledge recipe to evaluate: a registered name, package.module:attribute or "
        "path/file.py:attribute. Repeat it to evaluate several recipes in one run.",
        "RECIPE",
        many=True,
    ),
    Option(
        "mode",
        "Ask only in this query mode; repeatable, or separated by commas.",
        "MODE",
        many=True,
        default="all modes of the suite or the recipe",
    ),
    Option(
        "top-k",
        "Number of results to ask for.",
        "K",
        default="the largest k of the suite's measures and gates, at least 10",
    ),
    Option(
        "option",
        "Query option of the recipe, such as rrf_k=30; the value is read as JSON if it is JSON.",
        "KEY=VALUE",
        many=True,
    ),
    Option("limit", "Run only the first N cases of each benchmark.", "N"),
    Option("sample", "Run N cases of each benchmark, chosen by --heta-seed.", "N"),
    Option("seed", "Seed of the choice that --heta-sample makes.", "S", default="0"),
    Option(
        "warmup",
        "Queries to ask each knowledge base in each mode before its first case; not recorded.",
        "N",
        default="0",
    ),
    Option(
        "gate",
        "Quality gate, such as 'hybrid_search.ndcg@10 >= 0.6'; gates of the command line, "
        "the ini file and the suites all apply.",
        "GATE",
        many=True,
    ),
    Option(
        "gate-subset",
        "What happens to a gate when only a part of its planned samples ran.",
        "{skip,decide,fail}",
        default="skip",
    ),
    Option("require-gates", "Fail the run when any gate was not decided."),
    Option("no-gates", "Decide no gate."),
    Option(
        "fail-on",
        "What fails a test item: an error; also a score that did not pass (miss); or nothing "
        "but what gates say (gate).",
        "{error,miss,gate}",
        default="error",
    ),
    Option(
        "report",
        "Report to write.",
        "FORMAT:PATH",
        many=True,
        default="json:report.json",
    ),
    Option(
        "responses",
        "How much of each response the report keeps: ids only, the first 200 characters of "
        "texts, or everything.",
        "{ids,short,full}",
        default="short",
    ),
    Option(
        "show",
        "Show query, expectations and retrieved results of cases after the run: of those that "
        "missed, of all, or of one case id. -vv shows the misses.",
        "{misses,all,CASE}",
    ),
    Option("list", "List recipes, modes, measures and benchmarks, and run nothing."),
    Option("baseline", "JSON report to show differences to.", "PATH"),
    Option("strict", "Treat warnings about a dataset as errors."),
    Option(
        "data-dir",
        "Folder with the public collections that some suites run on; the environment variable "
        "HETA_DATA_DIR comes first.",
        "PATH",
        command_line=False,
    ),
)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run, checked.

    Attributes are named like the options; ``gates`` are pairs of text and
    origin, ``reports`` are texts of the form ``FORMAT:PATH``.
    """

    recipes: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    top_k: int | None = None
    query_options: tuple[tuple[str, Any], ...] = ()
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    warmup: int = 0
    gates: tuple[tuple[str, str], ...] = ()
    gate_subset: GateSubset = "skip"
    require_gates: bool = False
    no_gates: bool = False
    fail_on: FailOn | None = None
    reports: tuple[str, ...] = ("json:report.json",)
    responses: Responses = "short"
    show: str | None = None
    list_only: bool = False
    baseline: str | None = None
    strict: bool = False


def add_options(parser: pytest.Parser) -> None:
    """Register every option and ini key of the table."""
    group = parser.getgroup(GROUP, "benchmarks of retrieval and RAG systems")
    for option in OPTIONS:
        text = option.text.replace("%", "%%")
        if option.default:
            text += f" Default: {option.default.replace('%', '%%')}."
        if option.command_line:
            if not option.metavar:
                group.addoption(option.flag, dest=option.key, action="store_true", help=text)
            elif option.many:
                group.addoption(
                    option.flag, dest=option.key, action="append", metavar=option.metavar, help=text
                )
            else:
                group.addoption(option.flag, dest=option.key, metavar=option.metavar, help=text)
        if option.many:
            parser.addini(option.key, option.text, type="linelist")
        elif option.metavar:
            parser.addini(option.key, option.text, type="string", default="")
        else:
            parser.addini(option.key, option.text, type="bool", default=False)


def given_recipes(config: pytest.Config) -> tuple[str, ...]:
    """Return the recipes of the command line, or else of the ini file."""
    return tuple(config.getoption("heta_recipe") or _lines(config, "heta_recipe"))


def _lines(config: pytest.Config, key: str) -> tuple[str, ...]:
    """Return an ini key of several values; an array in TOML may hold anything."""
    return tuple(map(str, config.getini(key)))


def wants_listing(config: pytest.Config) -> bool:
    """Whether ``--heta-list`` or its ini key is given."""
    return _Reader(config).flag("list")


def source_of(config: pytest.Config, name: str) -> str:
    """Return how a user calls an option: by its ini key if only that is given, else its flag."""
    option = _option(name)
    only_ini = not config.getoption(option.key) and config.getini(option.key)
    return option.key if only_ini else option.flag


class _Reader:
    """Reads options by name, the command line before the ini file."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def flag(self, name: str) -> bool:
        option = _option(name)
        if self._config.getoption(option.key):
            return True
        try:
            return bool(self._config.getini(option.key))
        except (ValueError, pytest.UsageError) as error:  # the latter since pytest 9
            refuse(option.key, str(error))

    def is_on_command_line(self, name: str) -> bool:
        return self._config.getoption(_option(name).key) is not None

    def text(self, name: str) -> tuple[str, str] | None:
        """Return the value and where it was given."""
        option = _option(name)
        value = self._config.getoption(option.key)
        if value is not None:
            return str(value), option.flag
        value = str(self._config.getini(option.key)).strip()
        return (value, option.key) if value else None

    def texts(self, name: str) -> tuple[tuple[str, ...], str]:
        option = _option(name)
        values = self._config.getoption(option.key)
        if values:
            return tuple(values), option.flag
        return _lines(self._config, option.key), option.key

    def number(self, name: str, *, least: int) -> int | None:
        given = self.text(name)
        if given is None:
            return None
        value, where = given
        try:
            number = int(value)
        except ValueError:
            number = least - 1
        if number < least:
            refuse(where, f"{value!r} is not a whole number of at least {least}")
        return number

    def choice(self, name: str, allowed: Sequence[str]) -> Any:
        """Return one of the values of a ``Literal``, or None."""
        given = self.text(name)
        if given is None:
            return None
        value, where = given
        if value not in allowed:
            refuse(where, f"{value!r} is not one of {', '.join(allowed)}")
        return value


def _option(name: str) -> Option:
    return next(option for option in OPTIONS if option.name == name)


def refuse(where: str, message: str) -> NoReturn:
    """Stop the session with a usage error that names the option."""
    raise pytest.UsageError(f"{where}: {message}")


def read_options(config: pytest.Config) -> RunOptions:
    """Return the checked options of a session.

    Raises:
        pytest.UsageError: for a wrong value; it names the option, the value
            and what is allowed.
    """
    reader = _Reader(config)
    limit, sample = _limit_and_sample(reader)
    baseline = reader.text("baseline")
    show = reader.text("show")
    gates = [(text, "command line") for text in config.getoption("heta_gate") or ()]
    gates += [(text, "ini") for text in _lines(config, "heta_gate")]
    no_gates = reader.flag("no-gates")
    require_gates = reader.flag("require-gates")
    if no_gates and require_gates:
        refuse("--heta-no-gates and --heta-require-gates", "only one of the two may be given")
    return RunOptions(
        recipes=given_recipes(config),
        modes=_modes(reader),
        top_k=reader.number("top-k", least=1),
        query_options=_query_options(reader),
        limit=limit,
        sample=sample,
        seed=reader.number("seed", least=0) or 0,
        warmup=reader.number("warmup", least=0) or 0,
        gates=tuple(gates),
        gate_subset=reader.choice("gate-subset", get_args(GateSubset)) or "skip",
        require_gates=require_gates,
        no_gates=no_gates,
        fail_on=reader.choice("fail-on", get_args(FailOn)),
        reports=reader.texts("report")[0] or ("json:report.json",),
        responses=reader.choice("responses", get_args(Responses)) or "short",
        show=show[0] if show else ("misses" if config.get_verbosity() >= VERY_VERBOSE else None),
        list_only=reader.flag("list"),
        baseline=baseline[0] if baseline else None,
        strict=reader.flag("strict"),
    )


def _limit_and_sample(reader: _Reader) -> tuple[int | None, int | None]:
    """Return the two; one of the command line takes the place of the other in the ini file."""
    limit, sample = reader.number("limit", least=1), reader.number("sample", least=1)
    if limit is not None and sample is not None:
        by_hand = [reader.is_on_command_line(name) for name in ("limit", "sample")]
        if by_hand == [True, False]:
            return limit, None
        if by_hand == [False, True]:
            return None, sample
        refuse("--heta-limit and --heta-sample", "only one of the two may be given")
    return limit, sample


def _modes(reader: _Reader) -> tuple[str, ...]:
    values, where = reader.texts("mode")
    modes = [mode.strip() for value in values for mode in value.split(",")]
    if any(not mode for mode in modes):
        refuse(where, f"{','.join(values)!r} holds an empty mode name")
    return tuple(dict.fromkeys(modes))


def _query_options(reader: _Reader) -> tuple[tuple[str, Any], ...]:
    values, where = reader.texts("option")
    options: dict[str, Any] = {}
    for value in values:
        key, separator, text = value.partition("=")
        if not separator or not key.strip():
            refuse(where, f"{value!r} is not of the form KEY=VALUE")
        options[key.strip()] = _json_or_text(text.strip())
    return tuple(options.items())


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=lambda name: name)
    except ValueError:
        return text


def data_dir_of_ini(config: pytest.Config) -> Path | None:
    """Return ini ``heta_data_dir``, relative to the ini file, or None."""
    value = str(config.getini("heta_data_dir")).strip()
    if not value:
        return None
    return ini_folder(config) / Path(value).expanduser()


def ini_folder(config: pytest.Config) -> Path:
    """Return the folder that paths in the ini file start from: its own."""
    return config.inipath.parent if config.inipath else config.rootpath
