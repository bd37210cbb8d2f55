"""Numbers that are not rounded, beside mpmath at 120 digits and calculations by hand."""

import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from verify_attention.exact import closed, elementary
from verify_attention.exact.arrays import NotExactError, array_of
from verify_attention.exact.closed import UNKNOWN, Closed
from verify_attention.exact.closed_form import CLOSED_FORM
from verify_attention.exact.quotients import BeyondError
from verify_attention.pipeline import softmax

flint = pytest.importorskip("flint")
DIGITS = 120


def rational(draw):
    return Fraction(draw.randint(-40, 40), draw.choice([1, 2, 4, 8, 3, 1024]))


def lifted(number):
    return mpmath.mpf(number.numerator) / number.denominator


def tree(draw, depth):
    """Return a random number in closed form, and the same by mpmath."""
    if depth == 0:
        number = rational(draw)
        return number, lifted(number)
    kind = draw.choice(["exp", "+", "-", "*", "/", "log"])
    if kind == "exp":
        number = rational(draw)
        return elementary.exp(number), mpmath.exp(lifted(number))
    (left, one), (right, other) = tree(draw, depth - 1), tree(draw, depth - 1)
    if kind == "log":
        if not isinstance(left, Fraction | Closed) or one <= 0:
            return left, one
        return elementary.log(left), mpmath.log(one)
    if kind == "/" and abs(other) < mpmath.mpf(10) ** -60:
        return left, one
    both = {"+": (left + right, one + other), "-": (left - right, one - other), "*": (left * right, one * other)}
    return both[kind] if kind in both else (closed.closed(left) / right, one / other)


@pytest.mark.parametrize("seed", range(8))
def test_arithmetic_in_closed_form_is_that_of_mpmath_at_120_digits(seed):
    draw, known = random.Random(seed), 0  # noqa: S311 - not for secrets
    with mpmath.workdps(DIGITS):
        for _ in range(250):
            number, expected = tree(draw, draw.randint(1, 4))
            if number is UNKNOWN:
                continue
            known += 1
            size = max(abs(expected), mpmath.mpf(10) ** -60)
            try:
                value, off = closed.enclosed(number, 60)
            except ArithmeticError:
                continue
            assert abs(mpmath.mpf(str(value)) - expected) <= mpmath.mpf(str(off)) + size * mpmath.mpf(10) ** -55
            direction = 0 if abs(expected) < mpmath.mpf(10) ** -100 else int(mpmath.sign(expected))
            try:
                assert closed.sign(number) == direction
            except BeyondError:  # a logarithm beside something that is not rational, which digits do not tell from 0
                assert number.inside is not None
                assert direction == 0
    assert known > 120


@pytest.mark.parametrize("seed", range(3))
def test_what_is_equal_in_another_form_is_found_to_be(seed):
    draw = random.Random(seed)  # noqa: S311 - not for secrets
    for _ in range(60):
        one, other, third = (elementary.exp(rational(draw)) + rational(draw) ** 2 + 1 for _ in range(3))
        # By hand: (a + b)·c = a·c + b·c,  (a/b)/(c/b) = a/c,  log(a·b) = log a + log b,  exp(r + log a) = exp(r)·a.
        assert closed.compared((one + other) * third, one * third + other * third) == 0
        assert closed.compared((one / other) / (third / other), one / third) == 0
        assert closed.compared(elementary.log(one * other), elementary.log(one) + elementary.log(other)) == 0
        r = rational(draw)
        assert closed.compared(elementary.exp(elementary.log(one) + r), elementary.exp(r) * one) == 0


def test_numbers_that_differ_in_the_ninetieth_digit_are_told_apart():
    tiny = Fraction(1, 10**90)
    one = elementary.exp(Fraction(1, 3))
    assert closed.compared(one, one + tiny) == -1
    assert closed.compared(elementary.exp(Fraction(1, 3) + tiny), one) == 1
    assert closed.sign(elementary.log(1 + elementary.exp(Fraction(-250)))) == 1
    assert f"{closed.difference(one + tiny, one):.1e}" == "1.0e-90"


def test_a_difference_too_small_for_a_float_is_still_one():
    share = elementary.exp(Fraction(-100_000))  # 10^−43429
    assert closed.sign(share) == 1
    assert closed.approximate(share) == 0.0
    assert f"{closed.difference(share + 1, Fraction(1)):.1e}" == "3.6e-43430"  # by mpmath: exp(−100000)
    assert closed.sign(elementary.exp(Fraction(100_000)) - 1) == 1


def test_what_is_beyond_the_closed_form_stays_so():
    one = elementary.exp(Fraction(1))
    for beyond in (
        elementary.exp(one),
        elementary.sqrt(Fraction(2)),
        elementary.cos(Fraction(1)),
        elementary.log(one + 1) * one,
    ):
        assert beyond is UNKNOWN
        assert (beyond + 1) is UNKNOWN
        assert (1 - beyond) is UNKNOWN
        with pytest.raises(BeyondError):
            closed.compared(beyond, one)
        for question in (lambda x: x < one, lambda x: x == x, lambda x: one != x, lambda x: x != 0):  # noqa: PLR0124 - the question is asked
            with pytest.raises(BeyondError):
                bool(question(beyond))
    assert elementary.log(one + 1) * elementary.log(one + 2) is UNKNOWN
    assert closed.sign(elementary.log(one + 1) + one) == 1  # no theorem says that it is not 0, but its digits do


