"""The page: a report as one HTML file that needs no network, and no scripts to be read."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from string import Template

from verify_attention.languages import ENGLISH, Language
from verify_attention.model import Report
from verify_attention.reports.page.broken import broken_section
from verify_attention.reports.page.cases import folded_case
from verify_attention.reports.page.claims import boxes, by_invariant, claims_section
from verify_attention.reports.page.feature_map import feature_section, features_of
from verify_attention.reports.page.filters import filter_form
from verify_attention.reports.page.markup import Markup, el, join
from verify_attention.reports.page.overview import overview
from verify_attention.reports.page.scale import legend

_HERE = Path(__file__).parent


def render(report: Report, say: Language = ENGLISH) -> str:
    """Return the page. The same report gives the same bytes."""
    groups = by_invariant(report)
    broken = broken_section(report, say)
    sections = [
        overview(report, say),
        broken,
        claims_section(report, groups, say),
        feature_section(report, say),
        _cases(report, list(groups), say),
        boxes(groups, say),
    ]
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    return Template(_asset("page.html")).substitute(
        lang=say.code,
        title=join([say("Report of verify-attention: {name}", name=report.implementation.name)]),
        style=style,
        script=script,
        style_hash=_digest(style),
        script_hash=_digest(script),
        skip=join([say("Skip to the verdict")]),
        heading=join([say("Report on {name}", name=report.implementation.name)]),
        theme=join([say("Dark")]),
        contents=join([say("On this page")]),
        navigation=_navigation(broken is not None, say),
        main=join(sections),
        foot=join([say("Made by verify-attention {version}. This file loads nothing.", version=report.version)]),
    )


def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    """Return the digest by which the page allows its own style and script, and nothing else."""
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


def _navigation(broken: bool, say: Language) -> Markup:
    words = [("verdict", say("Verdict"))]
    words += [("broken", say("What broke"))] if broken else []
    words += [("invariants", say("Invariants")), ("features", say("Features")), ("cases", say("Cases"))]
    return join(el("li", el("a", word, href=f"#{place}")) for place, word in words)


def _cases(report: Report, invariants: list[str], say: Language) -> Markup:
    places = {name: index for index, name in enumerate(invariants)}
    return el(
        "section",
        el("h2", say("Cases"), id="cases-title", tabindex="-1"),
        filter_form(report, invariants, features_of(report), say),
        el("p", id="shown", role="status", aria_live="polite"),
        legend(say),
        *(folded_case(entry, places, report, say) for entry in report.cases),
        id="cases",
        aria_labelledby="cases-title",
    )
