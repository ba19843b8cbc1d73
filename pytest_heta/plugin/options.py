"""Reading the options of a session.

This module is imported by every pytest session, so it imports nothing heavy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeVar, get_args

import pytest

from pytest_heta.plugin.option_table import OPTIONS, Option

if TYPE_CHECKING:
    from pytest_heta.errors import HetaError

__all__ = [
    "VERY_VERBOSE",
    "RunOptions",
    "data_dir_of_ini",
    "given_recipes",
    "ini_folder",
    "read_options",
    "refuse",
    "shows_tracebacks",
    "source_of",
    "usage_error",
    "wants_listing",
]

T = TypeVar("T")

# The core has these types, too; to import it here would cost every session.
GateSubset = Literal["skip", "decide", "fail"]
FailOn = Literal["error", "miss", "gate"]
Responses = Literal["ids", "short", "full"]
Protocol = Literal["auto", "pytest"]
Split = Literal["auto", "never"]

_MOST_SECONDS: Final = 1_000_000_000
"""Threads cannot wait for more than some nine times as long."""

_SECONDS: Final = f"a positive number of seconds up to {_MOST_SECONDS}"

VERY_VERBOSE: Final = 2
"""``-vv`` shows tracebacks of users' code, and cases that missed; below it an error is one line."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run, checked.

    Attributes are named like the options; ``gates`` are pairs of text and
    origin, ``reports`` are texts of the form ``FORMAT:PATH``, ``rate`` is a
    number per second.
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
    offline: bool = False
    concurrency: int | None = None
    timeout: float | None = None
    build_timeout: float | None = None
    retries: int | None = None
    rate: float | None = None
    protocol: Protocol = "auto"
    split: Split = "auto"
    cache_dir: str | None = None
    cache_size: int | None = None
    rebuild: bool = False
    resume: str | None = None
    runs_dir: str | None = None
    debug: bool = False


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

    def parsed(self, name: str, parse: Callable[[str], T | None], what: str) -> T | None:
        """Return what a value means; refuse one that ``parse`` returns None for."""
        given = self.text(name)
        if given is None:
            return None
        value, where = given
        found = parse(value)
        if found is None:
            refuse(where, f"{value!r} is not {what}")
        return found

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
    from pytest_heta.errors import OptionInvalidError  # noqa: PLC0415 - seldom needed

    raise usage_error(OptionInvalidError(message, where=where))


def usage_error(error: HetaError, source: str | None = None) -> pytest.UsageError:
    """Return an error as the one line that stops the session.

    Args:
        error: The error.
        source: The option that it came by, if that is not its place already.
    """
    from pytest_heta.reports import plain_text  # noqa: PLC0415 - seldom needed

    # pytest writes it to the terminal as it is.
    usage = pytest.UsageError(plain_text(error if source is None else error.blaming(source)))
    usage.__cause__ = error
    return usage


def shows_tracebacks(config: pytest.Config) -> bool:
    """Whether errors are shown with their tracebacks, not as one line."""
    try:
        return config.get_verbosity() >= VERY_VERBOSE or _Reader(config).flag("debug")
    except pytest.UsageError:  # for what is no truth value, which is said elsewhere
        return False


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
        offline=reader.flag("offline"),
        concurrency=reader.number("concurrency", least=1),
        timeout=reader.parsed("timeout", _parse_seconds, _SECONDS),
        build_timeout=reader.parsed("build-timeout", _parse_seconds, _SECONDS),
        retries=reader.number("retries", least=0),
        rate=_rate(reader),
        protocol=reader.choice("protocol", get_args(Protocol)) or "auto",
        split=reader.choice("split", get_args(Split)) or "auto",
        cache_dir=_folder(reader, "cache-dir"),
        cache_size=_cache_size(reader),
        rebuild=reader.flag("rebuild"),
        resume=_value(reader.text("resume")),
        runs_dir=_folder(reader, "runs-dir"),
        debug=reader.flag("debug") or config.get_verbosity() >= VERY_VERBOSE,
    )


def _value(given: tuple[str, str] | None) -> str | None:
    return None if given is None else given[0]


def _folder(reader: _Reader, name: str) -> str | None:
    given = reader.text(name)
    if given is None:
        return None
    value, where = given
    if not value.strip():
        # A variable that is not set; what is written must not go wherever one stands.
        refuse(where, f"{value!r} names no folder")
    return value


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


def _cache_size(reader: _Reader) -> int | None:
    from pytest_heta.core._size import parse_size  # noqa: PLC0415 - not without a recipe

    return reader.parsed("cache-size", parse_size, "a size such as 500MB or 2GiB")


def _rate(reader: _Reader) -> float | None:
    from pytest_heta.core.pace import parse_rate  # noqa: PLC0415 - not without a recipe

    return reader.parsed("rate", parse_rate, "a rate such as 10/s, 300/min or 5000/h")


def _parse_seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 < seconds <= _MOST_SECONDS else None


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
    except (ValueError, RecursionError):
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
