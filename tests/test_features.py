"""Every feature against numbers that do not come from the package: by hand, by loops, and at 50 digits."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import mpmath
import numpy as np
import pytest
from featured import NAMES, completed, draw_cases, wild
from making import INVARIANTS, random_case, rng
from slow_route import CONDITIONS, on_the_simplex, order_of_steps, positions, slow_attention
from variations import FEATURED

from verify_attention import departures, formula, rounding
from verify_attention.cases import build_case
from verify_attention.engine import judge
from verify_attention.features import normaliser
from verify_attention.model import Case, Hides, Trace
from verify_attention.pipeline import CORE
from verify_attention.plugins import features as known_features

LIMIT = 1e-13  # some thousand roundings of numbers around 1
E = math.e


def small(q: Any = (1.0,), keys: Any = ((0.0,), (0.0,)), **given: Any) -> Case:
    """Return a case of one head and one row with a scale of 1, from a document."""
    width = len(q)
    document = {
        "d_k": width,
        "q": [*map(float, q)],
        "keys": [[*map(float, key)] for key in keys],
        "bQ": given.pop("bQ", [0.0] * width),
        "bK": given.pop("bK", [0.0] * width),
        "scale": 1,
    }
    document |= {name: given.pop(name) for name in ("values", "bV", "scale") if name in given}
    return build_case({**document, "features": given}, id="small")


def weights(case: Case, condition: Any = "qk") -> list[float]:
    return CORE(case.under(condition)).weights[0, 0].tolist()


def scores(case: Case, condition: Any = "qk") -> list[float]:
    return CORE(case.under(condition)).scores[0, 0].tolist()


def near(*numbers: float, digits: int = 3) -> Any:
    """Approximate printed numbers: half a unit of the last digit."""
    return pytest.approx(list(numbers), abs=0.5001 * 10.0**-digits)


# By hand


def test_a_fill_of_minus_ten_draws_level_when_the_row_moves_by_minus_ten():
    case = small(bK=[-10.0], mask=[True, False], fill=-10)
    assert weights(case, "none")[1] == pytest.approx(4.5e-5, abs=0.05e-5)
    assert weights(case, "k") == [0.5, 0.5]


def test_a_mask_alone_lets_nothing_through():
    case = small(bK=[-10.0], mask=[True, False])
    assert weights(case, "none") == weights(case, "k") == [1.0, 0.0]
    assert scores(case, "k") == [-10.0, -math.inf]


def test_a_bias_before_the_rotation_moves_weights_and_after_it_does_not():
    given = {"q": (1, 0), "keys": ((0, 0), (0, 0)), "bK": [1.0, 0.0], "scale": 2**-0.5}
    positions = {"q_positions": [0.0], "k_positions": [0.0, 1.0]}
    before, after = (small(**given, rope={"bias": bias, **positions}) for bias in ("before", "after"))
    assert weights(before, "none") == weights(after, "none") == weights(after, "k") == [0.5, 0.5]
    assert weights(before, "k") == near(0.5806, 0.4194, digits=4)


def test_rotations_by_the_angle_of_a_3_4_5_triangle():
    angle = math.acos(3 / 5)
    places = {"q_positions": [0.0], "k_positions": [0.0, angle, 2 * angle, 3 * angle]}
    case = small(q=(1, 0), keys=((0, 0),) * 4, bK=[1.0, 0.0], rope=places)
    assert scores(case, "k") == pytest.approx([1, 3 / 5, -7 / 25, -117 / 125], abs=1e-15)


@pytest.mark.parametrize(("layout", "partner"), [("half", 2), ("interleaved", 1)])
def test_channel_0_turns_into_its_partner(layout: str, partner: int):
    keys = np.eye(4).tolist()
    places = {"q_positions": [0.0], "k_positions": [math.pi / 2] * 4}
    case = small(q=(3, 3, 3, 3), keys=keys, rope={"layout": layout, "base": 1.0, **places})
    quarter = np.zeros((4, 4))
    for first, second in ((0, partner), ((1, 3) if layout == "half" else (2, 3))):
        quarter[first, second], quarter[second, first] = 1, -1  # (1, 0) turns to (0, 1), and (0, 1) to (−1, 0)
    assert CORE.keys(case)[0] == pytest.approx(quarter, abs=1e-15)


def test_the_frequencies_come_from_the_channels_that_turn():
    """base^(−2t/r) with r = 4 of 6 channels: 100^(−1/2) = 1/10."""
    place = {"q_positions": [0.0], "k_positions": [5 * math.pi]}
    case = small(q=(1,) * 6, keys=((0, 1, 0, 0, 7, 8),), rope={"rotary_dims": 4, "base": 100.0, **place})
    assert CORE.keys(case)[0, 0] == pytest.approx([0, 0, 0, 1, 7, 8], abs=1e-14)


def test_positions_are_the_places_on_the_key_axis():
    """Two queries before five keys: they stand at 3 and 4."""
    case = completed(random_case(rng(1), Tq=2), {"rope": {}})
    assert case.features["rope"]["q_positions"].tolist() == [3, 4]
    assert case.features["rope"]["k_positions"].tolist() == [0, 1, 2, 3, 4]
    case = completed(random_case(rng(1), Tq=2), {"causal": "upper-left", "rope": {}})
    assert case.features["rope"]["q_positions"].tolist() == [0, 1]


def test_a_norm_after_the_bias_moves_weights_and_before_it_does_not():
    given = {"q": (1, 0), "keys": ((1, 0), (0, 1)), "bK": [1.0, 0.0]}
    after, before = (small(**given, qk_norm={"kind": "l2", "eps": 1e-15, "bias": bias}) for bias in ("before", "after"))
    assert weights(after, "none") == weights(before, "none") == near(0.731, 0.269)
    assert weights(after, "k") == near(0.573, 0.427)
    assert weights(before, "k") == near(0.731, 0.269)


@pytest.mark.parametrize(
    ("kind", "normed"),
    [("l2", (0.6, 0.8)), ("rms", (3 / 12.5**0.5, 4 / 12.5**0.5)), ("layer", (-1, 1))],
)
def test_three_and_four_are_normed(kind: str, normed: tuple[float, float]):
    case = small(q=(3, 4), keys=((1, 0),), qk_norm={"kind": kind, "eps": 1e-15, "q_gain": [2, -5]})
    assert CORE.queries(case)[0, 0] == pytest.approx([2 * normed[0], -5 * normed[1]], abs=1e-14)


def test_eps_stands_below_the_root():
    case = small(q=(3, 4), keys=((1, 0),), qk_norm={"kind": "l2", "eps": 11})
    assert CORE.queries(case)[0, 0].tolist() == [0.5, 4 / 6]


def test_a_layer_norm_takes_out_a_bias_that_is_the_same_in_all_channels():
    case = random_case(rng(2), bK=np.full((3, 7), 1.7))
    for kind, least, most in (("layer", 0.0, 1e-15), ("rms", 1e-3, 1.0)):
        normed = completed(case, {"qk_norm": {"kind": kind}})
        moved = np.abs(CORE(normed.under("k")).weights - CORE(normed.under("none")).weights).max()
        assert least <= moved <= most


def test_softcap_of_one():
    case = small(q=(1,), keys=((0,), (1,)), bK=[2.0], softcap=1)
    assert weights(case, "none")[1] == pytest.approx(0.682, abs=5e-4)
    assert weights(case, "k")[1] == pytest.approx(0.508, abs=5e-4)
    assert scores(case, "k") == pytest.approx([math.tanh(2), math.tanh(3)], abs=1e-15)


def test_a_cap_of_50_is_a_near_pass():
    """Gaps shrink by about S²/cap²: small, and far above 1e-12."""
    case = small(q=(1,), keys=((0,), (1,)), bK=[2.0], softcap=50)
    moved = abs(weights(case, "k")[1] - weights(case, "none")[1])
    assert 1e-5 < moved < 1e-3


def test_sigmoids():
    case = small(q=(1,), keys=((0,), (1,)), bK=[1.0], normaliser={"kind": "sigmoid"})
    assert weights(case, "none") == near(0.5, 0.731)
    assert weights(case, "k") == near(0.731, 0.881)


@pytest.mark.parametrize(
    "features",
    [
        {"softmax_plus_one": True},
        {"sink": 0.0},
        {"sink": [0.0]},
        {"zero_key": True},
        {"appended_key": {"key": [0.0]}},
        {"appended_key": {"key": [0.0], "value": [0.0]}},
    ],
    ids=str,
)
def test_a_share_that_does_not_move_with_the_keys(features: Any):
    """Two scores of 0 beside another 0: a third each; moved by 1, e / (2e + 1). A V bias is scaled by what is left."""
    case = small(bK=[1.0], values=[[0.0], [0.0]], bV=[1.0], **features)
    assert weights(case, "none") == near(0.3333, 0.3333, digits=4)
    assert weights(case, "k") == near(0.4223, 0.4223, digits=4)
    assert CORE(case.under("none")).output[0, 0, 0] == pytest.approx(2 / 3, abs=1e-15)
    assert CORE(case.under("k")).output[0, 0, 0] == pytest.approx(0.845, abs=5e-4)
    assert CORE(case.under("k")).lse[0, 0] == pytest.approx(math.log(2 * E + 1), abs=1e-15)


def test_shares_of_several_columns_add_up():
    case = small(sink=math.log(3), softmax_plus_one=True, zero_key=True, appended_key={"key": [math.log(4.0)]})
    assert weights(case) == pytest.approx([1 / 11, 1 / 11], abs=1e-15)  # 1 and 1 of 1 + 1 + 3 + 1 + 1 + 4


def test_a_sink_is_not_scaled_and_an_appended_key_is():
    both = {"d_k": 1, "q": [1], "keys": [[0], [0]], "bQ": [0], "bK": [0], "scale": 0.5}
    sunk = build_case({**both, "features": {"sink": [2.0]}}, id="x")
    appended = build_case({**both, "features": {"appended_key": {"key": [2.0]}}}, id="x")
    assert CORE(sunk).weights[0, 0] == pytest.approx(np.full(2, 1 / (2 + E**2)), abs=1e-15)
    assert CORE(appended).weights[0, 0] == pytest.approx(np.full(2, 1 / (2 + E)), abs=1e-15)


def test_the_value_of_an_appended_key_takes_part_and_gets_no_v_bias():
    case = small(values=[[1.0], [2.0]], bV=[10.0], appended_key={"key": [0.0], "value": [5.0]})
    assert CORE(case).output[0, 0, 0] == pytest.approx((11 + 12 + 5) / 3, abs=1e-14)


def test_an_appended_key_meets_the_query_with_its_bias():
    case = small(bQ=[1.0], appended_key={"key": [math.log(2.0)]})
    assert weights(case, "none") == pytest.approx([1 / 4, 1 / 4], abs=1e-15)
    assert weights(case, "q") == pytest.approx([1 / 6, 1 / 6], abs=1e-15)


def test_a_temperature_divides_the_scores():
    case = build_case(
        {
            "d_k": 1,
            "q": [[[1], [1]], [[2], [2]]],
            "keys": [[0], [12]],
            "bQ": [0],
            "bK": [0],
            "scale": 1,
            "features": {"temperature": {"heads": [2, 3], "rows": [1, 4]}},
        },
        id="x",
    )
    assert CORE(case).scores[..., 1].tolist() == [[6, 1.5], [8, 2]]


def test_temperature_stands_before_the_cap_and_the_cap_before_the_bias():
    case = small(q=(1,), keys=((6,),), temperature={"rows": [2.0]}, softcap=1, score_bias=[10])
    assert scores(case)[0] == pytest.approx(math.tanh(3) + 10, abs=1e-14)


def test_a_score_bias_of_log_3_is_three_to_one():
    assert weights(small(score_bias=[0.0, math.log(3)])) == pytest.approx([0.25, 0.75], abs=1e-15)


def test_alibi_slopes_of_eight_heads_are_halves():
    case = completed(random_case(rng(1), H=8, G=4, Tq=1), {"alibi": {}})
    assert case.features["alibi"]["slopes"].tolist() == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


def test_alibi_takes_off_the_distance_either_way():
    zeros = {"d_k": 1, "q": [[0]] * 2, "keys": [[0]] * 4, "bQ": [0], "bK": [0]}
    case = build_case({**zeros, "features": {"alibi": {"slopes": [0.5]}}}, id="x")
    assert CORE(case).scores[0].tolist() == [[-1, -0.5, 0, -0.5], [-1.5, -1, -0.5, 0]]
    case = build_case({**zeros, "features": {"alibi": {"slopes": [0.5]}, "causal": "upper-left"}}, id="x")
    assert CORE(case).scores[0].tolist() == [[0, *[-math.inf] * 3], [-0.5, 0, *[-math.inf] * 2]]


HIDDEN = {  # x: may attend; for two queries and four keys, then for four queries and two keys
    "lower-right": ("xxx. xxxx", None),
    "upper-left": ("x... xx..", "x. xx xx xx"),
    (1, 0): (".xx. ..xx", None),
    (0, None): ("..xx ...x", None),
    (None, 1): ("xxxx xxxx", None),
    (2, 2): ("xxxx .xxx", "x. xx xx xx"),
    ("upper-left", 1, 1): ("x... xx..", None),
    ("upper-left", None, 0): ("x... xx..", "x. xx xx xx"),
    ("upper-left", 3, None): ("x... xx..", "x. xx xx xx"),
}


@pytest.mark.parametrize(("which", "tables"), HIDDEN.items(), ids=str)
def test_what_a_query_sees(which: Any, tables: tuple[str | None, ...]):
    for (rows, keys), table in zip(((2, 4), (4, 2)), tables, strict=True):
        if table is None:
            continue
        features: dict[str, Any] = {"causal": which} if isinstance(which, str) else {"window": list(which)}
        if isinstance(which, tuple) and which[0] == "upper-left":
            features = {"causal": which[0], "window": list(which[1:])}
        zeros = {"d_k": 1, "q": [[0]] * rows, "keys": [[0]] * keys, "bQ": [0], "bK": [0], "features": features}
        assert seen(build_case(zeros, id="x")) == table


def seen(case: Case) -> str:
    return " ".join("".join("x" if weight > 0 else "." for weight in row) for row in CORE(case).weights[0])


def test_masks_causality_and_windows_hide_together():
    features = {"mask": [True, False, True, True], "causal": "lower-right", "window": [2, None]}
    zeros = {"d_k": 1, "q": [[0]] * 2, "keys": [[0]] * 4, "bQ": [0], "bK": [0], "features": features}
    assert seen(build_case(zeros, id="x")) == "x.x. ..xx"


def test_sparsemax_by_hand():
    assert weights(small(keys=((0,), (0.5,)), normaliser={"kind": "sparsemax"})) == [0.25, 0.75]
    assert weights(small(keys=((0,), (2,)), normaliser={"kind": "sparsemax"})) == [0.0, 1.0]
    assert weights(small(keys=((1,), (1,)), normaliser={"kind": "sparsemax"})) == [0.5, 0.5]


def test_top_k_by_hand():
    two = {"kind": "top-k", "k": 2}
    assert weights(small(keys=((1,), (3,), (2,)), normaliser=two)) == near(0, 0.731, 0.269)
    assert weights(small(keys=((1,), (1,), (1,)), normaliser=two)) == [0.5, 0.5, 0.0]
    assert weights(small(keys=((1,), (3,), (1,)), normaliser=two)) == near(0.119, 0.881, 0)


def test_key_shifts_are_there_with_the_k_bias_only():
    case = small(key_shifts=[[0.0], [math.log(3)]])
    assert weights(case, "none") == weights(case, "q") == [0.5, 0.5]
    assert weights(case, "k") == pytest.approx([0.25, 0.75], abs=1e-15)


# A projection by all supports that there are


def by_all_supports(row: list[float]) -> list[Fraction]:
    """Return the nearest point of the simplex: on each support the only candidate, and the nearest of those."""
    exact = [Fraction(number) for number in row]
    found: list[tuple[Fraction, list[Fraction]]] = []
    for size in range(1, len(row) + 1):
        for support in combinations(range(len(row)), size):
            excess = (sum(exact[key] for key in support) - 1) / size
            point = [exact[key] - excess if key in support else Fraction(0) for key in range(len(row))]
            if min(point) >= 0:
                found.append((sum((a - b) ** 2 for a, b in zip(point, exact, strict=True)), point))
    return min(found)[1]


@pytest.mark.parametrize("seed", range(30))
def test_sparsemax_is_the_nearest_of_all_candidates(seed: int):
    draw = rng(seed)
    row = draw.normal(size=6) * 10.0 ** draw.uniform(-2, 1)
    row[draw.integers(6)] = row[draw.integers(6)]  # ties
    right = [float(number) for number in by_all_supports(row.tolist())]
    assert normaliser.sparsemax(row).tolist() == pytest.approx(right, abs=1e-14)
    assert normaliser.by_falling_threshold(row).tolist() == pytest.approx(right, abs=1e-14)
    assert on_the_simplex(row.tolist(), math) == pytest.approx(right, abs=1e-15)


# By loops


def assert_agreement(case: Case) -> None:
    """Compare the core, and the second route, with the loops under all four conditions."""
    for condition in CONDITIONS:
        under = case.under(condition)
        trace, slow = CORE(under), slow_attention(case, condition)
        assert trace.inside.keys() == slow.inside.keys()
        for name, right in {**slow.inside, "output": slow.output}.items():
            found = trace.output if name == "output" else trace.inside[name]
            assert_near(found, right)
        assert_near(formula.scores(under).value, slow.scores)
        assert_near(formula.shares(under), slow.weights)
        assert_near(formula.output(under), slow.output)
        if "lse" in slow.inside:
            assert_near(formula.lse(under), slow.lse)


def assert_near(found: Any, right: Any) -> None:
    hidden = np.isneginf(right)
    assert np.array_equal(np.isneginf(found), hidden)
    found, right = found[~hidden], right[~hidden]
    assert np.abs(found - right).max() <= LIMIT * max(1.0, np.abs(right).max())


def numbers(seed: int, *shape: int) -> Any:
    return rng(1000 + seed).normal(size=shape)


ORDERS = [
    ("before", "before", "after"),  # bias, norm, rotation
    ("before", "before", "before"),  # bias, rotation, norm
    ("after", "before", "after"),  # norm, bias, rotation
    ("after", "after", "after"),  # norm, rotation, bias
    ("before", "after", "before"),  # rotation, bias, norm
    ("after", "after", "before"),  # rotation, norm, bias
]
WINDOWS = [(0, 0), (1, 2), (None, 0), (0, None), (None, 1), (2, None), (None, None)]
GAINS = {"q_gain": numbers(1, 6, 7), "k_gain": numbers(2, 3, 7)}
FLAGS = numbers(3, 6, 4, 5) < 0.3
FLAGS[..., 1] = True
ALONE: dict[str, dict[str, Any]] = {
    "plain": {},
    "key_shifts": {"key_shifts": numbers(4, 3, 5, 7)},
    "mask": {"mask": FLAGS},
    **{f"causal {corner}": {"causal": corner} for corner in ("lower-right", "upper-left")},
    **{f"window {window}": {"window": window} for window in WINDOWS},
    **{f"window {window}, upper-left": {"causal": "upper-left", "window": window} for window in WINDOWS},
    "score_bias": {"score_bias": numbers(5, 6, 4, 5)},
    "alibi": {"alibi": {}},
    "alibi, upper-left": {"alibi": {}, "causal": "upper-left"},
    "alibi with slopes": {"alibi": {"slopes": numbers(6, 6)}},
    "fill": {"mask": FLAGS, "fill": -3.5},
    "fill above all scores": {"mask": FLAGS, "fill": 7.5},
    "fill of Keras": {"causal": "lower-right", "fill": -1e9},
    **{f"softcap {cap}": {"softcap": cap} for cap in (0.25, 1.0, 50.0)},
    "rope": {"rope": {}},
    **{
        f"rope {layout}, {dims} of 7, bias {bias}, base {base}": {
            "rope": {"layout": layout, "rotary_dims": dims, "bias": bias, "base": base}
        }
        for layout, dims, bias, base in product(("half", "interleaved"), (2, 4, 6), ("before", "after"), (10.0, 1e4))
    },
    "rope with positions": {"rope": {"q_positions": numbers(7, 4) * 5, "k_positions": numbers(8, 5) * 5}},
    "rope upper-left": {"rope": {"base": 10.0}, "causal": "upper-left"},
    **{
        f"{kind}, bias {bias}{', gains' if gains else ''}, eps {eps}": {
            "qk_norm": {"kind": kind, "bias": bias, **gains, "eps": eps}
        }
        for kind, bias, gains, eps in product(
            ("l2", "rms", "layer"), ("before", "after"), ({}, GAINS), (1e-6, 1e-2, 3.0)
        )
    },
    "norm without eps": {"qk_norm": {"kind": "rms"}},
    **{
        f"{kind}, bias {bias} the norm, {of_rope} the rotation, rotation {rotation} the norm": {
            "qk_norm": {"kind": kind, "bias": bias, "rotation": rotation, **GAINS},
            "rope": {"bias": of_rope, "base": 10.0},
        }
        for kind in ("l2", "layer")
        for bias, of_rope, rotation in ORDERS
    },
    "temperature of heads": {"temperature": {"heads": 0.5 + np.arange(6.0)}},
    "temperature of rows": {"temperature": {"rows": 0.5 + np.arange(4.0)}},
    "temperatures": {"temperature": {"heads": 0.5 + np.arange(6.0), "rows": 3 - np.arange(4.0) / 2}},
    "sink": {"sink": numbers(9, 6)},
    "large sink": {"sink": 50 + numbers(9, 6)},
    "softmax_plus_one": {"softmax_plus_one": True},
    "zero_key": {"zero_key": True},
    "appended_key": {"appended_key": {"key": numbers(10, 3, 7)}},
    "appended_key with a value": {"appended_key": {"key": numbers(10, 3, 7), "value": numbers(11, 3, 2)}},
    "all columns": {
        "sink": numbers(9, 6),
        "softmax_plus_one": True,
        "zero_key": True,
        "appended_key": {"key": numbers(10, 3, 7), "value": numbers(11, 3, 2)},
    },
    "sigmoid": {"normaliser": {"kind": "sigmoid"}},
    "sparsemax": {"normaliser": {"kind": "sparsemax"}},
    **{f"top-{k}": {"normaliser": {"kind": "top-k", "k": k}} for k in range(1, 6)},
    **{
        f"masked {kind}{' with a fill' if filled else ''}": {
            "mask": FLAGS,
            "normaliser": {"kind": kind, **({"k": 3} if kind == "top-k" else {})},
            **filled,
        }
        for kind in ("sigmoid", "sparsemax", "top-k")
        for filled in ({}, {"fill": -0.5})
    },
}


@pytest.mark.parametrize("name", ALONE)
def test_each_feature_is_what_its_definition_says(name: str):
    assert_agreement(completed(random_case(rng(20)), ALONE[name]))


def test_there_is_one_of_each_feature():
    assert {name for features in ALONE.values() for name in features} == set(NAMES)


@pytest.mark.parametrize(
    "features",
    [
        {"causal": "upper-left"},
        {"causal": "upper-left", "alibi": {}},
        {"causal": "upper-left", "window": (2, None), "rope": {"base": 10.0}},
        {"window": (2, 2), "alibi": {}, "rope": {"base": 10.0}},
    ],
    ids=str,
)
def test_more_queries_than_keys(features: Any):
    """Seven queries before five keys: lower-right, the first stands at −2."""
    assert_agreement(completed(random_case(rng(21), Tq=7, d_k=8), features))
    assert positions(completed(random_case(rng(21), Tq=7, d_k=8), {}))[0] == [-2, -1, 0, 1, 2, 3, 4]


def test_values_that_are_not_given_are_the_identity():
    case = completed(random_case(rng(22), values=None, bV=None), {"appended_key": {"key": numbers(1, 3, 7)}})
    assert_agreement(case)
    assert_agreement(completed(random_case(rng(22), values=None, bV=numbers(2, 3, 5)), {"sink": numbers(9, 6)}))


@pytest.mark.parametrize("seed", range(60))
def test_features_compose_in_the_documented_order(seed: int):
    for case in draw_cases(rng(seed), 3, fewest=2, most=5):
        assert_agreement(case)


def test_compositions_meet_every_pair_of_features_that_may_stand_together():
    met = {
        frozenset(pair)
        for seed in range(60)
        for case in draw_cases(rng(seed), 3, fewest=2, most=5)
        for pair in combinations(case.features, 2)
    }
    columns = {"sink", "softmax_plus_one", "zero_key", "appended_key"}
    refused = {frozenset({"normaliser", column}) for column in columns}
    assert not met & refused
    # `fill` and `normaliser` are refused beside too much to be drawn with everything.
    missing = {frozenset(pair) for pair in combinations(NAMES, 2)} - refused - met
    assert all(pair & {"fill", "normaliser"} for pair in missing), missing


def test_there_are_six_orders_of_bias_norm_and_rotation():
    orders = set()
    for bias, of_rope, rotation in ORDERS:
        features = {"qk_norm": {"bias": bias, "rotation": rotation}, "rope": {"bias": of_rope}}
        orders.add(tuple(order_of_steps(features)))
    assert orders == set(permutations(("bias", "norm", "rotation")))


def test_a_document_s_features_are_those_of_the_loops():
    """Arrays that are given once are every head's; the loops fill in their own defaults."""
    document = {
        "d_k": 4,
        "q": numbers(1, 4, 2, 4).tolist(),
        "keys": numbers(2, 2, 3, 4).tolist(),
        "bQ": [0.5, -1, 2, 0.25],
        "bK": numbers(3, 2, 4).tolist(),
        "values": numbers(4, 2, 3, 5).tolist(),
        "features": {
            "qk_norm": {"kind": "rms", "k_gain": [1, 2, 3, 0.5]},
            "rope": {},
            "temperature": {"rows": [2, 0.5]},
            "score_bias": [0.5, 1, -1],
            "alibi": {},
            "mask": [[True, True, False], [True, True, True]],
            "causal": True,
            "sink": 0.75,
            "appended_key": {"key": [1, 0, -1, 2], "value": [1, 2, 3, 4, 5]},
        },
    }
    case = build_case(document, id="x")
    own = dict(document["features"])
    own["qk_norm"] = {"kind": "rms", "k_gain": np.array([[1, 2, 3, 0.5]] * 2)}
    own["temperature"] = {"rows": np.array([2, 0.5])}
    own["score_bias"] = np.array([[[0.5, 1, -1]] * 2] * 4)
    own["mask"] = np.array([own["mask"]] * 4)
    own["causal"] = "lower-right"
    key, value = np.array([[1.0, 0, -1, 2]] * 2), np.array([[1.0, 2, 3, 4, 5]] * 2)
    own["appended_key"] = {"key": key, "value": value}
    for condition in CONDITIONS:
        slow = slow_attention(case.but(features=own), condition)
        assert_near(CORE(case.under(condition)).output, slow.output)
        assert_near(CORE(case.under(condition)).weights, slow.weights)


