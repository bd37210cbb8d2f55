"""Attention written wrongly: mistakes seen in real code, each a small numpy implementation of its own.

`FAULTS` holds them by what the mistake is. Those in `FEATURED` know all features, and make their one mistake in one of
the steps of `steps`; the others know no feature but key shifts, and say so of other cases. `STAND_INS` do not compute
attention at all. `UNSEEN` are the mistakes that change no output, as softmax does not see a common shift of a row's
scores, or change it by less than rounding may.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import steps
from steps import STEPS, distance, eps_of, gain_of, normed, repeated, turned
from variations import of_plain_cases

from verify_attention.model import Array, Case, Implementation, Trace

FAULTS: dict[str, Implementation] = {}
FEATURED: set[str] = set()
STAND_INS: dict[str, Implementation] = {}
UNSEEN: set[str] = set()


def fault(mistake: str, *, unseen: bool = False) -> Callable[[Implementation], Implementation]:
    def enter(implementation: Implementation) -> Implementation:
        FAULTS[mistake] = of_plain_cases(implementation)
        if unseen:
            UNSEEN.add(mistake)
        return implementation

    return enter


def stand_in(what: str) -> Callable[[Implementation], Implementation]:
    def enter(implementation: Implementation) -> Implementation:
        STAND_INS[what] = of_plain_cases(implementation)
        return implementation

    return enter


# Attention in steps, right as they stand; a fault below swaps one.


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


# Mistakes that depend on sizes, places, signs and special numbers


def only_when(mistake: str, usual: str, when: Callable[[Case], bool]) -> None:
    """Enter a mistake that is made in some cases only."""
    wrong = FAULTS[usual]
    fault(mistake, unseen=usual in UNSEEN)(lambda case: wrong(case) if when(case) else attention(case))


def only_in(
    mistake: str, wrong: Implementation, *, heads: int = 0, rows: int = 0, channels: int = 0, unseen: bool = False
) -> None:
    """Enter a mistake that is made from some head, row or channel of the output on."""

    def partly(case: Case) -> Trace:
        right, spoilt = attention(case), wrong(case)
        places = slice(heads, None), slice(rows, None)
        right.output[*places, channels:] = spoilt.output[*places, channels:]
        for name, array in right.inside.items():
            if not channels:
                array[places] = spoilt.inside[name][places]
        return right

    fault(mistake, unseen=unseen)(partly)


def remainder(count: int, block: int) -> int:
    """Return where what does not fill a block begins; behind everything where there is no full block."""
    return count if count < block else count - count % block


def hidden(case: Case, keys: Array) -> Trace:
    """Attend without some keys, where others are left."""
    keys = repeated(case, np.broadcast_to(keys, case.keys.shape[:2]))[:, None]
    keys = keys & ~keys.all(axis=-1, keepdims=True)
    return attention(case, scores=lambda scores: np.where(keys, -np.inf, scores))


only_when("one row: no maximum is subtracted", "no maximum is subtracted", lambda case: case.q.shape[1] == 1)
only_when(
    "one row: the running maximum starts at 0", "the running maximum starts at 0", lambda case: case.q.shape[1] == 1
)
only_when("one row: the Q bias is ignored", "the Q bias is ignored", lambda case: case.q.shape[1] == 1)
for where, there in {
    "in grouped heads": lambda case: 1 < len(case.keys) < len(case.q),
    "beside key shifts": lambda case: "key_shifts" in case.features,
    "with one key": lambda case: case.keys.shape[1] == 1,
    "with more rows than keys": lambda case: case.q.shape[1] > case.keys.shape[1] > 1,
}.items():
    only_when(f"{where} no maximum is subtracted", "no maximum is subtracted", there)
    only_when(f"{where} the running maximum starts at 0", "the running maximum starts at 0", there)
only_when(
    "more rows than keys: a causal mask", "a causal mask, undeclared", lambda case: case.q.shape[1] > case.keys.shape[1]
)
only_when(
    "without values the V bias is dropped",
    "the V bias is dropped when no mask is given",
    lambda case: case.values is None,
)
for ratio in (2, 3, 4):
    only_when(
        f"{ratio} query heads for each key-value head: they are tiled, not repeated",
        "key-value heads are tiled, not repeated",
        lambda case, ratio=ratio: len(case.q) == ratio * len(case.keys),
    )
only_when(
    "a scale of 1 is taken for none given", "the scale that the case gives is ignored", lambda case: case.scale == 1
)


def same_biases(case: Case) -> bool:
    return np.array_equal(case.bQ, repeated(case, case.bK))


only_when("the Q bias is ignored where it is the K bias too", "the Q bias is ignored", same_biases)
only_when("the K bias is ignored where it is the Q bias too", "the K bias is ignored", same_biases)


only_in("the Q bias is ignored from the sixth row on", FAULTS["the Q bias is ignored"], rows=5)
only_in("the K bias is ignored from the sixth row on", FAULTS["the K bias is ignored"], rows=5, unseen=True)
only_in("the Q bias is ignored from the sixth head on", FAULTS["the Q bias is ignored"], heads=5)
only_in("the K bias is ignored from the sixth head on", FAULTS["the K bias is ignored"], heads=5, unseen=True)
only_in("the V bias is added twice from the sixth head on", FAULTS["the V bias is added to the output twice"], heads=5)
only_in("heads from the 17th on are 0", STAND_INS["zeros"], heads=16)
only_in("heads from the 33rd on are 0", STAND_INS["zeros"], heads=32)
only_in("rows from the 17th on are 0", STAND_INS["zeros"], rows=16)
only_in("rows from the 65th on are 0", STAND_INS["zeros"], rows=64)
only_in("channels of values from the ninth on are 0", STAND_INS["zeros"], channels=8)
only_in("channels of values from the 65th on are 0", STAND_INS["zeros"], channels=64)


for block in (8, 16, 32, 64):

    @fault(f"what does not fill a block of {block} rows is 0")
    def _(case: Case, block: int = block) -> Trace:
        trace = attention(case)
        rest = remainder(case.q.shape[1], block)
        for array in (trace.output, *trace.inside.values()):
            array[:, rest:] = 0.0
        return trace

    @fault(f"what does not fill a block of {block} channels of queries and keys is left out")
    def _(case: Case, block: int = block) -> Trace:
        queries = queries_of(case)
        queries[..., remainder(case.d_k, block) :] = 0.0
        return attention(case, queries=queries)

    @fault(f"what does not fill a block of {block} channels of values is 0")
    def _(case: Case, block: int = block) -> Trace:
        trace = attention(case)
        trace.output[..., remainder(trace.output.shape[-1], block) :] = 0.0
        return trace

    @fault(f"what does not fill a block of {block} keys is left out")
    def _(case: Case, block: int = block) -> Trace:
        count = case.keys.shape[1]
        return hidden(case, np.arange(count) >= remainder(count, block))

    @fault(f"the last block of {block} is padded with zero keys, which take a share")
    def _(case: Case, block: int = block) -> Trace:
        return attention(case, weigh=lambda scores: with_zero_keys(scores, -scores.shape[-1] % block))

    @fault(f"the maximum is that of the first {block} keys")
    def _(case: Case, block: int = block) -> Trace:
        return attention(case, weigh=lambda scores: softmax(scores, scores[..., :block].max(axis=-1, keepdims=True)))

    @fault(f"the running sum is not rescaled from one block of {block} keys to the next")
    def _(case: Case, block: int = block) -> Trace:
        def weigh(scores: Array) -> tuple[Array, Array]:
            ends = np.minimum(np.arange(scores.shape[-1]) // block * block + block, scores.shape[-1]) - 1
            running = np.maximum.accumulate(scores, axis=-1)[..., ends]
            total = np.exp(scores - running).sum(axis=-1, keepdims=True)
            peak = running[..., -1:]
            return np.exp(scores - peak) / total, (peak + np.log(total))[..., 0]

        return attention(case, weigh=weigh)

    @fault(f"only the last {block} keys are seen")
    def _(case: Case, block: int = block) -> Trace:
        count = case.keys.shape[1]
        return hidden(case, np.arange(count) < count - block)


for first in (32, 64, 128):

    @fault(f"keys from number {first} on are ignored")
    def _(case: Case, first: int = first) -> Trace:
        return hidden(case, np.arange(case.keys.shape[1]) >= first)

    @fault(f"the K bias does not reach the keys from number {first} on")
    def _(case: Case, first: int = first) -> Trace:
        keys = keys_of(case)
        keys[:, first:] -= case.bK[:, None]
        return attention(case, keys=keys)


@fault("more than 48 keys: the last is 0")
def _(case: Case) -> Trace:
    keys = keys_of(case)
    if keys.shape[1] > 48:
        keys[:, -1] = 0.0
    return attention(case, keys=keys)


@fault("the maximum leaves out the last key")
def _(case: Case) -> Trace:
    last = max(case.keys.shape[1] - 1, 1)
    return attention(case, weigh=lambda scores: softmax(scores, scores[..., :last].max(axis=-1, keepdims=True)))


@fault("the maximum leaves out the first key")
def _(case: Case) -> Trace:
    first = min(case.keys.shape[1] - 1, 1)
    return attention(case, weigh=lambda scores: softmax(scores, scores[..., first:].max(axis=-1, keepdims=True)))


for start in (-1e4, -1e9):

    @fault(f"the running maximum starts at {start:g}")
    def _(case: Case, start: float = start) -> Trace:
        return attention(
            case, weigh=lambda scores: softmax(scores, np.maximum(scores.max(axis=-1, keepdims=True), start))
        )


@fault("key-value heads from the fourth on are the third")
def _(case: Case) -> Trace:
    used = np.minimum(np.arange(len(case.keys)), 2)
    return attention(case, keys=keys_of(case)[used], values=values_of(case)[used])


@fault("two keys: their weights are swapped")
def _(case: Case) -> Trace:
    return with_weights(case, lambda weights: weights[..., ::-1] if weights.shape[-1] == 2 else weights)


@fault("without a K bias the key shifts are ignored")
def _(case: Case) -> Trace:
    return attention(case if case.bK.any() else replace(case, features={}))


@fault("beside a V bias the key shifts are ignored")
def _(case: Case) -> Trace:
    return attention(case if case.bV is None else replace(case, features={}))


@fault("beside a Q bias the key shifts are ignored")
def _(case: Case) -> Trace:
    return attention(replace(case, features={}) if case.bQ.any() else case)


# Padding is told by its numbers


def zero(vectors: Array) -> Array:
    return ~vectors.any(axis=-1)


@fault("a key of zeros is taken for padding")
def _(case: Case) -> Trace:
    return hidden(case, zero(case.keys))


@fault("a key that is 0 with its bias is taken for padding")
def _(case: Case) -> Trace:
    return hidden(case, zero(keys_of(case)) & ~zero(case.keys))


@fault("a value of zeros is taken for padding")
def _(case: Case) -> Trace:
    return hidden(case, False if case.values is None else zero(case.values))


@fault("a value that is 0 with its bias is taken for padding")
def _(case: Case) -> Trace:
    return hidden(case, zero(values_of(case)) & ~zero(values_of(case, with_bias=False)))


@fault("a query of zeros is taken for padding, and its output is 0")
def _(case: Case) -> Trace:
    trace = attention(case)
    trace.output[zero(case.q)] = 0.0
    return trace


@fault("a query that is 0 with its bias is taken for padding, and its output is 0")
def _(case: Case) -> Trace:
    trace = attention(case)
    trace.output[zero(queries_of(case)) & ~zero(case.q)] = 0.0
    return trace


@fault("a score of 0 is taken for a masked one")
def _(case: Case) -> Trace:
    def without_zeros(scores: Array) -> Array:
        masked = (scores == 0) & scores.any(axis=-1, keepdims=True)
        return np.where(masked, -np.inf, scores)

    return attention(case, scores=without_zeros)


@fault("equal keys are counted once")
def _(case: Case) -> Trace:
    again = np.array(
        [
            [any(np.array_equal(key, other) for other in keys[:place]) for place, key in enumerate(keys)]
            for keys in case.keys
        ]
    )
    return hidden(case, again)


@fault("of equal queries only the first is answered")
def _(case: Case) -> Trace:
    trace = attention(case)
    for rows, output in zip(case.q, trace.output, strict=True):
        for place, row in enumerate(rows):
            if any(np.array_equal(row, other) for other in rows[:place]):
                output[place] = 0.0
    return trace


# Is there a bias? Asked wrongly


def asked(whether: str, there: Callable[[Array], bool]) -> None:
    """Enter the mistake for each of the three biases."""
    fault(f"a Q bias is taken for none {whether}")(
        lambda case: attention(case if there(case.bQ) else replace(case, bQ=np.zeros_like(case.bQ)))
    )
    fault(f"a K bias is taken for none {whether}", unseen=True)(
        lambda case: attention(case if there(case.bK) else replace(case, bK=np.zeros_like(case.bK)))
    )
    fault(f"a V bias is taken for none {whether}")(
        lambda case: attention(case if case.bV is None or there(case.bV) else replace(case, bV=None))
    )


asked("where its first number is 0", lambda bias: bool(bias[..., 0].any()))
asked("where its last number is 0", lambda bias: bool(bias[..., -1].any()))
asked("where its numbers add up to 0", lambda bias: bool(bias.sum() != 0))
asked("where the first head has none", lambda bias: bool(bias[0].any()))
asked("where the last head has none", lambda bias: bool(bias[-1].any()))
asked("where no number of it is above 0", lambda bias: bool((bias > 0).any()))
asked("where all its numbers are equal", lambda bias: bool(np.ptp(bias) > 0))


# Large and small numbers are cut


def cut(numbers: Array, least: float) -> Array:
    return np.where(np.abs(numbers) < least, 0.0, numbers)


for bound in (100.0, 1e4):

    @fault(f"queries are clipped at ±{bound:g}")
    def _(case: Case, bound: float = bound) -> Trace:
        return attention(case, queries=queries_of(case).clip(-bound, bound))

    @fault(f"keys are clipped at ±{bound:g}")
    def _(case: Case, bound: float = bound) -> Trace:
        return attention(case, keys=keys_of(case).clip(-bound, bound))

    @fault(f"values are clipped at ±{bound:g}")
    def _(case: Case, bound: float = bound) -> Trace:
        return attention(case, values=values_of(case).clip(-bound, bound))

    @fault(f"scores are clipped at ±{bound:g} for softmax")
    def _(case: Case, bound: float = bound) -> Trace:
        return attention(case, weigh=lambda scores: (softmax(scores.clip(-bound, bound))[0], softmax(scores)[1]))


for least in (1e-12, 1e-45, 1e-200):

    @fault(f"weights below {least:g} are 0", unseen=least < 1e-12)
    def _(case: Case, least: float = least) -> Trace:
        return with_weights(case, lambda weights: np.where(weights < least, 0.0, weights))


for gap in (50.0, 88.0, 600.0):

    @fault(f"gaps of scores are clipped at −{gap:g}", unseen=True)
    def _(case: Case, gap: float = gap) -> Trace:
        return attention(
            case, weigh=lambda scores: softmax(np.maximum(scores, scores.max(axis=-1, keepdims=True) - gap))
        )


@fault("keys 700 below the row's maximum have half of the weight between them")
def _(case: Case) -> Trace:
    def weigh(scores: Array) -> tuple[Array, Array]:
        weights, lse = softmax(scores)
        far = scores <= scores.max(axis=-1, keepdims=True) - 700
        count = far.sum(axis=-1, keepdims=True)
        wrong = np.where(far, 0.5 / np.maximum(count, 1), weights / 2)
        return np.where(count > 0, wrong, weights), np.where(count[..., 0] > 0, lse + np.log(2), lse)

    return attention(case, weigh=weigh)


@fault("queries below a millionth are 0")
def _(case: Case) -> Trace:
    return attention(case, queries=cut(queries_of(case), 1e-6))


@fault("keys below a millionth are 0")
def _(case: Case) -> Trace:
    return attention(case, keys=cut(keys_of(case), 1e-6))


@fault("values below a millionth are 0")
def _(case: Case) -> Trace:
    return attention(case, values=cut(values_of(case), 1e-6))


@fault("a K bias below a millionth is 0", unseen=True)
def _(case: Case) -> Trace:
    return attention(replace(case, bK=cut(case.bK, 1e-6)))


@fault("key shifts below a thousandth are 0")
def _(case: Case) -> Trace:
    return attention(replace(case, features={name: cut(shifts, 1e-3) for name, shifts in case.features.items()}))


@fault("key shifts are clipped at ±100")
def _(case: Case) -> Trace:
    return attention(replace(case, features={name: shifts.clip(-100, 100) for name, shifts in case.features.items()}))


@fault("scales below a hundredth are a hundredth")
def _(case: Case) -> Trace:
    return attention(case, scale=max(case.scale, 0.01))


@fault("scales above 10 are 10")
def _(case: Case) -> Trace:
    return attention(case, scale=min(case.scale, 10.0))


@fault("the output is held in float32")
def _(case: Case) -> Trace:
    trace = attention(case)
    return Trace(trace.output.astype(np.float32).astype(np.float64), trace.inside)


# More of the kind


@fault("where one key has all the weight, its value is the output, without the V bias")
def _(case: Case) -> Trace:
    trace = attention(case)
    without = trace.weights @ repeated(case, values_of(case, with_bias=False))
    alone = (trace.weights.max(axis=-1) == 1.0) & (trace.weights.shape[-1] > 1)
    return Trace(np.where(alone[..., None], without, trace.output), trace.inside)


@fault("of equal largest scores only the first counts")
def _(case: Case) -> Trace:
    def first_of_largest(scores: Array) -> Array:
        largest = scores == scores.max(axis=-1, keepdims=True)
        return np.where(largest & (largest.cumsum(axis=-1) > 1), -np.inf, scores)

    return attention(case, scores=first_of_largest)


@fault("the LSE is that of the last block of 64 keys", unseen=True)
def _(case: Case) -> Trace:
    def weigh(scores: Array) -> tuple[Array, Array]:
        last = (scores.shape[-1] - 1) // 64 * 64
        return softmax(scores)[0], softmax(scores[..., last:])[1]

    return attention(case, weigh=weigh)


@fault("keys and values are swapped where they are equally wide")
def _(case: Case) -> Trace:
    if case.values is None or case.d_k != case.d_v:
        return attention(case)
    return attention(replace(case, keys=case.values, values=case.keys))


@fault("the K bias has lost its signs", unseen=True)
def _(case: Case) -> Trace:
    return attention(replace(case, bK=np.abs(case.bK)))


@fault("the V bias has lost its signs")
def _(case: Case) -> Trace:
    return attention(case if case.bV is None else replace(case, bV=np.abs(case.bV)))


@fault("the key shifts of head 0 are every head's")
def _(case: Case) -> Trace:
    features = {name: np.broadcast_to(shifts[:1], shifts.shape) for name, shifts in case.features.items()}
    return attention(replace(case, features=features))


@fault("beside key shifts the K bias is ignored", unseen=True)
def _(case: Case) -> Trace:
    return attention(replace(case, bK=np.zeros_like(case.bK)) if "key_shifts" in case.features else case)


@fault("the K bias is added to the key shifts of the first key only")
def _(case: Case) -> Trace:
    keys = keys_of(case)
    if "key_shifts" in case.features:
        keys[:, 1:] -= case.bK[:, None]
    return attention(case, keys=keys)


for count in (1, 2):

    @fault(f"the last {count} of more than {2 * count} rows have the Q bias twice")
    def _(case: Case, count: int = count) -> Trace:
        queries = queries_of(case)
        if queries.shape[1] > 2 * count:
            queries[:, -count:] += case.bQ[:, None]
        return attention(case, queries=queries)


DROPPED = "the V bias is dropped when no mask is given"
for first in (5, 16, 64):
    only_in(f"the V bias is dropped from row {first} on", FAULTS[DROPPED], rows=first)

for what, when in {
    "with more than five rows": lambda case: case.q.shape[1] > 5,
    "with more than 64 keys": lambda case: case.keys.shape[1] > 64,
    "at width one": lambda case: case.d_k == 1,
    "at widths above 64": lambda case: case.d_k > 64,
    "at scales above one": lambda case: case.scale > 1,
    "at scales below a hundredth": lambda case: case.scale < 0.01,
    "beside large queries": lambda case: np.abs(case.q).max() > 100,
}.items():
    only_when(f"the V bias is dropped {what}", DROPPED, when)


# With features: attention in steps, one of them wrong


def featured(mistake: str, *, unseen: bool = False, **wrong: Any) -> None:
    """Enter a mistake that swaps steps."""
    FAULTS[mistake] = STEPS.but(**wrong)
    FEATURED.add(mistake)
    if unseen:
        UNSEEN.add(mistake)


def altered(mistake: str, name: str, change: Callable[[Any, Case], Any], *, unseen: bool = False) -> None:
    """Enter a mistake that changes the parameters of a feature; None: it is forgotten."""

    def wrong(case: Case) -> Trace:
        if name not in case.features:
            return STEPS(case)
        changed = change(case.features[name], case)
        others = {other: own for other, own in case.features.items() if other != name}
        return STEPS(replace(case, features=others if changed is None else {**others, name: changed}))

    FAULTS[mistake] = wrong
    FEATURED.add(mistake)
    if unseen:
        UNSEEN.add(mistake)


def forgotten(_own: Any, _case: Case) -> None:
    return None


# Masks


featured("true in a mask means hidden", mask=lambda case: ~case.features["mask"])
featured("a mask is added to the scores as 0 and 1", hide=lambda case, scores, seen: scores + seen)
featured("scores are multiplied by the mask", hide=lambda case, scores, seen: scores * seen)
featured("hidden scores are −1e−9", hide=lambda case, scores, seen: np.where(seen, scores, -1e-9))
featured("hidden scores are 0", hide=lambda case, scores, seen: np.where(seen, scores, 0.0))
featured("hidden scores are lowered by 10", hide=lambda case, scores, seen: scores - 10.0 * ~seen)
featured("hidden scores are −10000", hide=lambda case, scores, seen: np.where(seen, scores, -1e4))
featured(
    "the mask of head 0 is every head's",
    mask=lambda case: np.broadcast_to(case.features["mask"][:1], case.scores_shape),
)
featured(
    "the mask of row 0 is every row's",
    mask=lambda case: np.broadcast_to(case.features["mask"][:, :1], case.scores_shape),
)
featured("a mask is forgotten", mask=lambda case: np.ones(case.scores_shape, dtype=bool))


def transposed(case: Case) -> Array:
    mask = case.features["mask"]
    return mask.swapaxes(1, 2) if mask.shape[1] == mask.shape[2] else mask


featured("a square mask is transposed", mask=transposed)
featured(
    "a mask is read in the order of its columns",
    mask=lambda case: np.ascontiguousarray(case.features["mask"].swapaxes(1, 2)).reshape(case.scores_shape),
)
featured(
    "masks of query heads are tiled over groups",
    mask=lambda case: case.features["mask"][np.arange(len(case.q)) % len(case.keys) * steps.in_groups(case)],
)


def masked_late(case: Case) -> Trace:
    """Take the row's maximum over all scores, hidden ones too, and leave those out afterwards."""
    seen = STEPS.seen(case)
    if seen is None or case.features.keys() & {"normaliser", "fill"}:
        return STEPS(case)
    without = tuple(name for name in STEPS.on_scores if name != "hiding")
    queries = STEPS.vectors(case, "q")
    everything = STEPS.but(on_scores=without).scores(case, queries, STEPS.vectors(case, "k"))

    def normalise(_case: Case, scores: Array, extra: list[steps.Column]) -> tuple[Array, Array, Array]:
        logits = np.concatenate([scores, *(logit[..., None] for logit, _ in extra)], axis=-1)
        peak = np.maximum(everything.max(axis=-1), logits.max(axis=-1))[..., None]
        with np.errstate(all="ignore"):
            powers = np.exp(logits - peak)
            total = powers.sum(axis=-1, keepdims=True)
            weights = powers / total
            return weights[..., : scores.shape[-1]], weights[..., scores.shape[-1] :], (peak + np.log(total))[..., 0]

    return STEPS.but(normalise=normalise)(case)


