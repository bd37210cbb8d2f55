"""Latent attention may take the latents themselves for keys and values, with W_UK in the queries.

Expanded, head h has keys [k_r | c·W_UK[h]] and values c·W_UV[h]. As q_n·(c·W_UK[h]) = (q_n·W_UK[h]ᵀ)·c, the queries
[q_r | q_n·W_UK[h]ᵀ] get the same scores from the keys [k_r | c], which all heads share, at the scale of the expanded
width; and as Σ_j p_j (c_j·W_UV[h]) = (Σ_j p_j c_j)·W_UV[h], mixing latents and projecting up gives the same output. bQ
goes the way of the queries, and bV comes after W_UV, as often as the weights sum to. A K bias on the position part
stays. One on the up-projected part has no place in the absorbed form, and needs none: it adds s·(q_n + bQ_n)·bK_n to
every score of a row, the same for each key.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import departures, formula, rounding, structure
from verify_attention.departures import feature
from verify_attention.model import Array, Case, Condition, Fault, Implementation, Invariant, Latent, Sides, Trait
from verify_attention.pipeline import CORE, biased_keys, biased_queries, mixed_values, scaled_scores
from verify_attention.products import exact_product

ROTATION = "rope"
SHIFT: frozenset[Trait] = frozenset({"common key shift", "shift-invariant softmax"})


def applies(case: Case) -> str | None:
    """Ask for a latent, and for features that know nothing of the up-projected channels."""
    if case.latent is None:
        return "the case is no latent attention"
    turned = case.d_k - case.latent.W_UK.shape[-1]
    if (case.keys[..., :turned] != case.keys[:1, :, :turned]).any():
        return "the position part of the keys differs from head to head"
    for name in case.features:
        axes = {axis for shape in feature(name).arrays.values() for axis in shape.axes}
        if name != "key_shifts" and "d_k" in axes:
            return f"{name} acts on the up-projected channels, which the absorbed form does not have"
    rotation = case.features.get(ROTATION)
    if rotation is not None and rotation["rotary_dims"] > turned:
        return f"rope turns {rotation['rotary_dims']} channels, of which only {turned} do not come from the latent"
    return departures.one_key(case)


def may_lose_the_key_bias(case: Case, latent: Latent) -> bool:
    """Say whether the K bias on the up-projected part, which the absorbed form leaves out, changes no weight.

    The bias on the position part must be one for all heads: it is the bias of one matrix.
    """
    turned = case.d_k - latent.W_UK.shape[-1]
    if "key_shifts" in case.features or (case.bK[:, :turned] != case.bK[:1, :turned]).any():
        return False
    return not case.bK[:, turned:].any() or not departures.taken(structure.without(case, ROTATION)) & SHIFT


def absorbed(case: Case, latent: Latent) -> Case:
    """Return the same question with W_UK in the queries: G = 1, keys `[1, Tk, d_r + d_c]`, values `[1, Tk, d_c]`.

    Where there is a bV, one more channel of values is 1: its output is the sum of the weights.
    """
    turned = case.d_k - latent.W_UK.shape[-1]
    up = latent.W_UK.swapaxes(-1, -2)
    queries = exact_product(case.q[..., turned:], up)
    bias = exact_product(case.bQ[:, None, turned:], up)[:, 0]
    ones = [] if case.bV is None else [np.ones((len(latent.c), 1))]
    return case.but(
        q=np.concatenate([case.q[..., :turned], queries], axis=-1),
        bQ=np.concatenate([case.bQ[:, :turned], bias], axis=-1),
        keys=np.concatenate([case.keys[0, :, :turned], latent.c], axis=-1)[None],
        bK=np.concatenate([case.bK[:1, :turned], np.zeros((1, latent.c.shape[1]))], axis=-1),
        values=np.concatenate([latent.c, *ones], axis=-1)[None],
        bV=None,
        W_O=None,
        features={name: given for name, given in case.features.items() if name != "key_shifts"},
    )


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare outputs, the absorbed ones projected up, and then weights."""
    latent = case.latent
    if latent is None:
        return
    conditions: tuple[Condition, ...] = (
        ("none", "q", "k", "qk") if may_lose_the_key_bias(case, latent) else ("none", "q")
    )
    short = {condition: absorbed(case.under(condition), latent) for condition in conditions}
    for condition, other in short.items():
        yield _outputs(case.under(condition), other, latent, attend, condition)
    gaps = np.ptp(_without_position(case, latent), axis=-1, keepdims=True)
    for condition, other in short.items():
        one = case.under(condition)
        yield Sides(
            f"weights[{condition}], expanded − absorbed",
            attend(one).weights,
            attend(other).weights,
            # Numbers of both forms are themselves rounded once or twice, which is less than their bounds again.
            rounding=rounding.promising(2 * (rounding.weights(one) + rounding.weights(other))),
            moves=gaps,
        )


