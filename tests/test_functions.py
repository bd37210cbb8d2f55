"""Functions of arrays under test: what they are asked, and what becomes of what they return."""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import numpy as np
import pytest
from making import INVARIANTS, PEER, TOLERANCE, random_case, rng

from verify_attention import resources
from verify_attention.cases import load_cases
from verify_attention.engine import judge, run_case
from verify_attention.functions import OPTIONS, Asked, arguments_of, named, strangers
from verify_attention.kernel import attention
from verify_attention.model import Case, Posed, precision
from verify_attention.pipeline import CORE

ALL = frozenset(OPTIONS)
CASES = load_cases([resources.folder("cases")])
OUTPUT = INVARIANTS["agrees-with-the-core"]


def featured(**features: Any) -> Case:
    return random_case(rng(3), bV=None, bQ=np.zeros((6, 7)), bK=np.zeros((3, 7)), features=features)


# What a function is asked


def test_a_plain_case_without_biases_is_three_arrays_with_a_batch_of_one():
    given = arguments_of(featured(), ALL)
    assert {name: value.shape for name, value in given.items()} == {
        "q": (1, 6, 4, 7),
        "k": (1, 3, 5, 7),
        "v": (1, 3, 5, 2),
    }


def test_only_what_a_case_uses_is_passed():
    case = random_case(rng(4))
    assert arguments_of(case, ALL).keys() == {"q", "k", "v", "bQ", "bK", "bV"}
    assert arguments_of(case.under("k"), ALL).keys() == {"q", "k", "v", "bK", "bV"}
    assert arguments_of(case.under("none").but(bV=None), ALL).keys() == {"q", "k", "v"}
    assert arguments_of(case.under("none").but(posed=Posed(zeros=True)), ALL).keys() >= {"bQ", "bK"}
    assert "scale" not in arguments_of(case.but(scale=1 / math.sqrt(7)), ALL)
    assert arguments_of(case.but(scale=0.25), ALL)["scale"] == 0.25


def test_a_bias_without_a_name_is_added_beforehand():
    case = random_case(rng(5))
    given = arguments_of(case, frozenset({"bK"}))
    assert given.keys() == {"q", "k", "v", "bK"}
    np.testing.assert_array_equal(given["q"][0, 2, 3], case.q[2, 3] + case.bQ[2])
    np.testing.assert_array_equal(given["k"][0], case.keys)
    np.testing.assert_array_equal(given["v"][0, 1, 4], case.values[1, 4] + case.bV[1])


def test_features_are_said_in_the_interface_s_words():
    mask = rng(1).random((6, 4, 5)) < 0.8
    given = arguments_of(featured(mask=mask, causal="upper-left", window=(2, None), softcap=3.0), ALL)
    assert (given["causal"], given["window"], given["softcap"]) == ("upper-left", (2, None), 3.0)
    np.testing.assert_array_equal(given["mask"], mask[None])
    np.testing.assert_array_equal(arguments_of(featured(softmax_plus_one=True), ALL)["sink"], np.zeros(6))
    np.testing.assert_array_equal(arguments_of(featured(sink=np.arange(6.0)), ALL)["sink"], np.arange(6.0))


def test_slopes_are_a_score_bias():
    slopes = np.array([1.0, 0.5, 0.25, 2.0, 4.0, 0.125])
    added = arguments_of(featured(alibi={"slopes": slopes}, score_bias=np.ones((1, 1, 5))), ALL)["score_bias"]
    # The last of four queries stands at the last of five keys, so that the first stands at key 1.
    np.testing.assert_array_equal(added[0, 1, 0], 1 - 0.5 * np.array([1, 0, 1, 2, 3]))
    np.testing.assert_array_equal(added[0, 4, 3], 1 - 4 * np.array([4, 3, 2, 1, 0]))


def test_key_shifts_are_in_the_keys():
    shifts = rng(2).normal(size=(3, 5, 7))
    case = random_case(rng(6), features={"key_shifts": shifts})
    np.testing.assert_array_equal(arguments_of(case.under("k"), ALL)["k"][0], case.keys + shifts)
    np.testing.assert_array_equal(arguments_of(case.under("q"), ALL)["k"][0], case.keys)


def test_a_rotation_always_has_positions():
    (case,) = load_cases(f"{resources.folder('cases')}/implementations/each-option.yaml::rope-half")
    rope = arguments_of(case, ALL)["rope"]
    assert {name: value for name, value in rope.items() if name not in {"q_positions", "k_positions"}} == {
        "base": 100.0,
        "layout": "half",
        "rotary_dims": 4,
    }
    np.testing.assert_array_equal(rope["q_positions"], [2, 3, 4])  # three queries, five keys
    np.testing.assert_array_equal(rope["k_positions"], [0, 1, 2, 3, 4])


