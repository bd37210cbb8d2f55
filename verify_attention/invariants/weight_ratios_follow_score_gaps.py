"""The ratio of two weights is the exponential of their scores' gap.

p_a / p_b = exp(S_a − S_b): the row's sum cancels. Logarithms are compared, each key with the row's largest score, where
both weights are at least 1e-290 by their scores; any other weight must be as small as its score says, below 1e-289.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import formula, rounding
from verify_attention.departures import departs, one_key
from verify_attention.model import (
    CONDITIONS,
    FLOAT64,
    Array,
    Case,
    Fault,
    Flags,
    Implementation,
    Indices,
    Invariant,
    Sides,
    Trace,
)
from verify_attention.pipeline import CORE, softmax


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare log-weight differences with score gaps under each condition, and weights too small for that with 0."""
    smallest = case.precision.smallest
    for condition in CONDITIONS:
        under = case.under(condition)
        trace = attend(under)
        top = trace.scores.argmax(axis=-1)[..., None]
        gaps = trace.scores - np.take_along_axis(trace.scores, top, axis=-1)
        logs = np.log(trace.weights)
        total = np.exp(gaps).sum(axis=-1, keepdims=True) + added(under, trace, top)
        small = gaps < np.log(smallest) + np.log(total)
        yield Sides(
            f"log weights[{condition}], gaps to the largest score",
            logs - np.take_along_axis(logs, top, axis=-1),
            gaps,
            rounding=2 * rounding.log_weights(under) - 4 * case.precision.unit * np.log(smallest),
            counts=~small & _whole(under, gaps - np.log(total)) & (np.arange(gaps.shape[-1]) != top),
        )
        yield Sides(
            f"weights[{condition}] below {smallest}",
            trace.weights,
            np.zeros_like(trace.weights),
            rounding=10 * smallest * np.exp(rounding.log_weights(under)),
            counts=small,
            limit=10 * smallest,
        )


def _whole(case: Case, logs: Array) -> Flags:
    """Say which weights, by their logarithms, keep all digits in a coarse precision, whatever rounding does to them."""
    if case.precision.unit <= FLOAT64.unit:
        return np.ones_like(logs, dtype=bool)
    large: Flags = logs >= np.log(case.precision.smallest) + rounding.log_weights(case)
    return large


def added(case: Case, trace: Trace, top: Indices) -> Array:
    """Return the exponentials of the keys that features add, less the largest score of each row, `[H, Tq, 1]`."""
    total: Array = np.zeros((*case.scores_shape[:2], 1))
    if departs(case):
        for logit, _ in formula.columns(case):
            total = total + np.exp(logit.value[..., None] - np.take_along_axis(trace.scores, top, axis=-1))
    return total


def base_two(scores: Array) -> tuple[Array, Array]:
    """Take powers of two for exponentials."""
    return softmax(scores * np.log(2))


def squared(scores: Array) -> tuple[Array, Array]:
    """Square the weights and normalise them again."""
    weights, lse = softmax(scores)
    weights = weights**2
    return weights / weights.sum(axis=-1, keepdims=True), lse


def uniform(scores: Array) -> tuple[Array, Array]:
    """Give every key the same weight."""
    return np.full_like(scores, 1 / scores.shape[-1]), softmax(scores)[1]


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="log p_a − log p_b = S_a − S_b, for every condition",
    source="article, section 3",
    needs=frozenset({"exponential weights"}),
    applies=one_key,
    where="a row has at least two keys",
    own_limit=True,
    vacuous="no row has a second key to compare",
    sides=sides,
    faults=(
        Fault("powers of two stand for exponentials", CORE.but(softmax=base_two)),
        Fault("weights are squared and normalised again", CORE.but(softmax=squared)),
        Fault("every key has the same weight", CORE.but(softmax=uniform)),
    ),
)
