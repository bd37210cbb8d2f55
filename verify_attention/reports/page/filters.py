"""The controls that choose which findings are shown; without scripts they are not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from verify_attention.languages import Language
from verify_attention.model import Report
from verify_attention.reports.figures import SEVERITY, WORDS
from verify_attention.reports.page.cases import LETTERS
from verify_attention.reports.page.feature_map import feature_name
from verify_attention.reports.page.markup import Markup, el, void


def filter_form(report: Report, invariants: Iterable[str], features: Iterable[str], say: Language) -> Markup:
    """Return the form: statuses, an invariant, a feature, a text, and how much is shown."""
    counts = Counter(finding.status for _, finding in report.findings())
    boxes = (
        el(
            "label",
            void("input", type="checkbox", name="status", value=status, checked=True, data_letter=LETTERS[status]),
            el("span", say(WORDS[status]), class_=f"s {status}"),
            f" {counts[status]:,}",
        )
        for status in SEVERITY
    )
    named = [(name, name) for name in invariants]
    featured = [(name, feature_name(name, say)) for name in features]
    text = void("input", type="search", name="text", id="filter-text", autocomplete="off", spellcheck="false")
    return el(
        "form",
        el("fieldset", el("legend", say("Status")), *boxes),
        _labelled(say("Invariant"), "invariant", _choice("invariant", say("all invariants"), named)),
        _labelled(say("Feature"), "feature", _choice("feature", say("all features"), featured)),
        _labelled(say("Text in id or tags"), "text", text),
        el("button", say("Show all"), type="reset"),
        id="filters",
        class_="js-only",
        role="search",
        aria_label=say("Filter the findings"),
        data_shown=say("{findings} of {all} findings in {cases} of {total} cases"),
        data_copied=say("Copied"),
        data_failed=say("Not copied: the browser does not allow it"),
        data_link=say("Link to this finding"),
        data_light=say("Light"),
        data_dark=say("Dark"),
    )


def _labelled(label: str, name: str, control: Markup) -> Markup:
    return el("div", el("label", label, for_=f"filter-{name}"), control)


def _choice(name: str, everything: str, options: Iterable[tuple[str, str]]) -> Markup:
    choices = (el("option", word, value=value) for value, word in options)
    return el("select", el("option", everything, value=""), *choices, name=name, id=f"filter-{name}")
