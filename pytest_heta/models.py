"""The vocabulary of pytest-heta: frozen, validated models.

A model is built from keyword arguments, from a mapping
(``model_validate``) or from any object with the same attributes
(``model_validate(obj, from_attributes=True)``), which is how objects of other
packages are taken in by shape. A value that does not fit raises
`ModelInvalidError`, one line that names the field, the value and what is
allowed.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import unquote
from uuid import UUID

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)

from pytest_heta.errors import ModelInvalidError, shown

__all__ = [
    "LARGEST_GRADE",
    "SCHEMA_VERSION",
    "BenchmarkCase",
    "BenchmarkDocument",
    "BenchmarkEvidence",
    "BenchmarkExpected",
    "BenchmarkManifest",
    "BenchmarkResource",
    "BenchmarkRunUnit",
    "BenchmarkWorkspace",
    "BuildScope",
    "Direction",
    "EvaluationCaseResult",
    "EvaluationError",
    "EvaluationReport",
    "EvaluationScore",
    "GateResult",
    "HetaModel",
    "LatencySummary",
    "MetricSummary",
    "ModeSummary",
    "Operator",
    "PreparedBenchmark",
    "QueryCitation",
    "QueryResponse",
    "QueryResult",
    "ScoreStatus",
    "UnitBuild",
    "document_id_from_raw_key",
    "normalise_id",
    "raw_key",
]

SCHEMA_VERSION: Final = "1"
"""Version of the report file's layout. A change that readers notice raises it."""

ScoreStatus = Literal["scored", "errored", "skipped", "unjudged"]
"""Where a score stands in the denominators; every score has exactly one."""

BuildScope = Literal["corpus", "case", "group"]
"""What one knowledge base covers: the whole corpus, one case, or a group of cases."""

Direction = Literal["higher", "lower"]
"""Which values of a metric are better."""

Operator = Literal[">=", ">", "<=", "<", "=="]
"""How a gate compares a value with its threshold."""

LARGEST_GRADE: Final = 1e15
"""Up to here floats hold every integer; real grades are below 10."""


def normalise_id(value: object) -> str:
    """Return an id as the one string that stands for it everywhere.

    Datasets write the same id as ``7`` on one side and as ``"7"`` on the
    other. Integers become their decimal digits, and so do floats without a
    fraction (``7.0`` is ``"7"``), also those of numpy; a `UUID` becomes its
    text, and strings are kept as they are.

    Raises:
        ValueError: for an empty string, a boolean or any other type.
    """
    if isinstance(value, str):
        if not value:
            raise ValueError("an id must not be empty")
        return value
    if isinstance(value, UUID):
        return str(value)
    # Numpy's numbers, which vector indexes answer with, are no int or float.
    if isinstance(value, bool) or not isinstance(value, Real):
        kind = type(value).__name__
        raise ValueError(f"an id must be a string or an integer, not {kind}")  # noqa: TRY004 - pydantic's
    if isinstance(value, Integral):
        return str(int(value))
    if not float(value).is_integer():
        raise ValueError("an id must be a string or an integer, not a fraction")
    return str(int(float(value)))


Identifier = Annotated[str, BeforeValidator(normalise_id)]


def _in_one_order(value: object) -> object:
    """Sort a set: its own order differs between processes."""
    return sorted(value, key=str) if isinstance(value, set | frozenset) else value


Identifiers = Annotated[tuple[Identifier, ...], BeforeValidator(_in_one_order)]
Metadata = dict[str, Any]


def _describe(model: str, error: ValidationError) -> str:
    """Return the first problem of ``error`` (and how many more) as one line."""
    problems = error.errors(include_url=False, include_context=False)
    first = problems[0]
    field = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    line = f"{model}.{field}" if field else model
    if first["type"] == "missing":
        line += ": a value is required"
    elif field:
        line += f" = {shown(first['input'])}: {message}"
    else:
        line += f": {message}"
    if len(problems) > 1:
        line += f" (and {len(problems) - 1} more)"
    return line


