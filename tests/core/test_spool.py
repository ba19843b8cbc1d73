"""What a process leaves on disk: what came back, and what it was doing."""

import json
import math
import os
import signal
import subprocess
import sys
import threading
from datetime import date
from pathlib import Path
from textwrap import dedent

import pytest

from pytest_heta.core._calls import evaluation_error
from pytest_heta.core.plan import Sample
from pytest_heta.core.query import QueryOutcome, as_response
from pytest_heta.core.records import HEAD
from pytest_heta.core.spool import (
    FIRST_THREAD_SLOT,
    LOOP_SLOT,
    MAIN_SLOT,
    SLOTS,
    FlightRecorder,
    Spool,
    add_suspects,
    executing,
    suspects,
)

SAMPLE = Sample("tiny", "fake", "all", "exact", "c1", 2)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "main.jsonl"


@pytest.fixture
def spool(path):
    spool = Spool(path)
    yield spool
    spool.close()


def lines_of(path):
    """Return the lines of a spool, parsed strictly."""

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    text = path.read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return [json.loads(line[HEAD:], parse_constant=refuse) for line in text.splitlines()]


def returned(**fields):
    """What came of a query that returned a response with these fields."""
    response = as_response({"results": [{"id": "r", **fields}]}, "exact")
    return QueryOutcome(response=response, latency_ms=1.5)


class TestLines:
    def test_a_response(self, spool, path):
        spool.add("tiny@fake", SAMPLE, returned(text="ö", score=0.5), cold=True)
        (line,) = lines_of(path)
        assert {name: line[name] for name in ("label", "sample", "cold", "latency_ms")} == {
            "label": "tiny@fake",
            "sample": ["tiny", "fake", "all", "exact", "c1", 2],
            "cold": True,
            "latency_ms": 1.5,
        }
        assert line["response"]["mode"] == "exact"
        assert line["response"]["results"][0]["text"] == "ö"
        assert "error" not in line

    def test_an_error(self, spool, path):
        error = KeyError("no such index")
        outcome = QueryOutcome(error=evaluation_error(error, "query"), exception=error)
        spool.add("tiny", SAMPLE, outcome, cold=False)
        (line,) = lines_of(path)
        assert line["error"]["error_type"] == "query"
        assert line["error"]["message"] == "KeyError: 'no such index'"
        assert line["latency_ms"] is None
        assert "response" not in line

    def test_the_whole_text_is_there(self, spool, path):
        text = "wörd " * 100_000
        spool.add("tiny", SAMPLE, returned(text=text), cold=False)
        (line,) = lines_of(path)
        assert line["response"]["results"][0]["text"] == text

    def test_also_beside_metadata_that_json_lacks(self, spool, path):
        text = "wörd " * 100_000
        metadata = {"day": date(2026, 1, 2), "odd": {1, 2}, "thing": object(), "bytes": b"\xff"}
        spool.add("tiny", SAMPLE, returned(text=text, metadata=metadata), cold=False)
        (line,) = lines_of(path)
        (result,) = line["response"]["results"]
        assert result["text"] == text
        assert result["metadata"]["day"] == "2026-01-02"

    def test_many_results_beside_metadata_that_json_lacks(self, spool, path):
        results = [{"id": str(n), "metadata": {"thing": object()}} for n in range(5_000)]
        response = as_response({"results": results}, "exact")
        spool.add("tiny", SAMPLE, QueryOutcome(response=response, latency_ms=1.0), cold=False)
        (line,) = lines_of(path)
        assert [result["id"] for result in line["response"]["results"]] == [
            str(n) for n in range(5_000)
        ]

    @pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
    def test_what_is_no_number_of_json_is_null(self, spool, path, number):
        spool.add("tiny", SAMPLE, returned(metadata={"number": number}), cold=False)
        spool.add("tiny", SAMPLE, returned(metadata={"number": number, "x": object()}), cold=False)
        assert [
            line["response"]["results"][0]["metadata"]["number"] for line in lines_of(path)
        ] == [None, None]

    def test_lone_surrogates_are_no_obstacle(self, spool, path):
        sample = SAMPLE._replace(case="c\ud800")
        spool.add(
            "tiny", sample, returned(text="t\ud800", metadata={"m\ud800": "\udfff"}), cold=True
        )
        (line,) = lines_of(path)
        assert line["response"]["results"][0]["text"] == "t\N{REPLACEMENT CHARACTER}"
        assert line["sample"][4].startswith("c")

    def test_metadata_that_contains_itself(self, spool, path):
        loop = {}
        loop["again"] = loop
        deep = []
        for _ in range(5_000):
            deep = [deep]
        for metadata in ({"loop": loop}, {"deep": deep}):
            spool.add("tiny", SAMPLE, returned(metadata=metadata), cold=False)
        assert len(lines_of(path)) == 2

    def test_line_ends_in_texts_end_no_line(self, spool, path):
        text = "a\nb\r\nc\u2028d\x85e"
        spool.add("tiny", SAMPLE, returned(text=text), cold=False)
        spool.add("tiny", SAMPLE, returned(text=text), cold=False)
        raw = path.read_bytes().split(b"\n")
        assert [json.loads(line[HEAD:])["response"]["results"][0]["text"] for line in raw[:-1]] == [
            text,
            text,
        ]


