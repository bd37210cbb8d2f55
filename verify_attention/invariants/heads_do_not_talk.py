"""A head's answer depends on nothing that belongs to another head.

o_h = softmax(s·(q_h + bQ_h)·(k_g + bK_g))·(v_g + bV_g), with g the key-value head of h: no other head is in it. So
each head alone gives its own part of the whole, other queries in head 0 leave all heads but 0, and other keys and
values in key-value head 0 leave all heads that do not use it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import mistakes, rounding, selection, structure
from verify_attention.agreement import agreement
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides, Trace
from verify_attention.pipeline import CORE, softmax

NAME = "heads-do-not-talk"


def applies(case: Case) -> str | None:
    """Ask for two heads."""
    return (
        structure.asked(case, NAME) or structure.small(case) or ("the case has one head" if len(case.q) < 2 else None)
    )


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the whole with each head alone, and the other heads before and after a change in head 0."""
    whole = case.under("qk")
    each = [selection.heads(whole, np.array([head])) for head in range(len(case.q))]
    yield Sides(
        "output, each head alone",
        attend(whole).output,
        np.concatenate([attend(alone).output for alone in each]),
        rounding=rounding.output(whole) + np.concatenate([rounding.output(alone) for alone in each]),
        axis="channel",
    )
    others = (np.arange(len(case.q)) > 0)[:, None, None]
    yield from agreement(
        whole, other_queries(whole), attend, of=", other queries in head 0", parts=("output",), counts=others
    )
    if len(case.keys) > 1:
        yield from agreement(
            whole,
            other_keys(whole),
            attend,
            of=", other keys and values in key-value head 0",
            parts=("output",),
            counts=(case.kv_head > 0)[:, None, None],
        )


def other_queries(case: Case) -> Case:
    """Return the case with other queries and another Q bias in head 0."""
    return case.but(q=_first(case.q, 1 - case.q), bQ=_first(case.bQ, case.bQ + 0.5))


def other_keys(case: Case) -> Case:
    """Return the case with other keys, values and biases in key-value head 0."""
    values = None if case.values is None else _first(case.values, case.values + 1)
    bias = None if case.bV is None else _first(case.bV, 0.5 - case.bV)
    return case.but(keys=_first(case.keys, 1 - case.keys), bK=_first(case.bK, case.bK + 0.25), values=values, bV=bias)


def _first(array: Array, other: Array) -> Array:
    return np.concatenate([other[:1], array[1:]])


def averaged(scores: Array) -> tuple[Array, Array]:
    """Give every head the mean of all heads' weights."""
    weights, lse = softmax(scores)
    return np.broadcast_to(weights.mean(axis=0), weights.shape).copy(), lse


def mask_of_the_first_head(case: Case) -> Trace:
    """Hide in all heads what the mask hides in head 0."""
    mask = case.features.get("mask")
    if mask is None:
        return CORE(case)
    return CORE(case.but(features={**case.features, "mask": np.broadcast_to(mask[:1], mask.shape)}))


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="attention(all heads)_h = attention(head h alone)",
    source="the definition of multi-head attention",
    applies=applies,
    where="the case has features or expects it, and at least two heads",
    sides=sides,
    faults=(
        Fault("the Q bias of head 0 is used for all heads", CORE.but(queries=mistakes.query_bias_of_the_first_head)),
        Fault("the weights of all heads are averaged", CORE.but(softmax=averaged)),
        Fault("heads are merged without a transpose", CORE.but(mix=mistakes.merged_without_transpose)),
        Fault("one maximum is taken off all heads", CORE.but(softmax=mistakes.one_maximum_for_all)),
        Fault("the mask of head 0 is used for all heads", mask_of_the_first_head),
    ),
)
