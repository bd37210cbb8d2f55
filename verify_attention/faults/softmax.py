"""Softmax that overflows, loses digits, or runs along the wrong axis."""

from __future__ import annotations

import numpy as np

from verify_attention.faults._making import Kind, mistake
from verify_attention.kernel import Question, softmax
from verify_attention.model import Array


def from_zero(ask: Question, scores: Array) -> tuple[Array, Array]:
    """Begin the running maximum at 0."""
    return softmax(ask, scores, np.maximum(scores.max(axis=-1, keepdims=True), 0.0))


def one_for_all_rows(ask: Question, scores: Array) -> tuple[Array, Array]:
    """Subtract the largest score of a head from all of its rows."""
    return softmax(ask, scores, np.zeros_like(scores[..., :1]) + scores.max(axis=(-1, -2), keepdims=True))


def in_float16(ask: Question, scores: Array) -> tuple[Array, Array]:
    """Hold scores in float16 on their way to softmax."""
    return softmax(ask, scores.astype(np.float16).astype(np.float64))


def over_queries(ask: Question, scores: Array) -> tuple[Array, Array]:
    """Normalise the columns."""
    columns = scores.swapaxes(-1, -2)
    with np.errstate(all="ignore"):
        weights, _ = softmax(ask, columns)
    return weights.swapaxes(-1, -2), softmax(ask, scores)[1]


KIND = Kind(
    "softmax",
    (
        mistake(
            "no maximum is subtracted",
            normalise=lambda ask, scores: softmax(ask, scores, np.zeros_like(scores[..., :1])),
        ),
        mistake("the running maximum starts at 0", normalise=from_zero),
        mistake("one maximum serves all rows of a head", normalise=one_for_all_rows),
        mistake("scores are held in float16", normalise=in_float16),
        mistake("softmax runs over the query axis", normalise=over_queries),
    ),
)
