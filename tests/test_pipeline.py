from fractions import Fraction

import mpmath
import numpy as np
import pytest
from making import article_case, random_case, rng

from verify_attention.model import CONDITIONS, Column
from verify_attention.pipeline import CORE, softmax

mpmath.mp.dps = 50

# The article's table, section 4.
SCORES = {
    "none": (0.707107, 0, -0.707107),
    "q": (0.707107, 0.707107, -0.707107),
    "k": (2.828427, 2.121320, 1.414214),
    "qk": (1.414214, 1.414214, 0),
}
WEIGHTS = {
    "none": (0.575975, 0.283995, 0.140029),
    "q": (0.445808, 0.445808, 0.108383),
    "k": (0.575975, 0.283995, 0.140029),
    "qk": (0.445808, 0.445808, 0.108383),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_article_s_numbers(condition):
    trace = CORE(article_case().under(condition))
    assert np.round(trace.scores[0, 0], 6) == pytest.approx(SCORES[condition], abs=1e-12)
    assert np.round(trace.weights[0, 0], 6) == pytest.approx(WEIGHTS[condition], abs=1e-12)


def test_the_article_s_k_bias_moves_no_weight_at_all():
    case = article_case()
    difference = np.abs(CORE(case.under("k")).weights - CORE(case.under("none")).weights)
    assert difference.max() == 0.0


def test_the_article_s_k_bias_moves_every_score_by_three_over_root_two():
    case = article_case()
    shift = CORE(case.under("k")).scores - CORE(case.under("none")).scores
    assert shift == pytest.approx(np.full((1, 1, 3), 3 / 2**0.5), abs=1e-15)


def exact_trace(case, head, row):
    """Return scores, weights, output and LSE of one row in rationals and 50 digits: no numpy in it."""
    kv = head // (len(case.q) // len(case.keys))

    def fractions(vector):
        return [Fraction(float(x)) for x in vector]

    query = [a + b for a, b in zip(fractions(case.q[head, row]), fractions(case.bQ[head]), strict=True)]
    keys = [[a + b for a, b in zip(fractions(key), fractions(case.bK[kv]), strict=True)] for key in case.keys[kv]]
    products = [sum(a * b for a, b in zip(query, key, strict=True)) * Fraction(case.scale) for key in keys]
    scores = [mpmath.mpf(x.numerator) / x.denominator for x in products]
    total = mpmath.fsum(mpmath.exp(x) for x in scores)
    weights = [mpmath.exp(x) / total for x in scores]
    output = [
        mpmath.fsum(w * float(v) for w, v in zip(weights, column, strict=True)) + float(bias)
        for column, bias in zip(case.values[kv].T, case.bV[kv], strict=True)
    ]
    return scores, weights, output, mpmath.log(total)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_core_agrees_with_exact_arithmetic_in_every_head_and_row(condition):
    case = random_case(rng(3)).under(condition)
    trace = CORE(case)
    for head in range(len(case.q)):
        for row in range(case.q.shape[1]):
            scores, weights, output, lse = exact_trace(case, head, row)
            assert trace.scores[head, row] == pytest.approx([float(x) for x in scores], abs=1e-13)
            assert trace.weights[head, row] == pytest.approx([float(x) for x in weights], abs=1e-14)
            assert trace.output[head, row] == pytest.approx([float(x) for x in output], abs=1e-14)
            assert trace.lse[head, row] == pytest.approx(float(lse), abs=1e-13)


def test_scores_of_800_neither_overflow_nor_vanish():
    weights, lse = softmax(np.array([[800.0, 799.0, -800.0], [-800.0, -801.0, -2000.0]]))
    small = 1 / (1 + np.exp(1))  # the weight of the second of two scores that differ by 1
    assert weights == pytest.approx(np.array([[1 - small, small, 0.0], [1 - small, small, 0.0]]), abs=1e-15)
    assert lse == pytest.approx([800 + np.log1p(np.exp(-1)), -800 + np.log1p(np.exp(-1))], abs=1e-12)


def test_leading_axes_are_independent():
    case = random_case(rng(4))
    queries, keys = CORE.queries(case), CORE.keys(case)
    two = CORE.scores(case, np.stack([queries, 2 * queries]), np.stack([keys, keys]))
    assert np.array_equal(two[0], CORE.scores(case, queries, keys))
    assert np.allclose(two[1], 2 * two[0], rtol=1e-15, atol=0)


def test_identity_values_give_the_weights_as_output():
    given = random_case(rng(5), values=None, bV=None)
    explicit = given.but(values=np.broadcast_to(np.eye(5), (3, 5, 5)).copy())
    assert np.array_equal(CORE(given).output, CORE(given).weights)
    assert np.array_equal(CORE(explicit).output, CORE(given).output)


def test_inputs_are_read_only():
    case = random_case(rng(6))
    for array in (case.q, case.keys, case.bQ, case.bK, case.values, case.bV):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_conditions_switch_the_biases_and_the_key_shifts():
    shifts = rng(7).normal(size=(3, 5, 7))
    case = random_case(rng(7), features={"key_shifts": shifts})
    assert not case.under("none").bQ.any()
    assert not case.under("none").bK.any()
    assert case.under("q").key_shifts is None
    assert np.array_equal(case.under("q").bQ, case.bQ)
    assert np.array_equal(case.under("k").key_shifts, shifts)
    assert not case.under("k").bQ.any()
    assert np.array_equal(case.under("qk").bK, case.bK)
    assert case.under("k") is case.under("k")


def test_a_stage_of_features_that_is_swapped_runs_on_plain_attention_too():
    """What nobody declared would otherwise pass where nothing is declared."""
    case = random_case(rng(5))
    zero = CORE.but(columns=lambda given, _queries: [Column(np.zeros(given.scores_shape[:2]))])
    assert (zero(case).weights.sum(axis=-1) < 1).all()
    falling = CORE.but(change=lambda given, scores: scores - np.arange(given.keys.shape[1]))
    assert np.abs(falling(case).scores - CORE(case).scores).max() == 4.0
