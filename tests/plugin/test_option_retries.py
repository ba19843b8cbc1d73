"""``--heta-retries`` and ``--heta-rate``: a service that is asked too much, or answers badly."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from pytest_heta.api import run
from pytest_heta.benchmarks.jsonl import JsonlBenchmark
from pytest_heta.errors import ConfigurationError

ASKING = """
import asyncio
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

class Asking(KnowledgeBase):
    def query(self, text, *, mode, top_k, options=None):
        try:
            with urlopen(f"http://127.0.0.1:{PORT}/?q={quote(text)}", timeout=20) as answer:
                json.load(answer)
        except HTTPError as error:
            error.close()
            raise
        return super().query(text, mode=mode, top_k=top_k)
"""
ASYNCHRONOUS = """
class Blocking(Asking):
    pass

class Asking(KnowledgeBase):
    async def query(self, text, *, mode, top_k, options=None):
        blocking = Blocking(self.texts)
        return await asyncio.to_thread(blocking.query, text, mode=mode, top_k=top_k)
"""
RECIPE = """
class Recipe(Recipe):
    def create(self, **arguments):
        return Asking(super().create(**arguments).texts)

recipe = Recipe()
"""


class Service:
    """A search service on a port of its own.

    Attributes:
        refusals: Answers that a query gets before it gets a good one: status and headers.
        always: What every query gets, None if it may succeed.
        asked: Queries in the order in which they came, with the time in seconds.
    """

    def __init__(self) -> None:
        self.refusals: dict[str, list[tuple[int, dict[str, str]]]] = {}
        self.always: tuple[int, dict[str, str]] | None = None
        self.asked: list[tuple[str, float]] = []
        lock = threading.Lock()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = parse_qs(urlsplit(self.path).query)["q"][0]
                with lock:
                    service.asked.append((text, time.monotonic()))
                    coming = service.refusals.get(text)
                    status, headers = service.always or (coming.pop(0) if coming else (200, {}))
                body = json.dumps({"ok": True}).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port

    def count(self, text: str) -> int:
        return sum(asked == text for asked, _ in self.asked)


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    thread = threading.Thread(target=service.server.serve_forever, daemon=True)
    thread.start()
    yield service
    service.server.shutdown()
    service.server.server_close()
    thread.join()


@pytest.fixture(params=["ordinary", "asynchronous"])
def asking(request, world, service):
    """A world whose knowledge base asks the service."""
    source = f"PORT = {service.port}\n" + ASKING
    if request.param == "asynchronous":
        source += ASYNCHRONOUS
    world.extend_recipe(source + RECIPE)
    return world


ordinary = pytest.mark.parametrize("asking", ["ordinary"], indirect=True)
# Each way in which queries are asked, once.
in_every_way = pytest.mark.parametrize(
    ("asking", "arguments"),
    [
        ("ordinary", ()),
        ("ordinary", ("--heta-timeout=30",)),
        ("asynchronous", ("-n2", "-pxdist")),
        ("asynchronous", ("--heta-concurrency=3",)),
    ],
    indirect=["asking"],
)


def results_of(world):
    return {result["case_id"]: result for result in world.report()["case_results"]}


@in_every_way
def test_a_query_that_is_refused_twice_is_asked_a_third_time(asking, service, arguments):
    service.refusals["bike repair"] = [(429, {"Retry-After": "0"})] * 2
    result = asking.run("--heta-mode=overlap", *arguments)
    assert result.ret == pytest.ExitCode.OK
    results = results_of(asking)
    assert [results[case]["error"] for case in ("pie", "repair", "rain")] == [None] * 3
    assert results["repair"]["metadata"]["attempts"] == 3
    assert "attempts" not in results["pie"]["metadata"]
    assert service.count("bike repair") == 3
    result.stdout.fnmatch_lines(["*asked again: 5 attempts for 3 samples*"])


def test_it_is_asked_again_no_sooner_than_the_service_says(asking, service):
    service.refusals["bike repair"] = [(429, {"Retry-After": "2"})]
    asking.run("--heta-mode=overlap")
    first, second = [when for text, when in service.asked if text == "bike repair"]
    assert second - first >= 2.0
    # What it waited is no time of the query.
    assert results_of(asking)["repair"]["latency_ms"] < 2000


@in_every_way
def test_who_is_always_refused_says_so_and_the_tries_are_bounded(asking, service, arguments):
    service.always = (429, {"Retry-After": "0"})
    result = asking.run("--heta-mode=overlap", "--heta-retries=1", *arguments)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    results = results_of(asking)
    assert {result["error"]["error_type"] for result in results.values()} == {"rate_limited"}
    assert {result["error"]["retryable"] for result in results.values()} == {True}
    assert [result["metadata"]["attempts"] for result in results.values()] == [2, 2, 2]
    assert [result["error"]["metadata"]["attempts"] for result in results.values()] == [2, 2, 2]
    assert len(service.asked) == 6
    result.stdout.fnmatch_lines(["*429*"])


def test_no_retries(asking, service):
    service.refusals["bike repair"] = [(503, {})]
    asking.run("--heta-mode=overlap", "--heta-retries=0")
    assert results_of(asking)["repair"]["error"]["error_type"] == "query"
    assert len(service.asked) == 3


def test_what_cannot_pass_is_asked_once(asking, service):
    service.refusals["bike repair"] = [(404, {})]
    asking.run("--heta-mode=overlap")
    error = results_of(asking)["repair"]["error"]
    assert (error["error_type"], error["retryable"]) == ("query", False)
    assert service.count("bike repair") == 1


@ordinary
def test_warm_up_is_asked_again_too(asking, service):
    service.refusals["apple pie"] = [(500, {})]
    asking.run("--heta-mode=overlap", "--heta-warmup=1")
    assert service.count("apple pie") == 3
    assert "attempts" not in results_of(asking)["pie"]["metadata"]


@ordinary
def test_what_was_asked_again_is_so_in_a_resumed_run(asking, service):
    service.refusals["apple pie"] = [(500, {})]
    service.refusals["rain cloud"] = [(404, {})]
    asking.run("--heta-mode=overlap", cache=True)
    asking.run("--heta-mode=overlap", "--heta-resume", cache=True)
    results = results_of(asking)
    assert results["pie"]["metadata"]["attempts"] == 2
    assert results["pie"]["metadata"]["reused"] is True
    assert results["rain"]["error"] is None


@pytest.mark.parametrize(
    ("arguments", "least_s"),
    # Six queries begin in no less than five intervals. Of two workers each has half of the
    # rate, and one of them gets the whole run unit.
    [((), 0.5), (("-n2", "-pxdist"), 1.0)],
)
def test_the_rate_holds_for_all_workers_together(asking, service, arguments, least_s):
    asking.run("--heta-rate=10/s", "--heta-concurrency=3", *arguments)
    times = sorted(when for _, when in service.asked)
    assert len(times) == 6
    assert times[-1] - times[0] >= least_s - 0.05  # for the clock's grain


@pytest.mark.parametrize("value", ["0/s", "fast", "10/day", "-1"])
def test_a_rate_is_a_positive_number_per_time(world, value):
    result = world.run(f"--heta-rate={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--heta-rate: '{value}' is not a rate such as 10/s*"])


@pytest.mark.parametrize("value", ["-1", "often", "1.5"])
def test_retries_are_a_whole_number(world, value):
    result = world.run(f"--heta-retries={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--heta-retries: '{value}' is not a whole number of at least 0"])


@ordinary
@pytest.mark.parametrize("retries", [0, 2])
def test_a_run_from_python(asking, service, retries):
    service.refusals["bike repair"] = [(429, {"Retry-After": "0"})] * 2
    report = run(
        JsonlBenchmark(asking.path / "toys", name="toys"),
        f"{asking.path / 'recipe.py'}:recipe",
        modes=["overlap"],
        retries=retries,
        rate="1000/s",
    )
    errors = {result.case_id: result.error for result in report.case_results}
    assert (errors["repair"] is None) is (retries == 2)


def test_a_rate_from_python_is_checked(world):
    with pytest.raises(ConfigurationError, match="rate = 'fast' is not a rate"):
        run(JsonlBenchmark(world.path / "toys", name="toys"), "local", rate="fast")


JUDGE = """
class TooManyRequests(Exception):
    status_code = 429

