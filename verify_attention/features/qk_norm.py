"""Queries and keys are normalised: to length 1, by their root mean square, or as LayerNorm does.

l2: x / √(Σ x² + eps); rms: x / √(mean x² + eps); layer: (x − mean) / √(var + eps); then a gain for each channel. The
bias is added `before` the norm (the usual) or `after` it; the rotation of `rope` comes `after` the norm (the usual)
or `before` it. A norm after the bias divides each key by a number of its own, so that a common bias is common no
more; with LayerNorm a bias that is the same in all channels is taken out whole, and changes nothing. A norm before
the bias is a change of the vectors that knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from verify_attention.model import Array, Case, Feature, OnVectors, Shape, Side, Trait, Vectors

PLACES = {("before", "after"): 1, ("before", "before"): 3, ("after", "after"): -3, ("after", "before"): -1}


def complete(parameters: Any, case: Case) -> Any:
    """Fill in the usual order, a small eps and gains of 1."""
    shapes = {"q_gain": (len(case.q), case.d_k), "k_gain": (len(case.keys), case.d_k)}
    gains = {name: parameters.get(name, np.ones(shape)) for name, shape in shapes.items()}
    eps = float(parameters.get("eps", 1e-6))
    return {"bias": "before", "rotation": "after", **parameters, **gains, "eps": eps}


def place(parameters: Any) -> int:
    """Return where the norm stands: the rotation is at 2, or at −2 where the bias comes after it."""
    return PLACES[parameters["bias"], parameters["rotation"]]


def refuse(case: Case) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Refuse an order that contradicts that of the rotation."""
    rotation, own = case.features.get("rope"), case.features["qk_norm"]
    if rotation is None:
        return
    first = place(own) < (2 if rotation["bias"] == "before" else -2)
    if first != (own["rotation"] == "after"):
        said = f"is {own['rotation']}, with the bias {own['bias']} the norm; rope has its bias {rotation['bias']}"
        yield ("rotation",), f"{said} the rotation: no order is all of that"


def _gain(case: Case, side: Side) -> Array:
    gain: Array = case.features["qk_norm"]["q_gain" if side == "queries" else "k_gain"][:, None]
    return gain


def normalised(case: Case, side: Side, vectors: Array) -> Array:
    """Return vectors divided by their length, root mean square or standard deviation, times the gain."""
    own = case.features["qk_norm"]
    if own["kind"] == "layer":
        vectors = vectors - vectors.mean(axis=-1, keepdims=True)
    power = np.square(vectors).sum(axis=-1, keepdims=True)
    mean = power if own["kind"] == "l2" else power / case.d_k
    return vectors / np.sqrt(mean + own["eps"]) * _gain(case, side)


def formula(case: Case, side: Side, vectors: Vectors) -> Vectors:
    """Return the same by powers of −1/2, with the error of what is divided and of the divisor.

    With x off by E, |Δx/ρ| ≤ E/ρ + |x|/ρ·|Δρ|/ρ, and ρ moves by at most ‖E‖ (l2) or ‖E‖/√d; ‖x‖ ≤ ρ, or ≤ √d·ρ.
    """
    own, width = case.features["qk_norm"], case.d_k
    value, error = vectors.value, vectors.error + 4 * case.precision.unit * vectors.size
    if own["kind"] == "layer":
        center = value @ np.ones((width, 1)) / width
        error = error + error.mean(axis=-1, keepdims=True)
        size = vectors.size.mean(axis=-1, keepdims=True) + vectors.size
        error = error + case.precision.accumulated(width + 4) * size
        value = value - center
    count = 1 if own["kind"] == "l2" else width
    inverse = (np.einsum("...d,...d->...", value, value)[..., None] / count + own["eps"]) ** -0.5
    # Squares that leave the range of float64 promise nothing.
    largest = np.abs(value).max(axis=-1, keepdims=True)
    error = np.where((largest < 1e150) & ((largest > 1e-150) | (own["eps"] > 1e-290)), error, np.inf)
    moved = np.sqrt(np.square(error).sum(axis=-1, keepdims=True) / count) * inverse
    gain = _gain(case, side)
    result = value * inverse * gain
    spread = (error * inverse * np.abs(gain) + np.abs(result) * moved) / np.maximum(1 - moved, 0) ** 2
    spread = np.where(moved < 0.5, spread + case.precision.accumulated(width + 12) * np.abs(result), np.inf)
    return Vectors(result, np.abs(result), spread)


def depends_on_width(case: Case) -> bool:
    """Say that a mean over channels divides by their number, and a length does not."""
    return case.features["qk_norm"]["kind"] != "l2"


def takes_with(parameters: Any) -> frozenset[Trait]:
    """Say that a norm before the bias takes nothing."""
    return TAKES if parameters["bias"] == "before" else frozenset()


TAKES: frozenset[Trait] = frozenset({"bilinear scores", "common key shift"})
FEATURE = Feature(
    __name__,
    __doc__,
    act=OnVectors(normalised, formula, place, linear=False, depends_on_width=depends_on_width),
    order=20,
    why="a norm after the bias divides each key by a number of its own, but LayerNorm takes out a bias that all "
    "channels share; before the bias a norm knows nothing of it",
    takes=TAKES,
    takes_with=takes_with,
    arrays={("q_gain",): Shape(("H", "d_k"), (1, 2)), ("k_gain",): Shape(("G", "d_k"), (1, 2))},
    complete=complete,
    refuse=refuse,
)
