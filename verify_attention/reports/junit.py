"""The report as JUnit XML, for the test pages of CI systems: a suite a case, a test a finding.

A claim that broke, or stayed inconclusive, is a failure, a crash an error, and what is skipped says why. There is no
clock in it: two runs are the same where nothing has changed.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable

from verify_attention.languages import ENGLISH, Language
from verify_attention.model import CaseReport, Finding, Report
from verify_attention.reports.figures import again
from verify_attention.reports.telling import why

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KINDS = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def render(report: Report, say: Language = ENGLISH) -> str:
    """Return the report as JUnit XML."""
    counts = _counts(finding for _, finding in report.findings())
    del counts["skipped"]  # which the schema has for suites alone
    whole = ET.Element("testsuites", {"name": "verify-attention", **counts})
    for entry in report.cases:
        _suite(whole, entry, report, say)
    if not any(finding.checked for _, finding in report.findings()):
        _nothing(whole, say)
    ET.indent(whole)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(whole, encoding="unicode")}\n'


def _suite(whole: ET.Element, entry: CaseReport, report: Report, say: Language) -> None:
    case = entry.case
    file = {"file": _text(case.path)} if case.path else {}
    suite = ET.SubElement(whole, "testsuite", {"name": _text(case.id), **_counts(entry.findings), **file})
    for finding in entry.findings:
        named = {"name": _text(finding.invariant), "classname": _text(case.id), "time": "0"}
        test = ET.SubElement(suite, "testcase", named)
        kind = _kind(finding)
        if kind is None:
            continue
        first, *others = list(why(finding, say)) or [""]
        told = ET.SubElement(test, kind, {"message": _text(first)})
        if kind != "skipped":
            told.set("type", "against the mathematics" if finding.contradicted else finding.status)
            place = [f"{case.path}:{case.line}"] if case.path else []
            told.text = _text("\n".join([*place, first, *others, again(case, finding, report)]))


def _nothing(whole: ET.Element, say: Language) -> None:
    """Add a test that fails, as a run does in which nothing was really checked: it shows nothing."""
    counts = {"tests": "1", "failures": "1", "errors": "0", "skipped": "0", "time": "0"}
    suite = ET.SubElement(whole, "testsuite", {"name": "verify-attention", **counts})
    named = {"name": "something-is-really-checked", "classname": "verify-attention", "time": "0"}
    told = {"message": say("nothing was shown"), "type": "fail"}
    ET.SubElement(ET.SubElement(suite, "testcase", named), "failure", told)
    for count in ("tests", "failures"):
        whole.set(count, str(int(whole.get(count, "0")) + 1))


def _kind(finding: Finding) -> str | None:
    if finding.contradicted:
        return "failure"
    kinds = {"fail": "failure", "inconclusive": "failure", "crashed": "error", "skipped": "skipped"}
    return kinds.get(finding.status)


def _counts(findings: Iterable[Finding]) -> dict[str, str]:
    kinds = Counter(map(_kind, findings))
    counts = {name: str(kinds[kind]) for kind, name in _KINDS.items()}
    return {"tests": str(kinds.total()), **counts, "time": "0"}


def _text(text: str) -> str:
    """Return a text without the characters that XML does not have."""
    return _NOT_XML.sub("\ufffd", text)
