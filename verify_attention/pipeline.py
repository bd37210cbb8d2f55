"""Attention as named stages, each of which can be swapped.

    S_ij = (q_i + bQ)·(k_j + bK)·s      p_ij = exp(S_ij) / Σ_j exp(S_ij)      o_i = Σ_j p_ij (v_j + bV)

Features act between them: on the vectors before the biases or after, on the scaled scores, on which of them are hidden,
and on how a row is normalised. Every stage works over any leading axes, and nothing is written to. `CORE` is the
float64 core; a fault is a `CORE` with one stage swapped: `CORE.but(keys=…)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verify_attention import departures
from verify_attention.heads import grouped_product
from verify_attention.model import AddsColumn, Array, Case, Column, Normalises, OnScores, Side, Trace


def biased_queries(case: Case) -> Array:
    """Return q + bQ, `[H, Tq, d_k]`, with what features do to queries before and after."""
    return _vectors(case, "queries", case.q, case.bQ)


def biased_keys(case: Case) -> Array:
    """Return k + bK, `[G, Tk, d_k]`, with the per-key shifts, and with what features do to keys before and after."""
    return _vectors(case, "keys", case.keys, case.bK)


def _vectors(case: Case, side: Side, vectors: Array, bias: Array) -> Array:
    before, after = departures.on_vectors(case) if departures.departs(case) else ([], [])
    for act in before:
        vectors = act.core(case, side, vectors)
    if side == "keys" and case.key_shifts is not None:
        vectors = vectors + case.key_shifts
    vectors = vectors + bias[:, None]
    for act in after:
        vectors = act.core(case, side, vectors)
    return vectors


def scaled_scores(case: Case, queries: Array, keys: Array) -> Array:
    """Return q·k·s for every query and key, `[H, Tq, Tk]`."""
    scores = grouped_product(queries, np.swapaxes(keys, -1, -2))
    scores *= case.scale
    return scores


def changed_scores(case: Case, scores: Array) -> Array:
    """Return the scores as they enter the softmax, `[H, Tq, Tk]`: −∞, or what fills it, where a key is hidden."""
    scores, seen = uncovered(case, scores), departures.visible(case)
    return scores if seen is None else np.where(seen, scores, departures.hidden_score(case))


def uncovered(case: Case, scores: Array) -> Array:
    """Return the scores after all that features do to them, with nothing hidden."""
    for act in departures.acts(case, OnScores):
        scores = act.core(case, scores)
    return scores


def added_columns(case: Case, queries: Array) -> list[Column]:
    """Return the keys that features add to each row, beyond the case's own."""
    return [act.core(case, queries) for act in departures.acts(case, AddsColumn)]


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


def merged_heads(projection: Array, output: Array) -> Array:
    """Return the heads' outputs `[H, Tq, d_v]` side by side, times W_O `[H, d_v, d_out]`: `[Tq, d_out]`."""
    heads, width, out = projection.shape
    side_by_side = output.swapaxes(-3, -2).reshape(*output.shape[:-3], -1, heads * width)
    layer: Array = side_by_side @ projection.reshape(heads * width, out)
    return layer


@dataclass(frozen=True)
class Pipeline:
    """The stages in their order. Called with a case, it is an `Implementation`."""

    queries: Callable[[Case], Array] = biased_queries
    keys: Callable[[Case], Array] = biased_keys
    scores: Callable[[Case, Array, Array], Array] = scaled_scores
    change: Callable[[Case, Array], Array] = changed_scores
    columns: Callable[[Case, Array], list[Column]] = added_columns
    softmax: Callable[[Array], tuple[Array, Array]] = softmax
    mix: Callable[[Case, Array], Array] = mixed_values
    layer: Callable[[Array, Array], Array] = merged_heads
    independent_heads: bool = False  # no stage looks at more than one head with its keys and values
    is_core: bool = False

    def __call__(self, case: Case) -> Trace:
        """Run the stages on a case and show everything."""
        trace = self._heads(case)
        if case.W_O is None:
            return trace
        return Trace(trace.output, {**trace.inside, "layer": self.layer(case.W_O, trace.output)})

    def _heads(self, case: Case) -> Trace:
        """Run the stages up to the heads' outputs."""
        queries = self.queries(case)
        scores = self.scores(case, queries, self.keys(case))
        usual = self.change is changed_scores and self.columns is added_columns
        if departures.departs(case) or not usual:
            return self._departing(case, queries, self.change(case, scores))
        weights, lse = self.softmax(scores)
        return Trace(self.mix(case, weights), {"scores": scores, "weights": weights, "lse": lse})

    def _departing(self, case: Case, queries: Array, scores: Array) -> Trace:
        """Normalise scores that features have changed, and mix the values."""
        for act in departures.acts(case, Normalises):
            weights = act.core(case, scores)
            return Trace(self.mix(case, weights), {"scores": scores, "weights": weights})
        columns, count = self.columns(case, queries), scores.shape[-1]
        weights, lse = self.softmax(np.concatenate([scores, *(column.scores[..., None] for column in columns)], -1))
        output = self.mix(case, weights[..., :count])
        for place, column in enumerate(columns, count):
            if column.value is not None:
                output = output + weights[..., place, None] * column.value[:, None]
        return Trace(output, {"scores": scores, "weights": weights[..., :count], "lse": lse})

    def but(self, **stages: Any) -> Pipeline:
        """Return a pipeline with some stages swapped."""
        return replace(self, **{"independent_heads": False, "is_core": False, **stages})


CORE = Pipeline(independent_heads=True, is_core=True)
