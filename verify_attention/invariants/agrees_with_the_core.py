"""What an implementation shows is what the float64 core shows, under every condition.

It is the one claim that compares with a reference: whatever no equation says, it says. What an implementation does
not show is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import mistakes, rounding
from verify_attention.model import CONDITIONS, Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE

BOUNDS = {"scores": rounding.scores, "weights": rounding.weights, "output": rounding.output, "lse": rounding.lse}


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare output, and scores, weights and LSE where they are shown."""
    for condition in CONDITIONS:
        under = case.under(condition)
        found, core = attend(under), CORE(under)
        parts = {
            name: (found.inside[name], core.inside[name])
            for name in ("scores", "weights", "lse")
            if name in found.inside and name in core.inside
        }
        for name, (left, right) in {"output": (found.output, core.output), **parts}.items():
            bound = rounding.beside_float64(under, BOUNDS[name](under))
            yield Sides(
                f"{name}[{condition}]",
                left,
                right,
                rounding=rounding.promising(bound) if name == "weights" else bound,
                axis="channel" if name == "output" else "key",
            )


def in_half_precision(case: Case, weights: Array) -> Array:
    """Keep the weights in float16 before they mix the values."""
    return CORE.mix(case, weights.astype(np.float16).astype(np.float64))


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="output, scores, weights and LSE = those of the float64 core",
    source="a second implementation of the same definition",
    of_others=True,
    sides=sides,
    faults=(
        Fault("weights mix the values in float16", CORE.but(mix=in_half_precision)),
        Fault("the Q bias of head 0 is used for all heads", CORE.but(queries=mistakes.query_bias_of_the_first_head)),
        Fault("the scale is always 1/√d_k", CORE.but(scores=mistakes.scale_of_the_width)),
        Fault("the LSE is in base two", CORE.but(softmax=mistakes.lse_in_base_two)),
    ),
)