class Judge:
    name = "judge"
    refusals = {refusals}

    {keyword} evaluate(self, *, case, response):
        if case.case_id == "repair" and self.refusals:
            self.refusals -= 1
            raise TooManyRequests("slower, please")
        return 1.0
"""


@pytest.mark.parametrize("keyword", ["def", "async def"])
@pytest.mark.parametrize("arguments", [(), ("--heta-timeout=30",)])
def test_an_evaluator_is_asked_again_too(world, keyword, arguments):
    world.suite(evaluators="[Judge()]", before=JUDGE.format(keyword=keyword, refusals=1))
    result = world.run("--heta-mode=overlap", *arguments)
    assert result.ret == pytest.ExitCode.OK
    scores = {case: found["scores"][0] for case, found in results_of(world).items()}
    assert [score["value"] for score in scores.values()] == [1.0, 1.0, 1.0]
    assert scores["repair"]["metadata"] == {"attempts": 2}


@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_an_evaluator_that_is_always_refused_loses_its_score(world, keyword):
    world.suite(evaluators="[Judge()]", before=JUDGE.format(keyword=keyword, refusals=99))
    result = world.run("--heta-mode=overlap", "--heta-retries=1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    score = results_of(world)["repair"]["scores"][0]
    assert score["value"] is None
    assert score["metadata"]["error"]["type"] == "rate_limited"
    assert score["metadata"]["attempts"] == 2
