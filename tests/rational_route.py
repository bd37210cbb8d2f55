"""Attention by another route: exact decimals, rational scores, and exponentials at 50 digits.

It reads a document as PyYAML's `BaseLoader` gives it, every number a text, and shares no code with the package.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

import mpmath

CONDITIONS = ("none", "q", "k", "qk")
mpmath.mp.dps = 50


def depth(value: Any) -> int:
    return 1 + depth(value[0]) if isinstance(value, list) else 0


def exact(value: Any) -> Any:
    """Turn texts into rationals, at any depth."""
    return [exact(item) for item in value] if isinstance(value, list) else Fraction(value)


def raised(value: Any, levels: int) -> Any:
    """Wrap a value in lists of one until it has `levels` levels."""
    return value if depth(value) == levels else raised([value], levels)


def for_all(value: Any, levels: int, count: int) -> Any:
    """Give each head its own value; what stands without heads is every head's."""
    return value if depth(value) == levels else [value] * count


def as_high_precision(number: Fraction) -> mpmath.mpf:
    return mpmath.mpf(number.numerator) / number.denominator


def dot(left: list[Fraction], right: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def plus(*rows: list[Fraction]) -> list[Fraction]:
    return [sum(column, Fraction(0)) for column in zip(*rows, strict=True)]


def scale_of(document: dict[str, Any]) -> mpmath.mpf:
    if "scale" in document:
        return as_high_precision(Fraction(document["scale"]))
    width = int(document["d_k"])
    root = isqrt(width)
    return mpmath.mpf(1) / root if root * root == width else 1 / mpmath.sqrt(width)


def traces(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return scores, weights and output by quantity and condition, each `[H][Tq][…]`, at 50 digits."""
    queries, keys = raised(exact(document["q"]), 3), raised(exact(document["keys"]), 3)
    heads, groups, count = len(queries), len(keys), len(keys[0])
    if "values" in document:
        values = for_all(exact(document["values"]), 3, groups)
    else:
        values = [[[Fraction(int(row == column)) for column in range(count)] for row in range(count)]] * groups
    query_bias = for_all(exact(document["bQ"]), 2, heads)
    key_bias = for_all(exact(document["bK"]), 2, groups)
    value_bias = for_all(exact(document.get("bV", ["0"] * len(values[0][0]))), 2, groups)
    shifts = document.get("features", {}).get("key_shifts")
    shifts = for_all(exact(shifts), 3, groups) if shifts else [[[Fraction(0)] * len(row) for row in keys[0]]] * groups
    scale = scale_of(document)
    found: dict[str, dict[str, Any]] = {"scores": {}, "weights": {}, "output": {}}
    for condition in CONDITIONS:
        for by_condition in found.values():
            by_condition[condition] = []
        for head in range(heads):
            group = head // (heads // groups)
            rows = [plus(row, query_bias[head]) if "q" in condition else row for row in queries[head]]
            columns = keys[group]
            if "k" in condition:
                columns = [plus(key, key_bias[group], shift) for key, shift in zip(columns, shifts[group], strict=True)]
            mixed = [plus(value, value_bias[group]) for value in values[group]]
            scores = [[scale * as_high_precision(dot(row, key)) for key in columns] for row in rows]
            weights = [shares(row) for row in scores]
            output = [[mixture(row, channel) for channel in zip(*mixed, strict=True)] for row in weights]
            found["scores"][condition].append(scores)
            found["weights"][condition].append(weights)
            found["output"][condition].append(output)
    return found


def shares(scores: list[mpmath.mpf]) -> list[mpmath.mpf]:
    powers = [mpmath.exp(score) for score in scores]
    total = mpmath.fsum(powers)
    return [power / total for power in powers]


def mixture(weights: list[mpmath.mpf], numbers: tuple[Fraction, ...]) -> mpmath.mpf:
    return mpmath.fsum(map(mpmath.fmul, weights, map(as_high_precision, numbers)))
