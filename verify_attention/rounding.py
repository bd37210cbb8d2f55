"""How far rounding may bring correct floating-point code from the mathematics: bounds computed from the case.

Notation: u is the unit roundoff, n·u-type sums are written γ_n = n·u / (1 − n·u), d is d_k and n is Tk.

*Scores.* fl(q + bQ) and fl(k + δ + bK) carry relative errors of u and 2u of the summands' sizes, the products and
sums of a d-term inner product d·u in any order, with or without fused multiply-add, the scale u. So a score of row i
is within γ_{d+4}·A_i of s·(q_i + bQ)·(k_j + δ_j + bK), A_i = s·max_j Σ_t (|q_it| + |bQ_t|)·(|k_jt| + |δ_jt| +
|bK_t|). The maximum over keys is there for code that takes from every key what is common to them. `SPARE` more units,
each at most u·A_i, pay for other orders of the same formula (scale folded into q, base-2 exponentials, division by
√d_k: 3), for the right side, which is summed exactly and then rounded up to seven times, and for the subtraction of
two scores. Products below the normal range lose an absolute 2^-1074 each. Where the scale or a bias may overflow
beside a zero, nothing is promised.

*Weights.* If every score of a row is off by at most e, log p is off by at most 2e; subtracting the maximum, exp, the
sum of n terms and the division add (4n + 16)·u, also where a running maximum rescales the sum at every key, and at
most 2u·A (|x − max| ≤ 2A), which SPARE pays. So p is off by the factor exp(±L), L = 2e + (4n + 16)·u, and by 2^-1074.

*Output.* Σ_j |Δp_j|·|v_j| ≤ expm1(L)·max_j |v_j|, and the product itself γ_{n+4}·max_j |v_j|, as Σ_j p_j = 1, and n
products that may lose 2^-1074.

*Precision.* u is the unit of the arithmetic, and 2^-1074 the smallest number, of the case's `precision`. Where arrays
are kept in a coarser one, of the unit w, each side of a product may be rounded twice before it (an array by itself, and
its sum with the bias), and scores and LSE once after it: `STORED` · w·A in all. Weights are stored when they are shown,
and before they mix the values, those with their bias, and the output: `STORED` · w of each. What leaves the range of
the precision is promised nothing.

In a coarse precision that would say little: there an error of a weight is at most its share, and that of the output
expm1(L)·Σ_j p_j |v_j|, with the shares of the formula. So what has no share, as what is hidden, adds nothing.

*LSE.* A maximum and a logarithm of a sum: e + (4n + 24)·u + u·A.

*Features.* Where a case has any but key shifts, the bound of a score comes from `formula`, which carries it through
every stage; the maximum of a row counts the keys that a feature adds. What stands for softmax bounds its own weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numpy as np

from verify_attention import formula
from verify_attention.departures import departs, has_lse
from verify_attention.formula import STORED
from verify_attention.heads import grouped_product
from verify_attention.memory import once_per_case
from verify_attention.model import EXACT, FLOAT64, Array, Case


def _zero_where_exact(of: str) -> Callable[[Callable[[Case], Array]], Callable[[Case], Array]]:
    """Say that numbers which are not rounded have no error."""

    def decorated(bound: Callable[[Case], Array]) -> Callable[[Case], Array]:
        @wraps(bound)
        def bounded(case: Case) -> Array:
            if case.precision != EXACT:
                return bound(case)
            heads_and_rows, last = case.scores_shape[:2], {"output": (case.d_v,), "lse": ()}
            return np.zeros((*heads_and_rows, *last.get(of, (1,))))

        return bounded

    return decorated


@once_per_case
@_zero_where_exact("scores")
def scores(case: Case) -> Array:
    """Bound the error of every score of a row, `[H, Tq, 1]`."""
    if departs(case):
        return formula.row_error(case)
    queries, keys = _sizes(case)
    with np.errstate(all="ignore"):
        sizes = grouped_product(queries, keys.swapaxes(-1, -2)).max(axis=-1, keepdims=True)
        return formula.product_error(case, sizes, queries, keys)


@once_per_case
@_zero_where_exact("log_weights")
def log_weights(case: Case) -> Array:
    """Bound the error of the logarithm of every weight in a row, `[H, Tq, 1]`."""
    return _log_weight_bound(case, scores(case))


@once_per_case
@_zero_where_exact("weights")
def weights(case: Case) -> Array:
    """Bound the error of every weight in a row, `[H, Tq, 1]`; infinite where it may be as large as a weight."""
    own = formula.weights(case) if departs(case) else None
    if own is not None:
        return promising(np.broadcast_to(own.error, case.scores_shape).max(axis=-1, keepdims=True))
    if case.precision != FLOAT64:
        return promising(_off(case).max(axis=-1, keepdims=True) + case.precision.tiniest)
    return promising(np.expm1(log_weights(case)) + case.precision.tiniest)


@once_per_case
@_zero_where_exact("output")
def output(case: Case) -> Array:
    """Bound the error of the output, `[H, Tq, d_v]`; infinite where the weights' is."""
    bias = np.zeros((len(case.keys), case.d_v)) if case.bV is None else np.abs(case.bV)
    largest = (bias + (1.0 if case.values is None else np.abs(case.values).max(axis=1)))[case.kv_head]
    added = [value for _, value in formula.columns(case)] if departs(case) else []
    for value in added:
        largest = largest if value is None else np.maximum(largest, np.abs(value))
    many = formula.many(case) if departs(case) else 1.0
    if case.precision != FLOAT64 and has_lse(case) and not added:
        return _coarse_output_bound(case, largest[:, None])
    return _output_bound(case, weights(case), largest[:, None] * many)


