"""Kernels that are wrong in one way each: what those who write, port or quantise attention get wrong.

All start from one right kernel in steps, which walks over the keys in tiles as a flash kernel does. A mistake stands in
the place of a step; its docstring says what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import cache
from itertools import combinations, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from verify_attention.cases import load_cases
from verify_attention.casting import cast
from verify_attention.engine import run_case
from verify_attention.functions import BIASES, OPTIONS, Function, arguments_of
from verify_attention.loading import as_implementation
from verify_attention.model import BROKEN, DTYPES, Array, Case, Finding, Invariant, Tolerance
from verify_attention.plugins import invariants


def visible(shape: tuple[int, ...], causal: str | None, window: tuple[int | None, int | None] | None) -> Array:
    """Return which keys each query may see by its place, `[Tq, Tk]`."""
    rows, keys = shape
    ahead = np.arange(keys) - (np.arange(rows) + (0 if causal == "upper-left" else keys - rows))[:, None]
    left, right = (None, None) if window is None else window
    seen: Array = np.ones(shape, dtype=bool)
    for farthest, distance in ((left, -ahead), (right, ahead), (None if causal is None else 0, ahead)):
        seen &= True if farthest is None else distance <= farthest
    return seen


def turned(vectors: Array, rope: Mapping[str, Any], positions: Array) -> Array:
    """Return vectors `[B, …, T, d_k]` with their first channels rotated, two at a time, by their positions `[T]`."""
    half = rope["rotary_dims"] // 2
    pair = np.arange(half)
    one, other = (pair, pair + half) if rope["layout"] == "half" else (2 * pair, 2 * pair + 1)
    angles = positions[:, None] * rope["base"] ** (-pair / half)
    cos, sin = np.cos(angles), np.sin(angles)
    found = vectors.copy()
    found[..., one] = vectors[..., one] * cos - vectors[..., other] * sin
    found[..., other] = vectors[..., one] * sin + vectors[..., other] * cos
    return found


Call = SimpleNamespace  # the arrays and options of a call, and what the steps make of them
Step = Callable[[Call], None]
TILE = 4  # keys


# The right kernel


def biases(x: Call) -> None:
    for vector, bias in (("q", x.bQ), ("k", x.bK), ("v", x.bV)):
        if bias is not None:
            setattr(x, vector, getattr(x, vector) + bias[:, None])


def rotation(x: Call) -> None:
    if x.rope is not None:
        x.q, x.k = turned(x.q, x.rope, x.rope["q_positions"]), turned(x.k, x.rope, x.rope["k_positions"])


def groups(x: Call) -> None:
    repeats = x.q.shape[1] // x.k.shape[1]
    x.k, x.v = np.repeat(x.k, repeats, axis=1), np.repeat(x.v, repeats, axis=1)


def products(x: Call) -> None:
    x.scores = x.q @ x.k.swapaxes(-1, -2) * (x.q.shape[-1] ** -0.5 if x.scale is None else x.scale)


def cap(x: Call) -> None:
    if x.softcap is not None:
        x.scores = x.softcap * np.tanh(x.scores / x.softcap)


def bias(x: Call) -> None:
    if x.score_bias is not None:
        x.scores = x.scores + x.score_bias


def hiding(x: Call) -> None:
    seen = visible(x.scores.shape[-2:], x.causal, x.window)
    x.scores = np.where(seen if x.mask is None else seen & x.mask, x.scores, -np.inf)


def tiles(
    x: Call,
    *,
    tile: int = TILE,
    power: Callable[[Call, int, Array], Array] = lambda x, start, difference: np.exp(difference),
    of_total: Callable[[Array, Array], Array] = lambda old, new: np.exp(old - new),
    of_output: Callable[[Array, Array], Array] = lambda old, new: np.exp(old - new),
    skipped: Callable[[Call, int], bool] = lambda x, start: False,
    added: Callable[[Array], Array] = lambda output: output,
    finite: bool = True,
) -> None:
    """Walk over the keys with a running maximum, total and output; a sink is there before the first tile."""
    sink = np.full(x.scores.shape[1], -np.inf) if x.sink is None else x.sink
    peak = np.broadcast_to(sink[:, None, None], (*x.scores.shape[:3], 1)).astype(x.scores.dtype)
    total, output = np.exp(peak * 0 if x.sink is not None else peak), np.zeros((*x.scores.shape[:3], x.v.shape[-1]))
    for start in range(0, x.scores.shape[-1], tile):
        if skipped(x, start):
            continue
        part = x.scores[..., start : start + tile]
        new = np.maximum(peak, part.max(axis=-1, keepdims=True))
        base = np.where(np.isneginf(new), 0, new) if finite else new
        powers = power(x, start, part - base)
        total = total * of_total(peak, base) + powers.sum(axis=-1, keepdims=True)
        output = added(output * of_output(peak, base) + powers @ x.v[..., start : start + tile, :])
        peak = new
    x.output, x.lse = output / total, (peak + np.log(total))[..., 0]
    x.weights = np.exp(x.scores - peak) / total


STEPS: dict[str, Step] = {
    each.__name__: each for each in (biases, rotation, groups, products, cap, bias, hiding, tiles)
}


def call_of(q: Array, k: Array, v: Array, **options: Any) -> Call:
    sizes = {"batch": len(q), "rows": q.shape[2], "keys": k.shape[2], "width": q.shape[3], "kv_heads": k.shape[1]}
    return Call(q=q, k=k, v=v, **sizes, **{**dict.fromkeys(OPTIONS), **options})


def kernel(**changed: Step) -> Function:
    """Return the kernel with other steps in the place of some, and those of new names at the end."""
    steps = {**STEPS, **changed}

    def attention(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
        x = call_of(q, k, v, **options)
        with np.errstate(all="ignore"):
            for step in steps.values():
                step(x)
        shown = {"output": x.output, "weights": x.weights, "scores": x.scores, "lse": x.lse}
        return {name: array.astype(q.dtype) for name, array in shown.items()}

    return attention


def beside(x: Call, *names: str) -> bool:
    return all(getattr(x, name) is not None for name in names)


# Mistakes

KERNELS: dict[str, Function] = {}
UNSEEN: set[str] = set()  # mistakes in what is shown, which no output tells


def instead_of(step: str, *, unseen: bool = False) -> Callable[[Step], Step]:
    def put(mistake: Step) -> Step:
        name = mistake.__name__.replace("_", "-")
        assert name not in KERNELS
        KERNELS[name] = kernel(**{step: mistake})
        if unseen:
            UNSEEN.add(name)
        return mistake

    return put


# of biases


@instead_of("biases")
def key_bias_of_the_next_group(x: Call) -> None:
    """The K bias of the next key-value head is added."""
    x.bK = None if x.bK is None else np.roll(x.bK, 1, axis=0)
    biases(x)


@instead_of("biases")
def key_bias_is_scaled(x: Call) -> None:
    """The K bias is multiplied by the scale, which comes again with the product."""
    x.bK = None if x.bK is None else x.bK * (x.width**-0.5 if x.scale is None else x.scale)
    biases(x)


@instead_of("biases")
def query_bias_for_keys_of_as_many_heads(x: Call) -> None:
    """The Q bias is added to the keys where there are as many heads."""
    if beside(x, "bQ", "bK") and x.bQ.shape == x.bK.shape:
        x.bK = x.bQ
    biases(x)


@instead_of("biases")
def no_key_bias_in_the_last_part_of_a_tile(x: Call) -> None:
    """Keys behind the last whole tile of 8 get no K bias."""
    key = np.arange(x.keys)[:, None]
    if x.bK is not None:
        x.k, x.bK = x.k + np.where(key < max(x.keys // 8 * 8, 8), x.bK[:, None], 0), None
    biases(x)


@instead_of("biases")
def query_bias_only_beside_a_key_bias(x: Call) -> None:
    """The Q bias is added only where there is a K bias."""
    x.bQ = None if x.bK is None else x.bQ
    biases(x)


@instead_of("biases")
def no_query_bias_for_a_single_query(x: Call) -> None:
    """The path for one query knows no Q bias."""
    x.bQ = None if x.rows == 1 else x.bQ
    biases(x)


def value_bias_later(x: Call) -> None:
    x.kept, x.bV = x.bV, None
    biases(x)


def add_later(x: Call, times: float | Array = 1.0) -> None:
    if x.kept is not None:
        x.output = x.output + times * np.repeat(x.kept, x.q.shape[1] // x.kv_heads, axis=0)[:, None]


def value_bias_behind_the_sink(x: Call) -> None:
    """The V bias is added behind the average, whole, though a sink has a share."""
    add_later(x)


def value_bias_in_each_tile(x: Call) -> None:
    """The V bias is added behind the average once for each tile."""
    add_later(x, -(-x.keys // TILE) * x.weights.sum(axis=-1, keepdims=True))


for later in (value_bias_behind_the_sink, value_bias_in_each_tile):
    KERNELS[later.__name__.replace("_", "-")] = kernel(biases=value_bias_later, behind=later)


@instead_of("biases")
def query_bias_behind_the_rotation(x: Call) -> None:
    """The Q bias is not turned."""
    if beside(x, "rope", "bQ"):
        back = {**x.rope, "q_positions": -x.rope["q_positions"]}
        x.bQ, x.q = None, x.q + turned(np.broadcast_to(x.bQ[:, None], x.q.shape), back, back["q_positions"])
    biases(x)


@instead_of("biases")
def biases_in_half_precision(x: Call) -> None:
    """A K bias is kept in float16."""
    x.bK = None if x.bK is None else x.bK.astype(np.float16).astype(x.k.dtype)
    biases(x)


# of the rotation


def turning(name: str, change: Callable[[Call], dict[str, Any]]) -> None:
    def rotates(x: Call) -> None:
        if x.rope is not None:
            x.rope = {**x.rope, **change(x)}
        rotation(x)

    KERNELS[name] = kernel(rotation=rotates)


turning("query-positions-are-ignored", lambda x: {"q_positions": np.arange(x.rows) + x.keys - x.rows})
turning("key-positions-are-ignored", lambda x: {"k_positions": np.arange(x.keys)})
turning("queries-are-counted-from-0", lambda x: {"q_positions": np.arange(x.rows)})
turning("the-base-is-always-10000", lambda x: {"base": 10000.0})
turning("the-layout-is-always-in-halves", lambda x: {"layout": "half"})
turning(
    "all-channels-turn-where-interleaved",
    lambda x: {} if x.rope["layout"] == "half" else {"rotary_dims": x.width // 2 * 2},
)
turning("turned-the-other-way", lambda x: {name: -x.rope[name] for name in ("q_positions", "k_positions")})
turning(
    "positions-end-at-16", lambda x: {name: np.minimum(x.rope[name], 16) for name in ("q_positions", "k_positions")}
)
turning(
    "positions-end-at-4096", lambda x: {name: np.minimum(x.rope[name], 4096) for name in ("q_positions", "k_positions")}
)
turning(
    "positions-start-at-0", lambda x: {name: np.maximum(x.rope[name], 0) for name in ("q_positions", "k_positions")}
)
turning("positions-are-whole", lambda x: {name: np.floor(x.rope[name]) for name in ("q_positions", "k_positions")})
turning("positions-go-up", lambda x: {"k_positions": np.sort(x.rope["k_positions"])})
turning("a-query-alone-stands-last", lambda x: {"q_positions": x.rope["k_positions"][-1:]} if x.rows == 1 else {})


@instead_of("rotation")
def values_turn_too(x: Call) -> None:
    """Values are rotated like keys, where they are as wide."""
    if x.rope is not None and x.v.shape[-1] == x.width:
        x.v = turned(x.v, x.rope, x.rope["k_positions"])
    rotation(x)


@instead_of("rotation")
def later_key_heads_do_not_turn(x: Call) -> None:
    """Only the keys of the first key-value head are rotated."""
    later = x.k[:, 1:]
    rotation(x)
    x.k = np.concatenate([x.k[:, :1], later], axis=1)


@instead_of("rotation")
def angles_in_half_precision(x: Call) -> None:
    """Frequencies come from a square root in float16."""
    if x.rope is not None:
        x.rope = {**x.rope, "base": float(np.float16(x.rope["base"] ** -0.5)) ** -2.0}
    rotation(x)


TABLES: dict[Any, Any] = {}


@instead_of("rotation")
def one_table_of_angles_for_a_length(x: Call) -> None:
    """Positions and base are kept from the first call with so many keys."""
    if x.rope is not None:
        x.rope = TABLES.setdefault((x.rows, x.keys, x.rope["rotary_dims"]), x.rope)
    rotation(x)


# of products and cap


@instead_of("products")
def no_scale_beside_a_cap(x: Call) -> None:
    """Where there is a cap the given scale is ignored."""
    x.scale = x.scale if x.softcap is None else None
    products(x)


@instead_of("products")
def scale_of_the_values_width(x: Call) -> None:
    """The scale is 1/√d_v."""
    x.scale = x.v.shape[-1] ** -0.5 if x.scale is None else x.scale
    products(x)


@instead_of("products")
def scale_of_a_width_filled_up(x: Call) -> None:
    """The scale is that of the width filled up to a multiple of 8."""
    x.scale = (-(-x.width // 8) * 8) ** -0.5 if x.scale is None else x.scale
    products(x)


@instead_of("products")
def scale_in_single_precision(x: Call) -> None:
    """The scale is a float32."""
    x.scale = float(np.float32(x.width**-0.5 if x.scale is None else x.scale))
    products(x)


def of_width(name: str, count: Callable[[int], int]) -> None:
    def shortened(x: Call) -> None:
        x.scale = x.width**-0.5 if x.scale is None else x.scale
        x.q = x.q[..., : count(x.width)]
        x.k = x.k[..., : count(x.width)]
        products(x)

    KERNELS[name] = kernel(products=shortened)


of_width("the-last-odd-channel-is-dropped", lambda width: max(1, width // 2 * 2))
of_width("channels-behind-eights-are-dropped", lambda width: width if width < 8 else width // 8 * 8)
of_width("channels-behind-64-are-dropped", lambda width: min(width, 64))
of_width("channels-behind-128-are-dropped", lambda width: min(width, 128))


@instead_of("products")
def keys_past_127_wrap_around(x: Call) -> None:
    """Keys are numbered in seven bits."""
    x.k = x.k[:, :, np.arange(x.keys) % 128]
    products(x)


@instead_of("products")
def scores_are_clipped_at_1000(x: Call) -> None:
    """Scores end at ±500 "for stability"."""
    products(x)
    x.scores = np.clip(x.scores, -500, 500)


@instead_of("products")
def negative_products_of_one_head(x: Call) -> None:
    """The last head of six takes the absolute value of its products."""
    products(x)
    if x.scores.shape[1] == 6:
        x.scores[:, -1] = abs(x.scores[:, -1])


@instead_of("cap")
def cap_before_the_scale(x: Call) -> None:
    """The cap bends products, and the scale comes after it."""
    if x.softcap is not None:
        scale = x.width**-0.5 if x.scale is None else x.scale
        x.scores = x.softcap * np.tanh(x.scores / scale / x.softcap) * scale


@instead_of("cap")
def high_caps_are_none(x: Call) -> None:
    """A cap above 10 is ignored."""
    if x.softcap is None or x.softcap <= 10:
        cap(x)


@instead_of("cap")
def tanh_of_a_gpu(x: Call) -> None:
    """An approximate tanh, right to 1e-6."""
    if x.softcap is not None:
        x.scores = x.softcap * np.round(np.tanh(x.scores / x.softcap), 6)


@instead_of("cap")
def no_cap_in_the_last_part_of_a_tile(x: Call) -> None:
    """Keys behind the last whole tile are not capped."""
    usual = x.scores
    cap(x)
    x.scores = np.where(np.arange(x.keys) < x.keys // TILE * TILE, x.scores, usual)


# of the score bias


@instead_of("bias")
def score_bias_of_the_group(x: Call) -> None:
    """Query heads of a group share the score bias of its first one."""
    if x.score_bias is not None:
        repeats = x.q.shape[1] // x.kv_heads
        x.scores = x.scores + np.broadcast_to(x.score_bias, x.scores.shape)[:, ::repeats].repeat(repeats, axis=1)


@instead_of("bias")
def score_bias_of_the_head_modulo_groups(x: Call) -> None:
    """A query head takes the score bias of the head h mod G."""
    if x.score_bias is not None:
        head = np.arange(x.q.shape[1]) % x.kv_heads
        x.scores = x.scores + np.broadcast_to(x.score_bias, x.scores.shape)[:, head]


@instead_of("bias")
def square_score_bias_transposed(x: Call) -> None:
    """A square score bias is read in columns."""
    if x.score_bias is not None and x.rows == x.keys:
        x.score_bias = x.score_bias.swapaxes(-1, -2)
    bias(x)


@instead_of("bias")
def score_bias_of_the_first_row(x: Call) -> None:
    """All rows take the score bias of the first."""
    x.score_bias = None if x.score_bias is None else x.score_bias[..., :1, :]
    bias(x)


@instead_of("bias")
def score_bias_of_the_first_tile(x: Call) -> None:
    """The tile's pointer into the score bias does not advance past 32 keys."""
    x.score_bias = None if x.score_bias is None else x.score_bias[..., np.arange(x.keys) % 32]
    bias(x)


