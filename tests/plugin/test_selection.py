"""Which samples the items of a session ask, as stretches."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.core.plan import BenchmarkPlan, Sample, UnitPlan
from pytest_heta.models import BenchmarkManifest
from pytest_heta.plugin._selection import SelectedSamples, digest_of_ids, stretches_of


def plan(label: str = "bench", repeat: int = 1) -> BenchmarkPlan:
    return BenchmarkPlan(
        suite_id="bench.py",
        label=label,
        benchmark=BenchmarkManifest(name=label),
        recipe_name="toy",
        recipe_manifest={},
        modes=("x", "y"),
        top_k=10,
        options={},
        units=(
            UnitPlan("a", (), ("q1", "q2", "q3", "q4")),
            UnitPlan("b", (), ("q5", "q6")),
        ),
        cases={},
        metrics=(),
        repeat=repeat,
    )


def session(*plans: BenchmarkPlan) -> list[tuple[str, Sample]]:
    return [(one.label, sample) for one in plans for sample in one.samples()]


def test_a_whole_plan_has_a_stretch_for_each_unit_and_mode():
    one = plan()
    items = [(n, label, sample) for n, (label, sample) in enumerate(session(one))]
    assert [tuple(stretch) for stretch in stretches_of(items, {"bench": one})] == [
        (0, 4, "bench", "a", "x", 0),
        (4, 4, "bench", "a", "y", 0),
        (8, 2, "bench", "b", "x", 0),
        (10, 2, "bench", "b", "y", 0),
    ]


def test_what_is_deselected_and_what_is_ordinary_ends_a_stretch():
    one = plan()
    samples = [sample for _, sample in session(one)]
    items = [(0, "bench", samples[0]), (2, "bench", samples[2]), (3, "bench", samples[3])]
    assert [stretch[:2] for stretch in stretches_of(items, {"bench": one})] == [(0, 1), (2, 2)]
    # An ordinary test at position 1, and the second case deselected.
    selected = SelectedSamples(
        ["i0", "test", "i2", "i3"], stretches_of(items, {"bench": one}), {"bench": one}
    )
    assert list(selected) == ["i0", "i2", "i3"]
    assert "test" not in selected


def test_nothing_selected():
    selected = SelectedSamples(["test"], stretches_of([], {}), {})
    assert len(selected) == 0
    assert not selected
    assert selected.get("test") is None
    assert selected.get("elsewhere") is None


@given(data=st.data(), repeat=st.integers(1, 3))
def test_every_item_finds_its_sample(data, repeat):
    plans = {"bench": plan(repeat=repeat), "other": plan("other")}
    whole = [*session(*plans.values()), *[None] * 3]
    chosen = data.draw(st.lists(st.sampled_from(whole), unique_by=id, max_size=len(whole)))
    if data.draw(st.booleans()):
        chosen = [item for item in whole if item in chosen]
    node_ids = [f"item {number}" for number in range(len(chosen))]
    items = [(n, *item) for n, item in enumerate(chosen) if item is not None]
    selected = SelectedSamples(node_ids, stretches_of(items, plans), plans)
    expected = {node_ids[n]: (label, sample) for n, label, sample in items}
    assert dict(selected) == expected
    assert list(selected) == list(expected)
    assert len(selected) == len(expected)


def test_the_digest_tells_collections_apart():
    known = digest_of_ids(["a", "b"])
    assert known == digest_of_ids(iter(["a", "b"]))
    assert known not in {digest_of_ids(ids) for ids in (["b", "a"], ["a"], ["ab"], [], ["\ud800"])}
