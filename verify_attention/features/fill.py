"""A hidden score is replaced by a finite number instead of −∞.

The number does not move with the K bias while the visible scores do, so that the weights change: negligibly as long
as the bias's shift is far smaller than the fill, but in a row of shift −10 a fill of −10 draws level. A hidden key
keeps a say.
"""

from __future__ import annotations

from collections.abc import Iterator

from verify_attention.model import Case, Feature, Fills


def refuse(case: Case) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Refuse a fill where nothing is hidden."""
    if not case.features.keys() & {"mask", "causal", "window"}:
        yield (), "stands alone: there must be a mask, causal or window beside it, whose hidden scores it fills"


FEATURE = Feature(
    __name__,
    __doc__,
    act=Fills(lambda case: float(case.features["fill"])),
    order=75,
    why="what fills a hidden score does not move with the visible ones",
    takes=frozenset({"hidden keys have no weight", "shift-invariant softmax"}),
    refuse=refuse,
)
