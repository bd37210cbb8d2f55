"""The rounding bound promises that correct float64 code stays below it; here correct code is held to it."""

from collections import Counter

import numpy as np
import pytest
from featured import wild
from making import INVARIANTS, TOLERANCE, article_case, random_case, rng, wild_cases
from slow_route import slow_attention
from variations import FEATURED, VARIATIONS

from verify_attention import rounding
from verify_attention.engine import run, run_case
from verify_attention.model import CONTROL, Case, Precision
from verify_attention.pipeline import CORE

# The core's own sums are the same on both sides; another order of operations on one of them is what the bound is for.
SAME_SUMS = {"grouped-heads-equal-repeated-heads", "heads-do-not-talk", "query-rows-permute"}


# Claims about biases that are asked of some cases only.
KINDS = {"inert-query-bias-leaves-weights", "per-key-shift-moves-score-gaps"}


def test_no_equation_exceeds_its_bound_in_20000_random_cases():
    draw = rng(20_000)
    beyond_tolerance, largest, checked = Counter(), Counter(), Counter()
    cases = [case for _ in range(400) for case in wild_cases(draw, 50)]
    assert len(cases) == 20_000
    # Claims about structure have their turn below, where cases have features.
    about_biases = [
        one
        for one in INVARIANTS.values()
        if (one.not_asked(random_case(rng(0))) is None and not one.of_others) or one.name in KINDS
    ]
    for report in run(cases, CORE, about_biases, TOLERANCE, jobs=2):
        for finding in report.findings:
            assert finding.status in {"pass", "inconclusive", "skipped"}, finding
            if finding.checked and finding.rounding_bound < np.inf:
                checked[finding.invariant] += 1
                share = finding.deviation / finding.rounding_bound
                largest[finding.invariant] = max(largest[finding.invariant], share)
                beyond_tolerance[finding.invariant] += finding.observed == "within-rounding"
    # The test had something to find: bounds were needed, and they are no larger than 250 times the worst case.
    assert beyond_tolerance["key-bias-leaves-weights"] > 2000
    assert beyond_tolerance["key-bias-leaves-output"] > 2000
    assert beyond_tolerance["query-bias-moves-score-gaps"] > 2000
    assert beyond_tolerance["lse-moves-with-the-key-bias"] > 50
    assert {name: share for name, share in largest.items() if share < 0.004 and name not in SAME_SUMS} == {}
    always = {one.name for one in about_biases} - KINDS
    assert {name for name in always if checked[name] < 1000} == set()


