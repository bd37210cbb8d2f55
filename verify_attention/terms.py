"""The four terms of a score, each summed exactly: the independent route beside `@`.

    (q + bQ)·(k + bK) = q·k + bQ·k + q·bK + bQ·bK

The sums are exact because the numbers are cut into slices of so few bits that every partial sum of their products is
a whole number below 2^53, whatever the order in which a BLAS adds. (Ozaki et al., "Error-free transformations of
matrix multiplication by using fast routines of matrix multiplication", Numerical Algorithms 59, 2012.)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verify_attention.memory import once_per_case
from verify_attention.model import Array, Case, Condition, Flags, Indices

MOST_SLICES = 24  # of about 20 bits: numbers in a row may differ by a factor of 1e140 and more


def exact_product(left: Array, right: Array) -> Array:
    """Return `left @ right`, each sum rounded once, `[…, n, m]` from `[…, n, d]` and `[…, d, m]`.

    Rows and columns whose numbers differ so much in size that `MOST_SLICES` slices do not hold them are multiplied as
    rationals, one by one.
    """
    bits = (53 - int(np.ceil(np.log2(left.shape[-1] * MOST_SLICES)))) // 2
    lefts, left_exponents, left_rest = _slices(left, -1, bits)
    rights, right_exponents, right_rest = _slices(right, -2, bits)
    total: Array = np.zeros((*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1]))
    lost = total.copy()
    for place in range(len(lefts) + len(rights) - 1):
        pairs = range(max(0, place - len(rights) + 1), min(place + 1, len(lefts)))
        term = sum(lefts[i] @ rights[place - i] for i in pairs) * 2.0 ** (-bits * (place + 2))
        after = total + term
        back = after - total
        lost += (total - (after - back)) + (term - back)
        total = after
    product: Array = np.ldexp(total + lost, left_exponents + right_exponents)
    if left_rest.any() or right_rest.any():
        _as_rationals(product, left, right, left_rest | right_rest)
    return product


def _slices(numbers: Array, axis: int, bits: int) -> tuple[list[Array], Indices, Flags]:
    """Cut numbers into whole-number slices, Σ_i slice_i · 2^(−bits·(i + 1)) · 2^exponent, with one exponent a row.

    The last result says in which rows something is left over.
    """
    largest = np.abs(numbers).max(axis=axis, keepdims=True)
    exponents = np.frexp(largest)[1]
    rest = np.ldexp(numbers, -exponents)
    # What an exponent so low makes of a number is not the number any more.
    lost = (np.ldexp(rest, exponents) != numbers).any(axis=axis, keepdims=True)
    slices: list[Array] = []
    while len(slices) < MOST_SLICES and (not slices or rest.any()):
        rest = rest * 2.0**bits
        slices.append(np.rint(rest))
        rest = rest - slices[-1]
    return slices, exponents, lost | (rest != 0).any(axis=axis, keepdims=True)


def _as_rationals(product: Array, left: Array, right: Array, where: Flags) -> None:
    """Put exact sums, rounded once, into the places of a product that slices could not hold."""
    lead = product.shape[:-2]
    left, right = np.broadcast_to(left, lead + left.shape[-2:]), np.broadcast_to(right, lead + right.shape[-2:])
    for place in np.argwhere(np.broadcast_to(where, product.shape)).tolist():
        at, row, column = tuple(place[:-2]), place[-2], place[-1]
        pairs = zip(left[at][row].tolist(), right[at][:, column].tolist(), strict=True)
        product[at][row, column] = _rounded(sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0)))


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


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
    """Return the scores under a condition from the four terms, `[H, Tq, Tk]`."""
    four = terms(case)
    total = four.qk
    if "k" in condition:
        total = total + four.qbK[..., None] + (0 if four.q_shifts is None else four.q_shifts)
    if "q" in condition:
        total = total + query_term(case, condition)[:, None]
    if condition == "qk":
        total = total + four.bQbK[:, None, None]
    return case.scale * total


def query_term(case: Case, condition: Condition) -> Array:
    """Return bQ·k_j, `[H, Tk]`: with k_j + δ_j for k_j where the condition has the key shifts δ."""
    four = terms(case)
    return four.bQk if "k" not in condition or four.bQ_shifts is None else four.bQk + four.bQ_shifts


def row_shift(case: Case, condition: Condition) -> Array:
    """Return what the K bias adds to every score of a row: s·q_i·bK, or s·(q_i + bQ)·bK under `qk`, `[H, Tq]`."""
    four = terms(case)
    return case.scale * (four.qbK + four.bQbK[:, None] if "q" in condition else four.qbK)


def key_term(case: Case, condition: Condition) -> Array:
    """Return what bK and the key shifts add to every score, `[H, Tq, Tk]`, or `[H, Tq, 1]` where that is one number."""
    four = terms(case)
    added = row_shift(case, condition)[..., None]
    if four.q_shifts is None or four.bQ_shifts is None:
        return added
    shifts = four.q_shifts + four.bQ_shifts[:, None] if "q" in condition else four.q_shifts
    return added + case.scale * shifts


def first_row_shift(case: Case) -> Array:
    """Return what the K bias adds to the first row of each head of the whole case, s·q_0·bK, `[H, 1]`."""
    if case.whole is None:
        return row_shift(case, "k")[:, :1]
    first = case.whole.q[case.first_head : case.first_head + len(case.q), :1]
    return case.scale * exact_product(first, case.bK[case.kv_head][..., None])[..., 0]


def gaps(row: Array) -> Array:
    """Return what each key's number has over the first key's, `[…, Tk]`: all gaps agree where these do."""
    return row - row[..., :1]
