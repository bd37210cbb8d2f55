"""Adding a different number to each row of scores changes no weight.

The rows are shifted by one more channel: q_i gets r_i there and every key gets 1, at the same scale, so that every
score of row i grows by s·r_i. softmax(x + c) = softmax(x).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import departures, mistakes, rounding, selection
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE


def applies(case: Case) -> str | None:
    """Ask for two keys, and for a scale by which a shift can be divided."""
    if any(departures.on_vectors(case)):
        return "a feature changes the vectors, and with them the channel that would shift the rows"
    if not np.isfinite(2 / case.scale):
        return "the scale is too small to shift a row by 2"
    return departures.one_key(case)


def shifted(case: Case) -> Case:
    """Widen a case by a channel that adds a number of its own, between 1 and 2 or −2 and −1, to each row's scores."""
    rows = (case.whole or case).q.shape[1]
    place = np.arange(case.first_row, case.first_row + case.q.shape[1]) + 1
    numbers = np.where(place % 2, 1.0, -1.0) * (1.0 + place / 2.0 ** np.ceil(np.log2(rows + 1)))
    return case.but(
        q=_widened(case.q, numbers / case.scale),
        keys=_widened(case.keys, 1.0),
        bQ=_widened(case.bQ, 0.0),
        bK=_widened(case.bK, 0.0),
        features=selection.widened(case),
    )


def _widened(vectors: Array, channel: Array | float) -> Array:
    last = np.broadcast_to(channel, vectors.shape[:-1])[..., None]
    return np.concatenate([vectors, last], axis=-1)


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the weights under shifted rows of scores with those of the case as it is, both biases in place."""
    plain = case.under("qk")
    moved = shifted(plain)
    yield Sides(
        "weights of shifted rows − weights",
        attend(moved).weights,
        attend(plain).weights,
        rounding=rounding.promising(rounding.weights(moved) + rounding.weights(plain)),
    )


def sigmoid(scores: Array) -> tuple[Array, Array]:
    """Normalise sigmoids of the scores."""
    powers = 1 / (1 + np.exp(-scores))
    total = powers.sum(axis=-1, keepdims=True)
    return powers / total, np.log(total)[..., 0]


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="softmax(S_i· + c_i) = softmax(S_i·)",
    source="article, sections 2 and 4",
    needs=frozenset({"bilinear scores", "shift-invariant softmax"}),
    applies=applies,
    where="a row has at least two keys, no feature changes the vectors, and the scale allows a shift of 2",
    sides=sides,
    faults=(
        Fault("an undeclared key of zeros takes a share", CORE.but(softmax=mistakes.undeclared_zero_key)),
        Fault("normalised sigmoids stand for softmax", CORE.but(softmax=sigmoid)),
    ),
)
