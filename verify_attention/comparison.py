"""Compare two sides: the limit, the element that decides, and what was observed there."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from verify_attention.model import CONTROL, Array, Case, Expectation, Flags, Sides, Status, Tolerance, Worst

OBSERVATIONS: tuple[Expectation, ...] = ("holds", "within-rounding", "breaks")


class Measure(NamedTuple):
    """The element that decides an equation, or a part of one.

    Of two measures the one of larger `rank` decides. A claim is decided by the element that breaks it most surely:
    one beyond the rounding bound before one within it, then the largest deviation in units of its limit. A control is
    decided by the largest deviation.
    """

    deviation: float
    limit: float
    rounding_bound: float
    worst: Worst
    rank: tuple[int, float]

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Deviation, limit and rounding bound."""
        return self.deviation, self.limit, self.rounding_bound

    @property
    def observed(self) -> Expectation:
        """What these numbers say."""
        return OBSERVATIONS[self.rank[0]]


def observe(deviation: float, limit: float, rounding_bound: float) -> Expectation:
    """Say whether sides agree within the limit, within the rounding bound, or not; a NaN never agrees.

    Under an infinite bound nothing breaks: it promises nothing.
    """
    if deviation <= limit:
        return "holds"
    if deviation <= rounding_bound or rounding_bound == np.inf:
        return "within-rounding"
    return "breaks"


def status(expected: Expectation, deviation: float, limit: float, rounding_bound: float) -> Status:
    """Judge numbers against an expectation."""
    observed = observe(deviation, limit, rounding_bound)
    if observed == "within-rounding":
        return "pass" if expected == "within-rounding" and rounding_bound < np.inf else "inconclusive"
    if expected != "breaks":
        return "pass" if observed == "holds" else "fail"
    if observed == "holds" or not np.isfinite(deviation):
        return "fail"
    return "pass" if deviation >= CONTROL else "inconclusive"


def limit_of(tolerance: Tolerance, left: Array | float, right: Array | float) -> Array:
    """Return `max(rtol·max(|l|, |r|), atol)` for every element."""
    sizes = np.maximum(np.abs(left), np.abs(right))
    return np.maximum(tolerance.rtol * sizes, tolerance.atol)


def as_coarse(sides: Sides, tolerance: Tolerance) -> Sides:
    """Return sides whose limit is the larger of tolerance and rounding bound, as for a dtype coarser than float64.

    Elements of which rounding promises nothing do not count. What must move is no more than what the right side has to
    say: where all of that is within the limits, zeros would pass too.
    """
    bound = np.broadcast_to(np.where(np.isnan(sides.rounding), np.inf, sides.rounding), sides.left.shape)
    limit = limit_of(tolerance, sides.left, sides.right) if sides.limit is None else sides.limit
    limit = np.where(np.isfinite(limit), limit, 0.0)
    counts = (bound < np.inf) & (True if sides.counts is None else sides.counts)
    limit = np.maximum(limit, bound)
    if not limit.any():  # what must be the same to the last bit
        return replace(sides, limit=limit, counts=counts)
    size = np.where(np.isfinite(sides.right), np.abs(sides.right), 0.0)
    moves = size if sides.moves is None else np.minimum(np.abs(sides.moves), size)
    return replace(sides, limit=limit, counts=counts, moves=moves)


def told_apart(sides: Sides, tolerance: Tolerance) -> Flags:
    """Say for every element whether an implementation that did nothing would exceed its limit there."""
    counted = np.broadcast_to(True if sides.counts is None else sides.counts, sides.left.shape)
    if sides.moves is None:
        return counted
    limit = limit_of(tolerance, sides.left, sides.right)
    if sides.limit is not None:
        limit = np.maximum(limit, sides.limit)
    limit[~np.isfinite(limit)] = 0.0  # what an implementation spoils is no reason to look away
    return counted & ~(np.abs(sides.moves) <= limit)


def measure(sides: Sides, tolerance: Tolerance, expected: Expectation, case: Case) -> Measure | None:
    """Find the element that decides; None where no element counts.

    Raises:
        ValueError: the sides' shapes differ.

    """
    left, right = sides.left, sides.right
    if left.shape != right.shape:
        raise ValueError(f"{sides.of}: left is {left.shape}, right is {right.shape}")
    deviation: Array = np.abs(left - right)
    limit = limit_of(tolerance, left, right) if sides.limit is None else np.full_like(deviation, sides.limit)
    size = deviation / limit
    if sides.counts is not None:
        size = np.where(sides.counts, size, -1.0)
    flat = int(size.argmax())
    if size.flat[flat] < 0:
        return None
    if not size.flat[flat] < 1:
        found = _decisive(sides, deviation, limit, expected)
        if found is None:
            return None
        size, flat = found
    place = tuple(map(int, np.unravel_index(flat, left.shape)))
    numbers = float(deviation[place]), float(limit[place]), bound_at(sides.rounding, place)
    observed = OBSERVATIONS.index(observe(*numbers))
    ratio = float(size[place])
    rank = observed, np.inf if np.isnan(ratio) else ratio
    in_case = (place[0] + case.first_head, place[1] + case.first_row, *place[2:])
    return Measure(*numbers, worst(sides, in_case, float(left[place]), float(right[place])), rank)


def _decisive(sides: Sides, deviation: Array, limit: Array, expected: Expectation) -> tuple[Array, int] | None:
    """Choose among elements that do not all agree: return their sizes and the place of the decisive one."""
    counted = np.broadcast_to(True if sides.counts is None else sides.counts, deviation.shape)
    bound = np.broadcast_to(np.where(np.isnan(sides.rounding), np.inf, sides.rounding), deviation.shape)
    limit[~np.isfinite(limit)] = 0.0  # an infinity agrees with its equal only
    deviation[sides.left == sides.right] = 0.0  # equal infinities
    deviation[~np.isfinite(sides.left) & (bound == np.inf)] = np.nan  # an overflow that the bound foretold
    over = counted & ~(deviation <= limit)
    broken = over & ~(deviation <= bound) & (bound < np.inf)
    finite = counted & (limit > 0)  # where everything agrees, one that could differ by little tells more than −∞
    candidates = next((group for group in (broken, over, finite, counted) if group.any()), None)
    if candidates is None:
        return None
    in_limits = np.divide(deviation, limit, out=np.where(deviation > 0, np.inf, 0.0), where=limit > 0)
    size = deviation if expected == "breaks" and (candidates is broken or candidates is over) else in_limits
    size = np.where(np.isnan(size), np.inf, size)
    size_of_candidates = np.where(candidates, size, -1.0)
    # The first of those that differ by rounding only: another processor should choose the same.
    return size, int((size_of_candidates >= size_of_candidates.max() * (1 - 1e-9)).argmax())


def bound_at(bound: Array | float, place: tuple[int, ...]) -> float:
    """Return the bound, or the limit, of one element, where axes of length 1 stand for all."""
    if isinstance(bound, np.ndarray):
        bound = bound[tuple(index if length > 1 else 0 for index, length in zip(place, bound.shape, strict=True))]
    return np.inf if np.isnan(bound) else float(bound)  # what overflowed bounds nothing


def worst(sides: Sides, place: tuple[int, ...], left: float, right: float) -> Worst:
    """Describe an element by its place in the case and its two sides."""
    head, row, *rest = place
    return Worst(sides.of, head, row, sides.axis if rest else None, rest[0] if rest else None, left, right)
