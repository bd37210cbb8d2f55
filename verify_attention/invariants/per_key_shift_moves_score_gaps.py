"""A different vector for each key is not a common shift: it moves gaps, and weights.

q_i·(k_j + δ_j) = q_i·k_j + q_i·δ_j, and the last term depends on the key. This is the contrast to the common K bias:
some weight must move by at least 1e-6.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import rounding, terms
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, biased_keys


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare what the shifts add to each gap with s·q·(δ_a − δ_0), and look for a weight that moves."""
    with_shifts, without = case.under("k"), case.under("none")
    shifted, base = attend(with_shifts), attend(without)
    weights = shifted.weights, base.weights  # what does not show them cannot show the contrast
    gaps = terms.gaps(case, terms.key_term(case, "k"))
    bound = rounding.scores(with_shifts) + rounding.scores(without)
    yield Sides(
        "gaps to the first visible key of scores[k] − scores[none]",
        terms.gaps(case, shifted.scores - base.scores),
        gaps,
        rounding=2 * bound,
        moves=gaps,
    )
    yield Sides(
        "weights[k] − weights[none]",
        *weights,
        rounding=rounding.promising(rounding.weights(with_shifts) + rounding.weights(without)),
        contrast=True,
    )


def mean_shift(case: Case) -> Array:
    """Give every key the mean of the shifts."""
    if case.key_shifts is None:
        return biased_keys(case)
    mean = np.broadcast_to(case.key_shifts.mean(axis=1, keepdims=True), case.key_shifts.shape)
    return biased_keys(case.but(features={**case.features, "key_shifts": mean}))


def no_shift(case: Case) -> Array:
    """Ignore the shifts."""
    return biased_keys(case.but(features={name: own for name, own in case.features.items() if name != "key_shifts"}))


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="(S_ia − S_ib)(k) − (S_ia − S_ib)(none) = s·q_i·(δ_a − δ_b), and max |weights(k) − weights(none)| ≥ 1e-6",
    source="article, sections 4 and 5",
    check="the per-key contrast",
    applies=lambda case: None if case.key_shifts is not None else "the case has no key_shifts",
    where="the case has key_shifts",
    vacuous="q_i·δ_j is the same for every key of each row",
    sides=sides,
    faults=(
        Fault("every key gets the mean shift", CORE.but(keys=mean_shift)),
        Fault("the key shifts are ignored", CORE.but(keys=no_shift)),
    ),
)
