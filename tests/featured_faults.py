"""Attention with features written wrongly: mistakes that know all features, each in one of the steps of `steps`.

`FEATURED` holds them by what the mistake is. `UNSEEN` are those that change no output, or less than rounding may.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import steps
from steps import STEPS, distance, eps_of, gain_of, normed, repeated, turned

from verify_attention.model import Array, Case, Implementation, Trace

FEATURED: dict[str, Implementation] = {}
UNSEEN: set[str] = set()


def featured(mistake: str, *, unseen: bool = False, **wrong: Any) -> None:
    """Enter a mistake that swaps steps."""
    FEATURED[mistake] = STEPS.but(**wrong)
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

    FEATURED[mistake] = wrong
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


FEATURED["the row's maximum is that of hidden scores too"] = masked_late


def only_one_hides(first: str) -> Implementation:
    def wrong(case: Case) -> Trace:
        others = {"mask", "causal", "window"} - {first}
        if first not in case.features:
            return STEPS(case)
        everything = {name: lambda case: np.ones(case.scores_shape, dtype=bool) for name in others}
        return STEPS.but(**everything)(case)

    return wrong


for name in ("mask", "causal", "window"):
    FEATURED[f"beside {name} nothing else hides"] = only_one_hides(name)


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
    FEATURED[mistake] = made
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


# What takes a share, or bends, at numbers where exp overflows


def with_peak(peak: Callable[[Array], Array], *names: str) -> dict[str, Any]:
    """Take another number off than the row's maximum, beside any of some features."""

    def wrong(case: Case, scores: Array, extra: list[steps.Column]) -> tuple[Array, Array, Array]:
        if case.features.keys().isdisjoint(names):
            return steps.normalise(case, scores, extra)
        logits = np.concatenate([scores, *(logit[..., None] for logit, _ in extra)], axis=-1)
        off = peak(logits.max(axis=-1, keepdims=True))
        powers = np.exp(logits - off)
        total = powers.sum(axis=-1, keepdims=True)
        shares, count = powers / total, scores.shape[-1]
        return shares[..., :count], shares[..., count:], (off + np.log(total))[..., 0]

    return {"normalise": wrong}


for name in ("sink", "softmax_plus_one", "zero_key", "appended_key", "fill", "temperature", "score_bias"):
    featured(f"beside {name}, no maximum is taken off", **with_peak(np.zeros_like, name))
for name in ("sink", "appended_key", "fill"):  # where a logit of 0 takes a share, 0 is no smaller than the maximum
    featured(f"beside {name}, the running maximum starts at 0", **with_peak(lambda peak: np.maximum(peak, 0), name))


def tanh_by_powers(case: Case, scores: Array) -> Array:
    power = np.exp(2 * scores / case.features["softcap"])
    return case.features["softcap"] * (power - 1) / (power + 1)


featured("tanh is a quotient of powers that overflow", softcap=tanh_by_powers)
featured(
    "a sigmoid is a quotient of powers that overflow",
    **stand_in_for("sigmoid", lambda _case, scores: np.exp(scores) / (1 + np.exp(scores))),
)


def small_to_zero(case: Case, scores: Array, extra: list[steps.Column]) -> tuple[Array, Array, Array]:
    weights, shares, lse = steps.normalise(case, scores, extra)
    return np.where((weights < 1e-3) & ("rope" in case.features), 0.0, weights), shares, lse


featured("beside rope, weights below a thousandth are 0", normalise=small_to_zero)


# What is latent


def of_latents(change: Callable[[Case, int], dict[str, Any]]) -> Implementation:
    """Attend to another case where there is a latent, given how many channels carry positions."""

    def wrong(case: Case) -> Trace:
        if case.latent is None:
            return STEPS(case)
        return STEPS(replace(case, **change(case, case.d_k - case.latent.W_UK.shape[-1])))

    return wrong


def without_the_latent_bias(case: Case, turned: int) -> dict[str, Any]:
    """Leave out what a common K bias would not show, beside what shows it."""
    if case.features.keys().isdisjoint({"softcap", "temperature", "window"}):
        return {}
    return {"bK": np.concatenate([case.bK[:, :turned], 0 * case.bK[:, turned:]], axis=-1)}


def with_the_first_head_s_position_bias(case: Case, turned: int) -> dict[str, Any]:
    first = np.broadcast_to(case.bK[:1, :turned], (len(case.bK), turned))
    return {"bK": np.concatenate([first, case.bK[:, turned:]], axis=-1)}


def without_features(*names: str) -> Callable[[Case, int], dict[str, Any]]:
    return lambda case, _turned: {"features": {name: own for name, own in case.features.items() if name not in names}}


entered("the absorbed form drops the latent K bias beside a cap", of_latents(without_the_latent_bias))
entered("the position part of head 0's K bias is every head's", of_latents(with_the_first_head_s_position_bias))
for name in ("key_shifts", "window", "mask", "softcap", "score_bias", "appended_key"):
    entered(f"{name} is forgotten where there is a latent", of_latents(without_features(name)))


# Parameters beyond what is usual


def shifts_behind(*taken: str) -> Callable[[Case, str, Array], Array]:
    """Add the key shifts behind the last step, where the bias itself stands before it."""

    class Late(steps.Steps):
        def vectors(self, case: Case, side: str) -> Array:
            early = side == "q" or "key_shifts" not in case.features or not set(taken) & set(steps.order(case))
            plain = replace(case, features={**case.features, "key_shifts": 0 * case.keys}) if not early else case
            rows = super().vectors(plain, side)
            return rows if early else rows + repeated(case, case.features["key_shifts"])

    return Late()


