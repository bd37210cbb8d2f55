"""The report for GitHub Actions: an annotation for what broke, at its case's file and line, and a job summary.

GitHub shows ten annotations of a kind for each step and drops the others, so that the gravest come first and the last
says how many more there are. The summary is the report in Markdown, which may have a mebibyte.
"""

from __future__ import annotations

from collections.abc import Callable

from verify_attention.languages import ENGLISH, Language
from verify_attention.model import Case, Finding, Report
from verify_attention.reports import markdown
from verify_attention.reports.figures import WORDS, again, shown_as
from verify_attention.reports.overview import alike_once, broken
from verify_attention.reports.telling import summary, why
from verify_attention.wording import printable

MOST = 10
LARGEST = 2**20 - 2**10  # bytes of a summary, of which something else may have written a little
_IN_MESSAGES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTIES = {**_IN_MESSAGES, ":": "%3A", ",": "%2C"}


def render(report: Report, say: Language = ENGLISH, *, place: Callable[[str], str] = str) -> str:
    """Return workflow commands; `place` tells of a path how the repository's root sees it."""
    every = broken(report)
    found = alike_once(every)
    shown = found if len(found) <= MOST and len(found) == len(every) else found[: MOST - 1]
    lines = [_annotation(case, finding, report, say, place) for case, finding in shown]
    gravest, line = summary(report, say)
    if len(every) > len(shown):
        more = say("… and {count} more", count=f"{len(every) - len(shown):,}")
        lines.append(f"::error title=verify-attention::{_escaped(more, _IN_MESSAGES)}")
    elif not any(finding.checked for _, finding in report.findings()):
        lines.append(f"::error title=verify-attention::{_escaped(line, _IN_MESSAGES)}")
    return "".join(f"{line}\n" for line in (*lines, f"{say(WORDS[gravest])}  {printable(line)}"))


def job_summary(report: Report, say: Language = ENGLISH) -> str:
    """Return the report in Markdown, cut at a line where GitHub would refuse it."""
    text = markdown.render(report, say)
    if len(text.encode()) <= LARGEST:
        return text
    kept = text.encode()[:LARGEST].decode(errors="ignore").rpartition("\n")[0]
    return f"{kept}\n\n{say('… the rest does not fit')}\n"


def _annotation(case: Case, finding: Finding, report: Report, say: Language, place: Callable[[str], str]) -> str:
    title = say("{invariant} on {case}", invariant=finding.invariant, case=case.id)
    where = {"file": place(case.path), "line": str(case.line)} if case.path else {}
    word = say(WORDS[shown_as(finding)])
    given = {**where, "title": f"{word} {title}"}
    properties = ",".join(f"{name}={_escaped(value, _IN_PROPERTIES)}" for name, value in given.items())
    told = "\n".join([*why(finding, say), say("again: {command}", command=again(case, finding, report))])
    return f"::error {properties}::{_escaped(told, _IN_MESSAGES)}"


def _escaped(text: str, characters: dict[str, str]) -> str:
    return "".join(characters.get(letter, letter) for letter in text)
