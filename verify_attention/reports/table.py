"""The table for people: what broke first, then one row an invariant, then the counts."""

from __future__ import annotations

from io import StringIO

from rich.cells import set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from verify_attention.languages import ENGLISH, Language
from verify_attention.model import Report, Status
from verify_attention.reports import bars
from verify_attention.reports.figures import COLOURS, WORDS, again, figure, shown_as, verdict_line
from verify_attention.reports.overview import alike_once, broken, by_invariant
from verify_attention.reports.telling import notes, summary, why

MOST_BROKEN = 20


def console(width: int, color: bool) -> tuple[Console, StringIO]:
    """Return a console that writes to a string: plain text, no emoji codes, no markup in somebody's names."""
    sink = StringIO()
    screen = Console(
        file=sink,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        emoji=False,
        markup=False,
        highlight=False,
        legacy_windows=False,
    )
    return screen, sink


def render(
    report: Report,
    say: Language = ENGLISH,
    *,
    width: int = 80,
    color: bool = False,
    verbose: bool = False,
    quiet: bool = False,
    interrupted: bool = False,
) -> str:
    """Return the table as text of at most `width` columns, coloured or plain; commands and ids are not cut.

    Of a run that was `interrupted` the last line gives no verdict.
    """
    screen, sink = console(width, color)
    _broken(screen, report, None if verbose else MOST_BROKEN, say)
    if not quiet:
        if verbose:
            screen.print(_every_finding(report, say), soft_wrap=True)
        else:
            screen.print(_invariants(report, say))
        screen.print()
        for note in notes(report, say):
            screen.print(note)
    gravest, line = summary(report, say)
    word = Text(say("INTERRUPTED"), style=COLOURS["inconclusive"]) if interrupted else _word(gravest, say)
    screen.print(word + Text(f"  {line}"), soft_wrap=True)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()) + "\n"


def _word(status: Status, say: Language) -> Text:
    return Text(say(WORDS[status]), style=COLOURS[status])


def _broken(screen: Console, report: Report, most: int | None, say: Language) -> None:
    """Say of each finding that broke what, where, why, and how to repeat it: the first on each claim first."""
    found = every = broken(report)
    if most is not None:
        found = alike_once(every)
        if len(found) < len(every):
            screen.print(say("{count} more like the crashes that follow", count=f"{len(every) - len(found):,}") + "\n")
    for case, finding in found[:most]:
        what = say("{invariant} on {case}", invariant=finding.invariant, case=case.id)
        screen.print(_word(shown_as(finding), say) + Text(f"  {what}"), soft_wrap=True)
        for line in (*why(finding, say), say("again: {command}", command=again(case, finding, report))):
            screen.print(f"  {line}", soft_wrap=True)
        screen.print()
    if most is not None and len(found) > most:
        screen.print(say("… and {count} more; --verbose shows all", count=f"{len(found) - most:,}") + "\n")


def _invariants(report: Report, say: Language) -> Table:
    """Give each invariant a row: the worst status, how often it was checked, and the largest deviation.

    What applies to no case has none; the notes name it.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("invariant", "status", "checked", "deviation", "limit"):
        numeric = column in {"checked", "deviation", "limit"}
        table.add_column(say(column), justify="right" if numeric else "left", overflow="fold", no_wrap=numeric)
    for each in by_invariant(report):
        worst = each.largest
        table.add_row(
            each.invariant,
            _word(shown_as(each.gravest), say),
            say("{some} of {all}", some=each.checked, all=len(each.findings)),
            figure(worst.deviation if worst else None),
            figure(worst.limit if worst else None),
        )
    return table


def _every_finding(report: Report, say: Language) -> Text:
    """Give each finding a line, below its case; what is not a plain pass gets a second line that says why.

    Below a small case stand its scores and weights, with bars.
    """
    name = max((len(finding.invariant) for _, finding in report.findings()), default=0)
    titles = [set_cell_size(say("case, invariant"), name + 2), set_cell_size(say("status"), 12)]
    text = Text()
    text.append("  ".join([*titles, f"{say('deviation'):>9}", f"{say('limit'):>8}"]) + "\n", style="bold")
    for entry in report.cases:
        text.append(f"{entry.case.id}\n", style="bold")
        text.append(bars.of_case(entry, say))
        for finding in entry.findings:
            text.append(f"  {finding.invariant:<{name}}  ", style="default")
            text.append(set_cell_size(say(WORDS[finding.status]), 12), style=COLOURS[finding.status])
            text.append(f"  {figure(finding.deviation):>9}  {figure(finding.limit):>8}\n", style="default")
            expected = "" if finding.expected == "holds" else say("expected: {word}", word=finding.expected)
            note = say.told(finding.reason) if finding.reason else expected
            if note:
                text.append(f"      {note}\n", style="default")
            if finding.opinion is not None:
                text.append(f"      {verdict_line(finding, say)}\n", style="default")
    text.rstrip()
    return text