@instead_of("bias")
def only_penalties(x: Call) -> None:
    """A score bias above 0 is taken for 0."""
    x.score_bias = None if x.score_bias is None else np.minimum(x.score_bias, 0)
    bias(x)


@instead_of("bias")
def score_bias_of_one_sample(x: Call) -> None:
    """All samples take the score bias of the first."""
    x.score_bias = None if x.score_bias is None else x.score_bias[:1]
    bias(x)


@instead_of("bias")
def score_bias_of_one_head_is_for_the_first(x: Call) -> None:
    """A score bias that is the same for all heads is added to the first only."""
    if x.score_bias is not None and x.score_bias.shape[1] < x.q.shape[1]:
        x.score_bias = np.concatenate([x.score_bias, np.zeros_like(x.scores[:, 1:]) * x.score_bias], axis=1)
    bias(x)


@instead_of("bias")
def score_bias_of_one_row_is_for_the_first(x: Call) -> None:
    """A score bias that is the same for all rows is added to the first only."""
    if x.score_bias is not None and x.score_bias.shape[2] < x.rows:
        x.score_bias = np.where(np.arange(x.rows)[:, None] == 0, x.score_bias, 0.0)
    bias(x)


@instead_of("bias")
def score_bias_in_half_precision(x: Call) -> None:
    """A score bias is kept in float16."""
    x.score_bias = None if x.score_bias is None else x.score_bias.astype(np.float16).astype(x.q.dtype)
    bias(x)


