"""Arrays that do not lie in memory as they are read."""

from __future__ import annotations

import numpy as np

from verify_attention.faults._making import Kind, mistake
from verify_attention.kernel import biased
from verify_attention.model import Array


def as_it_lies(array: Array) -> Array:
    """Read an array from its first number on, one after the other, whatever its strides."""
    if array.flags.c_contiguous:
        return array
    owner = array
    base = array.base
    while base is not None:  # a view of a view, or of what only has its memory
        owner = base if isinstance(base, np.ndarray) else owner
        base = getattr(base, "base", None)
    return np.resize(owner.ravel(order="K"), array.shape)


KIND = Kind(
    "memory",
    (
        mistake(
            "queries that are not contiguous are read as if they were",
            queries=lambda ask: biased(as_it_lies(ask.q), ask.bQ),
        ),
        mistake(
            "keys that are not contiguous are read as if they were", keys=lambda ask: biased(as_it_lies(ask.k), ask.bK)
        ),
        mistake(
            "values that are not contiguous are read as if they were",
            values=lambda ask: biased(as_it_lies(ask.v), ask.bV),
        ),
    ),
)
