"""A common K bias adds one number to every score of a row.

(q_i + bQ)·(k_j + bK) = (q_i + bQ)·k_j + (q_i + bQ)·bK, and the last term does not depend on the key j.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import mistakes, rounding, terms
from verify_attention.departures import visible
from verify_attention.model import Array, Case, Condition, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, biased_keys

PARTS: tuple[tuple[Condition, Condition], ...] = (("none", "k"), ("q", "qk"))


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare what bK adds to each score with the row's number, without bQ and with it."""
    for before, after in PARTS:
        without, with_bias = case.under(before), case.under(after)
        change = attend(with_bias).scores - attend(without).scores
        number = terms.row_shift(case, after)[..., None]
        yield Sides(
            f"scores[{after}] − scores[{before}]",
            change,
            np.broadcast_to(number, change.shape),
            rounding=rounding.scores(with_bias) + rounding.scores(without),
            moves=terms.key_term(case, after),
            counts=visible(case),
        )


def second_half_only(case: Case) -> Array:
    """Add the K bias to the second half of the keys."""
    keys = biased_keys(case).copy()
    half = keys.shape[1] // 2
    keys[:, :half] -= case.bK[:, None]
    return keys


def bias_of_the_first_head(case: Case) -> Array:
    """Add head 0's K bias to all heads."""
    return biased_keys(case.but(bK=np.broadcast_to(case.bK[:1], case.bK.shape)))


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="S_ij(k) − S_ij(none) = s·q_i·bK and S_ij(qk) − S_ij(q) = s·(q_i + bQ)·bK, for every j",
    source="article, section 2",
    check="common shift by K",
    needs=frozenset({"common key shift"}),
    vacuous="s·q_i·bK and s·(q_i + bQ)·bK are 0 in every row",
    sides=sides,
    faults=(
        Fault("the K bias reaches the second half of the keys only", CORE.but(keys=second_half_only)),
        Fault("the K bias of head 0 is used for all heads", CORE.but(keys=bias_of_the_first_head)),
        Fault("the K bias is ignored", CORE.but(keys=mistakes.keys_without_bias)),
    ),
)