# of what hides


@instead_of("hiding")
def mask_of_one_head_is_for_the_first(x: Call) -> None:
    """A mask that is the same for all heads hides in the first only."""
    if x.mask is not None and x.mask.shape[1] < x.q.shape[1]:
        x.mask = np.broadcast_to(x.mask, x.scores.shape).copy()
        x.mask[:, 1:] = True
    hiding(x)


@instead_of("hiding")
def mask_of_one_row_is_for_the_first(x: Call) -> None:
    """A mask that is the same for all rows hides in the first only."""
    if x.mask is not None and x.mask.shape[2] < x.rows:
        x.mask = np.broadcast_to(x.mask, x.scores.shape).copy()
        x.mask[:, :, 1:] = True
    hiding(x)


@instead_of("hiding")
def mask_of_the_last_row(x: Call) -> None:
    """The mask is taken for one of keys only, that of the last row."""
    x.mask = None if x.mask is None else x.mask[..., -1:, :]
    hiding(x)


@instead_of("hiding")
def padding_stands_at_the_end(x: Call) -> None:
    """The mask is read as a number of keys, from the first on."""
    if x.mask is not None:
        x.mask = np.arange(x.keys) < x.mask.sum(axis=-1, keepdims=True)
    hiding(x)


@instead_of("hiding")
def mask_or_causality(x: Call) -> None:
    """A key is seen if the mask or causality lets it."""
    seen = visible((x.rows, x.keys), x.causal, x.window)
    if beside(x, "mask", "causal"):
        seen = seen | x.mask
    elif x.mask is not None:
        seen = seen & x.mask
    x.scores = np.where(seen, x.scores, -np.inf)


