"""Two ways to pose one question: what an implementation answers to both, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from verify_attention import rounding
from verify_attention.model import Array, Case, Flags, Implementation, Sides

BOUNDS = {"output": rounding.output, "weights": rounding.weights, "scores": rounding.scores}


def agreement(
    one: Case,
    other: Case,
    attend: Implementation,
    *,
    of: str = "",
    parts: tuple[Literal["output", "weights", "scores"], ...] = ("output", "weights", "scores"),
    counts: Flags | None = None,
    moves: Array | None = None,
    limit: float | None = None,
) -> Iterator[Sides]:
    """Yield output, weights and scores of both cases, which should agree within what rounding may do to each.

    `of` follows the part's name; `counts` and `moves` are `[H, Tq, 1]`; `limit` replaces the tolerance.
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
            limit=limit,
        )
