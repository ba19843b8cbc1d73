"""The scheduler of distributed runs, with workers that only write down what they are sent."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.core.plan import Sample
from pytest_heta.plugin.scheduler import UnitScheduling


class Worker:
    """Stands for pytest-xdist's controller of a worker."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}", spec=f"popen//{number}")
        self.sent: list[list[int]] = []
        self.queue: list[int] = []
        self.shutting_down = False

    def __repr__(self) -> str:
        return self.gateway.id

    def send_runtest_some(self, indices) -> None:
        assert not self.shutting_down
        self.sent.append(list(indices))
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def can_run(self) -> bool:
        """A worker runs a test when it knows the next one, or that there is none."""
        return len(self.queue) > 1 or (self.shutting_down and bool(self.queue))


class Config:
    """What the scheduler needs of pytest's config."""

    def __init__(self, workers: int) -> None:
        self.reports: list[pytest.CollectReport] = []
        self.hook = SimpleNamespace(pytest_collectreport=self.add)
        self._workers = workers

    def add(self, report: pytest.CollectReport) -> None:
        self.reports.append(report)

    def getvalue(self, name):
        assert name == "tx"
        return [f"{self._workers}*popen"]

    def getoption(self, name):
        return self.getvalue(name)


class Run:
    """A distributed run of units with so many tests, and of ordinary tests."""

    def __init__(self, units: dict[str, int], tests: int = 0, workers: int = 2) -> None:
        self.collection = [f"u::{unit}[{n}]" for unit, count in units.items() for n in range(count)]
        selected = {
            node_id: ("bench", Sample("bench", "toy", node_id[3:].partition("[")[0], "m", node_id))
            for node_id in self.collection
        }
        self.collection += [f"test_{number}" for number in range(tests)]
        self.config = Config(workers)
        self.logged: list[str] = []
        self.set_up: dict[Worker, str] = {}
        self.given_up: list[str] = []
        self.ran: list[tuple[str, str]] = []
        self.crashed: list[str] = []
        self.scheduler = UnitScheduling(
            self.config,
            lambda *words: self.logged.append(" ".join(map(str, words))),
            selected=selected,
            set_up=self.set_up,
            give_up=lambda node, node_ids: self.given_up.extend(node_ids),
        )
        self.workers: list[Worker] = []
        for _ in range(workers):
            self.start()

    def start(self) -> Worker:
        """Start a worker, which collects."""
        worker = Worker(len(self.workers))
        self.workers.append(worker)
        self.scheduler.add_node(worker)
        self.scheduler.add_node_collection(worker, self.collection)
        if self.scheduler.collection_is_completed:
            self.scheduler.schedule()
        return worker

    def step(self, worker: Worker, killers: frozenset[str] = frozenset(), builders=frozenset()):
        """Let a worker run its next test; a killer ends it."""
        node_id = self.collection[worker.queue[0]]
        if node_id not in builders:
            self.set_up[worker] = node_id
        if node_id in killers:
            worker.queue.clear()
            assert self.scheduler.remove_node(worker) == node_id
            self.crashed.append(node_id)
            self.start()
            return
        index = worker.queue.pop(0)
        self.ran.append((worker.gateway.id, node_id))
        self.scheduler.mark_test_complete(worker, index)

    def finish(self, choose=lambda ready: ready[0], **deaths) -> None:
        """Let workers run, in some order, until none can."""
        while ready := [worker for worker in self.workers if worker.can_run]:
            self.step(choose(ready), **deaths)

    def sent(self) -> list[list[list[str]]]:
        return [
            [[self.collection[index] for index in chunk] for chunk in worker.sent]
            for worker in self.workers
        ]

    def names(self) -> list[str]:
        return [node_id for _, node_id in self.ran]


def unit(name: str, count: int) -> list[str]:
    return [f"u::{name}[{number}]" for number in range(count)]


