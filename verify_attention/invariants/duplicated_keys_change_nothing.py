"""Giving each key twice, with its value, changes no output.

Each exponential is there twice, and so is their sum: a pair shares the weight that the key had alone, and both lead
to the same value. The LSE grows by log 2. What is given per key goes with it: masks, score biases, positions. A key
that a feature adds is not doubled, and a normaliser that is no quotient of exponentials need not share evenly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import departures, formula, mistakes, rounding, selection
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, changed_scores, scaled_scores


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the case with that of each key twice, both biases in place."""
    plain = case.under("qk")
    doubled = selection.keys(plain, np.repeat(np.arange(case.keys.shape[1]), 2))
    yield Sides(
        "output with each key twice",
        attend(doubled).output,
        attend(plain).output,
        rounding=rounding.output(doubled) + rounding.output(plain),
        axis="channel",
    )
    yield Sides(
        "weights of each pair",
        attend(doubled).weights.reshape(*case.scores_shape, 2).sum(axis=-1),
        attend(plain).weights,
        rounding=rounding.promising(2 * rounding.weights(doubled) + rounding.weights(plain)),
    )
    if departures.has_lse(case):
        yield Sides(
            "LSE with each key twice − log 2",
            (lse := attend(doubled).lse) - np.log(np.full_like(lse, 2.0)),
            attend(plain).lse,
            rounding=rounding.lse(doubled)
            + rounding.lse(plain)
            + 2 * case.precision.unit * (np.abs(formula.lse(plain)) + 1),
        )


def by_length(case: Case, queries: Array, keys: Array) -> Array:
    """Multiply scores by the logarithm of the number of keys."""
    return scaled_scores(case, queries, keys) * np.log(case.keys.shape[1] + 1)


def strongest_eight(case: Case, scores: Array) -> Array:
    """Leave out all but the eight largest scores of a row."""
    changed = changed_scores(case, scores)
    least = -np.sort(-changed, axis=-1)[..., :8][..., -1:]
    return np.where(changed >= least, changed, -np.inf)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="output(K K, V V) = output(K, V), p_j + p_j' = p_j of the single key, LSE grows by log 2",
    source="the definition of softmax: 2·exp(S_ij) / (2·Σ_j exp(S_ij))",
    needs=frozenset({"exponential weights", "rows sum to one"}),
    on_request=True,
    whole=True,
    sides=sides,
    faults=(
        Fault("an undeclared key of zeros takes a share", CORE.but(softmax=mistakes.undeclared_zero_key)),
        Fault(
            "the last block of four keys is filled up with zeros, which are attended",
            CORE.but(columns=mistakes.filled_up_with_zero_keys),
        ),
        Fault("scores are multiplied by the logarithm of the number of keys", CORE.but(scores=by_length)),
        Fault("only the eight largest scores of a row count", CORE.but(change=strongest_eight)),
    ),
)
