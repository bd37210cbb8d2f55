"""Products of matrices whose sums are exact: the independent route beside `@`.

The sums are exact because the numbers are cut into slices of so few bits that every partial sum of their products is
a whole number below 2^53, whatever the order in which a BLAS adds. (Ozaki et al., "Error-free transformations of
matrix multiplication by using fast routines of matrix multiplication", Numerical Algorithms 59, 2012.)
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from verify_attention.model import Array, Flags, Indices

MOST_SLICES = 24  # of about 20 bits: numbers in a row may differ by a factor of 1e140 and more


def exact_product(left: Array, right: Array) -> Array:
    """Return `left @ right`, each sum rounded once, `[…, n, m]` from `[…, n, d]` and `[…, d, m]`.

    Rows and columns whose numbers differ so much in size that `MOST_SLICES` slices do not hold them are multiplied as
    rationals, one by one.
    """
    if np.object_ in {left.dtype.type, right.dtype.type}:  # numbers of a kind that does not round
        exact: Array = left @ right
        return exact
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        with np.errstate(all="ignore"):
            return left @ right  # an overflow has no exact sum
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