FAULTS["the row's maximum is that of hidden scores too"] = masked_late
FEATURED.add("the row's maximum is that of hidden scores too")


def only_one_hides(first: str) -> Implementation:
    def wrong(case: Case) -> Trace:
        others = {"mask", "causal", "window"} - {first}
        if first not in case.features:
            return STEPS(case)
        everything = {name: lambda case: np.ones(case.scores_shape, dtype=bool) for name in others}
        return STEPS.but(**everything)(case)

    return wrong


for name in ("mask", "causal", "window"):
    FAULTS[f"beside {name} nothing else hides"] = only_one_hides(name)
    FEATURED.add(f"beside {name} nothing else hides")


# Causality and windows


def up_to(change: Callable[[Case], Any]) -> dict[str, Any]:
    """Return a causal step whose limit is moved by a number of keys."""

    def wrong(case: Case) -> Array:
        behind = distance(case) + change(case)
        return np.broadcast_to(behind >= 0, case.scores_shape)

    return {"causal": wrong}


def missing(case: Case) -> int:
    """Return how many keys more there are than queries."""
    return case.keys.shape[1] - (case.whole or case).q.shape[1]


def with_first_key(allowed: Array) -> Array:
    """Let rows that see nothing see the first key."""
    return allowed | (~allowed.any(axis=-1, keepdims=True) & (np.arange(allowed.shape[-1]) == 0))


