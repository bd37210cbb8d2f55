"""Attention with every feature in steps of numpy, right as they stand; a variation or a fault swaps some.

It shares no code with the package: key-value heads are repeated first, all arrays have query heads, and products are
`einsum`. `STEPS` is an implementation; `STEPS.but(cap=…)` is another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from slow_route import order_of_steps, positions

from verify_attention.model import Array, Case, Trace

Column = tuple[Array, Array | None]  # a key that a feature adds: scores [H, Tq], and its value [H, d_v]


def repeated(case: Case, of_groups: Array) -> Array:
    """Give each query head its key-value head, `[H, …]`; what has query heads stays."""
    return of_groups if len(of_groups) == len(case.q) else np.repeat(of_groups, len(case.q) // len(of_groups), axis=0)


def places(case: Case, side: str) -> Array:
    """Return the positions of one side, as a rotation counts them, `[T]`."""
    own = case.features.get("rope", {})
    return np.asarray(own.get(f"{side}_positions", positions(case)[0 if side == "q" else 1]), dtype=np.float64)


def add_bias(case: Case, side: str, rows: Array) -> Array:
    if side == "q":
        return rows + case.bQ[:, None]
    shifts = repeated(case, case.features["key_shifts"]) if "key_shifts" in case.features else 0.0
    return rows + shifts + repeated(case, case.bK)[:, None]


def gain_of(case: Case, side: str) -> Array:
    gain = case.features["qk_norm"].get(f"{side}_gain")
    return np.ones((len(case.q), 1, case.d_k)) if gain is None else repeated(case, gain)[:, None]


def eps_of(case: Case) -> float:
    return case.features["qk_norm"].get("eps", 1e-6)


def normed(rows: Array, kind: str, eps: float) -> Array:
    if kind == "layer":
        return (rows - rows.mean(axis=-1, keepdims=True)) / np.sqrt(rows.var(axis=-1, keepdims=True) + eps)
    power = (rows * rows).sum(axis=-1, keepdims=True) if kind == "l2" else (rows * rows).mean(axis=-1, keepdims=True)
    return rows / np.sqrt(power + eps)


def norm(case: Case, side: str, rows: Array) -> Array:
    return normed(rows, case.features["qk_norm"]["kind"], eps_of(case)) * gain_of(case, side)


def turned(rows: Array, angles: Array, dims: int, layout: str) -> Array:
    """Turn pairs of the first `dims` channels by their angles, `[T, dims/2]`."""
    a, b = (slice(0, dims // 2), slice(dims // 2, dims)) if layout == "half" else (slice(0, dims, 2), slice(1, dims, 2))
    result = rows.copy()
    result[..., a] = rows[..., a] * np.cos(angles) - rows[..., b] * np.sin(angles)
    result[..., b] = rows[..., a] * np.sin(angles) + rows[..., b] * np.cos(angles)
    return result


def dims_of(case: Case) -> int:
    return int(case.features["rope"].get("rotary_dims", case.d_k // 2 * 2))


def angles_of(case: Case, side: str, width: int | None = None) -> Array:
    """Return position·base^(−2t/r) for every row and pair, `[T, r/2]`."""
    dims, base = dims_of(case), case.features["rope"].get("base", 10000.0)
    return places(case, side)[:, None] * base ** (-2.0 * np.arange(dims // 2) / (width or dims))


def layout_of(case: Case) -> str:
    return case.features["rope"].get("layout", "half")


def rotate(case: Case, side: str, rows: Array) -> Array:
    return turned(rows, angles_of(case, side), dims_of(case), layout_of(case))


def order(case: Case) -> list[str]:
    return order_of_steps(dict(case.features))


def values_of(case: Case) -> Array:
    """Return the values without their bias, `[H, Tk, d_v]`."""
    values = np.stack([np.eye(case.keys.shape[1])] * len(case.keys)) if case.values is None else case.values
    return repeated(case, values)


def value_bias(case: Case) -> Array:
    return np.zeros((len(case.q), 1, case.d_v)) if case.bV is None else repeated(case, case.bV)[:, None]


def biased_values(case: Case) -> Array:
    return values_of(case) + value_bias(case)


def product(case: Case, queries: Array, keys: Array) -> Array:
    return np.einsum("hid,hjd->hij", queries, keys) * case.scale


def temper(case: Case, scores: Array) -> Array:
    own = case.features["temperature"]
    scores = scores / own["heads"][:, None, None] if "heads" in own else scores
    return scores / own["rows"][None, :, None] if "rows" in own else scores


def cap(case: Case, scores: Array) -> Array:
    return np.tanh(scores / case.features["softcap"]) * case.features["softcap"]


def add_score_bias(case: Case, scores: Array) -> Array:
    return scores + case.features["score_bias"]


def distance(case: Case) -> Array:
    """Return how far each key is behind each query, `[Tq, Tk]`."""
    queries, keys = (np.array(where, dtype=np.float64) for where in positions(case))
    return queries[:, None] - keys


def slopes_of(case: Case) -> Array:
    heads = len(case.q)
    given = case.features["alibi"].get("slopes")
    return (0.5 ** (8.0 * np.arange(1, heads + 1) / heads) if given is None else given)[:, None, None]


def add_alibi(case: Case, scores: Array) -> Array:
    return scores - slopes_of(case) * np.abs(distance(case))


def masked(case: Case) -> Array:
    return case.features["mask"]


def past(case: Case) -> Array:
    return np.broadcast_to(distance(case) >= 0, case.scores_shape)


def near(case: Case) -> Array:
    left, right = case.features["window"]
    behind = distance(case)
    allowed = np.ones_like(behind, dtype=bool) if left is None else behind <= left
    return np.broadcast_to(allowed if right is None else allowed & (-behind <= right), case.scores_shape)


def hide(case: Case, scores: Array, seen: Array) -> Array:
    return np.where(seen, scores, case.features.get("fill", -np.inf))


def sink_logits(case: Case) -> Array:
    return np.broadcast_to(np.asarray(case.features["sink"])[..., None], case.scores_shape[:2])


def columns(case: Case, queries: Array) -> list[Column]:
    found: list[Column] = [(sink_logits(case), None)] if "sink" in case.features else []
    zeros = np.zeros(case.scores_shape[:2])
    found += [(zeros, None) for name in ("softmax_plus_one", "zero_key") if name in case.features]
    if "appended_key" in case.features:
        own = case.features["appended_key"]
        key = repeated(case, own["key"])
        value = repeated(case, own["value"]) if "value" in own else None
        found.append((np.einsum("hid,hd->hi", queries, key) * case.scale, value))
    return found


def softmax(scores: Array) -> tuple[Array, Array]:
    """Return the weights and the LSE of every row."""
    peak = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - peak)
    total = powers.sum(axis=-1, keepdims=True)
    return powers / total, (peak + np.log(total))[..., 0]


def projected(scores: Array) -> Array:
    """Return the nearest point of the simplex, by the best of all numbers of keys."""
    high = scores - scores.max(axis=-1, keepdims=True)
    falling = np.sort(high, axis=-1)[..., ::-1]
    counts = np.arange(1, scores.shape[-1] + 1)
    with np.errstate(invalid="ignore"):
        excess = (np.cumsum(falling, axis=-1) - 1) / counts
        thresholds = np.where(falling > excess, excess, -np.inf)
    return np.maximum(high - thresholds.max(axis=-1, keepdims=True), 0.0)


def stand_in(case: Case, scores: Array) -> Array:
    """Return what stands for softmax."""
    own = case.features["normaliser"]
    if own["kind"] == "sigmoid":
        return np.exp(-np.logaddexp(0.0, -scores))
    if own["kind"] == "sparsemax":
        return projected(scores)
    places = np.argsort(-scores, axis=-1, kind="stable")[..., : int(own["k"])]
    kept = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(kept, places, values=True, axis=-1)
    return softmax(np.where(kept, scores, -np.inf))[0]


def normalise(case: Case, scores: Array, extra: list[Column]) -> tuple[Array, Array, Array]:
    """Return the weights of the keys, those of the added ones, and the LSE."""
    logits = np.concatenate([scores, *(logit[..., None] for logit, _ in extra)], axis=-1)
    weights, lse = softmax(logits)
    return weights[..., : scores.shape[-1]], weights[..., scores.shape[-1] :], lse


def mix(case: Case, weights: Array, values: Array) -> Array:
    return np.einsum("hij,hjd->hid", weights, values)


def mix_added(output: Array, shares: Array, extra: list[Column]) -> Array:
    for place, (_, value) in enumerate(extra):
        if value is not None:
            output = output + shares[..., place, None] * value[:, None]
    return output


@dataclass(frozen=True)
class Steps:
    order: Callable[[Case], list[str]] = order
    bias: Callable[[Case, str, Array], Array] = add_bias
    norm: Callable[[Case, str, Array], Array] = norm
    rotation: Callable[[Case, str, Array], Array] = rotate
    keys: Callable[[Case], Array] = lambda case: repeated(case, case.keys)
    values: Callable[[Case], Array] = biased_values
    product: Callable[[Case, Array, Array], Array] = product
    temperature: Callable[[Case, Array], Array] = temper
    softcap: Callable[[Case, Array], Array] = cap
    score_bias: Callable[[Case, Array], Array] = add_score_bias
    alibi: Callable[[Case, Array], Array] = add_alibi
    on_scores: tuple[str, ...] = ("temperature", "softcap", "score_bias", "alibi", "hiding")
    mask: Callable[[Case], Array] = masked
    causal: Callable[[Case], Array] = past
    window: Callable[[Case], Array] = near
    hide: Callable[[Case, Array, Array], Array] = hide
    columns: Callable[[Case, Array], list[Column]] = columns
    normaliser: Callable[[Case, Array], Array] = stand_in
    normalise: Callable[[Case, Array, list[Column]], tuple[Array, Array, Array]] = normalise
    mix: Callable[[Case, Array, Array], Array] = mix

    def but(self, **steps: Any) -> Steps:
        """Return steps with some swapped."""
        return replace(self, **steps)

    def vectors(self, case: Case, side: str) -> Array:
        """Return queries or keys as they are multiplied, `[H, T, d_k]`."""
        rows = case.q if side == "q" else self.keys(case)
        for step in self.order(case):
            rows = getattr(self, step)(case, side, rows)
        return rows

    def seen(self, case: Case) -> Array | None:
        """Return what may be attended to, `[H, Tq, Tk]`; None: everything."""
        found = [getattr(self, name)(case) for name in ("mask", "causal", "window") if name in case.features]
        return np.logical_and.reduce(found) if found else None

    def scores(self, case: Case, queries: Array, keys: Array) -> Array:
        """Return the scores as they enter the exponential."""
        scores = self.product(case, queries, keys)
        for step in self.on_scores:
            if step in case.features:
                scores = getattr(self, step)(case, scores)
            seen = self.seen(case) if step == "hiding" else None
            if seen is not None:
                scores = self.hide(case, scores, seen)
        return scores

    def __call__(self, case: Case) -> Trace:
        """Attend."""
        queries = self.vectors(case, "q")
        scores = self.scores(case, queries, self.vectors(case, "k"))
        if "normaliser" in case.features:
            weights = self.normaliser(case, scores)
            return Trace(self.mix(case, weights, self.values(case)), {"scores": scores, "weights": weights})
        extra = self.columns(case, queries)
        weights, shares, lse = self.normalise(case, scores, extra)
        output = mix_added(self.mix(case, weights, self.values(case)), shares, extra)
        return Trace(output, {"scores": scores, "weights": weights, "lse": lse})


STEPS = Steps()


def in_groups(case: Case) -> int:
    """Return how many query heads share a key-value head."""
    return len(case.q) // len(case.keys)
