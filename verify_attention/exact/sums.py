"""Sums of exponentials with rational coefficients and exponents, and their quotients: a field in which 0 is known.

By the theorem of Lindemann and Weierstrass, exponentials of different rational numbers are linearly independent over
the rational numbers: Σ c_i·exp(r_i) with different r_i is 0 only where every c_i is. So whether two such numbers
are equal is decided by looking at their terms. (F. Lindemann, "Über die Zahl π", Mathematische Annalen 20, 1882.)
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import TypeAlias

Terms: TypeAlias = dict[Fraction, Fraction]  # {exponent: coefficient}, none of them 0
ONE: Terms = {Fraction(0): Fraction(1)}
DIGITS = 40  # to begin with


def constant(number: Fraction) -> Terms:
    """Return a rational number as a sum."""
    return {Fraction(0): number} if number else {}


def plus(left: Terms, right: Terms, factor: int = 1) -> Terms:
    """Return left + factor·right, where factor is 1 or −1."""
    total = dict(left)
    for exponent, coefficient in right.items():
        own = total.get(exponent)
        if own is None:
            total[exponent] = coefficient if factor == 1 else -coefficient
        elif found := own + coefficient if factor == 1 else own - coefficient:
            total[exponent] = found
        else:
            del total[exponent]
    return total


def times(left: Terms, right: Terms) -> Terms:
    """Return the product."""
    for single, terms in ((left, right), (right, left)):
        if len(single) == 1:
            return shifted(terms, *leading(single))
    total: Terms = {}
    for one, coefficient in left.items():
        for other, factor in right.items():
            exponent = one + other
            total[exponent] = total.get(exponent, Fraction(0)) + coefficient * factor
    return {exponent: coefficient for exponent, coefficient in total.items() if coefficient}


def shifted(terms: Terms, exponent: Fraction, factor: Fraction) -> Terms:
    """Return factor·exp(exponent) times a sum."""
    if factor == 1:
        return {own + exponent: coefficient for own, coefficient in terms.items()} if exponent else terms
    if not exponent:
        return {own: coefficient * factor for own, coefficient in terms.items()}
    return {own + exponent: coefficient * factor for own, coefficient in terms.items()}


def leading(terms: Terms) -> tuple[Fraction, Fraction]:
    """Return the largest exponent and its coefficient."""
    if len(terms) == 1:
        ((exponent, coefficient),) = terms.items()
        return exponent, coefficient
    exponent = max(terms)
    return exponent, terms[exponent]


def enclosed(terms: Terms, digits: int) -> tuple[Decimal, Decimal]:
    """Return the value of a sum to so many digits of its largest term, and a bound of what that is off."""
    context = context_of(digits)
    total, size = Decimal(0), Decimal(0)
    for exponent, coefficient in terms.items():
        term = context.multiply(decimal(coefficient, context), exponential(exponent, context))
        total, size = context.add(total, term), context.add(size, abs(term))
    return total, context.multiply(size, Decimal(len(terms) + 8).scaleb(-digits, context))


def exponential(exponent: Fraction, context: Context) -> Decimal:
    """Return exp(exponent), off by less than one unit of the context's last digits but two.

    The exponent is taken with as many digits more as it has before its point.
    """
    before = len(str(abs(int(exponent))))
    wider = context_of(context.prec + before + 2)
    return context.plus(wider.exp(decimal(exponent, wider)))


def decimal(number: Fraction, context: Context) -> Decimal:
    """Return a rational number, rounded once."""
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


def context_of(digits: int) -> Context:
    """Return decimals of a few digits more, with exponents that no score of a float leaves."""
    return Context(prec=digits + 4, rounding=ROUND_HALF_EVEN, Emin=-(10**17), Emax=10**17)
