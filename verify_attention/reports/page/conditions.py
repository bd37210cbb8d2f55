"""The four conditions of a case as bars: scores, and the weights that softmax makes of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from verify_attention.languages import Language
from verify_attention.model import Array, CaseReport, Condition
from verify_attention.reports.article import CONDITION_NAMES, SHIFTED_NAMES
from verify_attention.reports.figures import figure
from verify_attention.reports.page.markup import Markup, el, join, scrolling, singular
from verify_attention.summary import Summary

# Those that should weigh alike stand below each other.
ORDER: tuple[Condition, ...] = ("none", "k", "q", "qk")
ALIKE: dict[Condition, Condition] = {"k": "none", "qk": "q"}
MOST_ROWS, MOST_KEYS = 6, 8
BAR, GAP, HEIGHT = 10, 3, 30


def figures(entry: CaseReport, say: Language) -> Markup:
    """Draw what the implementation showed of a case, or say how large it is and what is stored of it."""
    shown = [name for name in ("scores", "weights") if _everywhere(entry, name)]
    shown = shown or [name for name in ("output",) if _everywhere(entry, name)]
    if not shown:
        return el("p", say("The implementation showed no scores, weights or output of this case."))
    heads, rows, keys = entry.case.scores_shape
    size = singular(say("{heads} heads × {rows} query rows × {keys} keys", heads=heads, rows=rows, keys=keys))
    if any(isinstance(entry.conditions[condition][name], Summary) for condition in ORDER for name in shown):
        return join([el("p", _stored(size, say)), _summaries(entry, shown, say)])
    arrays = {name: {condition: entry.conditions[condition][name] for condition in ORDER} for name in shown}
    if keys > MOST_KEYS or arrays[shown[0]]["none"].shape[-1] > MOST_KEYS:
        told = say("{size}: too many for bars; results.json has every number.", size=size)
        return join([el("p", told), _differences(arrays, say)])
    note = None
    if heads * rows > MOST_ROWS:
        told = say("The first {number} rows of {size}; results.json has all.", number=MOST_ROWS, size=size)
        note = el("p", told, class_="muted")
    return join([_table(entry, arrays, say), note, _differences(arrays, say)])


def _everywhere(entry: CaseReport, name: str) -> bool:
    return all(entry.conditions.get(condition, {}).get(name) is not None for condition in ORDER)


def _names(entry: CaseReport, say: Language) -> dict[Condition, str]:
    shifted = SHIFTED_NAMES if entry.case.key_shifts is not None else {}
    return {condition: say(name) for condition, name in (CONDITION_NAMES | shifted).items()}


def _heading(name: str, say: Language) -> str:
    words = {"scores": say("scores"), "weights": say("weights"), "output": say("output")}
    return words[name]


def _table(entry: CaseReport, arrays: dict[str, dict[Condition, Array]], say: Language) -> Markup:
    heads, rows, _ = entry.case.scores_shape
    names, spans = _names(entry, say), {name: _span(name, shown) for name, shown in arrays.items()}
    first = [(head, row) for head in range(heads) for row in range(rows)][:MOST_ROWS]
    wide = {name: _width(shown, first) for name, shown in arrays.items()}
    label = say("Scores and weights under the four conditions")
    headings = say("condition"), *(_heading(name, say) for name in arrays)
    top = el("tr", *(el("th", word, scope="col") for word in headings))
    bodies = []
    for place in first:
        lines = []
        for condition in ORDER:
            rows_ = {name: shown[condition][place].tolist() for name, shown in arrays.items()}
            cells = (_cell(numbers, spans[name], name, wide[name]) for name, numbers in rows_.items())
            css = "second" if condition in ALIKE else None
            lines.append(el("tr", el("th", names[condition], scope="row"), *cells, class_=css))
        if heads * rows > 1:
            where = say("head {head}, row {row}", head=place[0], row=place[1])
            lines.insert(0, el("tr", el("th", where, scope="rowgroup", colspan=1 + len(arrays)), class_="place"))
        bodies.append(el("tbody", *lines))
    return scrolling(
        el("table", el("caption", label), el("thead", top), *bodies, class_="figure"), f"{label}: {entry.case.id}"
    )


def _width(shown: dict[Condition, Array], places: list[tuple[int, int]]) -> int:
    """Return how wide the numbers are that stand below each other."""
    numbers = (number for array in shown.values() for place in places for number in array[place].tolist())
    return max(len(_written(number)) for number in numbers)


def _cell(numbers: list[float], span: tuple[float, float], quantity: str, width: int) -> Markup:
    written = "  ".join(_written(number).rjust(width) for number in numbers)
    return el("td", _bars(numbers, span, quantity), Markup(f'<span class="n">{written}</span>'))


def _span(name: str, shown: dict[Condition, Array]) -> tuple[float, float]:
    """Return the range of the bars, which is the same for all that stand below each other, and has zero in it."""
    everything = np.concatenate([array.ravel() for array in shown.values()])
    finite = everything[np.isfinite(everything)]
    lowest, highest = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    return (min(lowest, 0.0), max(highest, 1.0)) if name == "weights" else (lowest, highest)


def _bars(numbers: list[float], span: tuple[float, float], quantity: str) -> Markup:
    lowest, highest = span
    with np.errstate(over="ignore"):
        unit = HEIGHT / ((highest - lowest) or 1.0)
    zero = round(1 + highest * unit, 1)
    drawn, hidden = [], []
    for index, number in enumerate(numbers):
        left = index * (BAR + GAP)
        if math.isfinite(number):
            drawn.append(f"M{left} {zero:g}v{-number * unit:.1f}h{BAR}V{zero:g}z")
        else:
            hidden.append(f"M{left + 2} {zero - 3:g}l6 6m0-6l-6 6")
    width = len(numbers) * (BAR + GAP) - GAP
    axis = f"M0 {zero:g}h{width}v.6H0z"
    crosses = f'<path class="x" d="{"".join(hidden)}"/>' if hidden else ""
    return Markup(
        f'<svg class="{quantity}" width="{width}" height="{HEIGHT + 2}" aria-hidden="true">'
        f'<path d="{"".join(drawn)}{axis}"/>{crosses}</svg>'
    )


def _written(number: float) -> str:
    if math.isfinite(number):
        return f"{number:.6g}"
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "−∞"


def _differences(arrays: dict[str, dict[Condition, Array]], say: Language) -> Markup | None:
    """Say how far apart the weights are that a K bias should leave."""
    shown = arrays.get("weights")
    if shown is None:
        return None
    alone, beside = (float(np.abs(shown[biased] - shown[base]).max()) for biased, base in ALIKE.items())
    told = say(
        "Largest difference of weights: {alone} between no bias and K bias, {beside} between Q bias and both biases.",
        alone=figure(alone),
        beside=figure(beside),
    )
    return el("p", told, class_="differ")


def _stored(size: str, say: Language) -> str:
    return say(
        "{size}: results.json has the shape, smallest, largest, mean and digest of what is large, not each number.",
        size=size,
    )


def _summaries(entry: CaseReport, shown: list[str], say: Language) -> Markup:
    names, label = _names(entry, say), say("What is stored of large arrays")
    headings = say("condition"), say("quantity"), say("smallest"), say("largest"), say("mean")
    head = el("tr", *(el("th", word, scope="col") for word in headings))
    lines = []
    for condition in ORDER:
        for name in shown:
            numbers = _extremes(entry.conditions[condition][name])  # results have no infinities
            told = (_written(number) if math.isfinite(number) else "–" for number in numbers)
            cells = (el("td", _heading(name, say)), *(el("td", number, class_="n") for number in told))
            lines.append(el("tr", el("th", names[condition], scope="row"), *cells))
    return scrolling(
        el("table", el("caption", label), el("thead", head), el("tbody", *lines)), f"{label}: {entry.case.id}"
    )


def _extremes(stored: Any) -> tuple[float, float, float]:
    if isinstance(stored, Summary):
        return stored.smallest, stored.largest, stored.mean
    return float(stored.min()), float(stored.max()), float(stored.mean())
