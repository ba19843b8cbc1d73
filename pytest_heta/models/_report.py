"""What comes of a run: aggregates, gates, the report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field

from pytest_heta.models._base import HetaModel, Identifier, Metadata
from pytest_heta.models._benchmark import BenchmarkManifest
from pytest_heta.models._pages import KeptAsPages
from pytest_heta.models._result import EvaluationCaseResult, EvaluationError

SCHEMA_VERSION: Final = "1"
"""Version of the report file's layout. A change that readers notice raises it."""

Direction = Literal["higher", "lower"]
"""Which values of a metric are better."""

Operator = Literal[">=", ">", "<=", "<", "=="]
"""How a gate compares a value with its threshold."""


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
        reused_samples: Samples whose result an earlier session of the run had.
        reused_responses: Samples that were only scored: a process that has ended had
            got their response.
        attempts: How often samples were tried, over all sessions of the run.
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
    reused_samples: int = 0
    reused_responses: int = 0
    attempts: int = 0
    metrics: dict[str, MetricSummary] = Field(default_factory=dict)
    latency: LatencySummary = Field(default_factory=LatencySummary)
    cold_latency: LatencySummary = Field(default_factory=LatencySummary)
    warm_latency: LatencySummary = Field(default_factory=LatencySummary)


class UnitBuild(HetaModel):
    """How the knowledge base of one run unit came to be.

    Attributes:
        unit_id: The run unit.
        build_seconds: Seconds inside the recipe's ``create``, in the run that
            built it; None when the build failed before or during it.
        reused: Whether an earlier run built it, and this one loaded it.
        load_seconds: Seconds to check and load a saved knowledge base; None
            where it was not loaded.
        document_count: Documents of the unit.
        knowledge_base_manifest: What the knowledge base says of itself.
        error: Why the build failed, if it did.
        metadata: Anything else, such as the worker that built it, or
            ``cache_warnings``.
    """

    unit_id: Identifier
    build_seconds: float | None = None
    reused: bool = False
    load_seconds: float | None = None
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
        case_results: One result for each sample, in the benchmark's order: a
            tuple, or `PagedResults` that are on disk.
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
    case_results: Annotated[Sequence[EvaluationCaseResult], KeptAsPages()] = ()
    started_at: datetime
    finished_at: datetime
    config_snapshot: Metadata = Field(default_factory=dict)
    metadata: Metadata = Field(default_factory=dict)
