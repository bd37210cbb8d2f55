"""Scores that are scaled or shifted by the wrong number."""

from __future__ import annotations

from typing import Any

import numpy as np

from verify_attention.faults._making import Kind, mistake
from verify_attention.kernel import Question, attention, bent, products, softmax, with_score_bias
from verify_attention.model import Array, Flags


def unscaled(ask: Question, queries: Array, keys: Array) -> Array:
    """Multiply, and forget the scale."""
    return products(ask._replace(scale=1.0), queries, keys)


def scaled_by_default(number: Any) -> Any:
    """Return a product whose default scale is 1/√number; a scale that is given is used."""

    def product(ask: Question, queries: Array, keys: Array) -> Array:
        return products(ask._replace(scale=ask.scale or float(number(ask)) ** -0.5), queries, keys)

    return product


def scaled_weights(ask: Question, scores: Array) -> tuple[Array, Array]:
    """Apply the scale to the weights."""
    weights, lse = softmax(ask, scores)
    return weights * ask.factor, lse


def bias_scaled_along(ask: Question, scores: Array) -> Array:
    """Scale the score bias as if it were a product."""
    return scores if ask.score_bias is None else scores + ask.score_bias * ask.factor


def capped_after_the_mask(ask: Question, scores: Array, seen: Flags) -> Array:
    """Hide first, and bend then: −∞ becomes −cap."""
    return with_score_bias(ask, bent(ask, attention.hide(ask, scores, seen)))


KIND = Kind(
    "scale, scores",
    (
        mistake("the scale is 1/√(H·d_k)", product=scaled_by_default(lambda ask: ask.q.shape[1] * ask.q.shape[-1])),
        mistake("the scale is 1/√H", product=scaled_by_default(lambda ask: ask.q.shape[1])),
        mistake("the scale is missing", product=unscaled),
        mistake("the scale is applied to the weights, after softmax", product=unscaled, normalise=scaled_weights),
        mistake("the score bias is scaled along with the products", add=bias_scaled_along),
        mistake(
            "the sign of the score bias, such as ALiBi's, is reversed",
            add=lambda ask, scores: with_score_bias(
                ask._replace(score_bias=None if ask.score_bias is None else np.negative(ask.score_bias)), scores
            ),
        ),
        mistake(
            "the cap comes after the mask, so that hidden scores are −cap",
            bend=lambda _, scores: scores,
            add=lambda _, scores: scores,
            hide=capped_after_the_mask,
        ),
    ),
)
