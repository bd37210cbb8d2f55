"""Keys may come in any order with their values: the output stays, and the weights go with their keys.

A row's sum of exponentials and its mixture of values are sums over keys, and a sum has no order. What depends on a
key's place is given per key here: causality and windows as a mask, ALiBi as a score bias, positions of a rotation one
by one; they are put in the new order too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import departures, mistakes, rounding, selection
from verify_attention.heads import grouped_product
from verify_attention.model import Array, Case, Fault, Implementation, Indices, Invariant, Sides, Trace
from verify_attention.pipeline import CORE, biased_keys, changed_scores


def applies(case: Case) -> str | None:
    """Ask for two keys, and for scores among which none is chosen by its place."""
    if case.keys.shape[1] < 2:
        return "there is one key, which has one order"
    if departures.kept(case) is not None:
        sure = np.isfinite(rounding.weights(case.under("qk"))).all()
        return None if sure else "which keys keep a weight is decided between scores that are equal, or nearly so"
    return None


def order(count: int) -> Indices:
    """Return 1, 3, 5, … and then the even places, the last first: two neighbours are rarely neighbours again."""
    return np.concatenate([np.arange(1, count, 2), np.arange(0, count, 2)[::-1]])


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the case with that of the keys in another order, both biases in place."""
    plain = case.under("qk")
    chosen = order(case.keys.shape[1])
    permuted = selection.keys(plain, chosen)
    yield Sides(
        "output with the keys in another order",
        attend(permuted).output,
        attend(plain).output,
        rounding=rounding.output(permuted) + rounding.output(plain),
        axis="channel",
    )
    yield Sides(
        "weights with the keys in another order, put back",
        attend(permuted).weights[..., np.argsort(chosen)],
        attend(plain).weights,
        rounding=rounding.promising(rounding.weights(permuted) + rounding.weights(plain)),
    )
    if departures.has_lse(case):
        yield Sides(
            "LSE with the keys in another order",
            attend(permuted).lse,
            attend(plain).lse,
            rounding=rounding.lse(permuted) + rounding.lse(plain),
        )


def second_half_biased(case: Case) -> Array:
    """Add the K bias to the second half of the keys only."""
    keys, half = biased_keys(case).copy(), case.keys.shape[1] // 2
    keys[:, :half] = mistakes.keys_without_bias(case)[:, :half]
    return keys


def last_blocks_dropped(case: Case, scores: Array) -> Array:
    """Look at whole blocks of four keys only, where there is one."""
    changed = changed_scores(case, scores).copy()
    whole = scores.shape[-1] // 4 * 4
    if whole:
        changed[..., whole:] = -np.inf
    return changed


def undeclared_distance(case: Case, scores: Array) -> Array:
    """Let scores fall with the distance from query to key, which nobody asked for."""
    return changed_scores(case, scores - 0.01 * np.abs(case.aligned[:, None] - np.arange(scores.shape[-1])))


def not_rescaled(case: Case) -> Trace:
    """Go through the keys one by one, and forget to rescale the output where the maximum grows."""
    trace = CORE(case)
    if not departures.has_lse(case):
        return trace
    values = np.eye(case.d_v)[None] if case.values is None else case.values
    values = np.broadcast_to(values, (len(case.keys), *values.shape[1:]))
    values = values if case.bV is None else values + case.bV[:, None]
    highest = np.maximum.accumulate(trace.scores, axis=-1)
    with np.errstate(invalid="ignore"):
        powers = np.where(np.isfinite(trace.scores), np.exp(trace.scores - highest), 0.0)
    return Trace(grouped_product(powers * np.exp(highest[..., -1:] - trace.lse[..., None]), values), trace.inside)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="output(K[π], V[π]) = output(K, V), and weights(K[π])_iπ(j) = weights(K)_ij",
    source="the definition of attention: sums over keys",
    applies=applies,
    where="the case has two keys, and no tie decides which of them keep a weight",
    on_request=True,
    whole=True,
    sides=sides,
    faults=(
        Fault("the K bias reaches only the second half of the keys", CORE.but(keys=second_half_biased)),
        Fault("keys behind the last whole block of four are dropped", CORE.but(change=last_blocks_dropped)),
        Fault("scores fall with a distance that nobody declared", CORE.but(change=undeclared_distance)),
        Fault("a running output is not rescaled when the maximum grows", not_rescaled),
    ),
)
