"""Suites: a benchmark together with how it is to be run, as a suite file declares it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from pytest_heta.core._loading import listed_evaluators
from pytest_heta.core.gates import parse_gate
from pytest_heta.core.plan import FailOn, Suite, check_name
from pytest_heta.errors import ConfigurationError
from pytest_heta.protocols import BenchmarkEvaluatorProtocol, BenchmarkProtocol

__all__ = [
    "as_suite",
    "check_seconds",
    "check_whole",
    "is_benchmark_shaped",
    "kind_of",
    "listed_texts",
    "suite",
]

_BENCHMARK_METHODS: Final = (
    "manifest",
    "resources",
    "prepare",
    "documents",
    "cases",
    "run_units",
    "evaluators",
)


def suite(
    benchmark: BenchmarkProtocol,
    *,
    name: str | None = None,
    modes: Sequence[str] = (),
    top_k: int | None = None,
    gates: Sequence[str] = (),
    fail_on: FailOn | None = None,
    evaluators: Sequence[BenchmarkEvaluatorProtocol | str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Suite:
    """Return a benchmark together with how it is to be run.

    Args:
        benchmark: The adapter.
        name: Name to use in place of the manifest's.
        modes: Query modes to ask; none means all that the recipe has.
        top_k: Depth to ask for; None means the deepest k needed, at least 10.
        gates: Gates, such as ``"full_text_search.ndcg@10 >= 0.30"``.
        fail_on: What fails a test item: ``error``, ``miss`` or ``gate``.
        evaluators: Evaluators, or measures such as ``"recall@5"``, in place of
            the adapter's.
        options: Query options.

    Raises:
        ConfigurationError: if a value is not allowed.
        GateInvalidError: if a gate cannot be parsed.
    """
    where = "suite"
    if not is_benchmark_shaped(benchmark):
        raise ConfigurationError(
            f"{kind_of(benchmark)} is not a benchmark",
            where=where,
            hint="give an object such as BeirBenchmark(...)",
        )
    if name is not None:
        check_name("benchmark", name)
    if fail_on not in {None, "error", "miss", "gate"}:
        raise ConfigurationError(
            f"fail_on = {fail_on!r} is not allowed", where=where, hint="use error, miss or gate"
        )
    check_whole("top_k", top_k, 1, where)
    texts = listed_texts("gates", gates, where)
    for text in texts:
        parse_gate(text)
    return Suite(
        benchmark=benchmark,
        name=name,
        modes=tuple(check_name("mode", mode) for mode in listed_texts("modes", modes, where)),
        top_k=top_k,
        gates=texts,
        fail_on=fail_on,
        evaluators=None if evaluators is None else listed_evaluators(evaluators),
        options=dict(options or {}),
    )


def check_whole(name: str, value: int | None, least: int, where: str) -> None:
    """Check a whole number, which may be left out.

    Raises:
        ConfigurationError: naming it, if it is something else or below ``least``.
    """
    if value is None or (type(value) is int and value >= least):
        return
    raise ConfigurationError(
        f"{name} = {value!r} is not allowed",
        where=where,
        hint=f"use a whole number from {least}",
    )


def check_seconds(name: str, value: float | None, where: str) -> None:
    """Check a time limit, which may be left out.

    Raises:
        ConfigurationError: naming it, if it is not a positive number of seconds.
    """
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < float("inf"):
        raise ConfigurationError(
            f"{name} = {value!r} is not allowed",
            where=where,
            hint="use a positive number of seconds",
        )


def listed_texts(name: str, values: Sequence[str], where: str) -> tuple[str, ...]:
    """Return a tuple of texts; one text alone stands for itself, not for its letters.

    Raises:
        ConfigurationError: naming them, if one is no text.
    """
    if isinstance(values, str):
        return (values,)
    values = tuple(sorted(values) if isinstance(values, set | frozenset) else values)
    for value in values:
        if not isinstance(value, str):
            raise ConfigurationError(
                f"{name}: {value!r} is not a text", where=where, hint=f'write {name}=["…"]'
            )
    return values


def as_suite(obj: object) -> Suite | None:
    """Return what stands in a suite file as a `Suite`, None if it is no benchmark.

    A suite and an object of the shape of a `BenchmarkProtocol` are; a class
    is not.
    """
    if issubclass(type(obj), Suite):
        return cast("Suite", obj)
    return Suite(cast("BenchmarkProtocol", obj)) if _is_benchmark(obj) else None


def _is_benchmark(obj: object) -> bool:
    """Whether an object has all methods, found out without asking it for them.

    Suite files hold objects of all kinds, among them such that answer to any
    name (mocks), or raise when they are touched (lazy proxies).
    """
    if issubclass(type(obj), type):
        return False
    try:
        own = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        own = {}
    return all(hasattr(type(obj), name) or name in own for name in _BENCHMARK_METHODS)


def is_benchmark_shaped(obj: object) -> bool:
    """Whether an object that was given as a benchmark has all methods."""
    return not isinstance(obj, type) and all(hasattr(obj, name) for name in _BENCHMARK_METHODS)


def kind_of(obj: object) -> str:
    """Return what an object is, for an error about it: ``a dict``, ``class X``."""
    return f"class {obj.__name__}" if isinstance(obj, type) else f"a {type(obj).__name__}"
