"""``--heta-warmup``: queries before the measured ones."""

import pytest


@pytest.fixture(autouse=True)
def recorded(world):
    world.record_queries()


def texts_asked(world, mode):
    return [text for text, asked_mode, *_ in world.asked() if asked_mode == mode]


def cold_cases(world):
    return [
        (result["query_mode"], result["case_id"])
        for result in world.report()["case_results"]
        if result["metadata"]["cold"]
    ]


def test_nothing_is_warmed_up_by_default_and_the_first_case_is_cold(world):
    world.run().assert_outcomes(passed=6)
    assert len(world.asked()) == 6
    assert cold_cases(world) == [("overlap", "pie"), ("backwards", "pie")]
    summary = world.report()["mode_summaries"]["overlap"]
    assert (summary["cold_latency"]["n"], summary["warm_latency"]["n"]) == (1, 2)


def test_each_mode_is_warmed_up_before_its_first_case(world):
    world.run("--heta-warmup=2").assert_outcomes(passed=6)
    for mode in ("overlap", "backwards"):
        assert texts_asked(world, mode) == [
            "apple pie", "bike repair",  # warm-up
            "apple pie", "bike repair", "rain cloud",
        ]  # fmt: skip


def test_warm_up_queries_are_not_recorded(world):
    world.run("--heta-warmup=2").assert_outcomes(passed=6)
    report = world.report()
    assert len(report["case_results"]) == 6
    assert cold_cases(world) == []
    summary = report["mode_summaries"]["overlap"]
    assert summary["total_cases"] == summary["latency"]["n"] == 3
    assert (summary["cold_latency"]["n"], summary["warm_latency"]["n"]) == (0, 3)
    assert report["config_snapshot"]["warmup"] == 2


def test_more_queries_than_there_are_cases_repeat_them(world):
    world.run("--heta-warmup=4", "--heta-limit=3", "--heta-mode=overlap").assert_outcomes(passed=3)
    assert len(texts_asked(world, "overlap")) == 4 + 3


def test_a_warm_up_query_that_fails_does_not_fail_a_case(world):
    world.extend_recipe("""
    class KnowledgeBase(KnowledgeBase):
        asked = 0

        def query(self, text, *, mode, top_k):
            self.asked += 1
            if self.asked == 1:
                raise RuntimeError("not yet")
            return super().query(text, mode=mode, top_k=top_k)
    """)
    world.run("--heta-warmup=1", "--heta-mode=overlap").assert_outcomes(passed=3)
    assert world.report()["mode_summaries"]["overlap"]["failed_cases"] == 0


def test_the_ini_key_warms_up_and_the_command_line_wins(world):
    world.ini("heta_warmup = 1")
    world.run("--heta-mode=overlap")
    assert len(world.asked()) == 4
    world.run("--heta-mode=overlap", "--heta-warmup=0")
    assert len(world.asked()) == 4 + 3


@pytest.mark.parametrize("value", ["-1", "yes"])
def test_a_wrong_number_is_refused(world, value):
    assert world.usage_error(f"--heta-warmup={value}") == (
        f"--heta-warmup: {value!r} is not a whole number of at least 0"
    )
