"""Every row of weights sums to one, and every weight lies between 0 and 1.

Dividing by the row's own sum makes it so, for every query row and under every condition.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import mistakes, rounding
from verify_attention.model import CONDITIONS, Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, softmax


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare row sums with 1, and weights with themselves put between 0 and 1."""
    for condition in CONDITIONS:
        under = case.under(condition)
        weights = attend(under).weights
        # Code that takes exp(S − LSE) has the LSE's rounding in every weight of the row.
        relative = rounding.promising(np.expm1(rounding.log_weights(under) + rounding.lse(under)[..., None]))
        sums = weights.sum(axis=-1)
        yield Sides(
            f"row sums of weights[{condition}]",
            sums,
            np.ones_like(sums),
            rounding=relative[..., 0],
        )
        yield Sides(
            f"weights[{condition}] in [0, 1]",
            weights,
            np.clip(weights, 0.0, 1.0),
            rounding=relative,
        )


def scaled_after_softmax(scores: Array) -> tuple[Array, Array]:
    """Multiply the weights by a scale once more."""
    weights, lse = softmax(scores)
    return weights * 0.5, lse


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="Σ_j p_ij = 1 and 0 ≤ p_ij ≤ 1, for every condition",
    source="article, section 1",
    needs=frozenset({"rows sum to one"}),
    sides=sides,
    faults=(
        Fault("softmax runs over the query axis", CORE.but(softmax=mistakes.over_queries)),
        Fault("no maximum is subtracted", CORE.but(softmax=mistakes.no_maximum)),
        Fault("the running maximum starts at 0", CORE.but(softmax=mistakes.maximum_from_zero)),
        Fault("one maximum serves all heads", CORE.but(softmax=mistakes.one_maximum_for_all)),
        Fault("the weights are scaled after softmax", CORE.but(softmax=scaled_after_softmax)),
    ),
)