# At 50 digits


def test_bounds_are_larger_than_the_errors_of_any_feature():
    """Numbers of any size: every route, in any order of operations, is within the bound of what 50 digits give."""
    far = 0
    for case in wild(rng(30), 150):
        under = case.under("qk")
        with np.errstate(all="ignore"):
            exact = slow_attention(under, m=mpmath)
            bounds = {"output": rounding.output(under), "weights": rounding.weights(under)}
            bounds |= {"scores": rounding.scores(under)} | (
                {"lse": rounding.lse(under)} if "lse" in exact.inside else {}
            )
            for name, found in by_all_routes(under).items():
                for quantity, right in {**exact.inside, "output": exact.output}.items():
                    own = found.output if quantity == "output" else found.inside[quantity]
                    error = np.where(own == right, 0.0, np.abs(own - right))
                    # What is right is rounded once itself.
                    limit = bounds[quantity] + 2.0**-53 * np.abs(right)
                    assert (error <= limit).all(), (name, quantity, sorted(case.features))
                    far += quantity == "scores" and bool((error > 1e-12).any())
    assert far > 100


def by_all_routes(case: Case) -> dict[str, Trace]:
    """Return the traces of the core, the second route, and all variations that know the case's features."""
    inside = {"scores": formula.scores(case).value, "weights": formula.shares(case)}
    if "normaliser" not in case.features:
        inside["lse"] = formula.lse(case)
    found = {"core": CORE(case), "second route": Trace(formula.output(case), inside)}
    for name, variation in FEATURED.items():
        with suppress(NotImplementedError):
            found[name] = variation(case)
    return found


