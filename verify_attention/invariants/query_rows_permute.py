"""Queries in another order give the same output rows in that order.

Row i of scores, weights and output is made of query i, and of nothing that belongs to another row. What depends on a
query's place is given per row here: causality and windows as a mask, ALiBi as a score bias, positions of a rotation
one by one; they go with their rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import departures, mistakes, rounding, selection
from verify_attention.model import Array, Case, Fault, Implementation, Indices, Invariant, Sides
from verify_attention.pipeline import CORE, biased_queries, changed_scores, uncovered


def applies(case: Case) -> str | None:
    """Ask for two queries."""
    if case.q.shape[1] < 2:
        return "there is one query, which has one order"
    return None


def order(count: int) -> Indices:
    """Return 1, 3, 5, … and then the even places: no shift of the rows, which would keep neighbours together."""
    return np.concatenate([np.arange(1, count, 2), np.arange(0, count, 2)])


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the case with that of the queries in another order, put back; both biases are in place."""
    plain = case.under("qk")
    chosen = order(case.q.shape[1])
    permuted, back = selection.rows(plain, chosen), np.argsort(chosen)
    yield Sides(
        "output with the queries in another order, put back",
        attend(permuted).output[:, back],
        attend(plain).output,
        rounding=rounding.output(permuted)[:, back] + rounding.output(plain),
        axis="channel",
    )
    yield Sides(
        "weights with the queries in another order, put back",
        attend(permuted).weights[:, back],
        attend(plain).weights,
        rounding=rounding.promising(rounding.weights(permuted)[:, back] + rounding.weights(plain)),
    )
    if departures.has_lse(case):
        yield Sides(
            "LSE with the queries in another order, put back",
            attend(permuted).lse[:, back],
            attend(plain).lse,
            rounding=rounding.lse(permuted)[:, back] + rounding.lse(plain),
        )


def maximum_carried_over(scores: Array) -> tuple[Array, Array]:
    """Keep the running maximum of a row when the next begins."""
    peak = np.maximum.accumulate(scores.max(axis=-1, keepdims=True), axis=-2)
    powers = np.exp(scores - peak)
    total = powers.sum(axis=-1, keepdims=True)
    return powers / total, (peak + np.log(total))[..., 0]


def mask_of_the_row_before(case: Case, scores: Array) -> Array:
    """Hide from each row what the mask hides from the row before it."""
    scores, seen = uncovered(case, scores), departures.visible(case)
    return scores if seen is None else np.where(np.roll(seen, 1, axis=1), scores, departures.hidden_score(case))


def bias_for_one_row(case: Case) -> Array:
    """Add the Q bias to the first query only."""
    queries = mistakes.queries_without_bias(case).copy()
    queries[:, :1] = biased_queries(case)[:, :1]
    return queries


def undeclared_causality(case: Case, scores: Array) -> Array:
    """Hide the future from each row by its place, though nobody asked for it; each row keeps the first key."""
    future = np.arange(scores.shape[-1]) > np.arange(scores.shape[-2])[:, None]
    changed = changed_scores(case, scores)
    seen = ~future & np.isfinite(changed)
    return np.where(seen | ~seen.any(axis=-1, keepdims=True), changed, -np.inf)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="output(Q[π])_π(i) = output(Q)_i",
    source="the definition of attention: a row is made of its own query",
    applies=applies,
    where="the case has at least two queries",
    on_request=True,
    whole=True,
    sides=sides,
    faults=(
        Fault("the running maximum of a row is kept for the next", CORE.but(softmax=maximum_carried_over)),
        Fault("each row gets the mask of the row before it", CORE.but(change=mask_of_the_row_before)),
        Fault("the Q bias reaches the first query only", CORE.but(queries=bias_for_one_row)),
        Fault("the future is hidden though nobody declared it", CORE.but(change=undeclared_causality)),
    ),
)
