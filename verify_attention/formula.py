"""Attention once more, by another route than the core's, with a bound of what rounding may do at every stage.

Every function takes a case as it stands, biases and all: `scores(case.under("k"))`. Products are summed exactly;
features act in their second form; weights are exponentials of scores less their LSE. A bound is first-order error
analysis, made rigorous: it holds for the core, for this route, and for any other order of the same operations.
`rounding` says what it says for cases without features, where no array has to be made for it.
"""

from __future__ import annotations

import numpy as np

from verify_attention import departures
from verify_attention.heads import grouped_product
from verify_attention.memory import once_per_case
from verify_attention.model import (
    EXACT,
    FLOAT64,
    AddsColumn,
    Array,
    Case,
    Estimate,
    Flags,
    Hides,
    Normalises,
    OnScores,
    OnVectors,
    Side,
    Vectors,
)
from verify_attention.products import exact_product

SPARE, STORED = 12, 6


@once_per_case
def queries(case: Case) -> Vectors:
    """Return the queries as they enter the product with the keys, `[H, Tq, d_k]`."""
    return _vectors(case, "queries", case.q, [case.bQ[:, None]])


@once_per_case
def keys(case: Case) -> Vectors:
    """Return the keys as they enter the product with the queries, `[G, Tk, d_k]`."""
    shifts = [] if case.key_shifts is None else [case.key_shifts]
    return _vectors(case, "keys", case.keys, [*shifts, case.bK[:, None]])


def _vectors(case: Case, side: Side, vectors: Array, added: list[Array]) -> Vectors:
    before, after = departures.on_vectors(case)
    found = Vectors(vectors, np.abs(vectors), np.zeros_like(vectors))
    for act in before:
        found = act.formula(case, side, found)
    for bias in added:
        found = Vectors(found.value + bias, found.size + np.abs(bias), found.error)
    for act in after:
        found = act.formula(case, side, found)
    return found


def alone(case: Case, side: Side, bias: Array) -> Array:
    """Return what becomes of a bias by itself, `[H, 1, d_k]` or `[G, 1, d_k]`, where sums become sums."""
    _, after = departures.on_vectors(case)
    found = Vectors(bias, np.abs(bias), np.zeros_like(bias))
    for act in filter(_linear, after):
        found = act.formula(case, side, found)
    return found.value


def _linear(act: OnVectors) -> bool:
    return act.linear


@once_per_case
def products(case: Case) -> Estimate:
    """Return the scaled products of queries and keys before any feature acts on scores, `[H, Tq, Tk]`."""
    left, right = queries(case), keys(case)
    value = case.scale * exact_product(left.value, right.value.swapaxes(-1, -2)[case.kv_head])
    if case.precision == EXACT:
        return Estimate(value, np.zeros((*value.shape[:-1], 1)))
    sizes = grouped_product(left.size, right.size.swapaxes(-1, -2)).max(axis=-1, keepdims=True)
    spread = grouped_product(left.error, (right.size + right.error).swapaxes(-1, -2))
    spread = spread + grouped_product(left.size, right.error.swapaxes(-1, -2))
    error = product_error(case, sizes, left.size, right.size) + spread * case.scale
    return Estimate(value, np.nan_to_num(error, nan=np.inf, posinf=np.inf))


def product_error(case: Case, sizes: Array, queries: Array, keys: Array) -> Array:
    """Bound the error of scaled products whose summands are of some size, Σ_t |q_t|·|k_t| each, without the scale.

    `queries` and `keys` bound the numbers themselves: they may overflow when the scale is folded into them, and in a
    coarse precision they may vanish.
    """
    own = case.precision
    # Two steps: a scale below 1e-293 times the unit would be 0.
    error = sizes * case.scale * (own.accumulated(case.d_k + 4 + SPARE) + STORED * own.storing)
    error = error + own.tiniest * (case.d_k + 2) * max(1.0, case.scale)
    factor = max(1.0, case.scale)
    if own != FLOAT64:
        farthest = float(queries.sum(axis=-1).max() + keys.sum(axis=-1).max())
        error = error + own.tiniest * factor * farthest
    fits = max(float(queries.max()), float(keys.max())) * factor <= own.largest
    return np.where((sizes * factor <= own.largest) & fits, error, np.inf)