def test_the_loops_at_50_digits_are_the_loops():
    for case in draw_cases(rng(31), 10):
        assert_near(slow_attention(case).output, slow_attention(case, m=mpmath).output)


def test_the_loops_know_what_a_row_sees():
    for case in draw_cases(rng(32), 100):
        allowed = departures.visible(case)
        if allowed is not None and "fill" not in case.features:
            assert np.array_equal(np.isfinite(slow_attention(case).scores), allowed)


@pytest.mark.parametrize("feature", [{"causal": "lower-right"}, {"window": (1, 1)}])
@pytest.mark.parametrize("claim", ["weights-follow-the-formula", "output-follows-the-formula"])
def test_an_alignment_that_is_wrong_in_the_core_is_seen_by_the_formula(
    feature: dict[str, Any], claim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    aligned = Case.aligned.fget
    assert aligned is not None
    case = random_case(rng(3), Tq=3, Tk=5, features=feature)
    assert judge(INVARIANTS[claim], case, CORE).status == "pass"
    monkeypatch.setattr(Case, "aligned", property(lambda given: aligned(given) - 1))
    assert judge(INVARIANTS[claim], case.but(), CORE).status == "fail"


@pytest.mark.parametrize("side", [2**63 - 1, 10**30])
def test_a_window_may_be_longer_than_any_number_of_keys(side: int) -> None:
    case = small(q=(1,), keys=((1,), (2,), (3,)), window=[side, side])
    act = known_features()["window"].act
    assert isinstance(act, Hides)
    for function in (act.core, act.formula):
        assert function(case).all()
