"""Which findings are told first, and which stand for others: the same in every report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from verify_attention.model import ABOUT_OTHERS, BROKEN, Case, Finding, Report
from verify_attention.reports.figures import SEVERITY, kind_of

Found = tuple[Case, Finding]


def broken_first(findings: Iterable[Found]) -> list[Found]:
    """Return what broke, or passes against the mathematics: the gravest first, and the first on each claim first."""
    seen: Counter[str] = Counter()
    ranked = []
    for case, finding in findings:
        if finding.status in BROKEN or finding.contradicted:
            ranked.append((SEVERITY.index(finding.status), seen[finding.invariant], case, finding))
            seen[finding.invariant] += 1
    ranked.sort(key=lambda entry: entry[:2])
    return [(case, finding) for _, _, case, finding in ranked]


def alike_once(broken: Iterable[Found]) -> list[Found]:
    """Leave out crashes whose reason was told before: one mistake makes everything crash alike."""
    told: set[str] = set()
    kept = []
    for case, finding in broken:
        if finding.status == "crashed":
            if (finding.reason or "") in told:
                continue
            told.add(finding.reason or "")
        kept.append((case, finding))
    return kept


def not_applicable(finding: Finding) -> bool:
    """Say whether a case is none that the claim is about."""
    return finding.status == "skipped" and kind_of(finding.reason or "") == "not applicable"


def gravest(group: Sequence[Finding]) -> Finding:
    """Return the first finding with the worst status."""
    return min(group, key=lambda finding: SEVERITY.index(finding.status))


def largest(group: Sequence[Finding]) -> Finding | None:
    """Return the finding with the largest deviation in its limits; controls and large numbers are meant to be off."""
    claims = [finding for finding in group if finding.checked and finding.expected == "holds"]
    return max(claims, key=_in_limits, default=None)


def _in_limits(finding: Finding) -> float:
    if finding.deviation is None or finding.limit is None or np.isnan(finding.deviation):
        return np.inf
    return finding.deviation / finding.limit if finding.limit else np.inf * (finding.deviation > 0)


def never_checked(report: Report) -> list[str]:
    """Return the claims that no case checked; those about other implementations are not missing from the core's run."""
    checked: dict[str, bool] = {}
    for _, finding in report.findings():
        if finding.reason == ABOUT_OTHERS:
            continue
        checked[finding.invariant] = checked.get(finding.invariant, False) or finding.checked
    return [invariant for invariant, once in checked.items() if not once]
