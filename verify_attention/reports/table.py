"""The table for people: what broke first, then one row an invariant, then the counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from io import StringIO

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from verify_attention.model import BROKEN, FLOAT64, Case, CaseReport, Finding, Report, Status
from verify_attention.reports.figures import (
    COLOURS,
    MOST_REASONS,
    PUBLISHED,
    SEVERITY,
    WORDS,
    again,
    counted,
    exact_line,
    figure,
    kind_of,
    unusual,
    verdict_line,
    why_skipped,
)
from verify_attention.reports.ranking import alike_once, broken_first, gravest, largest, never_checked, not_applicable

MOST_BROKEN = 20
MOST_PUBLISHED = 3


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


def render(report: Report, *, width: int = 80, color: bool = False, verbose: bool = False, quiet: bool = False) -> str:
    """Return the table as text of at most `width` columns, coloured or plain; commands and ids are not cut."""
    screen, sink = console(width, color)
    findings = list(report.findings())
    _broken(screen, findings, report, None if verbose else MOST_BROKEN)
    if not quiet:
        screen.print(_every_finding(findings) if verbose else _invariants(findings), soft_wrap=verbose)
        _notes(screen, report)
    screen.print(_summary(report), soft_wrap=True)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()) + "\n"


def _word(finding: Finding) -> Text:
    return Text(WORDS[finding.status], style=COLOURS[finding.status])


def _broken(screen: Console, findings: list[tuple[Case, Finding]], report: Report, most: int | None) -> None:
    """Say of each finding that broke what, where, why, and how to repeat it: the first on each claim first."""
    broken = everything = broken_first(findings)
    if most is not None:
        broken = alike_once(everything)
        if len(broken) < len(everything):
            screen.print(f"{len(everything) - len(broken):,} more like the crashes that follow\n")
    for case, finding in broken[:most]:
        screen.print(_word(finding) + Text(f"  {finding.invariant} on {case.id}"), soft_wrap=True)
        if finding.reason is not None:
            screen.print(f"  {finding.reason}", soft_wrap=True)
        if finding.opinion is not None:
            screen.print(f"  {verdict_line(finding)}", soft_wrap=True)
        if finding.observed == "within-rounding" and finding.rounding_bound != np.inf:
            hint = f"  if numbers this large are meant: expect: {{{finding.invariant}: within-rounding}}"
            screen.print(hint, soft_wrap=True)
        screen.print(f"  again: {again(case, finding, report)}\n", soft_wrap=True)
    if most is not None and len(broken) > most:
        screen.print(f"… and {len(broken) - most:,} more; --verbose shows all\n")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        numeric = column in {"checked", "deviation", "limit"}
        table.add_column(column, justify="right" if numeric else "left", overflow="fold", no_wrap=numeric)
    return table


def _invariants(findings: list[tuple[Case, Finding]]) -> Table:
    """Give each invariant a row: the worst status, how often it was checked, and the largest deviation.

    What applies to no case has none; the notes name it.
    """
    by_invariant: dict[str, list[Finding]] = defaultdict(list)
    for _, finding in findings:
        by_invariant[finding.invariant].append(finding)
    table = _table("invariant", "status", "checked", "deviation", "limit")
    asked = (group for group in by_invariant.values() if not all(map(not_applicable, group)))
    rows = sorted(asked, key=lambda group: min(SEVERITY.index(gravest(group).status), len(BROKEN)))
    for group in rows:
        found = gravest(group)
        checked = sum(finding.checked for finding in group)
        worst = largest(group)
        table.add_row(
            found.invariant,
            _word(found),
            f"{checked} of {len(group)}",
            figure(worst.deviation if worst else None),
            figure(worst.limit if worst else None),
        )
    return table


def _every_finding(findings: list[tuple[Case, Finding]]) -> Text:
    """Give each finding a line, below its case; what is not a plain pass gets a second line that says why."""
    name = max(len(finding.invariant) for _, finding in findings)
    head = f"{'case, invariant':<{name + 2}}  {'status':<12}  {'deviation':>9}  {'limit':>8}\n"
    text = Text()
    text.append(head, style="bold")
    last = None
    for case, finding in findings:
        if case.id != last:
            text.append(f"{case.id}\n", style="bold")
            last = case.id
        text.append(f"  {finding.invariant:<{name}}  ", style="default")
        text.append(f"{WORDS[finding.status]:<12}", style=COLOURS[finding.status])
        text.append(f"  {figure(finding.deviation):>9}  {figure(finding.limit):>8}\n", style="default")
        note = finding.reason or ("" if finding.expected == "holds" else f"expected: {finding.expected}")
        if note:
            text.append(f"      {note}\n", style="default")
        if finding.opinion is not None:
            text.append(f"      {verdict_line(finding)}\n", style="default")
    text.rstrip()
    return text


def _notes(screen: Console, report: Report) -> None:
    """Say what was never checked, and of published cases what the article says of its own."""
    screen.print()
    controls = Counter(
        finding.invariant
        for _, finding in report.findings()
        if finding.expected == "breaks" and finding.status == "pass"
    )
    if controls:
        listed = ", ".join(f"{name} in {counted(number, 'case')}" for name, number in controls.items())
        screen.print(f"Breaks where that is expected: {listed}")
    kinds = Counter(
        (finding.reason or "").removeprefix("not offered: ")
        for _, finding in report.findings()
        if finding.status == "skipped" and kind_of(finding.reason or "") == "not offered"
    )
    if kinds:
        listed = "; ".join(f"{reason} ({number:,})" for reason, number in kinds.most_common(MOST_REASONS))
        others = f"; and {len(kinds) - MOST_REASONS} other reasons" if len(kinds) > MOST_REASONS else ""
        screen.print(f"Not offered: {listed}{others}")
    told = [finding for _, finding in report.findings() if finding.opinion is not None]
    if told:
        screen.print(exact_line(told))
    never = never_checked(report)
    if never:
        screen.print(f"Never really checked: {', '.join(never)}")
    published = sorted((entry for entry in report.cases if entry.case.published is not None), key=_reproduced)
    for entry in published[:MOST_PUBLISHED]:
        screen.print(published_line(entry))
    if len(published) > MOST_PUBLISHED:
        more = Counter(map(_reproduced, published[MOST_PUBLISHED:]))
        said = ", ".join(f"{number:,} {words}" for words, number in more.items())
        screen.print(f"… and {counted(len(published) - MOST_PUBLISHED, 'more case')} with printed numbers, {said}")


def _reproduced(entry: CaseReport) -> str:
    statuses = {finding.status for finding in entry.findings if finding.invariant == PUBLISHED}
    if statuses & BROKEN:
        return "NOT all reproduced"
    if statuses != {"pass"}:
        return "not compared"
    own = entry.case.precision
    return "reproduced" if own == FLOAT64 else f"reproduced as far as {own.computes_in} tells"


def published_line(entry: CaseReport) -> str:
    """Say whether a case's published numbers are reproduced, and by how much the K bias moved its weights."""
    printed = entry.case.published.numbers if entry.case.published is not None else {}
    total = sum(
        array.size
        for quantity, by_condition in printed.items()
        for condition, array in by_condition.items()
        if entry.conditions[condition].get(quantity) is not None
    )
    base, biased = (entry.conditions[condition].get("weights") for condition in ("none", "k"))
    moved = ""
    if isinstance(base, np.ndarray) and isinstance(biased, np.ndarray):
        largest = float(np.abs(base - biased).max())
        moved = f"; largest difference between base and K-bias weights: {figure(largest)}"
    return f"{entry.case.id}: {counted(total, 'printed number')} {_reproduced(entry)}{moved}"


