"""What every form of a report tells first: what broke, in which order, and what became of each invariant."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from verify_attention.model import ABOUT_OTHERS, BROKEN, FLOAT64, Case, CaseReport, Finding, Report
from verify_attention.reports.figures import PUBLISHED, SEVERITY, kind_of, shown_as


def broken(report: Report) -> list[tuple[Case, Finding]]:
    """Return what broke, the gravest first, and of these the first on each claim before the second on any."""
    seen: Counter[str] = Counter()
    ranked = []
    for case, finding in report.findings():
        if finding.broke:
            ranked.append((SEVERITY.index(shown_as(finding)), seen[finding.invariant], case, finding))
            seen[finding.invariant] += 1
    return [(case, finding) for _, _, case, finding in sorted(ranked, key=lambda entry: entry[:2])]


def alike_once(found: Iterable[tuple[Case, Finding]]) -> list[tuple[Case, Finding]]:
    """Leave out crashes whose reason was told before: one mistake makes everything crash alike."""
    told: set[str] = set()
    kept = []
    for case, finding in found:
        if finding.status == "crashed":
            if (finding.reason or "") in told:
                continue
            told.add(finding.reason or "")
        kept.append((case, finding))
    return kept


def gravest(findings: Sequence[Finding]) -> Finding:
    """Return the first finding with the worst status, as it is called."""
    return min(findings, key=lambda finding: SEVERITY.index(shown_as(finding)))


def largest(findings: Sequence[Finding]) -> Finding | None:
    """Return the finding with the largest deviation in its limits; controls and large numbers are meant to be off."""
    claims = [finding for finding in findings if finding.checked and finding.expected == "holds"]
    return max(claims, key=in_limits, default=None)


def in_limits(finding: Finding) -> float:
    """Return a finding's deviation in limits; infinity where it is no finite number."""
    if finding.deviation is None or not math.isfinite(finding.deviation):
        return math.inf
    if not finding.limit:
        return math.inf if finding.deviation else 0.0
    return finding.deviation / finding.limit


@dataclass(frozen=True)
class Claimed:
    """What became of one invariant: its findings, of which the gravest and the one nearest to its limit tell most."""

    invariant: str
    findings: tuple[Finding, ...]

    @property
    def gravest(self) -> Finding:
        """The worst that was found."""
        return gravest(self.findings)

    @property
    def checked(self) -> int:
        """In how many cases the equation was really checked."""
        return sum(finding.checked for finding in self.findings)

    @property
    def largest(self) -> Finding | None:
        """The finding that is nearest to its limit, or farthest beyond it."""
        return largest(self.findings)

    @property
    def asked(self) -> bool:
        """Whether it applies to some case."""
        return not all(
            finding.status == "skipped" and kind_of(finding.reason or "") == "not applicable"
            for finding in self.findings
        )


def by_invariant(report: Report) -> list[Claimed]:
    """Return what became of each invariant that applies to some case: what broke first."""
    groups: dict[str, list[Finding]] = defaultdict(list)
    for _, finding in report.findings():
        groups[finding.invariant].append(finding)
    asked = (each for name, group in groups.items() if (each := Claimed(name, tuple(group))).asked)
    return sorted(asked, key=lambda each: min(SEVERITY.index(shown_as(each.gravest)), len(BROKEN)))


def never_checked(report: Report) -> list[str]:
    """Return the claims that no case checked; those about other implementations are not missing from the core's run."""
    checked: dict[str, bool] = {}
    for _, finding in report.findings():
        if finding.reason == ABOUT_OTHERS:
            continue
        checked[finding.invariant] = checked.get(finding.invariant, False) or finding.checked
    return [invariant for invariant, once in checked.items() if not once]


def controls(report: Report) -> Counter[str]:
    """Return in how many cases each invariant breaks where that is expected."""
    return Counter(
        finding.invariant
        for _, finding in report.findings()
        if finding.expected == "breaks" and finding.status == "pass"
    )


def not_offered(findings: Iterable[Finding]) -> Counter[str]:
    """Return what the implementation does not offer, and in how many findings."""
    return Counter(
        (finding.reason or "").removeprefix("not offered: ")
        for finding in findings
        if finding.status == "skipped" and kind_of(finding.reason or "") == "not offered"
    )


def with_numbers(report: Report) -> list[CaseReport]:
    """Return the cases with printed numbers, first those that are not reproduced."""
    return sorted((entry for entry in report.cases if entry.case.published is not None), key=reproduced)


def reproduced(entry: CaseReport) -> str:
    """Say whether a case's printed numbers are reproduced."""
    statuses = {finding.status for finding in entry.findings if finding.invariant == PUBLISHED}
    if statuses & BROKEN:
        return "NOT all reproduced"
    if statuses != {"pass"}:
        return "not compared"
    own = entry.case.precision
    return "reproduced" if own == FLOAT64 else f"reproduced as far as {own.computes_in} tells"
