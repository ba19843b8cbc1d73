"""The JUnit file: scores by case, aggregates by suite, gates as cases, and always XML."""

import xml.etree.ElementTree as ET
from textwrap import dedent

import pytest

from pytest_heta.plugin._phases import add_junit_property, forget_in_junit, junit_file

HARMFUL = "nul \x00 esc \x1b[31m fffe \ufffe lone \ud800 <b>&\"' 中 🚲"


def junit(world, *args, name="junit.xml"):
    """Return the root of the JUnit file of a run; the parser refuses what is no XML."""
    world.run(f"--junitxml={name}", *args)
    return ET.parse(world.path / name).getroot().find("testsuite")


def properties_of(element):
    return {p.get("name"): p.get("value") for p in element.iterfind("properties/property")}


def case(suite, name):
    (found,) = suite.iterfind(f"testcase[@name={name!r}]")
    return found


def test_cases_are_named_by_benchmark_unit_mode_and_id(world):
    suite = junit(world)
    assert [(c.get("classname"), c.get("name")) for c in suite.iterfind("testcase")] == [
        ("bench_toys.toys.corpus", f"{mode}[{case_id}]")
        for mode in ("overlap", "backwards")
        for case_id in ("pie", "repair", "rain")
    ]


def test_a_case_has_its_scores_and_its_latency(world):
    suite = junit(world, "--heta-mode=backwards")
    pie = case(suite, "backwards[pie]")
    properties = properties_of(pie)
    assert list(properties) == ["recall@1", "ndcg@10", "latency_ms"]
    assert properties["recall@1"] == "0.0"
    assert float(properties["ndcg@10"]) == pytest.approx(0.43067655807339306, abs=1e-12)
    latency = world.report()["case_results"][0]["latency_ms"]
    assert float(properties["latency_ms"]) == pytest.approx(latency, abs=0.001)


def test_the_time_of_a_case_is_the_latency_of_its_query(world):
    world.extend_recipe("""
    import time

    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            time.sleep(0.02)
            return super().query(text, mode=mode, top_k=top_k)
    """)
    world.suite(
        before="""
        import time

        class Slow:
            name = "slow"

            async def evaluate(self, *, case, response):
                time.sleep(0.3)
                return 1.0
        """,
        evaluators="[Slow()]",
    )
    pie = case(
        junit(world, "--heta-mode=overlap", "-o", "junit_duration_report=call"), "overlap[pie]"
    )
    latency = world.report()["case_results"][0]["latency_ms"]
    assert float(pie.get("time")) == pytest.approx(latency / 1000, abs=0.002)


def test_the_suite_has_the_aggregates(world):
    properties = properties_of(junit(world, "--heta-gate=overlap.recall@1 >= 0.5"))
    expected = {
        "toys.overlap.recall@1": "1.0",
        "toys.overlap.recall@1.n": "3",
        "toys.overlap.recall@1.n_scored": "3",
        "toys.overlap.recall@1.n_errored": "0",
        "toys.overlap.recall@1.n_skipped": "0",
        "toys.overlap.recall@1.n_unjudged": "0",
        "toys.overlap.total_cases": "3",
        "toys.overlap.failed_cases": "0",
        "toys.overlap.failure_rate": "0.0",
        "toys.overlap.scoring_errors": "0",
        "toys.overlap.n_latency": "3",
        "toys.backwards.recall@1": "0.0",
        "toys.gate[toys:overlap.recall@1 >= 0.5]": "PASSED toys: overlap.recall@1 = 1 >= 0.5 (n=3)",
    }
    assert {name: properties.get(name) for name in expected} == expected
    assert float(properties["toys.overlap.p95_latency_ms"]) > 0


def test_the_suite_has_the_same_aggregates_with_two_workers(world):
    def values(*args):
        properties = properties_of(junit(world, "--heta-gate=overlap.recall@1 >= 0.5", *args))
        return {name: value for name, value in properties.items() if "latency" not in name}

    serial = values()
    assert len(serial) > 20
    assert values("-n2") == serial


