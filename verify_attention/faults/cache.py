"""Caches of keys: where there are more keys than queries, the first of them come from earlier steps."""

from __future__ import annotations

from typing import Literal

import numpy as np

from verify_attention.faults._making import Kind, mistake
from verify_attention.faults.hidden_keys import with_zero_keys
from verify_attention.kernel import Question, turned
from verify_attention.model import Array


def cached(ask: Question) -> int:
    """Return how many keys are from earlier steps."""
    return max(ask.k.shape[2] - ask.q.shape[2], 0)


def unused_slots_attended(ask: Question, scores: Array) -> tuple[Array, Array]:
    """Attend to all slots of a cache that grows by four."""
    return with_zero_keys(ask, scores, -scores.shape[-1] % 4 if cached(ask) else 0)


def rotated_again(ask: Question, side: Literal["q", "k"], vectors: Array) -> Array:
    """Turn keys from the cache, which are turned already."""
    once = turned(ask, side, vectors)
    if side == "q":
        return once
    return np.concatenate([turned(ask, side, once)[:, :, : cached(ask)], once[:, :, cached(ask) :]], axis=2)


KIND = Kind(
    "cache",
    (
        mistake("the cache's unused slots hold zeros, and are attended", normalise=unused_slots_attended),
        mistake("cached keys are rotated again at each step", turn=rotated_again),
    ),
)
