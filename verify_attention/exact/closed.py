"""Numbers in closed form: x + log E, where x and E are quotients of sums of exponentials of rational numbers.

They hold all that softmax makes of rational scores: weights, outputs, the logarithm of a sum, ratios. Whether two
are equal is decided, see `sums`; where arithmetic leaves the form, as with exp(exp(1)), the result is
UNKNOWN, and stays so. A rational number is a `Fraction`, infinities and NaN are floats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from verify_attention.exact import sums
from verify_attention.exact.quotients import BeyondError, Quotient, TooCoarseError
from verify_attention.exact.sums import ONE, Terms

Number: TypeAlias = Any  # Fraction, Closed, Unknown, or a float that is not finite
MOST_DIGITS = 2000
MOST_POWER = 64


class Unknown:
    """A number that has left the closed form; whatever is made of it is unknown too."""

    def _same(self, *_: object) -> Unknown:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _same
    __pow__ = __rpow__ = __neg__ = __abs__ = _same

    def _refuse(self, *_: object) -> bool:
        raise BeyondError

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refuse
    __hash__ = object.__hash__


UNKNOWN = Unknown()


class Closed:
    """x + log E; E is positive, and None stands for 1."""

    __slots__ = ("inside", "near", "plain")

    def __init__(self, plain: Quotient, inside: Quotient | None = None) -> None:
        self.plain = plain
        self.inside = inside
        self.near: tuple[Decimal, Decimal] | None = None  # to `sums.DIGITS`

    @staticmethod
    def made(plain: Quotient, inside: Quotient | None = None) -> Number:
        """Return a number in its simplest form."""
        if inside is not None:
            power, _ = sums.leading(inside.numerator)
            if power:  # log(exp(r)·E) = r + log E
                plain = plain.plus(Quotient(sums.constant(power)))
                inside = Quotient(sums.shifted(inside.numerator, -power, Fraction(1)), inside.denominator)
            if inside.rational == 1:
                inside = None
        found = plain.rational if inside is None else None
        return Closed(plain, inside) if found is None else found

    def __add__(self, other: Number) -> Number:
        return self._sum(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        return self._sum(other, -1)

    def __rsub__(self, other: Number) -> Number:
        return -self + other

    def __neg__(self) -> Number:
        return self * Fraction(-1)

    def _sum(self, other: Number, sign: int) -> Number:
        if isinstance(other, float):
            return sign * other
        other = closed(other)
        if not isinstance(other, Closed):
            return UNKNOWN if other is UNKNOWN else NotImplemented
        try:
            plain = self.plain.plus(other.plain, sign)
            if other.inside is None:
                return Closed.made(plain, self.inside)
            mine = self.inside or Quotient(ONE)
            return Closed.made(plain, mine.times(other.inside) if sign == 1 else mine.over(other.inside))
        except BeyondError:
            return UNKNOWN

    def __mul__(self, other: Number) -> Number:
        if isinstance(other, float):
            return other * float(sign(self)) if other == other else other  # noqa: PLR0124 - a NaN stays
        other = closed(other)
        if not isinstance(other, Closed):
            return UNKNOWN if other is UNKNOWN else NotImplemented
        try:
            if self.inside is None and other.inside is None:
                return Closed.made(self.plain.times(other.plain))
            return self._multiple(other) if other.inside is None else other._multiple(self)
        except BeyondError:
            return UNKNOWN

    __rmul__ = __mul__

    def _multiple(self, other: Closed) -> Number:
        """Return n·(x + log E) for a whole number n; other products with a logarithm leave the form."""
        times = None if other.inside is not None else other.plain.rational
        if times == 0:
            return Fraction(0)
        if self.inside is None or times is None or abs(times) > MOST_POWER or times.denominator > 1:
            return UNKNOWN
        power = Quotient(ONE)
        for _ in range(abs(int(times))):
            power = power.times(self.inside)
        inside = power if times > 0 else Quotient(ONE).over(power)
        return Closed.made(self.plain.times(other.plain), inside)

    def __truediv__(self, other: Number) -> Number:
        if isinstance(other, float):
            return other if other != other else Fraction(0)  # noqa: PLR0124 - a NaN stays
        other = closed(other)
        if not isinstance(other, Closed):
            return UNKNOWN if other is UNKNOWN else NotImplemented
        if other.inside is not None:
            return UNKNOWN
        if not other.plain.numerator:
            return math.nan
        try:
            return self._over(other.plain)
        except BeyondError:
            return UNKNOWN

    def _over(self, other: Quotient) -> Number:
        if self.inside is None:
            return Closed.made(self.plain.over(other))
        return self * Closed.made(Quotient(ONE).over(other))

    def __rtruediv__(self, other: Number) -> Number:
        return other * float(sign(self)) if isinstance(other, float) else closed(other) / self

    def __abs__(self) -> Number:
        return -self if sign(self) < 0 else self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (int, Fraction, Closed)):
            return compared(self, other) == 0
        return False if isinstance(other, float) else NotImplemented

    def __hash__(self) -> int:  # not by value: nothing looks these up
        return id(self)

    def __lt__(self, other: Number) -> bool:
        return bool(self._beside(other) < 0)

    def __le__(self, other: Number) -> bool:
        return bool(self._beside(other) <= 0)

    def __gt__(self, other: Number) -> bool:
        return bool(self._beside(other) > 0)

    def __ge__(self, other: Number) -> bool:
        return bool(self._beside(other) >= 0)

    def _beside(self, other: Number) -> float:
        """Return a number below, at or above 0 as this one is less than, equal to or more than another."""
        return -other if isinstance(other, float) else compared(self, other)

    def __bool__(self) -> bool:
        return sign(self) != 0


def closed(number: Number) -> Closed | Any:
    """Return a rational number in closed form; others as they are."""
    if isinstance(number, (int, Fraction)):
        return Closed(Quotient(sums.constant(Fraction(number))))
    return number


def alike(left: Number, right: Number) -> bool:
    """Say whether numbers have the same form, and so are the same; others may be the same too."""
    if isinstance(left, Closed) and isinstance(right, Closed):
        return _form(left) == _form(right)
    return isinstance(left, Fraction) and isinstance(right, Fraction) and left == right


def _form(number: Closed) -> tuple[Terms, Terms, Terms, Terms]:
    inside = number.inside or Quotient(ONE)
    return number.plain.numerator, number.plain.denominator, inside.numerator, inside.denominator


def difference(left: Number, right: Number) -> Decimal:
    """Return |left − right| to a few digits, of numbers that differ: it may be too small for a float."""
    gap = left - right
    if gap is not UNKNOWN:
        return abs(_sure(gap))
    (one, off), (other, error) = enclosed(left, sums.DIGITS), enclosed(right, sums.DIGITS)
    return abs(one - other) - off - error  # as `compared` has told them apart


def compared(left: Number, right: Number) -> int:
    """Return −1, 0 or 1 as a number is less than another, equal to it, or more: by digits where these tell.

    Raises:
        BeyondError: it cannot be told.

    """
    if left is UNKNOWN or right is UNKNOWN:
        raise BeyondError
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return sign(left - right)
    with suppress(TooCoarseError):
        (one, off), (other, error) = enclosed(left, sums.DIGITS), enclosed(right, sums.DIGITS)
        if abs(one - other) > 2 * (off + error):
            return 1 if one > other else -1
    return sign(left - right)


def sign(number: Number) -> int:
    """Return −1, 0 or 1.

    Raises:
        BeyondError: it cannot be told.

    """
    if isinstance(number, (int, Fraction)):
        return (number > 0) - (number < 0)
    if not isinstance(number, Closed):
        raise BeyondError
    if number.inside is None and not number.plain.numerator:
        return 0
    for value, off in _ever_closer(number, MOST_DIGITS if _surely_not_zero(number) else 4 * sums.DIGITS):
        if abs(value) > off:
            return 1 if value > 0 else -1
    raise BeyondError


def _ever_closer(number: Number, most: int) -> Iterator[tuple[Decimal, Decimal]]:
    """Yield enclosures of a number to more and more digits."""
    digits = sums.DIGITS
    while digits <= most:
        with suppress(TooCoarseError):
            yield enclosed(number, digits)
        digits *= 2


def _surely_not_zero(number: Closed) -> bool:
    """Say whether a number with x + log E is not 0 by the theorem: E is 1, or x is rational, and E is not exp(−x)."""
    # `made` has taken every exp(r) out of E, and E = 1 too.
    return number.inside is None or number.plain.rational is not None


def enclosed(number: Number, digits: int) -> tuple[Decimal, Decimal]:
    """Return the value of a number and a bound of what that is off."""
    context = sums.context_of(digits)
    if isinstance(number, (int, Fraction)):
        value = sums.decimal(Fraction(number), context)
        return value, abs(value).scaleb(-digits, context)
    if digits == sums.DIGITS:
        if number.near is None:
            number.near = _enclosed(number, digits)
        return number.near
    return _enclosed(number, digits)


def _enclosed(number: Closed, digits: int) -> tuple[Decimal, Decimal]:
    context = sums.context_of(digits)
    value, off = number.plain.enclosed(digits)
    if number.inside is None:
        return value, off
    inside, error = number.inside.enclosed(digits)
    if inside <= 2 * error:
        raise TooCoarseError
    logarithm = context.ln(inside)
    spread = context.divide(2 * error, inside) + abs(logarithm).scaleb(-digits, context)
    return context.add(value, logarithm), context.add(context.add(off, spread), abs(value).scaleb(-digits, context))


def approximate(number: Number) -> float:
    """Return the float that is nearest, or nearly so; NaN for what is unknown."""
    if isinstance(number, float):
        return number
    if number is UNKNOWN:
        return math.nan
    try:
        return float(number) if isinstance(number, Fraction) else float(_sure(number))
    except OverflowError:
        return math.inf if sign(number) > 0 else -math.inf


def _sure(number: Number) -> Decimal:
    """Return the value of a number that is not 0 to some twenty digits."""
    for value, off in _ever_closer(number, MOST_DIGITS):
        if off <= abs(value).scaleb(-20):
            return value
    raise BeyondError
