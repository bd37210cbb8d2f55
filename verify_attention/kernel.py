"""Attention as a function of arrays, in plain steps that can be swapped: wrong code is made of it, and right code.

It shares nothing with the float64 core. Arrays are as the interface of functions has them: q `[B, H, Tq, d_k]`,
k `[B, G, Tk, d_k]`, v `[B, G, Tk, d_v]`. Numbers stay in the dtype in which they come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from verify_attention.model import Array, Flags, Indices


class Question(NamedTuple):
    """What an attention function is asked; options that are not given are None."""

    q: Array
    k: Array
    v: Array
    mask: Flags | None = None
    score_bias: Array | None = None
    causal: str | None = None
    window: tuple[int | None, int | None] | None = None
    scale: float | None = None
    softcap: float | None = None
    sink: Array | None = None
    rope: Mapping[str, Any] | None = None
    bQ: Array | None = None
    bK: Array | None = None
    bV: Array | None = None

    @property
    def scores_shape(self) -> tuple[int, int, int, int]:
        """The shape of scores and weights, `[B, H, Tq, Tk]`."""
        return *self.q.shape[:3], self.k.shape[2]

    @property
    def factor(self) -> float:
        """The scale, which is 1/√d_k where none is given."""
        return float(self.q.shape[-1] ** -0.5) if self.scale is None else self.scale

    @property
    def aligned(self) -> Indices:
        """The position of each query on the key axis, `[Tq]`."""
        _, _, rows, keys = self.scores_shape
        return np.arange(rows) + (0 if self.causal == "upper-left" else keys - rows)

    @property
    def group(self) -> int:
        """How many query heads share a key-value head."""
        return self.q.shape[1] // self.k.shape[1]


def biased(vectors: Array, bias: Array | None) -> Array:
    """Return vectors `[B, n, T, d]` plus a bias `[n, d]`."""
    return vectors if bias is None else vectors + bias[:, None]


def rotated(rope: Mapping[str, Any], side: Literal["q", "k"], vectors: Array) -> Array:
    """Turn each pair of channels by position·base^(−2t/r)."""
    dims = rope["rotary_dims"]
    pairs = np.arange(dims // 2)
    angles = np.asarray(rope[f"{side}_positions"])[:, None] * rope["base"] ** (-2 * pairs / dims)
    cos, sin = np.cos(angles).astype(vectors.dtype), np.sin(angles).astype(vectors.dtype)
    a, b = (pairs, pairs + dims // 2) if rope["layout"] == "half" else (2 * pairs, 2 * pairs + 1)
    turned = vectors.copy()
    turned[..., a] = vectors[..., a] * cos - vectors[..., b] * sin
    turned[..., b] = vectors[..., a] * sin + vectors[..., b] * cos
    return turned


def turned(ask: Question, side: Literal["q", "k"], vectors: Array) -> Array:
    """Return queries or keys as the rotation, where there is one, leaves them."""
    return vectors if ask.rope is None else rotated(ask.rope, side, vectors)


def repeated(ask: Question, vectors: Array) -> Array:
    """Return key-value heads `[B, G, …]` as their query heads see them, `[B, H, …]`."""
    return np.repeat(vectors, ask.group, axis=1)


def products(ask: Question, queries: Array, keys: Array) -> Array:
    """Return scaled scores, `[B, H, Tq, Tk]`."""
    return queries @ keys.swapaxes(-1, -2) * ask.factor


def bent(ask: Question, scores: Array) -> Array:
    """Return scores inside the cap."""
    return scores if ask.softcap is None else ask.softcap * np.tanh(scores / ask.softcap)


def with_score_bias(ask: Question, scores: Array) -> Array:
    """Return scores plus the score bias."""
    return scores if ask.score_bias is None else scores + ask.score_bias


def causal_seen(ask: Question) -> Flags:
    """Return which keys do not stand behind a query, `[Tq, Tk]`."""
    ahead = np.arange(ask.k.shape[2]) - ask.aligned[:, None]
    return ahead <= 0 if ask.causal else np.ones_like(ahead, dtype=bool)


def window_seen(ask: Question) -> Flags:
    """Return which keys lie in the window of a query, `[Tq, Tk]`."""
    ahead = np.arange(ask.k.shape[2]) - ask.aligned[:, None]
    left, right = ask.window or (None, None)
    return (ahead >= (-np.inf if left is None else -left)) & (ahead <= (np.inf if right is None else right))


def mask_seen(ask: Question) -> Flags:
    """Return which keys the mask lets a query see, `[B, H, Tq, Tk]`."""
    return np.broadcast_to(True if ask.mask is None else ask.mask, ask.scores_shape)


def hidden(ask: Question, scores: Array, seen: Flags) -> Array:  # noqa: ARG001 - a step is given what is asked
    """Return scores with −∞ where a key is not seen."""
    return np.where(seen, scores, np.asarray(-np.inf, scores.dtype))


def softmax(ask: Question, scores: Array, peak: Array | None = None) -> tuple[Array, Array]:
    """Return weights `[B, H, Tq, Tk]` and LSE `[B, H, Tq]`; `peak` `[B, H, Tq, 1]` stands for each row's maximum."""
    sink = np.full_like(scores[..., :1], -np.inf)
    if ask.sink is not None:
        sink[...] = ask.sink[:, None, None]
    highest = np.maximum(scores.max(axis=-1, keepdims=True), sink) if peak is None else peak
    powers = np.exp(scores - highest)
    total = powers.sum(axis=-1, keepdims=True) + np.exp(sink - highest)
    return powers / total, (highest + np.log(total))[..., 0]


