"""The verdict in one sentence, the counts, what was judged and where."""

from __future__ import annotations

from collections import Counter

from verify_attention.languages import Language
from verify_attention.model import Finding, Report
from verify_attention.reports.figures import SEVERITY, why_skipped
from verify_attention.reports.page.markup import Markup, el, filtered, join, pill, singular
from verify_attention.reports.telling import notes

Facts = list[tuple[str, str]]


def overview(report: Report, say: Language) -> Markup:
    """Say whether all is as expected, of what, and that this page only shows it."""
    findings = [finding for _, finding in report.findings()]
    shows = say("This page shows what the results say, and judges nothing. {command} judges them anew.")
    before, _, after = shows.partition("{command}")
    return el(
        "section",
        _verdict(report, findings, say),
        _counts(findings, say),
        *(el("p", note) for note in notes(report, say)),
        facts(_judged(report, say)),
        el("p", before, el("code", "verify-attention gate results.json"), after, class_="muted"),
        id="verdict",
        aria_labelledby="verdict-title",
    )


def facts(pairs: Facts, css: str = "facts") -> Markup:
    """Return names and what they are."""
    return el("dl", *(el("div", el("dt", name), el("dd", value)) for name, value in pairs), class_=css)


def _verdict(report: Report, findings: list[Finding], say: Language) -> Markup:
    broken = sum(finding.broke for finding in findings)
    checked = sum(finding.checked for finding in findings)
    numbers = {"equations": f"{checked:,}", "cases": f"{len(report.cases):,}"}
    if broken == 1:
        told = say(
            "1 finding is not as its case expects: {equations} equations really checked in {cases} cases.", **numbers
        )
    elif broken:
        numbers["broken"] = f"{broken:,}"
        told = say(
            "{broken} findings are not as their cases expect: {equations} equations really checked in {cases} cases.",
            **numbers,
        )
    elif checked:
        told = say("All as expected: {equations} equations really checked in {cases} cases.", **numbers)
    else:
        told = say("Nothing was shown: no equation was really checked in {cases} cases.", **numbers)
    sentence = singular(told)
    kind = "bad" if broken else "good" if checked else "nothing"
    return el("h2", sentence, id="verdict-title", class_=kind)


def _counts(findings: list[Finding], say: Language) -> Markup:
    counts = Counter(finding.status for finding in findings)
    items = [
        el("li", el("b", "0"), " ", pill(status, say), class_="none")
        if not counts[status]
        else el("li", el("a", el("b", f"{counts[status]:,}"), " ", pill(status, say), href=filtered(status=status)))
        for status in SEVERITY
    ]
    against = sum(finding.contradicted for finding in findings)
    if against:
        items.append(el("li", el("b", f"{against:,}"), " ", say("pass against the mathematics")))
    skipped = el("p", say("Skipped:"), " ", why_skipped(findings, say), class_="muted") if counts["skipped"] else None
    return join([el("ul", *items, class_="counts"), skipped])


def _judged(report: Report, say: Language) -> Facts:
    own, tolerance = report.implementation, report.tolerance
    inside = "" if own.computes_in == own.dtype else f" ({say('computed in {dtype}', dtype=own.computes_in)})"
    named = say("{name}, version {version}", name=own.name, version=own.version)
    where = ", ".join(f"{name} {value}" for name, value in report.environment.items())
    return [
        (say("Judged"), own.name if own.version == "unknown" else named),
        (say("Numbers"), own.dtype + inside),
        (say("Tolerance"), f"rtol {tolerance.rtol!r}, atol {tolerance.atol!r}"),
        (say("Environment"), where),
        (say("Tool"), f"verify-attention {report.version}"),
    ]
