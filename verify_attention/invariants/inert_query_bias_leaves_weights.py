"""A Q bias whose product with every key is the same changes no weight.

The Q bias adds s·bQ·k_j to the score of key j. Where bQ·k_j is the same for all keys, that is a common shift. It is
decided exactly, on the binary64 numbers, and for each head by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from verify_attention import departures, rounding
from verify_attention.memory import once_per_case
from verify_attention.model import Array, Case, Fault, Flags, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, biased_queries


@once_per_case
def inert_heads(case: Case) -> Flags:
    """Return which query heads have a non-zero bQ with the same bQ·k_j for every key that a row sees, `[H]`."""
    pairs = zip(case.bQ, case.kv_head, strict=True)
    seen = departures.visible(case)
    return np.array(
        [
            bool(bias.any()) and all(_same_product(bias, case.keys[group][row]) for row in _rows(seen, head))
            for head, (bias, group) in enumerate(pairs)
        ]
    )


def _rows(seen: Flags | None, head: int) -> list[Any]:
    """Return which keys the rows of a head see, each kind of row once."""
    return [slice(None)] if seen is None else list(np.unique(seen[head], axis=0))


def _same_product(bias: Array, keys: Array) -> bool:
    """Decide whether bQ·k_j is the same for all keys, in rational numbers where floating point cannot tell."""
    products = keys @ bias
    if products.dtype == object:  # these are exact
        return bool((products == products[0]).all())
    sizes = np.abs(keys) @ np.abs(bias)
    if (np.abs(products - products[0]) > 1e-12 * (sizes + sizes[0])).any():
        return False
    used = bias.nonzero()[0]
    different = np.unique(keys[:, used], axis=0).tolist()
    exact = (sum(Fraction(b) * Fraction(k) for b, k in zip(bias[used].tolist(), key, strict=True)) for key in different)
    first = next(exact)
    return all(product == first for product in exact)


def _counts(case: Case) -> Flags:
    """Return the rows of inert heads that have more than one key, `[H, 1 or Tq, 1]`."""
    whole = case if case.whole is None else case.whole
    inert = inert_heads(whole)[case.first_head : case.first_head + len(case.q), None, None]
    rows = departures.telling(case)
    return inert if rows is None else inert & rows


def applies(case: Case) -> str | None:
    """Ask for an inert head with a row of at least two keys."""
    if any(departures.on_vectors(case)):
        return "a feature changes the vectors"
    if not case.bQ.any():
        return "vacuous: bQ is 0 in every head"
    reason = departures.one_key(case)
    if reason is not None:
        return reason
    return None if _counts(case).any() else "no head's bQ has the same product with every key of a row of several"


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the weights of inert heads with bQ and without."""
    with_bias, without = case.under("q"), case.under("none")
    yield Sides(
        "weights[q] − weights[none]",
        attend(with_bias).weights,
        attend(without).weights,
        rounding=rounding.promising(rounding.weights(with_bias) + rounding.weights(without)),
        counts=_counts(case),
    )


def first_channel_only(case: Case) -> Array:
    """Add only the first non-zero channel of the Q bias."""
    first = np.cumsum(case.bQ != 0, axis=-1) == 1
    return case.q + (case.bQ * first)[:, None]


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="bQ·k_a = bQ·k_b for all keys a, b  ⟹  weights(q, k, bQ, 0) = weights(q, k, 0, 0)",
    source="article, section 3",
    check="the exception in which Q has no effect",
    needs=frozenset({"bilinear scores", "shift-invariant softmax"}),
    applies=applies,
    where="some head has a bQ that is not 0 and the same bQ·k_j for every key that a row sees, at least two, exactly; "
    "no feature changes the vectors",
    sides=sides,
    faults=(
        Fault(
            "a Q bias doubles the queries", CORE.but(queries=lambda case: biased_queries(case) * (1 + case.bQ.any()))
        ),
        Fault("only the first channel of the Q bias is added", CORE.but(queries=first_channel_only)),
    ),
)