def _without_position(case: Case, latent: Latent) -> Array:
    """Return the latent's part of the scores, `[H, Tq, Tk]`."""
    turned = case.d_k - latent.W_UK.shape[-1]
    return case.scale * (case.q + case.bQ[:, None])[..., turned:] @ (latent.c @ latent.W_UK).swapaxes(-1, -2)


def _outputs(one: Case, other: Case, latent: Latent, attend: Implementation, condition: Condition) -> Sides:
    short, count = attend(other).output, latent.c.shape[1]
    projected = short[..., :count] @ latent.W_UV
    sums = np.maximum(formula.shares(one).sum(axis=-1, keepdims=True), 1.0)
    errors = 2 * rounding.output(other)
    size = sums * np.abs(latent.c).max(axis=0)
    largest = np.abs(latent.c @ latent.W_UV).max(axis=1, keepdims=True)
    bound = 2 * rounding.output(one) + 2 * one.precision.unit * sums * largest
    bound = bound + (errors[..., :count] + one.precision.accumulated(count + 8) * size) @ np.abs(latent.W_UV)
    if one.bV is not None:
        projected = projected + short[..., count:] * one.bV[:, None]
        bound = bound + (errors[..., count:] + 4 * one.precision.unit * sums) * np.abs(one.bV)[:, None]
    return Sides(
        f"output[{condition}], expanded − absorbed",
        attend(one).output,
        projected,
        rounding=np.nan_to_num(bound, nan=np.inf, posinf=np.inf),
        axis="channel",
        moves=np.abs(latent.c @ latent.W_UV).max(axis=1, keepdims=True),
    )


def turning_everything(case: Case) -> Case:
    """Turn all channels, whatever the case says."""
    if ROTATION not in case.features:
        return case
    rotation = {**case.features[ROTATION], "rotary_dims": case.d_k - case.d_k % 2}
    return case.but(features={**case.features, ROTATION: rotation})


def keys_of_the_next_head(case: Case) -> Array:
    """Project latents up with the next head's W_UK."""
    if case.latent is None:
        return biased_keys(case)
    turned = case.d_k - case.latent.W_UK.shape[-1]
    rest = case.latent.c @ np.roll(case.latent.W_UK, -1, axis=0)
    return biased_keys(case.but(keys=np.concatenate([case.keys[..., :turned], rest], axis=-1)))


def values_of_the_next_head(case: Case, weights: Array) -> Array:
    """Project latents up with the next head's W_UV."""
    if case.latent is None:
        return mixed_values(case, weights)
    return mixed_values(case.but(values=case.latent.c @ np.roll(case.latent.W_UV, -1, axis=0)), weights)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="attention([q_r | q_n], [k_r | c·W_UK], c·W_UV) = attention([q_r | q_n·W_UKᵀ], [k_r | c], c)·W_UV",
    source="DeepSeek-V2, section 2.1; Muxuan Liu, model learning notes, chapter 2, K/V in latent form",
    applies=applies,
    where="the case has a latent, and no feature acts on the channels that come from it",
    vacuous="the latent's part of the scores is the same for every key, and its values are 0",
    sides=sides,
    faults=(
        Fault(
            "the scale follows from the width of what is stored",
            CORE.but(scores=lambda case, queries, keys: scaled_scores(case.but(scale=case.d_k**-0.5), queries, keys)),
        ),
        Fault(
            "rope turns the latent's channels too",
            CORE.but(
                queries=lambda case: biased_queries(turning_everything(case)),
                keys=lambda case: biased_keys(turning_everything(case)),
            ),
        ),
        Fault("keys come from the latent by another head's W_UK", CORE.but(keys=keys_of_the_next_head)),
        Fault("values come from the latent by another head's W_UV", CORE.but(mix=values_of_the_next_head)),
    ),
)