@instead_of("hiding")
def mask_or_window(x: Call) -> None:
    """The window is open where there is a mask."""
    x.window = x.window if x.mask is None else None
    hiding(x)


@instead_of("hiding")
def last_key_is_never_hidden(x: Call) -> None:
    """The mask of the last key is not read."""
    if x.mask is not None:
        x.mask = np.concatenate([x.mask[..., :-1], np.ones_like(x.mask[..., -1:])], axis=-1)
    hiding(x)


@instead_of("hiding")
def no_mask_for_a_single_query(x: Call) -> None:
    """The path for one query knows no mask."""
    x.mask = x.mask if x.rows > 1 else None
    hiding(x)


@instead_of("hiding")
def a_single_query_from_the_upper_left(x: Call) -> None:
    """One query behind a cache sees the first key only."""
    x.causal = "upper-left" if x.causal is not None and x.rows == 1 else x.causal
    hiding(x)


@instead_of("hiding")
def always_from_the_lower_right(x: Call) -> None:
    """Causality is measured from the lower right."""
    x.causal = None if x.causal is None else "lower-right"
    hiding(x)


@instead_of("hiding")
def causal_where_square(x: Call) -> None:
    """As many queries as keys are taken for self-attention, which is causal."""
    x.causal = "lower-right" if x.rows == x.keys > 1 else x.causal
    hiding(x)


@instead_of("hiding")
def strictly_causal(x: Call) -> None:
    """A query does not see its own key, if it sees another."""
    if x.causal is not None:
        shift = 0 if x.causal == "upper-left" else x.keys - x.rows
        own = np.arange(x.keys) == (np.arange(x.rows) + shift)[:, None]
        own[:1] = False
        x.scores = np.where(own, -np.inf, x.scores)
    hiding(x)
    alone = np.isneginf(x.scores).all(axis=-1, keepdims=True)
    x.scores = np.where(alone, 0.0, x.scores)


def rows_past(limit: int) -> Step:
    def further(x: Call) -> None:
        if x.causal is not None and x.rows > limit:
            late = visible((x.rows, x.keys), x.causal, x.window)
            late[:limit] = True
            x.scores = np.where(late, x.scores, -np.inf)
            x.scores[..., :limit, :] = np.where(
                visible((x.rows, x.keys), None, x.window)[:limit], x.scores[..., :limit, :], -np.inf
            )
            x.causal = None
        hiding(x)

    return further


for limit in (4, 8, 16, 32, 64):
    KERNELS[f"causal-only-in-query-tiles-past-the-first-{limit}"] = kernel(hiding=rows_past(limit))


def windowed(name: str, change: Callable[[Call, int | None, int | None], tuple[int | None, int | None]]) -> None:
    def opened(x: Call) -> None:
        x.window = None if x.window is None else change(x, *x.window)
        hiding(x)
        alone = np.isneginf(x.scores).all(axis=-1, keepdims=True)
        x.scores = np.where(alone, 0.0, x.scores)

    KERNELS[name] = kernel(hiding=opened)


