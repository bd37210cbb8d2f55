"""Mistakes of real code that several claims must catch, most of them stages of a pipeline that are wrong in one way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verify_attention.departures import visible
from verify_attention.model import Array, Case, Column, Trace
from verify_attention.pipeline import (
    CORE,
    added_columns,
    biased_keys,
    biased_queries,
    changed_scores,
    mixed_values,
    scaled_scores,
    softmax,
    uncovered,
)
from verify_attention.structure import without


def _with_peak(peak: Callable[[Array], Array]) -> Callable[[Array], tuple[Array, Array]]:
    """Return a softmax that takes another number than the row's maximum off its scores."""

    def normalise(scores: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            taken = peak(scores)
            powers = np.exp(scores - taken)
            total = powers.sum(axis=-1, keepdims=True)
            return powers / total, np.broadcast_to(taken + np.log(total), total.shape)[..., 0]

    return normalise


no_maximum = _with_peak(lambda scores: np.zeros_like(scores[..., :1]))
maximum_from_zero = _with_peak(lambda scores: np.maximum(scores.max(axis=-1, keepdims=True), 0.0))
one_maximum_for_a_head = _with_peak(lambda scores: scores.max(axis=(-2, -1), keepdims=True))
one_maximum_for_all = _with_peak(lambda scores: scores.max(keepdims=True))


def undeclared_zero_key(scores: Array) -> tuple[Array, Array]:
    """Let one key with a score of 0 take its share, and hide it."""
    weights, lse = softmax(np.concatenate([scores, np.zeros_like(scores[..., :1])], axis=-1))
    return weights[..., :-1], lse


def filled_up_with_zero_keys(case: Case, queries: Array) -> list[Column]:
    """Attend to keys of zeros that fill up the last block of four: padding, or the unused slots of a cache."""
    missing = -case.keys.shape[1] % 4
    return added_columns(case, queries) + [Column(np.zeros(case.scores_shape[:2]))] * missing


def over_queries(scores: Array) -> tuple[Array, Array]:
    """Normalise over the query axis."""
    weights, _ = softmax(scores.swapaxes(-1, -2))
    return weights.swapaxes(-1, -2).copy(), softmax(scores)[1]


def lse_without_maximum(scores: Array) -> tuple[Array, Array]:
    """Forget to add the maximum to the LSE."""
    weights, lse = softmax(scores)
    return weights, lse - scores.max(axis=-1)


def lse_of_the_mean(scores: Array) -> tuple[Array, Array]:
    """Take the logarithm of the mean for the LSE."""
    weights, lse = softmax(scores)
    return weights, lse - np.log(scores.shape[-1])


def lse_in_base_two(scores: Array) -> tuple[Array, Array]:
    """Give the LSE in base two."""
    weights, lse = softmax(scores)
    return weights, lse / np.log(2)


def queries_without_bias(case: Case) -> Array:
    """Ignore the Q bias, and do whatever features do."""
    return biased_queries(case.but(bQ=np.zeros_like(case.bQ)))


def keys_without_bias(case: Case) -> Array:
    """Ignore the K bias, and do whatever features do."""
    return biased_keys(case.but(bK=np.zeros_like(case.bK)))


def query_bias_of_the_first_head(case: Case) -> Array:
    """Add head 0's Q bias to all heads."""
    return biased_queries(case.but(bQ=np.broadcast_to(case.bQ[:1], case.bQ.shape)))


def merged_without_transpose(case: Case, weights: Array) -> Array:
    """Put the heads together in the order in which they lie in memory."""
    output = mixed_values(case, weights)
    return output.swapaxes(0, 1).reshape(output.shape)


def values_without_bias(case: Case, weights: Array) -> Array:
    """Drop the V bias."""
    return mixed_values(case.but(bV=None), weights)


def scale_of_the_width(case: Case, queries: Array, keys: Array) -> Array:
    """Divide by √d_k whatever the scale."""
    return scaled_scores(case.but(scale=case.d_k**-0.5), queries, keys)


def frequencies_of_the_width(case: Case) -> Trace:
    """Turn the right channels by base^(−2t/d_k) instead of base^(−2t/rotary_dims)."""
    own = case.features.get("rope")
    if own is None:
        return CORE(case)
    base = own["base"] ** (own["rotary_dims"] / case.d_k)
    return CORE(case.but(features={**case.features, "rope": {**own, "base": base}}))


def score_bias_first(case: Case, scores: Array) -> Array:
    """Add the score bias before temperature and cap."""
    return changed_scores(without(case, "score_bias"), scores + case.features.get("score_bias", 0.0))


def score_bias_scaled_along(case: Case) -> Trace:
    """Multiply the score bias by the scale."""
    if "score_bias" not in case.features:
        return CORE(case)
    return CORE(case.but(features={**case.features, "score_bias": case.features["score_bias"] * case.scale}))


def mask_of_the_first_head(case: Case) -> Trace:
    """Hide in all heads what the mask hides in head 0."""
    mask = case.features.get("mask")
    if mask is None:
        return CORE(case)
    return CORE(case.but(features={**case.features, "mask": np.broadcast_to(mask[:1], mask.shape)}))


def masked_after_softmax(case: Case) -> Trace:
    """Multiply the weights by the mask, and leave the sum as it was."""
    trace, seen = CORE.but(change=uncovered)(case), visible(case)
    weights = trace.weights if seen is None else trace.weights * seen
    return Trace(CORE.mix(case, weights), {**trace.inside, "weights": weights})
