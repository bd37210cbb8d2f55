"""What the parts and blocks of one equation have shown, and what follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from verify_attention import comparison
from verify_attention.model import CONTROL, FLOAT64, Case, Expectation, Finding, Invariant, Sides, Tolerance
from verify_attention.wording import join

NO_CONTRAST = f"the gaps move, but no weight moves by {CONTROL:g}"


@dataclass
class Tally:
    """What the parts and blocks of one equation have shown so far."""

    invariant: Invariant
    case: Case
    tolerance: Tolerance
    expected: Expectation
    measure: comparison.Measure | None = None
    moved: bool = False
    contrast: bool | None = None
    cut_short: str = ""  # why not all parts could be asked for
    hidden: str = ""  # which part was not shown: the others decide

    @property
    def coarse(self) -> bool:
        """Whether the case is one for a precision coarser than float64."""
        return self.case.precision != FLOAT64

    def add(self, sides: Sides, block: Case) -> None:
        """Take one part of the equation on one block of the case."""
        if self.coarse:
            sides = comparison.as_coarse(sides, self.tolerance)
        if sides.contrast:
            found = comparison.measure(sides, self.tolerance, "breaks", block)
            differs = found is not None and comparison.status("breaks", *found.numbers) == "pass"
            self.contrast = bool(self.contrast) or differs
            return
        self.moved = self.moved or bool(comparison.told_apart(sides, self.tolerance).any())
        found = comparison.measure(sides, self.tolerance, self.expected, block)
        if found is not None and (self.measure is None or found.rank > self.measure.rank):
            self.measure = found

    @property
    def agrees_where_it_should_not(self) -> bool:
        """Whether a control in a coarse precision has not broken: rounding may hide what it should show."""
        return (
            self.coarse and self.expected == "breaks" and self.measure is not None and self.measure.observed == "holds"
        )

    @property
    def breaks(self) -> bool:
        """Whether the sides differ by more than the limit, and as much as a control must."""
        return self.measure is not None and comparison.status("breaks", *self.measure.numbers) == "pass"

    def finding(self, missing: Mapping[str, Sequence[str]], hidden_by_rounding: bool = True) -> Finding:
        """Conclude.

        `hidden_by_rounding` says whether right code would not break either. `missing` names for each trait that
        the claim lacks here the features that take it away. An equation that proves nothing here, or of which a
        part could not be asked for, is skipped, unless it breaks all the same. One of which a part is not shown
        is judged by the parts that are.
        """
        found = self.measure
        if self.cut_short and (found is None or found.observed != "breaks" or self.expected == "breaks"):
            return Finding(self.invariant.name, "skipped", self.expected, reason=self.cut_short)
        if found is None or not (self.moved or (found.observed == "breaks" and self.expected != "breaks")):
            if self.hidden:
                return Finding(self.invariant.name, "skipped", self.expected, reason=self.hidden)
            hides = f"what rounding in {self.case.precision.computes_in} may do is as large as all that is said"
            why = hides if self.coarse else self.invariant.vacuous
            return unchecked(self.invariant, self.case, f"vacuous: {why}")
        status = comparison.status(self.expected, *found.numbers)
        reason = None if status == "pass" else _explained(self.expected, found)
        taken = taken_away(missing)
        if taken and self.invariant.name not in self.case.expect:
            status, reason = "skipped", f"not claimed: {taken}; {_measured(found)}"
        elif taken and reason is not None:
            reason = f"{reason}; {taken}"
        elif status == "pass" and self.contrast is False:
            status, reason = "inconclusive", NO_CONTRAST
        if self.coarse and (status == "inconclusive" or (self.agrees_where_it_should_not and hidden_by_rounding)):
            status, reason = "skipped", f"vacuous: rounding in {self.case.precision.computes_in} hides it: {reason}"
        return Finding(
            self.invariant.name,
            status,
            self.expected,
            found.observed,
            *found.numbers,
            worst=found.worst,
            reason=reason,
        )


def taken_away(missing: Mapping[str, Sequence[str]]) -> str:
    """Say which features take away which traits: `rope and softcap take away "common key shift"`."""
    by_features: dict[tuple[str, ...], list[str]] = {}
    for trait, names in missing.items():
        by_features.setdefault(tuple(names), []).append(f'"{trait}"')
    return ", ".join(
        f"{join(names)} {'takes' if len(names) == 1 else 'take'} away {join(traits)}"
        for names, traits in by_features.items()
    )


def unchecked(invariant: Invariant, case: Case, reason: str) -> Finding:
    """Return a finding on an equation that could not have failed here; believing otherwise is inconclusive."""
    return _unchecked(invariant.name, case.expect.get(invariant.name), reason, case.precision != FLOAT64)


@lru_cache(1024)
def _unchecked(name: str, expected: Expectation | None, reason: str, coarse: bool) -> Finding:
    if expected is None or coarse:  # what a case expects, it expects in float64
        return Finding(name, "skipped", expected or "holds", reason=reason)
    return Finding(name, "inconclusive", expected, reason=f"expected {expected}, but nothing was checked: {reason}")


def _measured(found: comparison.Measure) -> str:
    worst = found.worst
    apart = f"{'agree within' if found.observed == 'holds' else 'differ by'} {found.deviation:.2g}"
    return f"{worst.left:.9g} against {worst.right:.9g}, which {apart if found.deviation else 'are equal'}, at {worst}"


def _explained(expected: Expectation, found: comparison.Measure) -> str:
    """Say why a finding is not a pass."""
    deviation, limit, bound = found.numbers
    if bound == np.inf and found.observed == "within-rounding":
        return f"ill-conditioned: at {found.worst} rounding alone may exceed any answer, or a score overflows float64"
    if expected == "breaks" and found.observed == "holds":
        return f"expected to break, but found {_measured(found)}; limit {limit:.2g}"
    if expected == "breaks" and np.isfinite(deviation):
        least = max(CONTROL, bound)
        return f"expected to break by more than {least:.2g}, but found {_measured(found)}"
    if found.observed == "within-rounding":
        return f"ill-conditioned: {_measured(found)}; limit {limit:.2g}, within the rounding bound {bound:.2g}"
    return f"{_measured(found)}; limit {limit:.2g}, rounding bound {bound:.2g}"
