"""A V bias adds exactly itself to every output row.

Σ_j p_ij (v_j + bV) = Σ_j p_ij v_j + bV, as the weights of a row sum to one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import mistakes, rounding
from verify_attention.model import CONDITIONS, Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, mixed_values


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the output with bV and the output without, plus bV, under each condition."""
    if case.bV is None:
        return
    bias = case.bV[case.kv_head][:, None]
    for condition in CONDITIONS:
        with_bias = case.under(condition)
        without = with_bias.but(bV=None)
        yield Sides(
            f"output[{condition}]",
            attend(with_bias).output,
            attend(without).output + bias,
            rounding=rounding.output(with_bias)
            + rounding.output(without)
            + case.precision.lost(2, stored=2) * np.abs(bias),
            axis="channel",
            moves=bias,
        )


def bias_of_the_first_head(case: Case, weights: Array) -> Array:
    """Add head 0's V bias to all heads."""
    bias = None if case.bV is None else np.broadcast_to(case.bV[:1], case.bV.shape)
    return mixed_values(case.but(bV=bias), weights)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="output(…, bV) = output(…, 0) + bV",
    source="article, section 1; the rows of weights sum to one",
    needs=frozenset({"rows sum to one"}),
    applies=lambda case: "the case has no bV" if case.bV is None else None,
    where="the case has bV",
    vacuous="bV is 0",
    sides=sides,
    faults=(
        Fault("the V bias is dropped", CORE.but(mix=mistakes.values_without_bias)),
        Fault("the V bias of head 0 is used for all heads", CORE.but(mix=bias_of_the_first_head)),
        Fault("heads are merged without a transpose", CORE.but(mix=mistakes.merged_without_transpose)),
    ),
)