def is_upper_left(case: Case) -> bool:
    return case.features["causal"] == "upper-left"


featured(
    "causality is upper-left where it is lower-right",
    **up_to(lambda case: 0 if is_upper_left(case) else -missing(case)),
)
featured(
    "causality is lower-right where it is upper-left", **up_to(lambda case: missing(case) if is_upper_left(case) else 0)
)
featured("one future key is visible", **up_to(lambda _case: 1))
featured(
    "a query does not see its own key", causal=lambda case: with_first_key(up_to(lambda _case: -1)["causal"](case))
)
featured("causality is dropped", **up_to(lambda _case: 10**6))
featured(
    "causality is skipped where there are more keys than queries", **up_to(lambda case: 10**6 * (missing(case) > 0))
)
featured(
    "the last row sees the future, which the others do not",
    causal=lambda case: steps.past(case) | (np.arange(case.q.shape[1]) == case.q.shape[1] - 1)[:, None],
)


def wider(left: int, right: int) -> Callable[[Any, Case], Any]:
    def change(own: Any, _case: Case) -> Any:
        return tuple(side if side is None else max(side + by, 0) for side, by in zip(own, (left, right), strict=True))

    return change


for by, word in ((1, "wide"), (-1, "narrow")):
    altered(f"a window is one key too {word} on its left", "window", wider(by, 0))
    altered(f"a window is one key too {word} on its right", "window", wider(0, by))
