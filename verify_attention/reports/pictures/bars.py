"""Bars of weights or scores: one panel a query row, four bars a key, and what should be equal side by side.

The bars of a key come in two pairs, each of one colour: no bias and K only, Q only and both. The second of a pair is
hatched. Where a K bias changes nothing, the two bars of each pair have one height, and its number stands there once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from verify_attention.languages import Language
from verify_attention.model import Array, Condition, Tolerance
from verify_attention.reports.article import CONDITION_NAMES, SUBSCRIPTS, short
from verify_attention.reports.figures import figure as few_digits
from verify_attention.reports.pictures.canvas import Picture
from verify_attention.reports.pictures.panels import MOST_KEYS, Panel, across
from verify_attention.wording import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Subject: TypeAlias = Literal["weights", "scores"]

PAIRS: tuple[tuple[Condition, Condition], ...] = (("none", "k"), ("q", "qk"))  # which a common K bias leaves equal
PLACES: dict[Condition, float] = {"none": -0.3, "k": -0.1, "q": 0.1, "qk": 0.3}  # in the space of a key
BAR = 0.2
BLUE, ORANGE, FAINT = "#0072B2", "#E69F00", "0.35"  # two of Okabe and Ito's: apart for every eye, and in grey
PANEL_WIDTH, PANEL_HEIGHT = {1: 9.0, 2: 5.2, 3: 4.2}, 1.8  # inches, of one panel of so many side by side
LEFT, RIGHT, ABOVE, BELOW, HEAD = 0.62, 0.12, 0.5, 0.4, 0.8  # inches around panels
MOST_TICKS = 22
NUMBERED = 6  # keys whose bars have room for their numbers
TITLE = {1: 95, 2: 52, 3: 40}  # letters that have room above one panel of so many side by side


def bars_picture(found: Sequence[Panel], subject: Subject, say: Language, whose: str = "") -> Picture:
    """Return the picture of weights or scores, of at least one query row; the title says whose they are."""
    columns = across(found)
    lines = -(-len(found) // columns)
    size = PANEL_WIDTH[columns] * columns, HEAD + lines * (PANEL_HEIGHT + ABOVE + BELOW)
    title = {
        "weights": say("Softmax weights of each key under four conditions"),
        "scores": say("Scores of each key before softmax under four conditions"),
    }[subject]
    title += f": {whose}" if whose else ""
    told = " ".join(f"{panel.title}: {said(panel, subject, say)}. {_in_words(panel, say)}." for panel in found)
    return Picture(title, f"{title}. {told}", size, partial(_draw, found, subject, title, say))


def said(panel: Panel, subject: Subject, say: Language) -> str:
    """Say in a line what the biases do to a row, measured on both pairs of conditions."""
    by_k = [panel.numbers[second] - panel.numbers[first] for first, second in PAIRS]
    by_q = [panel.numbers["q"] - panel.numbers["none"], panel.numbers["qk"] - panel.numbers["k"]]
    key_bias = say("K bias with shifts") if panel.shifted else say("K bias")
    if subject == "weights":
        k, q = (float(np.nanmax(np.abs(moved), initial=0.0)) for moved in (by_k, by_q))
        return say(
            "{key_bias} moves no weight ({k}), Q bias up to {q}"
            if k <= Tolerance().atol
            else "{key_bias} moves weights up to {k}, Q bias up to {q}",
            key_bias=key_bias,
            k=few_digits(k),
            q=few_digits(q),
        )
    alone, beside = map(_added, by_k)
    return say("{key_bias} adds {alone}, beside Q {beside}", key_bias=key_bias, alone=alone, beside=beside)


def _added(moved: Array) -> str:
    """Return what was added to the scores of a row: one number to all of them, or from the least to the largest."""
    known = moved[~np.isnan(moved)]
    if not known.size:
        return "–"
    least, largest = (_signed(float(number)) for number in (known.min(), known.max()))
    same = known.max() - known.min() <= 1e-9 * max(1.0, float(np.abs(known).max()))
    return least if same else f"{least} … {largest}"


def _signed(number: float) -> str:
    return short(number) if number < 0 else f"+{short(number)}"


def _in_words(panel: Panel, say: Language) -> str:
    rows = (
        f"{say(CONDITION_NAMES[condition])} {_row(panel.numbers[condition])}" for condition in ("none", "q", "k", "qk")
    )
    return ", ".join(rows)


def _row(numbers: Array) -> str:
    return f"({', '.join('–' if np.isnan(one) else short(one) for one in numbers.tolist())})"


def _draw(found: Sequence[Panel], subject: Subject, title: str, say: Language, figure: Figure) -> None:
    width, height = figure.get_size_inches()
    columns = across(found)
    lines = -(-len(found) // columns)
    grid = figure.subplots(lines, columns, squeeze=False)
    panel_width = (width - columns * (LEFT + RIGHT)) / columns
    figure.subplots_adjust(
        left=LEFT / width,
        right=1 - RIGHT / width,
        bottom=BELOW / height,
        top=1 - (HEAD + ABOVE) / height,
        hspace=(ABOVE + BELOW) / PANEL_HEIGHT,
        wspace=(LEFT + RIGHT) / panel_width,
    )
    for axes, panel in zip(grid.flat, found, strict=False):
        together = found if subject == "weights" else [panel]
        _panel(axes, panel, subject, _limits(together, room=0.22 if subject == "weights" else 0.42), say)
        axes.set_title(_title(panel, TITLE[columns]), weight="bold", pad=17)
    for axes in grid.flat[len(found) :]:
        axes.set_axis_off()
    figure.text(LEFT / width, 1 - 0.24 / height, title, size=12, weight="bold", va="center")
    _legend(figure, found, say)


def _title(panel: Panel, most: int) -> str:
    """Return a panel's title, without the beginning of a long name; the description has all of it."""
    title = printable(panel.title)
    return title if len(title) <= most else f"…{title[1 - most :]}"


