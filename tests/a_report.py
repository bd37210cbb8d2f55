"""A report made by hand, with every status, an opinion that contradicts a pass, and texts that try to be markup.

`python tests/a_report.py` writes again what every form makes of it, for the eye: `tests/golden/`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from verify_attention.cases import build_case
from verify_attention.languages import Language
from verify_attention.model import CONDITIONS, CaseReport, Finding, Opinion, Report, Tolerance, UnderTest, Worst
from verify_attention.reports import render

GOLDEN = Path(__file__).resolve().parent / "golden"
ENDINGS = {"table": "txt", "markdown": "md", "junit": "xml", "github": "txt"}
FORMS = tuple(ENDINGS)  # the page has a golden file of its own
EVIL = "a|b `c` <script>alert(1)</script> [x](javascript:y) ]]> %25 ::error::\r\nnext\x1b[31m"
EXAMPLE = {"d_k": 2, "q": [1, 0], "keys": [[1, 0], [0, 1], [-1, 0]], "bQ": [0, 1], "bK": [3, -2]}


def case(ident: str, **more: object):
    return build_case({**EXAMPLE, **more}, id=ident, file=f"cases/{ident.partition('::')[0]}.yaml", sha256="0" * 64)


def traces(size: float) -> dict:
    """Return traces with numbers that are easily told apart; what they are worth is nothing to a report."""
    arrays = {"scores": np.array([[[size, 0.0, -size]]]), "weights": np.array([[[0.5, 0.25, 0.25]]])}
    return {condition: {**arrays, "output": arrays["weights"], "lse": np.array([[1.0]])} for condition in CONDITIONS}


def a_report() -> Report:
    there = Worst("weights[k]", 0, 0, "key", 2, 0.25, 0.5)
    proved = Opinion("proved", 0.0, 1e-12, None, "both sides are the same rational number")
    refuted = Opinion("refuted", 0.25, 1e-12, there, "the sides differ by 1/4 at weights[k] at head 0, row 0, key 2")
    first = (
        Finding("key-bias-leaves-weights", "fail", "holds", "breaks", 0.25, 1e-12, 3e-15, there, EVIL, proved),
        Finding("key-bias-leaves-output", "inconclusive", "holds", "within-rounding", 2e-12, 1e-12, 1e-9, there, "ill"),
        Finding("heads-do-not-talk", "crashed", "holds", reason="ValueError: no"),
        Finding("weights-sum-to-one", "pass", "holds", "holds", 0.0, 1e-12, 1e-15, there),
    )
    second = (
        Finding("key-bias-leaves-weights", "pass", "breaks", "breaks", 0.25, 1e-12, 3e-15, there),
        Finding("key-bias-leaves-output", "skipped", "holds", reason="vacuous: s·q_i·bK is 0 in every row"),
        Finding("heads-do-not-talk", "skipped", "holds", reason="not offered: its signature does not name heads"),
        Finding("weights-sum-to-one", "pass", "holds", "holds", 1e-16, 1e-12, 1e-15, there, None, refuted),
    )
    cases = (case("group/one", title=EVIL.splitlines()[0], tags=["a", "b"]), case("group/two::second, <b>"))
    return Report(
        UnderTest("kernel.py:attention", "unknown", "float32", "float32"),
        Tolerance(1e-12, 1e-11),
        tuple(
            CaseReport(one, traces(size), found)
            for one, size, found in zip(cases, (1.0, 0.5), (first, second), strict=True)
        ),
        "0.0",
        {"python": "3", "numpy": "2", "blas": "none", "platform": "a machine"},
    )


def golden(form: str, code: str) -> Path:
    return GOLDEN / f"report-{form}.{code}.{ENDINGS[form]}"


def main() -> None:
    for form in sys.argv[1:] or FORMS:
        for code in ("en", "ja"):
            text = render(form, a_report(), Language(code))
            golden(form, code).write_text(text, encoding="utf-8", newline="")


if __name__ == "__main__":
    main()
