"""One line for each gate, with digits enough to see why it was decided so."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from pytest_heta.comparison import number_text, relation_of, value_text
from pytest_heta.models import GateResult
from pytest_heta.reports._inert import plain_text

__all__ = ["gate_line"]

_COMPARISON: Final = re.compile(r"\S+ (?:>=|<=|==|!=|>|<) [-+.\w]+(?:, |$)")


def gate_line(gate: GateResult) -> str:
    """Return what came of a gate as one line, its status first.

    The value of a decided gate is written with four digits after the point,
    and with as many more as it takes for the printed numbers to compare as
    the decision says: ``FAILED handbook: hybrid.ndcg@10 = 0.79999 < 0.80``.
    """
    head = f"{gate.status.upper()} {_subject(gate)}"
    comparison = _comparison(gate)
    line = f"{head} {gate.operator} {_threshold_text(gate)}"
    if comparison is not None:
        line = f"{head} = {comparison}"
    # The comparison stands at the beginning of the reason too.
    reason = _COMPARISON.sub("", gate.reason or "", count=1) if comparison else gate.reason
    return plain_text(f"{line} (n={gate.n})" + (f": {reason}" if reason else ""))


def _subject(gate: GateResult) -> str:
    """Return benchmark (and recipe), mode and aggregate, as the resolved gate names them."""
    subject, found, _ = gate.gate.rpartition(f" {gate.operator} ")
    label, colon, rest = subject.partition(":")
    if found and colon:
        return f"{label}: {rest}"
    return f"{gate.benchmark}: {gate.mode}.{gate.aggregate}"


def _comparison(gate: GateResult) -> str | None:
    """Return value and threshold with the operator that holds between them.

    None if they are not what decided: a gate also fails, whatever its value,
    when only a part of its samples ran.
    """
    if gate.value is None or gate.status not in {"passed", "failed"}:
        return None
    relation = relation_of(gate.operator, held=gate.status == "passed")
    text = value_text(gate.value, relation, gate.threshold)
    return None if text is None else f"{text} {relation} {_threshold_text(gate)}"


def _threshold_text(gate: GateResult) -> str:
    """Return the threshold as it was written (``0.80``), if it can be found there."""
    written = gate.written.rpartition(gate.operator)[2].strip()
    with suppress(ValueError):
        if float(written) == gate.threshold:
            return written
    return number_text(gate.threshold)
