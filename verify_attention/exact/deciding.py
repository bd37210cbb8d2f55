"""Decide an equation by its sides: they are the same numbers, or they are not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from verify_attention import comparison
from verify_attention.exact.arrays import LARGEST, Kind, Told
from verify_attention.model import CONTROL, Sides, Tolerance, Verdict, Worst


class Decision(NamedTuple):
    """What is told of an equation; where it is refuted, by an element: how its sides differ, its limit, its place."""

    verdict: Verdict
    difference: Decimal | None = None
    limit: float | None = None
    worst: Worst | None = None


def decide(
    equation: Iterable[Sides], kind: Kind, first: Worst | None, tolerance: Tolerance, least: float = 0.0
) -> Decision:
    """Decide all parts of an equation; `first` names the element of a part that is looked at before its others.

    One element that differs refutes the whole. The one that differs most in units of its limit is named, or one that
    differs by more than that and as much as a control must: then nobody has to look further. Where all that differ do
    by less, and of others nothing is told, it is not known how much the sides differ, and nothing is told of the whole.
    Otherwise it is as sure as its least sure element. No limit is below `least`.
    """
    verdicts: set[Verdict] = set()
    refuted: Decision | None = None
    most = Decimal(-1)
    for part in equation:
        if part.contrast:
            continue
        for place, told in _elements(part, kind, first):
            verdicts.add(told.verdict)
            if told.difference is None:
                continue
            left, right = (kind.approximate(kind.lift(side[place])) for side in (part.left, _right(part)))
            limit = max(_limit(part, place, tolerance, left, right), least)
            size = told.difference / Decimal(limit) if limit else LARGEST
            found = Decision("refuted", told.difference, limit, comparison.worst(part, place, left, right))
            if told.difference >= max(CONTROL, limit):
                return found
            if size > most:
                most, refuted = size, found
    if refuted is not None and "undecided" not in verdicts:
        return refuted
    order: tuple[Verdict, ...] = ("undecided", "bounded", "proved")
    return Decision(next((one for one in order if one in verdicts), "undecided"))


def _limit(part: Sides, place: tuple[int, ...], tolerance: Tolerance, left: float, right: float) -> float:
    """Return the limit of an element; nothing infinite has one."""
    if part.limit is not None:
        return comparison.bound_at(part.limit, place)
    limit = float(comparison.limit_of(tolerance, left, right))
    return limit if np.isfinite(limit) else 0.0


def _elements(part: Sides, kind: Kind, first: Worst | None) -> Iterator[tuple[tuple[int, ...], Told]]:
    """Yield what is told of each element that counts."""
    left, right = part.left, _right(part)
    limit = None if part.limit is None else np.broadcast_to(part.limit, left.shape)
    for place in _places(part, first):
        sides = kind.lift(left[place]), kind.lift(right[place])
        yield place, kind.told(*sides) if limit is None else kind.within(*sides, kind.lift(float(limit[place])))


def _right(part: Sides) -> np.ndarray:
    right: np.ndarray = np.broadcast_to(part.right, part.left.shape, subok=True)
    return right


def _places(part: Sides, first: Worst | None) -> Iterator[tuple[int, ...]]:
    """Yield the places of the elements that count, one of them first."""
    counts = np.broadcast_to(True if part.counts is None else part.counts, part.left.shape)
    if first is not None and first.of == part.of:
        place = tuple(index for index in (first.head, first.row, first.position) if index is not None)
        inside = len(place) == counts.ndim and all(map(int.__lt__, place, counts.shape))
        if inside and counts[place]:
            yield place
    yield from map(tuple, np.argwhere(counts).tolist())
