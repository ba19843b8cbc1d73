"""What the fault tests share: the world, how an undisturbed run ends, and the tally."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from fault_world import CASES, DISTRIBUTED, SERIAL, Ended, FaultWorld, Tally, comparable

TALLY = pytest.StashKey[list[dict[str, Any]]]()


@pytest.fixture
def tally(record_property: Any) -> Iterator[Tally]:
    """What this test did and found; the sums are shown at the end."""
    found = Tally()
    yield found
    record_property("faults", asdict(found))


@pytest.fixture
def fault_world(tmp_path: Path, tally: Tally) -> FaultWorld:
    """The world, undisturbed so far."""
    return FaultWorld(tmp_path, tally)


@pytest.fixture(params=[SERIAL, DISTRIBUTED], ids=["serial", "distributed"])
def workers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Arguments for a run in one process, and in three."""
    return request.param


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of a run in which nothing went wrong, by case."""
    world = FaultWorld(tmp_path_factory.mktemp("undisturbed"), Tally())
    ended = world.run()
    assert ended.code == 0, ended.text
    results = comparable(world.report())
    assert list(results) == CASES
    return results


@pytest.fixture
def check_resumed(fault_world: FaultWorld, undisturbed: dict[str, Any]) -> Any:
    """Return a function that resumes a run and checks that nothing was lost or asked twice."""

    def check(finished: set[str], *arguments: str) -> Ended:
        world = fault_world
        world.tally.finished += len(finished)
        ended = world.resume(*arguments)
        assert ended.code == 0, ended.text
        report = world.report()
        assert report["metadata"]["complete"] is True
        assert comparable(report) == undisturbed
        assert [gate["status"] for gate in report["gates"]] == ["passed"]
        asked = world.asked()
        assert asked.keys() == set(CASES)
        assert {name: asked[name] for name in finished if asked[name] != 1} == {}
        world.tally.recovered += sum(asked[name] == 1 for name in finished)
        return ended

    return check


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TALLY] = []
    config.pluginmanager.register(_TallyPlugin(config), "faults-tally")


class _TallyPlugin:
    """Adds up what all tests found, whichever process they ran in."""

    def __init__(self, config: pytest.Config) -> None:
        self._found = config.stash[TALLY]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self._found += [value for name, value in report.user_properties if name == "faults"]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._found:
            return
        sums: Counter[str] = Counter()
        for found in self._found:
            sums.update({key: value for key, value in found.items() if isinstance(value, int)})
        longest = max(found["longest_end_s"] for found in self._found)
        terminalreporter.section("faults")
        terminalreporter.write_line(
            f"{sums['injected']} faults injected; {sums['finished']} cases had finished,"
            f" {sums['recovered']} of them are in the report of the resumed run without being"
            f" asked again; {sums['hangs']} hangs; at most {longest:.1f} s from a kill to the end"
        )
        terminalreporter.write_line(
            f"{sums['damaged_files']} damaged files read, {sums['bad_answers']} bad answers of a"
            " server given"
        )
