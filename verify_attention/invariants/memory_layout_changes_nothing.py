"""Views give the same as fresh arrays: strided, transposed, or one sample repeated without a copy.

The numbers are the same, and only where they lie differs: every second number of a wider array, heads behind rows as
a model's projections leave them, a stride of 0 along the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from verify_attention.agreement import same
from verify_attention.faults import memory
from verify_attention.functions import Asked, arguments
from verify_attention.kernel import attention
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Posed, Sides


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the output for each layout with that for fresh arrays."""
    plain = case.under("qk")
    fresh = attend(plain)
    arguments(fresh)
    for layout, posed in {
        "strided": Posed(layout="strided"),
        "transposed": Posed(layout="transposed"),
        "broadcast": Posed(layout="broadcast", company=(plain,)),
    }.items():
        yield from same(f" of {layout} arrays", attend(plain.but(posed=posed)), fresh, plain)


def with_an_lse_of_zeros(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
    """Fill the LSE of contiguous queries only."""
    shown = attention(q, k, v, **options)
    return shown if q.flags.c_contiguous else {**shown, "lse": np.zeros_like(shown["lse"])}


def reading_the_mask_so(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
    """Read the mask as if it were contiguous, and whole."""
    mask = options.get("mask")
    if mask is not None and mask.shape[:2] == q.shape[:2]:
        options["mask"] = memory.as_it_lies(mask)
    return attention(q, k, v, **options)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="attention(views of q, k, v and options) = attention(copies of them)",
    source="the habit of every array library",
    of_others=True,
    sides=sides,
    faults=(
        *memory.KIND.faults,
        Fault("a mask is read as if it were contiguous", Asked(reading_the_mask_so)),
        Fault("the LSE is filled for contiguous queries only", Asked(with_an_lse_of_zeros)),
    ),
)
