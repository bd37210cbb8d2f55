"""What exact arithmetic says of an equation on a case: whether it is mathematics or rounding that breaks it.

The same core and the same sides run on numbers of another kind, on the binary64 numbers of the case. In closed form all
that softmax makes of rational scores is decided. What leaves it, by a root, a rotation or a cap, is left to balls,
which tell numbers apart, and else bound how far apart they may be.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np

from verify_attention.exact import sums
from verify_attention.exact.arrays import Kind
from verify_attention.exact.attend import ExactCore
from verify_attention.exact.balls import INSTALL, MEETING, balls, balls_are_here
from verify_attention.exact.closed_form import CLOSED_FORM
from verify_attention.exact.deciding import Decision, decide
from verify_attention.exact.lifting import lifted
from verify_attention.model import FLOAT64, Case, CaseReport, Finding, Invariant, Opinion, Tolerance
from verify_attention.plugins import invariants

IN_CLOSED_FORM = "in closed form"
BITS = (212, 848)  # of balls, as long as they are too wide
MOST_SECONDS = {"closed form": 20, "balls": 60}  # that one claim may be estimated at; the first leaves it to the second
SECONDS = {"closed form": 4e-6, "balls": 1e-6}  # for each multiplication, with what comes along, measured
WITHOUT_BALLS = Opinion("undecided", reason=f"not in closed form; balls may tell: {INSTALL}")
POSED = {"closed form": 50, "balls": 30}  # as much again, where a claim poses the case in many ways


def opined(report: CaseReport, tolerance: Tolerance) -> CaseReport:
    """Give every finding that has a measurement the opinion of exact arithmetic."""
    expert = Expert(report.case, tolerance)
    known = invariants()
    findings = (
        finding
        if finding.observed is None
        else finding._replace(opinion=expert.opinion(known[finding.invariant], finding))
        for finding in report.findings
    )
    return replace(report, findings=tuple(findings))


class Expert:
    """Exact arithmetic on one case, whose traces serve all claims."""

    def __init__(self, case: Case, tolerance: Tolerance) -> None:
        self._case = case
        self._tolerance = tolerance
        self._known: dict[int, tuple[Kind, Case, ExactCore]] = {}

    def opinion(self, invariant: Invariant, finding: Finding) -> Opinion:
        """Return what exact arithmetic says of a claim, of which a finding says what was measured."""
        if invariant.of_others:
            return Opinion("skipped", reason="the claim is about what an implementation does, not about the formula")
        if self._seconds("closed form", invariant) <= MOST_SECONDS["closed form"]:
            found = self._decided(invariant, finding, 0)
            if found.verdict in {"proved", "refuted"}:
                return _opinion(found, IN_CLOSED_FORM)
        if (seconds := self._seconds("balls", invariant)) > MOST_SECONDS["balls"]:
            return Opinion("skipped", reason=f"too large for exact arithmetic: estimated at {seconds:,.0f} s")
        if not balls_are_here():
            return WITHOUT_BALLS
        for bits in BITS:
            found = self._decided(invariant, finding, bits)
            if found.verdict != "undecided":
                break
        return _opinion(found, f"by balls of {bits} bits")

    def _decided(self, invariant: Invariant, finding: Finding, bits: int) -> Decision:
        """Decide in closed form, or by balls of so many bits."""
        if bits not in self._known:
            kind: Kind = balls(bits) if bits else CLOSED_FORM
            self._known[bits] = kind, lifted(self._case, kind), ExactCore()
        kind, case, attend = self._known[bits]
        kind.use()
        try:
            with np.errstate(all="ignore"):
                # In a coarse precision limits are rounding bounds, which numbers that are not rounded do not have.
                least = 0.0 if self._case.precision == FLOAT64 else finding.limit or 0.0
                with localcontext(sums.context_of(sums.DIGITS)):
                    return decide(invariant.sides(case, attend), kind, finding.worst, self._tolerance, least)
        except ArithmeticError:  # it cannot be told which of two numbers is the larger
            return Decision("undecided")

    def _seconds(self, kind: str, invariant: Invariant) -> float:
        heads, rows, keys = self._case.scores_shape
        products = heads * rows * keys * (self._case.d_k + self._case.d_v + 30)
        return products * SECONDS[kind] * (POSED[kind] if invariant.on_request else 1)


def _opinion(found: Decision, how: str) -> Opinion:
    difference = None if found.difference is None else float(found.difference)
    return Opinion(found.verdict, difference, found.limit, found.worst, _said(found, how))


def _said(found: Decision, how: str) -> str:
    if found.verdict == "proved":
        return f"by the formula the sides are the same number, {how}"
    if found.verdict == "bounded":
        return f"by the formula the sides are no farther apart than {MEETING:g}, {how}"
    if found.worst is None or found.difference is None:
        return f"cannot be told {how}"
    worst = found.worst
    numbers = "" if worst.left == worst.right else f" ({worst.left:.9g} against {worst.right:.9g})"
    return f"by the formula the sides differ by {_few(found.difference)}{numbers} at {worst}, {how}"


def _few(difference: Decimal) -> str:
    """Return a difference in a few digits, which may be too small for a float."""
    number = float(difference)
    return f"{number:.3g}" if number else f"{difference:.2e}"
