"""The map of where the conclusion stops: a coloured cell with its word for each departure and claim, and the reason."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from verify_attention.boundaries import CLAIMS, Row
from verify_attention.languages import Language
from verify_attention.reports.boundaries import because, told
from verify_attention.reports.pictures.canvas import Picture
from verify_attention.wording import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Light colours below black words; a sign and a word say the same, and only one is white on black.
COLOURS = {"holds": "#A6DDCB", "breaks": "#F0A37A", "depends": "#F7DF9E", "rounding": "#CFE3F1", "–": "#FFFFFF"}
SIGNS = {"holds": "✓", "breaks": "✗", "depends": "◐", "rounding": "≈", "–": ""}
MOST_ROWS = 60
CELL, REASON, LINE, HEAD, BELOW = 1.55, 5.6, 0.34, 0.8, 0.15  # inches
LONGEST, LETTER = 55, 0.068  # of a name, in letters; how wide a letter is, in inches
LETTERS = 92  # of a reason in one line; Japanese ones are twice as wide


def map_picture(rows: Sequence[Row], say: Language) -> Picture:
    """Return the picture of the map, of its first rows where there are very many."""
    rows = rows[:MOST_ROWS]
    title = say("What becomes of three claims about biases")
    words = " ".join(
        f"{row.name}: {', '.join(f'{say(CLAIMS[claim])}: {told(cell, say)}' for claim, cell in row.cells.items())}."
        for row in rows
    )
    size = _names(rows) + CELL * len(CLAIMS) + REASON, HEAD + LINE * len(rows) + BELOW
    return Picture(title, f"{title}. {words}", size, partial(_draw, rows, title, say))


def _draw(rows: Sequence[Row], title: str, say: Language, figure: Figure) -> None:
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - an extra

    width, height = figure.get_size_inches()
    names = _names(rows)
    axes = figure.add_axes((0, 0, 1, 1))  # in inches, from the upper left corner
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    axes.text(0.15, 0.26, title, size=12, weight="bold", va="center")
    for column, heading in enumerate(CLAIMS.values()):
        axes.text(names + CELL * (column + 0.5), HEAD - 0.16, say(heading), weight="bold", ha="center", va="center")
    axes.text(names + CELL * len(CLAIMS) + 0.15, HEAD - 0.16, say("why"), weight="bold", va="center")
    for line, row in enumerate(rows):
        top = HEAD + LINE * line
        middle = top + LINE / 2
        has_stage = row.stage != "–"
        axes.text(0.15, middle - 0.055 * has_stage, _name(row), weight="bold", va="center")
        if has_stage:
            axes.text(
                0.15, middle + 0.085, ", ".join(map(say, row.stage.split(", "))), size=6, color="0.35", va="center"
            )
        for column, claim in enumerate(CLAIMS):
            cell, left = row.cells[claim], names + CELL * column
            verdict = cell.verdict
            face = "black" if cell.wrong else COLOURS[verdict]
            axes.add_patch(Rectangle((left, top), CELL, LINE, facecolor=face, edgecolor="white", linewidth=2))
            sign = "!" if cell.wrong else SIGNS[verdict]
            ink = "white" if cell.wrong else "black"
            axes.text(left + 0.2, middle, sign, ha="center", va="center", color=ink, size=9)
            axes.text(left + 0.34, middle, told(cell, say), va="center", color=ink)
        reason = _folded(because(row, say))
        axes.text(names + CELL * len(CLAIMS) + 0.15, middle, reason, va="center", size=7, linespacing=1.15)


def _name(row: Row) -> str:
    """Return a row's name, without the beginning of a very long one."""
    name = printable(row.name)
    return name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"


def _names(rows: Sequence[Row]) -> float:
    """Return how wide the column of names is, in inches."""
    return max(1.8, 0.4 + LETTER * max(len(_name(row)) for row in rows))


def _folded(text: str) -> str:
    """Break a reason into two lines at most."""
    letters = LETTERS // 2 if any(unicodedata.east_asian_width(letter) == "W" for letter in text) else LETTERS
    return textwrap.fill(printable(text), letters, max_lines=2, placeholder=" …")