def test_infinities_of_hidden_keys():
    assert elementary.exp(-math.inf) == 0
    assert Fraction(3) - math.inf == -math.inf
    assert elementary.exp(Fraction(1)) * -math.inf == -math.inf
    assert math.isnan(elementary.log(Fraction(-1)))
    assert elementary.log(Fraction(0)) == -math.inf
    assert elementary.exp(Fraction(1)) / math.inf == 0


def test_tanh_and_roots_by_hand():
    assert closed.compared(elementary.tanh(elementary.log(Fraction(3))), Fraction(4, 5)) == 0  # (9 − 1) / (9 + 1)
    assert elementary.sqrt(Fraction(9, 16)) == Fraction(3, 4)
    assert elementary.power(Fraction(4), Fraction(-1, 2)) == Fraction(1, 2)
    assert elementary.power(elementary.exp(Fraction(1)), Fraction(-2)) == elementary.exp(Fraction(-2))


def numbers(*rows):
    return array_of(CLOSED_FORM, np.array(rows, dtype=np.float64))


ROWS = numbers([0.1, 2.0, -1.0], [0.5, 0.5, 3.0])
TENTH = Fraction(0.1)  # as binary64 has it


@pytest.mark.parametrize(
    ("name", "made", "expected"),
    [
        ("a float from the left", 0.1 + ROWS[0], [2 * TENTH, 2 + TENTH, TENTH - 1]),
        ("an array of floats", np.full(3, 0.1) * ROWS[0], [TENTH**2, 2 * TENTH, -TENTH]),
        ("a whole number below", ROWS[0] / 3, [TENTH / 3, Fraction(2, 3), Fraction(-1, 3)]),
        ("np.where", np.where([True, False, True], ROWS[0], 0.1) / 7, [TENTH / 7, TENTH / 7, Fraction(-1, 7)]),
        ("np.concatenate", np.concatenate([ROWS[0, :2], [1.0]]) / 3, [TENTH / 3, Fraction(2, 3), Fraction(1, 3)]),
        ("zeros_like", np.zeros_like(ROWS[0]) + 1, [1, 1, 1]),
        ("full_like", np.full_like(ROWS[0], 0.1) / 3, [TENTH / 3] * 3),
        ("mean", ROWS.mean(axis=-1), [(TENTH + 1) / 3, Fraction(4, 3)]),
        ("sum over both axes", (ROWS / 3).sum()[None], [(TENTH + 5) / 3]),
        ("largest over both axes", (ROWS / 3).max()[None], [Fraction(1)]),
        ("cumsum", np.cumsum(ROWS[0]) / 3, [TENTH / 3, (TENTH + 2) / 3, (TENTH + 1) / 3]),
        ("ptp", np.ptp(ROWS, axis=-1), [Fraction(3), Fraction(5, 2)]),
        ("matmul", ROWS @ np.array([[0.1], [0.5], [1.0]]), [[TENTH**2], [TENTH / 2 + Fraction(13, 4)]]),
        ("einsum", np.einsum("...d,...d->...", ROWS, ROWS), [TENTH**2 + 5, Fraction(19, 2)]),
        ("square", np.square(ROWS[0]) / 3, [TENTH**2 / 3, Fraction(4, 3), Fraction(1, 3)]),
        ("clip", np.clip(ROWS[0], 0.0, 1.0) / 3, [TENTH / 3, Fraction(1, 3), Fraction(0)]),
        ("abs", np.abs(ROWS[0]) / 3, [TENTH / 3, Fraction(2, 3), Fraction(1, 3)]),
        ("sort", np.sort(ROWS[0]) / 3, [Fraction(-1, 3), TENTH / 3, Fraction(2, 3)]),
        ("partition", np.partition(ROWS[0], 1)[1:2] / 3, [TENTH / 3]),
        ("taken", np.take_along_axis(ROWS, ROWS.argmax(axis=-1)[:, None], -1)[:, 0] / 3, [Fraction(2, 3), Fraction(1)]),
    ],
)  # fmt: skip
def test_numpy_rounds_nothing(name, made, expected):
    assert type(made) is type(ROWS), name
    assert made.tolist() == expected, name


def test_writing_into_an_array_rounds_nothing():
    array = ROWS.copy()
    array[0, 1] = 0.1
    array[1] = np.array([0.1, 0.2, 0.3])
    array /= 3
    array[:, 2] -= 0.5
    assert array.tolist() == [
        [TENTH / 3, TENTH / 3, Fraction(-1, 3) - Fraction(1, 2)],
        [TENTH / 3, Fraction(0.2) / 3, Fraction(0.3) / 3 - Fraction(1, 2)],
    ]


