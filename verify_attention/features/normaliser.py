"""Something else stands for softmax: sigmoid, sparsemax or top-k.

`sigmoid` weighs each key by itself, 1 / (1 + exp(−S)): a K bias moves the weights, and rows do not sum to one.
`sparsemax` is the point of the simplex nearest to the scores (Martins and Astudillo, 2016), and `top-k` is softmax
over the `k` largest scores, the first of equal ones; both ignore a common shift, as softmax does, and their rows sum
to one. None has an LSE.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from verify_attention.model import Array, Case, Estimate, Feature, Flags, Normalises, Trait
from verify_attention.roundoff import UNIT, accumulated

COLUMNS = {"sink", "softmax_plus_one", "zero_key", "appended_key"}


def refuse(case: Case) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Refuse a missing, needless or too large k, and what shares a softmax that is not there."""
    own, keys = case.features["normaliser"], case.keys.shape[1]
    if own["kind"] == "top-k" and "k" not in own:
        yield (), "top-k needs k, the number of keys that keep a weight"
    elif own["kind"] == "top-k" and own["k"] > keys:
        yield ("k",), f"is {own['k']}, keys has {keys} rows"
    elif own["kind"] != "top-k" and "k" in own:
        yield ("k",), f"belongs to top-k, but the kind is {own['kind']}"
    for other in sorted(COLUMNS & case.features.keys()):
        yield (), f"stands beside {other}, which takes a share of a softmax; leave one out"


def sigmoid(scores: Array) -> Array:
    """Return 1 / (1 + exp(−S))."""
    power = np.exp(-np.abs(scores))
    return np.where(scores >= 0, 1.0, power) / (1 + power)


def sparsemax(scores: Array) -> Array:
    """Return the nearest point of the simplex: the threshold is found among the sorted scores."""
    high = scores - scores.max(axis=-1, keepdims=True)
    ordered = -np.sort(-high, axis=-1)
    count = np.arange(1, scores.shape[-1] + 1)
    finite = np.where(np.isfinite(ordered), ordered, 0.0)
    kept = np.isfinite(ordered) & (1 + count * ordered > np.cumsum(finite, axis=-1))
    number = kept.sum(axis=-1, keepdims=True)
    threshold = (np.where(kept, finite, 0.0).sum(axis=-1, keepdims=True) - 1) / number
    return np.maximum(high - threshold, 0.0)


def by_falling_threshold(scores: Array) -> Array:
    """Return the same by leaving out, again and again, what is below the threshold of the rest (Michelot, 1986)."""
    high = scores - scores.max(axis=-1, keepdims=True)
    kept: Flags = np.isfinite(high)
    while True:
        total = np.where(kept, high, 0.0).sum(axis=-1, keepdims=True) - 1
        threshold = total / kept.sum(axis=-1, keepdims=True)
        fewer = kept & (high > threshold)
        if (fewer == kept).all():
            return np.where(kept, high - threshold, 0.0)
        kept = fewer


def largest(scores: Array, count: int) -> Flags:
    """Return which scores are among the `count` largest of their row, the first of equal ones."""
    order = np.argsort(-scores, axis=-1, kind="stable")
    ranks = np.argsort(order, axis=-1, kind="stable")
    return ranks < count


def core(case: Case, scores: Array) -> Array:
    """Return the weights, `[H, Tq, Tk]`."""
    own = case.features["normaliser"]
    if own["kind"] == "sigmoid":
        return sigmoid(scores)
    if own["kind"] == "sparsemax":
        return sparsemax(scores)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True)) * largest(scores, int(own["k"]))
    return powers / powers.sum(axis=-1, keepdims=True)


def formula(case: Case, scores: Estimate) -> Estimate:
    """Return the weights in another form, with how far the scores' errors may move them.

    The slope of a sigmoid is at most 1/4. Projection is not expansive: sparsemax moves by at most ‖ΔS‖ ≤ √n·max |ΔS|.
    Which scores are the largest is sure where the last of them leads by more than twice the error. Taking the row's
    largest score off rounds what is g below it by g·u: exp(−g)·g·u is less than u, and of sparsemax only scores count
    that are at most 2n below (with one farther down, the first threshold is far below the last).
    """
    own, count = case.features["normaliser"], scores.value.shape[-1]
    error = np.broadcast_to(scores.error, scores.value.shape).max(axis=-1, keepdims=True)
    if own["kind"] == "sigmoid":
        return Estimate(0.5 * (1 + np.tanh(scores.value / 2)), error / 4 + 12 * UNIT)
    if own["kind"] == "sparsemax":
        bound = np.sqrt(count) * (error + 4 * count * UNIT) + 2 * accumulated(count + 8)
        return Estimate(by_falling_threshold(scores.value), bound)
    ahead = (scores.value[..., None, :] > scores.value[..., :, None]).sum(axis=-1)
    equal = np.tril(scores.value[..., None, :] == scores.value[..., :, None], k=-1).sum(axis=-1)
    chosen = ahead + equal < own["k"]
    logs = np.where(chosen, scores.value, -np.inf)
    weights = np.exp(logs - np.logaddexp.reduce(logs, axis=-1)[..., None])
    least = np.where(chosen, scores.value, np.inf).min(axis=-1, keepdims=True)
    next_one = np.where(chosen, -np.inf, scores.value).max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        sure = ~(least - next_one <= 2 * error)
    bound = np.where(sure, np.expm1(2 * error + (4 * count + 16) * UNIT), np.inf)
    return Estimate(weights, bound)


def takes_with(parameters: Any) -> frozenset[Trait]:
    """Say that sparsemax and top-k keep what sigmoid takes."""
    return TAKES if parameters["kind"] == "sigmoid" else frozenset({"exponential weights"})


TAKES: frozenset[Trait] = frozenset({"exponential weights", "rows sum to one", "shift-invariant softmax"})
FEATURE = Feature(
    __name__,
    __doc__,
    act=Normalises(core, formula),
    order=90,
    why="sigmoid weighs each score by itself; sparsemax and top-k ignore a common shift, as softmax does",
    takes=TAKES,
    takes_with=takes_with,
    refuse=refuse,
)
