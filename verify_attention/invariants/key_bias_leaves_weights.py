"""A K bias shared by every key changes no weight.

It adds s·q_i·bK to every score of row i. That number does not depend on the key, and softmax does not see a common
shift: exp(S + c) / Σ exp(S + c) = exp(S) / Σ exp(S).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import rounding, terms
from verify_attention.departures import one_key
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, biased_keys


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the weights with bK and without."""
    with_bias, without = case.under("k"), case.under("none")
    yield Sides(
        "weights[k] − weights[none]",
        attend(with_bias).weights,
        attend(without).weights,
        rounding=rounding.promising(rounding.weights(with_bias) + rounding.weights(without)),
        moves=terms.at_stake(case, "k"),
    )


def first_key_only(case: Case) -> Array:
    """Add the K bias to the first key."""
    keys = case.keys.copy()
    keys[:, 0] = biased_keys(case)[:, 0]
    return keys


def normalised_after_the_bias(case: Case) -> Array:
    """Scale each biased key to the length of the first."""
    keys = biased_keys(case)
    lengths = np.linalg.norm(keys, axis=-1, keepdims=True)
    return keys * (lengths[:, :1] / np.maximum(lengths, 1e-30))


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="weights(q, k, 0, bK) = weights(q, k, 0, 0)",
    source="article, section 2",
    check="softmax kept under K",
    needs=frozenset({"common key shift", "shift-invariant softmax"}),
    applies=one_key,
    where="a row has at least two keys",
    vacuous="s·q_i·bK is 0 in every row",
    sides=sides,
    faults=(
        Fault("the K bias reaches the first key only", CORE.but(keys=first_key_only)),
        Fault("keys are normalised after the bias, undeclared", CORE.but(keys=normalised_after_the_bias)),
    ),
)