class HetaModel(BaseModel):
    """The base of every model: frozen, without unknown fields, wrong in one line."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, from_attributes=True
    )

    @model_validator(mode="wrap")
    @classmethod
    def _one_line_errors(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            raise ModelInvalidError(_describe(cls.__name__, error)) from None


# --- benchmarks --------------------------------------------------------------


class BenchmarkManifest(HetaModel):
    """What a benchmark is: its identity and its terms of use.

    Attributes:
        name: Identity of the benchmark; it stands in node ids and raw keys,
            so it is made of ``A-Z a-z 0-9 _ -``.
        version: Version of the data, in the publisher's words.
        split: Part of the data, such as ``test`` or ``dev``.
        task_type: Kind of task, such as ``retrieval`` or ``question_answering``.
        build_scope: Hint at what one knowledge base covers. The plan itself
            comes from `BenchmarkProtocol.run_units`.
        homepage: Address of the publisher's page.
        license: Terms of use of the data.
        citation: How to cite the data.
        metadata: Anything else; it goes to the report unchanged.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    version: str = "1"
    split: str = Field(default="test", pattern=r"^[A-Za-z0-9_.-]+$")
    task_type: str = "retrieval"
    build_scope: BuildScope = "corpus"
    homepage: str | None = None
    license: str | None = None
    citation: str | None = None
    metadata: Metadata = Field(default_factory=dict)


class BenchmarkResource(HetaModel):
    """A file, folder or archive that a benchmark is read from.

    Attributes:
        name: Name of the resource within the benchmark.
        uri: Where it is: a path or an address.
        kind: Kind of resource.
        checksum: Expected checksum as ``algorithm:hex digits``.
        size_bytes: Expected size in bytes.
        required: Whether the benchmark cannot run without it.
        metadata: Anything else.
    """

    name: str
    uri: str
    kind: str = "file"
    checksum: str | None = None
    size_bytes: int | None = Field(default=None, ge=0)
    required: bool = True
    metadata: Metadata = Field(default_factory=dict)


class BenchmarkWorkspace(HetaModel):
    """Folders that an adapter may use while it prepares.

    Attributes:
        root_dir: Folder that relative resources are looked up in.
        cache_dir: Folder for what may be kept between runs.
        output_dir: Folder for what the run makes.
    """

    root_dir: Path
    cache_dir: Path
    output_dir: Path | None = None


class PreparedBenchmark(HetaModel):
    """A benchmark whose resources are on this machine.

    Attributes:
        manifest: The benchmark's manifest.
        root_dir: Folder the data is read from.
        resources: What was prepared.
        metadata: Anything the adapter wants to find again in later calls.
    """

    manifest: BenchmarkManifest
    root_dir: Path
    resources: tuple[BenchmarkResource, ...] = ()
    metadata: Metadata = Field(default_factory=dict)


class BenchmarkDocument(HetaModel):
    """A source document of a benchmark; its content has exactly one origin.

    Attributes:
        document_id: Identity within the benchmark.
        name: File name, with the ending that says how to parse it.
        media_type: Media type, such as ``text/plain`` or ``application/pdf``.
        data: The content itself.
        path: File with the content.
        source_uri: Address of the content, opened by fsspec.
        metadata: Anything else; a recipe reads it with ``objects.metadata(key)``.
    """

    document_id: Identifier
    name: str = Field(min_length=1)
    media_type: str = "text/plain"
    data: bytes | None = None
    path: Path | None = None
    source_uri: str | None = None
    metadata: Metadata = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        given = sum(origin is not None for origin in (self.data, self.path, self.source_uri))
        if given != 1:
            raise ModelInvalidError(
                f"BenchmarkDocument: document {self.document_id!r} needs exactly one of data,"
                f" path and source_uri, not {given}"
            )
        return self


