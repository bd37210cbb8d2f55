"""With both biases the weights are those of the Q bias alone.

Of the four terms, q_i·bK and bQ·bK do not depend on the key; only bQ·k_j is left for softmax to see.
"""

from __future__ import annotations

from collections.abc import Iterator

from verify_attention import rounding, terms
from verify_attention.departures import one_key
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, biased_keys


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the weights under both biases with those under bQ."""
    both, query_only = case.under("qk"), case.under("q")
    yield Sides(
        "weights[qk] − weights[q]",
        attend(both).weights,
        attend(query_only).weights,
        rounding=rounding.promising(rounding.weights(both) + rounding.weights(query_only)),
        moves=terms.at_stake(case, "qk"),
    )


def key_bias_skips_keys_beside_a_query_bias(case: Case) -> Array:
    """Leave every second key without bK when there is a Q bias too."""
    keys = biased_keys(case).copy()
    if case.bQ.any():
        keys[:, ::2] -= case.bK[:, None]
    return keys


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="weights(q, k, bQ, bK) = weights(q, k, bQ, 0)",
    source="article, section 3",
    check="both together",
    needs=frozenset({"common key shift", "shift-invariant softmax"}),
    applies=one_key,
    where="a row has at least two keys",
    vacuous="s·(q_i + bQ)·bK is 0 in every row",
    sides=sides,
    faults=(
        Fault(
            "beside a Q bias, the K bias reaches every second key only",
            CORE.but(keys=key_bias_skips_keys_beside_a_query_bias),
        ),
    ),
)
