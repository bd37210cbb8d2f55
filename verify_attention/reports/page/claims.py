"""The claims: one row for each invariant, and what it says in a small box of its own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from verify_attention.languages import Language
from verify_attention.model import Finding, Report
from verify_attention.plugins import invariants
from verify_attention.reports.figures import figure, shown_as
from verify_attention.reports.overview import by_invariant as asked
from verify_attention.reports.overview import gravest, largest, never_checked
from verify_attention.reports.page.markup import Markup, as_said, el, encoded, filtered, join, pill, scrolling
from verify_attention.reports.page.scale import in_words, scale

Groups = dict[str, list[Finding]]


def by_invariant(report: Report) -> Groups:
    """Return the findings of each invariant, in the order of the report."""
    groups: Groups = defaultdict(list)
    for _, finding in report.findings():
        groups[finding.invariant].append(finding)
    return dict(groups)


def claims_section(report: Report, groups: Groups, say: Language) -> Markup:
    """Give each invariant a row, what broke first; claims that no case checked stand apart, with the reasons."""
    shown = [each.findings for each in asked(report)]
    never = [groups[name] for name in never_checked(report)]
    label = say("Invariants: worst status, and the largest deviation against its limit")
    headings = say("invariant"), say("status"), say("really checked"), say("deviation"), say("drawn"), say("limit")
    head = el("tr", *(_column(word, say) for word in headings))
    body = el("tbody", *(_row(group, say) for group in shown))
    table = el("table", el("caption", label), el("thead", head), body, class_="claims")
    return el(
        "section",
        el("h2", say("Invariants"), id="invariants-title"),
        scrolling(table, label) if shown else None,
        _never(never, say) if never else None,
        id="invariants",
        aria_labelledby="invariants-title",
    )


def _column(word: str, say: Language) -> Markup:
    numeric = word in {say("really checked"), say("deviation"), say("limit")}
    return el("th", word, scope="col", class_="numeric" if numeric else None)


def claim_of(invariant: str, say: Language) -> str:
    """Return what an invariant says; nothing where this version does not know it."""
    known = invariants().get(invariant)
    return say(known.claim) if known else ""


def _row(group: Sequence[Finding], say: Language) -> Markup:
    found, worst = gravest(group), largest(group)
    checked = sum(finding.checked for finding in group)
    deviation, limit = (worst.deviation, worst.limit) if worst else (None, None)
    link = el("a", found.invariant, href=filtered(invariant=found.invariant))
    return el(
        "tr",
        el("th", link, el("span", claim_of(found.invariant, say), class_="what"), scope="row"),
        el("td", pill(shown_as(found), say)),
        el("td", f"{checked:,} / {len(group):,}", class_="n"),
        el("td", in_words(deviation, say), class_="n"),
        el("td", scale(deviation, limit)),
        el("td", figure(limit), class_="n"),
    )


def _never(groups: Sequence[Sequence[Finding]], say: Language) -> Markup:
    """Name the claims that were never really checked, and why not."""
    items = []
    for group in groups:
        why = Counter(finding.reason or "" for finding in group).most_common(1)[0][0]
        name = el("a", group[0].invariant, href=filtered(invariant=group[0].invariant))
        items.append(el("div", el("dt", name), el("dd", as_said(why, say))))
    title = el("h3", say("Claims that were never really checked: {number}", number=len(groups)))
    told = say("Nothing is shown of these claims here. The reason that most cases have:")
    return join([title, el("p", told, class_="muted"), el("dl", *items, class_="never")])


def boxes(groups: Groups, say: Language) -> Markup:
    """Return for each invariant a box with its claim, which a button in the table of a case opens."""
    return join(_box(name, say) for name in groups)


def _box(name: str, say: Language) -> Markup:
    known = invariants().get(name)
    formula = el("p", el("code", say(known.formula))) if known else None
    source = el("p", say(known.source), class_="muted") if known else None
    more = el("a", say("all findings of this claim"), href=filtered(invariant=name))
    claim = el("p", claim_of(name, say) or say("This version does not know the claim."))
    return el("div", el("b", name), claim, formula, source, more, id=f"claim-{encoded(name)}", popover=True)