class BenchmarkEvidence(HetaModel):
    """Something that a good response retrieves: a relevance judgment.

    Attributes:
        reference_id: Id of the judged document.
        locator: Place within the documents, such as ``{"document_id": "a",
            "page_index": 3}``. It may hold any field. Some have a meaning of
            their own and a plural, such as document_id and source_key: see
            `pytest_heta.evaluators.provenance`.
        text: Text that stands in the evidence.
        metadata: Anything else. ``relevance`` is the grade of the judgment.
    """

    reference_id: Identifier | None = None
    locator: Metadata = Field(default_factory=dict)
    text: str | None = None
    metadata: Metadata = Field(default_factory=dict)

    @model_validator(mode="after")
    def _points_somewhere(self) -> Self:
        if self.reference_id is None and not self.locator and not self.text:
            raise ModelInvalidError(
                "BenchmarkEvidence: a reference_id, a locator or a text is required"
            )
        return self

    @property
    def grade(self) -> float:
        """Grade of the judgment (``metadata["relevance"]``), 1 when none is given.

        Raises:
            ModelInvalidError: if it is not a number, or beyond ±1e15.
        """
        relevance = self.metadata.get("relevance")
        try:
            grade = 1.0 if relevance is None else float(relevance)
        except (TypeError, ValueError, OverflowError):
            grade = math.nan
        if not abs(grade) <= LARGEST_GRADE:  # NaN is not either
            evidence = self.reference_id or self.locator or self.text
            raise ModelInvalidError(
                f"relevance {shown(relevance)} of the evidence {shown(evidence)} is no grade",
                hint="a grade is a number of at most 1e15; above 0 means relevant",
            )
        return grade


class BenchmarkExpected(HetaModel):
    """What is expected of the response to a case.

    Attributes:
        answers: Accepted answers; any of them is right.
        evidence: Judged evidence, also the judgments of grade 0 and below.
        value: A structured expectation for evaluators of one's own.
        metadata: Anything else.
    """

    answers: Annotated[tuple[str, ...], BeforeValidator(_in_one_order)] = ()
    evidence: tuple[BenchmarkEvidence, ...] = ()
    value: Any = None
    metadata: Metadata = Field(default_factory=dict)


class BenchmarkCase(HetaModel):
    """One query of a benchmark with what is expected of its response.

    Attributes:
        case_id: Identity within the benchmark.
        query: Text of the query.
        expected: What is expected of the response.
        labels: Labels to select and group by, such as ``question_type``.
        metadata: Anything else.
    """

    case_id: Identifier
    query: str
    expected: BenchmarkExpected = Field(default_factory=BenchmarkExpected)
    labels: Metadata = Field(default_factory=dict)
    metadata: Metadata = Field(default_factory=dict)


class BenchmarkRunUnit(HetaModel):
    """One knowledge base to build, and the cases to ask it.

    Attributes:
        unit_id: Identity within the benchmark.
        document_ids: Documents of the knowledge base. Empty means all of
            them, which only a benchmark with a single unit may say.
        case_ids: Cases to ask. Empty means all of them, as above.
        metadata: Anything else; the fixture ``heta_unit`` passes it on.
    """

    unit_id: Identifier
    document_ids: Identifiers = ()
    case_ids: Identifiers = ()
    metadata: Metadata = Field(default_factory=dict)


# --- responses ---------------------------------------------------------------


class QueryResult(HetaModel):
    """One retrieved piece of a response; results are in rank order.

    Attributes:
        id: Id of the piece, often a chunk.
        text: Its text.
        score: The retriever's own score. The order of the results decides the
            rank, never this number.
        kind: Kind of piece, such as ``chunk`` or ``document``.
        source: Where it comes from: ``document_id``, ``source_key``,
            ``page_index`` and so on, also below ``origin``.
        metadata: Anything else.
    """

    id: Identifier
    text: str = ""
    score: float | None = None
    kind: str = "chunk"
    source: Metadata = Field(default_factory=dict)
    metadata: Metadata = Field(default_factory=dict)


