"""A bias that is left out is a bias of zeros.

Code has a path for each: one reads a slot that nobody filled, the other adds. Asked of functions that take biases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from verify_attention import rounding
from verify_attention.functions import BIASES, Asked, arguments
from verify_attention.kernel import attention
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Posed, Sides


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare output and weights without biases and with zeros for each that the function takes."""
    without = case.under("none").but(bV=None)
    zeros = without.but(bV=np.zeros((len(case.keys), case.d_v)), posed=Posed(zeros=True))
    if arguments(attend(zeros)).keys().isdisjoint(BIASES):
        return
    for name, bound in (("output", rounding.output), ("weights", rounding.weights)):
        yield Sides(
            name,
            getattr(attend(zeros), name),
            getattr(attend(without), name),
            rounding=2 * bound(without) if name == "output" else rounding.promising(2 * bound(without)),
            axis="channel" if name == "output" else "key",
        )


def with_a_leftover(q: Array, k: Array, v: Array, *, bK: Array | None = None, **options: Any) -> dict[str, Array]:
    """Leave the slot of a K bias as it is where there is none, for every other key."""
    leftover = np.linspace(0.5, 1.5, k.shape[-1]) * (np.arange(k.shape[2])[:, None] % 2)
    return attention(q, k + leftover if bK is None else k, v, bK=bK, **options)


def without_a_value_bias(q: Array, k: Array, v: Array, *, bV: Array | None = None, **options: Any) -> dict[str, Array]:
    """Take ones for a V bias that is not there."""
    return attention(q, k, v, bV=np.ones((v.shape[1], v.shape[-1])) if bV is None else bV, **options)


def with_a_bias_switch(q: Array, k: Array, v: Array, *, bQ: Array | None = None, **options: Any) -> dict[str, Array]:
    """Scale the queries only where there is no Q bias."""
    return attention(q if bQ is None else q / q.shape[-1] ** 0.5, k, v, bQ=bQ, **options)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="attention(q, k, v) = attention(q, k, v, bQ=0, bK=0, bV=0)",
    source="the definition of a bias",
    of_others=True,
    where="the function takes some bias",
    vacuous="the function takes no bias",
    sides=sides,
    faults=(
        Fault("without a K bias its slot is left uninitialised", Asked(with_a_leftover)),
        Fault("without a V bias ones are added", Asked(without_a_value_bias)),
        Fault("with a Q bias the scale is applied twice", Asked(with_a_bias_switch)),
    ),
)
