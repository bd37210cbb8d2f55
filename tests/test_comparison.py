"""The helpers that compare are tested with a good and a bad input each: a comparison that cannot fail is none."""

import math

import numpy as np
import pytest
from making import TOLERANCE, article_case

from verify_attention import comparison
from verify_attention.model import Sides, Tolerance

INF, NAN = math.inf, math.nan

# Deviation, limit, bound: what is observed, and the status under holds, within-rounding, breaks.
STATUSES = [
    (0.0, 1e-12, 1e-15, "holds", "pass", "pass", "fail"),
    (1e-12, 1e-12, 1e-15, "holds", "pass", "pass", "fail"),
    (2e-12, 1e-12, 1e-15, "breaks", "fail", "fail", "inconclusive"),
    (2e-12, 1e-12, 3e-12, "within-rounding", "inconclusive", "pass", "inconclusive"),
    (9e-7, 1e-12, 1e-15, "breaks", "fail", "fail", "inconclusive"),
    (1e-6, 1e-12, 1e-15, "breaks", "fail", "fail", "pass"),
    (1e-3, 1e-12, 1e-2, "within-rounding", "inconclusive", "pass", "inconclusive"),
    (1e-3, 1e-12, INF, "within-rounding", "inconclusive", "inconclusive", "inconclusive"),
    (NAN, 1e-12, 1e-15, "breaks", "fail", "fail", "fail"),
    (INF, 1e-12, 1e-15, "breaks", "fail", "fail", "fail"),
    (NAN, 1e-12, INF, "within-rounding", "inconclusive", "inconclusive", "inconclusive"),
    (0.0, 0.0, 0.0, "holds", "pass", "pass", "fail"),
    (5e-324, 0.0, 0.0, "breaks", "fail", "fail", "inconclusive"),
]


@pytest.mark.parametrize(("deviation", "limit", "bound", "observed", "holds", "rounding", "breaks"), STATUSES)
def test_status_follows_from_the_numbers(deviation, limit, bound, observed, holds, rounding, breaks):
    assert comparison.observe(deviation, limit, bound) == observed
    found = [comparison.status(one, deviation, limit, bound) for one in ("holds", "within-rounding", "breaks")]
    assert found == [holds, rounding, breaks]


def sides(left, right, **given):
    left, right = (np.array([[x]], dtype=float) if np.ndim(x) == 1 else np.array(x, dtype=float) for x in (left, right))
    return Sides("test", left, right, **{"rounding": 0.0} | given)


def measured(left, right, expected="holds", tolerance=TOLERANCE, **given):
    with np.errstate(all="ignore"):
        return comparison.measure(sides(left, right, **given), tolerance, expected, article_case())


@pytest.mark.parametrize(
    ("left", "right", "limit"),
    [(1000.0, 1000.0, 1e-9), (-1000.0, 10.0, 1e-9), (10.0, -1000.0, 1e-9), (1e-3, 0.0, 1e-12), (0.0, 0.0, 1e-12)],
)
def test_the_limit_is_symmetric_in_the_larger_side(left, right, limit):
    assert float(comparison.limit_of(TOLERANCE, left, right)) == pytest.approx(limit, rel=1e-15)


def test_the_decisive_element_has_the_largest_deviation_in_its_limits():
    found = measured([1e6, 1.0, 2.0], [1e6 + 5e-7, 1.0 + 4e-12, 2.0])
    assert (found.worst.position, found.observed) == (1, "breaks")  # 4 limits before half a limit
    assert found.deviation == pytest.approx(4e-12, rel=1e-3)


def test_one_element_beyond_rounding_decides_before_a_larger_one_within_it():
    found = measured([1.0, 1.0], [1.0 + 1e-6, 1.0 + 1e-11], rounding=np.array([[[1e-5, 1e-12]]]))
    assert (found.worst.position, found.observed) == (1, "breaks")