class QueryCitation(HetaModel):
    """A source that an answer cites.

    Attributes:
        id: Id of the citation.
        result_id: Id of the result that is cited.
        source: Where the cited text comes from, as in `QueryResult.source`.
        text: The cited text.
        metadata: Anything else.
    """

    id: Identifier
    result_id: Identifier | None = None
    source: Metadata = Field(default_factory=dict)
    text: str | None = None
    metadata: Metadata = Field(default_factory=dict)


class QueryResponse(HetaModel):
    """What a knowledge base returns for one query.

    Attributes:
        mode: Query mode that answered.
        results: Retrieved pieces, best first. An empty list is an honest
            answer and scores 0.
        answer: Generated answer, if the mode makes one.
        citations: Sources that the answer cites.
        trace: Steps of the query, for people to read.
        metadata: Anything else, such as token counts.
    """

    mode: str
    results: tuple[QueryResult, ...] = ()
    answer: str | None = None
    citations: tuple[QueryCitation, ...] = ()
    trace: tuple[Any, ...] = ()
    metadata: Metadata = Field(default_factory=dict)


# --- scores and results ------------------------------------------------------


class EvaluationScore(HetaModel):
    """What one evaluator says about one response.

    Attributes:
        name: The evaluator's name.
        value: A number, a truth value, or a label; None when there is none.
        passed: The evaluator's own verdict, if it gives one.
        metadata: Anything else. ``skipped`` (with ``reason``), ``unjudged``
            and ``error`` say why there is no value.
    """

    name: str
    value: float | bool | str | None = None
    passed: bool | None = None
    metadata: Metadata = Field(default_factory=dict)

    @property
    def status(self) -> ScoreStatus:
        """Where the score stands in the denominators."""
        if self.metadata.get("error"):
            return "errored"
        if self.metadata.get("unjudged"):
            return "unjudged"
        if self.metadata.get("skipped"):
            return "skipped"
        return "errored" if self.value is None else "scored"


class EvaluationError(HetaModel):
    """Why a sample could not be run.

    Attributes:
        message: One line for people.
        error_type: Stable kind of error: ``build``, ``query``,
            ``response_invalid``, ``timeout`` or ``crash``.
        retryable: Whether another attempt may succeed.
        metadata: Anything else, such as the exception's type.
    """

    message: str
    error_type: str
    retryable: bool = False
    metadata: Metadata = Field(default_factory=dict)


class EvaluationCaseResult(HetaModel):
    """What came of one sample: one case asked in one mode.

    Attributes:
        case_id: Id of the case.
        query: Text of the query.
        query_mode: Mode it was asked in.
        scores: One score for each evaluator, in the evaluators' order.
        response: The response, None when the sample failed.
        latency_ms: Milliseconds inside the knowledge base's ``query`` alone;
            None when the sample failed.
        error: Why the sample failed, None when it succeeded.
        metadata: ``unit_id``, ``repeat``, ``labels``, ``cold``,
            ``distinct_documents``, ``node_id``.
    """

    case_id: Identifier
    query: str
    query_mode: str
    scores: tuple[EvaluationScore, ...] = ()
    response: QueryResponse | None = None
    latency_ms: float | None = None
    error: EvaluationError | None = None
    metadata: Metadata = Field(default_factory=dict)


# --- aggregates --------------------------------------------------------------


