"""One is added to the sum of exponentials: a sink of 0.

p_ij = exp(S_ij) / (1 + Σ_j exp(S_ij)). A row may attend to nothing. The 1 does not move with the K bias, so that
weights do; rows sum to less than one, and a V bias is scaled by that sum.
"""

import numpy as np

from verify_attention.model import AddsColumn, Column, Estimate, Feature

FEATURE = Feature(
    __name__,
    __doc__,
    act=AddsColumn(
        lambda case, _queries: Column(np.zeros_like(case.q[..., 0])),
        lambda case, _queries: (Estimate(np.zeros_like(case.q[..., 0]), np.zeros((1, 1))), None),
    ),
    order=81,
    why="the 1 does not move with the keys' scores, so its share changes",
    takes=frozenset({"rows sum to one", "shift-invariant softmax"}),
)
