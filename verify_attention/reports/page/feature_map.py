"""The map of the features of this report's cases: how three claims about biases fare under each."""

from __future__ import annotations

from collections import Counter, defaultdict

from verify_attention.boundaries import CLAIMS
from verify_attention.languages import Language
from verify_attention.model import CaseReport, Expectation, Finding, Report, Status
from verify_attention.plugins import features
from verify_attention.reports.figures import SEVERITY
from verify_attention.reports.page.markup import Markup, el, filtered, join, pill, scrolling, worded

PLAIN = "plain"  # the row of cases without features


def features_of(report: Report) -> dict[str, list[CaseReport]]:
    """Return the cases that have each feature, plain ones first, then in the order in which features act."""
    having: dict[str, list[CaseReport]] = defaultdict(list)
    for entry in report.cases:
        for name in entry.case.features or (PLAIN,):
            having[name].append(entry)
    order = [name for name in (PLAIN, *features()) if name in having]
    return {name: having[name] for name in [*order, *sorted(having.keys() - set(order))]}


def feature_section(report: Report, say: Language) -> Markup:
    """Return a row for each feature, and a column for each claim of the map."""
    label = say("Features of these cases, and how the claims about biases fare under each")
    headings = say("feature"), say("cases"), *(say(words) for words in CLAIMS.values())
    head = el("tr", *(el("th", word, scope="col") for word in headings))
    rows = (_row(name, entries, say) for name, entries in features_of(report).items())
    told = say("A case with several features counts in the row of each. The words say what was observed.")
    return el(
        "section",
        el("h2", say("Features"), id="features-title"),
        el("p", told, class_="muted"),
        scrolling(el("table", el("caption", label), el("thead", head), el("tbody", *rows), class_="map"), label),
        id="features",
        aria_labelledby="features-title",
    )


def feature_name(name: str, say: Language) -> str:
    """Return a feature's name, or that there is none."""
    return say("plain attention") if name == PLAIN else name


def _row(name: str, entries: list[CaseReport], say: Language) -> Markup:
    cells = (_cell(name, claim, entries, say) for claim in CLAIMS)
    link = el("a", f"{len(entries):,}", href=filtered(feature=name))
    return el("tr", el("th", feature_name(name, say), scope="row"), el("td", link, class_="n"), *cells)


def _cell(name: str, claim: str, entries: list[CaseReport], say: Language) -> Markup:
    found = [finding for entry in entries for finding in entry.findings if finding.invariant == claim]
    if not found:
        return el("td", say("not asked"), class_="muted")
    counts = Counter(finding.status for finding in found)
    links = (_count(counts[status], status, name, claim, say) for status in SEVERITY if counts[status])
    return el("td", join(links), el("span", _observed(found, say), class_="what"))


def _count(number: int, status: Status, name: str, claim: str, say: Language) -> Markup:
    address = filtered(status=status, invariant=claim, feature=name)
    return el("a", pill(status, say), f" {number:,}", href=address, class_="count")


def _observed(found: list[Finding], say: Language) -> str:
    counts = Counter(finding.observed for finding in found if finding.observed is not None)
    order: tuple[Expectation, ...] = ("holds", "breaks", "within-rounding")
    return " · ".join(f"{worded(kind, say)} {counts[kind]:,}" for kind in order if counts[kind])