def test_values_that_are_not_given_are_the_identity():
    given = arguments_of(random_case(rng(7), values=None, bV=None), ALL)
    np.testing.assert_array_equal(given["v"], np.broadcast_to(np.eye(5), (1, 3, 5, 5)))


def test_samples_are_stacked_in_their_seats():
    one, other, third = (featured(mask=rng(seed).random((6, 4, 5)) < 0.9) for seed in (1, 2, 3))
    given = arguments_of(one.but(posed=Posed((other, third), seat=1)), ALL)
    np.testing.assert_array_equal(given["q"], np.stack([other.q, one.q, third.q]))
    masks = [each.features["mask"] for each in (other, one, third)]
    np.testing.assert_array_equal(given["mask"], np.stack(masks))


def test_a_block_of_a_large_case_gets_a_mask_in_the_place_of_causality():
    """Its rows do not stand where a function would place them."""
    draw = rng(8)
    case = random_case(draw, H=2, G=1, Tq=700, Tk=800, d_k=2, features={"causal": "lower-right"})
    asked: list[dict[str, Any]] = []

    def spying(q: Any, k: Any, v: Any, **options: Any) -> Any:
        asked.append(options)
        return attention(q, k, v, **options)

    assert case.in_blocks
    assert judge(OUTPUT, case, Asked(spying)).status == "pass"
    assert all("causal" not in options for options in asked)
    assert {options["mask"].shape[1] for options in asked} == {1}


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("float64", "float64"), ("float32", "float32"), ("float16", "float16"), ("bfloat16", "float32")],
)
def test_arrays_have_the_dtype(dtype, kind):
    given = arguments_of(random_case(rng(9), features={"sink": np.zeros(6)}).but(precision=precision(dtype)), ALL)
    assert {value.dtype.name for value in given.values()} == {kind}


LAID = {
    "strided": lambda array: array.strides[-1] == 2 * array.itemsize,
    "transposed": lambda array: array.strides[1] < array.strides[2],
    "broadcast": lambda array: array.strides[0] == 0,
}


@pytest.mark.parametrize("layout", LAID)
def test_arrays_lie_as_the_layout_says_and_hold_the_same_numbers(layout):
    seen: list[dict[str, Any]] = []

    def spying(q: Any, k: Any, v: Any, **options: Any) -> Any:
        seen.append({"q": q, "k": k, "v": v, **options})
        return attention(q, k, v, **options)["output"]

    case = featured(mask=np.broadcast_to(rng(1).random((1, 4, 5)) < 0.8, (6, 4, 5)))
    company = (case,) if layout == "broadcast" else ()
    Asked(spying)(case.but(posed=Posed(company, layout=layout)))
    given = seen[0]
    assert all(LAID[layout](given[name]) for name in "qkv")
    np.testing.assert_array_equal(given["k"][0], case.keys)
    np.testing.assert_array_equal(np.broadcast_to(given["mask"], (1, 6, 4, 5))[0], case.features["mask"])
    assert given["mask"].shape[:2] == ((1, 1) if layout == "broadcast" else (1, 6))


# What a signature names


def test_a_signature_says_what_can_be_asked():
    assert named(attention) == ALL
    assert named(lambda q, k, v, **rest: None) == ALL
    assert named(lambda q, k, v: None) == frozenset()
    assert named(lambda q, k, v, mask=None, *, bK=None, strange=1: None) == {"mask", "bK"}
    assert named(max) == frozenset()


def plain(q, k, v, *, scale=None):
    return attention(q, k, v, scale=scale)["output"]


@pytest.mark.parametrize("option", sorted(ALL - {"scale", "bQ", "bK", "bV"}))
def test_what_a_signature_does_not_name_is_skipped_with_that_reason(option):
    name = {"window": "window", "rope": "rope-half", "score_bias": "score-bias"}.get(option, option)
    (case,) = load_cases(f"{resources.folder('cases')}/implementations/each-option.yaml::{name}")
    finding = judge(OUTPUT, case, Asked(plain))
    assert (finding.status, finding.reason) == ("skipped", f"not offered: its signature does not name {option}")


@pytest.mark.parametrize("case", [case for case in CASES if case.features], ids=lambda case: case.id)
def test_a_right_function_is_never_blamed(case):
    """What the interface cannot say is skipped, in these words; everything else is really asked."""
    for finding in run_case(case, PEER, INVARIANTS.values(), TOLERANCE).findings:
        assert finding.status in {"pass", "skipped"}, finding
        if "not offered" in (finding.reason or "") and finding.invariant == OUTPUT.name:
            assert finding.reason.startswith("not offered: the interface of a function has ")


# Answers


