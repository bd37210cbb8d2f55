"""The sentences that every form of a report tells: of what broke, of what was not checked, and the last line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from verify_attention.languages import ENGLISH, Language
from verify_attention.model import BROKEN, CaseReport, Finding, Report, Status
from verify_attention.reports.figures import (
    MOST_REASONS,
    SEVERITY,
    counted,
    exact_lines,
    figure,
    unusual,
    verdict_line,
    why_skipped,
)
from verify_attention.reports.overview import controls, never_checked, not_offered, reproduced, with_numbers
from verify_attention.wording import printable

MOST_PUBLISHED = 3


def why(finding: Finding, say: Language = ENGLISH) -> Iterator[str]:
    """Yield why a finding broke, what follows from exact arithmetic, and what may be done."""
    if finding.reason is not None:
        yield printable(say.told(finding.reason))
    if finding.opinion is not None:
        yield printable(verdict_line(finding, say))
    if finding.observed == "within-rounding" and finding.rounding_bound != np.inf:
        expectation = f"expect: {{{finding.invariant}: within-rounding}}"
        yield say("if numbers this large are meant: {expectation}", expectation=expectation)


def notes(report: Report, say: Language = ENGLISH) -> Iterator[str]:
    """Yield what was never checked, and of published cases what the article says of its own."""
    expected = controls(report)
    if expected:
        listed = ", ".join(
            say("{invariant} in {cases}", invariant=name, cases=counted(number, "case", say))
            for name, number in expected.items()
        )
        yield say("Breaks where that is expected: {list}", list=listed)
    kinds = not_offered(finding for _, finding in report.findings())
    if kinds:
        listed = "; ".join(f"{say.told(reason)} ({number:,})" for reason, number in kinds.most_common(MOST_REASONS))
        others = len(kinds) - MOST_REASONS
        listed += say("; and {count} other reasons", count=others) if others > 0 else ""
        yield say("Not offered: {list}", list=listed)
    told = [finding for _, finding in report.findings() if finding.opinion is not None]
    if told:
        yield from exact_lines(told, say)
    never = never_checked(report)
    if never:
        yield say("Never really checked: {list}", list=", ".join(never))
    published = with_numbers(report)
    for entry in published[:MOST_PUBLISHED]:
        yield published_line(entry, say)
    if len(published) > MOST_PUBLISHED:
        more = Counter(map(reproduced, published[MOST_PUBLISHED:]))
        yield say(
            "… and {cases} with printed numbers, {list}",
            cases=counted(len(published) - MOST_PUBLISHED, "more case", say),
            list=", ".join(f"{number:,} {say.told(words)}" for words, number in more.items()),
        )


def published_line(entry: CaseReport, say: Language = ENGLISH) -> str:
    """Say whether a case's published numbers are reproduced, and by how much the K bias moved its weights."""
    printed = entry.case.published.numbers if entry.case.published is not None else {}
    total = sum(
        array.size
        for quantity, by_condition in printed.items()
        for condition, array in by_condition.items()
        if entry.conditions[condition].get(quantity) is not None
    )
    line = say(
        "{case}: {numbers} {reproduced}",
        case=entry.case.id,
        numbers=counted(total, "printed number", say),
        reproduced=say.told(reproduced(entry)),
    )
    base, biased = (entry.conditions[condition].get("weights") for condition in ("none", "k"))
    if isinstance(base, np.ndarray) and isinstance(biased, np.ndarray):
        with np.errstate(all="ignore"):
            largest = figure(float(np.abs(base - biased).max()))
        line += say("; largest difference between base and K-bias weights: {number}", number=largest)
    return line


def summary(report: Report, say: Language = ENGLISH) -> tuple[Status, str]:
    """Return the gravest status, and in a line what was judged, how much of it really, and what came of it."""
    findings = [finding for _, finding in report.findings()]
    counts = Counter(finding.status for finding in findings)
    checked = sum(finding.checked for finding in findings)
    gravest: Status = next((status for status in SEVERITY if counts[status]), "skipped")
    broken = [
        say(f"{{count}} {status}", count=f"{counts[status]:,}")
        for status in SEVERITY
        if status in BROKEN and counts[status]
    ]
    if against := sum(finding.contradicted for finding in findings):
        broken.append(say("{count} against the mathematics", count=f"{against:,}"))
        gravest = gravest if gravest in BROKEN else "fail"
    line = say(
        "{whose}{cases}, {equations} really checked{tolerance}: {outcome}",
        whose=_whose(report, say),
        cases=counted(len(report.cases), "case", say),
        equations=counted(checked, "equation", say),
        tolerance=unusual(report.tolerance, ", {} {!r}"),
        outcome=say(", ").join(broken) or say("all as expected" if checked else "nothing was shown"),
    )
    if counts["skipped"]:
        reasons = why_skipped(findings, say)
        line += say("; {count} skipped: {reasons}", count=f"{counts['skipped']:,}", reasons=reasons)
    return gravest, line


def _whose(report: Report, say: Language) -> str:
    """Return what was judged, where it is not the core."""
    own = report.implementation
    if own.name == "core":
        return ""
    inside = "" if own.computes_in == own.dtype else say(" (computed in {precision})", precision=own.computes_in)
    return f"{own.name}, {own.dtype}{inside}: "