def test_what_is_asked_of_an_array_is_an_array_of_flags():
    for flags in (ROWS > 0.5, ROWS == 0.5, np.isfinite(ROWS), ROWS != 0, np.zeros(3) <= ROWS):
        assert type(flags) is np.ndarray
        assert flags.dtype == bool
    assert ROWS.any()
    assert not (ROWS - ROWS).any()
    assert np.argsort(ROWS[0]).tolist() == [2, 0, 1]
    assert np.argsort(numbers([1.0, 0.0, 1.0])[0], kind="stable").tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    "unheard",
    [
        lambda: np.log1p(ROWS),
        lambda: ROWS.max(axis=-1, initial=99.0),
        lambda: ROWS.sum(axis=-1, where=np.array([True, False, True])),
        lambda: np.add(ROWS, 1, out=np.zeros((2, 3))),
        lambda: np.add.at(ROWS.copy(), ([0], [0]), 1),
        lambda: np.zeros((2, 3)).__iadd__(ROWS),
        lambda: ROWS.astype(np.float64),
        lambda: np.isfinite(array_of(CLOSED_FORM, np.array([1.0]))) and np.hypot(ROWS, ROWS),
    ],
)
def test_what_would_round_or_is_not_known_is_refused(unheard):
    with pytest.raises(NotExactError):
        unheard()


def test_softmax_of_rational_scores_by_hand():
    weights, lse = softmax(numbers([1.0, 2.0, -np.inf]))
    e = elementary.exp(Fraction(1))
    assert closed.compared(weights[0, 0], 1 / (closed.closed(1) + e)) == 0
    assert weights[0, 2] == 0
    assert weights.sum(axis=-1).tolist() == [1]
    assert closed.compared(lse[0], elementary.log(e + e * e)) == 0


def test_balls_hold_what_mpmath_finds():
    from verify_attention.exact.balls import balls

    kind = balls(212)
    kind.use()
    array = array_of(kind, np.array([[0.3, 1.7, -2.0], [800.0, 0.1, -745.0]]))
    weights, lse = softmax(np.tanh(np.sqrt(np.square(array))) * np.cos(array) + np.log(np.abs(array)))
    with mpmath.workdps(50):
        for row, found, total in zip([[0.3, 1.7, -2.0], [800.0, 0.1, -745.0]], weights, lse, strict=True):
            given = [mpmath.mpf(x) for x in row]
            scores = [mpmath.tanh(abs(x)) * mpmath.cos(x) + mpmath.log(abs(x)) for x in given]
            sums = mpmath.fsum(map(mpmath.exp, scores))
            for score, weight in zip(scores, found, strict=True):
                assert (
                    abs(mpmath.mpf(weight.mid().str(60, radius=False)) - mpmath.exp(score) / sums)
                    < mpmath.mpf(10) ** -45
                )
            assert abs(mpmath.mpf(total.mid().str(60, radius=False)) - mpmath.log(sums)) < mpmath.mpf(10) ** -45


def test_balls_that_meet_are_not_put_in_order():
    from verify_attention.exact.balls import TooWideError, balls

    kind = balls(212)
    kind.use()
    root = np.sqrt(array_of(kind, np.array([2.0])))
    alike = np.concatenate([root, 2 / root])  # the same number, which no ball can say
    with pytest.raises(TooWideError):
        np.sort(alike)
    with pytest.raises(TooWideError):
        alike[:1] < alike[1:]  # noqa: B015 - it raises
    assert (alike < 1.5).all()


def test_functions_of_balls_that_have_no_method_there():
    from verify_attention.exact.balls import TooWideError, balls

    kind = balls(212)
    kind.use()
    third, two, hidden = kind.lift(Fraction(1, 3)), kind.lift(2.0), kind.lift(-math.inf)
    with mpmath.workdps(50):
        due = mpmath.log(mpmath.exp(mpmath.mpf(1) / 3) + mpmath.exp(2))
        found = kind.functions["logaddexp"](third, two)
        assert abs(mpmath.mpf(found.mid().str(60, radius=False)) - due) < mpmath.mpf(10) ** -45
    assert kind.functions["logaddexp"](hidden, hidden) == hidden
    assert kind.order([two, third, hidden]) == [2, 1, 0]
    straddling = third * 3 - 1  # 0, which no ball can say
    either = kind.functions["copysign"](two, straddling)
    assert either.contains(2)
    assert either.contains(-2)
    assert kind.functions["copysign"](two, -third) == -2
    everything = straddling.log()
    with pytest.raises(TooWideError):
        kind.functions["isfinite"](everything)
    assert not kind.functions["isfinite"](hidden)
    for left, right, verdict in (
        (two, two, "proved"),
        (two, third, "refuted"),
        (third * 3, kind.lift(1.0), "bounded"),
        (hidden, hidden, "proved"),
        (hidden, two, "refuted"),
        (everything, two, "undecided"),
        (two.union(third), two, "undecided"),
    ):
        assert kind.told(left, right).verdict == verdict
