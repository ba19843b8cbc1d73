"""The step that turns results into summaries and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from pytest_heta.codes import coded
from pytest_heta.core._staged import DatasetFacts
from pytest_heta.core.build import knowledge_base_name
from pytest_heta.core.plan import BenchmarkPlan, MetricSpec, Sample
from pytest_heta.core.score import errored_score, exemption, failed_score
from pytest_heta.models import (
    EvaluationCaseResult,
    EvaluationReport,
    GateResult,
    LatencySummary,
    MetricSummary,
    ModeSummary,
    PagedResults,
    SampleTally,
    ScoreStatus,
    ScoreTally,
    UnitBuild,
)
from pytest_heta.stats import mean, percentile

__all__ = [
    "build_report",
    "dataset_metadata",
    "score_summary",
    "summarise_latency",
    "summarise_mode",
    "summarise_tallies",
]

_MOST_WARNINGS: Final = 10
"""Warnings of knowledge bases that a report repeats; all stand where they were given."""


def summarise_mode(
    plan: BenchmarkPlan, mode: str, results: Iterable[EvaluationCaseResult]
) -> ModeSummary:
    """Aggregate the results of one query mode.

    Args:
        plan: The plan.
        mode: The query mode.
        results: Results in any order; their metadata has ``unit_id``,
            ``repeat``, ``cold`` and ``distinct_documents``.
    """
    return summarise_tallies(plan, mode, map(SampleTally.of, results))


def summarise_tallies(
    plan: BenchmarkPlan, mode: str, tallies: Iterable[SampleTally]
) -> ModeSummary:
    """Aggregate what is counted of the results of one query mode.

    Those of other modes are left out. A result without the score of some
    metric (its process crashed, say) counts for that metric as a failed
    sample does: as skipped or unjudged when the metric does not apply to its
    case, else as errored.

    Args:
        plan: The plan.
        mode: The query mode.
        tallies: Tallies in any order.
    """
    metrics = [_MetricTally(metric, plan) for metric in plan.metrics]
    cases: set[str] = set()
    total = failed = scoring_errors = attempts = 0
    reused: Counter[str | None] = Counter()
    cold: list[float] = []
    warm: list[float] = []
    for sample in tallies:
        if sample.mode != mode:
            continue
        total += 1
        failed += sample.failed
        reused[sample.reused] += 1
        attempts += sample.attempts
        cases.add(sample.case_id)
        if sample.latency_ms is not None:
            (cold if sample.cold else warm).append(sample.latency_ms)
        by_name = {score.name: score for score in sample.scores}
        for metric in metrics:
            status = metric.add(sample, by_name.get(metric.metric.name))
            scoring_errors += status == "errored" and not sample.failed
    return ModeSummary(
        mode=mode,
        planned_samples=plan.samples_per_mode,
        total_cases=total,
        successful_cases=total - failed,
        failed_cases=failed,
        distinct_cases=len(cases),
        failure_rate=failed / total if total else None,
        scoring_errors=scoring_errors,
        reused_samples=reused["result"],
        reused_responses=reused["response"],
        attempts=attempts,
        metrics={metric.metric.name: metric.summary() for metric in metrics},
        latency=summarise_latency([*cold, *warm]),
        cold_latency=summarise_latency(cold),
        warm_latency=summarise_latency(warm),
    )


def summarise_latency(latencies_ms: Sequence[float]) -> LatencySummary:
    """Return mean, percentiles and maximum of latencies in milliseconds."""
    return LatencySummary(
        n=len(latencies_ms),
        mean_ms=mean(latencies_ms),
        p50_ms=percentile(latencies_ms, 50),
        p95_ms=percentile(latencies_ms, 95),
        p99_ms=percentile(latencies_ms, 99),
        max_ms=max(latencies_ms, default=None),
    )


class _MetricTally:
    """The scores of one metric, as they come in."""

    def __init__(self, metric: MetricSpec, plan: BenchmarkPlan) -> None:
        self.metric = metric
        self._plan = plan
        self._values: list[float] = []
        self._labels: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._verdicts: list[bool] = []
        self._k = metric.k
        self._distinct: list[int] = []
        self._folded = False

    def add(self, sample: SampleTally, given: ScoreTally | None) -> ScoreStatus:
        """Count one sample; return the status of the score that it was counted by."""
        # Taken apart once: there may be millions.
        _, value, passed, status, reason = given if given is not None else self._missing(sample)
        self._statuses[status] += 1
        if passed is not None:
            self._verdicts.append(passed)
        if value is None:
            self._reasons[reason or status] += 1
            return status
        if isinstance(value, str):
            self._labels[value] += 1
        else:
            self._values.append(float(value))
        if self._k is not None and sample.distinct is not None:
            self._note_distinct(sample.distinct, sample.returned, self._k)
        return status

    def _missing(self, sample: SampleTally) -> ScoreTally:
        name = self.metric.name
        score = exemption(self.metric, self._plan.cases.get(sample.case_id), self._plan.top_k)
        if score is None and sample.failed:
            score = failed_score(name, None)
        return ScoreTally.of(score or errored_score(name, "missing", "no score"))

    def _note_distinct(self, distinct: int, returned: int | None, k: int) -> None:
        self._distinct.append(distinct)
        # Fewer documents than k because fewer results came is no folding.
        if distinct < k and (returned is None or distinct < returned):
            self._folded = True

    def summary(self) -> MetricSummary:
        """Return the summary of what was counted."""
        n_errored = self._statuses["errored"]
        return MetricSummary(
            metric=self.metric.name,
            mean=self._mean(n_errored),
            n=self._statuses.total(),
            n_scored=self._statuses["scored"],
            n_errored=n_errored,
            n_skipped=self._statuses["skipped"],
            n_unjudged=self._statuses["unjudged"],
            direction=self.metric.direction,
            worst=self.metric.worst,
            n_passed=sum(self._verdicts) if self._verdicts else None,
            value_counts=dict(sorted(self._labels.items())) if self._labels else None,
            reasons=dict(sorted(self._reasons.items())),
            distinct_documents=mean(self._distinct) if self._folded else None,
        )

    def _mean(self, n_errored: int) -> float | None:
        if self._labels or (n_errored and self.metric.worst is None):
            return None
        worst = [self.metric.worst or 0.0] * n_errored
        return mean([*self._values, *worst])


def score_summary(summaries: Mapping[str, ModeSummary]) -> dict[str, float]:
    """Return the mean of each metric, keyed ``mode.metric``."""
    return {
        f"{mode}.{name}": metric.mean
        for mode, summary in summaries.items()
        for name, metric in summary.metrics.items()
        if metric.mean is not None
    }


def build_report(
    plan: BenchmarkPlan,
    results: Mapping[Sample, EvaluationCaseResult] | PagedResults,
    *,
    unit_builds: Iterable[UnitBuild],
    gates: Sequence[GateResult] = (),
    started_at: datetime,
    finished_at: datetime,
    snapshot: Mapping[str, Any],
    metadata: Mapping[str, Any],
    summaries: Mapping[str, ModeSummary] | None = None,
) -> EvaluationReport:
    """Return the report of a run, complete or not.

    Args:
        plan: The plan.
        results: One result for each sample that has one, in any order; pages
            are in the plan's order.
        unit_builds: How the units were built, in any order.
        gates: What came of the gates.
        started_at: Start of the run in UTC.
        finished_at: End of the run in UTC.
        snapshot: Configuration of the run.
        metadata: Anything to add; ``complete`` and counts are filled in.
        summaries: Summaries of the modes if they are there already.
    """
    ordered: Sequence[EvaluationCaseResult]
    if isinstance(results, PagedResults):
        ordered, tallies = results, results.tallies
    else:
        ordered = tuple(results[sample] for sample in plan.samples() if sample in results)
        tallies = list(map(SampleTally.of, ordered))
    if summaries is None:
        summaries = {mode: summarise_tallies(plan, mode, tallies) for mode in plan.modes}
    builds = {build.unit_id: build for build in unit_builds}
    in_order = tuple(builds[unit.unit_id] for unit in plan.units if unit.unit_id in builds)
    planned = plan.samples_per_mode * len(plan.modes)
    metadata = {**metadata, "warnings": [*metadata.get("warnings", plan.warnings)]}
    foreign = sum(tally.foreign for tally in tallies)
    if foreign:
        metadata["warnings"].append(
            coded(
                "foreign-results",
                f"{foreign} of {len(ordered)} responses name no document of the benchmark;"
                " let results have a source with source_key or document_id",
            )
        )
    metadata["warnings"] += _warnings_of_knowledge_bases(in_order, tallies)
    known = {
        "complete": len(ordered) == planned,
        "planned_samples": planned,
        "finished_samples": len(ordered),
        "planned_cases": len(plan.cases),
        "dataset_cases": plan.case_count,
        "knowledge_bases": {
            "built": sum(1 for b in in_order if b.error is None and not b.reused),
            "reused": sum(1 for b in in_order if b.reused),
            "failed": sum(1 for b in in_order if b.error is not None),
        },
        "warnings": list(plan.warnings),
    }
    return EvaluationReport(
        report_id=uuid4().hex,
        report_key=f"{plan.benchmark.name}-{plan.benchmark.split}@{plan.recipe_name}",
        benchmark=plan.benchmark,
        knowledge_base_name=_knowledge_base_name(plan),
        knowledge_base_manifest=next(
            (b.knowledge_base_manifest for b in in_order if b.error is None), {}
        ),
        recipe_manifest=dict(plan.recipe_manifest),
        query_modes=plan.modes,
        score_summary=score_summary(summaries),
        mode_summaries=dict(summaries),
        gates=tuple(gates),
        unit_builds=in_order,
        case_results=ordered,
        started_at=started_at,
        finished_at=finished_at,
        config_snapshot=dict(snapshot),
        metadata={**known, **metadata},
    )


def _warnings_of_knowledge_bases(
    builds: Iterable[UnitBuild], tallies: Iterable[SampleTally]
) -> list[str]:
    """Return what knowledge bases warn of in ``warnings`` of manifests and responses."""
    warnings = [
        coded(code, f"run unit {build.unit_id}: {text}")
        for build in builds
        for code, told in (
            ("recipe-warning", build.knowledge_base_manifest.get("warnings")),
            ("cache-unusable", build.metadata.get("cache_warnings")),
        )
        for text in _texts(told)
    ]
    counts = Counter((tally.mode, text) for tally in tallies for text in tally.warnings)
    for (mode, text), count in counts.items():
        samples = "samples" if count > 1 else "sample"
        warnings.append(coded("recipe-warning", f"{mode}: {text} ({count} {samples})"))
    more = len(warnings) - _MOST_WARNINGS
    return warnings if more <= 0 else [*warnings[:_MOST_WARNINGS], f"and {more} more"]


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def dataset_metadata(
    plan: BenchmarkPlan, dataset: DatasetFacts | None, closing: Mapping[str, str]
) -> dict[str, Any]:
    """Return what a report says of its dataset, and all warnings of the run.

    Args:
        plan: The plan.
        dataset: What staging found out; None when nothing was staged.
        closing: Why knowledge bases could not be closed, by unit id.
    """
    return {
        "warnings": [
            *plan.warnings,
            *(dataset.warnings if dataset is not None else ()),
            *(
                coded(
                    "close-failed",
                    f"run unit {unit.unit_id} could not be closed: {closing[unit.unit_id]}",
                )
                for unit in plan.units
                if unit.unit_id in closing
            ),
        ],
        "dangling_ids": list(dataset.dangling) if dataset is not None else [],
        "dataset_documents": dataset.document_count if dataset is not None else None,
        "unavailable_documents": dict(dataset.unavailable) if dataset is not None else {},
        "unavailable_document_count": dataset.unavailable_count if dataset is not None else 0,
        "cases_without_document": dataset.affected_count if dataset is not None else 0,
    }


def _knowledge_base_name(plan: BenchmarkPlan) -> str:
    if len(plan.units) == 1:
        return knowledge_base_name(plan.benchmark.name, plan.units[0].unit_id, plan.recipe_name)
    return plan.benchmark.name
