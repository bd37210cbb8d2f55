"""Scores are bent into ±cap: cap·tanh(S / cap).

The slope of tanh depends on the score, so that what a K bias adds to all scores of a row alike is not alike any more
behind it. With a cap of 50 and small scores the difference is about 1e-5, which a loose comparison takes for none.
"""

from __future__ import annotations

import numpy as np

from verify_attention.model import Array, Case, Estimate, Feature, OnScores


def capped(case: Case, scores: Array) -> Array:
    """Return cap·tanh(S / cap)."""
    cap = case.features["softcap"]
    return cap * np.tanh(scores / cap)


def formula(case: Case, scores: Estimate) -> Estimate:
    """Return the same by exponentials: tanh x = −y / (y + 2) with y = exp(−2x) − 1, for x ≥ 0."""
    cap = case.features["softcap"]
    power = np.expm1(-2 * np.abs(scores.value) / cap)
    value = np.copysign(cap * (-power / (power + 2)), scores.value)
    return Estimate(value, scores.error + case.precision.lost(8, stored=2) * (cap + np.abs(value)))


FEATURE = Feature(
    __name__,
    __doc__,
    act=OnScores(capped, formula),
    order=50,
    complete=lambda parameters, _case: float(parameters),
    why="tanh bends each score by its own slope: a common shift is common no more",
    takes=frozenset({"bilinear scores", "common key shift"}),
)