def _summary(report: Report) -> Text:
    findings = [finding for _, finding in report.findings()]
    counts = Counter(finding.status for finding in findings)
    checked = sum(finding.checked for finding in findings if finding.observed is not None)
    gravest: Status = next((status for status in SEVERITY if counts[status]), "skipped")
    broken = [f"{counts[status]:,} {status}" for status in SEVERITY if status in BROKEN and counts[status]]
    if against := sum(finding.contradicted for finding in findings):
        broken.append(f"{against:,} against the mathematics")
        gravest = gravest if gravest in BROKEN else "fail"
    skipped = f"; {counts['skipped']:,} skipped: {why_skipped(findings)}" if counts["skipped"] else ""
    what = ", ".join(broken) or ("all as expected" if checked else "nothing was shown")
    cases, equations = counted(len(report.cases), "case"), counted(checked, "equation")
    tolerance = unusual(report.tolerance, ", {} {!r}")
    own = report.implementation
    inside = "" if own.computes_in == own.dtype else f" (computed in {own.computes_in})"
    whose = "" if own.name == "core" else f"{own.name}, {own.dtype}{inside}: "
    body = f"  {whose}{cases}, {equations} really checked{tolerance}: {what}{skipped}"
    return Text(WORDS[gravest], style=COLOURS[gravest]) + Text(body)
