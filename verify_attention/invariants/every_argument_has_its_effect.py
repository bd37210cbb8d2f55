"""Every argument that is given changes the output by as much as it should, and every bias is read.

What an option does is the difference of the output with it and without it, and the formula predicts that. A K bias has
no effect on the output of plain attention, which is what this program is about; but code that takes one reads it: not a
number in a bias cannot leave a row as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from verify_attention import formula, rounding
from verify_attention.departures import visible
from verify_attention.functions import BIASES, OPTIONS, Asked, arguments
from verify_attention.kernel import attention
from verify_attention.model import Array, Case, CrashedError, Fault, Flags, Implementation, Invariant, Sides
from verify_attention.structure import without


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare what each option does with what the formula says, and put what is no number into the biases."""
    both = case.under("qk")
    given = arguments(attend(both)).keys()
    fewer = {name: without(both, name) for name in both.features}
    fewer["scale"] = both.but(scale=case.d_k**-0.5)
    fewer |= {"bQ": case.under("k"), "bK": case.under("q"), "bV": both.but(bV=None)}
    for name, other in fewer.items():
        seen = visible(other)
        if seen is not None and not seen.any(axis=-1).all():
            continue  # the place of a window goes with causality from the upper left
        yield Sides(
            f"effect of {name} on the output",
            attend(both).output - attend(other).output,
            (effect := formula.output(both) - formula.output(other)),
            rounding=rounding.beside_float64(case, rounding.output(both) + rounding.output(other)),
            axis="channel",
            moves=effect,
        )
    output = attend(both).output
    for name in sorted(BIASES.keys() & given):
        try:
            poisoned = attend(both.but(**{name: np.full_like(getattr(both, name), np.nan)})).output
        except CrashedError:
            continue  # whoever refuses it has read it
        read = (~(poisoned == output)).astype(np.float64)  # some code makes a 0 of a row that is not a number
        yield Sides(
            f"output that a {name} of NaN changes",
            read,
            np.ones(read.shape),
            rounding=0.0,
            axis="channel",
            counts=output != 0,
        )


def ignoring(name: str, also: str | None = None) -> Asked:
    """Return a function that ignores an option, or ignores it beside another."""

    def deaf(q: Array, k: Array, v: Array, **options: Any) -> Array:
        if also is None or options.get(also) is not None:
            options[name] = None
        return attention(q, k, v, **options)["output"]

    return Asked(deaf)


def half_of_the_mask(q: Array, k: Array, v: Array, *, mask: Flags | None = None, **options: Any) -> Array:
    """Read the mask of the first half of the keys only."""
    if mask is not None:
        mask = mask.copy()
        mask[..., mask.shape[-1] // 2 :] = True
    return attention(q, k, v, mask=mask, **options)["output"]


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="output(case) − output(case without x) = what the formula says, for each x; output(bias of NaN) ≠ output",
    source="the definition of each option",
    of_others=True,
    vacuous="no argument has an effect on the output here",
    sides=sides,
    faults=(
        *(Fault(f"{name} is ignored", ignoring(name)) for name in sorted(OPTIONS)),
        Fault("the mask is ignored beside causality", ignoring("mask", "causal")),
        Fault("the score bias is ignored beside a mask", ignoring("score_bias", "mask")),
        Fault("the V bias is dropped when a mask is given", ignoring("bV", "mask")),
        Fault("the cap is ignored beside causality", ignoring("softcap", "causal")),
        Fault("the mask of the second half of the keys is ignored", Asked(half_of_the_mask)),
    ),
)