def test_a_control_is_decided_by_the_largest_deviation():
    found = measured([1e9, 1.0], [1e9 + 1.0, 1.0 + 1e-5], expected="breaks")
    assert (found.worst.position, found.deviation) == (0, 1.0)
    assert measured([1e9, 1.0], [1e9 + 1.0, 1.0 + 1e-5]).worst.position == 1


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("place", [0, 1])
def test_what_is_not_a_number_never_holds_on_either_side(bad, place):
    pair = [[0.5, bad], [0.5, 0.5]]
    assert measured(pair[place], pair[1 - place]).observed == "breaks"


def test_equal_infinities_are_equal():
    assert measured([0.5, INF], [0.5, INF]).observed == "holds"
    assert measured([0.5, INF], [0.5, -INF]).observed == "breaks"


def test_an_overflow_that_the_bound_foretold_is_not_judged():
    assert measured([0.5, INF], [0.5, INF], rounding=np.array([[[0.0, INF]]])).observed == "within-rounding"
    assert measured([0.5, NAN], [0.5, NAN], rounding=np.array([[[0.0, INF]]])).observed == "within-rounding"


def test_only_elements_that_count_are_judged():
    counts = np.array([[[True, False]]])
    assert measured([1.0, 1.0], [1.0, 2.0], counts=counts).observed == "holds"
    assert measured([1.0, 1.0], [2.0, 1.0], counts=counts).observed == "breaks"
    assert measured([1.0, 1.0], [2.0, 1.0], counts=np.array([[[False, False]]])) is None


def test_a_tolerance_of_zero_asks_for_equality():
    exactly = Tolerance(0.0, 0.0)
    assert measured([1.0, 0.0], [1.0, 0.0], tolerance=exactly).observed == "holds"
    assert measured([1.0, 0.0], [1.0, 5e-324], tolerance=exactly).observed == "breaks"


def test_sides_of_different_shape_are_a_defect():
    with pytest.raises(ValueError, match="left is"):
        measured([1.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("moves", "told_apart"), [(1e-12, False), (1.1e-12, True), (0.0, False), (-3.0, True), (None, True)]
)
def test_an_equation_counts_where_doing_nothing_would_be_told_apart(moves, told_apart):
    given = None if moves is None else np.full((1, 1), moves)
    assert bool(comparison.told_apart(sides([0.0], [0.0], moves=given), TOLERANCE).all()) is told_apart


def test_with_a_tolerance_of_everything_nothing_is_told_apart():
    everything = Tolerance(1.0, 1.0)
    assert not comparison.told_apart(sides([0.0], [1e6], moves=np.full((1, 1), 1e6)), everything).any()


def test_only_elements_that_count_tell_apart():
    moves, counts = np.array([[[0.0, 1.0]]]), np.array([[[True, False]]])
    assert not comparison.told_apart(sides([0.0, 0.0], [0.0, 0.0], moves=moves, counts=counts), TOLERANCE).any()
    assert not comparison.told_apart(sides([0.0], [0.0], counts=np.array([[[False]]])), TOLERANCE).any()


def test_an_own_limit_is_what_tells_apart():
    moves = np.full((1, 1), 1e-8)
    assert comparison.told_apart(sides([0.0], [0.0], moves=moves, limit=1e-9), TOLERANCE).all()
    assert not comparison.told_apart(sides([0.0], [0.0], moves=moves, limit=1e-7), TOLERANCE).any()


def test_a_bound_that_overflowed_to_nan_bounds_nothing():
    sides = Sides("x", np.array([[np.nan, 1.0]]), np.array([[np.nan, 1.0]]), rounding=np.array([[np.nan, 1e-15]]))
    found = comparison.measure(sides, Tolerance(), "holds", article_case())
    assert (found.observed, found.rounding_bound) == ("within-rounding", np.inf)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_where_everything_agrees_the_place_that_is_named_is_finite():
    left = np.array([[[-np.inf, 3.0, 2.0]]])
    found = comparison.measure(Sides("x", left, left.copy(), rounding=1e-15), TOLERANCE, "holds", article_case())
    assert (found.worst.position, found.deviation, found.limit) == (1, 0.0, 3e-12)
    hidden = np.full((1, 1, 3), -np.inf)
    found = comparison.measure(Sides("x", hidden, hidden.copy(), rounding=0.0), TOLERANCE, "holds", article_case())
    assert (found.worst.position, found.deviation, found.limit) == (0, 0.0, 0.0)
