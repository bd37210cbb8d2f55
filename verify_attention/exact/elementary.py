"""Functions of numbers in closed form; what leaves the form is UNKNOWN."""

from __future__ import annotations

import math
from fractions import Fraction

from verify_attention.exact.closed import MOST_POWER, UNKNOWN, Closed, Number, closed, sign
from verify_attention.exact.quotients import BeyondError, Quotient


def exp(number: Number) -> Number:
    """Return the exponential of a number."""
    if isinstance(number, float):
        return Fraction(0) if number == -math.inf else number
    number = closed(number)
    if number is UNKNOWN or (exponent := number.plain.rational) is None:
        return UNKNOWN
    power = Quotient({exponent: Fraction(1)})
    return Closed.made(power if number.inside is None else power.times(number.inside))


def log(number: Number) -> Number:
    """Return the natural logarithm of a number."""
    if isinstance(number, float):
        return number if number > 0 else math.nan
    if number is UNKNOWN:
        return number
    try:
        direction = sign(number)
    except BeyondError:
        return UNKNOWN
    if direction <= 0:
        return math.nan if direction else -math.inf
    number = closed(number)
    return UNKNOWN if number.inside is not None else Closed.made(Quotient({}), number.plain)


def power(base: Number, exponent: Number) -> Number:
    """Return base^exponent, which is in closed form for whole exponents, and for roots of squares."""
    if not isinstance(exponent, (int, Fraction)) or not isinstance(base, (Fraction, Closed)):
        return UNKNOWN
    exponent = Fraction(exponent)
    if exponent.denominator == 2:
        base, exponent = sqrt(base), 2 * exponent
    if base is UNKNOWN or exponent.denominator > 1 or abs(exponent) > MOST_POWER:
        return UNKNOWN
    if isinstance(base, Fraction):
        return math.inf if not base and exponent < 0 else base ** int(exponent)
    found: Number = Fraction(1)
    for _ in range(abs(int(exponent))):
        found = found * base
    return found if exponent >= 0 else 1 / closed(found)


def sqrt(number: Number) -> Number:
    """Return the root of the square of a rational number."""
    if isinstance(number, Fraction) and number >= 0:
        roots = math.isqrt(number.numerator), math.isqrt(number.denominator)
        if (roots[0] ** 2, roots[1] ** 2) == (number.numerator, number.denominator):
            return Fraction(*roots)
    return UNKNOWN


def tanh(number: Number) -> Number:
    """Return the hyperbolic tangent, 1 − 2 / (exp(2x) + 1)."""
    if isinstance(number, float):
        return number if number != number else Fraction(1 if number > 0 else -1)  # noqa: PLR0124 - a NaN stays
    grown = exp(number + number)
    return UNKNOWN if grown is UNKNOWN else 1 - 2 / (closed(grown) + 1)


def cos(number: Number) -> Number:
    """Return the cosine of 0; no other one of a rational number is in closed form."""
    return Fraction(1) if isinstance(number, Fraction) and number == 0 else UNKNOWN


def sin(number: Number) -> Number:
    """Return the sine of 0."""
    return Fraction(0) if isinstance(number, Fraction) and number == 0 else UNKNOWN
