"""Attention as named stages, each of which can be swapped.

    S_ij = (q_i + bQ)·(k_j + bK)·s      p_ij = exp(S_ij) / Σ_j exp(S_ij)      o_i = Σ_j p_ij (v_j + bV)

Every stage works over any leading axes, and nothing is written to. `CORE` is the float64 core; a fault is a `CORE`
with one stage swapped: `CORE.but(keys=…)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verify_attention.heads import grouped_product
from verify_attention.model import Array, Case, Trace


def biased_queries(case: Case) -> Array:
    """Return q + bQ, `[H, Tq, d_k]`."""
    return case.q + case.bQ[:, None]


def biased_keys(case: Case) -> Array:
    """Return k + bK, with the per-key shifts where the case has them, `[G, Tk, d_k]`."""
    keys = case.keys if case.key_shifts is None else case.keys + case.key_shifts
    return keys + case.bK[:, None]


def scaled_scores(case: Case, queries: Array, keys: Array) -> Array:
    """Return q·k·s for every query and key, `[H, Tq, Tk]`."""
    scores = grouped_product(queries, np.swapaxes(keys, -1, -2))
    scores *= case.scale
    return scores


def softmax(scores: Array) -> tuple[Array, Array]:
    """Return the weights `[…, Tk]` and the LSE `[…]` of every row, after taking off the row's largest score."""
    peak = scores.max(axis=-1, keepdims=True)
    weights = scores - peak
    np.exp(weights, out=weights)
    total = weights.sum(axis=-1, keepdims=True)
    weights /= total
    return weights, (peak + np.log(total))[..., 0]


def mixed_values(case: Case, weights: Array) -> Array:
    """Return Σ_j p_ij (v_j + bV), `[H, Tq, d_v]`; identity values mix into the weights themselves."""
    bias = None if case.bV is None else case.bV[:, None]
    if case.values is not None:
        return grouped_product(weights, case.values if bias is None else case.values + bias)
    if bias is None:
        return weights
    return weights + weights.sum(axis=-1, keepdims=True) * bias[case.kv_head]


@dataclass(frozen=True)
class Pipeline:
    """The stages in their order. Called with a case, it is an `Implementation`."""

    queries: Callable[[Case], Array] = biased_queries
    keys: Callable[[Case], Array] = biased_keys
    scores: Callable[[Case, Array, Array], Array] = scaled_scores
    softmax: Callable[[Array], tuple[Array, Array]] = softmax
    mix: Callable[[Case, Array], Array] = mixed_values
    independent_heads: bool = False  # no stage looks at more than one head with its keys and values

    def __call__(self, case: Case) -> Trace:
        """Run the stages on a case and show everything."""
        scores = self.scores(case, self.queries(case), self.keys(case))
        weights, lse = self.softmax(scores)
        return Trace(self.mix(case, weights), {"scores": scores, "weights": weights, "lse": lse})

    def but(self, **stages: Any) -> Pipeline:
        """Return a pipeline with some stages swapped."""
        return replace(self, **{"independent_heads": False, **stages})


CORE = Pipeline(independent_heads=True)
