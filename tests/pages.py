"""Reports for tests of the page: a small one by hand, with the article's numbers, and hostile texts."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np

from verify_attention.languages import Language
from verify_attention.model import Case, CaseReport, Finding, Opinion, Report, Tolerance, UnderTest, Worst
from verify_attention.summary import Summary

HOSTILE = "</script><script>alert(1)</script>"
TURNED = "abc\u202edef\u2066"
VOID = {"meta", "input", "br", "link", "img", "hr"}

# The article's table, section 4.
SCORES = {
    "none": [0.707107, 0, -0.707107],
    "q": [0.707107, 0.707107, -0.707107],
    "k": [2.828427, 2.121320, 1.414214],
    "qk": [1.414214, 1.414214, 0],
}
WEIGHTS = {
    "none": [0.575975, 0.283995, 0.140029],
    "q": [0.445808, 0.445808, 0.108383],
    "k": [0.575975, 0.283995, 0.140029],
    "qk": [0.445808, 0.445808, 0.108383],
}
ARTICLE = {
    condition: {"scores": np.array([[SCORES[condition]]]), "weights": np.array([[WEIGHTS[condition]]])}
    for condition in SCORES
}


def example(**given):
    arrays = {
        "q": np.array([[[1.0, 0]]]),
        "keys": np.array([[[1.0, 0], [0, 1], [-1, 0]]]),
        "bQ": np.array([[0.0, 1]]),
        "bK": np.array([[3.0, -2]]),
    }
    known = {"id": "article/two-dimensions", "title": "The worked example", "source": "article, section 4"}
    return Case(**{**arrays, "scale": 0.5, "tags": ("article",), "path": "cases/two.yaml", **known, **given})


def found(invariant, status="pass", **given):
    measured = {"observed": "holds", "deviation": 0.0, "limit": 1e-12, "rounding_bound": 2e-14}
    return Finding(invariant, status, **{"expected": "holds", **measured, **given})


def left_out(invariant, reason):
    return Finding(invariant, "skipped", "holds", reason=reason)


PLACE = Worst("weights[k]", 0, 0, "key", 2, 0.25, 0.125)
FINDINGS = (
    found("key-bias-leaves-weights", "fail", observed="breaks", deviation=0.125, worst=PLACE,
          reason="0.25 against 0.125, which differ by 0.12, at weights[k] at head 0, row 0, key 2; limit 1e-12",
          opinion=Opinion("proved", 0.0, 1e-12, None, "the sides are the same rational numbers")),
    found("scores-follow-the-formula", deviation=5.6e-17),
    found("weights-sum-to-one"),
    found("lse-moves-with-the-key-bias", "inconclusive", observed="within-rounding", deviation=3e-9,
          rounding_bound=4e-7, worst=PLACE._replace(of="lse", axis=None, position=None), reason="ill-conditioned"),
    Finding("value-bias-passes-through", "crashed", "holds", reason="ValueError: shapes"),
    left_out("heads-do-not-talk", "asked of cases with features, or that expect it"),
    left_out("rotation-depends-on-distance", "asked of cases with features, or that expect it"),
    left_out("softmax-ignores-a-row-shift", "vacuous: a row has one key, whose weight is 1 in any event"),
)  # fmt: skip
SECOND = (
    found("key-bias-leaves-weights", expected="breaks", observed="breaks", deviation=0.375),
    found("weights-sum-to-one", deviation=1.1e-16),
    left_out("value-bias-passes-through", "the case has no bV"),
)


def small_report():
    """Return a report of two cases, one broken in every way, that nothing computed."""
    shifted = example(
        id="shifted::again", title=None, source=None, tags=(), path="",
        features={"key_shifts": np.zeros((1, 3, 2))}, expect={"key-bias-leaves-weights": "breaks"},
    )  # fmt: skip
    cases = CaseReport(example(), ARTICLE, FINDINGS), CaseReport(shifted, ARTICLE, SECOND)
    where = {"python": "3.11", "numpy": "2.0", "blas": "none", "platform": "a machine"}
    return Report(UnderTest("core", "1"), Tolerance(), cases, "1.0", where)


def hostile_report():
    """Return a report in which every text that somebody else may write attacks the page."""
    names = [
        HOSTILE,
        '"><img src=x onerror=alert(1)>',
        "javascript:alert(1)",
        TURNED,
        "日本語/場合",
        "a b",
        "a-",
        "a--b",
    ]
    reason = f"{HOSTILE} ' \" & <b> {TURNED} javascript:alert(1)"
    entries = []
    for name in names:
        case = example(id=name, title=reason, source=reason, tags=(name, reason), path=f"{name}.yaml", file=name)
        findings = (
            found(name, "fail", reason=reason, worst=PLACE._replace(of=reason)),
            left_out(f"skipped {HOSTILE}", reason),
        )
        entries.append(CaseReport(case, ARTICLE, findings))
    under_test = UnderTest(HOSTILE, HOSTILE, "float64", HOSTILE)
    return Report(under_test, Tolerance(), tuple(entries), HOSTILE, {"python": HOSTILE, TURNED: reason})


def many(report, number):
    """Return a report of so many cases: those of a report again and again, with ids of their own."""
    entries = [report.cases[index % len(report.cases)] for index in range(number)]
    cases = (
        replace(entry, case=replace(entry.case, id=f"{entry.case.id}/{index}")) for index, entry in enumerate(entries)
    )
    return replace(report, cases=tuple(cases))


def large_case():
    """Return a case of which only summaries are stored, and one that has too many keys for bars."""
    stored = Summary((4, 8, 2000), -1.5, 2.5, 0.25, "0" * 64)
    broad = {
        "none": np.zeros((1, 2, 9)),
        "q": np.ones((1, 2, 9)),
        "k": np.full((1, 2, 9), 0.5),
        "qk": np.ones((1, 2, 9)),
    }
    return (
        CaseReport(example(id="large"), {name: {"scores": stored} for name in SCORES}, ()),
        CaseReport(example(id="broad"), {name: {"weights": array} for name, array in broad.items()}, ()),
        CaseReport(example(id="nothing"), {name: {} for name in SCORES}, ()),
    )


JAPANESE = Language("ja")


class Tree(HTMLParser):
    """Elements of a page as `(name, attributes, text)`, and what is not well-formed in it.

    `scripts` says whether a browser runs scripts: the inside of `noscript` is then a text.
    """

    def __init__(self, page, scripts=False):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.problems, self.text = [], [], [], []
        if scripts:
            page = without_scripts_only(page)
        self.feed(page)
        self.close()
        self.problems += [f"{name} is not closed" for name, _ in self.open]

    def handle_starttag(self, name, attributes):
        keys = [key for key, _ in attributes]
        if len(keys) != len(set(keys)):
            self.problems.append(f"{name} has an attribute twice")
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append((name, len(self.elements) - 1))

    def handle_startendtag(self, name, attributes):
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name):
        if not self.open or self.open[-1][0] != name:
            self.problems.append(f"</{name}> closes {self.open[-1][0] if self.open else 'nothing'}")
        else:
            self.open.pop()

    def handle_data(self, data):
        if not self.open or self.open[-1][0] not in {"style", "script"}:
            self.text.append(data)

    def all(self, name):
        return [attributes for each, attributes in self.elements if each == name]


def without_scripts_only(page):
    """Return a page without what is there only where no scripts run."""
    first, *others = page.split("<noscript>")
    return first + "".join(part.partition("</noscript>")[2] for part in others)
