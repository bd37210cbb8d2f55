"""Two ways to pose one question: what an implementation answers to both, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from verify_attention import rounding
from verify_attention.model import CONTROL, EXACT, Array, Case, Flags, Implementation, Sides, Tolerance, Trace

BOUNDS = {"output": rounding.output, "weights": rounding.weights, "scores": rounding.scores, "lse": rounding.lse}


def same(of: str, one: Trace, other: Trace, case: Case) -> Iterator[Sides]:
    """Yield everything that both traces of a case show, which should agree within what rounding may do to each."""
    shown = {"output": (one.output, other.output)}
    shown |= {
        name: (one.inside[name], other.inside[name]) for name in BOUNDS if name in one.inside.keys() & other.inside
    }
    for name, (left, right) in shown.items():
        bound = 2 * BOUNDS[name](case)
        yield Sides(
            f"{name}{of}",
            left,
            right,
            rounding=rounding.promising(bound) if name == "weights" else bound,
            axis="channel" if name == "output" else "key",
        )


def agreement(
    one: Case,
    other: Case,
    attend: Implementation,
    *,
    of: str = "",
    parts: tuple[Literal["output", "weights", "scores"], ...] = ("output", "weights", "scores"),
    counts: Flags | None = None,
    moves: Array | None = None,
    far: bool = False,
) -> Iterator[Sides]:
    """Yield output, weights and scores of both cases, which should agree within what rounding may do to each.

    `of` follows the part's name; `counts` and `moves` are `[H, Tq, 1]`. Of what is posed so `far` off that
    rounding alone may exceed the tolerance, each element's bound is its limit, up to 1e-6: beyond that nothing can be
    told.
    """
    for part in parts:
        left, right = getattr(attend(one), part), getattr(attend(other), part)
        bound = BOUNDS[part](one) + BOUNDS[part](other)
        yield Sides(
            f"{part}{of}",
            left,
            right,
            rounding=rounding.promising(bound) if part == "weights" else bound,
            axis="channel" if part == "output" else "key",
            counts=counts,
            moves=moves,
            limit=np.clip(bound, Tolerance().atol, CONTROL) if far and one.precision != EXACT else None,
        )
