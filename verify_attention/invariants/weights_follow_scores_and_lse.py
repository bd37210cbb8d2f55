"""A weight's logarithm is its score less the row's LSE.

p_ij = exp(S_ij) / Σ_j exp(S_ij) = exp(S_ij − LSE_i), under every condition. It is read at the key of the row's largest
score, as LSE_i = S_ia − log p_ia; the other keys follow by the ratios of their weights. An LSE that is off by a
constant moves rightly with a K bias, but is not this.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import formula, mistakes, rounding
from verify_attention.departures import departs
from verify_attention.model import CONDITIONS, Array, Case, Fault, Flags, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare each row's LSE with what its largest score and that key's weight make of it."""
    for condition in CONDITIONS:
        under = case.under(condition)
        trace = attend(under)
        top = trace.scores.argmax(axis=-1)[..., None]
        score, weight = (np.take_along_axis(array, top, axis=-1)[..., 0] for array in (trace.scores, trace.weights))
        bound = (rounding.log_weights(under) + rounding.scores(under))[..., 0] + rounding.lse(under)
        yield Sides(f"lse[{condition}]", trace.lse, score - np.log(weight), rounding=bound, counts=_large(under, score))


def _large(case: Case, score: Array) -> Flags | None:
    """Return the rows whose largest weight has a logarithm: a key that a feature adds may leave too little."""
    return score - formula.lse(case) > np.log(case.precision.smallest) if departs(case) else None


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="log p_ij = S_ij − LSE_i, for every condition",
    source="the definition of softmax; article, section 1",
    needs=frozenset({"exponential weights"}),
    sides=sides,
    faults=(Fault("the LSE is the logarithm of the mean", CORE.but(softmax=mistakes.lse_of_the_mean)),),
)
