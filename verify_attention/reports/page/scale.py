"""A deviation against its limit on a logarithmic scale, the same for every finding of every report."""

from __future__ import annotations

import math

from verify_attention.languages import Language
from verify_attention.model import Finding
from verify_attention.reports.figures import figure
from verify_attention.reports.page.markup import Markup, el

LOWEST, HIGHEST = -18, 2  # decades
DECADE = 6
WIDTH = (HIGHEST - LOWEST) * DECADE


def position(number: float) -> float:
    """Return where a number stands, in pixels from the left; what is beyond an end stands at it."""
    if math.isnan(number) or number == math.inf:
        return WIDTH
    if number <= 0:
        return 0
    return round(min(max((math.log10(number) - LOWEST) * DECADE, 0), WIDTH), 1)


def scale(deviation: float | None, limit: float | None, bound: float | None = None) -> Markup:
    """Draw a bar for the deviation, a line at the limit and a dashed one at the rounding bound.

    An exact zero is a ring at the left end. The numbers stand beside the drawing.
    """
    if deviation is None:
        return Markup("")
    parts, length = [], max(position(deviation), 1)
    if deviation == 0:
        parts.append('<circle class="z" cx="4" cy="8" r="3"/>')
    else:
        parts.append(f'<path d="M0 5h{length:g}v6H0z"/>')
    if bound is not None and bound > 0:
        parts.append(f'<path class="b" d="M{position(bound):g} 1v14"/>')
    if limit is not None:
        parts.append(f'<path class="l" d="M{position(limit):g} 0v16"/>')
    return Markup(f'<svg class="log" aria-hidden="true">{"".join(parts)}</svg>')


def of_finding(finding: Finding) -> Markup:
    """Draw the deviation of one finding."""
    return scale(finding.deviation, finding.limit, finding.rounding_bound)


def in_words(deviation: float | None, say: Language) -> Markup:
    """Return a deviation as a number; an exact zero says so."""
    if deviation == 0:
        return Markup(f"{figure(deviation)} {el('small', say('exactly'))}")
    return Markup(figure(deviation))


def legend(say: Language) -> Markup:
    """Say how the drawings are read."""
    example = scale(3e-10, 1e-12, 2e-15)
    told = say(
        "Drawn on a logarithmic scale, 1e-18 to 100: the deviation as a bar (a ring: exactly 0), the limit as a line, "
        "the rounding bound dotted."
    )
    return el("p", example, " ", told, class_="legend")
