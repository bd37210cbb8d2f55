"""The core beside the reference evaluator of ONNX, which somebody else wrote from another definition.

Its `Attention` knows no biases: they are added beforehand. `scale` and `softcap` are float32 attributes there, and the
root of a given `scale` is taken in float32, so the ones used here are short binary fractions, and squares of them.
Masks are written out by two loops from the definition, or asked of ONNX. For float64 inputs the evaluator computes in
float64 otherwise; the largest difference seen in 40 seeds of every test below was 1.5e-14. The limit of 1e-12 leaves
room for another order of sums, and none for float32 anywhere (1e-8 was seen with a scale of 1.5). Softcap comes before
mask and score bias in ONNX too, in all opsets that have `Attention` (23 to 25, in onnx 1.23).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from making import random_case, rng
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from verify_attention.departures import feature
from verify_attention.model import Case
from verify_attention.pipeline import CORE

LIMIT = 1e-12
OPSET = 25
WITH_BIAS, AFTER_SOFTMAX = 2, 3  # what `qk_matmul_output` shows
CONDITIONS = ("none", "q", "k", "qk")

seeds = pytest.mark.parametrize("seed", range(8))
sizes_of_queries = pytest.mark.parametrize("sizes", [{"Tq": 3, "Tk": 5}, {"Tq": 5, "Tk": 3}], ids=["fewer", "more"])


def evaluated(operator: str, inputs: list[Any], outputs: int = 1, opset: int = OPSET, **attributes: Any) -> list[Any]:
    """Run one operator of ONNX on arrays; None is an input that is left out."""
    names = ["" if array is None else f"input{place}" for place, array in enumerate(inputs)]
    while names[-1] == "":
        names.pop()
    given = {name: array for name, array in zip(names, inputs, strict=False) if name}
    results = [f"output{place}" for place in range(outputs)]
    node = helper.make_node(operator, names, results, **attributes)

    def information(name: str, kind: int) -> Any:
        return helper.make_tensor_value_info(name, kind, None)

    known = [information(name, helper.np_dtype_to_tensor_dtype(array.dtype)) for name, array in given.items()]
    graph = helper.make_graph([node], "peer", known, [information(name, TensorProto.DOUBLE) for name in results])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return [np.asarray(array) for array in ReferenceEvaluator(model).run(None, given)]


def vectors(case: Case) -> list[np.ndarray]:
    """Return q, k and v with their biases, `[1, heads, T, d]`."""
    return [
        (case.q + case.bQ[:, None])[None],
        (case.keys + case.bK[:, None])[None],
        (case.values + case.bV[:, None])[None],
    ]


def assert_agreement(case: Case, mask: np.ndarray | None = None, cached: int = 0, **attributes: Any) -> None:
    """Compare output, scores and weights under all four conditions; the first `cached` keys come from a cache."""
    if case.scale != case.d_k**-0.5:
        attributes["scale"] = case.scale
    for condition in CONDITIONS:
        under = case.under(condition)
        trace = CORE(under)
        q, k, v = vectors(under)
        past = [k[:, :, :cached], v[:, :, :cached]] if cached else [None, None]
        inputs = [q, k[:, :, cached:], v[:, :, cached:], mask, *past]
        for mode, of_trace in ((WITH_BIAS, trace.scores), (AFTER_SOFTMAX, trace.weights)):
            found = evaluated("Attention", inputs, 4, qk_matmul_output_mode=mode, **attributes)
            assert found[0].dtype == found[3].dtype == np.float64
            assert np.abs(found[0][0] - trace.output).max() <= LIMIT
            hidden = np.isneginf(of_trace)
            assert np.array_equal(np.isneginf(found[3][0]), hidden)
            assert np.abs(found[3][0][~hidden] - of_trace[~hidden]).max() <= LIMIT
            assert np.array_equal(found[1], k)
            assert np.array_equal(found[2], v)


def with_feature(case: Case, **features: Any) -> Case:
    case = case.but(features=features)
    for name in features:
        case = case.but(features={**case.features, name: feature(name).complete(case.features[name], case)})
    return case


def within(case: Case, first: int, left: int | None, right: int | None) -> np.ndarray:
    """Return the mask of a window by two loops: the query of row 0 stands at `first`, `[Tq, Tk]`."""
    _, rows, keys = case.scores_shape
    mask = np.zeros((rows, keys), dtype=bool)
    for row in range(rows):
        for key in range(keys):
            near_left = left is None or row + first - key <= left
            near_right = right is None or key - row - first <= right
            mask[row, key] = near_left and near_right
    return mask


@seeds
def test_plain_attention_with_grouped_heads(seed: int) -> None:
    assert_agreement(random_case(rng(seed)))


@seeds
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_any_number_of_key_value_heads(seed: int, groups: int) -> None:
    assert_agreement(random_case(rng(seed), G=groups))


@seeds
@pytest.mark.parametrize("scale", [0.25, 2.25])
def test_a_given_scale(seed: int, scale: float) -> None:
    assert_agreement(random_case(rng(seed), scale=scale))


@seeds
@pytest.mark.parametrize("opset", [23, 24, 25])
def test_a_boolean_mask_where_true_may_attend(seed: int, opset: int) -> None:
    draw = rng(seed)
    mask = draw.random((6, 4, 5)) < 0.6
    mask[..., 2] = True
    assert_agreement(with_feature(random_case(draw), mask=mask), mask[None], opset=opset)


@seeds
def test_a_float_mask_is_a_score_bias(seed: int) -> None:
    draw = rng(seed)
    bias = draw.normal(size=(6, 4, 5))
    assert_agreement(with_feature(random_case(draw), score_bias=bias), bias[None])


@seeds
def test_minus_infinity_in_a_float_mask_is_a_mask(seed: int) -> None:
    draw = rng(seed)
    mask, bias = draw.random((6, 4, 5)) < 0.6, draw.normal(size=(6, 4, 5))
    mask[..., 0] = True
    case = with_feature(random_case(draw), score_bias=bias, mask=mask)
    assert_agreement(case, np.where(mask, bias, -np.inf)[None])


@seeds
def test_alibi_as_a_float_mask_by_loops(seed: int) -> None:
    case = with_feature(random_case(rng(seed)), alibi={})
    bias = np.zeros((6, 4, 5))
    for head in range(6):
        for row in range(4):
            for key in range(5):  # the last query stands at the last key, one farther than its row
                bias[head, row, key] = -(2.0 ** (-8 * (head + 1) / 6)) * abs(row + 1 - key)
    assert_agreement(case, bias[None])


@seeds
@sizes_of_queries
def test_upper_left_causality_is_what_onnx_does_without_a_cache(seed: int, sizes: dict[str, int]) -> None:
    assert_agreement(with_feature(random_case(rng(seed), **sizes), causal="upper-left"), is_causal=1)


@seeds
@pytest.mark.parametrize(("rows", "cached"), [(3, 2), (1, 4), (4, 1)])
def test_lower_right_causality_is_what_onnx_does_with_a_cache(seed: int, rows: int, cached: int) -> None:
    case = with_feature(random_case(rng(seed), Tq=rows, Tk=rows + cached), causal="lower-right")
    assert_agreement(case, cached=cached, is_causal=1)


@seeds
def test_lower_right_and_upper_left_differ_for_onnx_too(seed: int) -> None:
    case = with_feature(random_case(rng(seed)), causal="lower-right")
    with pytest.raises(AssertionError):
        assert_agreement(case, is_causal=1)


@seeds
@sizes_of_queries
@pytest.mark.parametrize("window", [(1, 1), (0, 2), (2, None), (None, 0)])
def test_a_window_upper_left_by_the_attributes_of_onnx(seed: int, sizes: dict[str, int], window: Any) -> None:
    case = random_case(rng(seed), **sizes)
    mask = within(case, 0, *window)
    if not mask.any(axis=-1).all():
        mask[~mask.any(axis=-1)] = True  # no such row is asked for
        case = with_feature(case, mask=np.broadcast_to(mask, case.scores_shape).copy())
        assert_agreement(case, mask)
        return
    # Here `causal` is what says upper-left: a window alone is lower-right.
    case = with_feature(case, causal="upper-left", window=window)
    left, right = (-1 if side is None else side for side in window)
    assert_agreement(case, is_causal=1, left_window_size=left, right_window_size=right)


@seeds
@pytest.mark.parametrize("window", [(1, 1), (0, 0), (2, None), (None, 1)])
def test_a_window_lower_right_with_a_cache(seed: int, window: Any) -> None:
    case = with_feature(random_case(rng(seed), Tq=3, Tk=5), window=window)
    left, right = (-1 if side is None else side for side in window)
    assert_agreement(case, cached=2, left_window_size=left, right_window_size=right)
    assert_agreement(case, within(case, 2, *window))


@seeds
@pytest.mark.parametrize("cap", [0.5, 2.0, 50.0])
def test_softcap(seed: int, cap: float) -> None:
    assert_agreement(with_feature(random_case(rng(seed)), softcap=cap), softcap=cap)


@seeds
def test_softcap_comes_before_the_mask_and_the_score_bias(seed: int) -> None:
    draw = rng(seed)
    mask, bias = draw.random((6, 4, 5)) < 0.6, draw.normal(size=(6, 4, 5))
    mask[..., 4] = True
    case = with_feature(random_case(draw), softcap=1.5, score_bias=bias, mask=mask)
    assert_agreement(case, np.where(mask, bias, -np.inf)[None], softcap=1.5)


@seeds
def test_all_of_it_at_once(seed: int) -> None:
    draw = rng(seed)
    bias = draw.normal(size=(6, 3, 5))
    case = random_case(draw, Tq=3, G=2, scale=0.5625)
    case = with_feature(case, softcap=2.5, score_bias=bias, causal="lower-right", window=(2, None))
    assert_agreement(case, bias[None], cached=2, is_causal=1, softcap=2.5, left_window_size=2)


@seeds
@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("dims", [2, 4, 6])
def test_rotary_embedding(seed: int, layout: str, dims: int) -> None:
    """ONNX rotates with tables of cosines and sines, which the test fills; the pairing of channels is ONNX's."""
    draw = rng(seed)
    case = random_case(draw, d_k=8)
    case = with_feature(case, rope={"layout": layout, "rotary_dims": dims, "base": 100.0})
    for condition in CONDITIONS:
        under = case.under(condition)
        turned = []
        for array, first in ((under.q + under.bQ[:, None], 1), (under.keys + under.bK[:, None], 0)):
            places = np.arange(array.shape[1]) + first
            angles = np.array([[place * 100.0 ** (-2 * t / dims) for t in range(dims // 2)] for place in places])
            tables = [np.cos(angles)[None], np.sin(angles)[None]]
            attributes = {"interleaved": int(layout == "interleaved"), "rotary_embedding_dim": dims}
            turned += evaluated("RotaryEmbedding", [array[None], *tables], **attributes)
        assert np.abs(turned[0][0] - CORE.queries(under)).max() <= LIMIT
        assert np.abs(turned[1][0] - CORE.keys(under)).max() <= LIMIT
        value = (under.values + under.bV[:, None])[None]
        output = evaluated("Attention", [*turned, value])[0]
        assert np.abs(output[0] - CORE(under).output).max() <= LIMIT


@seeds
@pytest.mark.parametrize(("kind", "operator"), [("rms", "RMSNormalization"), ("layer", "LayerNormalization")])
def test_norms(seed: int, kind: str, operator: str) -> None:
    """The gain is per head here, and per operator in ONNX: one call for each head. The eps are float32 in ONNX."""
    draw = rng(seed)
    case = random_case(draw)
    gains = {"q_gain": draw.normal(size=(6, 7)), "k_gain": draw.normal(size=(3, 7))}
    case = with_feature(case, qk_norm={"kind": kind, "eps": 2.0**-10, **gains}).under("qk")
    sides = ((case.q + case.bQ[:, None], "q_gain", CORE.queries), (case.keys + case.bK[:, None], "k_gain", CORE.keys))
    for array, gain, of_core in sides:
        for head, rows in enumerate(array):
            found = evaluated(operator, [rows, gains[gain][head]], epsilon=2.0**-10, axis=-1)[0]
            assert np.abs(found - of_core(case)[head]).max() <= LIMIT


@seeds
def test_a_length_of_one(seed: int) -> None:
    """`LpNormalization` has no eps: with 1e-300 there is none here either."""
    case = with_feature(random_case(rng(seed)), qk_norm={"kind": "l2", "eps": 1e-300}).under("qk")
    found = evaluated("LpNormalization", [case.q + case.bQ[:, None]], axis=-1, p=2)[0]
    assert np.abs(found - CORE.queries(case)).max() <= LIMIT
