"""The output is the mixture of the values by the weights, plus the V bias.

o_i = Σ_j p_ij v_j + (Σ_j p_ij)·bV, under every condition. The right side takes the weights that the implementation
shows, and adds in the other direction. A key that a feature appends takes the share that the LSE leaves it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import departures, formula, rounding
from verify_attention.model import CONDITIONS, Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, mixed_values


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the output with the mixture of the values."""
    for condition in CONDITIONS:
        under = case.under(condition)
        trace = attend(under)
        yield Sides(
            f"output[{condition}]",
            trace.output,
            formula.mixture(under, trace.weights, trace.lse if has_valued_column(under) else None),
            rounding=2 * rounding.output(under),
            axis="channel",
        )


def has_valued_column(case: Case) -> bool:
    """Say whether a feature adds a key with a value, whose share follows from the LSE."""
    return departures.departs(case) and any(value is not None for _, value in formula.columns(case))


def values_of_the_first_head(case: Case, weights: Array) -> Array:
    """Mix head 0's values in all heads."""
    values = None if case.values is None else np.broadcast_to(case.values[:1], case.values.shape)
    return mixed_values(case.but(values=values), weights)


def rows_shifted(case: Case, weights: Array) -> Array:
    """Write each output row where the next belongs."""
    return np.roll(mixed_values(case, weights), 1, axis=1)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="o_i = Σ_j p_ij·v_j + (Σ_j p_ij)·bV, for every condition",
    source="article, section 1",
    sides=sides,
    faults=(
        Fault("the values of head 0 are used for all heads", CORE.but(mix=values_of_the_first_head)),
        Fault("output rows are written one row too far", CORE.but(mix=rows_shifted)),
        Fault(
            "values are averaged, not weighed",
            CORE.but(mix=lambda case, weights: mixed_values(case, np.full_like(weights, 1 / weights.shape[-1]))),
        ),
    ),
)
