"""Deviations against limits: a line for each claim, and on it a mark for each finding, left of the limit or beyond it.

A logarithmic axis has no place for zero. Deviations of exactly zero stand in a column of their own at the left, and
those that are no finite number in one at the right.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from verify_attention.languages import Language
from verify_attention.model import Expectation, Finding, Status
from verify_attention.reports.overview import in_limits
from verify_attention.reports.pictures.canvas import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kind: TypeAlias = Literal["holds", "control", "rounding", "inconclusive", "fail"]

# Form, colour (Okabe and Ito's) and whether it is filled: no two have the same form.
LOOK: dict[Kind, tuple[str, str, bool]] = {
    "holds": ("o", "#009E73", True),
    "control": ("^", "#0072B2", False),
    "rounding": ("s", "#0072B2", False),
    "inconclusive": ("D", "#E69F00", True),
    "fail": ("X", "#D55E00", True),
}
PASSED: dict[Expectation, Kind] = {"holds": "holds", "breaks": "control", "within-rounding": "rounding"}
WIDTH, NAMES, RIGHT, LINE, HEAD, BELOW = 10.5, 3.1, 0.35, 0.21, 1.0, 0.8  # inches
GREY = "0.35"


def kind_of(finding: Finding) -> Kind | None:
    """Say how a finding is drawn; None where it is not, as nothing was judged by a measurement."""
    if finding.observed is None or finding.status in {"skipped", "crashed"}:
        return None
    broken: dict[Status, Kind] = {"fail": "fail", "inconclusive": "inconclusive"}
    return "fail" if finding.contradicted else broken.get(finding.status) or PASSED[finding.expected]


def deviations_picture(findings: Sequence[Finding], say: Language, whose: str = "") -> Picture:
    """Return the picture of findings, of which at least one was measured; the title says of what."""
    drawn = [finding for finding in findings if kind_of(finding) is not None]
    claims = sorted({finding.invariant for finding in drawn})
    title = say("Deviation of each finding, against its limit") + (f": {whose}" if whose else "")
    counts = Counter(map(kind_of, drawn))
    kinds = ", ".join(f"{_words(kind, say)}: {counts[kind]:,}" for kind in LOOK if counts[kind])
    largest = ", ".join(
        f"{claim} {max(in_limits(finding) for finding in drawn if finding.invariant == claim):.2g}" for claim in claims
    )
    told = say("{kinds}. The largest deviation of each claim, in limits: {largest}.", kinds=kinds, largest=largest)
    size = WIDTH, HEAD + LINE * len(claims) + BELOW
    return Picture(title, f"{title}. {told}", size, partial(_draw, drawn, claims, len(findings), title, say))


def _draw(
    drawn: Sequence[Finding], claims: Sequence[str], count: int, title: str, say: Language, figure: Figure
) -> None:
    width, height = figure.get_size_inches()
    axes = figure.add_axes((NAMES / width, BELOW / height, 1 - (NAMES + RIGHT) / width, 1 - (HEAD + BELOW) / height))
    floor, ceiling = _axis(axes, drawn, say)
    handles = []
    counts = Counter(map(kind_of, drawn))
    for kind in (kind for kind in LOOK if counts[kind]):
        places = sorted(
            {
                (_place(in_limits(one), floor, ceiling), claims.index(one.invariant))
                for one in drawn
                if kind_of(one) == kind
            }
        )
        handles += _marks(axes, places, kind, f"{_words(kind, say)} ({counts[kind]:,})")
    axes.set_ylim(len(claims) - 0.4, -0.6)
    axes.set_yticks(range(len(claims)), claims)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.text(0.15 / width, 1 - 0.24 / height, title, size=12, weight="bold", va="center")
    left_out = say(
        "Marks in the same place are drawn once. Without a measurement, and not drawn: {count} findings.",
        count=f"{count - len(drawn):,}",
    )
    figure.text(0.15 / width, 0.14 / height, left_out, color=GREY)
    corner = (0.05 / width, 1 - 0.55 / height)
    figure.legend(handles=handles, loc="center left", bbox_to_anchor=corner, ncols=len(handles), frameon=False)


def _marks(axes: Axes, places: Sequence[tuple[float, int]], kind: Kind, label: str) -> list[object]:
    form, colour, filled = LOOK[kind]
    across, down = ([place[axis] for place in places] for axis in (0, 1))
    face = colour if filled else "none"
    drawn: list[object] = axes.plot(
        across,
        down,
        form,
        color=colour,
        markerfacecolor=face,
        markersize=5 if filled else 8,
        zorder=3,
        clip_on=False,
        label=label,
    )
    return drawn


def _axis(axes: Axes, drawn: Sequence[Finding], say: Language) -> tuple[float, float]:
    """Draw decades, the limit, and columns for zero and for what is not finite; return where these two are."""
    decades = [math.floor(math.log10(ratio)) for ratio in map(in_limits, drawn) if 0 < ratio < math.inf]
    low, high = min([*decades, -3]), max([decade + 1 for decade in decades] + [2])
    apart = max(1.0, (high - low) / 10)  # decades between a column and its neighbour
    floor, ceiling = 10.0 ** (low - apart), 10.0 ** (high + apart)
    endless = math.inf in map(in_limits, drawn)
    axes.set_xscale("log")
    axes.set_xlim(floor / 10 ** (apart / 2), ceiling * 10 ** (apart / 2) if endless else 10.0**high)
    axes.axvline(10.0 ** (low - apart / 2), color="0.6", linewidth=0.8, linestyle=":")
    axes.axvline(1, color="black", linewidth=1.2)
    axes.axvspan(1, axes.get_xlim()[1], color="0.94", zorder=0)
    step = max(1, (high - low) // 10)
    ticks = [decade for decade in range(low, high + 1) if decade % step == 0]
    labels = {floor: say("exactly 0"), **{10.0**decade: "1" if decade == 0 else f"1e{decade}" for decade in ticks}}
    if endless:
        labels[ceiling] = say("not finite")
        axes.axvline(10.0 ** (high + apart / 2), color="0.6", linewidth=0.8, linestyle=":")
    axes.set_xticks(list(labels), list(labels.values()))
    axes.minorticks_off()
    axes.set_xlabel(say("deviation ÷ limit"))
    for offset, side, words in ((-4, "right", say("within the limit")), (4, "left", say("beyond it"))):
        above = axes.get_xaxis_transform()
        axes.annotate(words, (1, 1), (offset, 3), xycoords=above, textcoords="offset points", ha=side, color=GREY)
    return floor, ceiling


def _place(ratio: float, floor: float, ceiling: float) -> float:
    """Return where a mark stands: to two digits, so that a thousand findings are not a thousand marks."""
    return floor if ratio == 0 else ceiling if ratio == math.inf else float(f"{ratio:.1e}")


def _words(kind: Kind, say: Language) -> str:
    return {
        "holds": say("holds, as expected"),
        "control": say("breaks, as expected"),
        "rounding": say("within rounding, as expected"),
        "inconclusive": say("inconclusive"),
        "fail": say("fails"),
    }[kind]
