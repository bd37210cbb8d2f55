"""Query heads that share a key-value head answer as if each had its own copy of it.

Query head h uses key-value head h // (H / G), with its keys, values and biases. Posed with every key-value head
repeated for its query heads, so that there are as many of both, the question is the same. With G = 1 all query heads
share one. An order that goes around, h mod G, agrees where G is 1 or H.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import selection, structure
from verify_attention.agreement import agreement
from verify_attention.model import Array, Case, Fault, Implementation, Indices, Invariant, Sides, Trace
from verify_attention.pipeline import CORE, mixed_values

NAME = "grouped-heads-equal-repeated-heads"


def applies(case: Case) -> str | None:
    """Ask for query heads that share a key-value head."""
    alone = "each query head has a key-value head of its own" if len(case.keys) == len(case.q) else None
    return structure.asked(case, NAME) or structure.small(case) or alone


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the case with the one whose key-value heads are repeated, both biases in place."""
    grouped = case.under("qk")
    yield from agreement(grouped, selection.heads(grouped, np.arange(len(case.q))), attend)


def using(case: Case, kv_head: Indices) -> Trace:
    """Let query head h use the key-value head that is given for it."""
    own = selection.heads(case, np.arange(len(case.q)))
    values = None if case.values is None else case.values[kv_head]
    bias = None if case.bV is None else case.bV[kv_head]
    return CORE(own.but(keys=case.keys[kv_head], bK=case.bK[kv_head], values=values, bV=bias))


def tiled(case: Case) -> Trace:
    """Go around the key-value heads: query head h uses h mod G."""
    return using(case, np.arange(len(case.q)) % len(case.keys))


def first_only(case: Case) -> Trace:
    """Use key-value head 0 for the query heads of all groups, where they are grouped."""
    return using(case, case.kv_head * (len(case.keys) == len(case.q)))


def tiled_values(case: Case, weights: Array) -> Array:
    """Go around the values, after scores with the right keys."""
    heads = selection.heads(case, np.arange(len(case.q)))
    order = np.arange(len(case.q)) % len(case.keys)
    values = None if case.values is None else case.values[order]
    return mixed_values(heads.but(values=values, bV=None if case.bV is None else case.bV[order]), weights)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="attention(q, k, v) with G heads = attention(q, repeat(k), repeat(v)) with H heads",
    source="the definition of grouped-query attention; VARIANTS, MQA and GQA",
    applies=applies,
    where="the case has features or expects it, and fewer key-value heads than query heads",
    sides=sides,
    faults=(
        Fault("key-value heads are tiled instead of repeated", tiled),
        Fault("only key-value head 0 is used", first_only),
        Fault("values are tiled instead of repeated", CORE.but(mix=tiled_values)),
    ),
)
