"""A learned logit of each head takes its share of every row, and leads to no value.

p_ij = exp(S_ij) / (exp(sink_h) + Σ_j exp(S_ij)). The sink does not move with the K bias, so that the share it leaves
does; rows sum to one less the sink's share, and a V bias is scaled by that. It is neither scaled nor capped nor
masked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from verify_attention.model import AddsColumn, Array, Case, Column, Estimate, Feature, Shape


def complete(parameters: Any, case: Case) -> Any:
    """Give one number to all heads."""
    return np.broadcast_to(np.asarray(parameters, dtype=np.float64), (len(case.q),)).copy()


def logits(case: Case) -> Array:
    """Return the sink of every row, `[H, Tq]`."""
    return np.broadcast_to(case.features["sink"][:, None], case.scores_shape[:2])


FEATURE = Feature(
    __name__,
    __doc__,
    act=AddsColumn(
        lambda case, _queries: Column(logits(case)),
        lambda case, _queries: (Estimate(logits(case), np.zeros((1, 1))), None),
    ),
    order=80,
    why="the sink does not move with the keys' scores, so its share changes",
    takes=frozenset({"rows sum to one", "shift-invariant softmax"}),
    arrays={(): Shape(("H",), (0, 1))},
    complete=complete,
)