class MetricSummary(HetaModel):
    """One metric over the samples of one mode, with its denominators.

    ``n = n_scored + n_errored + n_skipped + n_unjudged`` and
    ``mean = (Σ scored + Σ worst over errored) / (n_scored + n_errored)``.

    Attributes:
        metric: Name of the metric.
        mean: The mean, None when nothing was scored or errored, when the
            scores are labels, or when samples errored and the metric has no
            worst value.
        n: Samples.
        n_scored: Samples with a value.
        n_errored: Samples that count as ``worst``: they failed, or the
            evaluator did.
        n_skipped: Samples the metric does not apply to, or that were asked
            less deep than its k.
        n_unjudged: Samples without a positive judgment.
        direction: Whether ``higher`` or ``lower`` values are better.
        worst: Value that an errored sample counts as, if there is one.
        n_passed: Scores with ``passed`` true, None if no score has a verdict.
        value_counts: For labels, how often each was given.
        reasons: Why scores are missing, with counts.
        distinct_documents: Mean number of distinct documents in the results,
            given when some results fold to fewer documents than the metric's
            k.
    """

    metric: str
    mean: float | None = None
    n: int = 0
    n_scored: int = 0
    n_errored: int = 0
    n_skipped: int = 0
    n_unjudged: int = 0
    direction: Direction = "higher"
    worst: float | None = None
    n_passed: int | None = None
    value_counts: dict[str, int] | None = None
    reasons: dict[str, int] = Field(default_factory=dict)
    distinct_documents: float | None = None


class LatencySummary(HetaModel):
    """Latencies in milliseconds, with ``n`` samples behind each number.

    Percentiles interpolate linearly between order statistics (numpy's default
    method, Hyndman and Fan 1996, type 7). All are None when n is 0.

    Attributes:
        n: Successful samples that were really asked.
        mean_ms: Arithmetic mean.
        p50_ms: Median.
        p95_ms: 95th percentile.
        p99_ms: 99th percentile.
        max_ms: Largest.
    """

    n: int = 0
    mean_ms: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None


class ModeSummary(HetaModel):
    """Everything aggregated over the samples of one query mode.

    Attributes:
        mode: The query mode.
        planned_samples: Samples the plan has for this mode.
        total_cases: Samples with a result.
        successful_cases: Samples without an execution error.
        failed_cases: Samples with an execution error.
        distinct_cases: Different cases among the samples.
        failure_rate: ``failed_cases / total_cases``, None without samples.
        scoring_errors: Scores lost to an evaluator's error.
        metrics: Summary of each metric by its name.
        latency: All successful samples.
        cold_latency: The first sample of each unit and mode in a process.
        warm_latency: The others.
    """

    mode: str
    planned_samples: int = 0
    total_cases: int = 0
    successful_cases: int = 0
    failed_cases: int = 0
    distinct_cases: int = 0
    failure_rate: float | None = None
    scoring_errors: int = 0
    metrics: dict[str, MetricSummary] = Field(default_factory=dict)
    latency: LatencySummary = Field(default_factory=LatencySummary)
    cold_latency: LatencySummary = Field(default_factory=LatencySummary)
    warm_latency: LatencySummary = Field(default_factory=LatencySummary)


class UnitBuild(HetaModel):
    """How the knowledge base of one run unit came to be.

    Attributes:
        unit_id: The run unit.
        build_seconds: Seconds inside the recipe's ``create``; None when the
            build failed before or during it.
        document_count: Documents of the unit.
        knowledge_base_manifest: What the knowledge base says of itself.
        error: Why the build failed, if it did.
        metadata: Anything else, such as the worker that built it.
    """

    unit_id: Identifier
    build_seconds: float | None = None
    document_count: int = 0
    knowledge_base_manifest: Metadata = Field(default_factory=dict)
    error: EvaluationError | None = None
    metadata: Metadata = Field(default_factory=dict)


