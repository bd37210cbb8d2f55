"""Balls: an approximation to many digits, and a radius that surely holds the number (Arb, by way of python-flint).

Where two balls are apart, the numbers are different. Where they meet, the numbers are no farther apart than the balls
reach; that they are equal no ball can say.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np

from verify_attention.exact.arrays import LARGEST, Told

MEETING = 1e-45  # balls that meet are called equal within this
INSTALL = "pip install 'verify-attention[exact]'"


class TooWideError(ArithmeticError):
    """Balls meet where it had to be told which is the larger."""


def balls_are_here() -> bool:
    """Say whether the library of balls is installed."""
    return find_spec("flint") is not None


class Balls:
    """Balls of so many bits."""

    def __init__(self, bits: int) -> None:
        import flint  # noqa: PLC0415 - an extra

        self._arb, self._acb, self._fmpq, self._context, self.bits = flint.arb, flint.acb, flint.fmpq, flint.ctx, bits
        self.use()
        self.functions: Mapping[str, Callable[..., Any]] = {
            name: _method(name) for name in ("exp", "log", "sqrt", "tanh", "cos", "sin", "expm1")
        } | {
            "logaddexp": self._logaddexp,
            "arctanh": lambda x: x.atanh(),
            "copysign": self._copysign,
            "power": lambda x, y: x**y,
            "maximum": lambda x, y: x.max(y),
            "minimum": lambda x, y: x.min(y),
            "clip": lambda x, low, high: x.max(low).min(high),
            "less": self._less,
            "greater": lambda x, y: self._less(y, x),
            "less_equal": lambda x, y: not self._less(y, x),
            "greater_equal": lambda x, y: not self._less(x, y),
            "equal": self._equal,
            "not_equal": lambda x, y: not self._equal(x, y),
            "isfinite": self._finite,
        }

    def use(self) -> None:
        """Set the precision, which is the library's."""
        self._context.prec = self.bits

    def lift(self, element: Any) -> Any:
        """Take a float for the number that it is."""
        if isinstance(element, (float, int)):
            return self._arb(element)
        if isinstance(element, complex):
            return self._acb(element)
        if isinstance(element, Fraction):
            return self._arb(self._fmpq(element.numerator, element.denominator))
        return element

    def _finite(self, element: Any) -> bool:
        if element.is_finite():
            return True
        if element == self._arb("inf") or element == self._arb("-inf"):
            return False
        raise TooWideError  # a ball that holds everything

    def _less(self, left: Any, right: Any) -> bool:
        if left < right:
            return True
        if left >= right:
            return False
        if left.is_nan() or right.is_nan():
            return False
        raise TooWideError

    def _equal(self, left: Any, right: Any) -> bool:
        if left.is_exact() and right.is_exact():
            return bool(left == right)
        if not left.overlaps(right):
            return False
        raise TooWideError

    def _copysign(self, size: Any, number: Any) -> Any:
        if number < 0 or number >= 0:
            return -abs(size) if number < 0 else abs(size)
        return abs(size).union(-abs(size))  # either

    def _logaddexp(self, left: Any, right: Any) -> Any:
        top = left.max(right)
        return top if top == self._arb("-inf") else top + ((left - top).exp() + (right - top).exp()).log()

    def order(self, elements: list[Any]) -> list[int]:
        """Sort, if no two balls meet."""
        key = functools.cmp_to_key(lambda x, y: -1 if self._less(x, y) else int(self._less(y, x)))
        return sorted(range(len(elements)), key=[key(element) for element in elements].__getitem__)

    def highest(self, elements: list[Any]) -> int:
        """Return the first of those with the largest midpoint."""
        middles = [math.nan if element.is_nan() else float(element.mid()) for element in elements]
        return int(np.argmax(middles))

    def product(self, left: Any, right: Any) -> Any:
        """Multiply matrices."""
        return np.matmul(left, right)

    def told(self, left: Any, right: Any) -> Told:
        """Tell balls apart, or bound how far apart the numbers are."""
        return self.within(left, right, None)

    def within(self, left: Any, right: Any, limit: Any) -> Told:
        """Tell whether numbers are no farther apart than a limit; None: than `MEETING`."""
        if not left.is_finite() or not right.is_finite():
            return self._told_of_infinities(left, right)
        apart = abs(left - right)
        if apart.is_zero():
            return Told("proved")
        if apart > (0 if limit is None else limit):
            return Told("refuted", Decimal(apart.abs_lower().str(20, radius=False)))
        if limit is not None:
            return Told("proved" if apart <= limit else "undecided")
        return Told("bounded" if apart < MEETING else "undecided")

    def _told_of_infinities(self, left: Any, right: Any) -> Told:
        try:
            finite = self._finite(left), self._finite(right)
        except TooWideError:
            return Told("undecided")
        return Told("proved") if finite == (False, False) and left == right else Told("refuted", LARGEST)

    def approximate(self, element: Any) -> float:
        """Return the midpoint."""
        return float(element.mid())

    def real(self, element: Any) -> Any:
        """Return the real part."""
        return self._acb(element).real

    def imag(self, element: Any) -> Any:
        """Return the imaginary part."""
        return self._acb(element).imag


@functools.cache
def balls(bits: int) -> Balls:
    """Return the one kind of balls of so many bits."""
    return Balls(bits)


def _method(name: str) -> Callable[[Any], Any]:
    def called(element: Any) -> Any:
        return getattr(element, name)()

    return called
