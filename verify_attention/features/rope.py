"""Queries and keys are rotated by their positions, two channels at a time (RoPE).

Pair t of the first r = `rotary_dims` channels turns by position·base^(−2t/r): channels t and t + r/2 in the layout
`half`, 2t and 2t + 1 in `interleaved`. Positions are the queries' aligned positions and 0, 1, … of the keys, unless
given. With the `bias` added `before` the rotation (the usual), bK turns with its key: the row shift s·q_i·R_{j−i}·bK
depends on the key, unless bK lies in channels that do not turn, or all visible keys have one position. With the bias
`after` the rotation every key gets the same vector, and the claims about it hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from verify_attention.model import Array, Case, Feature, Indices, OnVectors, Shape, Side, Trait, Vectors


def complete(parameters: Any, case: Case) -> Any:
    """Fill in the usual base and layout, all channels, and positions by place."""
    usual = {"base": 10000.0, "layout": "half", "rotary_dims": case.d_k - case.d_k % 2, "bias": "before"}
    places = {"q_positions": case.aligned.astype(np.float64), "k_positions": np.arange(float(case.keys.shape[1]))}
    found = {**usual, **places, **parameters}
    return {**found, "base": float(found["base"]), "rotary_dims": int(found["rotary_dims"])}


def refuse(case: Case) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Refuse a number of rotated channels that is odd, or more than there are."""
    count = case.features["rope"]["rotary_dims"]
    if case.d_k < 2:
        yield (), f"turns pairs of channels, but d_k is {case.d_k}"
    elif count % 2 or not 2 <= count <= case.d_k:
        yield ("rotary_dims",), f"is {count:.9g}, allowed are even numbers from 2 to d_k, which is {case.d_k}"


def pairs(parameters: Any) -> tuple[Indices, Indices]:
    """Return the channels that turn together, `[r/2]` each."""
    half = parameters["rotary_dims"] // 2
    first = np.arange(half)
    return (first, first + half) if parameters["layout"] == "half" else (2 * first, 2 * first + 1)


def _positions(case: Case, side: Side) -> Array:
    positions: Array = case.features["rope"]["q_positions" if side == "queries" else "k_positions"]
    return positions


def _counted(positions: Array, count: int) -> Array:
    """Return 0, 1, … as numbers of the positions' kind, `[count]`: their quotients are rounded only if those are."""
    return np.zeros_like(positions, shape=(count,)) + np.arange(count)


def rotated(case: Case, side: Side, vectors: Array) -> Array:
    """Turn each pair of channels by its angle."""
    own = case.features["rope"]
    first, second = pairs(own)
    positions = _positions(case, side)
    frequencies = own["base"] ** (-2.0 * _counted(positions, len(first)) / own["rotary_dims"])
    angles = positions[:, None] * frequencies
    cos, sin = np.cos(angles), np.sin(angles)
    turned = vectors.copy()
    turned[..., first] = vectors[..., first] * cos - vectors[..., second] * sin
    turned[..., second] = vectors[..., second] * cos + vectors[..., first] * sin
    return turned


def formula(case: Case, side: Side, vectors: Vectors) -> Vectors:
    """Return the same by complex numbers, z·exp(i·angle), with the error of the angle.

    A frequency is a power of the base, or an exponential of a multiple of its logarithm: off by 3u of that multiple,
    and by 3u; the angle by one more. Cosine, sine, two products and a sum add 6u of what is turned.
    """
    own = case.features["rope"]
    first, second = pairs(own)
    positions = _positions(case, side)
    logs = np.log(own["base"]) * _counted(positions, len(first)) / (0.5 * own["rotary_dims"])
    angles = positions[:, None] * np.exp(-logs)
    turned = (vectors.value[..., first] + 1j * vectors.value[..., second]) * np.exp(1j * angles)
    value, size, error = vectors.value.copy(), vectors.size.copy(), vectors.error.copy()
    value[..., first], value[..., second] = turned.real, turned.imag
    size[..., first] = size[..., second] = vectors.size[..., first] + vectors.size[..., second]
    off = (4 + 3 * np.abs(logs)) * case.precision.unit * np.abs(angles) + 6 * case.precision.unit
    spread = vectors.error[..., first] + vectors.error[..., second] + size[..., first] * off
    error[..., first] = error[..., second] = spread
    return Vectors(value, size, error)


def takes_with(parameters: Any) -> frozenset[Trait]:
    """Say that a rotation before the bias takes nothing."""
    return TAKES if parameters["bias"] == "before" else frozenset()


TAKES: frozenset[Trait] = frozenset({"common key shift"})
FEATURE = Feature(
    __name__,
    __doc__,
    act=OnVectors(rotated, formula, lambda parameters: 2 if parameters["bias"] == "before" else -2, linear=True),
    order=30,
    why="a bias before the rotation turns with each key; after it, or in channels that do not turn, it is common",
    takes=TAKES,
    takes_with=takes_with,
    arrays={("q_positions",): Shape(("Tq",), (1,)), ("k_positions",): Shape(("Tk",), (1,))},
    complete=complete,
    refuse=refuse,
)
