"""Quotients of sums of exponentials."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from verify_attention.exact import sums
from verify_attention.exact.sums import ONE, Terms

MOST_TERMS = 100  # of a product: beyond that a number is not worth its time


class BeyondError(ArithmeticError):
    """Something was asked of a number that is known in closed form no longer."""


class TooCoarseError(ArithmeticError):
    """So many digits do not tell a number from 0."""


class Quotient:
    """numerator / denominator; the denominator's leading term is 1."""

    __slots__ = ("_inverse", "denominator", "numerator")

    def __init__(self, numerator: Terms, denominator: Terms = ONE) -> None:
        self.numerator = numerator
        self.denominator = denominator
        self._inverse: Quotient | None = None

    @classmethod
    def of(cls, numerator: Terms, denominator: Terms) -> Quotient:
        """Bring a quotient into its form."""
        exponent, coefficient = sums.leading(denominator)
        if exponent or coefficient != 1:
            numerator = sums.shifted(numerator, -exponent, 1 / coefficient)
            denominator = sums.shifted(denominator, -exponent, 1 / coefficient)
        return cls.over_normal(numerator, denominator)

    @classmethod
    def over_normal(cls, numerator: Terms, denominator: Terms) -> Quotient:
        """Bring a quotient into its form whose denominator has it already."""
        if len(numerator) == len(denominator) > 1:  # perhaps c·exp(r) times the denominator
            power, factor = sums.leading(numerator)
            if sums.shifted(denominator, power, factor) == numerator:
                return cls({power: factor})
        return cls(numerator, denominator)

    def plus(self, other: Quotient, factor: int = 1) -> Quotient:
        """Return self + factor·other."""
        if not other.numerator:
            return self
        if not self.numerator:
            return Quotient(sums.shifted(other.numerator, Fraction(0), Fraction(factor)), other.denominator)
        if self.denominator is other.denominator or self.denominator == other.denominator:
            return Quotient.over_normal(sums.plus(self.numerator, other.numerator, factor), self.denominator)
        left, right = _product(self.numerator, other.denominator), _product(other.numerator, self.denominator)
        return Quotient.over_normal(sums.plus(left, right, factor), _product(self.denominator, other.denominator))

    def times(self, other: Quotient) -> Quotient:
        """Return the product."""
        return Quotient.of(_product(self.numerator, other.numerator), _product(self.denominator, other.denominator))

    def over(self, other: Quotient) -> Quotient:
        """Return self / other."""
        if self.denominator is not ONE and self.denominator == other.denominator:
            return Quotient.of(self.numerator, other.numerator)
        if other._inverse is None:  # one sum is below all the weights of a row
            other._inverse = Quotient.of(other.denominator, other.numerator)
        return self.times(other._inverse)

    @property
    def rational(self) -> Fraction | None:
        """The rational number that this is, or None."""
        if not self.numerator:
            return Fraction(0)
        if len(self.numerator) == 1 and len(self.denominator) == 1:
            exponent, coefficient = sums.leading(self.numerator)
            return None if exponent else coefficient
        return None

    def enclosed(self, digits: int) -> tuple[Decimal, Decimal]:
        """Return the value and a bound of what it is off."""
        context = sums.context_of(digits)
        (above, off), (below, error) = (sums.enclosed(part, digits) for part in (self.numerator, self.denominator))
        if abs(below) <= 2 * error:
            raise TooCoarseError
        value = context.divide(above, below)
        spread = context.add(off, context.multiply(abs(value), error)) / (abs(below) - error)
        return value, context.add(spread, abs(value).scaleb(-digits, context))


def _product(left: Terms, right: Terms) -> Terms:
    if left is ONE or left == ONE:
        return right
    if right is ONE or right == ONE:
        return left
    if len(left) * len(right) > MOST_TERMS:
        raise BeyondError
    return sums.times(left, right)
