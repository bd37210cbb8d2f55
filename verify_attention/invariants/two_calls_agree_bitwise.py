"""The same call gives the same bits, also after another one.

A cache that is looked up by shape, a buffer that keeps what was in it, or a sum whose order is left to chance gives
other numbers the second time; a cache that is looked up by where an array lies, where the array holds other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from verify_attention.functions import Asked, arguments
from verify_attention.kernel import attention
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Posed, Sides


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Ask, ask about something else of the same shape, and ask again."""
    first = attend(case.under("qk"))
    arguments(first)
    other = case.but(q=case.q[:, ::-1] * 0.5, keys=-case.keys)
    attend(other)
    for how, posed in {"": Posed(), ", in arrays that were used before": Posed(after=other)}.items():
        again = attend(case.under("qk").but(posed=posed))
        for name, before in {"output": first.output, **first.inside}.items():
            after = again.output if name == "output" else again.inside[name]
            neither = np.isnan(before) & np.isnan(after)  # that both are none is for others to say
            left, right = (np.where(neither, 0.0, side) for side in (before, after))
            axis: Literal["channel", "key"] = "channel" if name == "output" else "key"
            yield Sides(f"{name}{how}", left, right, rounding=0.0, axis=axis, limit=0.0)


def keeping_keys_by_shape() -> Asked:
    """Return a function that keeps the last keys of each shape, and takes them for the new ones every other time."""
    kept: dict[tuple[int, ...], Array] = {}

    def cached(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
        used = kept.pop(k.shape, k)
        if used is k:
            kept[k.shape] = k
        return attention(q, used, v, **options)

    return Asked(cached)


def keeping_products_by_place() -> Asked:
    """Return a function that keeps the centred keys of the last array, and takes them for those of any array there."""
    kept: dict[str, Any] = {"array": None, "turned": None}

    def cached(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
        if kept["array"] is not k:
            kept.update(array=k, turned=k.copy())
        return attention(q, kept["turned"], v, **options)

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
        Fault("keys are kept by where they lie", keeping_products_by_place()),
        Fault("the output is added to what is left in its buffer", adding_to_a_buffer()),
    ),
)
