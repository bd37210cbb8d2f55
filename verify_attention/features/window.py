"""A query sees the keys near its own position: `left` before it and `right` after it.

A query aligned at p (see `causal`; lower-right without it) sees the keys p − left ≤ j ≤ p + right; null is no limit
on that side. It is a mask: what is visible moves alike under a K bias.
"""

from __future__ import annotations

import numpy as np

from verify_attention.model import Case, Feature, Flags, Hides


def reach(case: Case) -> tuple[int | None, int | None]:
    """Return the window, each side no longer than there are places: a file may say 10^30."""
    places = (case.whole or case).q.shape[1] + case.keys.shape[1]
    left, right = (None if side is None else min(side, places) for side in case.features["window"])
    return left, right


def visible(case: Case) -> Flags:
    """Return which keys are near enough, `[1, Tq, Tk]`."""
    left, right = reach(case)
    ahead = np.arange(case.keys.shape[1]) - case.aligned[:, None]
    near: Flags = np.ones_like(ahead, dtype=bool)
    if left is not None:
        near &= ahead >= -left
    if right is not None:
        near &= ahead <= right
    return near[None]


def formula(case: Case) -> Flags:
    """Return the same as what lies between two triangles, `[1, Tq, Tk]`."""
    left, right = reach(case)
    whole, shape = case.whole or case, case.scores_shape[1:]
    upper_left = case.features.get("causal") == "upper-left"
    diagonal = case.first_row + (0 if upper_left else whole.keys.shape[1] - whole.q.shape[1])
    near: Flags = np.ones(shape, dtype=bool)
    if right is not None:
        near &= np.tri(*shape, diagonal + right, dtype=bool)
    if left is not None:
        near &= ~np.tri(*shape, diagonal - left - 1, dtype=bool)
    return near[None]


FEATURE = Feature(
    __name__,
    __doc__,
    act=Hides(visible, formula),
    order=72,
    why="hidden scores are −∞ with the bias and without; the visible ones move alike",
    complete=lambda parameters, _case: tuple(None if side is None else int(side) for side in parameters),
)
