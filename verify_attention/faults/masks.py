"""Masks that hide the wrong keys, or do not hide them."""

from __future__ import annotations

import numpy as np

from verify_attention.faults._making import Kind, mistake
from verify_attention.kernel import Question, attention, mask_seen, softmax
from verify_attention.model import Array, Flags


def added_as_numbers(ask: Question, scores: Array) -> Array:
    """Add true as 1 and false as 0."""
    return attention.add(ask, scores) + (0.0 if ask.mask is None else mask_seen(ask))


def everything(ask: Question) -> Flags:
    """Look at no mask."""
    return np.ones(ask.scores_shape, dtype=bool)


def transposed(ask: Question) -> Flags:
    """Read a square mask across."""
    seen = mask_seen(ask)
    return seen.swapaxes(-1, -2) if seen.shape[-1] == seen.shape[-2] else seen


def multiplied(_: Question, scores: Array, seen: Flags) -> Array:
    """Multiply scores by the mask: a hidden one is 0."""
    return scores * seen


def tiled_over_heads(ask: Question) -> Flags:
    """Lay out a mask of each sample `[B, Tq, Tk]` for B·H heads by tiling: head h of sample b gets that of b·H + h."""
    seen = mask_seen(ask)
    if (seen != seen[:, :1]).any():
        return seen  # heads have masks of their own: nothing is laid out
    return np.tile(seen[:, 0], (seen.shape[1], 1, 1)).reshape(seen.shape)


def maximum_of_all(ask: Question, scores: Array) -> tuple[Array, Array]:
    """Take the maximum of each row before the mask, which comes after it."""
    bare = attention.but(by_mask=everything).scores(ask)
    return softmax(ask, scores, bare.max(axis=-1, keepdims=True))


KIND = Kind(
    "masks",
    (
        mistake(
            "the boolean mask is read the other way round: true hides",
            by_mask=lambda ask: mask_seen(ask) if ask.mask is None else ~mask_seen(ask),
        ),
        mistake("the boolean mask is added to the scores, as 0 and 1", by_mask=everything, add=added_as_numbers),
        mistake("the mask is read transposed where Tq = Tk", by_mask=transposed),
        mistake("scores are multiplied by the mask", hide=multiplied),
        mistake("hidden scores are −1e−9", hide=lambda _, scores, seen: np.where(seen, scores, -1e-9)),
        mistake("the mask of each sample is tiled over the heads of all, not repeated", by_mask=tiled_over_heads),
        mistake("the row's maximum is taken over unmasked scores, the mask applied after", normalise=maximum_of_all),
    ),
)
