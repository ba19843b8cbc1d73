"""The table of the plugin's options, for the command line, the ini file and the documentation.

This module is imported by every pytest session, so it imports nothing heavy.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

__all__ = ["LAST_RUN", "OPTIONS", "Option", "add_options"]

GROUP: Final = "heta"

LAST_RUN: Final = "last"
"""What ``--heta-resume`` without a value stands for."""


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
        bare: Value of the flag where none is given with it; empty if one has to be.
    """

    name: str
    text: str
    metavar: str = ""
    many: bool = False
    default: str = ""
    command_line: bool = True
    bare: str = ""

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
        "concurrency",
        "Queries to ask at the same time in one process; ordinary functions get threads.",
        "N",
        default="the recipe's max_concurrency, else 8 for asynchronous and 1 for ordinary queries",
    ),
    Option(
        "timeout",
        "Seconds that a query, and that an evaluator may take; after that its case, or its score, "
        "has failed, and the others go on.",
        "SECONDS",
        default="no limit",
    ),
    Option(
        "build-timeout",
        "Seconds that building a knowledge base may take; after that its cases have failed.",
        "SECONDS",
        default="no limit",
    ),
    Option(
        "retries",
        "How often a query or an evaluator is asked again after an error that may pass, such as "
        "a refused connection or a service's 429 or 503; it waits longer each time.",
        "N",
        default="3",
    ),
    Option(
        "rate",
        "Queries that may be begun in a second (10/s), a minute (300/min) or an hour (5000/h), "
        "by all workers together.",
        "N/s",
        default="no limit",
    ),
    Option(
        "protocol",
        "How the cases inside a run unit are run: by a short path where no other plugin looks, or "
        "always by pytest's own protocol.",
        "{auto,pytest}",
        default="auto",
    ),
    Option(
        "split",
        "Whether workers of pytest-xdist may share the cases of a large run unit; its recipe has "
        "to have save and load.",
        "{auto,never}",
        default="auto",
    ),
    Option(
        "cache-dir",
        "Folder for knowledge bases of recipes that have save and load.",
        "PATH",
        default="heta in pytest's cache folder",
    ),
    Option(
        "cache-size",
        "Bytes that cached knowledge bases may take, such as 500MB or 2GiB; 0 keeps none.",
        "SIZE",
        default="2GiB",
    ),
    Option("rebuild", "Build knowledge bases anew, also those in the cache."),
    Option(
        "resume",
        "Go on with a run that was interrupted or in which samples failed: only those are asked, "
        "the results of all others are taken over. RUN is its id or its folder.",
        "RUN",
        default="without RUN, the last run",
        bare=LAST_RUN,
    ),
    Option(
        "runs-dir",
        "Folder in which runs keep their results until they are complete, and after.",
        "PATH",
        default="heta-runs in pytest's cache folder",
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
    Option(
        "strict",
        "Refuse a dataset that `pytest-heta validate` warns about: each of its cases is an error.",
    ),
    Option(
        "offline",
        "Download no dataset: a file that is not there is an error before anything is built.",
    ),
    Option(
        "debug",
        "Show the traceback of every error, which is one line otherwise; so does -vv.",
    ),
    Option(
        "data-dir",
        "Folder with the public collections that some suites run on; the environment variable "
        "HETA_DATA_DIR comes first.",
        "PATH",
        command_line=False,
    ),
)


class OptionalValue(argparse.Action):
    """A flag whose value may be left out, also where paths of tests follow it.

    For argparse, ``--heta-resume benchmarks`` gives the flag a value. What
    is there and is no run is an argument of pytest.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's signature
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,  # noqa: ARG002 - as above
    ) -> None:
        """Store the value, or the flag's own if the value is a test path."""
        if values != self.const and _is_test_path(Path(str(values).partition("::")[0])):
            # argparse hands these to whoever looks for what nobody wanted, as pytest does.
            unwanted = list(getattr(namespace, "_unrecognized_args", ()))
            setattr(namespace, "_unrecognized_args", [*unwanted, values])  # noqa: B010
            values = self.const
        setattr(namespace, self.dest, values)


def _is_test_path(path: Path) -> bool:
    """Whether a path is there and is not the folder of a run."""
    try:
        return path.exists() and not (path / "run.json").exists()
    except OSError:  # such as a name that is too long
        return False


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
            elif option.bare:
                group.addoption(
                    option.flag,
                    dest=option.key,
                    action=OptionalValue,
                    nargs="?",
                    const=option.bare,
                    metavar=option.metavar,
                    help=text,
                )
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