altered("a window has no left side", "window", lambda own, _case: (None, own[1]))
altered("a window has no right side", "window", lambda own, _case: (own[0], None))
altered("the sides of a window are swapped", "window", lambda own, _case: (own[1], own[0]))
altered("a window is forgotten", "window", forgotten)


def window_by_rows(case: Case) -> Array:
    left, right = case.features["window"]
    behind = distance(case) - (0 if case.features.get("causal") == "upper-left" else missing(case))
    allowed = (behind <= (10**6 if left is None else left)) & (-behind <= (10**6 if right is None else right))
    return with_first_key(np.broadcast_to(allowed, case.scores_shape))


featured("a window follows the row's number, not its place on the key axis", window=window_by_rows)


# Heads


def tiled(case: Case, of_groups: Array) -> Array:
    return np.tile(of_groups, (len(case.q) // len(of_groups), *[1] * (of_groups.ndim - 1)))


def tiled_values(case: Case) -> Array:
    values = case.values if case.values is not None else np.stack([np.eye(case.keys.shape[1])] * len(case.keys))
    return tiled(case, values) + steps.value_bias(case)


featured("beside features, key-value heads are tiled", keys=lambda case: tiled(case, case.keys), values=tiled_values)


def with_columns(change: Callable[[Case, Array, list[steps.Column]], list[steps.Column]]) -> dict[str, Any]:
    return {"columns": lambda case, queries: change(case, queries, steps.columns(case, queries))}


def appended(name: str, change: Callable[[Array, Case], Array]) -> Callable[[Any, Case], Any]:
    return lambda own, case: {**own, name: change(own[name], case)} if name in own else own


def rolled(array: Array, _case: Case) -> Array:
    return np.roll(array, 1, axis=0)


def of_first(array: Array, _case: Case) -> Array:
    return np.broadcast_to(array[:1], array.shape).copy()


for name, inner, what in (
    ("sink", None, "the sink"),
    ("score_bias", None, "the score bias"),
    ("appended_key", "key", "the appended key"),
    ("appended_key", "value", "the appended value"),
    ("temperature", "heads", "the temperature"),
    ("alibi", "slopes", "the slope"),
    ("qk_norm", "q_gain", "the gain of queries"),
    ("qk_norm", "k_gain", "the gain of keys"),
):
    change = of_first if inner is None else appended(inner, of_first)
    altered(f"{what} of head 0 is every head's", name, change)


# Rotations


def angles_with(base: Callable[[Case], float] | None = None, width: Callable[[Case], int] | None = None) -> Any:
    def wrong(case: Case, side: str, rows: Array) -> Array:
        own = case.features["rope"]
        changed = replace(case, features={"rope": {**own, "base": base(case)}}) if base else case
        angles = steps.angles_of(changed, side, width(case) if width else None)
        return turned(rows, angles, steps.dims_of(case), steps.layout_of(case))

    return wrong


def layouts(queries: str | None, keys: str | None) -> Any:
    def wrong(case: Case, side: str, rows: Array) -> Array:
        layout = (queries if side == "q" else keys) or steps.layout_of(case)
        return turned(rows, steps.angles_of(case, side), steps.dims_of(case), layout)

    return wrong


def turning(angle: Callable[[Case, str, Array], Array]) -> Any:
    def wrong(case: Case, side: str, rows: Array) -> Array:
        angles = angle(case, side, steps.angles_of(case, side))
        return turned(rows, angles, steps.dims_of(case), steps.layout_of(case))

    return wrong


featured("queries turn in the half layout, keys in the interleaved one", rotation=layouts("half", "interleaved"))
featured("queries turn in the interleaved layout, keys in the half one", rotation=layouts("interleaved", "half"))
featured("all turn in the half layout", rotation=layouts("half", "half"))
featured("all turn in the interleaved layout", rotation=layouts("interleaved", "interleaved"))
featured("a partial rotation has the frequencies of the whole width", rotation=angles_with(width=lambda case: case.d_k))
featured("frequencies are base^(−t/r)", rotation=angles_with(width=lambda case: 2 * steps.dims_of(case)))
featured("the base is always 10000", rotation=angles_with(base=lambda case: 10000.0))
featured(
    "the base is ten times as large",
    rotation=angles_with(base=lambda case: 10 * case.features["rope"].get("base", 1e4)),
)
featured("keys are not turned", rotation=turning(lambda case, side, angles: angles * (side == "q")))
featured("queries are not turned", rotation=turning(lambda case, side, angles: angles * (side == "k")))
featured("nothing is turned", rotation=lambda case, side, rows: rows)
featured("keys turn the other way", rotation=turning(lambda case, side, angles: angles if side == "q" else -angles))
featured("all turns the other way", rotation=turning(lambda case, side, angles: -angles))
featured("keys are turned twice", rotation=turning(lambda case, side, angles: angles if side == "q" else 2 * angles))
featured(
    "angles are held in float32",
    rotation=turning(lambda case, side, angles: angles.astype(np.float32).astype(np.float64)),
)
featured("angles are in degrees", rotation=turning(lambda case, side, angles: np.deg2rad(angles)))


def places_by_row(case: Case, side: str) -> Array:
    return np.arange((case.q if side == "q" else case.keys).shape[1], dtype=np.float64) + (side == "q") * case.first_row


def turned_from_zero(case: Case, side: str, rows: Array) -> Array:
    changed = {f"{one}_positions": places_by_row(case, one) for one in ("q", "k")}
    own = {**case.features["rope"], **changed}
    return steps.rotate(replace(case, features={"rope": own}), side, rows)


featured("the first query and the first key have the position 0", rotation=turned_from_zero)
altered(
    "given positions are ignored",
    "rope",
    lambda own, case: {name: value for name, value in own.items() if not name.endswith("_positions")},
)
altered("all channels turn", "rope", lambda own, case: {**own, "rotary_dims": case.d_k // 2 * 2})


def last_channels(case: Case, side: str, rows: Array) -> Array:
    dims = steps.dims_of(case)
    angles = steps.angles_of(case, side)
    last = turned(rows[..., case.d_k - dims :], angles, dims, steps.layout_of(case))
    return np.concatenate([rows[..., : case.d_k - dims], last], axis=-1)


featured("the last channels turn, not the first", rotation=last_channels)


def reordered(change: Callable[[list[str], str], list[str]], only: str | None = None) -> dict[str, Any]:
    """Return steps whose order is changed, of one side or of both."""

    class Swapped(steps.Steps):
        def vectors(self, case: Case, side: str) -> Array:
            given = steps.order(case)
            wrong = change(list(given), side) if only in (None, side) else given
            rows = case.q if side == "q" else self.keys(case)
            for step in wrong:
                rows = getattr(self, step)(case, side, rows)
            return rows

    return {"made": Swapped()}


def entered(mistake: str, made: Implementation, *, unseen: bool = False) -> None:
    FAULTS[mistake] = made
    FEATURED.add(mistake)
    if unseen:
        UNSEEN.add(mistake)


def moved(step: str, other: str, later: bool) -> Callable[[list[str], str], list[str]]:
    """Move a step behind another, or before it, where it stands on the other side of it."""

    def change(order: list[str], _side: str) -> list[str]:
        if step not in order or other not in order or (order.index(step) > order.index(other)) == later:
            return order
        order.remove(step)
        order.insert(order.index(other) + later, step)
        return order

    return change


for side, what in (("k", "K"), ("q", "Q")):
    entered(f"the {what} bias is added after the rotation", reordered(moved("bias", "rotation", True), side)["made"])
    entered(
        f"the {what} bias is added before the rotation that it follows",
        reordered(moved("bias", "rotation", False), side)["made"],
    )
    entered(f"the {what} bias is added after the norm", reordered(moved("bias", "norm", True), side)["made"])
    entered(
        f"the {what} bias is added before the norm that it follows",
        reordered(moved("bias", "norm", False), side)["made"],
    )
entered("the norm comes after the rotation that should follow it", reordered(moved("norm", "rotation", True))["made"])
entered("the norm comes before the rotation that it should follow", reordered(moved("norm", "rotation", False))["made"])


def turned_values(case: Case) -> Array:
    values = steps.biased_values(case)
    if "rope" not in case.features or case.d_v < 2:
        return values
    dims = case.d_v // 2 * 2
    own = {**case.features["rope"], "rotary_dims": dims}
    return steps.rotate(replace(case, features={"rope": own}), "k", values)


featured("values turn as keys do", values=turned_values)


# Norms


def norm_with(kind: str | None = None, eps: float = 1.0, sides: str = "qk") -> Any:
    def wrong(case: Case, side: str, rows: Array) -> Array:
        if side not in sides:
            return rows
        own = kind or case.features["qk_norm"]["kind"]
        return normed(rows, own, eps * eps_of(case)) * gain_of(case, side)

    return wrong


featured("the norm is forgotten", norm=lambda case, side, rows: rows)
featured("only queries are normed", norm=norm_with(sides="q"))
featured("only keys are normed", norm=norm_with(sides="k"))
featured("eps is a thousand times as large", norm=norm_with(eps=1e3))
featured("eps is a thousandth", norm=norm_with(eps=1e-3))
featured("the norm is always that of the length", norm=norm_with("l2"))
featured("the norm is always that of the root mean square", norm=norm_with("rms"))
featured("the norm is always LayerNorm", norm=norm_with("layer"))
featured(
    "gains are forgotten", norm=lambda case, side, rows: normed(rows, case.features["qk_norm"]["kind"], eps_of(case))
)
featured(
    "gains are counted from 1",
    norm=lambda case, side, rows: steps.norm(case, side, rows) / gain_of(case, side) * (1 + gain_of(case, side)),
)
featured(
    "the gains of queries and keys are swapped",
    norm=lambda case, side, rows: (
        normed(rows, case.features["qk_norm"]["kind"], eps_of(case)) * gain_of(case, "k" if side == "q" else "q")
    ),
)


def eps_outside(case: Case, side: str, rows: Array) -> Array:
    kind, eps = case.features["qk_norm"]["kind"], eps_of(case)
    centred = rows - rows.mean(axis=-1, keepdims=True) if kind == "layer" else rows
    root = np.sqrt((centred**2).sum(axis=-1, keepdims=True) / (1 if kind == "l2" else case.d_k))
    return centred / (root + eps) * gain_of(case, side)


def unbiased(case: Case, side: str, rows: Array) -> Array:
    if case.features["qk_norm"]["kind"] != "layer" or case.d_k < 2:
        return steps.norm(case, side, rows)
    spread = rows.var(axis=-1, keepdims=True, ddof=1) + eps_of(case)
    return (rows - rows.mean(axis=-1, keepdims=True)) / np.sqrt(spread) * gain_of(case, side)


def one_norm_for_all_heads(case: Case, side: str, rows: Array) -> Array:
    flat = np.concatenate(list(rows), axis=-1)[None]
    return np.stack(
        np.split(normed(flat, case.features["qk_norm"]["kind"], eps_of(case))[0], len(rows), axis=-1)
    ) * gain_of(case, side)


featured("eps is added outside the root", norm=eps_outside)
featured("the variance divides by d_k − 1", norm=unbiased)
featured("one norm is taken over all heads", norm=one_norm_for_all_heads)


# Scores


def in_order(*names: str) -> dict[str, Any]:
    return {"on_scores": names}


featured("the cap comes after the mask", **in_order("temperature", "score_bias", "alibi", "hiding", "softcap"))
featured("the cap comes after the score bias", **in_order("temperature", "score_bias", "alibi", "softcap", "hiding"))
featured("the cap comes before the temperature", **in_order("softcap", "temperature", "score_bias", "alibi", "hiding"))
featured(
    "the temperature comes after the score bias", **in_order("softcap", "score_bias", "alibi", "temperature", "hiding")
)
featured("the cap is forgotten", softcap=lambda case, scores: scores)
featured(
    "scores below the cap are not multiplied back",
    softcap=lambda case, scores: np.tanh(scores / case.features["softcap"]),
)
featured(
    "scores are clipped at the cap",
    softcap=lambda case, scores: scores.clip(-case.features["softcap"], case.features["softcap"]),
)
featured(
    "the cap bends the scores before the scale",
    softcap=lambda case, scores: steps.cap(case, scores / case.scale) * case.scale,
)
featured(
    "the score bias is scaled along", score_bias=lambda case, scores: scores + case.features["score_bias"] * case.scale
)
featured("the score bias is taken off", score_bias=lambda case, scores: scores - case.features["score_bias"])
featured("the score bias is forgotten", score_bias=lambda case, scores: scores)
featured("the score bias multiplies", score_bias=lambda case, scores: scores * case.features["score_bias"])
altered(
    "the score bias of row 0 is every row's",
    "score_bias",
    lambda own, case: np.broadcast_to(own[:, :1], own.shape).copy(),
)
featured("ALiBi has the other sign", alibi=lambda case, scores: scores + steps.slopes_of(case) * np.abs(distance(case)))
featured(
    "ALiBi keeps the sign of the distance", alibi=lambda case, scores: scores - steps.slopes_of(case) * distance(case)
)
featured(
    "ALiBi is scaled along",
    alibi=lambda case, scores: scores - case.scale * steps.slopes_of(case) * np.abs(distance(case)),
)
featured("ALiBi is forgotten", alibi=lambda case, scores: scores)
featured(
    "the slopes begin at 1",
    alibi=lambda case, scores: scores - steps.slopes_of(case) * 2.0 ** (8 / len(case.q)) * np.abs(distance(case)),
)
featured(
    "ALiBi counts the distance from the row's number",
    alibi=lambda case, scores: (
        scores
        - steps.slopes_of(case)
        * np.abs(distance(case) - (0 if case.features.get("causal") == "upper-left" else missing(case)))
    ),
)
featured("the temperature multiplies", temperature=lambda case, scores: scores**2 / steps.temper(case, scores))
altered("temperatures of heads are forgotten", "temperature", lambda own, case: {**own, "heads": np.ones(len(case.q))})
altered(
    "temperatures of rows are forgotten", "temperature", lambda own, case: {**own, "rows": np.ones(case.q.shape[1])}
)
altered(
    "temperatures of rows are in the opposite order",
    "temperature",
    appended("rows", lambda array, case: array[::-1].copy()),
)


# What takes a share


altered("the sink is scaled", "sink", lambda own, case: own * case.scale)
altered("the sink has the other sign", "sink", lambda own, case: -own)
altered("the sink is forgotten", "sink", forgotten)
altered("a sink of 0 stands for the sink", "sink", lambda own, case: own * 0.0)
altered("the one more in the denominator is forgotten", "softmax_plus_one", forgotten)
altered("the zero key is forgotten", "zero_key", forgotten)
altered("the appended key is forgotten", "appended_key", forgotten)
altered("the appended key has no value", "appended_key", lambda own, case: {"key": own["key"]})


def renormalised(case: Case, scores: Array, extra: list[steps.Column]) -> tuple[Array, Array, Array]:
    weights, shares, lse = steps.normalise(case, scores, extra)
    return weights / weights.sum(axis=-1, keepdims=True), shares, lse


featured("weights are divided by their sum once more", normalise=renormalised)


def one_behind_the_maximum(case: Case, scores: Array, extra: list[steps.Column]) -> tuple[Array, Array, Array]:
    """Add the 1 after the maximum is off."""
    peak = scores.max(axis=-1, keepdims=True)
    extra = [
        (peak[..., 0] if place == 0 and "sink" not in case.features else logit, value)
        for place, (logit, value) in enumerate(extra)
    ]
    return steps.normalise(case, scores, extra)


featured("the one more is added after the maximum is off", normalise=one_behind_the_maximum)
featured(
    "the LSE leaves out what takes a share",
    unseen=True,
    normalise=lambda case, scores, extra: (*steps.normalise(case, scores, extra)[:2], steps.softmax(scores)[1]),
)


def taken_twice(case: Case, queries: Array, extra: list[steps.Column]) -> list[steps.Column]:
    return extra + extra[:1]


def with_key_bias(case: Case, queries: Array, extra: list[steps.Column]) -> list[steps.Column]:
    """Let keys that are added get the K bias."""
    more = np.einsum("hid,hd->hi", queries, repeated(case, case.bK)) * case.scale
    keys = [name for name in ("sink", "softmax_plus_one", "zero_key", "appended_key") if name in case.features]
    return [
        (logit + more if name.endswith("key") else logit, value)
        for name, (logit, value) in zip(keys, extra, strict=True)
    ]


def with_value_bias(case: Case, queries: Array, extra: list[steps.Column]) -> list[steps.Column]:
    bias = steps.value_bias(case)[:, 0]
    return [(logit, bias if value is None else value + bias) for logit, value in extra]


def masked_away(case: Case, queries: Array, extra: list[steps.Column]) -> list[steps.Column]:
    """Let keys that are added be hidden in rows whose first key is hidden."""
    seen = STEPS.seen(case)
    return [(logit if seen is None else np.where(seen[..., 0], logit, -np.inf), value) for logit, value in extra]


def unscaled(case: Case, queries: Array, extra: list[steps.Column]) -> list[steps.Column]:
    return [*extra[:-1], (extra[-1][0] / case.scale, extra[-1][1])] if "appended_key" in case.features else extra


def tempered(case: Case, queries: Array, extra: list[steps.Column]) -> list[steps.Column]:
    if "temperature" not in case.features:
        return extra
    return [(steps.temper(case, logit[..., None])[..., 0], value) for logit, value in extra]


def capped(case: Case, queries: Array, extra: list[steps.Column]) -> list[steps.Column]:
    return [(steps.cap(case, logit), value) for logit, value in extra] if "softcap" in case.features else extra


featured("what takes a share takes it twice", **with_columns(taken_twice))
featured("keys that are added get the K bias", **with_columns(with_key_bias))
featured("keys that are added get the V bias", **with_columns(with_value_bias))
featured("a key that is added is hidden where the first key is", **with_columns(masked_away))
featured("the appended key's score is not scaled", **with_columns(unscaled))
featured("temperatures divide what takes a share", **with_columns(tempered))
featured("the cap bends what takes a share", **with_columns(capped))


def whole_value_bias(case: Case, weights: Array, values: Array) -> Array:
    return np.einsum("hij,hjd->hid", weights, values - steps.value_bias(case)) + steps.value_bias(case)


featured("the V bias passes whole, whatever a row sums to", mix=whole_value_bias)
featured(
    "the V bias is dropped where a mask is given",
    values=lambda case: steps.values_of(case) + steps.value_bias(case) * ("mask" not in case.features),
)


# What stands for softmax, and what fills


def stand_in_for(kind: str, wrong: Callable[[Case, Array], Array]) -> dict[str, Any]:
    def chosen(case: Case, scores: Array) -> Array:
        return wrong(case, scores) if case.features["normaliser"]["kind"] == kind else steps.stand_in(case, scores)

    return {"normaliser": chosen}


def over_sum(weights: Array) -> Array:
    return weights / weights.sum(axis=-1, keepdims=True)


def largest_weights(case: Case, scores: Array) -> Array:
    return np.where(steps.stand_in(case, scores) > 0, steps.softmax(scores)[0], 0.0)


featured(
    "sigmoids are divided by their sum",
    **stand_in_for("sigmoid", lambda case, scores: over_sum(steps.stand_in(case, scores))),
)
featured(
    "sigmoids lose the number of keys",
    **stand_in_for("sigmoid", lambda case, scores: steps.stand_in(case, scores - np.log(scores.shape[-1]))),
)
featured("softmax stands for the sigmoid", **stand_in_for("sigmoid", lambda case, scores: steps.softmax(scores)[0]))
featured("softmax stands for sparsemax", **stand_in_for("sparsemax", lambda case, scores: steps.softmax(scores)[0]))
featured(
    "sparsemax is a clipped score over its sum",
    **stand_in_for(
        "sparsemax", lambda case, scores: over_sum(np.maximum(scores - scores.max(axis=-1, keepdims=True) + 1, 0))
    ),
)
featured("softmax stands for top-k", **stand_in_for("top-k", lambda case, scores: steps.softmax(scores)[0]))
featured("top-k leaves what it does not choose in the sum", **stand_in_for("top-k", largest_weights))
altered("top-k keeps one too many", "normaliser", lambda own, case: {**own, "k": own.get("k", 0) + 1})
altered("top-k keeps one too few", "normaliser", lambda own, case: {**own, "k": max(own.get("k", 2) - 1, 1)})
altered("the fill is −∞", "fill", forgotten)
altered("the fill is scaled", "fill", lambda own, case: own * case.scale)
featured(
    "the fill is added to hidden scores",
    hide=lambda case, scores, seen: scores + np.where(seen, 0.0, case.features.get("fill", -np.inf)),
)
featured("the fill comes before the score bias", **in_order("temperature", "softcap", "hiding", "score_bias", "alibi"))


# Softmax and padding, beside features


def normalised_from_zero(case: Case, scores: Array, extra: list[steps.Column]) -> tuple[Array, Array, Array]:
    logits = np.concatenate([scores, *(logit[..., None] for logit, _ in extra)], axis=-1)
    with np.errstate(all="ignore"):
        powers = np.exp(logits - np.maximum(logits.max(axis=-1, keepdims=True), 0.0))
        total = powers.sum(axis=-1, keepdims=True)
        weights, count = powers / total, scores.shape[-1]
        peak = np.maximum(logits.max(axis=-1), 0.0)
        return weights[..., :count], weights[..., count:], peak + np.log(total[..., 0])


def padded(block: int) -> Any:
    """Return columns with zero keys up to a multiple of a block, in cases with features only."""

    def wrong(case: Case, queries: Array) -> list[steps.Column]:
        count = -case.keys.shape[1] % block if block else 1
        zeros = np.zeros(case.scores_shape[:2])
        return steps.columns(case, queries) + ([(zeros, None)] * count if case.features else [])

    return wrong


featured("beside features, the running maximum starts at 0", normalise=normalised_from_zero)
featured("beside features, the last block of four is padded with zero keys", columns=padded(4))
featured("beside features, one undeclared zero key takes a share", columns=padded(0))


def padded_under_a_mask(case: Case, queries: Array) -> list[steps.Column]:
    hides = case.features.keys() & {"mask", "causal", "window"}
    return padded(4)(case, queries) if hides else steps.columns(case, queries)


featured("beside a mask, the last block of four is padded with zero keys", columns=padded_under_a_mask)


# Features that meet: each is right alone


def forgotten_where(when: Callable[[Case], bool]) -> Callable[[Any, Case], Any]:
    return lambda own, case: None if when(case) else own


def beside(*names: str) -> Callable[[Any, Case], Any]:
    """Forget a feature beside any of some others."""
    return forgotten_where(lambda case: bool(case.features.keys() & set(names)))


altered("a window's left side of 0 is none", "window", lambda own, _case: (own[0] or None, own[1]))
altered("a window's right side of 0 is none", "window", lambda own, _case: (own[0], own[1] or None))
altered("a window without a left side has one of 0", "window", lambda own, _case: (own[0] or 0, own[1]))
altered(
    "a window of four keys or more is forgotten",
    "window",
    forgotten_where(lambda case: (case.features["window"][0] or 0) > 3),
)


def from_the_lower_right(case: Case) -> Array:
    return distance(case) + (missing(case) if is_aligned_upper_left(case) else 0)


def from_the_first_key(case: Case) -> Array:
    return distance(case) - (min(missing(case), 0) if not is_aligned_upper_left(case) else 0)


def is_aligned_upper_left(case: Case) -> bool:
    return case.features.get("causal") == "upper-left"


def window_at(behind: Callable[[Case], Array]) -> Callable[[Case], Array]:
    def allowed(case: Case) -> Array:
        left, right = (10**6 if side is None else side for side in case.features["window"])
        found = behind(case)
        return with_first_key(np.broadcast_to((found <= left) & (-found <= right), case.scores_shape))

    return allowed


def slopes_at(far: Callable[[Case], Array]) -> Callable[[Case, Array], Array]:
    return lambda case, scores: scores - steps.slopes_of(case) * far(case)


for what, behind in {
    "from the lower right where causality is upper-left": from_the_lower_right,
    "from the first key where there are more queries than keys": from_the_first_key,
}.items():
    featured(f"a window is measured {what}", window=window_at(behind))
    featured(f"ALiBi is measured {what}", alibi=slopes_at(lambda case, behind=behind: np.abs(behind(case))))
featured("ALiBi's distance ends at 8", alibi=slopes_at(lambda case: np.minimum(np.abs(distance(case)), 8)))
featured("a temperature divides ALiBi too", on_scores=("softcap", "score_bias", "alibi", "temperature", "hiding"))
altered("ALiBi is forgotten beside a rotation", "alibi", beside("rope"))
altered(
    "ALiBi is dropped where rows and keys are as many",
    "alibi",
    forgotten_where(lambda case: case.q.shape[1] == case.keys.shape[1]),
)
altered(
    "ALiBi's slopes are in reverse where nothing is causal",
    "alibi",
    lambda own, case: own if "causal" in case.features else {"slopes": own["slopes"][::-1]},
)


def by_rows(numbers: Array, case: Case) -> Array:
    """Take what is given for each head for rows instead, where there are as many."""
    rows = len(case.q) == case.q.shape[1]
    return np.broadcast_to(numbers[None, :, None] if rows else numbers[:, None, None], (*case.scores_shape[:2], 1))


def swapped(array: Array) -> Array:
    return array.swapaxes(0, 1) if array.shape[0] == array.shape[1] else array


featured(
    "a score bias has its heads and rows swapped where they are as many",
    score_bias=lambda case, scores: scores + swapped(case.features["score_bias"]),
)
featured(
    "a mask has its heads and rows swapped where they are as many", mask=lambda case: swapped(case.features["mask"])
)
featured(
    "temperatures of heads are those of rows where they are as many",
    temperature=lambda case, scores: (
        scores / by_rows(case.features["temperature"]["heads"], case) / case.features["temperature"]["rows"][:, None]
    ),
)
featured(
    "sinks of heads are those of rows where they are as many",
    **with_columns(
        lambda case, _queries, extra: (
            [(by_rows(case.features["sink"], case)[..., 0], None), *extra[1:]] if "sink" in case.features else extra
        )
    ),
)
featured(
    "a mask ends at the fifth row", mask=lambda case: case.features["mask"] | (np.arange(case.q.shape[1]) >= 5)[:, None]
)
for tile in (8, 16):
    featured(
        f"causality ends at key {tile}",
        causal=lambda case, tile=tile: steps.past(case) | (np.arange(case.keys.shape[1]) >= tile),
    )


def tiles_by_their_first_row(case: Case) -> Array:
    places, keys = distance(case)[:, 0], np.arange(case.keys.shape[1])
    first = places[np.arange(len(places)) // 16 * 16]
    return with_first_key(steps.past(case) & ((keys // 16 * 16)[None] <= first[:, None]))


featured("tiles of sixteen are skipped by the first row", causal=tiles_by_their_first_row)


def cut_off(rows: int | None, heads: int | None) -> Implementation:
    def wrong(case: Case) -> Trace:
        trace = STEPS(case)
        output = trace.output.copy()
        if case.features and rows is not None:
            output[:, rows:] = 0.0
        if case.features and heads is not None and len(output) > heads:
            output[heads:] = output[:1]
        return Trace(output, trace.inside)

    return wrong


entered("beside features, rows from the ninth on are 0", cut_off(8, None))
entered("beside features, heads from the seventh on are head 0", cut_off(None, 6))


def first_tile_spoils(case: Case) -> Trace:
    trace, seen = STEPS(case), STEPS.seen(case)
    output = trace.output.copy()
    if seen is not None and seen.shape[-1] > 16:
        output[~seen[..., :16].any(axis=-1)] = np.nan
    return Trace(output, trace.inside)


entered("a first tile of sixteen keys that is hidden whole spoils a row", first_tile_spoils)
featured(
    "beside features, three query heads to a key-value head are tiled",
    keys=lambda case: (
        tiled(case, case.keys) if case.features and steps.in_groups(case) == 3 else repeated(case, case.keys)
    ),
)

for name in ("rope", "qk_norm", "normaliser", "alibi"):
    altered(f"a cap is forgotten beside {name}", "softcap", beside(name))
altered("a cap of 30 or more is none", "softcap", lambda own, _case: None if own >= 30 else own)
for name in ("rope", "causal"):
    altered(f"a temperature is forgotten beside {name}", "temperature", beside(name))
altered(
    "temperatures begin at 0.4",
    "temperature",
    lambda own, _case: {side: np.maximum(numbers, 0.4) for side, numbers in own.items()},
)
altered("a score bias is forgotten beside what stands for softmax", "score_bias", beside("normaliser"))
for others in (("mask",), ("causal", "window"), ("rope", "qk_norm")):
    featured(
        f"beside {' or '.join(others)}, softmax stands for what stands for it",
        normaliser=lambda case, scores, others=others: (
            steps.softmax(scores)[0] if case.features.keys() & set(others) else steps.stand_in(case, scores)
        ),
    )
altered("key shifts are forgotten beside a rotation", "key_shifts", beside("rope"))
featured(
    "a norm is forgotten beside causality",
    norm=lambda case, side, rows: rows if "causal" in case.features else steps.norm(case, side, rows),
)
for kind in ("l2", "layer", "rms"):
    featured(
        f"a norm of kind {kind} forgets its gains where the bias comes after",
        norm=lambda case, side, rows, kind=kind: (
            steps.norm(case, side, rows)
            / (
                gain_of(case, side)
                if (case.features["qk_norm"]["kind"], case.features["qk_norm"].get("bias")) == (kind, "after")
                else 1
            )
        ),
    )
for taken, given in (("nrb", "nbr"), ("nbr", "nrb"), ("brn", "rbn"), ("nbr", "rnb")):
    word = {"n": "norm", "b": "bias", "r": "rotation"}
    one, other = [word[letter] for letter in given], [word[letter] for letter in taken]
    featured(
        f"{', '.join(one)} is done as {', '.join(other)}",
        order=lambda case, one=one, other=other: other if steps.order(case) == one else steps.order(case),
    )


def turned_at(change: Callable[[Array, Case], Array]) -> dict[str, Any]:
    """Return a rotation at other positions."""

    def rotation(case: Case, side: str, rows: Array) -> Array:
        dims, base = steps.dims_of(case), case.features["rope"].get("base", 10000.0)
        angles = change(steps.places(case, side), case)[:, None] * base ** (-2.0 * np.arange(dims // 2) / dims)
        return turned(rows, angles, dims, steps.layout_of(case))

    return {"rotation": rotation}


featured("positions are cut to whole numbers", **turned_at(lambda places, _case: np.trunc(places)))
featured("positions begin at 0", **turned_at(lambda places, _case: np.maximum(places, 0)))
featured("positions end at 2047", **turned_at(lambda places, _case: np.minimum(places, 2047)))
featured(
    "positions beyond 2048 are halved", **turned_at(lambda places, _case: np.where(places > 2048, places / 2, places))
)
featured(
    "given positions are ignored where rows and keys are as many",
    **turned_at(
        lambda places, case: np.arange(float(len(places))) if case.q.shape[1] == case.keys.shape[1] else places
    ),
)
altered("a rotation's base is at least 10", "rope", lambda own, _case: {**own, "base": max(own["base"], 10.0)})


def eight_turn(case: Case, side: str, rows: Array) -> Array:
    if steps.dims_of(case) <= 8:
        return steps.rotate(case, side, rows)
    return turned(rows, steps.angles_of(case, side)[:, :4], 8, steps.layout_of(case))


featured("at most eight channels turn", rotation=eight_turn)


# What takes a share, beside what knows positions


def other_score(change: Callable[[Case, Array, Array], Array], *needed: str) -> dict[str, Any]:
    """Change the appended key's score, beside some features: `change(case, queries, score)`."""

    def changed(case: Case, queries: Array, extra: list[steps.Column]) -> list[steps.Column]:
        if not case.features.keys() >= {"appended_key", *needed}:
            return extra
        score, value = extra[-1]
        return [*extra[:-1], (change(case, queries, score), value)]

    return with_columns(changed)


def multiplied(case: Case, queries: Array, key: Array) -> Array:
    return np.einsum("hid,hkd->hi", queries, key) * case.scale


def turned_behind_all(case: Case, queries: Array, _score: Array) -> Array:
    dims, base = steps.dims_of(case), case.features["rope"].get("base", 10000.0)
    angles = case.keys.shape[1] * base ** (-2.0 * np.arange(dims // 2) / dims)[None]
    key = repeated(case, case.features["appended_key"]["key"])[:, None]
    return multiplied(case, queries, turned(key, angles, dims, steps.layout_of(case)))


def normed_along(case: Case, queries: Array, _score: Array) -> Array:
    return multiplied(
        case, queries, steps.norm(case, "k", repeated(case, case.features["appended_key"]["key"])[:, None])
    )


def sloped(case: Case, _queries: Array, score: Array) -> Array:
    return score - (steps.slopes_of(case) * np.abs(distance(case)[:, :1] - case.keys.shape[1])[None])[..., 0]


featured("an appended key turns behind all others", **other_score(turned_behind_all, "rope"))
featured("an appended key is normed with the others", **other_score(normed_along, "qk_norm"))
featured("an appended key has a slope", **other_score(sloped, "alibi"))
featured("causality hides an appended key", **other_score(lambda _case, _queries, score: score - np.inf, "causal"))
featured(
    "an appended key meets queries that are neither normed nor turned",
    columns=lambda case, queries: steps.columns(
        case, case.q + case.bQ[:, None] if "appended_key" in case.features else queries
    ),
)
altered("a key of zeros is forgotten beside causality", "zero_key", beside("causal"))
altered("a key of zeros is forgotten beside an appended key", "zero_key", beside("appended_key"))
altered("the one more is forgotten beside a sink", "softmax_plus_one", beside("sink"))
altered("a sink is forgotten beside a window", "sink", beside("window"))
altered("sinks end at 20 and begin at -20", "sink", lambda own, _case: np.clip(own, -20, 20))


def no_sink(rows: Callable[[Array], Array]) -> dict[str, Any]:
    """Leave the sink out of rows, by which keys they see."""

    def changed(case: Case, _queries: Array, extra: list[steps.Column]) -> list[steps.Column]:
        seen = STEPS.seen(case)
        if "sink" not in case.features or seen is None:
            return extra
        return [(np.where(rows(seen), -np.inf, extra[0][0]), None), *extra[1:]]

    return with_columns(changed)


featured("a row that sees one key has no sink", **no_sink(lambda seen: seen.sum(axis=-1) == 1))
featured("a row that sees less than a quarter has no sink", **no_sink(lambda seen: seen.mean(axis=-1) < 0.25))
featured(
    "an appended key's value is dropped where values are the identity",
    **with_columns(
        lambda case, _queries, extra: [(score, None if case.values is None else value) for score, value in extra]
    ),
)
featured(
    "the V bias passes whole where values are the identity",
    mix=lambda case, weights, values: (
        weights + steps.value_bias(case) if case.values is None else steps.mix(case, weights, values)
    ),
)
featured(
    "the V bias is dropped beside ALiBi and a cap",
    values=lambda case: (
        steps.values_of(case) + steps.value_bias(case) * (not case.features.keys() >= {"alibi", "softcap"})
    ),
)

# Fills


def filled(change: Callable[[Case, Array], Array]) -> dict[str, Any]:
    def hide(case: Case, scores: Array, seen: Array) -> Array:
        fill = np.full(scores.shape, case.features.get("fill", -np.inf))
        return np.where(seen, scores, change(case, fill) if "fill" in case.features else fill)

    return {"hide": hide}


altered("a fill of 0 is none", "fill", lambda own, _case: own or None)
altered("a fill is at most -1", "fill", lambda own, _case: min(own, -1.0))
altered("a window is not filled", "fill", beside("window"))
featured(
    "a fill has a temperature",
    **filled(lambda case, fill: steps.temper(case, fill) if "temperature" in case.features else fill),
)
featured(
    "a fill is bent by the cap",
    **filled(lambda case, fill: steps.cap(case, fill) if "softcap" in case.features else fill),
)


# W_O, where heads are as many as rows, or where it is square


def layered(merge: Callable[[Case, Array], Array]) -> Implementation:
    def wrong(case: Case) -> Trace:
        trace = STEPS(case)
        if case.W_O is None:
            return trace
        return Trace(trace.output, {**trace.inside, "layer": merge(case, trace.output)})

    return wrong


def side_by_side(output: Array) -> Array:
    return output.swapaxes(0, 1).reshape(output.shape[1], -1)


def in_memory_order(case: Case, output: Array) -> Array:
    merged = output.reshape(output.shape[1], -1) if len(output) == output.shape[1] else side_by_side(output)
    return np.asarray(merged @ np.asarray(case.W_O).reshape(merged.shape[1], -1))


def transposed_where_square(case: Case, output: Array) -> Array:
    merged = side_by_side(output)
    matrix = np.asarray(case.W_O).reshape(merged.shape[1], -1)
    return np.asarray(merged @ (matrix.T if matrix.shape[0] == matrix.shape[1] else matrix))


entered("heads are merged as they lie where they are as many as rows", layered(in_memory_order), unseen=True)
entered("a square W_O is transposed", layered(transposed_where_square), unseen=True)
