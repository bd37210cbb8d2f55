"""The scores of a head, or of a row, are divided by a temperature.

S_ij / (τ_h·τ_i), with τ_h from `heads` and τ_i from `rows`. A K bias adds s·q_i·bK / (τ_h·τ_i) to every score of row
i: it is still one number. A temperature for each key would be another matter, and is none of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from verify_attention.model import Array, Case, Estimate, Feature, OnScores, Shape

LEAST = 1e-150  # of one; two divide each row


def complete(parameters: Any, case: Case) -> Any:
    """Fill in temperatures of 1."""
    heads, rows, _ = case.scores_shape
    return {"heads": np.ones(heads), "rows": np.ones(rows), **parameters}


def refuse(case: Case) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Refuse temperatures that are not above 0, or so small that nothing can be divided by them."""
    for name, numbers in case.features["temperature"].items():
        for place in np.flatnonzero(numbers < LEAST).tolist():
            allowed = "above 0" if numbers[place] <= 0 else f"from {LEAST:g}"
            yield (name, place), f"is the number {numbers[place]:g}, allowed are numbers {allowed}"


def temperatures(case: Case) -> Array:
    """Return the temperature of every row, `[H, Tq, 1]`."""
    own = case.features["temperature"]
    found: Array = own["heads"][:, None, None] * own["rows"][:, None]
    return found


def formula(case: Case, scores: Estimate) -> Estimate:
    """Divide by the one temperature and then by the other."""
    own = case.features["temperature"]
    value = scores.value / own["heads"][:, None, None] / own["rows"][:, None]
    return Estimate(value, scores.error / temperatures(case) + case.precision.lost(6, stored=2) * np.abs(value))


FEATURE = Feature(
    __name__,
    __doc__,
    act=OnScores(lambda case, scores: scores / temperatures(case), formula, gain=lambda case: 1 / temperatures(case)),
    order=40,
    why="a row's shift is divided by the row's temperature, and stays one number",
    arrays={("heads",): Shape(("H",), (1,)), ("rows",): Shape(("Tq",), (1,))},
    complete=complete,
    refuse=refuse,
)
