"""A query that is attended by itself gives its own row of the whole.

A row knows its query, all keys and all values, and no other query: softmax runs over keys, and each row has a maximum
and a sum of its own. So there are as many output rows as queries, however many keys there are. Positions that
follow from a query's place go with it: causality and windows as a mask, ALiBi as a score bias.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import departures, mistakes, rounding, selection, structure
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, biased_queries, changed_scores


def applies(case: Case) -> str | None:
    """Ask for two queries."""
    if case.q.shape[1] < 2:
        return "there is one query, which is alone in any event"
    return None


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare rows by themselves with the rows of the whole, both biases in place."""
    plain = case.under("qk")
    chosen = structure.some_rows(case.q.shape[1])
    alone = [selection.rows(plain, chosen[index : index + 1]) for index in range(len(chosen))]
    counts = np.zeros((1, case.q.shape[1], 1), dtype=bool)
    counts[:, chosen] = True

    def placed(rows: list[Array], whole: Array) -> Array:
        """Put rows into a copy of the whole."""
        placed = np.broadcast_to(whole, (len(case.q), case.q.shape[1], *whole.shape[2:])).copy()
        placed[:, chosen] = np.concatenate(rows, axis=1)
        return placed

    bound = rounding.output(plain)
    yield Sides(
        "output of each query by itself",
        placed([attend(each).output for each in alone], attend(plain).output),
        attend(plain).output,
        rounding=bound + placed([rounding.output(each) for each in alone], bound),
        axis="channel",
        counts=counts,
    )
    bound = rounding.weights(plain)
    yield Sides(
        "weights of each query by itself",
        placed([attend(each).weights for each in alone], attend(plain).weights),
        attend(plain).weights,
        rounding=rounding.promising(bound + placed([rounding.weights(each) for each in alone], bound)),
        counts=counts,
    )
    if departures.has_lse(case):
        bound = rounding.lse(plain)
        yield Sides(
            "LSE of each query by itself",
            placed([attend(each).lse for each in alone], attend(plain).lse),
            attend(plain).lse,
            rounding=bound + placed([rounding.lse(each) for each in alone], bound),
            counts=counts[..., 0],
        )


def centred_queries(case: Case) -> Array:
    """Take the mean query off all."""
    queries = biased_queries(case)
    return queries - queries.mean(axis=1, keepdims=True)


def causal_with_many(case: Case, scores: Array) -> Array:
    """Hide the future where there is more than one query, though nobody asked for it; a row keeps its last key."""
    changed = changed_scores(case, scores)
    if case.q.shape[1] == 1:
        return changed
    seen = (np.arange(scores.shape[-1]) <= np.arange(scores.shape[-2])[:, None]) & np.isfinite(changed)
    return np.where(seen | ~seen.any(axis=-1, keepdims=True), changed, -np.inf)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="output(q_i) = output(Q)_i",
    source="the definition of attention: a row is made of its own query",
    applies=applies,
    where="the case has at least two queries",
    on_request=True,
    whole=True,
    sides=sides,
    faults=(
        Fault("softmax runs over the query axis", CORE.but(softmax=mistakes.over_queries)),
        Fault("one maximum serves all rows of a head", CORE.but(softmax=mistakes.one_maximum_for_a_head)),
        Fault("the mean query is taken off all queries", CORE.but(queries=centred_queries)),
        Fault("the future is hidden where there is more than one query", CORE.but(change=causal_with_many)),
    ),
)
