"""A recipe asks a server that answers as servers do on bad days."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest
from fault_world import CASES

ASKING = """
import urllib.error, urllib.request

class KnowledgeBase(KnowledgeBase):
    def query(self, text, *, mode, top_k, options=None):
        note("asked", text)
        address = (pathlib.Path(__file__).parent / "address").read_text()
        with urllib.request.urlopen(f"{address}/{text}") as answer:
            found = json.loads(answer.read())
        note("answered", text)
        for result in found["results"]:
            keys = [key for key, known in self.texts.items() if known == result["text"]]
            result["source"] = {"source_key": keys[0]}
        return found

class Recipe(Recipe):
    def create(self, *, name, objects, source_keys, workspace):
        return KnowledgeBase({key: objects.get(key).decode("utf-8") for key in source_keys})

recipe = Recipe()
"""

BAD = {
    "a0": ("limited", "HTTP Error 429"),
    "a2": ("broken", "HTTP Error 500"),
    "a3": ("half", "IncompleteRead"),
    "a5": ("garbage", "JSONDecodeError"),
    "b0": ("odd", "response-invalid"),
    "b2": ("closed", "RemoteDisconnected"),
    "b3": ("slow", "timeout"),
    "b5": ("drip", "timeout"),
}
"""What the server does for which cases, and what the error is called."""


class Server(ThreadingHTTPServer):
    """Answers what is asked, and behaves badly for some while it is told to."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.is_bad = True
        self.bad_answers = 0
        self.over = threading.Event()


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments): ...

    def do_GET(self):
        name = unquote(self.path[1:])
        if self.server.is_bad and name in BAD:
            self.server.bad_answers += 1
            getattr(self, BAD[name][0])(self.content(name))
        else:
            self.answer(self.content(name))

    def content(self, name):
        result = {"id": f"{name}#0", "text": f"word {name}", "score": 1.0}
        return json.dumps({"results": [result]}).encode()

    def answer(self, content, *, status=200, length=None, **headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        self.wfile.write(content)

    def limited(self, content):
        self.answer(b"slow down", status=429, Retry_After="1")

    def broken(self, content):
        self.answer(b"<h1>Internal Server Error</h1>", status=500)

    def half(self, content):
        self.answer(content[: len(content) // 2], length=len(content))

    def garbage(self, content):
        self.answer(b"<html>" + content)

    def odd(self, content):
        self.answer(content.replace(b'"score": 1.0', b'"score": "high"'))

    def closed(self, content):
        self.close_connection = True

    def slow(self, content):
        self.server.over.wait()

    def drip(self, content):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"{")
        self.server.over.wait()


@pytest.fixture
def server(fault_world):
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (fault_world.path / "address").write_text(f"http://127.0.0.1:{server.server_port}")
        fault_world.extend_recipe("import pathlib\n" + ASKING)
        yield server
        server.over.set()
        server.shutdown()


def errors(report):
    """Return what the error of each case that has one is called."""
    return {
        result["case_id"]: f"{result['error']['error_type']}: {result['error']['message']}"
        for result in report["case_results"]
        if result["error"]
    }


def test_each_bad_answer_costs_its_case(fault_world, server, workers, tally):
    ended = fault_world.run(*workers, "--heta-timeout=2", fault={})
    assert ended.code == pytest.ExitCode.TESTS_FAILED
    report = fault_world.report()
    found = errors(report)
    assert found.keys() == BAD.keys()
    for name, (_, told) in BAD.items():
        assert told in found[name]
    assert [result["case_id"] for result in report["case_results"]] == CASES
    right = [result for result in report["case_results"] if not result["error"]]
    assert {score["value"] for result in right for score in result["scores"]} == {1.0}
    assert report["metadata"]["complete"] is True
    assert [gate["status"] for gate in report["gates"]] == ["failed"]
    tally.bad_answers += server.bad_answers
    server.is_bad = False
    finished = fault_world.answered() - BAD.keys()
    assert len(finished) == len(CASES) - len(BAD)
    again = fault_world.resume("--heta-timeout=30")
    assert again.code == 0
    assert errors(fault_world.report()) == {}
    asked = fault_world.asked()
    assert {asked[name] for name in finished} == {1}
    tally.finished += len(finished)
    tally.recovered += sum(asked[name] == 1 for name in finished)


def test_a_server_that_is_gone(fault_world, server, tally):
    server.shutdown()
    server.server_close()
    ended = fault_world.run(fault={})
    assert ended.code == pytest.ExitCode.TESTS_FAILED
    found = errors(fault_world.report())
    assert list(found) == CASES
    assert all("Connection refused" in text for text in found.values())
    tally.bad_answers += len(found)
