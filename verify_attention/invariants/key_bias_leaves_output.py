"""A K bias shared by every key changes no output.

The output is the weights' mixture of values. A common K bias changes no weight, and the values know nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import rounding, terms
from verify_attention.departures import one_key
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, biased_keys, mixed_values


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the output with bK and without."""
    with_bias, without = case.under("k"), case.under("none")
    yield Sides(
        "output[k] − output[none]",
        attend(with_bias).output,
        attend(without).output,
        rounding=rounding.output(with_bias) + rounding.output(without),
        axis="channel",
        moves=np.abs(terms.at_stake(case, "k")).max(axis=-1, keepdims=True),
    )


def bias_enters_the_values(case: Case, weights: Array) -> Array:
    """Add the K bias to the values too, as far as it is wide."""
    values = np.eye(case.d_v)[None] if case.values is None else case.values
    width = min(case.d_k, case.d_v)
    values = np.repeat(values, len(case.keys) // len(values), axis=0)
    values[..., :width] += case.bK[:, None, :width]
    return mixed_values(case.but(values=values), weights)


def last_key_only(case: Case) -> Array:
    """Add the K bias to the last key."""
    keys = case.keys.copy()
    keys[:, -1] = biased_keys(case)[:, -1]
    return keys


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="output(q, k, v, 0, bK) = output(q, k, v, 0, 0)",
    source="article, sections 2 and 4",
    needs=frozenset({"common key shift", "shift-invariant softmax"}),
    applies=one_key,
    where="a row has at least two keys",
    vacuous="s·q_i·bK is 0 in every row",
    sides=sides,
    faults=(
        Fault("the K bias enters the values too", CORE.but(mix=bias_enters_the_values)),
        Fault("the K bias reaches the last key only", CORE.but(keys=last_key_only)),
    ),
)
