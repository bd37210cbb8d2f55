"""In which precision an implementation computes, and in which it takes and gives numbers."""

from __future__ import annotations

from typing import NamedTuple


class Precision(NamedTuple):
    """What rounding may do to an implementation's numbers.

    `unit` is the unit roundoff of its arithmetic; `storing` that of the arrays that it takes and gives, where these
    are coarser, else 0. Below `tiniest` numbers vanish, beyond `largest` they overflow; weights from `smallest` on keep
    all their digits.
    """

    dtype: str
    computes_in: str
    unit: float
    storing: float
    tiniest: float
    largest: float
    smallest: float

    def lost(self, units: int, stored: int = 0) -> float:
        """Return what so many roundings of the arithmetic take of a number, and so many of what is stored."""
        return units * self.unit + stored * self.storing

    def accumulated(self, count: int) -> float:
        """Return γ_count, the relative error of `count` roundings in a row: infinite where they may eat the number."""
        error = count * self.unit
        return error / (1 - error) if error < 1 else float("inf")


class _Format(NamedTuple):
    digits: int  # of the significand, the leading one included
    lowest: int  # exponent of the smallest normal number
    highest: int  # exponent above the largest number


_FORMATS = {
    "float64": _Format(53, -1022, 1024),
    "float32": _Format(24, -126, 128),
    "float16": _Format(11, -14, 16),
    "bfloat16": _Format(8, -126, 128),
}
DTYPES = tuple(_FORMATS)


def precision(dtype: str, computes_in: str | None = None) -> Precision:
    """Return what rounding does to arrays of a dtype, in arithmetic of another; None: of the same.

    Raises:
        KeyError: there is no such dtype here.

    """
    stored, inside = _FORMATS[dtype], _FORMATS[computes_in or dtype]
    lowest = max(stored.lowest, inside.lowest)
    digits = min(stored.digits, inside.digits)
    return Precision(
        dtype,
        computes_in or dtype,
        unit=2.0**-inside.digits,
        storing=2.0**-stored.digits if stored.digits < inside.digits else 0.0,
        tiniest=2.0 ** (lowest - digits + 1),
        largest=2.0 ** (min(stored.highest, inside.highest) - 1) * (2 - 2.0 ** (1 - digits)),
        smallest=1e-290 if lowest == _FORMATS["float64"].lowest else 2.0 ** (lowest + 2),
    )


FLOAT64 = precision("float64")
EXACT = FLOAT64._replace(
    dtype="exact", computes_in="exact", unit=0.0, tiniest=0.0, largest=float("inf")
)  # of numbers that are not rounded
