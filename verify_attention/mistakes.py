"""Mistakes of real code that several claims must catch, most of them stages of a pipeline that are wrong in one way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verify_attention.departures import visible
from verify_attention.model import Array, Case, Trace
from verify_attention.pipeline import CORE, biased_queries, mixed_values, scaled_scores, softmax, uncovered


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


def masked_after_softmax(case: Case) -> Trace:
    """Multiply the weights by the mask, and leave the sum as it was."""
    trace, seen = CORE.but(change=uncovered)(case), visible(case)
    weights = trace.weights if seen is None else trace.weights * seen
    return Trace(CORE.mix(case, weights), {**trace.inside, "weights": weights})
