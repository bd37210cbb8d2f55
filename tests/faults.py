"""Attention written wrongly: mistakes seen in real code, each a small numpy implementation of its own.

`FAULTS` holds them by what the mistake is, `STAND_INS` those that do not compute attention at all. `UNSEEN` are the
mistakes that change no output: softmax does not see a common shift of a row's scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from verify_attention.model import Array, Case, Implementation, Trace

FAULTS: dict[str, Implementation] = {}
STAND_INS: dict[str, Implementation] = {}
UNSEEN: set[str] = set()


def fault(mistake: str, *, unseen: bool = False) -> Callable[[Implementation], Implementation]:
    def enter(implementation: Implementation) -> Implementation:
        FAULTS[mistake] = implementation
        if unseen:
            UNSEEN.add(mistake)
        return implementation

    return enter


def stand_in(what: str) -> Callable[[Implementation], Implementation]:
    def enter(implementation: Implementation) -> Implementation:
        STAND_INS[what] = implementation
        return implementation

    return enter


# Attention in steps, right as they stand; a fault below swaps one.


def repeated(case: Case, of_groups: Array) -> Array:
    return np.repeat(of_groups, case.q.shape[0] // of_groups.shape[0], axis=0)


def queries_of(case: Case) -> Array:
    return case.q + case.bQ[:, None]


def keys_of(case: Case) -> Array:
    return case.keys + case.bK[:, None] + case.features.get("key_shifts", 0.0)


def values_of(case: Case, with_bias: bool = True) -> Array:
    values = case.values
    if values is None:
        values = np.broadcast_to(np.eye(case.keys.shape[1]), (len(case.keys), *[case.keys.shape[1]] * 2))
    return values if case.bV is None or not with_bias else values + case.bV[:, None]


def softmax(scores: Array, peak: Array | None = None) -> tuple[Array, Array]:
    """Return weights and LSE; `peak` stands for the maximum of each row."""
    highest = scores.max(axis=-1, keepdims=True) if peak is None else peak
    powers = np.exp(scores - highest)
    total = powers.sum(axis=-1, keepdims=True)
    return powers / total, (highest + np.log(total))[..., 0]


def with_zero_keys(scores: Array, count: int) -> tuple[Array, Array]:
    """Let some keys of score 0 take their share, and hide them."""
    weights, lse = softmax(np.concatenate([scores, np.zeros((*scores.shape[:2], count))], axis=-1))
    return weights[..., : scores.shape[-1]], lse


def attention(
    case: Case,
    *,
    queries: Array | None = None,
    keys: Array | None = None,
    values: Array | None = None,
    scale: float | None = None,
    scores: Callable[[Array], Array] = lambda scores: scores,
    weigh: Callable[[Array], tuple[Array, Array]] = softmax,
) -> Trace:
    """Attend; `keys` and `values` have key-value heads, or query heads where those are already repeated."""
    queries = queries_of(case) if queries is None else queries
    keys = repeated(case, keys_of(case) if keys is None else keys)
    values = repeated(case, values_of(case) if values is None else values)
    found = scores(queries @ keys.swapaxes(1, 2) * (case.scale if scale is None else scale))
    weights, lse = weigh(found)
    return Trace(weights @ values, {"scores": found, "weights": weights, "lse": lse})


def with_weights(case: Case, change: Callable[[Array], Array]) -> Trace:
    """Attend, and change the weights before they mix the values."""

    def weigh(scores: Array) -> tuple[Array, Array]:
        weights, lse = softmax(scores)
        return change(weights), lse

    return attention(case, weigh=weigh)


# Biases


@fault("the K bias reaches the second half of the keys only")
def _(case: Case) -> Trace:
    keys = keys_of(case)
    half = keys.shape[1] // 2
    keys[:, :half] -= case.bK[:, None]
    return attention(case, keys=keys)


@fault("the Q bias is ignored")
def _(case: Case) -> Trace:
    return attention(case, queries=case.q)


@fault("the K bias is ignored", unseen=True)
def _(case: Case) -> Trace:
    return attention(replace(case, bK=np.zeros_like(case.bK)))


@fault("the Q bias of head 0 is every head's")
def _(case: Case) -> Trace:
    return attention(case, queries=case.q + case.bQ[0])


@fault("the K bias of head 0 is every head's", unseen=True)
def _(case: Case) -> Trace:
    return attention(replace(case, bK=np.stack([case.bK[0]] * len(case.bK))))


@fault("the V bias of head 0 is every head's")
def _(case: Case) -> Trace:
    return attention(case, values=values_of(case, with_bias=False) + (0.0 if case.bV is None else case.bV[0]))


@fault("the V bias is dropped when no mask is given")
def _(case: Case) -> Trace:
    return attention(case, values=values_of(case, with_bias=False))


@fault("the V bias is added to the output twice")
def _(case: Case) -> Trace:
    return attention(case, values=values_of(case) + (0.0 if case.bV is None else case.bV[:, None]))


@fault("the Q bias is added after the scale")
def _(case: Case) -> Trace:
    return attention(case, queries=case.q * case.scale + case.bQ[:, None], scale=1.0)


@fault("the K bias is added to the scores, unmultiplied", unseen=True)
def _(case: Case) -> Trace:
    bias = repeated(case, case.bK.sum(axis=1))[:, None, None]
    keys = case.keys + case.features.get("key_shifts", 0.0)
    return attention(case, keys=keys, scores=lambda scores: scores + bias)


@fault("the Q bias is added to the keys and the K bias to the queries")
def _(case: Case) -> Trace:
    per_group = len(case.q) // len(case.keys)
    return attention(replace(case, bQ=repeated(case, case.bK), bK=case.bQ[::per_group]))


def fused(case: Case) -> tuple[Array, list[int]]:
    """Return all biases in one row, in blocks Q, K, V, and the blocks' sizes."""
    value_bias = np.zeros((len(case.keys), case.d_v)) if case.bV is None else case.bV
    parts = [case.bQ.ravel(), case.bK.ravel(), value_bias.ravel()]
    return np.concatenate(parts), [part.size for part in parts]


