"""Cases in the numbers of another dtype: what is judged is what the implementation gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from verify_attention.model import FLOAT64, Array, Case, Precision

POSITIONS = frozenset({"q_positions", "k_positions"})  # a rotation takes them as they are


def cast(case: Case, precision: Precision) -> Case:
    """Return the case for an implementation of some precision, each array in numbers of its dtype.

    Printed numbers are about the case as it was: they go where a number changes. So does a latent, as keys do not
    follow from it to the last digit any more. Scalars (scale, cap, base) stay, and are rounded by what computes
    with them. A case with a number that the dtype does not hold stays as it is, and does not fit.
    """
    if precision == FLOAT64:
        return case
    uncast = case.but(precision=precision)
    if not fits(uncast):
        return uncast.but(published=None)
    changed: dict[str, Any] = {
        name: rounded(array, precision.dtype)
        for name in ("q", "keys", "bQ", "bK", "values", "bV", "W_O")
        if (array := getattr(case, name)) is not None
    }
    features = {name: _parameters(value, precision.dtype) for name, value in case.features.items()}
    same = all(np.array_equal(array, getattr(case, name)) for name, array in changed.items())
    printed = case.published if same and _equal(features, case.features) else None
    return case.but(**changed, latent=None, features=features, published=printed, precision=precision)


def fits(case: Case) -> bool:
    """Say whether the precision of a case holds all its numbers: none is too large."""
    arrays = (case.q, case.keys, case.bQ, case.bK, case.values, case.bV, *_arrays(case.features))
    return all(bool((np.abs(array) <= case.precision.largest).all()) for array in arrays if array is not None)


def rounded(array: Array, dtype: str) -> Array:
    """Return an array in numbers of a dtype, as float64."""
    with np.errstate(all="ignore"):
        if dtype != "bfloat16":
            return array.astype(dtype).astype(np.float64)
        bits = array.astype(np.float32).view(np.uint32).astype(np.uint64)
        even = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000  # the upper half, to the nearest, ties to even
        return even.astype(np.uint32).view(np.float32).astype(np.float64)


def _parameters(value: Any, dtype: str) -> Any:
    if isinstance(value, Mapping):
        return {name: part if name in POSITIONS else _parameters(part, dtype) for name, part in value.items()}
    return rounded(value, dtype) if isinstance(value, np.ndarray) and value.dtype != bool else value


def _arrays(value: Any) -> list[Array]:
    if isinstance(value, Mapping):
        return [array for part in value.values() for array in _arrays(part)]
    return [value] if isinstance(value, np.ndarray) else []


def _equal(one: Any, other: Any) -> bool:
    return all(map(np.array_equal, _arrays(one), _arrays(other)))
