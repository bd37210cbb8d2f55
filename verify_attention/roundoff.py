"""The unit of rounding in float64, and how it adds up."""

from __future__ import annotations

UNIT = 2.0**-53
TINIEST = 2.0**-1074


def accumulated(count: int) -> float:
    """Return γ_count, the relative error of `count` roundings in a row."""
    return count * UNIT / (1 - count * UNIT)
