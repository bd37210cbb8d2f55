"""One case: what it is, its four conditions, its findings. It folds, and is laid out only once it is opened.

Its inside is in a `noscript`, which a browser that runs scripts takes as one text, and the script unfolds it when the
case is opened. Without scripts it is simply there.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np

from verify_attention.languages import Language
from verify_attention.model import BROKEN, Case, CaseReport, Finding, Report, Status
from verify_attention.reports.figures import SEVERITY, WORDS, again, figure, shown_as, why_skipped
from verify_attention.reports.overview import gravest
from verify_attention.reports.page.broken import command, hint, opinion
from verify_attention.reports.page.conditions import figures
from verify_attention.reports.page.feature_map import PLAIN
from verify_attention.reports.page.markup import (
    Markup,
    as_said,
    case_id,
    el,
    encoded,
    finding_id,
    join,
    pill,
    scrolling,
    worded,
)
from verify_attention.reports.page.overview import Facts, facts
from verify_attention.reports.page.scale import in_words, of_finding

LETTERS = {"pass": "p", "fail": "f", "inconclusive": "i", "skipped": "s", "crashed": "c"}
SMALL = 12  # numbers of a feature that are shown


def folded_case(entry: CaseReport, places: dict[str, int], report: Report, say: Language) -> Markup:
    """Return a case: `places` is the index of each invariant on this page."""
    case = entry.case
    letters = ["-"] * len(places)
    for finding in entry.findings:
        letters[places[finding.invariant]] = LETTERS[finding.status]
    worst: Status = shown_as(gravest(entry.findings)) if entry.findings else "skipped"
    title = el("span", case.title, class_="title") if case.title else None
    summary = el("summary", pill(worst, say), " ", el("h3", case.id), " ", title, " ", _tally(entry, say))
    return el(
        "details",
        summary,
        el("noscript", _inside(entry, places, report, say)),
        class_="case",
        id=case_id(case.id),
        data_f="".join(letters),
        data_tags=" ".join(case.tags),
        data_features=" ".join(case.features or (PLAIN,)),
    )


def _tally(entry: CaseReport, say: Language) -> Markup:
    counts = Counter(finding.status for finding in entry.findings)
    words = (f"{say(WORDS[status])} {counts[status]}" for status in SEVERITY if counts[status])
    return el("span", " · ".join(words), class_="tally")


def _inside(entry: CaseReport, places: dict[str, int], report: Report, say: Language) -> Markup:
    told = [finding for finding in entry.findings if finding.status != "skipped"]
    skipped = [finding for finding in entry.findings if finding.status == "skipped"]
    return el(
        "div",
        facts(_about(entry.case, say)),
        figures(entry, say),
        _findings(entry.case, told, places, say) if told else None,
        _skipped(entry.case, skipped, places, say) if skipped else None,
        _repeat(entry, report, say) if entry.findings else None,
        class_="inside",
    )


def _about(case: Case, say: Language) -> Facts:
    heads, rows, keys = case.scores_shape
    sizes = {"H": heads, "G": len(case.keys), "Tq": rows, "Tk": keys, "d_k": case.d_k, "d_v": case.d_v}
    pairs = [
        (say("Source"), case.source or ""),
        (say("Tags"), ", ".join(case.tags)),
        (say("Features"), "; ".join(f"{name} {_shown(value)}" for name, value in case.features.items())),
        (say("Expects"), ", ".join(f"{name}: {expected}" for name, expected in case.expect.items())),
        (say("Sizes"), ", ".join(f"{name} {size}" for name, size in sizes.items()) + f", scale {case.scale:.6g}"),
        (say("File"), f"{case.file}:{case.line}" if case.file else ""),
    ]
    return [(name, value) for name, value in pairs if value]


def _shown(parameters: Any) -> str:
    if isinstance(parameters, np.ndarray):
        if parameters.size > SMALL or not np.isfinite(parameters).all():
            return f"[{' × '.join(map(str, parameters.shape))}]"
        return json.dumps(parameters.tolist())
    if isinstance(parameters, dict):
        return f"{{{', '.join(f'{name}: {_shown(value)}' for name, value in parameters.items())}}}"
    return json.dumps(parameters)


def _findings(case: Case, told: list[Finding], places: dict[str, int], say: Language) -> Markup:
    label = say("Findings")
    words = (say("status"), say("invariant"), say("expected"), say("observed"))
    numbers = (say("deviation"), say("limit"), say("rounding bound"))
    columns = [el("th", word, scope="col") for word in words]
    columns += [el("th", word, scope="col", class_="numeric") for word in numbers]
    columns.insert(-2, el("th", say("drawn"), scope="col"))
    head = el("tr", *columns)
    ranked = sorted(told, key=lambda finding: min(SEVERITY.index(shown_as(finding)), len(BROKEN)))
    rows = (_row(case, finding, places, say) for finding in ranked)
    table = el("table", el("caption", label), el("thead", head), el("tbody", *rows), class_="findings")
    return scrolling(table, f"{label}: {case.id}")


def _row(case: Case, finding: Finding, places: dict[str, int], say: Language) -> Markup:
    name = el("button", finding.invariant, type="button", popovertarget=f"claim-{encoded(finding.invariant)}")
    reason = el("p", as_said(finding.reason, say)) if finding.reason else None
    return el(
        "tr",
        el("td", pill(shown_as(finding), say)),
        el("th", name, reason, opinion(finding, say), hint(finding, say), scope="row"),
        el("td", worded(finding.expected, say)),
        el("td", worded(finding.observed, say)),
        el("td", in_words(finding.deviation, say), class_="n"),
        el("td", of_finding(finding)),
        el("td", figure(finding.limit), class_="n"),
        el("td", figure(finding.rounding_bound), class_="n"),
        id=finding_id(case.id, finding.invariant),
        data_n=places[finding.invariant],
    )


def _skipped(case: Case, skipped: list[Finding], places: dict[str, int], say: Language) -> Markup:
    """Fold what was skipped to one line, and name the claims by their reasons."""
    by_reason: dict[str, list[Finding]] = {}
    for finding in skipped:
        by_reason.setdefault(finding.reason or "", []).append(finding)
    items = (
        el("li", as_said(reason, say), ": ", join(_name(case, finding, places) for finding in group))
        for reason, group in by_reason.items()
    )
    line = f"{say(WORDS['skipped'])} {len(skipped)}: {why_skipped(skipped, say)}"
    return el("details", el("summary", line), el("ul", *items), class_="skipped")


def _name(case: Case, finding: Finding, places: dict[str, int]) -> Markup:
    place = finding_id(case.id, finding.invariant)
    return join([el("span", finding.invariant, id=place, data_n=places[finding.invariant]), " "])


def _repeat(entry: CaseReport, report: Report, say: Language) -> Markup:
    """Return the command that judges the case again: that of one finding, without its choice."""
    finding = next((found for found in entry.findings if found.opinion is not None), entry.findings[0])
    whole = again(entry.case, finding, report).replace(f" --select {finding.invariant}", "")
    told = say("Judge this case again; --select and the name of an invariant ask for that one only:")
    return join([el("p", told, class_="muted"), command(whole, say)])