def test_units_are_handed_out_whole_and_the_largest_first():
    run = Run({"a": 2, "b": 5, "c": 3})
    assert run.sent() == [[unit("b", 5)], [unit("c", 3)]]
    run.finish()
    assert sorted(run.names()) == sorted(run.collection)
    assert run.sent()[1][1:] == [unit("a", 2)] or run.sent()[0][1:] == [unit("a", 2)]
    assert run.scheduler.tests_finished
    assert not run.scheduler.has_pending


def test_a_worker_with_nothing_to_do_ends():
    run = Run({"a": 3})
    assert run.sent() == [[unit("a", 3)], []]
    assert [worker.shutting_down for worker in run.workers] == [False, True]


def test_worker_is_fed_while_it_still_has_a_test():
    run = Run({"a": 2, "b": 1, "c": 1}, workers=1)
    (worker,) = run.workers
    assert run.sent() == [[unit("a", 2)]]
    run.step(worker)
    assert run.sent() == [[unit("a", 2), unit("b", 1)]]
    run.step(worker)
    assert run.sent() == [[unit("a", 2), unit("b", 1), unit("c", 1)]]


def test_units_of_one_test_are_handed_out_by_twos():
    run = Run({"a": 1, "b": 1, "c": 1})
    assert run.sent() == [[unit("a", 1), unit("b", 1)], [unit("c", 1)]]


def test_ordinary_tests_follow_in_shares():
    run = Run({"a": 2}, tests=40)
    run.finish(choose=lambda ready: min(ready, key=lambda worker: len(worker.sent)))
    counts = [sum(map(len, chunks)) for chunks in run.sent()]
    assert sum(counts) == 42
    assert min(counts) >= 15
    assert all(len(chunk) <= 5 for chunks in run.sent() for chunk in chunks)


def test_no_tests_at_all():
    run = Run({})
    assert all(worker.shutting_down for worker in run.workers)
    assert run.scheduler.tests_finished


def test_nothing_is_handed_out_before_all_have_collected():
    run = Run({"a": 2}, workers=1)
    scheduler = UnitScheduling(
        Config(2), lambda *_: None, selected={}, set_up={}, give_up=lambda *_: None
    )
    worker = Worker(0)
    scheduler.add_node(worker)
    scheduler.add_node_collection(worker, run.collection)
    assert not scheduler.collection_is_completed
    assert not scheduler.tests_finished
    assert scheduler.nodes == [worker]
    assert worker.sent == []


def test_rest_of_a_dead_workers_unit_goes_to_another():
    run = Run({"a": 4, "b": 4})
    run.finish(killers={"u::a[1]"})
    assert run.crashed == ["u::a[1]"]
    assert sorted(run.names()) == sorted(set(run.collection) - {"u::a[1]"})
    assert {worker for worker, node_id in run.ran if node_id in {"u::a[2]", "u::a[3]"}} != {"gw0"}
    assert run.given_up == []


def test_units_that_a_dead_worker_had_not_begun_stay_apart():
    run = Run({"a": 2, "b": 2, "c": 1, "d": 1}, workers=1)
    worker = run.workers[0]
    run.step(worker)
    assert run.sent()[0] == [unit("a", 2), unit("b", 2)]
    run.step(worker, killers={"u::a[1]"})
    # What was prefetched comes first again, by itself.
    assert run.sent()[1] == [unit("b", 2)]


def test_worker_that_dies_without_a_test_leaves_nothing():
    run = Run({"a": 3})
    assert run.scheduler.remove_node(run.workers[1]) is None


def test_second_worker_that_dies_of_a_build_ends_the_unit():
    run = Run({"a": 5, "b": 2})
    dies = frozenset(unit("a", 5))
    run.finish(killers=dies, builders=dies)
    assert run.crashed == ["u::a[0]", "u::a[1]"]
    assert run.given_up == ["u::a[2]", "u::a[3]", "u::a[4]"]
    assert sorted(run.names()) == unit("b", 2)
    assert run.scheduler.tests_finished


