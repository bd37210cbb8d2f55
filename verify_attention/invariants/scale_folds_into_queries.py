"""A scale may be taken out of the scores and put into the queries.

s·((q + bQ)·k) = (s/4)·((4q + 4bQ)·k) = 1·((s·q + s·bQ)·k): rotations are linear, and what acts on scores sees the
same scores. Four is a power of two, so that nothing is rounded there. It asks that the scale be the given one, once,
on queries and keys alone: not on a score bias, and not on the weights. Norms are not homogeneous: they undo the
change.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import mistakes, structure
from verify_attention.agreement import agreement
from verify_attention.model import Array, Case, Column, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, added_columns, mixed_values, scaled_scores


def applies(case: Case) -> str | None:
    """Ask for no norm, and for a scale that can be moved."""
    if "qk_norm" in case.features:
        return "a norm undoes what is done to the queries"
    with np.errstate(over="ignore"):
        sizes = (np.abs(case.q) + np.abs(case.bQ)[:, None]) * max(4.0, case.scale)
    if not (1e-100 <= case.scale <= 1e100 and np.isfinite(sizes).all()):
        return "the scale, or a query, is too far from 1 to multiply them"
    return None


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the case with two others whose scale is smaller and whose queries are larger, both biases in place."""
    given = case.under("qk")
    others = {", a quarter of the scale": _folded(given, 4.0, given.scale / 4)}
    if given.scale not in {1.0, 4.0}:  # else it is the same question as that with the whole scale, or a quarter of it
        others[", a scale of 1"] = _folded(given, given.scale, 1.0)
    spread = structure.spread(given)
    for part in ("output", "weights", "scores"):
        for of, other in others.items():
            yield from agreement(given, other, attend, of=of, parts=(part,), moves=spread)


def _folded(case: Case, factor: float, scale: float) -> Case:
    return case.but(q=case.q * factor, bQ=case.bQ * factor, scale=scale)


def weighed(case: Case, weights: Array) -> Array:
    """Multiply the weights by the scale."""
    return mixed_values(case, weights * case.scale)


def unscaled_column(case: Case, queries: Array) -> list[Column]:
    """Forget the scale of an appended key."""
    return added_columns(case.but(scale=1.0), queries)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="attention(s, q + bQ) = attention(s/4, 4q + 4bQ) = attention(1, s·q + s·bQ)",
    source="article, section 1",
    applies=applies,
    where="there is no norm, and the numbers can be multiplied by the scale",
    on_request=True,
    whole=True,
    vacuous="the products of each row are all equal, so that no scale matters",
    sides=sides,
    faults=(
        Fault("the given scale is ignored, and √d_k divides", CORE.but(scores=mistakes.scale_of_the_width)),
        Fault(
            "the scale is applied twice",
            CORE.but(scores=lambda case, queries, keys: case.scale * scaled_scores(case, queries, keys)),
        ),
        Fault("the scale is applied to the weights as well", CORE.but(mix=weighed)),
        Fault("the score bias is multiplied by the scale", mistakes.score_bias_scaled_along),
        Fault("the score of an appended key is not scaled", CORE.but(columns=unscaled_column)),
    ),
)