@pytest.mark.parametrize(("implementation", "count"), [(CORE, 1500), (slow_attention, 500)], ids=["core", "slow"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers of any size may overflow
def test_no_equation_exceeds_its_bound_with_features(implementation, count):
    """With up to four features each, and numbers of any size in all that they have."""
    beyond_tolerance, checked, features = Counter(), Counter(), Counter()
    for report in run(list(wild(rng(count), count)), implementation, INVARIANTS.values(), TOLERANCE, jobs=2):
        features.update(report.case.features.keys())
        for finding in report.findings:
            assert finding.status in {"pass", "inconclusive", "skipped"}, (sorted(report.case.features), finding)
            if finding.checked and finding.rounding_bound < np.inf:
                # A bound is a bound below the tolerance too.
                assert finding.deviation <= finding.rounding_bound, (sorted(report.case.features), finding)
                checked[finding.invariant] += 1
                beyond_tolerance[finding.invariant] += finding.observed == "within-rounding"
    assert min(features.values()) > count / 20
    assert sum(beyond_tolerance.values()) > count / 10
    assert beyond_tolerance["output-follows-the-formula"] > count / 100
    assert checked["scores-follow-the-formula"] > count * 0.9


@pytest.mark.parametrize("name", FEATURED)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_correct_code_exceeds_a_bound_with_features(name):
    for case in wild(rng(22), 60):
        for finding in run_case(case, FEATURED[name], INVARIANTS.values(), TOLERANCE).findings:
            assert finding.status in {"pass", "inconclusive", "skipped"}, (sorted(case.features), finding)


@pytest.mark.parametrize("name", FEATURED)
def test_no_correct_code_exceeds_a_bound_where_hidden_scores_are_filled_far_above_the_others(name):
    """There the fill is the row's maximum: what rounding does to it is not among what it does to products."""
    beyond_tolerance = 0
    for seed in range(8):
        draw = rng(seed)
        case = random_case(draw, H=4, G=2, Tq=3, Tk=5, d_k=6, d_v=7)
        fill = float(draw.uniform(1e2, 1e6))
        for finding in run_case(
            case.but(features={"causal": "lower-right", "fill": fill}), FEATURED[name], INVARIANTS.values(), TOLERANCE
        ).findings:
            assert finding.status in {"pass", "inconclusive", "skipped"}, (fill, finding)
            beyond_tolerance += finding.observed == "within-rounding"
    assert beyond_tolerance


@pytest.mark.parametrize("name", VARIATIONS)
def test_no_correct_code_exceeds_a_bound_whatever_its_order_of_operations(name):
    draw = rng(21)
    for case in (case for _ in range(150) for case in wild_cases(draw, 1)):
        for finding in run_case(case, VARIATIONS[name], INVARIANTS.values(), TOLERANCE).findings:
            assert finding.status in {"pass", "inconclusive", "skipped"}, finding


def test_a_bound_a_thousand_times_smaller_would_be_exceeded(monkeypatch):
    """The test above can fail."""
    monkeypatch.setattr(Precision, "lost", lambda own, units, stored=0: units * own.unit / 1000)
    monkeypatch.setattr(Precision, "accumulated", lambda own, count: count * own.unit / 1000)
    draw = rng(1)
    statuses = Counter(
        finding.status
        for case in (case for _ in range(100) for case in wild_cases(draw, 1))
        for finding in run_case(case, CORE, INVARIANTS.values(), TOLERANCE).findings
    )
    assert statuses["fail"] > 50


def test_bounds_are_larger_than_the_errors_of_the_trace_itself():
    """Scores, weights, output and LSE each stay within their own bound of what longdouble-free exact sums give."""
    import mpmath

    mpmath.mp.dps = 60
    draw = rng(2)
    for _ in range(25):
        case = wild_cases(draw, 1)[0].but(features={})
        case = (
            case
            if case.values is not None
            else case.but(values=np.ones((len(case.keys), case.keys.shape[1], 1)), bV=None)
        )
        trace = CORE(case)
        head, row = len(case.q) - 1, 0
        query = [mpmath.mpf(a) + mpmath.mpf(b) for a, b in zip(case.q[head, row], case.bQ[head], strict=True)]
        keys = [[mpmath.mpf(a) + mpmath.mpf(b) for a, b in zip(key, case.bK[-1], strict=True)] for key in case.keys[-1]]
        scores = [mpmath.fdot(query, key) * case.scale for key in keys]
        top = max(scores)
        powers = [mpmath.exp(score - top) for score in scores]
        total = mpmath.fsum(powers)
        for key, score in enumerate(scores):
            assert abs(score - trace.scores[head, row, key]) <= rounding.scores(case)[head, row, 0]
            assert abs(powers[key] / total - trace.weights[head, row, key]) <= rounding.weights(case)[head, row, 0]
        assert abs(top + mpmath.log(total) - trace.lse[head, row]) <= rounding.lse(case)[head, row]
        bias = np.zeros(case.d_v) if case.bV is None else case.bV[-1]
        for channel in range(case.d_v):
            column = [mpmath.mpf(v) + mpmath.mpf(bias[channel]) for v in case.values[-1, :, channel]]
            output = mpmath.fdot(powers, column) / total
            assert abs(output - trace.output[head, row, channel]) <= rounding.output(case)[head, row, channel]


def test_the_article_s_bound_by_hand():
    """A_0 = (1·(1 + 3) + 0)/√2 for the row (1, 0) with |k| + |bK| ≤ (1 + 3, 1 + 2): the bound is γ_18 of it."""
    case = article_case().under("k")
    unit = 2.0**-53
    assert rounding.scores(case)[0, 0, 0] == pytest.approx(18 * unit * 4 / 2**0.5, rel=1e-9)


def test_a_bound_as_large_as_a_weight_promises_nothing():
    case = random_case(rng(3), bK=np.full((3, 7), 1e16))
    assert np.isinf(rounding.weights(case.under("k"))).all()
    assert np.isinf(rounding.output(case.under("k"))).all()


def overflowing() -> Case:
    return random_case(rng(4), q=np.full((6, 4, 7), 1e200), keys=np.full((3, 5, 7), 1e200))


def test_scores_that_overflow_are_inconclusive_and_never_pass_within_rounding():
    expect = dict.fromkeys(INVARIANTS, "within-rounding")
    for case in (overflowing(), overflowing().but(expect=expect)):
        statuses = {f.invariant: f.status for f in run_case(case, CORE, INVARIANTS.values(), TOLERANCE).findings}
        assert statuses["scores-follow-the-formula"] == "inconclusive"
        assert statuses["key-bias-leaves-weights"] == "inconclusive"
        assert statuses["weights-sum-to-one"] == "inconclusive"
        assert "fail" not in statuses.values()


def test_the_measured_trouble_with_a_fixed_tolerance():
    """Measured: 1e-12 alone fails correct code at |bK| = 1e10, and never at 1."""
    draw = rng(5)
    exceeded = {}
    for size in (1.0, 1e10):
        cases = [random_case(draw, bK=size * draw.normal(size=(3, 7))) for _ in range(50)]
        exceeded[size] = sum(
            np.abs(CORE(case.under("k")).weights - CORE(case.under("none")).weights).max() > 1e-12 for case in cases
        )
    assert exceeded[1.0] == 0
    assert exceeded[1e10] > 40


def test_control_margin():
    assert 1e6 * TOLERANCE.atol == CONTROL


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("size", [1e-160, 1e-80, 1e80, 1e160, 1e300])
def test_numbers_of_any_size_are_judged_honestly(size):
    """Squares, sums and exponentials overflow or vanish: what cannot be told is inconclusive, never a failure."""
    for case in wild(rng(7), 60):
        extreme = case.but(q=case.q * size, bQ=case.bQ * size, keys=case.keys * size)
        for finding in run_case(extreme, CORE, INVARIANTS.values(), TOLERANCE).findings:
            assert finding.status in {"pass", "inconclusive", "skipped"}, (sorted(case.features), finding)
