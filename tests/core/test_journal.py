"""The journal: results on disk, tallies in memory."""

import json
import pickle
import random
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_heta.core.aggregate import build_report, summarise_mode, summarise_tallies
from pytest_heta.core.journal import ResultJournal
from pytest_heta.core.plan import MetricSpec, Sample
from pytest_heta.core.query import QueryOutcome
from pytest_heta.core.records import HEAD
from pytest_heta.core.result import case_result, encode_result, failed_result
from pytest_heta.core.score import errored_score, exempt_score, failed_score
from pytest_heta.models import (
    EvaluationCaseResult,
    EvaluationError,
    EvaluationReport,
    EvaluationScore,
    PagedResults,
    QueryResponse,
    QueryResult,
    SampleTally,
)

START = datetime(2026, 1, 2, tzinfo=UTC)


def sample(case="q1", mode="exact"):
    return Sample("tiny", "fake", "all", mode, case)


@pytest.fixture
def journal(tmp_path):
    with ResultJournal(tmp_path / "results.jsonl") as opened:
        yield opened


@pytest.fixture
def put(journal, fakes):
    def run(case, value=0.5, label="tiny", **fields):
        result = fakes.result(case, {"hit": value}, **fields)
        journal.take(encode_result(label, sample(case), result))
        return result

    return run


class TestTaking:
    def test_a_result_is_found_by_plan_and_sample(self, journal, put):
        result = put("q1")
        other = put("q1", 0.25, label="other")
        assert journal.result("tiny", sample()) == result
        assert journal.result("other", sample()) == other
        assert json.loads(journal.raw("tiny", sample())) == result.model_dump(mode="json")

    def test_what_was_taken_is_told(self, journal, fakes):
        payload = encode_result("tiny@fake", sample("问题"), fakes.result("问题"))
        assert journal.take(payload) == ("tiny@fake", sample("问题"))
        assert journal.result("tiny@fake", sample("问题")).case_id == "问题"

    def test_a_second_result_takes_the_place_of_the_first(self, journal, put):
        put("q1", 0.25)
        put("q2", 0.5)
        last = put("q1", 0.75)
        assert [result.case_id for result in journal.results("tiny")] == ["q1", "q2"]
        assert journal.result("tiny", sample()) == last
        assert journal.tallies("tiny")[sample()].scores[0].value == 0.75

    def test_results_can_be_read_while_others_come_in(self, journal, put):
        first = put("q1")
        assert journal.result("tiny", sample("q1")) == first
        second = put("q2", 0.75)
        assert journal.result("tiny", sample("q1")) == first
        assert journal.result("tiny", sample("q2")) == second

    def test_every_line_of_the_file_is_a_payload(self, journal, put, tmp_path):
        for number in range(3):
            put(f"q{number}", node_id="a\nb")
        journal.close()
        lines = (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line[HEAD:])["sample"][4] for line in lines] == ["q0", "q1", "q2"]
        assert list(json.loads(lines[0][HEAD:])) == ["label", "sample", "tally", "result"]

    def test_there_is_no_file_before_there_is_a_result(self, journal, put, tmp_path):
        assert journal.results("tiny") == ()
        assert list(tmp_path.iterdir()) == []
        put("q1")
        assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]

    def test_a_file_that_is_there_is_left_alone(self, journal, put, tmp_path):
        (tmp_path / "results.jsonl").write_text("mine", encoding="utf-8")
        with pytest.raises(FileExistsError):
            put("q1")

    def test_what_is_no_payload_is_refused(self, journal):
        with pytest.raises(ValueError, match="not the payload of a result"):
            journal.take('{"label":"tiny"}')

    def test_a_metric_may_be_named_like_a_part_of_the_payload(self, journal, fakes):
        names = ["result", ',"result":', "label"]
        result = fakes.result("q1", dict.fromkeys(names, 0.5))
        journal.take(encode_result("tiny", sample(), result))
        assert journal.result("tiny", sample()) == result
        assert [score.name for score in journal.tallies("tiny")[sample()].scores] == names

    def test_an_unknown_sample_has_no_result(self, journal, put):
        put("q1")
        for label, case in (("tiny", "q2"), ("other", "q1")):
            with pytest.raises(KeyError):
                journal.raw(label, sample(case))

    def test_a_closed_journal_says_so(self, journal, put):
        put("q1")
        results = journal.results("tiny")
        journal.close()
        journal.close()
        assert len(results) == 1
        with pytest.raises(OSError, match=r"results\.jsonl is closed"):
            list(results)


