"""One causal pass over all queries equals one query at a time, or a few, with the keys that are there by then.

Row i of a causal pass sees the keys up to p_i, which are the keys that a cache holds when query i comes in: the rest
of the keys is hidden from it in one way and missing in the other. With the last query at the last key, nothing else
tells a step where it stands: causality, windows and ALiBi follow from the number of keys; the positions of a rotation
are given, and a cached key keeps the one that it was turned by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from verify_attention import departures, mistakes, rounding, selection
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Sides, Trace
from verify_attention.pipeline import CORE, biased_keys, biased_queries


def applies(case: Case) -> str | None:
    """Ask for causality from the lower right, and for two queries."""
    if case.features.get("causal") != "lower-right":
        return "the case is not causal from the lower right, where the last query stands at the last key"
    if case.q.shape[1] < 2:
        return "there is one query, and one step"
    if (departures.kept(case) or 0) > case.aligned[0] + 1:
        return "more keys keep a weight than there are at the first step"
    return None


def ways(count: int) -> dict[str, list[int]]:
    """Return ways to cut so many queries into steps: by name, where each begins and the last ends."""
    half = (count + 1) // 2
    found = {"one query at a time": list(range(count + 1))}
    if count > 2:
        found["two queries at a time"] = [*range(0, count, 2), count]
        found["half of the queries, then one at a time"] = [0, *range(half, count + 1)]
    if count > 4:
        found["two halves"] = [0, half, count]
    return found


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare one pass with each way to cut it into steps, both biases in place."""
    plain = selection.with_values(case.under("qk"))
    steps = {name: _steps(plain, edges) for name, edges in ways(case.q.shape[1]).items()}
    for name, cut in steps.items():
        yield Sides(
            f"output of {name}",
            np.concatenate([attend(step).output for step in cut], axis=1),
            attend(plain).output,
            rounding=np.concatenate([rounding.output(step) for step in cut], axis=1) + rounding.output(plain),
            axis="channel",
        )
    for name, cut in steps.items():
        bound = np.concatenate([rounding.weights(step) for step in cut], axis=1) + rounding.weights(plain)
        yield Sides(
            f"weights of {name}",
            np.concatenate([_filled(attend(step).weights, case.keys.shape[1]) for step in cut], axis=1),
            attend(plain).weights,
            rounding=rounding.promising(bound),
        )
    if not departures.has_lse(case):
        return
    for name, cut in steps.items():
        yield Sides(
            f"LSE of {name}",
            np.concatenate([attend(step).lse for step in cut], axis=1),
            attend(plain).lse,
            rounding=np.concatenate([rounding.lse(step) for step in cut], axis=1) + rounding.lse(plain),
        )


def _steps(case: Case, edges: list[int]) -> list[Case]:
    cached = case.keys.shape[1] - case.q.shape[1]
    return [selection.first_tokens(case, stop, cached + stop, since=start) for start, stop in pairwise(edges)]


def _filled(weights: Array, count: int) -> Array:
    """Give keys that are not there yet the weight 0."""
    return np.concatenate([weights, np.zeros((*weights.shape[:2], count - weights.shape[2]))], axis=-1)


def cached(case: Case) -> int:
    """Return how many keys were there before the queries of this step."""
    return max(0, case.keys.shape[1] - case.q.shape[1])


def changed(change: Callable[[Case], dict[str, object]]) -> Implementation:
    """Return an implementation that takes some features for others."""

    def attend(case: Case) -> Trace:
        return CORE(case.but(features={**case.features, **change(case)}))

    return attend


def skipped_with_a_cache(case: Case) -> Trace:
    """Skip causality where there are cached keys."""
    features = {name: own for name, own in case.features.items() if name != "causal" or not cached(case)}
    return CORE(case.but(features=features))


def rotated_again(case: Case) -> Array:
    """Turn cached keys once more by their positions."""
    own = case.features.get("rope")
    if own is None:
        return biased_keys(case)
    positions = own["k_positions"].copy()
    positions[: cached(case)] *= 2
    return biased_keys(case.but(features={**case.features, "rope": {**own, "k_positions": positions}}))


def positions_from_zero(case: Case) -> Array:
    """Turn the queries of each step as if they were the first."""
    own = case.features.get("rope")
    if own is None:
        return biased_queries(case)
    first = {**own, "q_positions": np.arange(float(case.q.shape[1]))}
    return biased_queries(case.but(features={**case.features, "rope": first}))


def distances_from_zero(case: Case, scores: Array) -> Array:
    """Measure ALiBi's distances as if the queries of each step were the first."""
    if "alibi" in case.features:
        slopes = case.features["alibi"]["slopes"][:, None, None]
        keys, rows = np.arange(case.keys.shape[1]), np.arange(case.q.shape[1])[:, None]
        scores = scores + slopes * (np.abs(case.aligned[:, None] - keys) - np.abs(rows - keys))
    return CORE.change(case, scores)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="output_i(all queries, all keys) = output(q_i, the first p_i + 1 keys), and likewise for chunks",
    source="the definition of causality; a cache of keys and values",
    needs=frozenset({"hidden keys have no weight"}),
    applies=applies,
    where="the case is causal from the lower right, and has at least two queries",
    on_request=True,
    whole=True,
    sides=sides,
    faults=(
        Fault("causality is skipped where there is a cache", skipped_with_a_cache),
        Fault("causality is measured from the upper left", changed(lambda _case: {"causal": "upper-left"})),
        Fault(
            "the last block of four keys is filled up with zeros, which are attended",
            CORE.but(columns=mistakes.filled_up_with_zero_keys),
        ),
        Fault("cached keys are rotated again at each step", CORE.but(keys=rotated_again)),
        Fault("a step's queries are rotated as if they were the first", CORE.but(queries=positions_from_zero)),
        Fault("ALiBi measures distances as if a step's queries were the first", CORE.but(change=distances_from_zero)),
    ),
)
