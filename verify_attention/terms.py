"""The four terms of a score, each summed exactly, and what each bias adds to scores.

    (q + bQ)·(k + bK) = q·k + bQ·k + q·bK + bQ·bK

Where features change vectors or scores, what a bias adds is taken from `formula`: the difference of two conditions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verify_attention import formula, selection
from verify_attention.departures import acts, departs, on_vectors, telling, visible
from verify_attention.memory import once_per_case
from verify_attention.model import Array, Case, Condition, OnScores
from verify_attention.products import exact_product


@dataclass(frozen=True, eq=False)
class Terms:
    """The four terms of a case's scores, before the scale; `shifts` are the key shifts' parts where there are any."""

    qk: Array  # [H, Tq, Tk]
    bQk: Array  # [H, Tk]
    qbK: Array  # [H, Tq]
    bQbK: Array  # [H]
    q_shifts: Array | None  # [H, Tq, Tk]
    bQ_shifts: Array | None  # [H, Tk]


@once_per_case
def terms(case: Case) -> Terms:
    """Return the four terms: the corners of one product, of q's rows and bQ with the keys and bK."""
    rows, count = case.q.shape[1], case.keys.shape[1]
    columns = [case.keys, case.bK[:, None]] + ([] if case.key_shifts is None else [case.key_shifts])
    product = exact_product(
        np.concatenate([case.q, case.bQ[:, None]], axis=1),
        np.concatenate(columns, axis=1).swapaxes(1, 2)[case.kv_head],
    )
    shifts = product[..., count + 1 :] if case.key_shifts is not None else None
    return Terms(
        qk=product[:, :rows, :count],
        bQk=product[:, rows, :count],
        qbK=product[:, :rows, count],
        bQbK=product[:, rows, count],
        q_shifts=None if shifts is None else shifts[:, :rows],
        bQ_shifts=None if shifts is None else shifts[:, rows],
    )


def scores(case: Case, condition: Condition) -> Array:
    """Return the scores under a condition, `[H, Tq, Tk]`: from the four terms, −∞ where a key is hidden."""
    if departs(case):
        return formula.scores(case.under(condition)).value
    four = terms(case)
    total = four.qk
    if "k" in condition:
        total = total + four.qbK[..., None] + (0 if four.q_shifts is None else four.q_shifts)
    if "q" in condition:
        total = total + _query_product(case, condition)[:, None]
    if condition == "qk":
        total = total + four.bQbK[:, None, None]
    return case.scale * total


def _query_product(case: Case, condition: Condition) -> Array:
    four = terms(case)
    return four.bQk if "k" not in condition or four.bQ_shifts is None else four.bQk + four.bQ_shifts


def query_term(case: Case, condition: Condition) -> Array:
    """Return what bQ adds to every score, s·bQ·k_j, `[H, Tq, Tk]`, or `[H, 1, Tk]` where that is one for all rows.

    k_j is what q is multiplied with: with key shifts where the condition has them, rotated, normalised.
    """
    if not departs(case):
        return case.scale * _query_product(case, condition)[:, None]
    under = case.under(condition)
    bias = formula.alone(under, "queries", np.broadcast_to(case.bQ[:, None], case.q.shape))
    return case.scale * _gain(case) * exact_product(bias, formula.keys(under).value.swapaxes(-1, -2)[case.kv_head])


def row_shift(case: Case, condition: Condition) -> Array:
    """Return what the K bias adds to every score of a row: s·q_i·bK, or s·(q_i + bQ)·bK under `qk`, `[H, Tq]`.

    Where the bias turns with each key, it is what it adds to the row's first visible key.
    """
    if departs(case):
        queries = formula.queries(case.under(condition)).value
        found = exact_product(queries, _key_bias(case).swapaxes(-1, -2)[case.kv_head])
        if found.shape[-1] > 1:
            found = _at_first_visible(case, found)
        return case.scale * _gain(case)[..., 0] * found[..., 0]
    four = terms(case)
    return case.scale * (four.qbK + four.bQbK[:, None] if "q" in condition else four.qbK)


def _key_bias(case: Case) -> Array:
    """Return bK as it enters the product with the queries, `[G, 1, d_k]`, or `[G, Tk, d_k]` where it turns."""
    bias = case.bK[:, None]
    turns = any(act.linear for act in on_vectors(case)[1])
    return formula.alone(case, "keys", np.broadcast_to(bias, case.keys.shape)) if turns else bias


def _at_first_visible(case: Case, numbers: Array) -> Array:
    """Return each row's number at its first visible key, `[H, Tq, 1]`."""
    seen = visible(case)
    if seen is None:
        return numbers[..., :1]
    return np.take_along_axis(np.broadcast_to(numbers, seen.shape), seen.argmax(axis=-1)[..., None], axis=-1)


def _gain(case: Case) -> Array:
    """Return by what features multiply the scores of each row, `[H, Tq, 1]`."""
    gain: Array = np.ones((*case.scores_shape[:2], 1))
    for act in acts(case, OnScores):
        if act.gain is not None:
            gain = gain * act.gain(case)
    return gain


def key_term(case: Case, condition: Condition) -> Array:
    """Return what bK and the key shifts add to every score, `[H, Tq, Tk]`, or `[H, Tq, 1]` where that is one number.

    It is 0 where a key is hidden.
    """
    if departs(case):
        return _moved(case, "q" if "q" in condition else "none", condition)
    four = terms(case)
    added = row_shift(case, condition)[..., None]
    if four.q_shifts is None or four.bQ_shifts is None:
        return added
    shifts = four.q_shifts + four.bQ_shifts[:, None] if "q" in condition else four.q_shifts
    return added + case.scale * shifts


def at_stake(case: Case, condition: Condition) -> Array:
    """Return what a K bias may move in each row's scores: 0 where nothing can be said of the row's weights.

    A feature may take a bias out again, as LayerNorm does with one that all channels share; then it is what the bias
    adds to plain attention that an implementation without the feature would show.
    """
    if not departs(case):
        return key_term(case, condition)
    moved = np.abs(key_term(case, condition))
    if not all(act.linear for act in on_vectors(case)[1]):
        moved = np.maximum(moved, np.abs(row_shift(case.but(features={}), condition))[..., None])
    rows = telling(case)
    return moved if rows is None else moved * rows


def _moved(case: Case, before: Condition, after: Condition) -> Array:
    seen = visible(case)
    with np.errstate(invalid="ignore"):
        change = formula.scores(case.under(after)).value - formula.scores(case.under(before)).value
    return change if seen is None else np.where(seen, change, 0.0)


def biases_term(case: Case) -> Array:
    """Return what only both biases together add to a score, s·bQ·bK, `[H, 1, 1]`, or for each row and key."""
    if not departs(case):
        return case.scale * terms(case).bQbK[:, None, None]
    bias = formula.alone(case, "queries", np.broadcast_to(case.bQ[:, None], case.q.shape))
    return case.scale * _gain(case) * exact_product(bias, _key_bias(case).swapaxes(-1, -2)[case.kv_head])


def first_row_shift(case: Case) -> Array:
    """Return what the K bias adds to the first row of each head of the whole case, s·q_0·bK, `[H, 1]`."""
    if case.whole is None or case.first_row == 0:
        return row_shift(case, "k")[:, :1]
    return row_shift(selection.first_row(case), "k")


def gaps(case: Case, numbers: Array) -> Array:
    """Return what each key's number has over that of the row's first visible key, `[H, Tq, Tk]`.

    All gaps agree where these do.
    """
    seen, first = visible(case), _at_first_visible(case, numbers)
    return numbers - first if seen is None else np.where(seen, numbers - first, 0.0)
