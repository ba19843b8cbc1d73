"""What earlier sessions have finished is found again, and nothing else."""

import json
import os
import tracemalloc

import pytest

from pytest_heta.core.journal import ResultJournal
from pytest_heta.core.plan import Sample
from pytest_heta.core.query import QueryOutcome
from pytest_heta.core.recorded import RecordedRun
from pytest_heta.core.records import framed
from pytest_heta.core.result import encode_result
from pytest_heta.core.score import errored_score
from pytest_heta.core.spool import Spool
from pytest_heta.models import EvaluationError, QueryResponse, QueryResult


def sample(case="q1"):
    return Sample("tiny", "toy", "corpus", "exact", case, 0)


RESPONSE = QueryResponse(mode="exact", results=(QueryResult(id="d", text="naïve 🚲"),))


@pytest.fixture
def written(tmp_path):
    """Return a function that writes results into a session's journal."""

    def write(number, *payloads):
        folder = tmp_path / f"session-{number}"
        folder.mkdir(exist_ok=True)
        with ResultJournal(folder / "results.jsonl") as journal:
            for payload in payloads:
                journal.take(payload)
        return folder

    return write


@pytest.fixture
def payload(fakes):
    def make(case="q1", **changes):
        result = fakes.result(case, {"hit": 0.5}).model_copy(update=changes)
        return encode_result("tiny", sample(case), result)

    return make


def failed(message="boom"):
    return {
        "error": EvaluationError(message=message, error_type="query"),
        "response": None,
        "latency_ms": None,
    }


def test_a_result_without_error_is_finished(written, payload):
    recorded = RecordedRun([written(1, payload("q1"), payload("q2"))])
    assert recorded.result("tiny", sample("q1")) == payload("q1").encode()
    assert recorded.result("tiny", sample("q3")) is None
    assert recorded.result("other", sample("q1")) is None
    assert (len(recorded), recorded.damaged) == (2, 0)


def test_one_with_an_error_is_not(written, payload):
    recorded = RecordedRun([written(1, payload(**failed()))])
    assert recorded.result("tiny", sample()) is None
    assert [known.as_data() for known in recorded.attempts("tiny", sample())] == [
        {
            "session": 1,
            "error_type": "query",
            "message": "boom",
            "latency_ms": None,
            "reused": False,
        }
    ]


def test_nor_one_whose_score_was_lost(written, payload):
    lost = (errored_score("hit", "KeyError", "x"),)
    recorded = RecordedRun([written(1, payload(scores=lost))])
    assert recorded.result("tiny", sample()) is None


def test_the_last_session_counts(written, payload):
    first, second = written(1, payload(**failed())), written(2, payload())
    recorded = RecordedRun([first, second])
    assert recorded.result("tiny", sample()) == payload().encode()
    assert [known.session for known in recorded.attempts("tiny", sample())] == [1]


def test_a_response_without_a_result(tmp_path):
    spool = Spool(tmp_path / "spool" / "gw0.jsonl")
    outcome = QueryOutcome(response=RESPONSE, latency_ms=3.5, attempts=3)
    spool.add("tiny", sample(), outcome, cold=True)
    error = EvaluationError(message="boom", error_type="query")
    spool.add("tiny", sample("q2"), QueryOutcome(error=error), cold=False)
    spool.close()
    recorded = RecordedRun([tmp_path])
    assert recorded.response("tiny", sample()) == (RESPONSE, 3.5, True, 3)
    assert recorded.response("tiny", sample("q2")) is None
    assert recorded.result("tiny", sample()) is None


def test_a_query_that_failed_later_has_no_response(tmp_path):
    error = EvaluationError(message="boom", error_type="query", metadata={"response": [1]})
    for name, outcome in [
        ("gw0", QueryOutcome(response=RESPONSE, latency_ms=3.5)),
        ("gw1", QueryOutcome(error=error)),
    ]:
        spool = Spool(tmp_path / "spool" / f"{name}.jsonl")
        spool.add("tiny", sample(), outcome, cold=True)
        spool.close()
    recorded = RecordedRun([tmp_path])
    assert recorded.response("tiny", sample()) is None
    assert not recorded.is_known("tiny", sample())
    assert recorded.damaged == 0


