"""A learned key, with a value of its own or zeros, is appended behind the biases (bias_k, bias_v).

It gets no K bias: its score s·q_i·k* stays where the others move. Its share is hidden from the weights, which sum to
less than one; its value takes part in the output. A V bias, which it does not get either, is scaled by the others'
sum. It is appended after norm and rotation; temperature, cap, score bias and mask pass it by.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from verify_attention.model import AddsColumn, Array, Case, Column, Estimate, Feature, Shape, Vectors


def complete(parameters: Any, case: Case) -> Any:
    """Fill in a value of zeros."""
    return {"value": np.zeros((len(case.keys), case.d_v)), **parameters}


def column(case: Case, queries: Array) -> Column:
    """Return the appended key's score in each row, and its value."""
    own = case.features["appended_key"]
    key = own["key"][case.kv_head][..., None]
    return Column(case.scale * (queries @ key)[..., 0], own["value"][case.kv_head])


def formula(case: Case, queries: Vectors) -> tuple[Estimate, Array]:
    """Multiply channel by channel, and sum; repeat the value for the query heads of a group."""
    heads = len(case.q) // len(case.keys)
    key = case.features["appended_key"]["key"][case.kv_head][:, None]
    value = case.scale * (queries.value * key)[..., ::-1].sum(axis=-1)
    size, spread = ((array * np.abs(key)).sum(axis=-1) for array in (queries.size, queries.error))
    score = Estimate(value, case.scale * (case.precision.accumulated(case.d_k + 16) * size + spread))
    return score, np.repeat(case.features["appended_key"]["value"], heads, axis=0)


FEATURE = Feature(
    __name__,
    __doc__,
    act=AddsColumn(column, formula),
    order=83,
    why="the appended key gets no K bias: its score stays where the others move",
    takes=frozenset({"rows sum to one", "shift-invariant softmax"}),
    arrays={("key",): Shape(("G", "d_k"), (1, 2)), ("value",): Shape(("G", "d_v"), (1, 2))},
    complete=complete,
)