class GateResult(HetaModel):
    """What came of one gate for one benchmark, recipe and mode.

    Attributes:
        gate: The gate, resolved to one benchmark, recipe and mode.
        written: The gate as it was written.
        origin: Where it was written: ``command line``, ``ini`` or ``suite``.
        benchmark: Name of the benchmark.
        recipe: Name of the recipe.
        mode: Query mode.
        aggregate: Aggregate the gate compares, such as ``ndcg@10``.
        operator: One of ``>= > <= < ==``.
        threshold: Number it is compared with.
        value: Value of the aggregate, None when there is none.
        n: Samples behind the value.
        status: ``passed`` or ``failed`` when decided; ``skipped`` when the
            run was a subset of the plan; ``undecided`` when the aggregate has
            no value, which fails the run.
        reason: Why, in a few words.
    """

    gate: str
    written: str
    origin: str
    benchmark: str
    recipe: str
    mode: str
    aggregate: str
    operator: Operator
    threshold: float
    value: float | None = None
    n: int = 0
    status: Literal["passed", "failed", "skipped", "undecided"]
    reason: str | None = None


class EvaluationReport(HetaModel):
    """The final product of a run, for one benchmark and one recipe.

    Attributes:
        schema_version: Version of the layout.
        report_id: Different for every run.
        report_key: The same for every run of the same benchmark and recipe.
        benchmark: Manifest of the benchmark.
        knowledge_base_name: Name the knowledge bases were built under.
        knowledge_base_manifest: What the first knowledge base says of itself.
        recipe_manifest: What the recipe says of itself.
        query_modes: Modes that were asked, in order.
        score_summary: Mean of each metric, keyed ``mode.metric``; metrics
            without a mean are left out.
        mode_summaries: All aggregates, by mode.
        gates: What came of the gates.
        unit_builds: How each run unit was built.
        case_results: One result for each sample, in the benchmark's order.
        started_at: Start of the run, ISO 8601 in UTC.
        finished_at: End of the run, ISO 8601 in UTC.
        config_snapshot: Everything needed to compare this run with another.
        metadata: ``complete``, ``warnings``, counts of the plan, and more.
    """

    schema_version: str = SCHEMA_VERSION
    report_id: str
    report_key: str
    benchmark: BenchmarkManifest
    knowledge_base_name: str
    knowledge_base_manifest: Metadata = Field(default_factory=dict)
    recipe_manifest: Metadata = Field(default_factory=dict)
    query_modes: tuple[str, ...] = ()
    score_summary: dict[str, float] = Field(default_factory=dict)
    mode_summaries: dict[str, ModeSummary] = Field(default_factory=dict)
    gates: tuple[GateResult, ...] = ()
    unit_builds: tuple[UnitBuild, ...] = ()
    case_results: tuple[EvaluationCaseResult, ...] = ()
    started_at: datetime
    finished_at: datetime
    config_snapshot: Metadata = Field(default_factory=dict)
    metadata: Metadata = Field(default_factory=dict)


# --- raw keys ----------------------------------------------------------------

_RAW_KEY: Final = re.compile(r"(?:^|/)raw/benchmarks/[^/]+/[^/]+/(?P<document_id>[^/]+)/[^/]+$")
_UNSAFE_IN_SEGMENT: Final = re.compile(r"[\x00-\x1f\x7f/\\%]|^\.+$")


def _segment(text: str) -> str:
    """Return ``text`` as one path segment that is not made of dots alone."""
    return _UNSAFE_IN_SEGMENT.sub(
        lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), text
    )


def raw_key(manifest: BenchmarkManifest, document: BenchmarkDocument) -> str:
    """Return the key of a document in the object store.

    The key is ``raw/benchmarks/{name}/{split}/{document_id}/{document name}``;
    in an id or a name, slashes, backslashes, percent signs and control
    characters are percent-encoded, so that every id is one segment.
    """
    parts = (manifest.name, manifest.split, document.document_id, document.name)
    return "raw/benchmarks/" + "/".join(_segment(part) for part in parts)


def document_id_from_raw_key(key: str) -> str | None:
    """Return the document id that a raw key was made of, None for other keys."""
    match = _RAW_KEY.search(key)
    return unquote(match["document_id"]) if match else None
