from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import random_case, rng

from verify_attention import terms
from verify_attention.model import CONDITIONS
from verify_attention.products import exact_product

FLOATS = st.floats(-1e100, 1e100, allow_nan=False, allow_subnormal=False)


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 6).flatmap(lambda d: st.tuples(*[st.lists(FLOATS, min_size=d, max_size=d)] * 2)))
def test_an_exact_product_is_the_rational_sum_rounded(vectors):
    left, right = (np.array(vector) for vector in vectors)
    found = float(exact_product(left[None], right[:, None])[0, 0])
    exact = sum((Fraction(a) * Fraction(b) for a, b in zip(left, right, strict=True)), Fraction(0))
    size = Fraction(float(np.abs(left).max())) * Fraction(float(np.abs(right).max())) * len(left)
    # One rounding of the result, what lies below the last slice, and what lies below the smallest float.
    spare = abs(exact) * Fraction(1, 2**52) + size * Fraction(1, 2**140) + Fraction(1, 2**1074)
    assert abs(Fraction(found) - exact) <= spare


def test_cancellation_leaves_what_a_plain_product_loses():
    left, right = np.array([[1e16, 1.0, -1e16]]), np.array([[1.0], [1.0], [1.0]])
    assert exact_product(left, right)[0, 0] == 1.0
    assert (left * right.T).sum() != 1.0


def test_the_order_of_the_channels_does_not_matter():
    draw = rng(1)
    left, right = draw.normal(size=(3, 1000)) * 10.0 ** draw.uniform(-8, 8, 1000), draw.normal(size=(1000, 2))
    order = draw.permutation(1000)
    assert np.array_equal(exact_product(left, right), terms.exact_product(left[:, order], right[order]))


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("shifted", [False, True])
def test_the_four_terms_add_up_to_the_formula(condition, shifted):
    draw = rng(2)
    case = random_case(draw, features={"key_shifts": draw.normal(size=(3, 5, 7))} if shifted else {})
    found = terms.scores(case, condition)
    for head, row, key in np.ndindex(6, 4, 5):
        query = case.q[head, row] + (case.bQ[head] if "q" in condition else 0)
        vector = case.keys[head // 2, key]
        if "k" in condition:
            vector = vector + case.bK[head // 2] + (case.features["key_shifts"][head // 2, key] if shifted else 0)
        assert found[head, row, key] == pytest.approx(float(query @ vector) * 7**-0.5, abs=1e-13)


def test_row_shifts_are_the_k_bias_products():
    case = random_case(rng(3))
    for head, row in np.ndindex(6, 4):
        bias = case.bK[head // 2]
        assert terms.row_shift(case, "k")[head, row] == pytest.approx(case.q[head, row] @ bias * 7**-0.5, abs=1e-14)
        both = (case.q[head, row] + case.bQ[head]) @ bias * 7**-0.5
        assert terms.row_shift(case, "qk")[head, row] == pytest.approx(both, abs=1e-14)