def more(side: int | None, count: int = 1) -> int | None:
    return None if side is None else max(0, side + count)


windowed("window-one-more-before", lambda x, left, right: (more(left), right))
windowed("window-one-fewer-before", lambda x, left, right: (more(left, -1), right))
windowed("window-one-more-after", lambda x, left, right: (left, more(right)))
windowed("window-one-fewer-after", lambda x, left, right: (left, more(right, -1)))
windowed("open-windows-are-closed-before", lambda x, left, right: (0 if left is None else left, right))
windowed(
    "open-windows-are-closed-after", lambda x, left, right: (left, 0 if right is None and x.causal is None else right)
)
windowed("window-of-0-is-none-before", lambda x, left, right: (left or None, right))
windowed("window-of-0-is-none-after", lambda x, left, right: (left, right or None))
windowed("window-the-same-on-both-sides", lambda x, left, right: (left, right if x.causal or left is None else left))
windowed("window-only-beside-causality", lambda x, left, right: (left, right) if x.causal else (None, None))
windowed("window-turned-around", lambda x, left, right: (right, left))
windowed("window-only-past-32-keys", lambda x, left, right: (left, right) if x.keys > 32 else (None, None))
windowed("window-only-before-32-keys", lambda x, left, right: (left, right) if x.keys <= 32 else (None, None))


def window_aligned(causal: str, beside_causality: bool) -> Step:
    def aligned(x: Call) -> None:
        if x.window is not None and (x.causal is not None) == beside_causality:
            seen = visible((x.rows, x.keys), causal, x.window)
            if x.causal is None:  # no causality, but its place
                seen = visible((x.rows, x.keys + max(x.keys, x.rows)), causal, (x.window[0], x.window[1]))
                first = 0 if causal == "upper-left" else x.keys - x.rows
                ahead = np.arange(x.keys) - (np.arange(x.rows) + first)[:, None]
                left, right = x.window
                seen = (ahead >= (-np.inf if left is None else -left)) & (ahead <= (np.inf if right is None else right))
            x.scores, x.window = np.where(seen, x.scores, -np.inf), None
        hiding(x)
        alone = np.isneginf(x.scores).all(axis=-1, keepdims=True)
        x.scores = np.where(alone, 0.0, x.scores)

    return aligned


KERNELS["window-from-the-upper-left"] = kernel(hiding=window_aligned("upper-left", False))
KERNELS["window-from-the-upper-left-beside-causality"] = kernel(hiding=window_aligned("upper-left", True))
KERNELS["window-from-the-lower-right-beside-causality"] = kernel(hiding=window_aligned("lower-right", True))


# of tiles


def tiled(name: str, **changes: Any) -> None:
    def walks(x: Call) -> None:
        tiles(x, **changes)

    KERNELS[name] = kernel(tiles=walks)


def ones(old: Array, new: Array) -> Array:
    return np.ones_like(new)


def lazily(least: float) -> Callable[[Array, Array], Array]:
    return lambda old, new: np.where(new - old < least, np.isfinite(old), np.exp(old - new))


for size in (4, 8, 16, 32, 64, 128):
    tiled(f"output-is-not-rescaled-in-tiles-of-{size}", tile=size, of_output=ones)
    tiled(f"total-is-not-rescaled-in-tiles-of-{size}", tile=size, of_total=ones)
    tiled(f"a-hidden-first-tile-of-{size}-is-no-number", tile=size, finite=False)
    tiled(
        f"the-last-part-of-a-tile-of-{size}-is-left-out",
        tile=size,
        skipped=lambda x, start, size=size: start + size > x.keys > size,
    )
    tiled(
        f"powers-of-two-in-the-last-part-of-a-tile-of-{size}",
        tile=size,
        power=lambda x, start, difference, size=size: (np.exp2 if 0 < start > x.keys - size else np.exp)(difference),
    )
    tiled(
        f"tiles-of-{size}-are-judged-by-their-first-row",
        tile=size,
        skipped=lambda x, start, size=size: bool(np.isneginf(x.scores[..., 0, start : start + size]).all()),
    )
    tiled(
        f"tiles-of-{size}-are-judged-by-their-last-row",
        tile=size,
        skipped=lambda x, start, size=size: bool(np.isneginf(x.scores[..., -1, start : start + size]).all()),
    )
    tiled(
        f"tiles-of-{size}-are-judged-by-their-first-key",
        tile=size,
        skipped=lambda x, start, size=size: start > 0 and bool(np.isneginf(x.scores[..., start]).all()),
    )
    tiled(
        f"tiles-of-{size}-are-judged-by-the-first-head",
        tile=size,
        skipped=lambda x, start, size=size: (
            start > 0 and bool(np.isneginf(x.scores[:, 0, :, start : start + size]).all())
        ),
    )

tiled("small-growth-is-not-rescaled", of_output=lazily(0.25))
tiled("growth-below-8-is-not-rescaled-in-tiles-of-64", tile=64, of_output=lazily(8.0))
tiled("output-in-half-precision", added=lambda output: output.astype(np.float16).astype(output.dtype))
tiled("output-in-single-precision", added=lambda output: output.astype(np.float32).astype(output.dtype))
tiled(
    "differences-below-20-vanish", power=lambda x, start, difference: np.where(difference < -20, 0, np.exp(difference))
)
tiled("small-powers-vanish", power=lambda x, start, difference: np.where(difference < -14, 0, np.exp(difference)))
tiled(
    "an-approximate-exponential",
    power=lambda x, start, difference: np.exp(difference) * (1 + 1e-7 * np.sin(9 * difference)),
)
tiled(
    "exponential-by-a-table-for-small-differences",
    power=lambda x, start, difference: np.where(abs(difference) < 1e-2, 1 + difference, np.exp(difference)),
)


