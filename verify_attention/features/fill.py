"""A hidden score is replaced by a finite number instead of −∞.

The number does not move with the K bias while the visible scores do, so that the weights change: negligibly as long
as the bias's shift is far smaller than the fill, but in a row of shift −10 a fill of −10 draws level. A hidden key
keeps a say.
"""

from __future__ import annotations

from verify_attention.model import Feature, Fills

FEATURE = Feature(
    __name__,
    __doc__,
    act=Fills(lambda case: case.features["fill"]),
    order=75,
    complete=lambda parameters, _case: float(parameters),
    why="what fills a hidden score does not move with the visible ones",
    takes=frozenset({"hidden keys have no weight", "shift-invariant softmax"}),
)
