"""The record of a sample about which nothing is out of the ordinary, in a third of the time.

Most samples of most runs are answered, scored by measures alone, and need
nothing cut or mended in what a report keeps of the response. Their payload is
put together here from texts that are there already. It says exactly what
`case_result` and `encode_result` say; whatever is different goes their way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import repeat
from json.encoder import encode_basestring_ascii as quoted
from sys import intern
from typing import Final, NamedTuple

from pydantic_core import to_json

from pytest_heta.core._plain import is_plain_text, is_small_and_plain
from pytest_heta.core.plan import BenchmarkPlan, CasePlan, Sample
from pytest_heta.core.query import QueryOutcome
from pytest_heta.core.result import SNIPPET, ResponseLevel, is_kept_whole
from pytest_heta.core.score import Scorer
from pytest_heta.errors import HetaError
from pytest_heta.evaluators import document_ids, grades
from pytest_heta.evaluators.judgments import reaches
from pytest_heta.measures import MeasureSet
from pytest_heta.models import BenchmarkCase, QueryResponse, SampleTally, ScoreTally

__all__ = ["FastRecords", "Record"]

_LIMITS: Final = {"ids": 0, "short": SNIPPET, "full": None}
_WORDS: Final = {None: "null", True: "true", False: "false"}


class Record(NamedTuple):
    """What came of one sample.

    Attributes:
        payload: The text that travels to the controller; see `encode_result`.
        tally: The sample as aggregates count it.
        missed: Whether a score did not pass.
    """

    payload: str
    tally: SampleTally
    missed: bool


class FastRecords:
    """Makes the records of one plan's ordinary samples.

    Args:
        plan: The plan.
        scorer: Its scorer.
        level: How much of each response is kept.
    """

    def __init__(self, plan: BenchmarkPlan, scorer: Scorer, level: ResponseLevel) -> None:
        self._plan = plan
        self._limit = _LIMITS[level]
        self._keeps_answers = level != "ids"
        self._measures = scorer.only_measures
        self._set = MeasureSet(evaluator.measure for evaluator in self._measures)
        self._thresholds = tuple(evaluator.threshold for evaluator in self._measures)
        self._names = tuple(intern(evaluator.name) for evaluator in self._measures)
        self._quoted = tuple(quoted(name) for name in self._names)
        self._label = quoted(plan.label)
        self._constant = ",".join(map(quoted, (plan.benchmark.name, plan.recipe_name)))

    def record(
        self,
        sample: Sample,
        case: BenchmarkCase,
        outcome: QueryOutcome,
        response_json: bytes | None,
        *,
        cold: bool,
        node_id: str,
        is_document: Callable[[str], bool] | None,
    ) -> Record | None:
        """Return the record of a sample, None if it is out of the ordinary.

        Args:
            sample: The sample.
            case: Its case.
            outcome: What came of its query.
            response_json: The whole response as JSON, if it is there.
            cold: Whether it was the first of its unit and mode in the process.
            node_id: Node id of the item.
            is_document: Whether the benchmark has a document of some id.
        """
        response, planned = outcome.response, self._plan.cases[sample.case]
        if (
            not self._measures
            or response is None
            or response_json is None
            or outcome.attempts > 1
            or planned.exempt
            or not _is_kept_whole(planned.labels)
            or not self._is_kept_whole(response)
            or not all(map(is_plain_text, (planned.query, *sample[2:5], node_id)))
        ):
            return None
        try:
            judged = grades(case)
        except HetaError:
            return None
        if max(judged.values(), default=0.0) <= 0:
            return None
        documents = document_ids(response)
        values = self._set.compute(documents, judged)
        passed = tuple(map(reaches, values, self._thresholds))
        foreign = bool(documents and is_document and not any(map(is_document, documents)))
        latency = outcome.latency_ms
        tally = SampleTally(
            sample.mode,
            sample.case,
            failed=False,
            latency_ms=latency,
            cold=cold,
            distinct=len(documents),
            returned=len(response.results),
            foreign=foreign,
            warnings=(),
            scores=tuple(map(ScoreTally, self._names, values, passed)),
        )
        payload = self._payload(sample, planned, node_id, tally, response_json)
        return Record(payload, tally, False in passed)

    def _is_kept_whole(self, response: QueryResponse) -> bool:
        """Whether a report keeps a response as it is."""
        fields, limit = response.__dict__, self._limit
        answer = fields["answer"]
        return (
            not fields["metadata"]
            and not fields["citations"]
            and not fields["trace"]
            and is_plain_text(fields["mode"])
            and (
                answer is None
                or (self._keeps_answers and is_plain_text(answer, limit and 10 * limit))
            )
            and all(map(is_kept_whole, fields["results"], repeat(limit)))
        )

    def _payload(
        self,
        sample: Sample,
        planned: CasePlan,
        node_id: str,
        tally: SampleTally,
        response_json: bytes,
    ) -> str:
        """Return what `encode_result` returns."""
        case_id, mode, unit = quoted(sample.case), quoted(sample.mode), quoted(sample.unit)
        cold, latency = _WORDS[tally.cold], _number(tally.latency_ms)
        foreign = ',"foreign_results":true' if tally.foreign else ""
        labels = to_json(planned.labels).decode() if planned.labels else "{}"
        scores = [
            (name, _number(score.value), _WORDS[score.passed])
            for name, score in zip(self._quoted, tally.scores, strict=True)
        ]
        counted = ",".join([f"[{name},{value},{passed}]" for name, value, passed in scores])
        written = ",".join(
            [
                f'{{"name":{name},"value":{value},"passed":{passed},"metadata":{{}}}}'
                for name, value, passed in scores
            ]
        )
        return (
            f'{{"label":{self._label}'
            f',"sample":[{self._constant},{unit},{mode},{case_id},{sample.repeat}]'
            f',"tally":{{"failed":false,"latency_ms":{latency},"cold":{cold}'
            f',"distinct":{tally.distinct},"returned":{tally.returned}'
            f',"foreign":{_WORDS[tally.foreign]},"warnings":[],"scores":[{counted}]}}'
            f',"result":{{"case_id":{case_id},"query":{quoted(planned.query)},"query_mode":{mode}'
            f',"scores":[{written}],"response":{response_json.decode()}'
            f',"latency_ms":{latency},"error":null,"metadata":{{"unit_id":{unit}'
            f',"repeat":{sample.repeat},"cold":{cold},"labels":{labels}'
            f',"distinct_documents":{tally.distinct}{foreign},"node_id":{quoted(node_id)}}}}}}}'
        )


def _is_kept_whole(labels: Mapping[str, object]) -> bool:
    return not labels or (type(labels) is dict and is_small_and_plain(labels))


def _number(value: float | bool | str | None) -> str:  # noqa: FBT001 - a score, not a switch
    return "null" if value is None else repr(value)
