"""The grammar of gates."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_heta.core._gate_text import (
    AGGREGATES,
    METRIC_FUNCTIONS,
    OPERATORS,
    UNBUILT_FUNCTIONS,
    Gate,
    Threshold,
    number_text,
    parse_gate,
)
from pytest_heta.errors import GateInvalidError


class TestForms:
    @pytest.mark.parametrize(
        ("text", "canonical"),
        [
            ("hybrid_search.ndcg@10 >= 0.30", "hybrid_search.ndcg@10 >= 0.3"),
            ("  hybrid_search . ndcg@10>=.30 ", "hybrid_search.ndcg@10 >= 0.3"),
            ("*.failure_rate<=0.01", "*.failure_rate <= 0.01"),
            ("*.p95_latency_ms < 250", "*.p95_latency_ms < 250"),
            ("cranfield:fts.map@100 > 0", "cranfield:fts.map@100 > 0"),
            ("cranfield@local : fts.map@100 == 1", "cranfield@local:fts.map@100 == 1"),
            ("cranfield @ local:fts.map@100 == 1.0", "cranfield@local:fts.map@100 == 1"),
            ("*:fts.map@100 > 0", "fts.map@100 > 0"),
            ("*@*:fts.map@100 > 0", "fts.map@100 > 0"),
            ("*@local:fts.map@100 > 0", "*@local:fts.map@100 > 0"),
            ("cranfield@*:fts.map@100 > 0", "cranfield:fts.map@100 > 0"),
            ("m.mean(ndcg@10) >= 1e-3", "m.ndcg@10 >= 0.001"),
            ("m.mean( failure_rate ) >= 1", "m.mean(failure_rate) >= 1"),
            ("m.n_scored (ndcg@10) == 225", "m.n_scored(ndcg@10) == 225"),
            ("m.ci_low(ndcg@10) >= 0.3", "m.ci_low(ndcg@10) >= 0.3"),
            ("m.my.own-metric_2 >= -1", "m.my.own-metric_2 >= -1"),
            ("m.answer  relevance >= 5", "m.answer relevance >= 5"),
            ("m.问题 >= 5", "m.问题 >= 5"),
            ("m.ndcg@10{type = multi hop} >= 0.5", "m.ndcg@10{type=multi hop} >= 0.5"),
            ("m.ndcg@10{type=a>=b} >= 0.5", "m.ndcg@10{type=a>=b} >= 0.5"),
            ("m.ndcg@10{type=*} >= 0.5", "m.ndcg@10{type=*} >= 0.5"),
            ("m.x >= baseline", "m.x >= baseline"),
            ("m.x >= baseline - 0.020", "m.x >= baseline - 0.02"),
            ("m.x >= baseline−2%", "m.x >= baseline - 2%"),
            ("m.x <= baseline + 5 %", "m.x <= baseline + 5%"),
            ("m.x == baseline ± 0.01", "m.x == baseline ± 0.01"),
            ("m.x == baseline +/- .01", "m.x == baseline ± 0.01"),
            ("m.x >= baseline - 0", "m.x >= baseline"),
            ("m.x >= +1.", "m.x >= 1"),
            ("m.x >= -0", "m.x >= 0"),
            ("m.x >= 0", "m.x >= 0"),
        ],
    )
    def test_a_gate_has_one_canonical_text(self, text, canonical):
        gate = parse_gate(text, "ini")
        assert gate.text == canonical
        assert (gate.written, gate.origin) == (text, "ini")
        again = parse_gate(gate.text, "ini")
        assert replace(again, written=text) == gate

    def test_a_gate_has_these_parts(self):
        assert parse_gate("b@r:m.n(x){k=v} <= 3") == Gate(
            mode="m",
            metric="x",
            function="n",
            operator="<=",
            threshold=Threshold(3.0),
            benchmark="b",
            recipe="r",
            label=("k", "v"),
            origin="suite",
            written="b@r:m.n(x){k=v} <= 3",
        )

    def test_a_bare_name_is_an_aggregate_of_the_mode_or_the_mean_of_a_metric(self):
        for name in AGGREGATES:
            assert parse_gate(f"m.{name} > 0").function is None
        assert parse_gate("m.ndcg@10 > 0").function == "mean"

    @pytest.mark.parametrize(
        ("text", "threshold"),
        [
            ("1", Threshold(1.0)),
            (".8", Threshold(0.8)),
            ("-1e-3", Threshold(-0.001)),
            ("baseline", Threshold(0.0, "±")),
            ("baseline - 5%", Threshold(5.0, "-", relative=True)),
            ("baseline + 0.5", Threshold(0.5, "+")),
            ("baseline±0.5%", Threshold(0.5, "±", relative=True)),
        ],
    )
    def test_a_threshold_is_a_number_or_about_the_baseline(self, text, threshold):
        assert parse_gate(f"m.x > {text}").threshold == threshold


class TestErrors:
    @pytest.mark.parametrize("operator", ["!=", "=", "=>", "=<", "<>", "===", "~", "≥", "≠"])
    def test_another_operator_is_refused_with_the_list(self, operator):
        with pytest.raises(GateInvalidError, match="the operators are >= > <= < ==") as raised:
            parse_gate(f"m.x {operator} 1")
        assert f"{operator!r} is not an operator" in str(raised.value)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "there is no operator"),
            ("m.x", "there is no operator"),
            ("m.x >=", "there is no threshold"),
            (">= 1", "before the operator stand a mode, a dot and a metric"),
            ("x >= 1", "before the operator stand"),
            (".x >= 1", "before the operator stand"),
            ("m. >= 1", "before the operator stand"),
            ("a b.x >= 1", "'a b' is not the name of a mode"),
            ("m*.x >= 1", "'m*' is not the name of a mode"),
            (":m.x >= 1", "'' is not the name of a benchmark"),
            ("b@:m.x >= 1", "'' is not the name of a recipe"),
            ("b/c:m.x >= 1", "'b/c' is not the name of a benchmark"),
            ("a:b:m.x >= 1", "'b:m' is not the name of a mode"),
            ("m.n() >= 1", "'' is not the name of a metric"),
            ("m.x;y >= 1", "'x;y' is not the name of a metric"),
            ("m.median(x) >= 1", "'median' is not an aggregate of a metric"),
            ("m.n_score(x) >= 1", "did you mean 'n_scored'"),
            ("m.x{} >= 1", "a label is written {label=value}"),
            ("m.x{a} >= 1", "a label is written {label=value}"),
            ("m.x{a=} >= 1", "a label is written {label=value}"),
            ("m.{a=b}x >= 1", "a label is written {label=value}"),
            ("m.x} >= 1", "a label is written {label=value}"),
            ("m.x{a=b >= 1", "a label is written {label=value}"),
            ("m.x >= 80%", "write 0.8; a percentage stands only behind 'baseline'"),
            ("m.x >= 12.5 %", "write 0.125"),
            ("m.x >= high", "'high' is not a threshold"),
            ("m.x >= nan", "'nan' is not a threshold"),
            ("m.x >= inf", "'inf' is not a threshold"),
            ("m.x >= 1e999", "1e999 is too large"),
            ("m.x >= baseline - 1e999", "1e999 is too large"),
            ("m.x >= 1_000", "'1_000' is not a threshold"),
            ("m.x >= ٣", "'٣' is not a threshold"),
            ("m.x >= 0x1", "'0x1' is not a threshold"),
            ("m.x >= baseline * 2", "'baseline * 2' is not a threshold"),
            ("m.x >= baseline 5%", "'baseline 5%' is not a threshold"),
            ("m.x >= 1 2", "'1 2' is not a threshold"),
            ("m.x >= 1 <= 2", "'1 <= 2' is not a threshold"),
        ],
    )
    def test_what_is_no_gate_is_refused_in_one_line(self, text, problem):
        with pytest.raises(GateInvalidError) as raised:
            parse_gate(text)
        line = str(raised.value)
        assert problem in line
        assert line.startswith(f"[gate-invalid] gate {text!r}: ")
        assert "\n" not in line

    def test_nothing_makes_it_slow(self):
        for text in ("m." + "a " * 20_000 + "! >= 1", "m.x{" + "a=" * 20_000, "baseline" * 20_000):
            with pytest.raises(GateInvalidError):
                parse_gate(text)


names = st.text("abcXYZ019_-", min_size=1, max_size=8)
metrics = st.text("abc09@._-+/ é咖", min_size=1, max_size=12).map(
    lambda text: " ".join(text.split()) or "x"
)
numbers = st.floats(allow_nan=False, allow_infinity=False).map(lambda value: value + 0.0)
distances = st.floats(min_value=0, exclude_min=True, allow_nan=False, allow_infinity=False)
thresholds = (
    st.builds(Threshold, numbers)
    | st.just(Threshold(0.0, "±"))
    | st.builds(Threshold, distances, st.sampled_from("+-±"), st.booleans())
)


@st.composite
def gates(draw):
    metric = draw(metrics)
    function = draw(st.sampled_from([*METRIC_FUNCTIONS, *UNBUILT_FUNCTIONS]))
    if draw(st.booleans()):
        metric, function = draw(st.sampled_from(sorted(AGGREGATES))), None
    value = st.text("ab =>.,:*é", min_size=1).map(lambda text: " ".join(text.split()) or "v")
    return Gate(
        mode=draw(names | st.just("*")),
        metric=metric,
        function=function,
        operator=draw(st.sampled_from(OPERATORS)),
        threshold=draw(thresholds),
        benchmark=draw(st.none() | names),
        recipe=draw(st.none() | names),
        label=draw(st.none() | st.tuples(names, value)),
    )


@given(gates())
def test_every_gate_reads_back_as_it_was(gate):
    again = parse_gate(gate.text)
    assert replace(again, written="") == gate
    assert again.text == gate.text


@given(st.text())
def test_any_text_is_a_gate_or_a_gate_error(text):
    try:
        gate = parse_gate(text)
    except GateInvalidError:
        return
    assert parse_gate(gate.text).text == gate.text


@given(numbers)
def test_a_number_reads_back_as_it_was(value):
    assert float(number_text(value)) == value
