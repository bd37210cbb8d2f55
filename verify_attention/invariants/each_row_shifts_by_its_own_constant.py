"""Each query row is shifted by a constant of its own.

The K bias adds c_i = s·q_i·bK to row i. Another query has another c_i, and still its own weights. The shift of a row is
read as the mean over its visible keys.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import rounding, terms
from verify_attention.departures import visible
from verify_attention.heads import grouped_product
from verify_attention.model import Array, Case, Fault, Flags, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, scaled_scores


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare each row's mean shift with its own number."""
    with_bias, without = case.under("k"), case.under("none")
    numbers = terms.row_shift(case, "k")
    bound = rounding.scores(with_bias) + rounding.scores(without)
    change = attend(with_bias).scores - attend(without).scores
    seen = visible(case)
    counted = np.ones(change.shape, dtype=bool) if seen is None else seen
    yield Sides(
        "row shift, scores[k] − scores[none]",
        _mean(change, counted),
        numbers,
        rounding=bound[..., 0] + case.precision.accumulated(case.keys.shape[1]) * (np.abs(numbers) + bound[..., 0]),
        moves=numbers - terms.first_row_shift(case),
    )


def _mean(change: Array, counted: Flags) -> Array:
    """Return the mean over the counted keys, `[H, Tq]`, by way of gaps: a sum of large numbers might overflow."""
    first = np.take_along_axis(change, counted.argmax(axis=-1)[..., None], axis=-1)
    gaps = np.where(counted, change - first, 0.0)
    mean: Array = first[..., 0] + gaps.sum(axis=-1) / counted.sum(axis=-1)
    return mean


def shift_of_the_first_row(case: Case, queries: Array, keys: Array) -> Array:
    """Compute the K bias's part for the first row and use it for all."""
    plain = scaled_scores(case, queries, keys - case.bK[:, None])
    return plain + case.scale * grouped_product(queries[:, :1], case.bK[..., None])


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="S_i·(k) − S_i·(none) = c_i = s·q_i·bK, with c_i ≠ c_m for some rows i and m of a head",
    source="article, section 2",
    check="another query row",
    needs=frozenset({"common key shift"}),
    applies=lambda case: "a head has one query row only" if case.q.shape[1] < 2 else None,
    where="a head has at least two query rows",
    vacuous="all rows of a head are shifted by the same s·q_i·bK",
    sides=sides,
    faults=(Fault("the shift of row 0 is used for every row", CORE.but(scores=shift_of_the_first_row)),),
)
