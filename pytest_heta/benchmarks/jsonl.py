"""Benchmarks of one's own: documents and cases, one JSON object on each line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any, Final, get_args

from pytest_heta.benchmarks._cases import (
    case_documents,
    case_unit,
    jsonl_case,
    note_case_ids,
    note_ids,
)
from pytest_heta.benchmarks._checking import CheckedFiles, FilesCheck
from pytest_heta.benchmarks._dataset import (
    EXPECTED,
    DatasetFiles,
    Survey,
    document_records,
    find_files,
    gold_documents,
    is_cases_file,
    survey_cases,
)
from pytest_heta.benchmarks._documents import ID_FIELDS, jsonl_document
from pytest_heta.benchmarks._naming import benchmark_name
from pytest_heta.benchmarks._places import missing_file
from pytest_heta.benchmarks._reading import read_records
from pytest_heta.benchmarks._record import IdLines, check_gold
from pytest_heta.benchmarks._units import plan_units
from pytest_heta.errors import ConfigurationError, HetaError
from pytest_heta.evaluators import as_evaluator
from pytest_heta.models import (
    BenchmarkCase,
    BenchmarkDocument,
    BenchmarkManifest,
    BenchmarkResource,
    BenchmarkRunUnit,
    BenchmarkWorkspace,
    BuildScope,
    PreparedBenchmark,
)
from pytest_heta.protocols import BenchmarkEvaluatorProtocol

__all__ = ["JsonlBenchmark"]

_RETRIEVAL: Final = ("ndcg@10", "recall@5", "mrr@10")
_EVIDENCE: Final = ("evidence_recall@5",)
_ANSWER: Final = ("answer_contains",)


class JsonlBenchmark:
    """Documents and cases in JSONL files.

    Cases that name a ``unit`` are grouped by it, each group with a knowledge
    base of its own; else cases that name ``documents`` get one each; else one
    knowledge base serves all cases.

    Args:
        path: Folder with ``cases.jsonl`` and ``documents.jsonl``, or a cases
            file whose cases hold their documents. Relative paths are looked up
            in the workspace's ``root_dir``, then in the current directory.
        documents: Documents file in place of ``documents.jsonl``; relative to
            ``path``, if that is given.
        cases: Cases file in place of ``cases.jsonl``; likewise.
        name: Name of the benchmark; that of the folder or file, made legal,
            if not given.
        version: Version of the data.
        split: Part of the data that the cases are.
        build_scope: What one knowledge base serves, in place of what the
            cases tell: ``corpus``, ``case`` or ``group``.
        strict: Whether a gold document that does not exist is an error.
        allow_outside: Whether documents may come from outside the dataset's
            folder, by ``path`` or ``source_uri``.
        evaluators: Evaluators, or how they are written, in place of those
            that suit what the cases carry.
        about: More fields of the manifest: ``homepage``, ``license``,
            ``citation``, ``task_type``, ``metadata``.

    Raises:
        ConfigurationError: if neither ``path`` nor ``cases`` is given, or the
            scope is not one of the three.
        ModelInvalidError: if the name, split or ``about`` does not fit the manifest.
    """

    def __init__(  # noqa: PLR0913 - options, all by keyword
        self,
        path: str | PathLike[str] | None = None,
        *,
        documents: str | PathLike[str] | None = None,
        cases: str | PathLike[str] | None = None,
        name: str | None = None,
        version: str = "1",
        split: str = "test",
        build_scope: BuildScope | None = None,
        strict: bool = False,
        allow_outside: bool = False,
        evaluators: Sequence[BenchmarkEvaluatorProtocol | str] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        if path is None and cases is None:
            raise ConfigurationError(
                "JsonlBenchmark needs a folder or a cases file",
                hint="write JsonlBenchmark('folder') or JsonlBenchmark(cases='cases.jsonl')",
            )
        if build_scope not in {None, *get_args(BuildScope)}:
            raise ConfigurationError(
                f"build_scope {build_scope!r} is not known", hint="one of: corpus, case, group"
            )
        self.path = None if path is None else Path(path)
        self.strict = strict
        self._documents = None if documents is None else Path(documents)
        self._cases = None if cases is None else Path(cases)
        self._scope = build_scope
        self._allow_outside = allow_outside
        self._evaluators = None if evaluators is None else tuple(evaluators)
        self._surveyed: Survey | None = None
        self._manifest = BenchmarkManifest(
            name=self._default_name() if name is None else name,
            version=version,
            split=split,
            **(about or {}),
        )

    def __repr__(self) -> str:
        """Return what tells one benchmark from another."""
        return f"JsonlBenchmark({str(self.path or self._cases)!r})"

    @property
    def manifest(self) -> BenchmarkManifest:
        """What the benchmark is; the scope is that of the cases, if they can be read."""
        try:
            scope = self._build_scope(self._survey())
        except HetaError:
            # A broken dataset has a manifest too; `prepare` says what is wrong with it.
            scope = self._scope or "corpus"
        return self._manifest.model_copy(update={"build_scope": scope})

    def resources(self) -> tuple[BenchmarkResource, ...]:
        """Return the cases file and, if there is one, the documents file."""
        return _resources(self._files(Path.cwd()))

    async def prepare(self, workspace: BenchmarkWorkspace) -> PreparedBenchmark:
        """Check that the files are there and that the cases can be read.

        Raises:
            DatasetNotFoundError: if a file is missing, or there is no document.
            DatasetInvalidError: if a line is not a case.
        """
        files = self._files(workspace.root_dir)
        files.require()
        self._surveyed = survey_cases(files.cases)
        if files.documents is None and not self._surveyed.inline_documents:
            raise missing_file(files.root / "documents.jsonl", EXPECTED)
        return PreparedBenchmark(
            manifest=self.manifest,
            root_dir=files.root,
            resources=_resources(files),
            metadata={
                "cases": str(files.cases),
                "documents": None if files.documents is None else str(files.documents),
            },
        )

    def check_files(self, workspace: BenchmarkWorkspace) -> CheckedFiles:
        """Return all that is wrong or odd about the files, where loading stops at the first."""
        files, check = self._files(workspace.root_dir), FilesCheck()
        ids, case_ids = IdLines("document"), IdLines("case")
        if files.documents is not None:
            boundary = self._boundary(files.root, files.documents)
            for record in check.records(files.documents, EXPECTED):
                with check.noting(files.documents):
                    note_ids(check, "document", record, ID_FIELDS)
                    ids.add(jsonl_document(record, boundary).document_id, record)
        boundary = self._boundary(files.root, files.cases)
        for record in check.records(files.cases, EXPECTED):
            with check.noting(files.cases):
                note_case_ids(check, record)
                case_ids.add(jsonl_case(record).case_id, record)
                case_unit(record)
                for _, document in case_documents(record):
                    if document is not None:
                        jsonl_document(document, boundary)
        return check.result()

    async def documents(self, prepared: PreparedBenchmark) -> AsyncIterator[BenchmarkDocument]:
        """Yield the documents of the documents file, then those within cases.

        A file that a document names need not exist: whoever reads it says so.

        Raises:
            DatasetInvalidError: if a line is not a document, or, when strict,
                a gold document does not exist.
            DuplicateIdError: if an id stands twice.
        """
        files = DatasetFiles.of(prepared)
        boundaries = {
            path: self._boundary(files.root, path) for path in (files.documents, files.cases)
        }
        ids = IdLines("document")
        with closing(document_records(files, ids)) as records:
            for record in records:
                yield jsonl_document(record, boundaries[record.path])
        if self.strict:
            check_gold(ids, gold_documents(files.cases))

    async def cases(self, prepared: PreparedBenchmark) -> AsyncIterator[BenchmarkCase]:
        """Yield the cases in the file's order.

        Raises:
            DatasetInvalidError: if a line is not a case.
            DuplicateIdError: if an id stands twice.
        """
        ids = IdLines("case")
        with closing(read_records(DatasetFiles.of(prepared).cases, EXPECTED)) as records:
            for record in records:
                case = jsonl_case(record)
                ids.add(case.case_id, record)
                yield case

    async def run_units(self, prepared: PreparedBenchmark) -> AsyncIterator[BenchmarkRunUnit]:
        """Yield one unit ``corpus``, or the units that the cases make.

        Unit ids are made legal; the unit's own name is ``metadata["unit"]``.

        Raises:
            DatasetInvalidError: if a case names no unit where others do, or a
                document that does not exist.
            PlanInvalidError: if one of several units has no documents.
        """
        files = DatasetFiles.of(prepared)
        scope = self._build_scope(self._surveyed or survey_cases(files.cases))
        if scope == "corpus":
            yield BenchmarkRunUnit(unit_id="corpus")
            return
        units_of_documents = {
            record.identifier(*ID_FIELDS): record.identifiers("unit")
            for record in document_records(files, IdLines("document"))
        }
        with closing(read_records(files.cases, EXPECTED)) as cases:
            for unit in plan_units(scope, cases, units_of_documents):
                yield unit

    def evaluators(self) -> tuple[BenchmarkEvaluatorProtocol, ...]:
        """Return the evaluators, by default those that suit what the cases carry."""
        chosen: Sequence[BenchmarkEvaluatorProtocol | str]
        if self._evaluators is not None:
            chosen = self._evaluators
        else:
            survey = self._survey()
            chosen = [
                *(_RETRIEVAL if survey.judged_documents else ()),
                *(_EVIDENCE if survey.finer_evidence else ()),
                *(_ANSWER if survey.answers else ()),
            ]
        return tuple(as_evaluator(evaluator) for evaluator in chosen)

    def _default_name(self) -> str:
        path = self.path or self._cases or Path()
        if not is_cases_file(path):
            return benchmark_name(path)
        return benchmark_name(path.absolute().parent if path.stem == "cases" else Path(path.stem))

    def _files(self, root_dir: Path) -> DatasetFiles:
        return find_files(self.path, self._cases, self._documents, root_dir)

    def _boundary(self, root: Path, path: Path | None) -> Path | None:
        """Return the resolved folder that contents named in a file must stay in."""
        if self._allow_outside or path is None:
            return None
        folder = path.resolve().parent
        return root.resolve() if folder.is_relative_to(root.resolve()) else folder

    def _survey(self) -> Survey:
        if self._surveyed is None:
            self._surveyed = survey_cases(self._files(Path.cwd()).cases)
        return self._surveyed

    def _build_scope(self, survey: Survey) -> BuildScope:
        if self._scope is not None:
            return self._scope
        if survey.units:
            return "group"
        return "case" if survey.documents else "corpus"


def _resources(files: DatasetFiles) -> tuple[BenchmarkResource, ...]:
    found = {"cases": files.cases, "documents": files.documents}
    return tuple(
        BenchmarkResource(name=name, uri=str(path))
        for name, path in found.items()
        if path is not None
    )
