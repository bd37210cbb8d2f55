"""What broke: each finding with both sides, the reason, the cause, and the command that repeats it."""

from __future__ import annotations

from verify_attention.languages import Language
from verify_attention.model import Case, Finding, Report, Worst
from verify_attention.reports.figures import again, figure, shown_as, verdict_line
from verify_attention.reports.overview import alike_once, broken
from verify_attention.reports.page.markup import Markup, as_said, el, filtered, finding_id, join, pill
from verify_attention.reports.page.overview import Facts, facts
from verify_attention.reports.page.scale import of_finding

MOST_BROKEN = 20


def broken_section(report: Report, say: Language) -> Markup | None:
    """Tell what broke, or nothing where nothing did."""
    everything = broken(report)
    if not everything:
        return None
    told = alike_once(everything)[:MOST_BROKEN]
    rest = len(everything) - len(told)
    more = None
    if rest:
        link = el("a", say("show all that broke"), href=filtered(status="crashed,fail,inconclusive"))
        more = el("p", say("… and {number} more, or alike: ", number=f"{rest:,}"), link)
    items = (el("li", _told(case, finding, report, say)) for case, finding in told)
    title = el("h2", say("What broke"), id="broken-title")
    return el("section", title, el("ol", *items, class_="broken"), more, id="broken", aria_labelledby="broken-title")


def _told(case: Case, finding: Finding, report: Report, say: Language) -> Markup:
    place = el("a", f"{finding.invariant} — {case.id}", href=f"#{finding_id(case.id, finding.invariant)}")
    return join(
        [
            el("h3", pill(shown_as(finding), say), " ", place),
            el("p", as_said(finding.reason, say)) if finding.reason else None,
            _sides(finding, say) if finding.worst else None,
            opinion(finding, say),
            hint(finding, say),
            command(again(case, finding, report), say),
        ]
    )


def _sides(finding: Finding, say: Language) -> Markup:
    worst = finding.worst
    assert isinstance(worst, Worst)  # noqa: S101 - the caller has looked
    pairs: Facts = [
        (say("Left side"), repr(worst.left)),
        (say("Right side"), repr(worst.right)),
        (say("Where"), as_said(str(worst), say)),
        (say("Deviation"), f"{figure(finding.deviation)} · {say('limit')} {figure(finding.limit)}"),
    ]
    return el("div", facts(pairs, "sides"), of_finding(finding), class_="evidence")


def opinion(finding: Finding, say: Language) -> Markup | None:
    """Say what exact arithmetic makes of it, where it was asked."""
    return el("p", verdict_line(finding, say), class_="opinion") if finding.opinion else None


def hint(finding: Finding, say: Language) -> Markup | None:
    """Say what to write where large numbers are meant."""
    if finding.observed != "within-rounding" or finding.status == "pass" or finding.rounding_bound == float("inf"):
        return None
    written = f"expect: {{{finding.invariant}: within-rounding}}"
    return el("p", say("If numbers this large are meant, write in the case:"), " ", el("code", written))


def command(line: str, say: Language) -> Markup:
    """Return a command with a button that copies it."""
    button = el("button", say("Copy"), type="button", class_="copy js-only", aria_label=say("Copy the command"))
    words = [el("span", word) for word in line.split(" ")]  # a line is not broken inside a word
    return el("div", el("code", Markup(" ".join(words))), button, class_="command")
