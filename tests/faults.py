"""Attention written wrongly: mistakes seen in real code, each a small numpy implementation of its own.

`FAULTS` holds them by what the mistake is. They know no feature but key shifts, and say so of other cases;
`featured_faults` has those that know all. `STAND_INS` do not compute attention at all. `UNSEEN` are the mistakes that
change no output, as softmax does not see a common shift of a row's scores, or change it by less than rounding may.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from steps import repeated
from variations import of_plain_cases

from verify_attention.model import Array, Case, Implementation, Trace

FAULTS: dict[str, Implementation] = {}
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


@fault("the Q bias is ignored")
def _(case: Case) -> Trace:
    return attention(case, queries=case.q)


@fault("the K bias is ignored", unseen=True)
def _(case: Case) -> Trace:
    return attention(replace(case, bK=np.zeros_like(case.bK)))


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


@fault("the fused bias is read head by head where it is stored in blocks")
def _(case: Case) -> Trace:
    row, sizes = fused(case)
    query, key, _ = (size // len(case.keys) for size in sizes)
    by_group = row.reshape(len(case.keys), -1)
    return with_biases(case, by_group[:, :query], by_group[:, query : query + key], by_group[:, query + key :])


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


@fault("the scale is applied twice")
def _(case: Case) -> Trace:
    return attention(case, scale=case.scale**2)


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


@fault("one maximum serves all heads")
def _(case: Case) -> Trace:
    return attention(case, weigh=lambda scores: softmax(scores, np.full_like(scores[..., :1], scores.max())))


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


def everywhere(case: Case, number: float) -> Trace:
    trace = attention(case)
    return Trace(
        np.full_like(trace.output, number),
        {name: np.full_like(array, number) for name, array in trace.inside.items()},
    )


@stand_in("zeros")
def _(case: Case) -> Trace:
    return everywhere(case, 0.0)


@stand_in("infinity")
def _(case: Case) -> Trace:
    return everywhere(case, np.inf)


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
