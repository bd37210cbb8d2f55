"""The report in Markdown, for pull requests and job summaries: the verdict, what broke, and a row an invariant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from verify_attention.languages import ENGLISH, Language
from verify_attention.model import Report
from verify_attention.reports.figures import SYMBOLS, WORDS, again, figure, shown_as
from verify_attention.reports.overview import broken, by_invariant
from verify_attention.reports.telling import notes, summary, why

MOST_BROKEN = 50


def render(report: Report, say: Language = ENGLISH) -> str:
    """Return the report in Markdown, as GitHub shows it."""
    gravest, line = summary(report, say)
    parts = [
        "# verify-attention",
        f"{SYMBOLS[gravest]} **{say(WORDS[gravest])}** {escaped(line)}",
        *_broken(report, say),
        *_invariants(report, say),
        "".join(f"- {escaped(note)}\n" for note in notes(report, say)),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def _broken(report: Report, say: Language) -> Iterator[str]:
    """Say of each finding that broke what, where and why, with the command that repeats it to be copied."""
    found = broken(report)
    if found:
        yield f"## {say('What broke')}"
    for case, finding in found[:MOST_BROKEN]:
        what = say("{invariant} on {case}", invariant=code(finding.invariant), case=code(case.id))
        lines = [
            f"{SYMBOLS[shown_as(finding)]} **{say(WORDS[shown_as(finding)])}** {what}",
            *map(escaped, why(finding, say)),
        ]
        yield "\\\n".join(lines) + f"\n\n{fenced(again(case, finding, report))}"
    if len(found) > MOST_BROKEN:
        yield say("… and {count} more", count=f"{len(found) - MOST_BROKEN:,}")


def _invariants(report: Report, say: Language) -> Iterator[str]:
    rows = []
    for each in by_invariant(report):
        worst, status = each.largest, shown_as(each.gravest)
        rows.append(
            (
                code(each.invariant),
                f"{SYMBOLS[status]} {say(WORDS[status])}",
                say("{some} of {all}", some=each.checked, all=len(each.findings)),
                figure(worst.deviation if worst else None),
                figure(worst.limit if worst else None),
            )
        )
    yield f"## {say('Invariants')}"
    yield table([say(name) for name in ("invariant", "status", "checked", "deviation", "limit")], rows, numbers=3)


def table(headings: Iterable[str], rows: Iterable[Iterable[str]], numbers: int = 0) -> str:
    """Return a table, of which the last columns are numbers, and stand to the right."""
    head = list(headings)
    rule = ["---"] * (len(head) - numbers) + ["---:"] * numbers
    lines = ([cell.replace("|", "\\|") for cell in row] for row in (head, rule, *rows))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(text: str) -> str:
    """Return a text as code, whatever backticks are in it."""
    fence = "`" * (_longest_run(text) + 1)
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"


def fenced(text: str) -> str:
    """Return a command as a block to be copied."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}sh\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for letter in text:
        run = run + 1 if letter == "`" else 0
        longest = max(longest, run)
    return longest


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is: somebody's titles and names hold no markup."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|~&" else letter for letter in text)
