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


def complete(parameters: Any, _case: Case) -> Any:
    """Take a whole number for one, however it is written."""
    return {**parameters, "k": int(parameters["k"])} if "k" in parameters else parameters


def refuse(case: Case) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Refuse a missing, needless or too large k."""
    own, keys = case.features["normaliser"], case.keys.shape[1]
    if own["kind"] == "top-k" and "k" not in own:
        yield (), "top-k needs k, the number of keys that keep a weight"
    elif own["kind"] == "top-k" and own["k"] > keys:
        yield ("k",), f"is {own['k']:.9g}, keys has {keys} rows"
    elif own["kind"] != "top-k" and "k" in own:
        yield ("k",), f"belongs to top-k, but the kind is {own['kind']}"


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
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True)) * largest(scores, own["k"])
    return powers / powers.sum(axis=-1, keepdims=True)


def formula(case: Case, scores: Estimate) -> Estimate:
    """Return the weights in another form, with how far the scores' errors may move them.

    The slope of a sigmoid is at most 1/4. Sparsemax weights are max(S_j − τ, 0), and τ moves with the scores: it grows
    with each of them and with all by as much, so by at most their largest error. Its own rounding is that of a sum over
    scores at most 2n below the largest (with one farther down, the first threshold is far below the last). Which scores
    are among the k largest is sure where the last of them leads by more than twice the error. Taking the row's largest
    score off rounds what is g below it by g·u, and exp(−g)·g·u is less than u.
    """
    own, count = case.features["normaliser"], scores.value.shape[-1]
    error = _row_error(scores)
    if own["kind"] == "sigmoid":
        return Estimate(0.5 * (1 + np.tanh(scores.value / 2)), error / 4 + 12 * case.precision.unit)
    if own["kind"] == "sparsemax":
        return Estimate(by_falling_threshold(scores.value), _sparse_error(case, scores))
    chosen, sure = first_largest(scores.value, own["k"], 2 * error)
    logs = np.where(chosen, scores.value, -np.inf)
    weights = np.exp(logs - np.logaddexp.reduce(logs, axis=-1)[..., None])
    return Estimate(weights, np.where(sure, np.expm1(2 * error + (4 * count + 16) * case.precision.unit), np.inf))


def _row_error(scores: Estimate) -> Array:
    error: Array = np.broadcast_to(scores.error, scores.value.shape).max(axis=-1, keepdims=True)
    return error


def _sparse_error(case: Case, scores: Estimate) -> Array:
    count = scores.value.shape[-1]
    return 2 * _row_error(scores) + 2 * case.precision.accumulated(4 * count + 8)


def first_largest(scores: Array, count: int, margin: Array) -> tuple[Flags, Flags]:
    """Return which scores are the `count` largest of their row, and where that is sure: they lead by the margin."""
    keys = scores.shape[-1]
    last = np.partition(scores, keys - count, axis=-1)[..., keys - count, None]
    above, equal = scores > last, scores == last
    chosen = above | (equal & (np.cumsum(equal, axis=-1) <= count - above.sum(axis=-1, keepdims=True)))
    after = np.where(chosen, -np.inf, scores).max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return chosen, ~(last - after <= margin)


def many(case: Case, scores: Estimate) -> Array:
    """Return how many weights may be off at once: all of a sigmoid's, and of sparsemax those that may be above 0.

    The errors of top-k are shares of weights that sum to one.
    """
    own, value = case.features["normaliser"], scores.value
    if own["kind"] == "sigmoid":
        return np.full((*value.shape[:-1], 1), float(value.shape[-1]))
    if own["kind"] == "top-k":
        return np.ones((*value.shape[:-1], 1))
    near = value >= value.max(axis=-1, keepdims=True) - 1 - 2 * _sparse_error(case, scores)
    return near.sum(axis=-1, keepdims=True).astype(np.float64)


def kept(case: Case) -> int | None:
    """Return the k of top-k."""
    return case.features["normaliser"].get("k")


def exponential(case: Case) -> bool:
    """Say that all but sparsemax take exponentials."""
    return case.features["normaliser"]["kind"] != "sparsemax"


def takes_with(parameters: Any) -> frozenset[Trait]:
    """Say that sparsemax and top-k keep what sigmoid takes."""
    return TAKES if parameters["kind"] == "sigmoid" else frozenset({"exponential weights"})


TAKES: frozenset[Trait] = frozenset({"exponential weights", "rows sum to one", "shift-invariant softmax"})
FEATURE = Feature(
    __name__,
    __doc__,
    act=Normalises(core, formula, many, kept, exponential),
    order=90,
    why="sigmoid weighs each score by itself; sparsemax and top-k ignore a common shift, as softmax does",
    takes=TAKES,
    takes_with=takes_with,
    complete=complete,
    refuse=refuse,
)