@once_per_case
@_zero_where_exact("lse")
def lse(case: Case) -> Array:
    """Bound the error of the LSE, `[H, Tq]`."""
    return _lse_bound(case, scores(case))[..., 0]


def overall(case: Case) -> dict[str, float]:
    """Bound the error of any score, weight, output or LSE of the case by one number each.

    No Tq × Tk array is made, unless the case has features.
    """
    if departs(case):
        return {name: float(bound(case).max()) for name, bound in _BOUNDS.items()}
    queries, keys = (sizes.max(axis=(0, 1)) for sizes in _sizes(case))
    score = np.atleast_1d(formula.product_error(case, queries @ keys, queries, keys))
    weight = promising(np.expm1(_log_weight_bound(case, score)) + case.precision.tiniest)
    value = 1.0 if case.values is None else float(np.abs(case.values).max())
    bias = 0.0 if case.bV is None else float(np.abs(case.bV).max())
    bounds = {
        "scores": score,
        "weights": weight,
        "lse": _lse_bound(case, score),
        "output": _output_bound(case, weight, value + bias),
    }
    return {name: float(bound[0]) for name, bound in bounds.items()}


_BOUNDS = {"scores": scores, "weights": weights, "lse": lse, "output": output}


def beside_float64(case: Case, bound: Array) -> Array:
    """Return the bound of a difference from what is computed in float64: of both sides, or of the coarse one alone."""
    return 2 * bound if case.precision == FLOAT64 else bound


def promising(bound: Array) -> Array:
    """Return the bound of a weight, or infinity where any weight at all would be within it."""
    return np.where(bound < 1, bound, np.inf)


def _sizes(case: Case) -> tuple[Array, Array]:
    """Return |q| + |bQ| and |k| + |δ| + |bK|."""
    keys = np.abs(case.keys) + np.abs(case.bK)[:, None]
    if case.key_shifts is not None:
        keys = keys + np.abs(case.key_shifts)
    return np.abs(case.q) + np.abs(case.bQ)[:, None], keys


def _log_weight_bound(case: Case, score: Array) -> Array:
    return 2 * score + case.precision.lost(4 * _count(case) + 16, STORED)


def _lse_bound(case: Case, score: Array) -> Array:
    return score + (4 * _count(case) + 24) * case.precision.unit + np.log(_count(case)) * case.precision.storing


def _count(case: Case) -> int:
    """Return the number of keys, those included that a feature adds."""
    return case.keys.shape[1] + (len(formula.columns(case)) if departs(case) else 0)


def _coarse_output_bound(case: Case, largest: Array) -> Array:
    """Bound the error of the output by each weight's own, which is no larger than its share: `[H, Tq, d_v]`."""
    own, count = case.precision, case.keys.shape[1]
    sized = case.but(values=_size(case.values), bV=_size(case.bV))
    sizes = formula.mixture(sized, formula.shares(case), None)
    bound = formula.mixture(sized, _off(case), None)
    bound = bound + (own.accumulated(count + 4) + STORED * own.storing) * sizes
    bound = bound + count * own.tiniest * np.maximum(largest, 1.0)
    return np.where((count * largest <= own.largest) & ~np.isnan(bound), bound, np.inf)


@once_per_case
def _off(case: Case) -> Array:
    """Bound by how much each weight is off, `[H, Tq, Tk]`: its share times what its own score and the row's LSE may do.

    With scores off by e_j, the LSE is by at most log Σ_j p_j·exp(e_j): a key without a share, however low its score and
    however far off that is, moves nothing.
    """
    logs = formula.scores(case).value - formula.lse(case)[..., None]
    error = np.broadcast_to(formula.scores(case).error if departs(case) else scores(case), logs.shape)
    higher = [np.where(logs > -np.inf, logs + error, -np.inf)]
    for logit, _ in formula.columns(case):
        most = logit.value - formula.lse(case) + logit.error + formula.given(case, logit.value)
        higher.append(np.broadcast_to(most, logs.shape[:2])[..., None])
    total = np.logaddexp.reduce(np.concatenate(higher, axis=-1), axis=-1)[..., None]
    units = case.precision.lost(4 * _count(case) + 16, STORED)
    return np.exp(higher[0] + total + units) - np.exp(logs)


def _size(array: Array | None) -> Array | None:
    return None if array is None else np.abs(array)


def _output_bound(case: Case, weight: Array, largest: Array | float) -> Array:
    count = case.keys.shape[1]
    mixing = case.precision.accumulated(count + 4) + STORED * case.precision.storing
    bound = (weight + mixing) * largest + count * case.precision.tiniest
    bound = np.where(np.asarray(largest) <= case.precision.largest, bound, np.inf)
    return np.nan_to_num(bound, copy=False, nan=np.inf, posinf=np.inf)  # no promise, of values that are all 0