def crash(returned: Any) -> str:
    finding = judge(OUTPUT, featured(), Asked(lambda q, k, v: returned))
    assert finding.status == "crashed"
    return str(finding.reason)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "returned NoneType as output, expected a numpy array of shape (1, 6, 4, 2)"),
        ([[1.0]], "returned list as output, expected a numpy array of shape (1, 6, 4, 2)"),
        (np.ma.zeros((1, 6, 4, 2)), "returned numpy.MaskedArray as output, expected a numpy array"),
        (np.zeros((6, 4, 2)), "returned output of shape (6, 4, 2), expected (1, 6, 4, 2)"),
        (np.zeros((1, 6, 4, 2), complex), "returned complex128 numbers as output, expected real ones"),
        (np.full((1, 6, 4, 2), None), "returned object numbers as output, expected real ones"),
        ({}, "returned a mapping with nothing, expected output and any of weights, scores, lse"),
        ({"weights": np.zeros((1, 6, 4, 5))}, "returned a mapping with weights, expected output and any of"),
        ({"output": np.zeros((1, 6, 4, 2)), "attn": 1}, "returned a mapping with output, attn, expected output and"),
        (
            {"output": np.zeros((1, 6, 4, 2)), "lse": np.zeros((1, 6))},
            "returned lse of shape (1, 6), expected (1, 6, 4)",
        ),
    ],
)
def test_what_cannot_be_used_is_said_with_what_was_expected(returned, said):
    assert crash(returned).startswith(said)


def test_an_exception_is_a_crash_with_its_type_and_message():
    def raising(q, k, v):
        raise ValueError("head size 7 is not a multiple of 8")

    finding = judge(OUTPUT, featured(), Asked(raising))
    assert finding.status == "crashed"
    said = r"ValueError: head size 7 is not a multiple of 8 \(test_functions\.py:\d+ in raising\)"
    assert re.fullmatch(said, finding.reason)


def test_leaving_is_a_crash():
    def leaving(q, k, v):
        raise SystemExit(0)

    assert judge(OUTPUT, featured(), Asked(leaving)).reason.startswith("SystemExit: 0 (test_functions.py:")


def test_what_is_not_implemented_is_skipped_with_its_message():
    def lazy(q, k, v):
        raise NotImplementedError("no float64")

    finding = judge(OUTPUT, featured(), Asked(lazy))
    assert (finding.status, finding.reason) == ("skipped", "not offered: no float64")


def test_nan_is_an_answer_that_fails():
    finding = judge(OUTPUT, featured(), Asked(lambda q, k, v: np.full((*q.shape[:3], v.shape[3]), np.nan)))
    assert finding.status == "fail"


def test_a_function_gets_copies_and_may_answer_from_its_own_memory():
    kept = np.zeros((8, 16, 16, 16))

    def reusing(q, k, v, **options):
        result = attention(q, k, v, **options)["output"]
        q[...] = 0.0
        place = tuple(slice(0, length) for length in result.shape)
        kept[place] = result
        return kept[place]

    case = random_case(rng(10))
    before = case.q.copy()
    broken = {
        finding.invariant
        for finding in run_case(case, Asked(reusing), INVARIANTS.values(), TOLERANCE).findings
        if finding.status not in {"pass", "skipped"}
    }
    assert broken == {"arguments-are-left-as-they-were"}
    np.testing.assert_array_equal(case.q, before)


# Weights that are not shown


def test_weights_are_read_through_the_identity():
    case = random_case(rng(11))
    np.testing.assert_allclose(
        Asked(lambda q, k, v, **o: attention(q, k, v, **o)["output"])(case).weights, CORE(case).weights, atol=1e-14
    )


def test_a_function_that_cannot_do_values_so_wide_shows_no_weights():
    def narrow(q, k, v, **options):
        if v.shape[3] > 4:
            raise NotImplementedError("no more than four channels")
        return attention(q, k, v, **options)["output"]

    finding = judge(INVARIANTS["weights-sum-to-one"], random_case(rng(12)), Asked(narrow))
    assert (finding.status, finding.reason) == ("skipped", "not shown: the implementation does not show its weights")
    assert judge(OUTPUT, random_case(rng(12)), Asked(narrow)).status == "pass"


def test_what_a_function_prints_is_no_result(capsys):
    def chatty(q, k, v):
        sys.stdout.write("hello")
        return attention(q, k, v)["output"]

    Asked(chatty)(featured())
    out, err = capsys.readouterr()
    assert (out, "hello" in err) == ("", True)


def test_axes_that_look_exchanged_are_said():
    assert crash(np.zeros((1, 4, 6, 2))).endswith("expected (1, 6, 4, 2); axes 1 and 2 look exchanged")


def test_parameters_that_no_option_gives_are_known():
    def own(q, k, v, attn_mask=None, *, is_causal=False, dropout, mask=None):
        return v

    assert strangers(own) == (["attn_mask", "is_causal"], ["dropout"])
    assert strangers(attention) == ([], [])
