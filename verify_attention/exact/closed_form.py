"""Numbers in closed form as a kind that arrays may hold."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from verify_attention.exact import closed, elementary
from verify_attention.exact.arrays import LARGEST, Told
from verify_attention.exact.closed import UNKNOWN, Number


class Complex:
    """A complex number of parts in closed form, as far as rotations by 0 need one."""

    __slots__ = ("imag", "real")

    def __init__(self, real: Number, imag: Number) -> None:
        self.real = real
        self.imag = imag

    def __add__(self, other: Any) -> Complex:
        other = _complex(other)
        return Complex(self.real + other.real, self.imag + other.imag)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Complex:
        other = _complex(other)
        return Complex(self.real * other.real - self.imag * other.imag, self.real * other.imag + self.imag * other.real)

    __rmul__ = __mul__


def _complex(number: Any) -> Complex:
    if isinstance(number, Complex):
        return number
    return Complex(number, UNKNOWN if number is UNKNOWN else Fraction(0))


def _maximum(left: Number, right: Number) -> Number:
    if any(isinstance(number, float) and math.isnan(number) for number in (left, right)):
        return math.nan
    return max(left, right)


def _minimum(left: Number, right: Number) -> Number:
    return -_maximum(-left, -right)


def _exp(number: Any) -> Any:
    if isinstance(number, Complex):
        size = elementary.exp(number.real)
        return Complex(size * elementary.cos(number.imag), size * elementary.sin(number.imag))
    return elementary.exp(number)


class ClosedForm:
    """Rational numbers, and what exp and log make of them."""

    functions: Mapping[str, Callable[..., Any]] = {
        "exp": _exp,
        "log": elementary.log,
        "expm1": lambda x: elementary.exp(x) - 1,
        "logaddexp": lambda x, y: elementary.log(elementary.exp(x) + elementary.exp(y)),
        "sqrt": elementary.sqrt,
        "tanh": elementary.tanh,
        "cos": elementary.cos,
        "sin": elementary.sin,
        "power": elementary.power,
        "arctanh": lambda x: elementary.log((1 + x) / closed.closed(1 - x)) / 2,
        "copysign": lambda x, y: abs(x) if y >= 0 else -abs(x),
        "maximum": _maximum,
        "minimum": _minimum,
        "clip": lambda x, low, high: _minimum(_maximum(x, low), high),
        "isfinite": lambda x: not isinstance(x, float),
    }

    def use(self) -> None:
        """Do nothing."""

    def lift(self, element: Any) -> Any:
        """Take a float for the rational number that it is."""
        if isinstance(element, (float, int)) and not isinstance(element, bool):
            return Fraction(element) if math.isfinite(element) else float(element)
        if isinstance(element, complex):
            return Complex(self.lift(element.real), self.lift(element.imag))
        return element

    def order(self, elements: list[Any]) -> list[int]:
        """Sort by exact comparisons."""
        return sorted(range(len(elements)), key=[_KEY(element) for element in elements].__getitem__)

    def highest(self, elements: list[Any]) -> int:
        """Return the first of the largest; of what is unknown, the first."""
        if any(element is UNKNOWN for element in elements):
            return 0
        return max(range(len(elements)), key=[_KEY(element) for element in elements].__getitem__)

    def product(self, left: Any, right: Any) -> Any:
        """Multiply by whole numbers at a common denominator, where all is rational."""
        ours, theirs = _whole(left), _whole(right)
        if ours is None or theirs is None:
            return np.matmul(left, right)
        common = ours[1] * theirs[1]
        return np.frompyfunc(lambda number: Fraction(number, common), 1, 1)(np.matmul(ours[0], theirs[0]))

    def told(self, left: Any, right: Any) -> Told:
        """Tell numbers apart, or prove that they are the same."""
        if isinstance(left, float) or isinstance(right, float):
            return _told_of_infinities(left, right)
        if closed.alike(left, right):
            return Told("proved")
        try:
            same = closed.compared(left, right) == 0
            return Told("proved") if same else Told("refuted", closed.difference(left, right))
        except ArithmeticError:
            return Told("undecided")

    def within(self, left: Any, right: Any, limit: Any) -> Told:
        """Tell whether numbers are no farther apart than a limit."""
        if isinstance(left, float) or isinstance(right, float):
            return _told_of_infinities(left, right)
        try:
            near = closed.compared(left, right + limit) <= 0 and closed.compared(right, left + limit) <= 0
            return Told("proved") if near else Told("refuted", closed.difference(left, right))
        except ArithmeticError:
            return Told("undecided")

    def approximate(self, element: Any) -> float:
        """Return the float that is nearest, or nearly so."""
        return closed.approximate(element)

    def real(self, element: Any) -> Any:
        """Return the real part."""
        return _complex(element).real

    def imag(self, element: Any) -> Any:
        """Return the imaginary part."""
        return _complex(element).imag


def _told_of_infinities(left: Number, right: Number) -> Told:
    """Tell of two numbers, one of which is infinite or none at all."""
    if any(number is UNKNOWN or number != number for number in (left, right)):  # noqa: PLR0124 - a NaN is none
        return Told("undecided")
    return Told("proved") if left == right else Told("refuted", LARGEST)


def _compared(left: Number, right: Number) -> int:
    return -1 if left < right else int(left > right)


_KEY = functools.cmp_to_key(_compared)


def _whole(array: Any) -> tuple[Any, int] | None:
    elements = array.reshape(-1).tolist()
    if not all(type(element) is Fraction for element in elements):
        return None
    common = math.lcm(*{element.denominator for element in elements})
    found = np.empty(array.shape, dtype=object)
    found.reshape(-1)[:] = [element.numerator * (common // element.denominator) for element in elements]
    return found, common


CLOSED_FORM = ClosedForm()