def _limits(found: Sequence[Panel], room: float) -> tuple[float, float]:
    """Return the scale of bars around zero, with room for the numbers at their ends."""
    every = np.concatenate([numbers for panel in found for numbers in panel.numbers.values()])
    low, high = float(np.nanmin(every, initial=0.0)), float(np.nanmax(every, initial=0.0))
    more = room * (high - low or 1.0)
    return low - more * (low < 0), high + more * (high > 0 or low == 0)


def _panel(axes: Axes, panel: Panel, subject: Subject, scale: tuple[float, float], say: Language) -> None:
    drawn = min(panel.keys, MOST_KEYS)
    for condition, offset in PLACES.items():
        places, numbers = np.arange(drawn) + offset, panel.numbers[condition]
        axes.bar(places, np.nan_to_num(numbers), BAR, label=condition, **_look(condition))
        gone = places[np.isnan(numbers)]
        axes.plot(gone, np.zeros_like(gone), "x", color=FAINT, markersize=3.5)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xlim(-0.6, drawn - 0.4)
    axes.set_ylim(*scale)
    if panel.keys <= NUMBERED:
        _numbers(axes, panel)
    letter = {"weights": "p", "scores": "s"}[subject]
    ticks = range(0, drawn, -(-drawn // MOST_TICKS))
    axes.set_xticks(list(ticks), [f"{letter}{str(key + 1).translate(SUBSCRIPTS)}" for key in ticks])
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.annotate(
        said(panel, subject, say),
        (0, 1),
        (0, 6),
        xycoords="axes fraction",
        textcoords="offset points",
        color=FAINT,
        size=7,
    )


def _look(condition: Condition) -> dict[str, Any]:
    colour = BLUE if condition in PAIRS[0] else ORANGE
    first = condition in {pair[0] for pair in PAIRS}
    return {
        "facecolor": colour if first else "white",
        "edgecolor": colour,
        "hatch": None if first else "/////",
        "linewidth": 0.8,
    }


def _numbers(axes: Axes, panel: Panel) -> None:
    """Write the numbers at the ends of the bars: one for a pair of equal bars, upright for bars that differ."""
    for key in range(panel.keys):
        for pair in PAIRS:
            values = [float(panel.numbers[condition][key]) for condition in pair]
            places = [key + PLACES[condition] for condition in pair]
            if abs(values[0] - values[1]) <= Tolerance().atol:
                _number(axes, sum(places) / 2, values[0], upright=False)
            else:
                for place, value in zip(places, values, strict=True):
                    _number(axes, place, value, upright=True)


def _number(axes: Axes, place: float, value: float, upright: bool) -> None:
    if np.isnan(value):
        return
    below = value < 0
    axes.annotate(
        short(value),
        (place, value),
        (0, -2 if below else 2),
        textcoords="offset points",
        ha="center",
        va="top" if below else "bottom",
        rotation=90 if upright else 0,
        size=6.5,
    )


def _legend(figure: Figure, found: Sequence[Panel], say: Language) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415 - an extra
    from matplotlib.patches import Patch  # noqa: PLC0415

    width, height = figure.get_size_inches()
    marks: list[Any] = [Patch(**_look(condition), label=say(CONDITION_NAMES[condition])) for condition in PLACES]
    if any(np.isnan(numbers).any() for panel in found for numbers in panel.numbers.values()):
        marks.append(
            Line2D([], [], color=FAINT, marker="x", linestyle="", label=say("no score: a hidden key, or an overflow"))
        )
    figure.legend(
        handles=marks,
        loc="center left",
        bbox_to_anchor=((LEFT - 0.1) / width, 1 - 0.56 / height),
        ncols=len(marks),
        frameon=False,
        borderpad=0,
        handlelength=2.2,
        fontsize=9,
    )
