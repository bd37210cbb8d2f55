"""Rotations that turn the wrong channels or by the wrong angles, and a norm that nobody declared."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from verify_attention.faults._making import Kind, mistake
from verify_attention.kernel import Question, rotated, turned
from verify_attention.model import Array

Side = Literal["q", "k"]


def with_rope(ask: Question, side: Side, vectors: Array, **changes: Any) -> Array:
    """Turn with some parameters changed."""
    return vectors if ask.rope is None else rotated({**ask.rope, **changes}, side, vectors)


def layouts_mixed(ask: Question, side: Side, vectors: Array) -> Array:
    """Turn queries in halves and keys interleaved."""
    return with_rope(ask, side, vectors, layout="half" if side == "q" else "interleaved")


def frequencies_of_the_width(ask: Question, side: Side, vectors: Array) -> Array:
    """Turn the right channels by base^(−2t/d_k)."""
    if ask.rope is None:
        return vectors
    base = ask.rope["base"] ** (ask.rope["rotary_dims"] / vectors.shape[-1])
    return with_rope(ask, side, vectors, base=base)


def normalised(ask: Question, side: Side, vectors: Array) -> Array:
    """Give every query and key the length 1 before it is turned."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return turned(ask, side, vectors / np.maximum(length, 1e-12))


KIND = Kind(
    "RoPE, norm",
    (
        mistake("queries turn in the layout half, keys in the interleaved one", turn=layouts_mixed),
        mistake("frequencies are taken from the width instead of rotary_dims", turn=frequencies_of_the_width),
        mistake("queries and keys are normalised, undeclared", turn=normalised),
    ),
)
