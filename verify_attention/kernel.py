"""Attention as a function of arrays, in a page: right as it stands, and what mistakes of functions are made from.

It has the interface that `functions` describes, and shows everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from verify_attention.model import Array, Flags


def attention(  # noqa: PLR0913 - the interface's
    q: Array,
    k: Array,
    v: Array,
    *,
    mask: Flags | None = None,
    score_bias: Array | None = None,
    causal: str | None = None,
    window: tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sink: Array | None = None,
    rope: Mapping[str, Any] | None = None,
    bQ: Array | None = None,
    bK: Array | None = None,
    bV: Array | None = None,
) -> dict[str, Array]:
    """Return output `[B, H, Tq, d_v]`, weights and scores `[B, H, Tq, Tk]`, and the LSE `[B, H, Tq]`."""
    q, k, v = (array if bias is None else array + bias[:, None] for array, bias in ((q, bQ), (k, bK), (v, bV)))
    if rope is not None:
        q, k = turned(q, rope, rope["q_positions"]), turned(k, rope, rope["k_positions"])
    repeats = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, repeats, axis=1), np.repeat(v, repeats, axis=1)
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = scores if softcap is None else softcap * np.tanh(scores / softcap)
    scores = scores if score_bias is None else scores + score_bias
    scores = np.where(visible(scores.shape[-2:], causal, window), scores, -np.inf)
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    peak = scores.max(axis=-1, keepdims=True)
    peak = peak if sink is None else np.maximum(peak, sink[:, None, None])
    powers = np.exp(scores - peak)
    total = powers.sum(axis=-1, keepdims=True) + (0.0 if sink is None else np.exp(sink[:, None, None] - peak))
    weights = powers / total
    return {"output": weights @ v, "weights": weights, "scores": scores, "lse": (peak + np.log(total))[..., 0]}


def visible(shape: tuple[int, ...], causal: str | None, window: tuple[int | None, int | None] | None) -> Flags:
    """Return which keys each query may see by its place, `[Tq, Tk]`."""
    rows, keys = shape
    ahead = np.arange(keys) - (np.arange(rows) + (0 if causal == "upper-left" else keys - rows))[:, None]
    left, right = (None, None) if window is None else window
    seen: Flags = np.ones(shape, dtype=bool)
    for farthest, distance in ((left, -ahead), (right, ahead), (None if causal is None else 0, ahead)):
        seen &= True if farthest is None else distance <= farthest
    return seen


def turned(vectors: Array, rope: Mapping[str, Any], positions: Array) -> Array:
    """Return vectors `[B, …, T, d_k]` with their first channels rotated, two at a time, by their positions `[T]`."""
    half = rope["rotary_dims"] // 2
    pair = np.arange(half)
    one, other = (pair, pair + half) if rope["layout"] == "half" else (2 * pair, 2 * pair + 1)
    angles = positions[:, None] * rope["base"] ** (-pair / half)
    cos, sin = np.cos(angles), np.sin(angles)
    found = vectors.copy()
    found[..., one] = vectors[..., one] * cos - vectors[..., other] * sin
    found[..., other] = vectors[..., one] * sin + vectors[..., other] * cos
    return found
