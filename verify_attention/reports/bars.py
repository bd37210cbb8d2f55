"""Bars of characters: what a query row is under the four conditions, in numbers and at a glance.

Conditions that a common K bias leaves alike stand side by side: no bias and K only, Q only and both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from rich.text import Text

from verify_attention.languages import ENGLISH, Language
from verify_attention.model import Array, CaseReport, Condition, Trace
from verify_attention.reports.article import SUBSCRIPTS, short

MOST_KEYS, MOST_ROWS = 8, 4  # of a case that is small enough for bars
BESIDE: tuple[Condition, ...] = ("none", "k", "q", "qk")
COLOURS: dict[Condition, str] = {"none": "blue", "k": "blue", "q": "yellow", "qk": "yellow"}
LETTERS = {"scores": "s", "weights": "p", "output": "o"}
INDENT, LABEL, NUMBER, CELLS = 4, 4, 8, 7  # columns: 76 in all
WIDTH = NUMBER + CELLS + 2  # of a condition
BEFORE = 4  # its name, where there is room
SEEN = 5e-4  # what a mistake must move to be seen in three decimals
EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")


def of_case(entry: CaseReport, say: Language = ENGLISH) -> Text:
    """Return scores and weights of a small case, row by row; nothing of a large one, or where they are not shown."""
    heads, rows, keys = entry.case.scores_shape
    text = Text()
    if heads * rows > MOST_ROWS or keys > MOST_KEYS:
        return text
    for quantity in ("scores", "weights"):
        arrays = _stored(entry, quantity)
        if arrays is not None:
            places = {(head, row): _place(head, row, heads, rows, say) for head, row in np.ndindex(heads, rows)}
            text.append(of_rows({place: _at(arrays, *at) for at, place in places.items()}, quantity, say))
    return text


def of_mistake(right: Mapping[Condition, Trace], wrong: Mapping[Condition, Trace], say: Language = ENGLISH) -> Text:
    """Return the row in which a mistake shows most, as it should be and as it is made; nothing where none differs.

    Both are traces by condition. Of weights, scores and output the first that differs is shown.
    """
    for quantity in ("weights", "scores", "output"):
        due, made = _arrays(right, quantity), _arrays(wrong, quantity)
        if due is None or made is None or due["none"].shape[-1] > MOST_KEYS:
            continue
        apart = np.max([_apart(due[condition], made[condition]) for condition in BESIDE], axis=0)
        if apart.max() > SEEN:
            head, row = map(int, np.unravel_index(apart.argmax(), apart.shape)[:2])
            rows = {say("as it should be"): _at(due, head, row), say("with the mistake"): _at(made, head, row)}
            return of_rows(rows, quantity, say)
    return Text()


def of_rows(rows: Mapping[str, Mapping[Condition, Array]], quantity: str, say: Language = ENGLISH) -> Text:
    """Return a line for each key (or channel of an output): its number and its bar under each condition.

    Rows of numbers are by their titles, which may be empty, and their bars are on one scale.
    """
    names = {"none": say("no bias"), "k": say("K bias only"), "q": say("Q bias only"), "qk": say("Q and K")}
    text = Text(" " * (INDENT + LABEL))
    for condition in BESIDE:
        name = Text(names[condition])
        name.pad_left(min(BEFORE, WIDTH - 1 - name.cell_len))
        name.pad_right(WIDTH - name.cell_len)
        text.append(name)
    text.rstrip()
    text.append("\n")
    low, high = _ends([array for numbers in rows.values() for array in numbers.values()])
    for title, numbers in rows.items():
        text.append(f"{'':{INDENT}}{title}\n" if title else "")
        for key in range(len(numbers["none"])):
            text.append(f"{'':{INDENT}}{LETTERS[quantity]}{str(key + 1).translate(SUBSCRIPTS):<{LABEL - 1}}")
            for condition in BESIDE:
                value = float(numbers[condition][key])
                text.append(f"{_number(value):>{NUMBER}} ")
                text.append(f"{_bar(value, low, high):<{CELLS}} ", style=COLOURS[condition])
            text.rstrip()
            text.append("\n")
    return text


def _place(head: int, row: int, heads: int, rows: int, say: Language) -> str:
    place = [say("head {index}", index=head)] if heads > 1 else []
    place += [say("row {index}", index=row)] if rows > 1 else []
    return ", ".join(place)


def _at(shown: Mapping[Condition, Array], head: int, row: int) -> dict[Condition, Array]:
    return {condition: array[head, row] for condition, array in shown.items()}


def _stored(entry: CaseReport, quantity: str) -> dict[Condition, Array] | None:
    """Return a quantity of a report under each condition; None where it is not shown, or only summarised."""
    shown = {condition: entry.conditions[condition].get(quantity) for condition in BESIDE}
    arrays = {condition: array for condition, array in shown.items() if isinstance(array, np.ndarray)}
    return arrays if len(arrays) == len(shown) else None


def _arrays(traces: Mapping[Condition, Trace], quantity: str) -> dict[Condition, Array] | None:
    """Return a quantity under each condition; None where it is not shown."""
    if quantity == "output":
        return {condition: trace.output for condition, trace in traces.items()}
    if any(quantity not in trace.inside for trace in traces.values()):
        return None
    return {condition: trace.inside[quantity] for condition, trace in traces.items()}


def _apart(right: Array, wrong: Array) -> Array:
    """Return how far apart two arrays are; equal infinities are not, and what is no number is far."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.where(right == wrong, 0.0, np.abs(right - wrong)), nan=np.inf)


def _ends(arrays: Sequence[Array]) -> tuple[float, float]:
    """Return the least and the largest number that has a bar, zero among them."""
    every = np.concatenate([*arrays, [0.0]])
    finite = every[np.isfinite(every)]
    return float(finite.min()), float(finite.max())


def _number(value: float) -> str:
    """Return a number in no more than eight columns."""
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "NaN")
    return short(value, room=NUMBER)


def _length(value: float, low: float, high: float, zero: int) -> float:
    """Return how long a bar is, in columns, where all bars have to fit on both sides of so many columns."""
    sides = [(high, CELLS - zero)] * (high > 0) + [(-low, zero)] * (low < 0)
    return min(abs(value) / most * cells for most, cells in sides)


def _bar(value: float, low: float, high: float) -> str:
    """Return a bar from zero to the right, in eighths of a column, or to the left, in halves."""
    if not math.isfinite(value) or value == 0:
        return ""
    length, zero = max((_length(value, low, high, zero), -zero) for zero in range(CELLS + 1))
    zero = -zero
    if value > 0:
        whole, eighths = divmod(round(length * 8), 8)
        return " " * zero + "█" * whole + EIGHTHS[eighths]
    whole, half = divmod(round(length * 2), 2)
    return ("▐" * half + "█" * whole).rjust(zero)
