"""Attention written correctly in other ways, as functions of arrays: no claim may fail on any of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from verify_attention.functions import Function
from verify_attention.kernel import Question, attention, mixed, products, softmax
from verify_attention.model import Array, Flags

LOG2E = math.log2(math.e)
VARIATIONS: dict[str, Function] = {}


def variation(name: str) -> Callable[[Function], Function]:
    """Enter a function by what is particular about it."""

    def enter(function: Function) -> Function:
        VARIATIONS[name] = function
        return function

    return enter


# Other orders of the same operations


@variation("online softmax, in blocks of two keys")
def online(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
    """Keep a running maximum, a running sum and a running output; a sink begins all three."""
    ask = Question(q, k, v, **options)
    scores, values = attention.scores(ask), attention.group(ask, attention.values(ask))
    total = np.zeros_like(scores[..., 0]) if ask.sink is None else np.ones_like(scores[..., 0])
    peak = np.broadcast_to(-np.inf if ask.sink is None else ask.sink[:, None], total.shape)
    output = np.zeros((*total.shape, values.shape[-1]))
    for start in range(0, scores.shape[-1], 2):
        block = scores[..., start : start + 2]
        higher = np.maximum(peak, block.max(axis=-1))
        base = np.where(np.isfinite(higher), higher, 0.0)  # nothing seen yet
        powers, kept = np.exp(block - base[..., None]), np.exp(peak - base)
        total = total * kept + powers.sum(axis=-1)
        output = output * kept[..., None] + powers @ values[:, :, start : start + 2]
        peak = higher
    weights = np.exp(scores - peak[..., None]) / total[..., None]
    return {"output": output / total[..., None], "weights": weights, "scores": scores, "lse": peak + np.log(total)}


def _scaled_queries(ask: Question, queries: Array, keys: Array) -> Array:
    return (queries * ask.factor) @ keys.swapaxes(-1, -2)


VARIATIONS["the scale folded into q"] = attention.but(product=_scaled_queries)


@variation("K centred, with scores and LSE put right")
def centred(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
    """Take off the mean of the keys that are seen; a row's scores and LSE lack s·q_i·mean then, which is put back.

    A cap bends scores as they are, and a sink stays where it is: beside these they are put right at once.
    """
    ask = Question(q, k, v, **options)
    queries = attention.turn(ask, "q", attention.queries(ask))
    keys = attention.group(ask, attention.turn(ask, "k", attention.keys(ask)))
    seen = attention.seen(ask)
    somewhere: Flags = np.any(seen, axis=2, keepdims=True).swapaxes(2, 3)
    mean = keys.mean(axis=2, keepdims=True, where=somewhere)
    taken = products(ask, queries, mean)
    scores = products(ask, queries, keys - mean)
    back = 0.0 if ask.softcap is None and ask.sink is None else taken
    scores = attention.hide(ask, attention.add(ask, attention.bend(ask, scores + back)), seen)
    weights, lse = softmax(ask, scores)
    rest = taken - back
    output = mixed(ask, weights, attention.group(ask, attention.values(ask)))
    return {"output": output, "weights": weights, "scores": scores + rest, "lse": lse + rest[..., 0]}


def _base_two(ask: Question, scores: Array) -> tuple[Array, Array]:
    columns = scores if ask.sink is None else np.concatenate([scores, _sink_column(ask, scores)], axis=-1)
    peak = columns.max(axis=-1, keepdims=True)
    powers = np.exp2((columns - peak) * LOG2E)
    total = powers.sum(axis=-1, keepdims=True)
    return (powers / total)[..., : scores.shape[-1]], (peak + np.log2(total) / LOG2E)[..., 0]


def _sink_column(ask: Question, scores: Array) -> Array:
    logits = np.zeros(scores.shape[1]) if ask.sink is None else ask.sink
    return np.broadcast_to(logits[:, None, None], (*scores.shape[:-1], 1))


VARIATIONS["base-2 exponentials"] = attention.but(normalise=_base_two)


def _einsum_products(ask: Question, queries: Array, keys: Array) -> Array:
    return ask.factor * np.einsum("bhjd,bhid->bhij", keys, queries)


def _einsum_mixture(_: Question, weights: Array, values: Array) -> Array:
    return np.einsum("bhjd,bhij->bhid", values[:, :, ::-1], weights[..., ::-1])


VARIATIONS["einsum, and values from the last to the first"] = attention.but(
    product=_einsum_products, mix=_einsum_mixture
)


# Pure Python: the products, softmax and the mixture are lists of floats, each sum exact


def _each(function: Callable[..., Any], *arrays: Array) -> Array:
    """Return what a function makes of the lists of each sample and head."""
    samples = zip(*arrays, strict=True)
    return np.array(
        [[function(*(part.tolist() for part in head)) for head in zip(*one, strict=True)] for one in samples]
    )


def _exact_sum(left: list[float], right: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


def _fsum_products(ask: Question, queries: Array, keys: Array) -> Array:
    return _each(lambda q, k: [[ask.factor * _exact_sum(row, key) for key in k] for row in q], queries, keys)


def _fsum_softmax(ask: Question, scores: Array) -> tuple[Array, Array]:
    columns = scores if ask.sink is None else np.concatenate([scores, _sink_column(ask, scores)], axis=-1)
    lse = _each(
        lambda rows: [max(row) + math.log(math.fsum(math.exp(x - max(row)) for x in row)) for row in rows], columns
    )
    weights = _each(lambda rows: [_fsum_row(row)[: scores.shape[-1]] for row in rows], columns)
    return weights, lse


def _fsum_row(row: list[float]) -> list[float]:
    powers = [math.exp(score - max(row)) for score in row]
    total = math.fsum(powers)
    return [power / total for power in powers]


def _fsum_mixture(_: Question, weights: Array, values: Array) -> Array:
    return _each(
        lambda p, v: [[_exact_sum(row, list(channel)) for channel in zip(*v, strict=True)] for row in p],
        weights,
        values,
    )


VARIATIONS["pure Python with fsum"] = attention.but(product=_fsum_products, normalise=_fsum_softmax, mix=_fsum_mixture)


# Other numbers inside


def _inside(kind: Any) -> Function:
    """Return the kernel, with all arrays of numbers in another dtype inside."""

    def cast(value: Any) -> Any:
        return value.astype(kind) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value

    def asked(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
        answer = attention(cast(q), cast(k), cast(v), **{name: cast(value) for name, value in options.items()})
        return {name: part.astype(np.float64) for name, part in answer.items()}

    return asked


VARIATIONS["long doubles inside"] = _inside(np.longdouble)
VARIATIONS["float32 inside, declared as such"] = _inside(np.float32)
VARIATIONS["float32 inside, declared as such"].computes_in = "float32"  # type: ignore[attr-defined]


# Other arrays, and other signatures


def _laid(change: Callable[[Array], Array]) -> Function:
    """Return the kernel, with arrays of four axes laid in memory in another way before it and after it."""

    def asked(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
        answer = attention(change(q), change(k), change(v), **options)
        return {name: change(part) if part.ndim == 4 else part for name, part in answer.items()}

    return asked


VARIATIONS["transposed, contiguous copies"] = _laid(
    lambda array: np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2)
)
VARIATIONS["Fortran order"] = _laid(np.asfortranarray)
VARIATIONS["the output only"] = attention.but(shows=())


def _own_buffer() -> Function:
    """Return the kernel, with a buffer that every call writes to, and of which the output is a view."""
    buffer = np.empty(0)

    def asked(q: Array, k: Array, v: Array, **options: Any) -> Array:
        nonlocal buffer
        output = attention(q, k, v, **options)["output"]
        buffer = buffer if len(buffer) >= output.size else np.empty(output.size)
        view = buffer[: output.size].reshape(output.shape)
        view[...] = output
        return view

    return asked


VARIATIONS["a view of its own buffer"] = _own_buffer()


@variation("a signature without biases")
def without_biases(  # noqa: PLR0913 - the interface has as many
    q: Array,
    k: Array,
    v: Array,
    *,
    mask: Any = None,
    score_bias: Any = None,
    causal: Any = None,
    window: Any = None,
    scale: Any = None,
    softcap: Any = None,
    sink: Any = None,
    rope: Any = None,
) -> dict[str, Array]:
    """Leave the biases to whoever asks."""
    return attention.answer(Question(q, k, v, mask, score_bias, causal, window, scale, softcap, sink, rope))


@variation("a signature without options")
def without_options(q: Array, k: Array, v: Array) -> dict[str, Array]:
    """Know nothing but three arrays."""
    return attention(q, k, v)