@once_per_case
def uncovered(case: Case) -> Estimate:
    """Return the scores before anything is hidden, `[H, Tq, Tk]`."""
    found = products(case)
    for act in departures.acts(case, OnScores):
        found = act.formula(case, found)
    return found


@once_per_case
def visible(case: Case) -> Flags | None:
    """Return which keys each row may attend to, `[H, Tq, Tk]`; None: every row every key."""
    allowed = None
    for act in departures.acts(case, Hides):
        found = act.formula(case)
        allowed = found if allowed is None else allowed & found
    return None if allowed is None else np.broadcast_to(allowed, case.scores_shape)


@once_per_case
def scores(case: Case) -> Estimate:
    """Return the scores as they enter the exponential, `[H, Tq, Tk]`: −∞, or what fills it, where a key is hidden."""
    found, seen = uncovered(case), visible(case)
    if seen is None:
        return found
    fill = departures.hidden_score(case)
    error = np.where(seen, np.broadcast_to(found.error, seen.shape), given(case, fill))
    return Estimate(np.where(seen, found.value, fill), error)


def given(case: Case, number: Array | float) -> Array:
    """Bound what softmax does with a logit or a fill x, which has no error of its own.

    x − max and the LSE are rounded by u of their size, and by a few more in base two: 6u·|x| (`SPARE` has it for a
    computed score). It only matters where x > 0: an x below 0 that is the row's largest is no larger in size than the
    computed scores below it, and an x that is not the largest has the share exp(−g) at g below, so that its error
    counts with g·exp(−g) < 1.
    """
    return case.precision.lost(6, stored=2) * np.maximum(number, 0.0)


@once_per_case
def columns(case: Case) -> list[tuple[Estimate, Array | None]]:
    """Return the score in each row of each key that a feature adds, `[H, Tq]`, and its value, `[H, d_v]`."""
    return [act.formula(case, queries(case)) for act in departures.acts(case, AddsColumn)]


@once_per_case
def row_error(case: Case) -> Array:
    """Bound the error of every score of a row, added keys included, `[H, Tq, 1]`."""
    error = np.broadcast_to(scores(case).error, case.scores_shape).max(axis=-1, keepdims=True)
    for logit, _ in columns(case):
        own = logit.error + given(case, logit.value)
        error = np.maximum(error, np.broadcast_to(own, error.shape[:2])[..., None])
    return error


@once_per_case
def lse(case: Case) -> Array:
    """Return the LSE of every row, added keys included, `[H, Tq]`."""
    logits = [np.broadcast_to(logit.value, case.scores_shape[:2])[..., None] for logit, _ in columns(case)]
    total: Array = np.logaddexp.reduce(np.concatenate([scores(case).value, *logits], axis=-1), axis=-1)
    return total


@once_per_case
def weights(case: Case) -> Estimate | None:
    """Return the weights `[H, Tq, Tk]` where something stands for softmax; else None: `rounding` bounds them."""
    return next((act.formula(case, scores(case)) for act in departures.acts(case, Normalises)), None)


def many(case: Case) -> Array | float:
    """Return how many weights of a row may be off by the error of one at once: 1 where errors are shares."""
    found: Array | float = 1.0
    for act in departures.acts(case, Normalises):
        found = act.many(case, scores(case))
    return found


def shares(case: Case) -> Array:
    """Return the weights, `[H, Tq, Tk]`."""
    found = weights(case)
    return np.exp(scores(case).value - lse(case)[..., None]) if found is None else found.value


def output(case: Case) -> Array:
    """Return the output, `[H, Tq, d_v]`."""
    total = None if weights(case) is not None else lse(case)
    return mixture(case, shares(case), total)


def mixture(case: Case, weights: Array, total: Array | None) -> Array:
    """Mix the values by given weights, `[H, Tq, d_v]`, from the last key to the first.

    `total` is the LSE, `[H, Tq]`, from which follows the share of a key that a feature adds, if it has a value.
    """
    mixed = weights if case.values is None else weights[..., ::-1] @ case.values[case.kv_head, ::-1]
    if case.bV is not None:
        mixed = mixed + weights.sum(axis=-1, keepdims=True) * case.bV[case.kv_head][:, None]
    if total is None or not departures.departs(case):
        return mixed
    for logit, value in columns(case):
        if value is not None:
            mixed = mixed + np.exp(logit.value - total)[..., None] * value[:, None]
    return mixed
