"""Benchmarks in the layout of BEIR: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv.

The layout is that of Thakur et al., "BEIR: A Heterogeneous Benchmark for
Zero-shot Evaluation of Information Retrieval Models", NeurIPS 2021.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any, Final

from pytest_heta.benchmarks._checking import CheckedFiles, FilesCheck
from pytest_heta.benchmarks._documents import beir_document
from pytest_heta.benchmarks._naming import benchmark_name
from pytest_heta.benchmarks._places import located, location, missing_file
from pytest_heta.benchmarks._qrels import (
    Judgment,
    Judgments,
    judgments_of,
    read_judged_queries,
    read_judgments,
)
from pytest_heta.benchmarks._reading import read_records
from pytest_heta.benchmarks._record import IdLines, Record, check_gold
from pytest_heta.errors import DatasetInvalidError, DatasetNotFoundError, shown
from pytest_heta.evaluators import as_evaluator
from pytest_heta.models import (
    BenchmarkCase,
    BenchmarkDocument,
    BenchmarkEvidence,
    BenchmarkExpected,
    BenchmarkManifest,
    BenchmarkResource,
    BenchmarkRunUnit,
    BenchmarkWorkspace,
    PreparedBenchmark,
)
from pytest_heta.protocols import BenchmarkEvaluatorProtocol

__all__ = ["BeirBenchmark", "qrels_splits"]

_DEFAULT_EVALUATORS: Final = ("ndcg@10", "map@10", "recall@10", "mrr@10", "hit@10")
_QUERY_FIELDS: Final = ("_id", "text", "metadata")


class BeirBenchmark:
    """A local folder in BEIR's layout; one knowledge base holds the corpus.

    A query is a case if the split's qrels have a row for it. A query without
    a row in any split is a case as well, and counts as unjudged; so does one
    whose grades are all 0 or below. Every judgment becomes evidence, with its
    grade in ``metadata["relevance"]``.

    Args:
        path: The folder. A relative path is looked up in the workspace's
            ``root_dir``, then in the current directory.
        split: Which file of ``qrels/`` to take.
        name: Name of the benchmark; that of the folder, made legal, if not given.
        version: Version of the data.
        strict: Whether a gold document that is not in the corpus is an error.
        evaluators: Evaluators, or how they are written, in place of
            ``ndcg@10``, ``map@10``, ``recall@10``, ``mrr@10`` and ``hit@10``.
        unjudged_queries: Whether queries without a row in the split's qrels
            are cases: True for all, False for none, None for those that have
            no row in any other split either.
        about: More fields of the manifest: ``homepage``, ``license``,
            ``citation``, ``task_type``, ``metadata``.

    Raises:
        ModelInvalidError: if the name, split or ``about`` does not fit the manifest.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        split: str = "test",
        name: str | None = None,
        version: str = "1",
        strict: bool = False,
        evaluators: Sequence[BenchmarkEvaluatorProtocol | str] | None = None,
        unjudged_queries: bool | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = Path(path)
        self.split = split
        self.strict = strict
        self._unjudged_queries = unjudged_queries
        self._evaluators = _DEFAULT_EVALUATORS if evaluators is None else tuple(evaluators)
        self._manifest = BenchmarkManifest(
            name=benchmark_name(self.path) if name is None else name,
            version=version,
            split=split,
            **(about or {}),
        )

    def __repr__(self) -> str:
        """Return what tells one benchmark from another."""
        return f"BeirBenchmark({str(self.path)!r}, split={self.split!r})"

    @property
    def manifest(self) -> BenchmarkManifest:
        """What the benchmark is."""
        return self._manifest

    def resources(self) -> tuple[BenchmarkResource, ...]:
        """Return the three files, below the path as it was given."""
        return tuple(
            BenchmarkResource(name=name, uri=str(self.path / name)) for name in self._files()
        )

    async def prepare(self, workspace: BenchmarkWorkspace) -> PreparedBenchmark:
        """Check that the files are there.

        Raises:
            DatasetNotFoundError: if one is missing.
        """
        folder = located(self.path, workspace.root_dir)
        for name in self._files():
            if not (folder / name).is_file():
                raise self._missing(folder, name)
        return PreparedBenchmark(
            manifest=self.manifest, root_dir=folder, resources=self.resources()
        )

    def check_files(self, workspace: BenchmarkWorkspace) -> CheckedFiles:
        """Return all that is wrong or odd about the files, where loading stops at the first."""
        folder, check = located(self.path, workspace.root_dir), FilesCheck()
        for name in self._files():
            if not (folder / name).is_file():
                check.note(self._missing(folder, name), folder / name)
        corpus, queries, qrels = (folder / name for name in self._files())
        ids = IdLines("document")
        for record in check.records(corpus, self._expected()) if check.is_right(corpus) else ():
            with check.noting(corpus):
                check.note_id("document", record.fields.get("_id"), record)
                ids.add(beir_document(record).document_id, record)
        ids = IdLines("query")
        for record in check.records(queries, self._expected()) if check.is_right(queries) else ():
            with check.noting(queries):
                check.note_id("query", record.fields.get("_id"), record)
                ids.add(record.identifier("_id"), record)
                _case(record, record.identifier("_id"), {})
        if check.is_right(qrels):
            # Where all lines are wrong, that no judgment is left is nothing new.
            with check.noting(qrels, only_if_right=True):
                lines = check.lines(qrels, self._expected())
                judged = judgments_of(qrels, lines, lambda error: check.note(error, qrels))
                if check.is_right(queries):
                    _check_all_asked({key: judged[key] for key in judged if key not in ids}, qrels)
        return check.result()

    async def documents(self, prepared: PreparedBenchmark) -> AsyncIterator[BenchmarkDocument]:
        """Yield the documents in the corpus's order.

        The content is title, blank line and text; a title or text that is
        absent or null is left out. Title and further fields are metadata.

        Raises:
            DatasetInvalidError: if a line is not a document, or, when strict,
                a gold document is not in the corpus.
            DuplicateIdError: if an id stands twice.
        """
        ids = IdLines("document")
        with closing(read_records(prepared.root_dir / "corpus.jsonl", self._expected())) as records:
            for record in records:
                document = beir_document(record)
                ids.add(document.document_id, record)
                yield document
        if self.strict:
            check_gold(ids, self._gold(prepared.root_dir))

    async def cases(self, prepared: PreparedBenchmark) -> AsyncIterator[BenchmarkCase]:
        """Yield the cases in the order of ``queries.jsonl``.

        Raises:
            DatasetInvalidError: if a line is not a query or judgment, or a
                judged query does not exist.
            DuplicateIdError: if a query id or a judgment stands twice.
        """
        qrels = self._qrels(prepared.root_dir)
        judgments = read_judgments(qrels, self._expected())
        elsewhere: set[str] | None = None
        ids = IdLines("query")
        queries = prepared.root_dir / "queries.jsonl"
        with closing(read_records(queries, self._expected())) as records:
            for record in records:
                query_id = record.identifier("_id")
                ids.add(query_id, record)
                judged = judgments.pop(query_id, None)
                if judged is None:
                    if elsewhere is None:
                        elsewhere = self._judged_elsewhere(prepared.root_dir)
                    if self._unjudged_queries is False or query_id in elsewhere:
                        continue
                yield _case(record, query_id, judged or {})
        _check_all_asked(judgments, qrels)

    async def run_units(
        self,
        prepared: PreparedBenchmark,  # noqa: ARG002 - the protocol's
    ) -> AsyncIterator[BenchmarkRunUnit]:
        """Yield the one unit ``corpus``: all documents and all cases."""
        yield BenchmarkRunUnit(unit_id="corpus")

    def evaluators(self) -> tuple[BenchmarkEvaluatorProtocol, ...]:
        """Return the evaluators."""
        return tuple(as_evaluator(evaluator) for evaluator in self._evaluators)

    def _files(self) -> tuple[str, str, str]:
        return ("corpus.jsonl", "queries.jsonl", f"qrels/{self.split}.tsv")

    def _expected(self) -> str:
        return ", ".join(self._files())

    def _missing(self, folder: Path, name: str) -> DatasetNotFoundError:
        expected = self._expected()
        splits = qrels_splits(folder)
        if name.startswith("qrels/") and splits:
            expected += f"; splits that are there: {', '.join(splits)}"
        return missing_file(folder / name, expected)

    def _qrels(self, folder: Path) -> Path:
        return folder / "qrels" / f"{self.split}.tsv"

    def _judged_elsewhere(self, folder: Path) -> set[str]:
        """Return the queries that belong to other splits."""
        if self._unjudged_queries is not None:
            return set()
        judged: set[str] = set()
        for split in qrels_splits(folder):
            if split != self.split:
                judged |= read_judged_queries(folder / "qrels" / f"{split}.tsv", self._expected())
        return judged

    def _gold(self, folder: Path) -> Iterator[tuple[str, str]]:
        qrels = self._qrels(folder)
        for judged in read_judgments(qrels, self._expected()).values():
            for document_id, judgment in judged.items():
                if judgment.grade > 0:
                    yield document_id, location(qrels, judgment.line)


def qrels_splits(folder: Path) -> list[str]:
    """Return the names of the splits that a folder has judgments for, sorted."""
    return sorted(path.stem for path in folder.glob("qrels/*.tsv") if not path.name.startswith("."))


def _case(record: Record, query_id: str, judged: Mapping[str, Judgment]) -> BenchmarkCase:
    return record.build(
        BenchmarkCase,
        case_id=query_id,
        query=record.string("text"),
        expected=BenchmarkExpected(
            evidence=tuple(
                BenchmarkEvidence(reference_id=document_id, metadata={"relevance": judgment.grade})
                for document_id, judgment in judged.items()
            )
        ),
        metadata={**record.extras(_QUERY_FIELDS), **record.mapping("metadata")},
    )


def _check_all_asked(left: Judgments, qrels: Path) -> None:
    """Refuse judgments whose query does not exist: the means would lack them."""
    if not left:
        return
    query_id, judged = next(iter(left.items()))
    line = min(judgment.line for judgment in judged.values())
    more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
    raise DatasetInvalidError(
        f"query {shown(query_id)} is judged but not in queries.jsonl{more}",
        where=location(qrels, line),
        hint="add the query, or remove its judgments",
    )
