"""Rows, or blocks of rows, in which no key is seen. A row without any is never asked for, but a block may be empty."""

from __future__ import annotations

import numpy as np

from verify_attention.faults._making import Kind, mistake
from verify_attention.kernel import Question, softmax
from verify_attention.model import Array

BLOCK = 2


def block_by_block(ask: Question, scores: Array) -> tuple[Array, Array]:
    """Keep a running maximum over blocks of two keys: while it is −∞, it cannot be subtracted from itself."""
    weights, lse = softmax(ask, scores)
    empty = np.all(np.isneginf(scores[..., :BLOCK]), axis=-1, keepdims=True)  # the first block of the row
    return np.where(empty, np.nan, weights), np.where(empty[..., 0], np.nan, lse)


def without_nan(_: Question, answer: dict[str, Array]) -> dict[str, Array]:
    """Write 0 wherever NaN came out."""
    return {name: np.where(np.isnan(array), 0.0, array) for name, array in answer.items()}


KIND = Kind(
    "empty rows",
    (
        mistake("a row whose first block of two keys is hidden is NaN", normalise=block_by_block),
        mistake(
            "a row whose first block of two keys is hidden is NaN, which is replaced by 0 everywhere",
            normalise=block_by_block,
            finish=without_nan,
        ),
        mistake(
            "no maximum is subtracted, and NaN is replaced by 0 everywhere",
            normalise=lambda ask, scores: softmax(ask, scores, np.zeros_like(scores[..., :1])),
            finish=without_nan,
        ),
    ),
)
