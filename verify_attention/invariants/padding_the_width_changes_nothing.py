"""Channels of zeros, appended to queries and keys at the same scale, change nothing.

Σ_t q_t·k_t does not grow by 0·0. The scale is given with the case, and so is the number of channels that turn:
neither follows from the width. A norm of kind l2 divides by the same length; rms and layer divide by the width, and
are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import departures, mistakes, selection, structure
from verify_attention.agreement import agreement
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, OnVectors, Sides, Trace
from verify_attention.pipeline import CORE

MORE = 3  # channels: an odd number changes the parity of the width too


def applies(case: Case) -> str | None:
    """Ask for vectors on which nothing acts that divides by the width."""
    if any(act.depends_on_width(case) for act in departures.acts(case, OnVectors)):
        return "what acts on the vectors depends on the width"
    return None


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the case with a wider one, both biases in place."""
    given = case.under("qk")
    yield from agreement(given, padded(given), attend, moves=structure.spread(given))


def padded(case: Case) -> Case:
    """Return the case with more channels, all zero, at the same scale."""
    arrays = {name: _padded(getattr(case, name)) for name in ("q", "keys", "bQ", "bK")}
    return case.but(**arrays, features=selection.widened(case, MORE))


def _padded(vectors: Array) -> Array:
    return np.concatenate([vectors, np.zeros((*vectors.shape[:-1], MORE))], axis=-1)


def _with(case: Case, name: str, **changes: object) -> Trace:
    """Run the core on the case with other parameters of a feature that it has."""
    if name not in case.features:
        return CORE(case)
    return CORE(case.but(features={**case.features, name: {**case.features[name], **changes}}))


def whole_width(case: Case) -> Trace:
    """Turn all channels."""
    return _with(case, "rope", rotary_dims=case.d_k - case.d_k % 2)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="attention(q ⊕ 0, k ⊕ 0) at the scale s = attention(q, k) at the scale s",
    source="the definition of each feature",
    applies=applies,
    where="nothing that acts on the vectors depends on the width, as a norm of kind rms or layer does",
    on_request=True,
    whole=True,
    vacuous="the products of each row are all equal, whatever the width",
    sides=sides,
    faults=(
        Fault("the scale is taken from the width", CORE.but(scores=mistakes.scale_of_the_width)),
        Fault("all channels turn instead of the first rotary_dims", whole_width),
        Fault("frequencies are taken from the width instead of rotary_dims", mistakes.frequencies_of_the_width),
        Fault("a norm of kind l2 divides by the width", lambda case: _with(case, "qk_norm", kind="rms")),
    ),
)
