"""Printed scores, weights and outputs are reproduced to their last decimal.

A number x reproduces a printed p when |x − p| ≤ 0.5·10^(−decimals) + 1e-12. The printed numbers come from outside:
from an article, a calculation by hand, another library.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import rounding
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, NotShownError, Sides
from verify_attention.pipeline import CORE, mixed_values

BOUNDS = {"scores": rounding.scores, "weights": rounding.weights, "output": rounding.output}


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare every printed number."""
    if case.published is None:
        return
    hidden = None
    for quantity, by_condition in case.published.numbers.items():
        for condition, printed in by_condition.items():
            under = case.under(condition)
            try:
                found = getattr(attend(under), quantity)
            except NotShownError as error:
                hidden = error
                continue
            yield Sides(
                f"{quantity}[{condition}]",
                found,
                printed,
                rounding=case.published.limit + np.broadcast_to(BOUNDS[quantity](under), printed.shape),
                axis="channel" if quantity == "output" else "key",
                limit=case.published.limit,
            )
    if hidden is not None:  # what is shown was compared; the claim as a whole was not
        raise hidden


def rounded_to_five_digits(case: Case, weights: Array) -> Array:
    """Give the output to five decimals."""
    return np.round(mixed_values(case, weights), 5)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="|x − p| ≤ 0.5·10^(−decimals) + 1e-12 for every printed p",
    source="article, section 4, the table",
    applies=lambda case: "the case gives no published numbers" if case.published is None else None,
    where="the case gives published numbers",
    own_limit=True,
    sides=sides,
    faults=(
        Fault("the scale is 1/d_k", lambda case: CORE(case.but(scale=1 / case.d_k))),
        Fault("the output has five decimals", CORE.but(mix=rounded_to_five_digits)),
    ),
)