class TestFile:
    def test_it_is_made_with_the_first_line(self, spool, path):
        assert not path.exists()
        spool.add("tiny", SAMPLE, returned(), cold=False)
        assert len(lines_of(path)) == 1

    def test_a_line_is_there_as_soon_as_it_was_added(self, spool, path):
        for count in range(1, 4):
            spool.add("tiny", SAMPLE, returned(), cold=False)
            assert len(lines_of(path)) == count

    def test_it_is_appended_to(self, spool, path):
        spool.add("tiny", SAMPLE, returned(), cold=False)
        spool.close()
        again = Spool(path)
        again.add("tiny", SAMPLE, returned(), cold=False)
        again.close()
        assert len(lines_of(path)) == 2

    def test_it_may_be_closed_twice_and_unused(self, path):
        spool = Spool(path)
        spool.close()
        spool.close()
        assert not path.exists()

    def test_lines_come_whole_from_any_thread(self, spool, path, monkeypatch):
        write = os.write
        # As a file system does that takes a line in pieces.
        monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data[:5_000])))
        begin = threading.Barrier(8, timeout=30)

        def add(thread):
            begin.wait()
            for number in range(25):
                sample = SAMPLE._replace(case=f"{thread}-{number}")
                spool.add("tiny", sample, returned(text="x" * 20_000), cold=False)

        threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = [line["sample"][4] for line in lines_of(path)]
        assert sorted(found) == sorted(f"{t}-{n}" for t in range(8) for n in range(25))
        for thread in range(8):
            of_thread = [name for name in found if name.startswith(f"{thread}-")]
            assert of_thread == [f"{thread}-{n}" for n in range(25)]


class TestFlightRecorder:
    @pytest.fixture
    def flight(self, tmp_path):
        return tmp_path / "run" / "gw0.flight"

    def test_a_new_one_holds_nothing(self, flight):
        recorder = FlightRecorder(flight)
        assert flight.stat().st_size == 8 * SLOTS
        assert executing(flight) == ()
        recorder.close()
        recorder.close()

    def test_the_likeliest_killer_comes_first(self, flight):
        recorder = FlightRecorder(flight)
        slots = {LOOP_SLOT: 7, FIRST_THREAD_SLOT: 3, SLOTS - 1: 5, MAIN_SLOT: 1}
        for slot, number in slots.items():
            recorder.slots[slot] = number
        # Main, loop, and of the threads' the one that was begun last.
        assert executing(flight) == (0, 6, 4, 2)
        recorder.slots[LOOP_SLOT] = 0
        assert executing(flight) == (0, 4, 2)
        recorder.close()

    def test_a_new_process_begins_anew(self, flight):
        old = FlightRecorder(flight)
        old.slots[MAIN_SLOT] = 4
        old.close()
        assert executing(flight) == (3,)
        FlightRecorder(flight).close()
        assert executing(flight) == ()

    @pytest.mark.parametrize("content", [b"", b"\x01", b"\x01" + bytes(6), bytes(16), bytes(4_096)])
    def test_a_file_that_says_nothing(self, flight, content):
        flight.parent.mkdir()
        flight.write_bytes(content)
        assert executing(flight) == ()

    def test_a_file_that_is_not_there(self, flight, tmp_path):
        assert executing(flight) == ()
        assert executing(tmp_path) == ()

    def test_a_file_that_was_cut(self, flight):
        flight.parent.mkdir()
        flight.write_bytes((5).to_bytes(8, "little") + (9).to_bytes(8, "little") + b"\x07\0\0")
        assert executing(flight) == (4, 8)


