"""A function does not write to the arrays that it is given.

A caller's keys are used again, by the next layer or the next step. Every array is compared with a copy that was made
before the call, number by number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from verify_attention.functions import Asked, arguments
from verify_attention.kernel import attention
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare each argument after a call with what it was before."""
    for name, (before, after) in arguments(attend(case.under("qk"))).items():
        yield Sides(
            f"argument {name}",
            after,
            before,
            rounding=0.0,
            axis="key" if name in {"mask", "score_bias"} else "channel",
            limit=0.0,
        )


def centring_in_place(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
    """Take the mean off the caller's keys: only the scores' common shift is another."""
    k -= k.mean(axis=2, keepdims=True)
    return attention(q, k, v, **options)


def scaling_in_place(q: Array, k: Array, v: Array, *, scale: float | None = None, **options: Any) -> dict[str, Array]:
    """Multiply the caller's queries by the scale."""
    q *= q.shape[-1] ** -0.5 if scale is None else scale
    return attention(q, k, v, scale=1.0, **options)


def adding_in_place(q: Array, k: Array, v: Array, *, bV: Array | None = None, **options: Any) -> dict[str, Array]:
    """Add the V bias to the caller's values."""
    if bV is not None:
        v += bV[:, None]
    return attention(q, k, v, **options)


def filling_in_place(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
    """Write causality into the caller's mask."""
    if options.get("mask") is not None and options.get("causal") is not None:
        rows, keys = q.shape[2], k.shape[2]
        first = 0 if options["causal"] == "upper-left" else keys - rows
        for row in range(rows):
            options["mask"][..., row, max(0, row + first + 1) :] = False
    return attention(q, k, v, **options)


def keeping_another_base(q: Array, k: Array, v: Array, **options: Any) -> dict[str, Array]:
    """Write the base that it uses for long contexts into the caller's rope."""
    answer = attention(q, k, v, **options)
    if options.get("rope") is not None:
        options["rope"]["base"] = 4 * options["rope"]["base"]
    return answer


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="q, k, v and every option, after the call = before it",
    source="the habit of every array library",
    of_others=True,
    own_limit=True,
    sides=sides,
    faults=(
        Fault("keys are centred in place", Asked(centring_in_place)),
        Fault("queries are scaled in place", Asked(scaling_in_place)),
        Fault("the V bias is added in place", Asked(adding_in_place)),
        Fault("causality is written into the mask", Asked(filling_in_place)),
        Fault("another base is written into the rope", Asked(keeping_another_base)),
    ),
)