def test_a_response_that_is_none_any_more_is_asked_for_again(tmp_path):
    head = {"label": "tiny", "sample": sample(), "cold": False, "latency_ms": 1.0}
    (tmp_path / "spool").mkdir()
    record = json.dumps({**head, "response": {"results": 7}}, separators=(",", ":"))
    (tmp_path / "spool" / "main.jsonl").write_bytes(framed(record.encode()))
    recorded = RecordedRun([tmp_path])
    assert recorded.is_known("tiny", sample())
    assert recorded.response("tiny", sample()) is None
    assert not recorded.is_known("tiny", sample())


def test_long_responses_are_not_held(tmp_path):
    long = QueryResponse(mode="exact", results=(QueryResult(id="d", text="x" * 20_000),))
    spool = Spool(tmp_path / "spool" / "main.jsonl")
    for number in range(500):
        spool.add("tiny", sample(f"q{number}"), QueryOutcome(response=long), cold=False)
    spool.close()
    assert (tmp_path / "spool" / "main.jsonl").stat().st_size > 10_000_000
    tracemalloc.start()
    recorded = RecordedRun([tmp_path])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(recorded) == 500
    assert peak < 1_000_000
    assert recorded.response("tiny", sample("q77")).response == long


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everybody may read")
def test_a_file_that_nobody_may_read_is_damage(written, payload):
    path = written(1, payload()) / "results.jsonl"
    path.chmod(0)
    assert RecordedRun([path.parent]).damaged == 1


def test_a_folder_in_place_of_a_file_is_damage(tmp_path):
    (tmp_path / "results.jsonl").mkdir()
    assert RecordedRun([tmp_path]).damaged == 1


def test_earlier_attempts_add_up(written, payload):
    lost = (errored_score("hit", "KeyError", "x"),)
    again = {**failed("boom"), "metadata": {"attempts": 4}}
    sessions = [written(1, payload(**failed())), written(2, payload(**again))]
    sessions += [written(3, payload(scores=lost, metadata={"attempts": 5}))]
    attempts = RecordedRun(sessions).attempts("tiny", sample())
    assert [(one.session, one.error_type, one.tries) for one in attempts] == [
        (1, "query", 1),
        (2, "query", 4),
        (3, "scoring", 5),
    ]
    assert attempts[2].message == "hit: KeyError: x"


def test_nothing_was_written(tmp_path):
    (tmp_path / "results.jsonl").touch()
    assert len(RecordedRun([tmp_path, tmp_path / "gone"])) == 0


def test_every_cut_of_a_journal_leaves_what_is_whole(written, payload, tmp_path):
    path = written(1, payload("q1"), payload("q2")) / "results.jsonl"
    content = path.read_bytes()
    first = content.index(b"\n") + 1
    for end in range(len(content)):
        path.write_bytes(content[:end])
        whole = (end >= first - 1) + (end >= len(content) - 1)
        assert len(RecordedRun([path.parent])) == whole, end


def test_every_flipped_byte_costs_one_result_at_most(written, payload):
    path = written(1, payload("q1"), payload("q2"), payload("q3")) / "results.jsonl"
    content = path.read_bytes()
    known = {case: payload(case).encode() for case in ("q1", "q2", "q3")}
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x41
        path.write_bytes(bytes(damaged))
        recorded = RecordedRun([path.parent])
        kept = {case: recorded.result("tiny", sample(case)) for case in known}
        assert sum(value is None for value in kept.values()) <= 1, place
        assert all(value in {None, known[case]} for case, value in kept.items())


def test_a_record_of_something_else_is_counted_as_damaged(written, payload, tmp_path):
    path = written(1, payload("q1")) / "results.jsonl"
    odd = [b"{}", b"[]", b'{"label":1,"result":{}}', json.dumps("x").encode()]
    path.write_bytes(path.read_bytes() + b"".join(map(framed, odd)))
    recorded = RecordedRun([path.parent])
    assert (len(recorded), recorded.damaged) == (1, 4)