DYING = """
import asyncio, os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import conftest as fakes
from pytest_heta.core._loop import LoopThread
from pytest_heta.core.plan import PlanSettings, plan_benchmark
from pytest_heta.core.prefetch import Prefetch
from pytest_heta.core.questions import Questions
from pytest_heta.core.score import Scorer
from pytest_heta.core.spool import FlightRecorder, Spool

folder = Path(sys.argv[2])

def die():
    DEATH

QUERY

class KnowledgeBase:
    query = staticmethod(query)

cases = [fakes.case(f"c{n}", f"q{n}", "d") for n in range(40)]
benchmark = fakes.FakeBenchmark([fakes.document("d")], cases, evaluators=())
loaded = fakes.load(benchmark, folder)
plan, evaluators = plan_benchmark(loaded, fakes.FakeRecipe(), PlanSettings())
samples = list(plan.samples())
questions = Questions(
    plan, loaded.cases, Scorer(evaluators, plan.metrics, top_k=plan.top_k), samples, set(),
    numbers=range(100, 140),
)
ahead = Prefetch(
    LoopThread(), KnowledgeBase(), questions, concurrency=CONCURRENCY,
    spool=Spool(folder / "gw0.jsonl"), recorder=FlightRecorder(folder / "gw0.flight"),
)
for index in range(40):
    ahead.take(index)
"""

ON_THE_LOOP = """
async def query(text):
    await asyncio.sleep(0)
    if text == "q5":
        die()
    if text == "q3":
        await asyncio.Event().wait()
    return {"results": []}
"""

IN_A_THREAD = """
import threading
both = threading.Barrier(2)

def query(text):
    if text in ("q4", "q5"):
        both.wait()
        if text == "q5":
            die()
        threading.Event().wait()
    return {"results": []}
"""

HERE = """
def query(text):
    if text == "q5":
        die()
    return {"results": []}
"""

DEATHS = {"exit": "os._exit(9)", "kill": "os.kill(os.getpid(), signal.SIGKILL)"}


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize(
    ("query", "concurrency", "guilty", "spooled"),
    [
        (ON_THE_LOOP, 3, (105,), {0, 1, 2}),
        (IN_A_THREAD, 2, (105, 104), {0, 1}),
        (HERE, 1, (105,), {0, 1, 2, 3, 4}),
    ],
    ids=["loop", "thread", "here"],
)
def test_a_dead_process_tells_whose_code_it_was_executing(
    tmp_path, death, query, concurrency, guilty, spooled
):
    source = dedent(DYING).replace("DEATH", DEATHS[death]).replace("QUERY", query)
    source = source.replace("CONCURRENCY", str(concurrency))
    command = [sys.executable, "-c", source, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == (9 if death == "exit" else -signal.SIGKILL), done.stderr
    assert executing(tmp_path / "gw0.flight") == guilty
    found = {line["sample"][4] for line in lines_of(tmp_path / "gw0.jsonl")}
    # Others may have been asked behind the one that died.
    assert {f"c{n}" for n in spooled} <= found
    assert "c5" not in found


class TestSuspects:
    def test_there_are_none_at_first(self, tmp_path):
        assert suspects(tmp_path / "spool") == frozenset()

    def test_all_that_were_listed_are_suspects(self, tmp_path):
        add_suspects(tmp_path / "spool", [12, 3])
        add_suspects(tmp_path / "spool", [40])
        assert suspects(tmp_path / "spool") == {3, 12, 40}

    def test_a_number_that_is_being_written_is_not_read(self, tmp_path):
        add_suspects(tmp_path, [12])
        (path,) = tmp_path.iterdir()
        path.write_text(path.read_text() + "34")
        assert suspects(tmp_path) == {12}
