"""Measures the rows of docs/performance.md: pytest-heta beside what one would use instead.

    python benchmarks/speed/measure.py --perf DIR --venvs DIR --python VENV/bin/python [ROW ...]

The peers are those of the peer comparison (``DIR/bench.py`` and
``DIR/peers``; ``bench.py setup`` makes their environments). Standard library
only, so that any Python of 3.11 or later runs it; it needs Linux, where the
peak of a process is counted in KiB.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from processes import MeasuringError
from rows import ROWS, Context, Value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join(ROWS)}; all by default")
    perf = os.environ.get("HETA_PERF_DIR")
    parser.add_argument("--perf", type=Path, default=perf, help="folder of bench.py and peers/")
    parser.add_argument("--venvs", type=Path, default="venvs", help="what bench.py setup made")
    parser.add_argument("--python", type=Path, default=sys.executable, help="has pytest-heta")
    parser.add_argument(
        "--local-python", type=Path, help="has its extra `local`; --python if not given"
    )
    data = os.environ.get("HETA_DATA_DIR")
    parser.add_argument("--data", type=Path, default=data, help="folder with cranfield/")
    parser.add_argument("-n", "--rounds", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the cases, for a trial")
    return parser


def main() -> int:
    """Measure the rows that are asked for; return 1 if one could not be measured."""
    parser = _parser()
    given = parser.parse_args()
    unknown = [name for name in given.rows if name not in ROWS]
    if unknown or given.perf is None:
        parser.error(f"no such row: {', '.join(unknown)}" if unknown else "--perf is required")
    context = Context(
        perf=given.perf.resolve(),
        venvs=given.venvs.resolve(),
        # Not resolved: the link is what makes an interpreter that of its environment.
        python=given.python.absolute(),
        local_python=(given.local_python or given.python).absolute(),
        data=given.data.resolve() if given.data else None,
        rounds=given.rounds,
        warmup=given.warmup,
        scale=given.scale,
    )
    values: dict[str, Sequence[Value]] = {}
    for name in given.rows or ROWS:
        print(f"\n## {name}", flush=True)
        try:
            values[name] = ROWS[name](context)
        except MeasuringError as error:
            print(f"\nnot measured: {error}", flush=True)
    print("\n| row | figure | value | target | fails above |\n|---|---|---|---|---|")
    for name, row in values.items():
        for value in row:
            bounds = [
                "" if bound is None else f"{bound:g}" for bound in (value.target, value.limit)
            ]
            print(f"| {name} | {value.label} | {value.value:.2f} | {' | '.join(bounds)} |")
    return 0 if len(values) == len(given.rows or ROWS) else 1


if __name__ == "__main__":
    sys.exit(main())
