"""How far rounding may bring correct floating-point code from the mathematics: bounds computed from the case.

Notation: u is the unit roundoff, n·u-type sums are written γ_n = n·u / (1 − n·u), d is d_k and n is Tk.

*Scores.* fl(q + bQ) and fl(k + δ + bK) carry relative errors of u and 2u of the summands' sizes, the products and sums
of a d-term inner product d·u in any order, with or without fused multiply-add, the scale u. So a score is within
γ_{d+4}·A_ij of s·(q_i + bQ)·(k_j + δ_j + bK), A_ij = s·Σ_t (|q_it| + |bQ_t|)·(|k_jt| + |δ_jt| + |bK_t|). `SPARE` more
units pay for other orders of the same formula (scale folded into q, base-2 exponentials, division by √d_k), for the
right side, summed exactly and rounded a few times, and for the subtraction of two scores: each costs at most u·A.
Products below the normal range lose an absolute 2^-1074 each.

*Weights.* If every score of a row is off by at most e, log p is off by at most 2e; subtracting the maximum, exp, the
sum of n terms and the division add (n + 16)·u and at most 2u·A (|x − max| ≤ 2A), which SPARE pays. So p is off by the
factor exp(±L), L = 2e + (n + 16)·u, and by 2^-1074.

*Output.* Σ_j |Δp_j|·|v_j| ≤ expm1(L)·max_j |v_j|, and the product itself γ_{n+4}·max_j |v_j|, as Σ_j p_j = 1.

*LSE.* A maximum and a logarithm of a sum: e + (n + 24)·u + u·A.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np

from verify_attention.heads import grouped_product
from verify_attention.model import Array, Case

UNIT = 2.0**-53
TINIEST = 2.0**-1074
SPARE = 8


def _once_per_case(bound: Callable[[Case], Array]) -> Callable[[Case], Array]:
    """Compute a bound once per case and keep it as long as the case lives."""
    known: WeakKeyDictionary[Case, Array] = WeakKeyDictionary()

    def remembered(case: Case) -> Array:
        if case not in known:
            known[case] = bound(case)
        return known[case]

    remembered.__doc__ = bound.__doc__
    return remembered


def accumulated(count: int) -> float:
    """Return γ_count, the relative error of `count` roundings in a row."""
    return count * UNIT / (1 - count * UNIT)


@_once_per_case
def scores(case: Case) -> Array:
    """Bound the error of every score, `[H, Tq, Tk]`."""
    queries = np.abs(case.q) + np.abs(case.bQ)[:, None]
    keys = np.abs(case.keys) + np.abs(case.bK)[:, None]
    if case.key_shifts is not None:
        keys = keys + np.abs(case.key_shifts)
    sizes = grouped_product(queries, keys.swapaxes(-1, -2))
    sizes *= case.scale
    sizes *= accumulated(case.d_k + 4 + SPARE)
    sizes += TINIEST * (case.d_k + 2) * max(1.0, case.scale)
    if not np.isfinite(max(queries.max(), keys.max()) * max(1.0, case.scale)):
        sizes[:] = np.inf  # the scale may be applied to either side, and a bias may overflow beside a zero
    return sizes


@_once_per_case
def row_scores(case: Case) -> Array:
    """Bound the error of all scores of a row, `[H, Tq, 1]`."""
    return scores(case).max(axis=-1, keepdims=True)


@_once_per_case
def log_weights(case: Case) -> Array:
    """Bound the error of the logarithm of every weight in a row, `[H, Tq, 1]`."""
    return 2 * row_scores(case) + (case.keys.shape[1] + 16) * UNIT


@_once_per_case
def weights(case: Case) -> Array:
    """Bound the error of every weight in a row, `[H, Tq, 1]`; infinite where it may be as large as a weight."""
    return promising(np.expm1(log_weights(case)) + TINIEST)


@_once_per_case
def output(case: Case) -> Array:
    """Bound the error of the output, `[H, Tq, d_v]`; infinite where the weights' is."""
    bias = np.zeros((len(case.keys), case.d_v)) if case.bV is None else np.abs(case.bV)
    largest = bias + (1.0 if case.values is None else np.abs(case.values).max(axis=1))
    bound: Array = (weights(case) + accumulated(case.keys.shape[1] + 4)) * largest[case.kv_head][:, None]
    return np.nan_to_num(bound, copy=False, nan=np.inf, posinf=np.inf)  # no promise, of values that are all 0


@_once_per_case
def lse(case: Case) -> Array:
    """Bound the error of the LSE, `[H, Tq]`."""
    return row_scores(case)[..., 0] + (case.keys.shape[1] + 24) * UNIT


def promising(bound: Array) -> Array:
    """Return the bound of a weight, or infinity where any weight at all would be within it."""
    return np.where(bound < 1, bound, np.inf)


def overall(case: Case) -> dict[str, float]:
    """Bound the error of any score, weight, output or LSE of the case by one number each, without a Tq × Tk array."""
    queries = (np.abs(case.q) + np.abs(case.bQ)[:, None]).max(axis=(0, 1))
    keys = (np.abs(case.keys) + np.abs(case.bK)[:, None]).max(axis=(0, 1))
    if case.key_shifts is not None:
        keys = keys + np.abs(case.key_shifts).max(axis=(0, 1))
    score = float(queries @ keys) * case.scale * accumulated(case.d_k + 4 + SPARE) + TINIEST * max(1.0, case.scale)
    count = case.keys.shape[1]
    weight = float(promising(np.expm1(2 * score + (count + 16) * UNIT)))
    value = (1.0 if case.values is None else float(np.abs(case.values).max())) + (
        0.0 if case.bV is None else float(np.abs(case.bV).max())
    )
    return {
        "scores": score,
        "weights": weight,
        "lse": score + (count + 24) * UNIT,
        "output": (weight + accumulated(count + 4)) * (value or 1.0),
    }
