"""Keys that nobody gave, and that take a share."""

from __future__ import annotations

import numpy as np

from verify_attention.faults._making import Kind, mistake
from verify_attention.kernel import Question, softmax
from verify_attention.model import Array


def with_zero_keys(ask: Question, scores: Array, count: int) -> tuple[Array, Array]:
    """Let some keys of zeros, whose scores are 0, take their share, and show nothing of them."""
    zeros = np.zeros((*scores.shape[:-1], count))
    weights, lse = softmax(ask, np.concatenate([scores, zeros], axis=-1))
    return weights[..., : scores.shape[-1]], lse


KIND = Kind(
    "hidden keys",
    (
        mistake(
            "the last block of four keys is filled up with zero keys, which take a share",
            normalise=lambda ask, scores: with_zero_keys(ask, scores, -scores.shape[-1] % 4),
        ),
        mistake("one undeclared zero key takes a share", normalise=lambda ask, scores: with_zero_keys(ask, scores, 1)),
    ),
)
