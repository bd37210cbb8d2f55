"""A key of zeros with a value of zeros is appended behind the biases (add_zero_attn).

Its score is 0 with the K bias and without, while the others move: it is no common shift. Its share is hidden from the
weights, which sum to less than one, and a V bias is scaled by that sum.
"""

import numpy as np

from verify_attention.model import AddsColumn, Column, Estimate, Feature

FEATURE = Feature(
    __name__,
    __doc__,
    act=AddsColumn(
        lambda case, queries: Column(case.scale * (queries @ np.zeros(case.d_k))),
        lambda case, _queries: (Estimate(np.zeros_like(case.q[..., 0]), np.zeros((1, 1))), None),
    ),
    order=82,
    why="the zero key gets no K bias: its score stays where the others move",
    takes=frozenset({"rows sum to one", "shift-invariant softmax"}),
)