def with_biases(case: Case, query: Array, key: Array, value: Array) -> Trace:
    return attention(
        replace(
            case,
            bQ=query.reshape(case.bQ.shape),
            bK=key.reshape(case.bK.shape),
            bV=None if case.bV is None else value.reshape(case.bV.shape),
        )
    )


@fault("the fused bias is read in the order K, Q, V")
def _(case: Case) -> Trace:
    row, (query, key, _) = fused(case)
    return with_biases(case, row[key : key + query], row[:key], row[query + key :])


@fault("the fused bias is read head by head where it is stored in blocks")
def _(case: Case) -> Trace:
    row, sizes = fused(case)
    query, key, _ = (size // len(case.keys) for size in sizes)
    by_group = row.reshape(len(case.keys), -1)
    return with_biases(case, by_group[:, :query], by_group[:, query : query + key], by_group[:, query + key :])


@fault("without a K bias its slot is left uninitialised", unseen=True)
def _(case: Case) -> Trace:
    left = 0.0 if case.bK.any() else np.linspace(0.5, 1.5, case.d_k)
    return attention(case, keys=keys_of(case) + left)


@fault("keys are centred in place")
def _(case: Case) -> Trace:
    keys = case.keys
    keys -= keys.mean(axis=1, keepdims=True)
    return attention(case)


@fault("keys are centred in place, although they are read-only", unseen=True)
def _(case: Case) -> Trace:
    case.keys.setflags(write=True)
    try:
        case.keys[...] -= case.keys.mean(axis=1, keepdims=True)
    finally:
        case.keys.setflags(write=False)
    return attention(case)


@fault("keys are centred, and scores and LSE not put back", unseen=True)
def _(case: Case) -> Trace:
    keys = keys_of(case)
    return attention(case, keys=keys - keys.mean(axis=1, keepdims=True))


# Scale and scores


@fault("the scale is missing")
def _(case: Case) -> Trace:
    return attention(case, scale=1.0)


@fault("the scale is applied twice")
def _(case: Case) -> Trace:
    return attention(case, scale=case.scale**2)


@fault("the scale is 1/√(H·d_k)")
def _(case: Case) -> Trace:
    return attention(case, scale=(len(case.q) * case.d_k) ** -0.5)


@fault("the scale is 1/√H")
def _(case: Case) -> Trace:
    return attention(case, scale=len(case.q) ** -0.5)


@fault("the scale is 1/d_k")
def _(case: Case) -> Trace:
    return attention(case, scale=1 / case.d_k)


@fault("the scale is √d_k")
def _(case: Case) -> Trace:
    return attention(case, scale=case.d_k**0.5)


@fault("the scale is 1/√d_v")
def _(case: Case) -> Trace:
    return attention(case, scale=case.d_v**-0.5)


@fault("the scale is 1/√Tk")
def _(case: Case) -> Trace:
    return attention(case, scale=case.keys.shape[1] ** -0.5)


@fault("the scale that the case gives is ignored")
def _(case: Case) -> Trace:
    return attention(case, scale=case.d_k**-0.5)


@fault("the scale is kept in float32")
def _(case: Case) -> Trace:
    return attention(case, scale=float(np.float32(case.scale)))


@fault("the scale is applied to the weights, after softmax")
def _(case: Case) -> Trace:
    def weigh(scores: Array) -> tuple[Array, Array]:
        weights, lse = softmax(scores)
        return weights * case.scale, lse

    return attention(case, scale=1.0, weigh=weigh)


@fault("scores are held in float16")
def _(case: Case) -> Trace:
    return attention(case, scores=lambda scores: scores.astype(np.float16).astype(np.float64))


@fault("scores are held in float32")
def _(case: Case) -> Trace:
    return attention(case, scores=lambda scores: scores.astype(np.float32).astype(np.float64))


@fault("softmax runs in float32 and shows the scores in float64")
def _(case: Case) -> Trace:
    def weigh(scores: Array) -> tuple[Array, Array]:
        weights, lse = softmax(scores.astype(np.float32))
        return weights.astype(np.float64), lse.astype(np.float64)

    return attention(case, weigh=weigh)


# Heads


@fault("key-value heads are tiled, not repeated")
def _(case: Case) -> Trace:
    times = len(case.q) // len(case.keys)
    return attention(case, keys=np.tile(keys_of(case), (times, 1, 1)), values=np.tile(values_of(case), (times, 1, 1)))


@fault("key heads are repeated, value heads tiled")
def _(case: Case) -> Trace:
    return attention(case, values=np.tile(values_of(case), (len(case.q) // len(case.keys), 1, 1)))


@fault("key-value head 0 serves all query heads")
def _(case: Case) -> Trace:
    return attention(case, keys=keys_of(case)[:1], values=values_of(case)[:1])


@fault("heads are merged without a transpose")
def _(case: Case) -> Trace:
    trace = attention(case)
    return Trace(trace.output.swapaxes(0, 1).reshape(trace.output.shape), trace.inside)


@fault("the fused projection is read head by head where it is stored in blocks")
def _(case: Case) -> Trace:
    if case.q.shape[1] != case.keys.shape[1]:  # no self-attention: nothing was fused
        return attention(case)
    groups, rows = len(case.keys), case.q.shape[1]
    queries, keys, values = queries_of(case), keys_of(case), values_of(case)
    tokens = np.concatenate([part.swapaxes(0, 1).reshape(rows, -1) for part in (queries, keys, values)], axis=1)
    by_group = tokens.reshape(rows, groups, -1)
    ends = np.cumsum([len(case.q) // groups * case.d_k, case.d_k])
    wrong_queries, wrong_keys, wrong_values = np.split(by_group, ends, axis=2)
    return attention(
        case,
        queries=wrong_queries.reshape(rows, len(case.q), case.d_k).swapaxes(0, 1),
        keys=wrong_keys.swapaxes(0, 1),
        values=wrong_values.swapaxes(0, 1),
    )


@fault("a transposed view of the queries is read as if it were contiguous")
def _(case: Case) -> Trace:
    in_memory = np.ascontiguousarray(queries_of(case).swapaxes(0, 1))
    return attention(case, queries=in_memory.reshape(case.q.shape))


@fault("a transposed view of the keys is read as if it were contiguous")
def _(case: Case) -> Trace:
    in_memory = np.ascontiguousarray(keys_of(case).swapaxes(1, 2))
    return attention(case, keys=in_memory.reshape(case.keys.shape))


@fault("keys and rows are told apart by their number, and the first that fits is taken")
def _(case: Case) -> Trace:
    weights = attention(case).weights
    rows, keys = weights.shape[1:]
    trace = attention(case)
    wrong = weights.swapaxes(1, 2) if rows == keys else weights
    return Trace(wrong @ repeated(case, values_of(case)), {**trace.inside, "weights": wrong})


# Norm and masks that nobody declared


def unit(rows: Array) -> Array:
    return rows / np.maximum(np.sqrt((rows**2).sum(axis=-1, keepdims=True)), 1e-300)


@fault("queries and keys are normalised after the biases, undeclared")
def _(case: Case) -> Trace:
    return attention(case, queries=unit(queries_of(case)), keys=unit(keys_of(case)))


@fault("queries and keys are normalised before the biases, undeclared")
def _(case: Case) -> Trace:
    return attention(replace(case, q=unit(case.q), keys=unit(case.keys)))


@fault("a causal mask, undeclared")
def _(case: Case) -> Trace:
    visible = np.tri(case.q.shape[1], case.keys.shape[1], dtype=bool)
    return attention(case, scores=lambda scores: np.where(visible, scores, -np.inf))


@fault("keys are rotated by their position and queries by theirs, undeclared")
def _(case: Case) -> Trace:
    def rotated(rows: Array) -> Array:
        pairs = rows.shape[-1] // 2
        angle = np.arange(rows.shape[1])[:, None] * 10000.0 ** (-np.arange(pairs) / max(pairs, 1))
        left, right = rows[..., :pairs], rows[..., pairs : 2 * pairs]
        turned = [left * np.cos(angle) - right * np.sin(angle), left * np.sin(angle) + right * np.cos(angle)]
        return np.concatenate([*turned, rows[..., 2 * pairs :]], axis=-1)

    return attention(case, queries=rotated(queries_of(case)), keys=rotated(keys_of(case)))


# Softmax


@fault("no maximum is subtracted")
def _(case: Case) -> Trace:
    return attention(case, weigh=lambda scores: softmax(scores, peak=np.zeros_like(scores[..., :1])))


@fault("the running maximum starts at 0")
def _(case: Case) -> Trace:
    return attention(case, weigh=lambda scores: softmax(scores, np.maximum(scores.max(axis=-1, keepdims=True), 0.0)))


@fault("one maximum serves all rows of a head")
def _(case: Case) -> Trace:
    return attention(
        case,
        weigh=lambda scores: softmax(
            scores, np.broadcast_to(scores.max(axis=(1, 2), keepdims=True), (*scores.shape[:2], 1))
        ),
    )


@fault("one maximum serves all heads")
def _(case: Case) -> Trace:
    return attention(case, weigh=lambda scores: softmax(scores, np.full_like(scores[..., :1], scores.max())))


@fault("softmax runs over the query axis")
def _(case: Case) -> Trace:
    def weigh(scores: Array) -> tuple[Array, Array]:
        return softmax(scores.swapaxes(1, 2))[0].swapaxes(1, 2), softmax(scores)[1]

    return attention(case, weigh=weigh)


@fault("softmax runs over the head axis")
def _(case: Case) -> Trace:
    return attention(case, weigh=lambda scores: (softmax(scores.T)[0].T, softmax(scores)[1]))


@fault("powers of two stand for exponentials")
def _(case: Case) -> Trace:
    return attention(case, weigh=lambda scores: softmax(scores * np.log(2)))


@fault("the running sum is not rescaled when the maximum rises")
def _(case: Case) -> Trace:
    def weigh(scores: Array) -> tuple[Array, Array]:
        running = np.maximum.accumulate(scores, axis=-1)
        total = np.exp(scores - running).sum(axis=-1, keepdims=True)
        peak = running[..., -1:]
        return np.exp(scores - peak) / total, (peak + np.log(total))[..., 0]

    return attention(case, weigh=weigh)


@fault("normalised sigmoids stand for softmax")
def _(case: Case) -> Trace:
    def weigh(scores: Array) -> tuple[Array, Array]:
        shares = 1 / (1 + np.exp(-scores))
        return shares / shares.sum(axis=-1, keepdims=True), np.log(shares.sum(axis=-1))

    return attention(case, weigh=weigh)


@fault("weights are cut to 0 below a thousandth")
def _(case: Case) -> Trace:
    return with_weights(case, lambda weights: np.where(weights < 1e-3, 0.0, weights))


# Hidden keys


@fault("the last block of four is padded with zero keys, which take a share")
def _(case: Case) -> Trace:
    return attention(case, weigh=lambda scores: with_zero_keys(scores, -scores.shape[-1] % 4))


@fault("one undeclared zero key takes a share")
def _(case: Case) -> Trace:
    return attention(case, weigh=lambda scores: with_zero_keys(scores, 1))


@fault("the last key is left out")
def _(case: Case) -> Trace:
    def without_last(scores: Array) -> Array:
        return np.where(np.arange(scores.shape[-1]) == max(scores.shape[-1] - 1, 1), -np.inf, scores)

    return attention(case, scores=without_last)


@fault("what does not fill a block of four keys is left out")
def _(case: Case) -> Trace:
    def whole_blocks(scores: Array) -> Array:
        count = scores.shape[-1]
        return scores if count < 4 else np.where(np.arange(count) >= count - count % 4, -np.inf, scores)

    return attention(case, scores=whole_blocks)


# Stand-ins


@stand_in("uniform weights")
def _(case: Case) -> Trace:
    return with_weights(case, lambda weights: np.full_like(weights, 1 / weights.shape[-1]))


@stand_in("one-hot weights")
def _(case: Case) -> Trace:
    return with_weights(
        case, lambda weights: (np.arange(weights.shape[-1]) == weights.argmax(axis=-1)[..., None]).astype(float)
    )


@stand_in("squared weights, normalised again")
def _(case: Case) -> Trace:
    return with_weights(case, lambda weights: weights**2 / (weights**2).sum(axis=-1, keepdims=True))


def everywhere(case: Case, number: float) -> Trace:
    trace = attention(case)
    return Trace(
        np.full_like(trace.output, number),
        {name: np.full_like(array, number) for name, array in trace.inside.items()},
    )


@stand_in("zeros")
def _(case: Case) -> Trace:
    return everywhere(case, 0.0)


@stand_in("NaN")
def _(case: Case) -> Trace:
    return everywhere(case, np.nan)


@stand_in("infinity")
def _(case: Case) -> Trace:
    return everywhere(case, np.inf)


@stand_in("the same output for everything")
def _(case: Case) -> Trace:
    trace = attention(case)
    return Trace(np.full_like(trace.output, 0.25), trace.inside)


@stand_in("the mean of the values")
def _(case: Case) -> Trace:
    trace = attention(case)
    mean = repeated(case, values_of(case)).mean(axis=1, keepdims=True)
    return Trace(np.broadcast_to(mean, trace.output.shape).copy(), trace.inside)
