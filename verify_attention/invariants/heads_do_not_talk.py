"""A head's answer depends on nothing that belongs to another head.

o_h = softmax(s·(q_h + bQ_h)·(k_g + bK_g))·(v_g + bV_g), with g the key-value head of h: no other head is in it. So
each head alone gives its own part of the whole, other queries in head 0 leave all heads but 0, and other keys and
values in key-value head 0 leave all heads that do not use it. It is asked of the output, of the output with the
identity for values, which is the weights, so that equal values hide nothing, and of the weights that are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import numpy as np

from verify_attention import formula, mistakes, rounding, selection, structure
from verify_attention.agreement import BOUNDS, agreement
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, softmax

Part: TypeAlias = Literal["output", "weights"]


def applies(case: Case) -> str | None:
    """Ask for two heads."""
    return "the case has one head" if len(case.q) < 2 else None


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the whole with each head alone, and the other heads before and after a change in head 0."""
    whole = _Posed(case.under("qk"))
    shown = structure.showing_weights(whole.case)
    yield from _compared(whole, attend, "output")
    if shown is not whole.case:
        yield from _compared(_Posed(shown), attend, "output", " with identity values")
    yield from _compared(whole, attend, "weights")


class _Posed:
    """A case, each of its heads alone, and others that agree with it in some heads."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.each = [selection.heads(case, np.array([head])) for head in range(len(case.q))]
        self.others = {", other queries in head 0": (other_queries(case), np.arange(len(case.q)) > 0)}
        if len(case.keys) > 1:
            self.others[", other keys and values in key-value head 0"] = other_keys(case), case.kv_head > 0


def _compared(posed: _Posed, attend: Implementation, part: Part, of: str = "") -> Iterator[Sides]:
    case, each = posed.case, posed.each
    answer, bound = _formula(case, part), BOUNDS[part]
    error = bound(case) + np.concatenate([bound(alone) for alone in each])
    yield Sides(
        f"{part}{of}, each head alone",
        getattr(attend(case), part),
        np.concatenate([getattr(attend(alone), part) for alone in each]),
        rounding=rounding.promising(error) if part == "weights" else error,
        axis="channel" if part == "output" else "key",
        moves=answer - np.roll(answer, 1, axis=0),
    )
    for words, (other, untouched) in posed.others.items():
        moved = np.abs(_formula(other, part) - answer)[~untouched].max(axis=0)
        moves = np.where(untouched[:, None, None], moved, 0.0)
        counts = untouched[:, None, None]
        yield from agreement(case, other, attend, of=of + words, parts=(part,), counts=counts, moves=moves)


def _formula(case: Case, part: Part) -> Array:
    return formula.output(case) if part == "output" else formula.shares(case)


def other_queries(case: Case) -> Case:
    """Return the case with other queries and another Q bias in head 0: no number of few decimals stays as it is."""
    return case.but(q=_first(case.q, 1.3 - 2 * case.q), bQ=_first(case.bQ, case.bQ + 0.5))


def other_keys(case: Case) -> Case:
    """Return the case with other keys, values and biases in key-value head 0."""
    values = None if case.values is None else _first(case.values, case.values + 1)
    bias = None if case.bV is None else _first(case.bV, 0.8 - 2 * case.bV)
    keys = _first(case.keys, 1.3 - 2 * case.keys)
    return case.but(keys=keys, bK=_first(case.bK, case.bK + 0.25), values=values, bV=bias)


def _first(array: Array, other: Array) -> Array:
    return np.concatenate([other[:1], array[1:]])


def averaged(scores: Array) -> tuple[Array, Array]:
    """Give every head the mean of all heads' weights."""
    weights, lse = softmax(scores)
    return np.broadcast_to(weights.mean(axis=0), weights.shape).copy(), lse


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="attention(all heads)_h = attention(head h alone)",
    source="the definition of multi-head attention",
    applies=applies,
    where="the case has at least two heads",
    on_request=True,
    whole=True,
    vacuous="all heads are equal, and the change in head 0 changes nothing there",
    sides=sides,
    faults=(
        Fault("the Q bias of head 0 is used for all heads", CORE.but(queries=mistakes.query_bias_of_the_first_head)),
        Fault("the weights of all heads are averaged", CORE.but(softmax=averaged)),
        Fault("heads are merged without a transpose", CORE.but(mix=mistakes.merged_without_transpose)),
        Fault("one maximum serves all heads", CORE.but(softmax=mistakes.one_maximum_for_all)),
        Fault("the mask of head 0 is used for all heads", mistakes.mask_of_the_first_head),
    ),
)