def test_a_failed_query_is_a_failure_with_its_message(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            raise RuntimeError("down")
    """)
    pie = case(junit(world, "--heta-mode=overlap"), "overlap[pie]")
    assert "RuntimeError: down" in pie.find("failure").get("message")
    assert properties_of(pie)["error_type"] == "query"
    assert properties_of(pie)["recall@1.reason"].startswith("[sample-failed] ")


def test_a_failed_build_is_an_error_with_its_message(world):
    world.extend_recipe("""
    class Recipe(Recipe):
        def create(self, **given):
            raise OSError("disk full")

    recipe = Recipe()
    """)
    suite = junit(world, "--heta-mode=overlap")
    assert suite.get("errors") == "3"
    assert "disk full" in case(suite, "overlap[pie]").find("error").text


def test_gates_are_cases(world):
    suite = junit(
        world,
        "--heta-mode=overlap",
        "--heta-gate=overlap.recall@1 >= 0.5",
        "--heta-gate=overlap.ndcg@10 < 0.5",
    )
    assert (suite.get("tests"), suite.get("failures")) == ("5", "1")
    passed, failed = (case(suite, f"gate[overlap.{m}]") for m in ("recall@1 >=", "ndcg@10 <"))
    assert passed.get("classname") == failed.get("classname") == "bench_toys.toys"
    assert passed.find("failure") is None
    assert failed.find("failure").get("message") == (
        "[gate-failed] toys: overlap.ndcg@10 = 1 >= 0.5 (n=3)"
    )


def test_a_skipped_gate_is_a_skipped_case_with_a_reason(world):
    suite = junit(world, "-k", "pie", "--heta-gate=overlap.recall@1 >= 0.5")
    skipped = case(suite, "gate[overlap.recall@1 >=]").find("skipped")
    assert skipped.get("message") == "toys: overlap.recall@1 >= 0.5 (n=1): 1 of 3 samples ran"


def test_gates_and_errors_are_cases_with_two_workers_too(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            raise RuntimeError("down")
    """)
    suite = junit(
        world,
        "-n2",
        "--heta-mode=overlap",
        "--heta-fail-on=gate",
        "--heta-gate=overlap.recall@1 >= 0.5",
    )
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("5", "2", "3")
    assert "3 of 3 samples failed" in case(suite, "errors[overlap]").find("failure").get("message")


def test_harmful_characters_leave_the_file_xml(world, harmful_cases):
    world.extend_recipe(f"""
    class KnowledgeBase(KnowledgeBase):
        def query(self, text, *, mode, top_k):
            if mode == "backwards":
                raise RuntimeError({HARMFUL!a})
            return super().query(text, mode=mode, top_k=top_k)
    """)
    world.suite(
        before=harmful_cases
        + dedent(f"""
        class Odd:
            def __init__(self, number, result):
                self.name = str(number) + {HARMFUL!a}
                self.result = result

            async def evaluate(self, *, case, response):
                if isinstance(self.result, Exception):
                    raise self.result
                return self.result

        odd = [
            Odd(1, 1.0),
            Odd(2, {HARMFUL!a}),
            Odd(3, {{"value": None, "metadata": {{"skipped": True, "reason": {HARMFUL!a}}}}}),
            Odd(4, ValueError({HARMFUL!a})),
        ]
        """),
        evaluators="odd",
    )
    suite = junit(world)
    assert (suite.get("tests"), suite.get("failures")) == ("6", "6")
    (first, *_) = suite.iterfind("testcase")
    (one, two, three, four, _) = properties_of(first).items()
    assert one[0].startswith("1nul \\x00 esc \\x1b[31m fffe \\ufffe lone \\ud800 <b>&\"' 中 🚲")
    assert two[1].startswith("nul \\x00 esc")
    assert three[0].endswith(".reason")
    assert three[1].startswith("nul \\x00 esc")
    assert four[1].startswith("[evaluator-failed] bench_toys.py:25: ValueError: ")
    # The same file parses as JSON, too.
    assert len(world.report()["case_results"]) == 6
    # And the same from a worker, whose reports cross a process boundary.
    assert junit(world, "-n1").get("failures") == "6"


def test_a_session_without_a_benchmark_has_no_properties(world):
    world.pytester.makepyfile(test_plain="def test_plain(): pass")
    assert properties_of(junit(world, "test_plain.py")) == {}


class TestFile:
    @pytest.fixture
    def config(self, pytester):
        config = pytester.parseconfig("--junitxml=junit.xml", "-pno:randomly")
        config._do_configure()
        yield config
        config._ensure_unconfigure()

    def test_it_is_found(self, config):
        add_junit_property(config, "suite", "toys")
        assert junit_file(config).global_properties == [("suite", "toys")]

    def test_there_may_be_none(self, pytester):
        config = pytester.parseconfig("-pno:randomly")
        assert junit_file(config) is None
        add_junit_property(config, "suite", "toys")
        forget_in_junit(config, "a.py::a", object())

    def test_a_pytest_that_keeps_it_elsewhere(self, config, monkeypatch):
        xml = junit_file(config)
        with monkeypatch.context() as without:
            without.delattr("_pytest.junitxml.xml_key")
            assert junit_file(config) is None
            add_junit_property(config, "suite", "toys")
            forget_in_junit(config, "a.py::a", object())
        assert xml.global_properties == []
