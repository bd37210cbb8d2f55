"""Judge many small cases of equal shape together: heads are independent, so N cases of H heads are one of N·H heads.

Only what is plain is decided here: every element of every equation within its limit. A case where one is not is
judged by itself, so that both ways find the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from verify_attention import comparison
from verify_attention.engine.attend import Attend
from verify_attention.engine.single import not_of
from verify_attention.engine.tally import Tally, unchecked
from verify_attention.model import (
    CONDITIONS,
    ON_REQUEST,
    Array,
    Case,
    CaseReport,
    Finding,
    Flags,
    Implementation,
    Invariant,
    Sides,
    Tolerance,
)
from verify_attention.summary import summarised

LARGEST_CASE = 1024  # scores; larger cases gain nothing


def shape_key(case: Case) -> Hashable | None:
    """Return what cases have in common that can be judged together; None for a case that is judged by itself."""
    if case.W_O is not None or case.latent is not None:
        return None  # they belong to the heads of one case
    if case.features or case.expect or case.published is not None or np.prod(case.scores_shape) > LARGEST_CASE:
        return None
    values = None if case.values is None else case.values.shape
    return case.q.shape, case.keys.shape, values, case.bV is None, case.scale


def judged_together(
    cases: Sequence[Case],
    implementation: Implementation,
    chosen: Sequence[Invariant],
    tolerance: Tolerance,
    largest: float,
) -> Iterator[CaseReport | None]:
    """Judge cases of one `shape_key`; None for each that must be judged by itself."""
    stack, attend = stacked(cases), Attend(implementation)
    found: list[list[Finding]] = [[] for _ in cases]
    plain = np.ones(len(cases), dtype=bool)
    with np.errstate(all="ignore"):
        for invariant in chosen:
            reason = ON_REQUEST if invariant.on_request else not_of(invariant, implementation)
            if reason is None:
                _judge(invariant, cases, _Stack(stack, attend, tolerance), found, plain)
                continue
            finding = unchecked(invariant, cases[0], reason)  # what is judged together expects nothing
            for findings in found:
                findings.append(finding)
        heads = len(cases[0].q)
        traces = {condition: attend(stack.under(condition)) for condition in CONDITIONS}
    for index, case in enumerate(cases):
        own = slice(index * heads, (index + 1) * heads)
        conditions = {
            condition: {
                name: summarised(array[own], largest)
                for name, array in (*trace.inside.items(), ("output", trace.output))
            }
            for condition, trace in traces.items()
        }
        yield CaseReport(case, conditions, tuple(found[index])) if plain[index] else None


def stacked(cases: Sequence[Case]) -> Case:
    """Return one case with the heads of all, one case after the other."""

    def joined(name: str) -> Array | None:
        arrays = [getattr(case, name) for case in cases]
        return None if arrays[0] is None else np.concatenate(arrays)

    return cases[0].but(id="", **{name: joined(name) for name in ("q", "keys", "bQ", "bK", "values", "bV")})


@dataclass(frozen=True)
class _Stack:
    case: Case
    attend: Attend
    tolerance: Tolerance


def _judge(
    invariant: Invariant, cases: Sequence[Case], stack: _Stack, found: list[list[Finding]], plain: Flags
) -> None:
    """Add one invariant's finding to every case's, and strike out the cases that are not plain."""
    reasons = [invariant.not_asked(case) for case in cases]
    if all(reasons):
        for own, case, reason in zip(found, cases, reasons, strict=True):
            own.append(unchecked(invariant, case, str(reason)))
        return
    best = _Best(len(cases), stack.tolerance)
    for sides in invariant.sides(stack.case, stack.attend):
        best.add(sides)
    moved = best.moved.tolist()
    for index, (case, reason, measure) in enumerate(zip(cases, reasons, best.measures(), strict=True)):
        if reason is not None:
            found[index].append(unchecked(invariant, case, reason))
            continue
        plain[index] &= best.plain[index]
        tally = Tally(invariant, case, stack.tolerance, "holds", measure, moved[index])
        found[index].append(tally.finding({}))


@dataclass
class _Best:
    """For every case the element with the largest deviation in its limits, over the parts of one equation.

    A column of the table is a case: the deviation in limits, then deviation, limit, bound and both sides, the part,
    and the element's head, row and place on the last axis (−1 where there is none).
    """

    count: int
    tolerance: Tolerance
    parts: list[Sides] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table: Array = np.full((10, self.count), -1.0)
        self.plain: Flags = np.ones(self.count, dtype=bool)
        self.moved: Flags = np.zeros(self.count, dtype=bool)

    def add(self, sides: Sides) -> None:
        """Take one part of the equation on all cases."""
        deviation: Array = np.abs(sides.left - sides.right)
        limit = comparison.limit_of(self.tolerance, sides.left, sides.right)
        if sides.limit is not None:
            limit[...] = sides.limit
        size = self._rows(deviation / limit)
        if sides.counts is not None:
            size = np.where(self._rows(np.broadcast_to(sides.counts, deviation.shape)), size, -1.0)
        flat, cases = size.argmax(axis=1), np.arange(self.count)
        bound = np.broadcast_to(sides.rounding, deviation.shape)
        arrays = [size, *map(self._rows, (deviation, limit, bound, sides.left, sides.right))]
        heads, *rest = deviation.shape
        place = [*np.unravel_index(flat, (heads // self.count, *rest)), np.full(self.count, -1)][:3]
        found = np.array([*(array[cases, flat] for array in arrays), np.full(self.count, len(self.parts)), *place])
        self.plain[~(found[0] < 1)] = False
        self.table = np.where(found[0] > self.table[0], found, self.table)
        self.parts.append(sides)
        self.moved |= self._rows(comparison.told_apart(sides, self.tolerance)).any(axis=1).astype(bool)

    def _rows(self, array: Array) -> Array:
        return array.reshape(self.count, -1)

    def measures(self) -> Iterator[comparison.Measure | None]:
        """Yield what was measured on each case."""
        for size, deviation, limit, bound, left, right, *place in self.table.T.tolist():
            if size < 0:
                yield None
                continue
            part, head, row, last = map(int, place)
            at = (head, row) if last < 0 else (head, row, last)
            yield comparison.Measure(
                deviation, limit, bound, comparison.worst(self.parts[part], at, left, right), (0, size)
            )


def by_shape(cases: Iterable[Case]) -> dict[Hashable, list[int]]:
    """Return the places of the cases that can be judged together, by what they have in common."""
    groups: dict[Hashable, list[int]] = {}
    for index, case in enumerate(cases):
        key = shape_key(case)
        if key is not None:
            groups.setdefault(key, []).append(index)
    return groups
