"""The same call gives the same bits, also after another one.

A cache that is looked up by shape, a buffer that keeps what was in it, or a sum whose order is left to chance gives
other numbers the second time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from verify_attention.functions import Asked, arguments
from verify_attention.kernel import attention
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Ask, ask about something else of the same shape, and ask again."""
    first = attend(case.under("qk"))
    arguments(first)
    attend(case.but(q=case.q[:, ::-1] * 0.5, keys=-case.keys))
    again = attend(case.under("qk").but())
    for name, before in {"output": first.output, **first.inside}.items():
        after = again.output if name == "output" else again.inside[name]
        neither = np.isnan(before) & np.isnan(after)  # that both are none is for others to say
        left, right = (np.where(neither, 0.0, side) for side in (before, after))
        yield Sides(name, left, right, rounding=0.0, axis="channel" if name == "output" else "key", limit=0.0)


def keeping_keys_by_shape() -> Asked:
    """Return a function that keeps the last keys of each shape, and takes them for the new ones every other time."""
    kept: dict[tuple[int, ...], Array] = {}

    def cached(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
        used = kept.pop(k.shape, k)
        if used is k:
            kept[k.shape] = k
        return attention(q, used, v, **options)

    return Asked(cached)


def adding_to_a_buffer() -> Asked:
    """Return a function that adds its output to a hundredth of what it gave before."""
    kept: dict[tuple[int, ...], Array] = {}

    def accumulating(q: Array, k: Array, v: Array, **options: Any) -> Array:
        output = attention(q, k, v, **options)["output"]
        kept[output.shape] = output + 0.01 * kept.get(output.shape, np.zeros_like(output))
        return kept[output.shape]

    return Asked(accumulating)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="f(x), f(y), f(x): the first and the last are equal, bit by bit",
    source="what a function is",
    of_others=True,
    own_limit=True,
    sides=sides,
    faults=(
        Fault("keys are kept by their shape", keeping_keys_by_shape()),
        Fault("the output is added to what is left in its buffer", adding_to_a_buffer()),
    ),
)