def mixed(ask: Question, weights: Array, values: Array) -> Array:  # noqa: ARG001 - a step is given what is asked
    """Return the output, `[B, H, Tq, d_v]`."""
    return weights @ values


@dataclass(frozen=True, eq=False)
class Kernel:
    """An attention function: its steps in their order, and what it shows beside its output."""

    queries: Callable[[Question], Array] = lambda ask: biased(ask.q, ask.bQ)
    keys: Callable[[Question], Array] = lambda ask: biased(ask.k, ask.bK)
    values: Callable[[Question], Array] = lambda ask: biased(ask.v, ask.bV)
    turn: Callable[[Question, Literal["q", "k"], Array], Array] = turned
    group: Callable[[Question, Array], Array] = repeated
    product: Callable[[Question, Array, Array], Array] = products
    bend: Callable[[Question, Array], Array] = bent
    add: Callable[[Question, Array], Array] = with_score_bias
    by_cause: Callable[[Question], Flags] = causal_seen
    by_window: Callable[[Question], Flags] = window_seen
    by_mask: Callable[[Question], Flags] = mask_seen
    hide: Callable[[Question, Array, Flags], Array] = hidden
    normalise: Callable[[Question, Array], tuple[Array, Array]] = softmax
    mix: Callable[[Question, Array, Array], Array] = mixed
    finish: Callable[[Question, dict[str, Array]], dict[str, Array]] = lambda _, answer: answer
    shows: tuple[str, ...] = ("weights", "scores", "lse")

    def __call__(  # noqa: PLR0913 - the interface has as many
        self,
        q: Array,
        k: Array,
        v: Array,
        *,
        mask: Flags | None = None,
        score_bias: Array | None = None,
        causal: str | None = None,
        window: tuple[int | None, int | None] | None = None,
        scale: float | None = None,
        softcap: float | None = None,
        sink: Array | None = None,
        rope: Mapping[str, Any] | None = None,
        bQ: Array | None = None,
        bK: Array | None = None,
        bV: Array | None = None,
    ) -> dict[str, Array]:
        """Attend, and show the output and whatever `shows` names."""
        ask = Question(q, k, v, mask, score_bias, causal, window, scale, softcap, sink, rope, bQ, bK, bV)
        return self.answer(ask)

    def answer(self, ask: Question) -> dict[str, Array]:
        """Attend to a question."""
        scores = self.scores(ask)
        weights, lse = self.normalise(ask, scores)
        output = self.mix(ask, weights, self.group(ask, self.values(ask)))
        answer = self.finish(ask, {"output": output, "weights": weights, "scores": scores, "lse": lse})
        return {name: answer[name] for name in ("output", *self.shows)}

    def scores(self, ask: Question) -> Array:
        """Return what enters the exponential, `[B, H, Tq, Tk]`."""
        queries = self.turn(ask, "q", self.queries(ask))
        keys = self.group(ask, self.turn(ask, "k", self.keys(ask)))
        scores = self.add(ask, self.bend(ask, self.product(ask, queries, keys)))
        return self.hide(ask, scores, self.seen(ask))

    def seen(self, ask: Question) -> Flags:
        """Return which keys a query sees, `[B, H, Tq, Tk]`."""
        return self.by_mask(ask) & self.by_cause(ask) & self.by_window(ask)

    def but(self, **steps: Any) -> Kernel:
        """Return a kernel with some steps swapped."""
        return replace(self, **steps)


attention = Kernel()