entered("key shifts are added behind the norm", shifts_behind("norm"))
entered("key shifts are added behind the rotation", shifts_behind("rotation"))
for kind in ("l2", "rms", "layer"):

    def of_kind(change: Callable[[Any], Any], kind: str = kind) -> Callable[[Any, Case], Any]:
        return lambda own, _case: change(own) if own["kind"] == kind else own

    altered(f"{kind}: eps is always 1e-6", "qk_norm", of_kind(lambda own: {**own, "eps": 1e-6}))
    altered(f"{kind}: eps is 0.1 at most", "qk_norm", of_kind(lambda own: {**own, "eps": min(own["eps"], 0.1)}))
    altered(f"{kind}: eps is 1e-8 at least", "qk_norm", of_kind(lambda own: {**own, "eps": max(own["eps"], 1e-8)}))
    altered(
        f"{kind}: the gain of keys is tiled over query heads",
        "qk_norm",
        lambda own, case, kind=kind: (
            {**own, "k_gain": tiled(case, own["k_gain"])} if own["kind"] == kind and "k_gain" in own else own
        ),
    )


def alone(change: Callable[[Case, Array], Array], feature: str, without: str) -> dict[str, Any]:
    """Change the logit of an appended key beside one feature, where another is not there."""

    def wrong(case: Case, queries: Array, extra: list[steps.Column]) -> list[steps.Column]:
        if not {"appended_key", feature} <= case.features.keys() or without in case.features:
            return extra
        logit, value = extra[-1]
        return [*extra[:-1], (change(case, logit[..., None])[..., 0], value)]

    return with_columns(wrong)


featured("a temperature divides an appended key where there is no cap", **alone(steps.temper, "temperature", "softcap"))
featured("a cap bends an appended key where there is no temperature", **alone(steps.cap, "softcap", "temperature"))
altered(
    "interleaved channels are halves where the bias comes after the rotation",
    "rope",
    lambda own, _case: {**own, "layout": "half"} if own.get("bias") == "after" else own,
)
altered(
    "a rotation of more than ten channels has ten",
    "rope",
    lambda own, _case: {**own, "rotary_dims": min(own["rotary_dims"], 10)},
)
altered(
    "positions end at 4095",
    "rope",
    lambda own, _case: {
        **own,
        **{name: np.minimum(own[name], 4095) for name in ("q_positions", "k_positions") if name in own},
    },
)
altered("a fill above 0 is 0", "fill", lambda own, _case: min(own, 0.0))
altered("a fill is -10000 at least", "fill", lambda own, _case: max(own, -1e4), unseen=True)
altered("a fill below -100 hides", "fill", forgotten_where(lambda case: case.features["fill"] < -100))
altered("a cap below 1 is 1", "softcap", lambda own, _case: max(own, 1.0))
altered("a cap of 50 or more is none", "softcap", forgotten_where(lambda case: case.features["softcap"] >= 50))
for edge, change in (
    ("below 0.3 is 0.3", lambda own: np.maximum(own, 0.3)),
    ("above 2.5 is 2.5", lambda own: np.minimum(own, 2.5)),
):
    altered(
        f"a temperature {edge}",
        "temperature",
        lambda own, _case, change=change: {name: change(array) for name, array in own.items()},
    )
altered(
    "a window's left side of 5 or more is none",
    "window",
    lambda own, _case: (None if (own[0] or 0) >= 5 else own[0], own[1]),
)
altered(
    "a window's right side of 2 or more is none",
    "window",
    lambda own, _case: (own[0], None if (own[1] or 0) >= 2 else own[1]),
)
altered(
    "a window without limits hides the future",
    "window",
    lambda own, _case: (None, 0) if tuple(own) == (None, None) else own,
)
altered(
    "ALiBi's slopes above 1 are 1",
    "alibi",
    lambda own, _case: {"slopes": np.minimum(own["slopes"], 1)} if "slopes" in own else own,
)
altered(
    "ALiBi's slopes below 0 are above it",
    "alibi",
    lambda own, _case: {"slopes": np.abs(own["slopes"])} if "slopes" in own else own,
)
altered("causality is forgotten for one query", "causal", forgotten_where(lambda case: case.q.shape[1] == 1))
altered(
    "a sink is tiled where there are three key-value heads or more",
    "sink",
    lambda own, case: own[np.arange(len(own)) % len(case.keys)] if len(case.keys) > 2 else own,
)
for kind in ("sigmoid", "sparsemax", "top-k"):
    for name in (
        "rope",
        "qk_norm",
        "temperature",
        "softcap",
        "alibi",
        "score_bias",
        "mask",
        "causal",
        "window",
        "fill",
        "key_shifts",
    ):
        featured(
            f"beside {name}, softmax stands for {kind}",
            **stand_in_for(
                kind,
                lambda case, scores, name=name: (
                    steps.softmax(scores)[0] if name in case.features else steps.stand_in(case, scores)
                ),
            ),
        )
altered("a sink is forgotten beside one key", "sink", forgotten_where(lambda case: case.keys.shape[1] == 1))
altered(
    "temperatures of rows begin again after sixteen",
    "temperature",
    lambda own, _case: {**own, "rows": own["rows"][np.arange(len(own["rows"])) % 16]} if "rows" in own else own,
)
