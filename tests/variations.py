"""Attention written correctly in other ways: other orders of the same operations, which must all pass.

Each is an implementation of its own. `VARIATIONS` holds them by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from verify_attention.model import Array, Case, Implementation, Trace

VARIATIONS: dict[str, Implementation] = {}
LOG2E = math.log2(math.e)


def variation(function: Implementation) -> Implementation:
    VARIATIONS[function.__name__.replace("_", "-")] = function
    return function


def vectors(case: Case) -> tuple[Array, Array, Array]:
    """Return q, k and v with their biases, each `[H, …]`: key-value heads are repeated for their query heads."""
    repeats = case.q.shape[0] // case.keys.shape[0]
    keys = case.keys + case.bK[:, None, :]
    if "key_shifts" in case.features:
        keys = keys + case.features["key_shifts"]
    values = np.stack([np.eye(case.keys.shape[1])] * len(case.keys)) if case.values is None else case.values
    if case.bV is not None:
        values = values + case.bV[:, None, :]
    return case.q + case.bQ[:, None, :], np.repeat(keys, repeats, axis=0), np.repeat(values, repeats, axis=0)


def finished(scores: Array, values: Array) -> Trace:
    """Run the usual softmax on scores and mix the values."""
    peak = scores.max(axis=2, keepdims=True)
    powers = np.exp(scores - peak)
    total = powers.sum(axis=2, keepdims=True)
    weights = powers / total
    lse = (peak + np.log(total))[:, :, 0]
    return Trace(np.einsum("hij,hjd->hid", weights, values), {"scores": scores, "weights": weights, "lse": lse})


@variation
def plain(case: Case) -> Trace:
    queries, keys, values = vectors(case)
    return finished(np.einsum("hid,hjd->hij", queries, keys) * case.scale, values)


@variation
def scale_folded_into_queries(case: Case) -> Trace:
    queries, keys, values = vectors(case)
    return finished(np.einsum("hid,hjd->hij", queries * case.scale, keys), values)


@variation
def scale_folded_into_keys(case: Case) -> Trace:
    queries, keys, values = vectors(case)
    return finished(np.einsum("hid,hjd->hij", queries, keys * case.scale), values)


@variation
def square_root_of_the_scale_on_both_sides(case: Case) -> Trace:
    queries, keys, values = vectors(case)
    root = math.sqrt(case.scale)
    return finished(np.einsum("hid,hjd->hij", queries * root, keys * root), values)


@variation
def divided_by_the_root_of_the_width(case: Case) -> Trace:
    queries, keys, values = vectors(case)
    default = case.scale == 1 / math.sqrt(case.d_k)
    divisor = math.sqrt(case.d_k) if default else 1 / case.scale
    return finished(np.einsum("hid,hjd->hij", queries, keys) / divisor, values)


@variation
def bias_products_added_to_scores(case: Case) -> Trace:
    """Multiply q·k and add the products with the biases to the scores."""
    _, _, values = vectors(case)
    repeats = case.q.shape[0] // case.keys.shape[0]
    keys = case.keys + case.features.get("key_shifts", 0.0)
    keys, key_bias = np.repeat(keys, repeats, axis=0), np.repeat(case.bK, repeats, axis=0)
    scores = np.einsum("hid,hjd->hij", case.q, keys)
    scores = scores + np.einsum("hd,hjd->hj", case.bQ, keys)[:, None, :]
    scores = scores + np.einsum("hid,hd->hi", case.q + case.bQ[:, None, :], key_bias)[:, :, None]
    return finished(scores * case.scale, values)


@variation
def keys_centred(case: Case) -> Trace:
    """Take the mean key off all keys, and put its share of scores and LSE back."""
    queries, keys, values = vectors(case)
    mean = keys.mean(axis=1, keepdims=True)
    trace = finished(np.einsum("hid,hjd->hij", queries, keys - mean) * case.scale, values)
    share = np.einsum("hid,hjd->hij", queries, mean) * case.scale
    inside = {
        "scores": trace.scores + share,
        "weights": trace.weights,
        "lse": trace.lse + share[:, :, 0],
    }
    return Trace(trace.output, inside)


@variation
def powers_of_two(case: Case) -> Trace:
    """Take exponentials in base two after the maximum is off."""
    queries, keys, values = vectors(case)
    scores = np.einsum("hid,hjd->hij", queries, keys) * case.scale
    peak = scores.max(axis=2, keepdims=True)
    powers = np.exp2((scores - peak) * LOG2E)
    total = powers.sum(axis=2, keepdims=True)
    lse = (peak + np.log2(total) / LOG2E)[:, :, 0]
    weights = powers / total
    return Trace(np.einsum("hij,hjd->hid", weights, values), {"scores": scores, "weights": weights, "lse": lse})


@variation
def base_two_folded_into_queries(case: Case) -> Trace:
    """Fold scale·log2(e) into the queries, as fused kernels do; scores and LSE are turned back at the end."""
    queries, keys, values = vectors(case)
    scores = np.einsum("hid,hjd->hij", queries * (case.scale * LOG2E), keys)
    peak = scores.max(axis=2, keepdims=True)
    powers = np.exp2(scores - peak)
    total = powers.sum(axis=2, keepdims=True)
    lse = ((peak + np.log2(total)) / LOG2E)[:, :, 0]
    inside = {"scores": scores / LOG2E, "weights": powers / total, "lse": lse}
    return Trace(np.einsum("hij,hjd->hid", powers / total, values), inside)


@variation
def exponential_of_score_minus_lse(case: Case) -> Trace:
    """Take the LSE first, whose last bit then decides how well a row sums to one: not well for large scores."""
    queries, keys, values = vectors(case)
    scores = np.einsum("hid,hjd->hij", queries, keys) * case.scale
    lse = np.logaddexp.reduce(scores, axis=2)
    weights = np.exp(scores - lse[:, :, None])
    return Trace(np.einsum("hij,hjd->hid", weights, values), {"scores": scores, "weights": weights, "lse": lse})


@variation
def divided_after_the_values(case: Case) -> Trace:
    """Mix the values by exponentials and divide the mixture."""
    queries, keys, values = vectors(case)
    scores = np.einsum("hid,hjd->hij", queries, keys) * case.scale
    peak = scores.max(axis=2, keepdims=True)
    powers = np.exp(scores - peak)
    total = powers.sum(axis=2, keepdims=True)
    lse = (peak + np.log(total))[:, :, 0]
    output = np.einsum("hij,hjd->hid", powers, values) / total
    return Trace(output, {"scores": scores, "weights": powers / total, "lse": lse})


def in_blocks(size: int) -> Implementation:
    """Return an online softmax: blocks of keys, with a running maximum, sum and output."""

    def online(case: Case) -> Trace:
        queries, keys, values = vectors(case)
        heads, rows, count = case.scores_shape
        peak = np.full((heads, rows, 1), -np.inf)
        total = np.zeros((heads, rows, 1))
        output = np.zeros((heads, rows, values.shape[2]))
        scores = np.empty((heads, rows, count))
        for start in range(0, count, size):
            block = slice(start, start + size)
            part = np.einsum("hid,hjd->hij", queries, keys[:, block]) * case.scale
            scores[:, :, block] = part
            higher = np.maximum(peak, part.max(axis=2, keepdims=True))
            powers = np.exp(part - higher)
            kept = np.exp(peak - higher)
            total = total * kept + powers.sum(axis=2, keepdims=True)
            output = output * kept + np.einsum("hij,hjd->hid", powers, values[:, block])
            peak = higher
        lse = peak + np.log(total)
        weights = np.exp(scores - peak) / total
        return Trace(output / total, {"scores": scores, "weights": weights, "lse": lse[:, :, 0]})

    return online


VARIATIONS["online-softmax-key-by-key"] = in_blocks(1)
VARIATIONS["online-softmax-in-blocks-of-two"] = in_blocks(2)
VARIATIONS["online-softmax-in-blocks-of-sixteen"] = in_blocks(16)


@variation
def summed_in_reversed_order(case: Case) -> Trace:
    """Add every sum one by one from its end: the products of a score, the exponentials, the mixture."""
    queries, keys, values = vectors(case)
    scores = np.zeros(case.scores_shape)
    for channel in reversed(range(case.d_k)):
        scores = scores + queries[:, :, None, channel] * keys[:, None, :, channel]
    scores = scores * case.scale
    peak = scores.max(axis=2, keepdims=True)
    powers = np.exp(scores - peak)
    total = np.zeros_like(peak)
    output = np.zeros((*scores.shape[:2], values.shape[2]))
    for key in reversed(range(scores.shape[2])):
        total = total + powers[:, :, key, None]
        output = output + powers[:, :, key, None] * values[:, None, key]
    lse = (peak + np.log(total))[:, :, 0]
    return Trace(output / total, {"scores": scores, "weights": powers / total, "lse": lse})


@variation
def pure_python_with_exact_sums(case: Case) -> Trace:
    """Use lists, `math` and `fsum`, no numpy."""
    queries, keys, values = (array.tolist() for array in vectors(case))
    found: dict[str, list[object]] = {"scores": [], "weights": [], "lse": [], "output": []}
    for head_queries, head_keys, head_values in zip(queries, keys, values, strict=True):
        scores = [[case.scale * math.fsum(map(_times, row, key)) for key in head_keys] for row in head_queries]
        peaks = [max(row) for row in scores]
        powers = [[math.exp(score - peak) for score in row] for row, peak in zip(scores, peaks, strict=True)]
        totals = [math.fsum(row) for row in powers]
        weights = [[power / total for power in row] for row, total in zip(powers, totals, strict=True)]
        found["scores"].append(scores)
        found["weights"].append(weights)
        found["lse"].append([peak + math.log(total) for peak, total in zip(peaks, totals, strict=True)])
        found["output"].append(
            [[math.fsum(map(_times, row, channel)) for channel in zip(*head_values, strict=True)] for row in weights]
        )
    arrays = {name: np.array(value) for name, value in found.items()}
    return Trace(arrays.pop("output"), arrays)


def _times(left: float, right: float) -> float:
    return left * right


def reordered(order: Callable[[int], Array]) -> Implementation:
    """Return an implementation that computes with channels and keys in another order, and puts the keys back."""

    def attention(case: Case) -> Trace:
        queries, keys, values = vectors(case)
        channels, places = order(case.d_k), order(keys.shape[1])
        back = np.argsort(places)
        shuffled_keys = np.ascontiguousarray(keys[:, places][:, :, channels])
        shuffled_queries = np.ascontiguousarray(queries[:, :, channels])
        scores = shuffled_queries @ shuffled_keys.swapaxes(1, 2) * case.scale
        trace = finished(scores, values[:, places])
        inside = {"scores": trace.scores[:, :, back], "weights": trace.weights[:, :, back], "lse": trace.lse}
        return Trace(trace.output, inside)

    return attention


VARIATIONS["reversed-channels-and-keys"] = reordered(lambda count: np.arange(count)[::-1])
VARIATIONS["shuffled-channels-and-keys"] = reordered(lambda count: np.random.default_rng(5).permutation(count))


def output_only(case: Case) -> Trace:
    return Trace(plain(case).output)
