"""Attention written correctly in other ways: other orders of the same operations, which must all pass.

Each is an implementation of its own. `VARIATIONS` holds them by name: `PLAIN` know no feature but key shifts, and say
so of other cases; `FEATURED` know all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps

import numpy as np
from slow_route import slow_attention
from steps import (
    STEPS,
    Column,
    add_bias,
    angles_of,
    biased_values,
    dims_of,
    distance,
    eps_of,
    gain_of,
    layout_of,
    order,
    value_bias,
    values_of,
)

from verify_attention.model import Array, Case, Implementation, Trace

PLAIN: dict[str, Implementation] = {}
FEATURED: dict[str, Implementation] = {"slow-attention": slow_attention, "in-steps": STEPS}
LOG2E = math.log2(math.e)


def of_plain_cases(implementation: Implementation) -> Implementation:
    """Return an implementation that says of a case with features that it does not know them."""

    @wraps(implementation)
    def honest(case: Case) -> Trace:
        unknown = sorted(case.features.keys() - {"key_shifts"})
        if unknown:
            raise NotImplementedError(f"features: {', '.join(unknown)}")
        return implementation(case)

    return honest


def variation(function: Implementation) -> Implementation:
    PLAIN[function.__name__.replace("_", "-")] = honest = of_plain_cases(function)
    return honest


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


PLAIN["online-softmax-key-by-key"] = of_plain_cases(in_blocks(1))
PLAIN["online-softmax-in-blocks-of-two"] = of_plain_cases(in_blocks(2))
PLAIN["online-softmax-in-blocks-of-sixteen"] = of_plain_cases(in_blocks(16))


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


PLAIN["reversed-channels-and-keys"] = of_plain_cases(reordered(lambda count: np.arange(count)[::-1]))
PLAIN["shuffled-channels-and-keys"] = of_plain_cases(
    reordered(lambda count: np.random.default_rng(5).permutation(count))
)


# With all features


def _featured(function: Implementation) -> Implementation:
    FEATURED[function.__name__.replace("_", "-") + "-with-features"] = function
    return function


def _scaled_queries(case: Case, queries: Array, keys: Array) -> Array:
    return np.einsum("hid,hjd->hij", queries * case.scale, keys)


FEATURED["scale-folded-into-queries-with-features"] = STEPS.but(product=_scaled_queries)


def _tempered_queries(case: Case, queries: Array, keys: Array) -> Array:
    own = case.features.get("temperature", {})
    factor = case.scale / own.get("heads", np.ones(1))[:, None, None] / own.get("rows", np.ones(1))[:, None]
    return np.einsum("hid,hjd->hij", queries * factor, keys)


FEATURED["temperature-folded-into-queries"] = STEPS.but(product=_tempered_queries, temperature=lambda _, scores: scores)


def _added(case: Case, scores: Array, seen: Array) -> Array:
    if "fill" in case.features:
        return scores * seen + case.features["fill"] * ~seen
    return scores + np.where(seen, 0.0, -np.inf)


def _triangle(case: Case) -> Array:
    first = int(distance(case)[0, 0])
    return np.broadcast_to(np.tril(np.ones(case.scores_shape[1:], dtype=bool), first), case.scores_shape)


def _band(case: Case) -> Array:
    left, right = case.features["window"]
    first, ones = int(distance(case)[0, 0]), np.ones(case.scores_shape[1:], dtype=bool)
    lower = ones if right is None else np.tril(ones, first + right)
    upper = ones if left is None else np.triu(ones, first - left)
    return np.broadcast_to(lower & upper, case.scores_shape)


FEATURED["masks-as-an-added-matrix-of-triangles"] = STEPS.but(hide=_added, causal=_triangle, window=_band)


def _by_matrices(case: Case, side: str, rows: Array) -> Array:
    """Multiply each row with a matrix of its own, block-diagonal but for the layout."""
    angles, dims = angles_of(case, side), dims_of(case)
    matrices = np.stack([np.eye(case.d_k)] * rows.shape[1])
    for pair in range(dims // 2):
        a, b = (pair, pair + dims // 2) if layout_of(case) == "half" else (2 * pair, 2 * pair + 1)
        cos, sin = np.cos(angles[:, pair]), np.sin(angles[:, pair])
        matrices[:, a, a], matrices[:, b, b], matrices[:, a, b], matrices[:, b, a] = cos, cos, -sin, sin
    return np.einsum("tab,htb->hta", matrices, rows)


def _by_complex_numbers(case: Case, side: str, rows: Array) -> Array:
    dims = dims_of(case)
    if layout_of(case) == "interleaved":
        pairs = np.ascontiguousarray(rows[..., :dims]).view(np.complex128) * np.exp(1j * angles_of(case, side))
        return np.concatenate([pairs.view(np.float64), rows[..., dims:]], axis=-1)
    pairs = (rows[..., : dims // 2] + 1j * rows[..., dims // 2 : dims]) * np.exp(1j * angles_of(case, side))
    return np.concatenate([pairs.real, pairs.imag, rows[..., dims:]], axis=-1)


def _by_half_turned_rows(case: Case, side: str, rows: Array) -> Array:
    """Rotate as model code does: x·cos + rotate_half(x)·sin."""
    angles, dims = angles_of(case, side), dims_of(case)
    some = rows[..., :dims]
    if layout_of(case) == "half":
        angles = np.concatenate([angles, angles], axis=-1)
        half = np.concatenate([-some[..., dims // 2 :], some[..., : dims // 2]], axis=-1)
    else:
        angles = np.repeat(angles, 2, axis=-1)
        half = np.stack([-some[..., 1::2], some[..., ::2]], axis=-1).reshape(some.shape)
    return np.concatenate([some * np.cos(angles) + half * np.sin(angles), rows[..., dims:]], axis=-1)


FEATURED["rotation-by-matrices"] = STEPS.but(rotation=_by_matrices)
FEATURED["rotation-by-complex-numbers"] = STEPS.but(rotation=_by_complex_numbers)
FEATURED["rotation-by-half-turned-rows"] = STEPS.but(rotation=_by_half_turned_rows)


def _by_length(case: Case, side: str, rows: Array) -> Array:
    """Divide by the length that numpy gives, eps as one more channel of it."""
    own, eps = case.features["qk_norm"], eps_of(case)
    rows = rows @ (np.eye(case.d_k) - 1 / case.d_k) if own["kind"] == "layer" else rows
    width = 1 if own["kind"] == "l2" else case.d_k
    ones = np.full((*rows.shape[:2], 1), math.sqrt(eps * width))
    length = np.linalg.norm(np.concatenate([rows, ones], axis=-1), axis=-1, keepdims=True)
    return rows / length * math.sqrt(width) * gain_of(case, side)


FEATURED["norm-by-lengths"] = STEPS.but(norm=_by_length)


@_featured
def in_blocks_of_two(case: Case) -> Trace:
    """Attend online: a running maximum, which the added keys begin, a running sum and a running output."""
    if "normaliser" in case.features:
        raise NotImplementedError("features: normaliser")
    queries, keys, values = STEPS.vectors(case, "q"), STEPS.vectors(case, "k"), biased_values(case)
    scores, extra = STEPS.scores(case, queries, keys), STEPS.columns(case, queries)
    peak, total, output = np.full(scores.shape[:2], -np.inf), np.zeros(scores.shape[:2]), np.zeros_like(values[:, :1])
    blocks: list[tuple[Array, Array | None]] = [
        (logit[..., None], v if v is None else v[:, None]) for logit, v in extra
    ]
    blocks += [(scores[..., at : at + 2], values[:, at : at + 2]) for at in range(0, scores.shape[2], 2)]
    for part, rows in blocks:
        higher = np.maximum(peak, part.max(axis=-1))
        base = np.where(np.isfinite(higher), higher, 0.0)  # nothing seen yet
        powers, kept = np.exp(part - base[..., None]), np.exp(peak - base)
        total = total * kept + powers.sum(axis=-1)
        output = output * kept[..., None]
        output = output if rows is None else output + np.einsum("hij,hjd->hid", powers, rows)
        peak = higher
    weights = np.exp(scores - peak[..., None]) / total[..., None]
    inside = {"scores": scores, "weights": weights, "lse": peak + np.log(total)}
    return Trace(output / total[..., None], inside)


@_featured
def added_keys_among_the_others(case: Case) -> Trace:
    """Let added keys stand before the others, with values of zeros where they have none, in one product."""
    if "normaliser" in case.features:
        return STEPS(case)
    queries, values = STEPS.vectors(case, "q"), biased_values(case)
    scores, extra = STEPS.scores(case, queries, STEPS.vectors(case, "k")), STEPS.columns(case, queries)
    zeros = np.zeros((len(case.q), case.d_v))
    logits = np.concatenate([*(logit[..., None] for logit, _ in extra), scores], axis=-1)
    rows = np.concatenate([*((zeros if value is None else value)[:, None] for _, value in extra), values], axis=1)
    lse = np.logaddexp.reduce(logits, axis=-1)
    weights = np.exp(logits - lse[..., None])
    inside = {"scores": scores, "weights": weights[..., len(extra) :], "lse": lse}
    return Trace(weights @ rows, inside)


def _in_base_two(case: Case, scores: Array, extra: list[Column]) -> tuple[Array, Array, Array]:
    logits = np.concatenate([scores, *(logit[..., None] for logit, _ in extra)], axis=-1) * LOG2E
    peak = logits.max(axis=-1, keepdims=True)
    powers = np.exp2(logits - peak)
    total = powers.sum(axis=-1, keepdims=True)
    weights = powers / total
    return weights[..., : scores.shape[-1]], weights[..., scores.shape[-1] :], ((peak + np.log2(total)) / LOG2E)[..., 0]


FEATURED["base-two-with-features"] = STEPS.but(normalise=_in_base_two)


@_featured
def bias_turned_by_itself(case: Case) -> Trace:
    """Rotate vectors and biases one by one where nothing but the rotation comes after the biases."""
    if order(case)[-2:] != ["bias", "rotation"]:
        return STEPS(case)

    def late(case: Case) -> list[str]:
        return order(case)[:-1]

    def add_turned(case: Case, side: str, rows: Array) -> Array:
        bias = add_bias(case, side, np.zeros_like(rows))
        return STEPS.rotation(case, side, rows) + STEPS.rotation(case, side, bias)

    return STEPS.but(order=late, bias=add_turned)(case)


@_featured
def value_bias_by_the_sum_of_the_weights(case: Case) -> Trace:
    """Mix the values without their bias, and add the bias times what a row sums to."""

    def mix(case: Case, weights: Array, values: Array) -> Array:
        return np.einsum("hij,hjd->hid", weights, values) + weights.sum(axis=-1, keepdims=True) * value_bias(case)

    return STEPS.but(values=values_of, mix=mix)(case)


VARIATIONS: dict[str, Implementation] = PLAIN | FEATURED


def output_only(case: Case) -> Trace:
    return Trace(STEPS(case).output)