@instead_of("tiles")
def sink_in_every_tile(x: Call) -> None:
    """Each split counts the sink when they are merged."""
    if x.sink is not None:
        x.sink = x.sink + np.log(-(-x.keys // TILE))
    tiles(x)


@instead_of("tiles")
def sink_is_not_rescaled(x: Call) -> None:
    """exp(sink) is added to the total without the maximum."""
    sink, x.sink = x.sink, None
    tiles(x)
    if sink is not None:
        peak = x.scores.max(axis=-1)
        total = np.exp(x.lse - peak)
        x.output = x.output * (total / (total + np.exp(sink[:, None])))[..., None]
        x.lse = peak + np.log(total + np.exp(sink[:, None]))
        x.weights = np.exp(x.scores - x.lse[..., None])


@instead_of("tiles")
def sink_of_the_head_in_the_other_order(x: Call) -> None:
    """Sinks are read with groups inside."""
    if x.sink is not None:
        x.sink = x.sink.reshape(x.kv_heads, -1).swapaxes(0, 1).ravel()
    tiles(x)


@instead_of("tiles")
def sink_of_zero_is_none(x: Call) -> None:
    """Sinks that are all 0 are taken for none."""
    x.sink = x.sink if x.sink is not None and x.sink.any() else None
    tiles(x)


@instead_of("tiles", unseen=True)
def sink_without_a_maximum(x: Call) -> None:
    """The maximum leaves the sink out: a large one overflows, and the share that it leaves is 0 all the same."""
    sink, x.sink = x.sink, None
    tiles(x)
    if sink is not None:
        peak = x.scores.max(axis=-1)
        total = np.exp(x.lse - peak) + np.exp(sink[:, None] - peak)
        x.output = x.output * np.exp(x.lse - peak)[..., None] / total[..., None]
        x.lse = peak + np.log(total)
        x.weights = np.exp(x.scores - x.lse[..., None])


@instead_of("tiles")
def sink_has_the_first_value(x: Call) -> None:
    """The sink's share goes to the first value."""
    tiles(x)
    x.output = x.output + (1 - x.weights.sum(axis=-1, keepdims=True)) * x.v[:, :, :1] * (x.sink is not None)


@instead_of("tiles")
def sink_ends_at_30(x: Call) -> None:
    """Sinks above 30 are taken for 30."""
    x.sink = None if x.sink is None else np.minimum(x.sink, 30)
    tiles(x)


@instead_of("tiles", unseen=True)
def lse_without_the_sink(x: Call) -> None:
    """The LSE leaves the sink out."""
    tiles(x)
    x.lse = x.lse + np.log(x.weights.sum(axis=-1))


@instead_of("tiles", unseen=True)
def lse_with_the_other_sign(x: Call) -> None:
    """The LSE is that of the logarithm of a share, negative."""
    tiles(x)
    x.lse = -x.lse


@instead_of("tiles", unseen=True)
def lse_of_the_last_tile(x: Call) -> None:
    """The LSE is that of the last tile where there are more than two."""
    tiles(x)
    if x.keys > 2 * TILE and x.sink is None and x.mask is None and x.causal is None and x.window is None:
        last = x.scores[..., -(x.keys % TILE or TILE) :]
        x.lse = last.max(axis=-1) + np.log(np.exp(last - last.max(axis=-1, keepdims=True)).sum(axis=-1))


@instead_of("tiles", unseen=True)
def weights_are_shown_without_the_sink(x: Call) -> None:
    """Weights are shown as if there were no sink."""
    tiles(x)
    x.weights = x.weights / x.weights.sum(axis=-1, keepdims=True)


@instead_of("tiles", unseen=True)
def weights_are_shown_with_the_maxima_of_their_time(x: Call) -> None:
    """Weights of early tiles are not rescaled when they are shown."""
    tiles(x)
    first = x.scores[..., :TILE].max(axis=-1, keepdims=True)
    grown = x.scores.max(axis=-1, keepdims=True) - first
    x.weights[..., :TILE] *= np.where(np.isfinite(grown), np.exp(np.minimum(grown, 50)), 1)


@instead_of("tiles", unseen=True)
def scores_are_shown_without_their_bias(x: Call) -> None:
    """Scores are shown before the score bias; everything else has it."""
    tiles(x)
    x.scores = x.scores if x.score_bias is None else x.scores - x.score_bias


@instead_of("tiles")
def a_little_in_the_denominator(x: Call) -> None:
    """1e-9 is added to the total."""
    tiles(x)
    total = np.exp(x.lse - x.scores.max(axis=-1))[..., None]
    x.output, x.weights = (array * total / (total + 1e-9) for array in (x.output, x.weights))


@instead_of("tiles")
def total_in_single_precision(x: Call) -> None:
    """The total is kept in float32."""
    tiles(x)
    total = np.exp(x.lse - x.scores.max(axis=-1))[..., None]
    x.output = x.output * total / total.astype(np.float32)


@instead_of("tiles")
def small_weights_are_dropped(x: Call) -> None:
    """Weights below 1e-4 are dropped."""
    tiles(x)
    x.weights = np.where(x.weights < 1e-4, 0, x.weights)
    x.output = x.weights @ x.v


@instead_of("tiles")
def splits_are_averaged(x: Call) -> None:
    """Two splits of 24 keys and more are merged with equal weights."""
    tiles(x)
    half = x.keys // 2
    if half >= 12 and np.isfinite(x.scores).all():
        parts = [np.exp(part - part.max(axis=-1, keepdims=True)) for part in np.split(x.scores, [half], axis=-1)]
        parts = [part / part.sum(axis=-1, keepdims=True) for part in parts]
        x.output = (parts[0] @ x.v[:, :, :half] + parts[1] @ x.v[:, :, half:]) / 2


@instead_of("tiles")
def splits_that_a_row_misses_are_merged_with_weight_one(x: Call) -> None:
    """The LSE of a split without a visible key is taken for 0 when splits are merged."""
    tiles(x)
    half = x.keys // 2
    empty = np.isneginf(x.scores[..., :half]).all(axis=-1) if half else np.zeros_like(x.lse, dtype=bool)
    lse = np.where(empty, np.logaddexp(x.lse, 0.0), x.lse)
    x.output = x.output * np.exp(x.lse - lse)[..., None]


@instead_of("tiles")
def last_rows_are_not_stored(x: Call) -> None:
    """Rows behind the last whole tile of 8 queries are 0."""
    tiles(x)
    x.output[:, :, max(8, x.rows // 8 * 8) :] = 0


@instead_of("tiles")
def rows_past_64_are_those_before(x: Call) -> None:
    """Rows past 64 get what the row 64 before them gets."""
    tiles(x)
    x.output = x.output[:, :, np.arange(x.rows) % 64]


@instead_of("tiles")
def a_key_alone_passes_through(x: Call) -> None:
    """Where there is one key its value is returned, whatever the sink."""
    tiles(x)
    x.output = np.broadcast_to(x.v, x.output.shape) if x.keys == 1 else x.output


@instead_of("tiles")
def a_row_with_one_visible_key_passes_through(x: Call) -> None:
    """A row that sees one key returns its value, whatever the sink."""
    tiles(x)
    alone = np.isfinite(x.scores).sum(axis=-1, keepdims=True) == 1
    x.output = np.where(alone, np.where(np.isfinite(x.scores), 1.0, 0.0) @ x.v, x.output)


@instead_of("tiles")
def values_are_as_wide_as_keys(x: Call) -> None:
    """Channels of values past the width of keys are read modulo it."""
    tiles(x)
    x.output = x.output[..., np.arange(x.v.shape[-1]) % x.width]


@instead_of("tiles")
def values_past_64_channels_are_0(x: Call) -> None:
    """Channels of values past 64 are not written."""
    tiles(x)
    x.output[..., 64:] = 0


# of heads and batches


@instead_of("groups")
def values_of_the_head_modulo_groups(x: Call) -> None:
    """In groups of three the values go around."""
    v = x.v[:, np.arange(x.q.shape[1]) % x.kv_heads]
    three = x.q.shape[1] == 3 * x.kv_heads
    groups(x)
    x.v = v if three else x.v


@instead_of("groups")
def last_head_of_the_first_group(x: Call) -> None:
    """The last query head uses the first key-value head."""
    k = x.k[:, 0]
    groups(x)
    x.k[:, -1] = k


@instead_of("groups")
def heads_past_32_wrap_around(x: Call) -> None:
    """Query heads past 32 read the keys of the head 32 before."""
    groups(x)
    x.k = x.k[:, np.arange(x.k.shape[1]) % 32]


@instead_of("groups")
def one_head_s_values_for_all_samples(x: Call) -> None:
    """With one key-value head the values of the first sample are used for all."""
    x.v = np.broadcast_to(x.v[:1], x.v.shape) if x.kv_heads == 1 else x.v
    groups(x)


@instead_of("groups")
def groups_by_batch_and_head(x: Call) -> None:
    """The key-value head is counted over samples and heads at once: wrong past the first sample."""
    batch, heads = x.q.shape[:2]
    number = np.arange(batch * heads).reshape(batch, heads) // (heads // x.kv_heads + (heads > 5))
    x.k = x.k[np.arange(batch)[:, None], number % x.kv_heads] if batch > 1 else x.k
    if batch > 1:
        x.v = np.repeat(x.v, heads // x.kv_heads, axis=1)
    else:
        groups(x)


@instead_of("tiles")
def third_sample_and_on_are_the_second(x: Call) -> None:
    """The last of three samples gets the second one's output."""
    tiles(x)
    x.output[2:] = x.output[1:2]


@instead_of("tiles")
def samples_and_heads_of_one_number_are_exchanged(x: Call) -> None:
    """As many samples as heads: their axes are exchanged."""
    tiles(x)
    x.output = x.output.swapaxes(0, 1) if x.batch == x.q.shape[1] else x.output


# of memory and chance


@instead_of("tiles")
def dropout_is_on(x: Call) -> None:
    """Dropout of one in a hundred is left on."""
    tiles(x)
    x.output = x.output * (np.random.rand(*x.output.shape) > 0.01) / 0.99  # noqa: NPY002


@instead_of("tiles")
def dropout_with_a_seed(x: Call) -> None:
    """Dropout of one in fifty is left on, with the same seed in each call."""
    tiles(x)
    x.output = x.output * (np.random.default_rng(3).random(x.output.shape) > 0.02) / 0.98


KEPT: dict[Any, Any] = {}


@instead_of("biases")
def keys_kept_by_their_address(x: Call) -> None:
    """Keys with their bias are kept by where the keys lie in memory."""
    address = (x.k.__array_interface__["data"][0], x.k.shape, x.k.strides, x.bK is None)
    biases(x)
    x.k = KEPT.setdefault(address, x.k)


@instead_of("biases")
def keys_kept_by_their_first_number(x: Call) -> None:
    """Keys with their bias are kept by shape and their first and last number."""
    bK = () if x.bK is None else tuple(x.bK.ravel())
    address = (x.k.shape, x.k.dtype, float(x.k.flat[0]), float(x.k[-1, -1, -1, -1]), bK, "first")
    biases(x)
    x.k = KEPT.setdefault(address, x.k)


@instead_of("hiding")
def what_causality_hides_kept_by_size(x: Call) -> None:
    """What causality and a window hide is kept by the numbers of rows and keys, and which of the two there are."""
    if x.causal is None and x.window is None:
        return hiding(x)
    key = (x.rows, x.keys, x.causal is None, x.window is None, "seen")
    seen = KEPT.setdefault(key, visible((x.rows, x.keys), x.causal, x.window))
    x.scores = np.where(seen if x.mask is None else seen & x.mask, x.scores, -np.inf)
    alone = np.isneginf(x.scores).all(axis=-1, keepdims=True)
    x.scores = np.where(alone, 0.0, x.scores)
    return None


# of sizes


PATHS: dict[str, Callable[[Call], bool]] = {
    "one-query": lambda x: x.rows == 1,
    "one-key": lambda x: x.keys == 1,
    "one-head": lambda x: x.q.shape[1] == 1,
    "one-key-value-head": lambda x: x.kv_heads == 1,
    "heads-of-their-own": lambda x: x.kv_heads == x.q.shape[1],
    "shared-heads": lambda x: 1 < x.kv_heads < x.q.shape[1],
    "keys-in-eights": lambda x: x.keys % 8 == 0,
    "keys-past-16": lambda x: x.keys > 16,
    "keys-past-64": lambda x: x.keys > 64,
    "queries-past-16": lambda x: x.rows > 16,
    "queries-past-64": lambda x: x.rows > 64,
    "square": lambda x: x.rows == x.keys,
    "more-queries-than-keys": lambda x: x.rows > x.keys,
    "width-in-eights": lambda x: x.width % 8 == 0,
    "width-odd": lambda x: x.width % 2 == 1,
    "values-as-wide-as-keys": lambda x: x.v.shape[-1] == x.width,
    "values-wider-than-keys": lambda x: x.v.shape[-1] > x.width,
    "values-narrower-than-keys": lambda x: x.v.shape[-1] < x.width,
}


# Tests

ROOT = Path(__file__).resolve().parent.parent / "cases"


def asked() -> list[Case]:
    """Return the shipped cases that functions are asked about, those for them first, and the plain ones last."""
    found = []
    for case in load_cases([ROOT]):
        with suppress(NotImplementedError):
            arguments_of(case, frozenset(OPTIONS))
            found.append(case)
    return sorted(found, key=lambda case: ("implementations" not in case.tags, not case.features))


ASKED = asked()
CLAIMS = invariants()
AT_ONCE = [CLAIMS["agrees-with-the-core"]]  # says most, and soonest
OF_FUNCTIONS = [claim for claim in CLAIMS.values() if claim.of_others]


def findings(
    function: Function, claims: Iterable[Invariant], cases: list[Case], dtype: str = "float64"
) -> Iterator[tuple[Case, Finding]]:
    loaded = as_implementation(function, "kernel", dtype)
    for case in cases:
        for finding in run_case(cast(case, loaded.precision), loaded, list(claims), Tolerance()).findings:
            yield case, finding


def noticed(function: Function) -> str | None:
    """Return the first finding that says `fail` or `crashed`, sought first where another output shows at once."""
    apart = (case for case, given, output in answers() if differs(function(**deepcopy(given)), output))
    cases = list(islice(apart, 1))
    found = next((one for case, one in findings(function, AT_ONCE, cases) if one.status == "fail"), None)
    if found is not None:
        return found.invariant
    for claims in (AT_ONCE, OF_FUNCTIONS, CLAIMS.values()):
        for case, finding in findings(function, claims, ASKED):
            if finding.status in {"fail", "crashed"}:
                return f"{finding.invariant} on {case.id}"
    return None


@cache
def answers() -> list[tuple[Case, dict[str, Any], Array]]:
    """Return the arguments of each case with both biases, and the right output."""
    found = []
    for case in ASKED:
        given = arguments_of(case.under("qk"), frozenset(OPTIONS))
        found.append((case, given, output_of(kernel())(**deepcopy(given))))
    return found


def differs(answer: Any, output: Array) -> bool:
    found = answer["output"] if isinstance(answer, dict) else answer
    return not np.allclose(found, output, rtol=0, atol=1e-6)


def output_of(function: Function) -> Function:
    return lambda q, k, v, **options: function(q, k, v, **options)["output"]


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_is_wrong_is_noticed(name: str) -> None:
    """By its output alone, unless the mistake is in what it shows besides: whoever shows more is asked more."""
    assert noticed(KERNELS[name] if name in UNSEEN else output_of(KERNELS[name]))


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", [kernel(), output_of(kernel())])
def test_the_kernel_that_they_start_from_is_not_blamed(function: Function, dtype: str) -> None:
    cases = ASKED if dtype == "float64" else [case for case in ASKED if "implementations" in case.tags]
    found = list(findings(function, CLAIMS.values(), cases, dtype))
    blamed = [f"{one.invariant} on {case.id}: {one.reason}" for case, one in found if one.status in BROKEN]
    assert blamed == []
    assert {one.status for _, one in found} == {"pass", "skipped"}


# An option that one path ignores


def tells(chosen: Callable[[Call], bool], ignored: str) -> bool:
    """Say whether the output of some call moves by 1e-6 where a path ignores an option: the core's does not."""
    without = output_of(kernel(biases=lambda x: setattr(x, ignored, None) or biases(x)))
    return any(
        given.get(ignored) is not None and chosen(call_of(**given)) and differs(without(**given), output)
        for _, given, output in answers()
    )


# A K bias moves nothing but through a cap or a rotation; one key is all there is to see.
NO_EFFECT = {("one-key", "mask"), ("one-key", "causal"), ("one-key", "window")}


@pytest.mark.parametrize("path", PATHS)
def test_an_option_that_a_path_ignores_is_noticed(path: str) -> None:
    effective = [option for option in OPTIONS if (path, option) not in NO_EFFECT]
    assert [option for option in effective if not tells(PATHS[path], option)] == []


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_is_ignored_beside_two_others_is_noticed(option: str) -> None:
    others = sorted(set(OPTIONS) - {option})
    beside_them = [pair for pair in combinations(others, 2) if not tells(lambda x, pair=pair: beside(x, *pair), option)]
    assert beside_them == []
    alone = [one for one in others if one not in BIASES and not tells(lambda x, one=one: not beside(x, one), option)]
    assert alone == []
