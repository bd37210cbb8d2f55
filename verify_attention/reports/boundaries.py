"""The map of where the conclusion stops, as a table for the terminal, in Markdown or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from verify_attention.boundaries import CLAIMS, Cell, Row
from verify_attention.languages import ENGLISH, Language
from verify_attention.reports.lines import wrapped
from verify_attention.reports.markdown import table

WIDE = 150
SHORT = ("K leaves weights", "Q moves gaps", "V passes")
HEADINGS = ("variant", "acts on", *CLAIMS.values(), "why")


def _lines(rows: Sequence[Row], say: Language) -> list[tuple[str, ...]]:
    return [
        (row.name, _stages(row, say), *(told(row.cells[claim], say) for claim in CLAIMS), because(row, say))
        for row in rows
    ]


def _stages(row: Row, say: Language) -> str:
    return ", ".join(map(say, row.stage.split(", ")))


def because(row: Row, say: Language = ENGLISH) -> str:
    """Return why a K bias fares so; the catalogue has it as the feature says it, with no capital letter."""
    said = row.why[:1].lower() + row.why[1:]
    return next((told for one in (row.why, said) if (told := say.told(one)) != one), row.why)


def told(cell: Cell, say: Language = ENGLISH) -> str:
    """Return a cell in words, with the largest effect in brackets."""
    if cell.wrong:
        return say("not as expected")
    largest = max(cell.broke or cell.rounded, default=0.0)
    return f"{say(cell.verdict)} ({largest:.2g})" if largest else say(cell.verdict)


def markdown(rows: Sequence[Row], say: Language = ENGLISH) -> str:
    """Return the map in Markdown."""
    return table(map(say, HEADINGS), ((f"`{name}`", *rest) for name, *rest in _lines(rows, say)))


def csv_text(rows: Sequence[Row], say: Language = ENGLISH) -> str:
    """Return the map as CSV."""
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerows([list(map(say, HEADINGS)), *_lines(rows, say)])
    return sink.getvalue()


def rich(rows: Sequence[Row], width: int, color: bool, say: Language = ENGLISH) -> str:
    """Return the map as text of at most `width` columns: the reason below its row where it does not fit beside it."""
    from rich.table import Table  # noqa: PLC0415 - only this form needs it
    from rich.text import Text  # noqa: PLC0415

    from verify_attention.reports.table import console  # noqa: PLC0415

    colours = {"holds": "green", "breaks": "red", "depends": "yellow"}
    screen, sink = console(width, color)
    wide = width >= WIDE
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in HEADINGS if wide else (HEADINGS[0], *SHORT):
        grid.add_column(say(heading), overflow="fold", no_wrap=heading not in {HEADINGS[0], HEADINGS[-1]})
    for row in rows:
        found = [row.cells[claim] for claim in CLAIMS]
        styles = ("bold red" if cell.wrong else colours.get(cell.verdict, "default") for cell in found)
        cells = [Text(told(cell, say), style=style) for cell, style in zip(found, styles, strict=True)]
        if wide:
            grid.add_row(row.name, _stages(row, say), *cells, because(row, say))
        else:
            grid.add_row(row.name, *cells)
    screen.print(grid)
    if not wide:
        screen.print()
        reasons = "".join(f"{row.name}: {because(row, say)}\n" for row in rows)
        screen.print(wrapped(reasons, width), soft_wrap=True)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()) + "\n"
