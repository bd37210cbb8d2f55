"""A query sees the keys up to its own position.

Query i stands at i + Tk − Tq on the key axis (`lower-right`: the last query at the last key, as with a cache), or at
i (`upper-left`). It is a mask: what is visible moves alike under a K bias.
"""

from __future__ import annotations

import numpy as np

from verify_attention.model import Case, Feature, Flags, Hides


def visible(case: Case) -> Flags:
    """Return which keys are not in the future, `[1, Tq, Tk]`."""
    allowed: Flags = np.arange(case.keys.shape[1]) <= case.aligned[:, None]
    return allowed[None]


def formula(case: Case) -> Flags:
    """Return the same as a triangle below the diagonal on which queries stand, `[1, Tq, Tk]`."""
    return np.tri(*case.scores_shape[1:], _diagonal(case), dtype=bool)[None]


def _diagonal(case: Case) -> int:
    whole = case.whole or case
    first = 0 if case.features["causal"] == "upper-left" else whole.keys.shape[1] - whole.q.shape[1]
    return first + case.first_row


FEATURE = Feature(
    __name__,
    __doc__,
    act=Hides(visible, formula),
    order=71,
    why="hidden scores are −∞ with the bias and without; the visible ones move alike",
    complete=lambda parameters, _case: "lower-right" if parameters is True else parameters,
)
