"""The scheduler of distributed runs, with workers that only write down what they are sent."""

from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_heta.plugin._work import Progress, UnitsOfTests
from pytest_heta.plugin.scheduler import UnitScheduling


class Worker:
    """Stands for pytest-xdist's controller of a worker."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}", spec=f"popen//{number}")
        self.sent: list[list[int]] = []
        self.queue: list[int] = []
        self.shutting_down = False
        self.is_dead = False

    def __repr__(self) -> str:
        return self.gateway.id

    def send_runtest_some(self, indices) -> None:
        assert not self.shutting_down
        if self.is_dead:
            raise OSError("cannot send (already closed?)")
        self.sent.append(list(indices))
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def can_run(self) -> bool:
        """A worker runs a test when it knows the next one, or that there is none."""
        if self.is_dead:
            return False
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


class Watch:
    """What the controller knows of its workers."""

    def __init__(self, units: UnitsOfTests | None = None) -> None:
        self.known_units = units or UnitsOfTests()
        self.reached: dict[Worker, Progress] = {}
        self.flights: dict[Worker, list[int]] = {}
        self.suspects: list[int] = []
        self.given_up: list[str] = []
        self.forgotten: list[tuple[Worker, str]] = []
        self.restarts = 1000

    def units(self) -> UnitsOfTests:
        return self.known_units

    def progress(self, node) -> Progress | None:
        return self.reached.get(node)

    def executing(self, node) -> list[int]:
        return self.flights.get(node, [])

    def suspect(self, indices) -> None:
        self.suspects.extend(indices)

    def forget(self, node, node_id) -> None:
        self.forgotten.append((node, node_id))

    def restarts_left(self) -> int:
        return self.restarts - 1

    def give_up(self, node, node_ids) -> None:
        self.given_up.extend(node_ids)


class Run:
    """A distributed run of units with so many tests, and of ordinary tests."""

    def __init__(
        self, units: dict[str, int], tests: int = 0, workers: int = 2, splittable=()
    ) -> None:
        self.collection = [f"u::{unit}[{n}]" for unit, count in units.items() for n in range(count)]
        stretches, position = [], 0
        for name, count in units.items():
            stretches.append((("bench", name), position, count))
            position += count
        self.collection += [f"test_{number}" for number in range(tests)]
        self.config = Config(workers)
        self.logged: list[str] = []
        self.watch = Watch(UnitsOfTests(stretches, {("bench", name) for name in splittable}))
        self.ran: list[tuple[str, str]] = []
        self.crashed: list[str] = []
        self.scheduler = UnitScheduling(
            self.config,
            lambda *words: self.logged.append(" ".join(map(str, words))),
            self.watch,
        )
        self.workers: list[Worker] = []
        for _ in range(workers):
            self.start()

    @property
    def given_up(self) -> list[str]:
        return self.watch.given_up

    def start(self) -> Worker:
        """Start a worker, which collects."""
        worker = Worker(len(self.workers))
        self.workers.append(worker)
        self.scheduler.add_node(worker)
        self.scheduler.add_node_collection(worker, self.collection)
        if self.scheduler.collection_is_completed:
            self.scheduler.schedule()
        return worker

    def step(
        self,
        worker: Worker,
        killers: frozenset[str] = frozenset(),
        builders=frozenset(),
        meanwhile=lambda queue: [],
    ):
        """Let a worker run its next test; a killer ends it, and others run ``meanwhile``."""
        node_id = self.collection[worker.queue[0]]
        if node_id not in builders:
            self.watch.reached[worker] = Progress(node_id, has_result=False)
        if node_id in killers:
            self._kill(worker, node_id, [] if node_id in builders else meanwhile(worker.queue))
            return
        index = worker.queue.pop(0)
        self.ran.append((worker.gateway.id, node_id))
        self.scheduler.mark_test_complete(worker, index)

    def _kill(self, worker: Worker, node_id: str, others: list[int]) -> None:
        index = worker.queue[0]
        ahead = [] if index in self.watch.suspects else set(others) - set(self.watch.suspects)
        self.watch.flights[worker] = [*ahead, index] if ahead else []
        self.die(worker, None if ahead else node_id)

    def die(self, worker: Worker, node_id: str | None) -> None:
        """Let a worker die, of a test if that is known; another comes for it, if one may."""
        worker.queue.clear()
        worker.shutting_down = True
        self.watch.restarts -= 1
        assert self.scheduler.remove_node(worker) == node_id
        if node_id is not None:
            self.crashed.append(node_id)
        if self.watch.restarts > 0:
            self.start()
        else:
            for other in self.scheduler.nodes:
                other.shutdown()

    def finish(self, choose=lambda ready: ready[0], **deaths) -> None:
        """Let workers run, in some order, until none can."""
        while ready := self._ready():
            self.step(choose(ready), **deaths)

    def _ready(self) -> list[Worker]:
        if self.scheduler.tests_finished:
            # As pytest-xdist does.
            for worker in self.scheduler.nodes:
                worker.shutdown()
        return [worker for worker in self.workers if worker.can_run]

    def sent(self) -> list[list[list[str]]]:
        return [
            [[self.collection[index] for index in chunk] for chunk in worker.sent]
            for worker in self.workers
        ]

    def names(self) -> list[str]:
        return [node_id for _, node_id in self.ran]


def by_turns(run: Run):
    """Let the worker go on that has run the fewest tests: all are equally fast."""

    def choose(ready):
        counts = Counter(worker for worker, _ in run.ran)
        return min(ready, key=lambda worker: counts[worker.gateway.id])

    return choose


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


def test_units_of_one_test_are_handed_out_in_turn():
    run = Run({"a": 1, "b": 1, "c": 1})
    assert run.sent() == [[unit("a", 1), unit("c", 1)], [unit("b", 1)]]


def test_few_ordinary_tests_are_handed_out_in_turn():
    assert Run({}, tests=2).sent() == [[["test_0"]], [["test_1"]]]
    assert Run({}, tests=3).sent() == [[["test_0"], ["test_2"]], [["test_1"]]]


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
    scheduler = UnitScheduling(Config(2), lambda *_: None, Watch())
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
    scheduler = UnitScheduling(config, logged.append, Watch())
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


# --- split units -----------------------------------------------------------------


def workers_of(run: Run, name: str) -> Counter[str]:
    """Return how many tests of a unit each worker ran."""
    return Counter(worker for worker, node_id in run.ran if node_id.startswith(f"u::{name}["))


def test_large_unit_is_split_in_shards_that_grow_smaller():
    run = Run({"big": 400}, splittable=["big"])
    whole = unit("big", 400)
    assert run.sent() == [[whole[:100]], [whole[100:175]]]
    run.finish(choose=by_turns(run))
    assert sorted(run.names()) == sorted(whole)
    shards = sorted((chunk for worker in run.workers for chunk in worker.sent), key=min)
    assert [index for shard in shards for index in shard] == list(range(400))
    sizes = [len(shard) for shard in shards]
    assert all(first >= second for first, second in pairwise(sizes))
    assert sizes[-2] == 16
    # Half of the work for each, but for what a last shard makes.
    assert max(workers_of(run, "big").values()) - 200 <= 16


def test_slow_worker_gets_less_of_a_split_unit():
    run = Run({"big": 400}, splittable=["big"])

    def choose(ready):
        # gw1 runs one test when gw0 has run three.
        counts = Counter(worker for worker, _ in run.ran)
        return min(ready, key=lambda w: counts[w.gateway.id] * (3 if w.gateway.id == "gw1" else 1))

    run.finish(choose=choose)
    counts = workers_of(run, "big")
    # The slow one may hold one last shard and half of another when nothing else is left.
    assert 300 - counts["gw0"] <= 24
    assert sum(counts.values()) == 400


@pytest.mark.parametrize(
    ("units", "splittable"),
    [
        ({"a": 400}, ()),
        # Not larger than what each worker has to run anyway.
        ({"a": 100, "b": 100}, ("a", "b")),
        # A second worker would load a knowledge base for less than 32 tests.
        ({"a": 63}, ("a",)),
    ],
    ids=["not splittable", "fair share", "few tests"],
)
def test_other_units_are_not_split(units, splittable):
    run = Run(units, splittable=splittable)
    run.finish(choose=by_turns(run))
    assert [chunk for chunks in run.sent() for chunk in chunks] == [
        unit(name, count) for name, count in units.items()
    ]


def test_split_unit_takes_as_many_workers_as_it_has_shares():
    units = {"big": 1000, **{f"small{number}": 50 for number in range(20)}}
    run = Run(units, workers=4, splittable=["big"])
    first = [chunks[0][0].partition("[")[0] for chunks in run.sent()]
    assert first == ["u::big", "u::big", "u::small0", "u::small1"]
    run.finish(choose=by_turns(run))
    assert sorted(run.names()) == sorted(run.collection)
    counts = Counter(worker for worker, _ in run.ran)
    assert max(counts.values()) - min(counts.values()) <= 50
    # Whoever is at a unit stays with it: its knowledge base is built or loaded once.
    for chunks in run.sent():
        names = [chunk[0].partition("[")[0] for chunk in chunks]
        changes = sum(first != second for first, second in pairwise(names))
        assert changes == len(set(names)) - 1
    assert all(len(workers_of(run, f"small{number}")) == 1 for number in range(20))


def test_next_shard_comes_while_queries_of_the_last_are_going_on():
    run = Run({"big": 400}, splittable=["big"])
    worker = run.workers[0]
    for _ in range(50):
        run.step(worker)
    assert [len(chunk) for chunk in worker.sent] == [100]
    run.step(worker)
    assert [len(chunk) for chunk in worker.sent] == [100, 56]


def test_worker_is_not_sent_another_unit_early_when_a_split_one_is_taken():
    run = Run({"big": 200, "small": 60}, splittable=["big"])
    slow, fast = run.workers
    while run.scheduler._work.has_more(("bench", "big")):
        run.step(fast)
    for _ in range(len(slow.queue) - 2):
        run.step(slow)
        assert all(chunk[0].startswith("u::big") for chunk in run.sent()[0])
    run.finish()
    assert sorted(run.names()) == sorted(run.collection)


def test_idle_worker_helps_with_a_split_unit_that_still_has_enough_tests():
    # Two thirds of the tests: a unit for two workers.
    run = Run({"big": 200, "small": 100}, workers=3, splittable=["big"])
    while not run.workers[2].shutting_down and len(workers_of(run, "big")) < 3:
        run.step(run.workers[2])
    assert workers_of(run, "big")["gw2"] > 0
    run.finish(choose=by_turns(run))
    assert sorted(run.names()) == sorted(run.collection)


def test_rest_of_a_dead_workers_shard_goes_to_others():
    run = Run({"big": 100}, splittable=["big"])
    run.finish(killers={"u::big[3]", "u::big[40]"}, choose=by_turns(run))
    assert sorted(run.crashed) == ["u::big[3]", "u::big[40]"]
    assert sorted([*run.names(), *run.crashed]) == sorted(unit("big", 100))
    assert run.given_up == []


def test_split_unit_whose_build_kills_is_given_up_as_a_whole():
    run = Run({"big": 100, "b": 3}, splittable=["big"])
    dies = frozenset(unit("big", 100))
    run.finish(killers=dies, builders=dies)
    assert sorted(run.names()) == unit("b", 3)
    assert sorted([*run.crashed, *run.given_up]) == sorted(unit("big", 100))
    # Each worker that was at it died of one test; nobody begins it after the second.
    assert len(run.crashed) <= 3
    assert run.scheduler.tests_finished


# --- what a worker died of ---------------------------------------------------------


def dying(executing: list[int], progress: Progress | None = None) -> Run:
    """Return a run of one unit whose worker dies of its third test, asked ahead."""
    run = Run({"a": 6}, workers=1)
    (worker,) = run.workers
    run.watch.flights[worker] = executing
    if progress is not None:
        run.watch.reached[worker] = progress
    run.die(worker, "u::a[2]")
    run.finish()
    return run


def test_worker_dies_of_the_test_whose_code_it_was_executing():
    run = dying(executing=[2], progress=Progress("u::a[0]", has_result=False))
    assert run.names() == ["u::a[0]", "u::a[1]", "u::a[3]", "u::a[4]", "u::a[5]"]


def test_code_of_tests_that_a_worker_no_longer_has_is_not_looked_at():
    run = dying(executing=[17, 2])
    assert run.names() == ["u::a[0]", "u::a[1]", "u::a[3]", "u::a[4]", "u::a[5]"]


def test_nobody_is_blamed_for_a_death_of_several():
    run = Run({"a": 6}, workers=1)
    (worker,) = run.workers
    run.watch.flights[worker] = [17, 3, 1, 3]
    run.watch.reached[worker] = Progress("u::a[0]", has_result=False)
    run.die(worker, None)
    assert run.watch.suspects == [3, 1]
    assert run.watch.forgotten == [(worker, "u::a[0]")]
    run.finish()
    assert run.names() == run.collection
    assert run.given_up == []


@pytest.mark.parametrize("executing", [[3], [3, 1], [2, 3], []])
def test_who_is_suspected_twice_is_the_killer(executing):
    run = Run({"a": 6}, workers=1)
    run.watch.flights[run.workers[0]] = [1, 3]
    run.die(run.workers[0], None)
    _, second = run.workers
    for _ in range(3):
        run.step(second)
    run.watch.flights[second] = executing
    run.die(second, "u::a[3]")
    assert run.watch.suspects == [1, 3]
    run.finish()
    assert run.names() == ["u::a[0]", "u::a[1]", "u::a[2]", "u::a[4]", "u::a[5]"]


def test_innocent_suspects_are_not_blamed_for_others():
    """Whose code runs when a second worker dies is not acquitted by an earlier suspicion."""
    run = Run({"a": 6}, workers=1)
    run.watch.flights[run.workers[0]] = [1, 3]
    run.die(run.workers[0], None)
    run.watch.flights[run.workers[1]] = [0]
    run.die(run.workers[1], "u::a[0]")
    run.watch.flights[run.workers[2]] = [4, 5]
    run.die(run.workers[2], None)
    run.finish()
    assert run.names() == ["u::a[1]", "u::a[2]", "u::a[3]", "u::a[4]", "u::a[5]"]


def test_deaths_of_several_are_no_failed_builds():
    run = Run({"a": 6}, workers=1)
    for executing in ([0, 1], [2, 3]):
        run.watch.flights[run.workers[-1]] = executing
        run.die(run.workers[-1], None)
    run.finish()
    assert run.given_up == []
    assert run.names() == run.collection


def test_suspects_come_last_where_nobody_comes_for_the_dead():
    run = Run({"a": 4, "b": 3}, tests=2)
    run.watch.restarts = 1
    dies, _ = run.workers
    run.watch.flights[dies] = [2, 0]
    run.die(dies, None)
    assert run.sent()[1] == [
        ["u::b[0]", "u::b[1]", "u::b[2]"],
        ["u::a[1]", "u::a[3]"],
        ["test_0"],
        ["test_1"],
        ["u::a[0]", "u::a[2]"],
    ]
    run.finish()
    assert len(run.names()) == 9


def test_tests_of_a_death_of_several_are_known_if_nobody_is_left():
    run = Run({"a": 3}, workers=1)
    run.watch.restarts = 1
    run.watch.flights[run.workers[0]] = [0, 1]
    run.die(run.workers[0], None)
    assert run.scheduler.left() == run.collection


def test_test_with_a_result_is_not_run_again():
    run = dying(executing=[2], progress=Progress("u::a[0]", has_result=True))
    assert run.names() == ["u::a[1]", "u::a[3]", "u::a[4]", "u::a[5]"]


@pytest.mark.parametrize(
    ("progress", "forgotten"),
    [
        (Progress("u::a[0]", has_result=False), ["u::a[0]"]),
        (Progress("u::a[0]", has_result=True), []),
        (Progress("u::a[2]", has_result=False), []),
        (None, []),
    ],
    ids=["begun", "has a result", "killer", "nothing"],
)
def test_what_was_reported_of_a_test_that_is_run_again_is_taken_back(progress, forgotten):
    run = dying(executing=[2], progress=progress)
    assert run.watch.forgotten == [(run.workers[0], node_id) for node_id in forgotten]


def test_query_that_kills_before_the_first_result_is_no_failed_build():
    run = Run({"a": 6}, workers=1)
    for index in (0, 1, 3):
        run.watch.flights[run.workers[-1]] = [index]
        run.die(run.workers[-1], f"u::a[{index}]")
    run.finish()
    assert run.given_up == []
    assert run.names() == ["u::a[2]", "u::a[4]", "u::a[5]"]


# --- workers that nobody replaces ----------------------------------------------------


def test_survivors_run_all_when_no_worker_comes_after():
    run = Run({"a": 6, "b": 6, "c": 4, "big": 90}, tests=9, workers=3, splittable=["big"])
    run.watch.restarts = 1
    run.step(run.workers[0], killers={run.collection[run.workers[0].queue[0]]})
    run.finish(choose=by_turns(run))
    assert sorted([*run.names(), *run.crashed]) == sorted(run.collection)
    assert run.scheduler.left() == []
    assert run.scheduler.tests_finished


def test_idle_worker_waits_for_what_a_dying_one_leaves():
    run = Run({"a": 6, "b": 6})
    run.watch.restarts = 1
    idle, dies = run.workers
    for _ in range(5):
        run.step(idle)
    assert not idle.can_run
    run.step(dies, killers={"u::b[0]"})
    run.finish()
    assert run.names() == [*unit("a", 6), *unit("b", 6)[1:]]


def test_what_cannot_be_sent_to_one_who_has_died_too_goes_to_others():
    run = Run({"a": 6, "b": 6, "c": 6}, workers=3)
    run.watch.restarts = 1
    first, second, third = run.workers
    second.is_dead = True
    run.step(first, killers={"u::a[0]"})
    assert (len(second.sent), third.sent) == (1, [[12, 13, 14, 15, 16, 17], [1, 2, 3, 4, 5]])
    run.die(second, "u::b[0]")
    run.finish()
    assert run.names() == [*unit("c", 6), *unit("a", 6)[1:]]
    assert run.scheduler.left() == unit("b", 6)[1:]


@pytest.mark.parametrize("restarts", [2, 3])
def test_who_died_with_nothing_to_do_is_not_blamed_for_what_it_never_got(restarts):
    run = Run({"a": 1, "b": 6, "c": 1}, workers=3)
    run.watch.restarts = restarts
    dies, idle, other = run.workers
    for worker in (idle, other):
        worker.queue.clear()
        run.scheduler.mark_test_complete(worker, worker.sent[0][0])
    idle.shutting_down = other.shutting_down = False
    idle.is_dead = True
    run.step(dies, killers={"u::b[0]"})
    assert not idle.queue
    run.die(idle, None)
    run.finish()
    assert run.names() == unit("b", 6)[1:]
    assert run.scheduler.left() == []


def test_what_nobody_is_left_for_is_known():
    run = Run({"a": 3}, tests=3, workers=1)
    run.watch.restarts = 1
    run.step(run.workers[0], killers={"u::a[0]"})
    run.finish()
    assert run.scheduler.left() == ["u::a[1]", "u::a[2]", "test_0", "test_1", "test_2"]
    assert run.scheduler.has_pending


def test_nothing_is_run_when_a_worker_dies_while_it_collects():
    run = Run({"a": 2}, workers=1)
    scheduler = UnitScheduling(Config(2), lambda *_: None, Watch())
    for worker in (Worker(0), Worker(1)):
        scheduler.add_node(worker)
    scheduler.add_node_collection(scheduler.nodes[0], run.collection)
    assert scheduler.remove_node(scheduler.nodes[1]) is None
    assert scheduler.left() == run.collection


# --- whatever happens ------------------------------------------------------------------


@settings(deadline=None)
@given(
    counts=st.lists(st.integers(1, 6) | st.integers(60, 130), max_size=6),
    tests=st.integers(0, 12),
    workers=st.integers(1, 4),
    restarts=st.integers(0, 8),
    data=st.data(),
)
def test_every_test_is_run_once_whatever_dies_when(counts, tests, workers, restarts, data):
    names = [f"unit{number}" for number in range(len(counts))]
    splittable = data.draw(st.frozensets(st.sampled_from([*names, ""])))
    run = Run(dict(zip(names, counts, strict=True)), tests, workers, splittable)
    run.watch.restarts = restarts + 1
    killers = data.draw(st.frozensets(st.sampled_from(run.collection or [""]), max_size=5))
    builders = data.draw(st.frozensets(st.sampled_from(sorted(killers) or [""])))
    random = data.draw(st.randoms())
    run.finish(
        choose=random.choice,
        killers=killers - {""},
        builders=builders - {""},
        meanwhile=lambda queue: random.sample(queue[1:5], random.randint(0, len(queue[1:5]))),
    )
    done = [*run.names(), *run.crashed, *run.given_up]
    # Nothing is missing that nobody is told of, and nothing is run twice.
    assert sorted([*done, *run.scheduler.left()]) == sorted(run.collection)
    assert set(run.crashed) <= killers
    if any(not worker.shutting_down for worker in run.workers) or run.watch.restarts > 0:
        assert run.scheduler.left() == []
        assert run.scheduler.tests_finished
        assert not run.scheduler.has_pending
        if not builders:
            assert run.given_up == []
            assert set(run.crashed) == killers & set(run.collection)
    if not killers:
        for name in set(names) - splittable:
            assert len(workers_of(run, name)) == 1
