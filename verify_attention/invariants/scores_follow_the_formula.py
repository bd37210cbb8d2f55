"""Scores are the scaled sum of four terms, each summed exactly.

S = s·(q·k + bQ·k + q·bK + bQ·bK). The right side multiplies and adds without rounding until the end, on a route of its
own; with key shifts δ, k_j + δ_j stands for k_j under the conditions k and qk.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import mistakes, rounding, terms
from verify_attention.model import CONDITIONS, Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, biased_keys, biased_queries, scaled_scores


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the scores under each condition with the four terms."""
    for condition in CONDITIONS:
        under = case.under(condition)
        yield Sides(
            f"scores[{condition}]",
            attend(under).scores,
            terms.scores(case, condition),
            rounding=rounding.scores(under),
        )


def scaled_by_all_heads(case: Case, queries: Array, keys: Array) -> Array:
    """Divide by √(H·d_k)."""
    return scaled_scores(case, queries, keys) / np.sqrt(len(case.q))


def unscaled(case: Case, queries: Array, keys: Array) -> Array:
    """Forget the scale."""
    return scaled_scores(case.but(scale=1.0), queries, keys)


def tiled_heads(case: Case, queries: Array, keys: Array) -> Array:
    """Use key-value head h mod G for query head h."""
    kv_head = np.arange(len(queries)) % len(keys)
    return scaled_scores(case, queries, keys[kv_head])


def half_precision(case: Case, queries: Array, keys: Array) -> Array:
    """Hold the scores in float16."""
    return scaled_scores(case, queries, keys).astype(np.float16).astype(np.float64)


def normalised(vectors: Array) -> Array:
    """Return vectors of length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-30)


def read_as_key_query_value(case: Case) -> Case:
    """Take bQ for the K bias and bK for the Q bias."""
    heads = case.kv_head
    first = np.unique(heads, return_index=True)[1]
    return case.but(bQ=case.bK[heads], bK=case.bQ[first])


def uninitialised_key_bias(case: Case) -> Array:
    """Add whatever lies in the slot of a K bias that is not there."""
    leftover = np.linspace(0.5, 1.5, case.d_k) if not case.bK.any() else 0.0
    return biased_keys(case) + leftover


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="S_ij = s·(q_i·k_j + bQ·k_j + q_i·bK + bQ·bK)",
    source="article, sections 1 and 3",
    check="base scores",
    sides=sides,
    faults=(
        Fault("the scale is 1/√(H·d_k)", CORE.but(scores=scaled_by_all_heads)),
        Fault("the scale is missing", CORE.but(scores=unscaled)),
        Fault("key-value heads are tiled, not repeated", CORE.but(scores=tiled_heads)),
        Fault("scores are held in float16", CORE.but(scores=half_precision)),
        Fault("the Q bias is ignored", CORE.but(queries=mistakes.queries_without_bias)),
        Fault("the K bias is ignored", CORE.but(keys=mistakes.keys_without_bias)),
        Fault("Q and K biases are read in the order K, Q", lambda case: CORE(read_as_key_query_value(case))),
        Fault("without a K bias its slot is left uninitialised", CORE.but(keys=uninitialised_key_bias)),
        Fault(
            "queries and keys are normalised, undeclared",
            CORE.but(
                queries=lambda case: normalised(biased_queries(case)), keys=lambda case: normalised(biased_keys(case))
            ),
        ),
    ),
)