@contextmanager
def largest_file(size):
    """Let the system refuse to write beyond a size, as it does on a full disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def full(monkeypatch):
    """Let the journal be the device that is always full."""
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    real = Path.open
    monkeypatch.setattr(
        Path, "open", lambda self, *_, **__: real(Path("/dev/full"), "r+b", buffering=0)
    )


class TestFullDisk:
    def test_what_cannot_be_written_is_read_from_memory(self, journal, put, tmp_path):
        path = tmp_path / "results.jsonl"
        made = [put("q0")]
        size = path.stat().st_size
        assert journal.problem is None
        # The third line is cut in two.
        with largest_file(2 * size + size // 2):
            made += [put(f"q{number}", number / 8) for number in range(1, 6)]
        made.append(put("q6"))
        assert path.stat().st_size == 2 * size + size // 2
        assert journal.problem == "OSError: [Errno 27] File too large"
        assert journal.results("tiny") == made
        raw = [json.loads(journal.raw("tiny", sample(result.case_id))) for result in made]
        assert raw == [result.model_dump(mode="json") for result in made]
        tallies = journal.tallies("tiny").values()
        assert list(tallies) == list(map(SampleTally.of, made))

    def test_a_line_may_be_cut_anywhere(self, fakes, tmp_path):
        result = fakes.result("q1", {"hit": 0.5})
        payload = encode_result("tiny", sample(), result)
        for limit in range(0, len(payload) + 1, 7):
            with (
                ResultJournal(tmp_path / f"{limit}.jsonl") as journal,
                largest_file(limit),
            ):
                journal.take(payload)
                assert journal.problem == "OSError: [Errno 27] File too large"
                assert journal.results("tiny") == (result,)

    def test_the_device_that_is_always_full(self, journal, put, full):
        made = [put("q0"), put("q1", 0.25)]
        assert journal.problem == "OSError: [Errno 28] No space left on device"
        assert journal.results("tiny") == made

    def test_a_file_that_cannot_be_made(self, tmp_path, fakes):
        with ResultJournal(tmp_path / "gone" / "results.jsonl") as journal:
            result = fakes.result("q1", {"hit": 0.5})
            journal.take(encode_result("tiny", sample(), result))
            assert journal.problem.startswith("FileNotFoundError: ")
            assert journal.results("tiny") == (result,)

    def test_an_interrupt_while_writing_loses_nothing(self, journal, put, tmp_path):
        made = [put("q0")]
        appended = journal._lines
        file = appended._file

        class Interrupted:
            seek, read, close, fileno = file.seek, file.read, file.close, file.fileno

            def write(self, data):
                file.write(data)
                raise KeyboardInterrupt

        appended._file = Interrupted()
        with pytest.raises(KeyboardInterrupt):
            put("q1")
        appended._file = file
        made += [put("q1"), put("q2", 0.25)]
        assert journal.results("tiny") == made
        journal.close()
        lines = (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line[HEAD:])["sample"][4] for line in lines] == ["q0", "q1", "q1", "q2"]


class TestPages:
    def test_they_are_a_sequence_in_the_order_asked_for(self, journal, put):
        made = {case: put(case) for case in ("q3", "q1", "q2")}
        asked = [sample(case) for case in ("q1", "q2", "unknown", "q3")]
        pages = journal.results("tiny", asked)
        expected = (made["q1"], made["q2"], made["q3"])
        assert pages == expected
        assert expected == pages
        assert pages == list(expected)
        assert tuple(pages) == expected
        assert (len(pages), pages[0], pages[-1], pages[1:]) == (
            3,
            expected[0],
            expected[-1],
            expected[1:],
        )
        assert made["q2"] in pages
        with pytest.raises(IndexError):
            pages[3]
        assert list(journal.results("tiny")) == list(made.values())

    def test_others_are_different(self, journal, put, fakes):
        pages = (put("q1"), journal.results("tiny"))[1]
        assert pages != ()
        assert pages != (fakes.result("q2"),)
        assert pages != "q1"

    def test_they_are_as_they_were_when_they_were_asked_for(self, journal, put):
        first = put("q1", 0.25)
        pages = journal.results("tiny")
        put("q1", 0.75)
        put("q2")
        assert pages == (first,)

    def test_a_copy_is_a_tuple_of_all(self, journal, put):
        expected = (put("q1"), put("q2"))
        assert pickle.loads(pickle.dumps(journal.results("tiny"))) == expected

    def test_they_are_shown_by_their_number(self, journal, put):
        put("q1")
        assert repr(journal.results("tiny")) == "<PagedResults of 1 samples>"

    def test_a_report_takes_them_as_they_are(self, journal, put, fakes, tmp_path):
        expected = (put("q1"), put("q2", "label"))
        plan = fakes.plan(tmp_path, "q1", "q2", metrics=[MetricSpec("hit")])
        pages = journal.results("tiny", plan.samples())
        fields = {
            "unit_builds": (),
            "started_at": START,
            "finished_at": START,
            "snapshot": {},
            "metadata": {},
        }
        report = build_report(plan, pages, **fields)
        assert report.case_results is pages
        kept = build_report(plan, dict(zip(plan.samples(), expected, strict=True)), **fields)
        assert report == kept.model_copy(update={"report_id": report.report_id})
        read = EvaluationReport.model_validate_json(report.model_dump_json())
        assert read == report
        assert type(read.case_results) is tuple


# --- aggregates -----------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8"), max_size=5)
values = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3),
    st.booleans(),
    texts,
    st.none(),
    st.just(float("nan")),
)
verdicts = st.none() | st.booleans()
scores = st.one_of(
    st.builds(EvaluationScore, name=st.just("hit"), value=values, passed=verdicts),
    st.builds(errored_score, st.just("hit"), texts, texts),
    st.builds(exempt_score, st.just("hit"), st.sampled_from(["skipped", "unjudged", "depth"])),
    st.just(failed_score("hit", None)),
    st.builds(
        EvaluationScore,
        name=st.just("hit"),
        value=values,
        metadata=st.sampled_from(
            [{"error": "lost"}, {"skipped": True}, {"unjudged": True, "reason": "x"}, {"a": 1}]
        ),
    ),
)


@st.composite
def case_results(draw):
    error = draw(st.none() | st.just(EvaluationError(message="no", error_type="query")))
    response = QueryResponse(
        mode="m",
        results=[QueryResult(id=str(number)) for number in range(draw(st.integers(0, 6)))],
        metadata=draw(st.sampled_from([{}, {"warnings": ["odd", 3]}, {"warnings": "odd"}])),
    )
    metadata = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "cold": st.booleans(),
                "replayed": st.booleans(),
                "distinct_documents": st.integers(0, 6),
                "foreign_results": st.booleans(),
            },
        )
    )
    extra = EvaluationScore(name="extra", value=draw(st.floats(0, 1)))
    return EvaluationCaseResult(
        case_id=f"q{draw(st.integers(0, 5))}",
        query="?",
        query_mode=draw(st.sampled_from(["exact", "other"])),
        scores=[*draw(st.lists(scores, max_size=1)), *draw(st.lists(st.just(extra), max_size=1))],
        response=None if error else draw(st.none() | st.just(response)),
        latency_ms=draw(st.none() | st.floats(0, 1e6)),
        error=error,
        metadata=metadata,
    )


METRICS = st.sampled_from(
    [MetricSpec("hit", k=5), MetricSpec("hit"), MetricSpec("hit", "lower", None, k=3)]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(results=st.lists(case_results(), max_size=12), metric=METRICS, shuffler=st.randoms())
def test_summaries_of_tallies_are_those_of_results(
    fakes, tmp_path_factory, results, metric, shuffler
):
    plan = fakes.plan(".", "q0", "q1", "q2", metrics=[metric])
    with ResultJournal(tmp_path_factory.mktemp("journal") / "results.jsonl") as journal:
        for number, result in enumerate(results):
            key = Sample("tiny", "fake", "all", result.query_mode, result.case_id, number)
            journal.take(encode_result("tiny", key, result))
        pages = journal.results("tiny")
        tallies = list(pages.tallies)
        assert tallies == list(map(SampleTally.of, pages))
        shuffler.shuffle(tallies)
        for mode in ("exact", "other"):
            # Exactly: the numbers of a run do not depend on the way they came.
            expected = summarise_mode(plan, mode, results)
            assert summarise_tallies(plan, mode, tallies) == expected
            assert summarise_mode(plan, mode, pages) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_never_one(fakes, tmp_path, journal, value):
    plan = fakes.plan(tmp_path, "q1", metrics=[MetricSpec("hit")])
    result = fakes.result("q1", {"hit": value})
    journal.take(encode_result("tiny", sample(), result))
    for tallies in ([SampleTally.of(result)], journal.results("tiny").tallies):
        hit = summarise_tallies(plan, "exact", tallies).metrics["hit"]
        assert (hit.mean, hit.n_scored, hit.reasons) == (0.0, 0, {"no_value": 1})


def test_what_all_samples_have_is_in_memory_once(journal, put):
    put("q1")
    put("q2")
    (one, first), (two, second) = journal.tallies("tiny").items()
    assert first.scores[0].name is second.scores[0].name
    for field in ("benchmark", "recipe", "unit", "mode"):
        assert getattr(one, field) is getattr(two, field)
    assert first.mode is one.mode
    assert first.case_id is one.case


class Unprintable:
    def __str__(self):
        raise ZeroDivisionError

    __repr__ = __str__


NASTY = [
    pytest.param({"results": [{"id": "a", "score": float("nan")}]}, id="nan"),
    pytest.param({"results": [{"id": "a\ud800", "text": "\udfff" * 300}]}, id="surrogates"),
    pytest.param({"results": [{"id": "a", "source": {"\ud800": {1, "b"}}}]}, id="sets"),
    pytest.param({"results": [], "metadata": {"x": Unprintable(), "y": {3: 1e400}}}, id="objects"),
    pytest.param({"results": [{"id": "a", "source": {"n": 10**500}}]}, id="huge"),
    pytest.param({"results": [{"id": "a", "metadata": {"document_ids": (1, b"2")}}]}, id="bytes"),
    pytest.param({"results": [], "answer": "\x00 \u2028 \ud83d\ude00"}, id="controls"),
]


class TestNastyResponses:
    @pytest.mark.parametrize("level", ["ids", "short", "full"])
    @pytest.mark.parametrize("answer", NASTY)
    def test_they_travel_and_read_back(self, journal, fakes, tmp_path, answer, level):
        response = QueryResponse.model_validate({"mode": "exact", **answer})
        plan = fakes.plan(tmp_path, "q1")
        result = case_result(
            sample(), plan.cases["q1"], QueryOutcome(response=response, latency_ms=1.0), (),
            level=level,
        )  # fmt: skip
        payload = encode_result("tiny", sample(), result)
        payload.encode()
        assert "\n" not in payload
        journal.take(payload)
        assert journal.result("tiny", sample()) == result
        assert journal.tallies("tiny")[sample()] == SampleTally.of(result)

    def test_no_response_travels_too(self, journal, fakes, tmp_path):
        plan = fakes.plan(tmp_path, "q1")
        failed = failed_result(plan, sample(), EvaluationError(message="no", error_type="build"))
        journal.take(encode_result("tiny", sample(), failed))
        assert journal.results("tiny") == (failed,)

    def test_an_id_that_cannot_be_encoded_stays_the_samples_identity(self, journal, fakes):
        odd = sample("q\ud800")
        journal.take(encode_result("tiny", odd, fakes.result("q\ud800", {"hit": 0.5})))
        assert list(journal.tallies("tiny")) == [odd]
        # In the record, as in a report file, it is an escape that everybody can read.
        assert journal.result("tiny", odd).case_id == "q\\ud800"

    @pytest.mark.parametrize(
        "value", [float("nan"), float("inf"), object(), {1, 2}, "\ud800"], ids=range(5)
    )
    def test_whatever_a_record_holds_can_be_written(self, journal, fakes, value):
        result = fakes.result("q1", {"hit": 0.5}, latency=1.0, odd=value)
        journal.take(encode_result("tiny", sample(), result))
        assert journal.result("tiny", sample()).scores == result.scores


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_numbers_arrive_to_the_last_bit(fakes, tmp_path_factory, numbers):
    result = fakes.result("q1", {f"m{i}": number for i, number in enumerate(numbers)})
    with ResultJournal(tmp_path_factory.mktemp("journal") / "results.jsonl") as journal:
        journal.take(encode_result("tiny", sample(), result))
        (tally,) = journal.tallies("tiny").values()
        assert [score.value.hex() for score in tally.scores] == [n.hex() for n in numbers]
        assert journal.results("tiny") == (result,)


def test_order_of_arrival_does_not_matter(fakes, tmp_path):
    names = [f"q{number}" for number in range(20)]
    plan = fakes.plan(tmp_path, *names, metrics=[MetricSpec("hit")])
    with ResultJournal(tmp_path / "results.jsonl") as journal:
        arriving = list(plan.samples())
        random.Random(5).shuffle(arriving)
        for key in arriving:
            journal.take(encode_result("tiny", key, fakes.result(key.case, {"hit": 1.0})))
        pages = journal.results("tiny", plan.samples())
        assert isinstance(pages, PagedResults)
        assert [result.case_id for result in pages] == names
