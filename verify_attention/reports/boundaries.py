"""The map of where the conclusion stops, as a table for the terminal, in Markdown or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from verify_attention.boundaries import CLAIMS, Row

WIDE = 150
SHORT = ("K → weights", "Q → gaps", "V → output")
HEADINGS = ("variant", "acts on", *CLAIMS.values(), "why")


def _lines(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    return [(row.name, row.stage, *(str(row.cells[claim]) for claim in CLAIMS), row.why) for row in rows]


def markdown(rows: Sequence[Row]) -> str:
    """Return the map in Markdown."""
    lines = [HEADINGS, tuple("---" for _ in HEADINGS), *((f"`{name}`", *rest) for name, *rest in _lines(rows))]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def csv_text(rows: Sequence[Row]) -> str:
    """Return the map as CSV."""
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerows([HEADINGS, *_lines(rows)])
    return sink.getvalue()


def rich(rows: Sequence[Row], width: int, color: bool) -> str:
    """Return the map as text of at most `width` columns: the reason below its row where it does not fit beside it."""
    from rich.table import Table  # noqa: PLC0415 - only this form needs it
    from rich.text import Text  # noqa: PLC0415

    from verify_attention.reports.table import console  # noqa: PLC0415

    colours = {"holds": "green", "breaks": "red", "depends": "yellow"}
    screen, sink = console(width, color)
    wide = width >= WIDE
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in HEADINGS if wide else (HEADINGS[0], *SHORT):
        table.add_column(heading, overflow="fold", no_wrap=heading not in {HEADINGS[0], HEADINGS[-1]})
    for row in rows:
        found = [row.cells[claim] for claim in CLAIMS]
        cells = [
            Text(str(cell), style="bold red" if cell.wrong else colours.get(cell.verdict, "default")) for cell in found
        ]
        if wide:
            table.add_row(row.name, row.stage, *cells, row.why)
        else:
            table.add_row(row.name, *cells)
    screen.print(table)
    if not wide:
        screen.print()
        for row in rows:
            screen.print(f"{row.name}: {row.why}")
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()) + "\n"