def test_workers_that_die_of_queries_do_not_end_the_unit():
    run = Run({"a": 6})
    run.finish(killers=frozenset({"u::a[0]", "u::a[1]", "u::a[3]"}))
    assert run.given_up == []
    assert run.names() == ["u::a[2]", "u::a[4]", "u::a[5]"]


def test_dying_ordinary_tests_cost_one_test_each():
    run = Run({}, tests=6, workers=1)
    run.finish(killers=frozenset({"test_1", "test_2"}), builders=frozenset({"test_1", "test_2"}))
    assert run.names() == ["test_0", "test_3", "test_4", "test_5"]
    assert run.given_up == []


def test_test_may_be_run_again():
    run = Run({"a": 2}, workers=1)
    run.scheduler.mark_test_pending("u::a[1]")
    run.finish()
    assert run.names() == ["u::a[0]", "u::a[1]", "u::a[1]"]


def test_crashed_test_that_is_run_again_comes_with_the_rest_of_its_unit():
    run = Run({"a": 4, "b": 2}, workers=1)
    (worker,) = run.workers
    run.step(worker)
    worker.queue.clear()
    assert run.scheduler.remove_node(worker) == "u::a[1]"
    run.scheduler.mark_test_pending("u::a[1]")
    run.start()
    run.finish()
    assert run.names() == [*unit("a", 4), *unit("b", 2)]


def test_others_find_the_config():
    run = Run({"a": 1})
    assert run.scheduler.config is run.config


def test_nothing_is_ever_stolen():
    run = Run({"a": 2}, workers=1)
    with pytest.raises(NotImplementedError):
        run.scheduler.remove_pending_tests_from_node(run.workers[0], [0])


def test_different_collections_are_reported_and_nothing_runs():
    run = Run({"a": 2}, workers=1)
    config = Config(2)
    logged = []
    scheduler = UnitScheduling(
        config, logged.append, selected={}, set_up={}, give_up=lambda *_: None
    )
    workers = [Worker(0), Worker(1)]
    for worker, collection in zip(workers, [run.collection, run.collection[::-1]], strict=True):
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, collection)
    scheduler.schedule()
    (report,) = config.reports
    assert report.outcome == "failed"
    assert "Different tests were collected between gw0 and gw1" in str(report.longrepr)
    assert [worker.sent for worker in workers] == [[], []]
    assert scheduler.tests_finished
    assert any("aborting" in line for line in logged)


def test_late_worker_with_other_tests_is_sent_home():
    run = Run({"a": 6}, workers=1)
    late = Worker(7)
    run.scheduler.add_node(late)
    run.scheduler.add_node_collection(late, ["something else"])
    run.scheduler.schedule()
    assert late.shutting_down
    assert late.sent == []
    assert any("Different tests were collected" in line for line in run.logged)


@given(
    counts=st.lists(st.integers(1, 6), max_size=6),
    tests=st.integers(0, 12),
    workers=st.integers(1, 4),
    data=st.data(),
)
def test_every_test_is_run_once_whatever_dies_when(counts, tests, workers, data):
    run = Run({f"unit{n}": count for n, count in enumerate(counts)}, tests, workers)
    killers = data.draw(st.frozensets(st.sampled_from(run.collection or [""]), max_size=5))
    builders = data.draw(st.frozensets(st.sampled_from(sorted(killers) or [""])))
    run.finish(
        choose=lambda ready: data.draw(st.sampled_from(ready)),
        killers=killers - {""},
        builders=builders - {""},
    )
    assert run.scheduler.tests_finished
    assert not run.scheduler.has_pending
    done = [*run.names(), *run.crashed, *run.given_up]
    assert sorted(done) == sorted(run.collection)
    assert set(run.crashed) <= killers
    if not builders:
        assert run.given_up == []
        assert set(run.crashed) == killers & set(run.collection)
    if not killers:
        for name in {node_id.partition("[")[0] for node_id in run.collection if "::" in node_id}:
            who = {worker for worker, node_id in run.ran if node_id.startswith(f"{name}[")}
            assert len(who) == 1
