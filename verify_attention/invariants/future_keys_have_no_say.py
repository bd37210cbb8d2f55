"""What stands behind a query changes nothing for it, and its last visible key does.

Under causality the row of a query aligned at p sees the keys up to p: other keys and values behind p leave its output.
The contrast: a number Δ added to the value of the last key that it sees moves its output by that key's weight times
Δ. A row whose own key is hidden by mistake has no future either, but fails this. Keys and values change, never
the queries: in self-attention all three come from one input, of which the row's own token is part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from verify_attention import formula, rounding, selection, structure
from verify_attention.departures import hidden_score, visible
from verify_attention.model import Array, Case, Fault, Flags, Implementation, Indices, Invariant, Sides, Trace
from verify_attention.pipeline import CORE, Pipeline, uncovered
from verify_attention.roundoff import UNIT

NAME = "future-keys-have-no-say"
MOST_ROWS = 32  # whose future is changed
ADDED = 1.0  # to a visible value


def applies(case: Case) -> str | None:
    """Ask for causality, and for a row with a key behind it."""
    if "causal" not in case.features:
        return "the case is not causal"
    if not (case.aligned < case.keys.shape[1] - 1).any():
        return "no row has a key behind it"
    return structure.asked(case, NAME) or structure.small(case)


def asked_rows(count: int) -> Indices:
    """Return whose future is changed: all rows, or some from the first to the last."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST_ROWS)).astype(int))


def with_another_future(case: Case, place: int) -> Case:
    """Return the case with other keys and values behind a place."""
    keys, values = case.keys.copy(), selection.values(case).copy()
    keys[:, place + 1 :] = 1.5 - 2 * keys[:, place + 1 :]
    values[:, place + 1 :] = 2.5 - 3 * values[:, place + 1 :]
    return case.but(keys=keys, values=values)


def with_another_value(case: Case, place: int) -> Case:
    """Return the case with a number added to the value of a key."""
    values = selection.values(case).copy()
    values[:, place] += ADDED
    return case.but(values=values)


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Change for each row what is behind it, and then its own key's value; both biases are in place."""
    plain = selection.with_values(case.under("qk"))
    heads, rows, count = case.scores_shape
    chosen = asked_rows(rows)
    own = np.minimum(case.aligned, count - 1)
    output, bound = attend(plain).output, rounding.output(plain)
    future, moved = output.copy(), np.zeros_like(output)
    future_bound, moved_bound = bound.copy(), bound.copy()
    for row in chosen:
        other = with_another_future(plain, int(own[row]))
        future[:, row] = attend(other).output[:, row]
        future_bound[:, row] += rounding.output(other)[:, row]
        other = with_another_value(plain, int(own[row]))
        moved[:, row] = attend(other).output[:, row] - output[:, row]
        moved_bound[:, row] += rounding.output(other)[:, row]
    behind, asked = np.zeros((2, 1, rows, 1), dtype=bool)
    asked[:, chosen] = True
    behind[0, :, 0] = asked[0, :, 0] & (own < count - 1)
    yield Sides(
        "output with other keys and values behind the query",
        future,
        output,
        rounding=future_bound,
        axis="channel",
        counts=behind,
    )
    share = np.take_along_axis(formula.shares(plain), np.broadcast_to(own[:, None], (heads, rows, 1)), axis=-1)
    yield Sides(
        "what its own value adds to the output of a query",
        moved,
        np.broadcast_to(ADDED * share, moved.shape),
        rounding=moved_bound + ADDED * rounding.weights(plain) + 2 * UNIT * (largest(plain) + ADDED),
        axis="channel",
        counts=asked,
    )


def largest(case: Case) -> float:
    """Return the largest number that an output may be made of."""
    return float(np.abs(selection.values(case)).max() + (0.0 if case.bV is None else np.abs(case.bV).max()))


def seeing(change: Callable[[Case, Flags], Flags]) -> Pipeline:
    """Return a core with other visible keys: `change(case, visible)`."""

    def changed(case: Case, scores: Array) -> Array:
        found = visible(case)
        scores = uncovered(case, scores)
        return scores if found is None else np.where(change(case, found), scores, hidden_score(case))

    return CORE.but(change=changed)


def declared(kind: str | None) -> Callable[[Case], Trace]:
    """Return an implementation that takes causality for another kind, or leaves it out."""

    def attend(case: Case) -> Trace:
        features = {name: own for name, own in case.features.items() if name != "causal"}
        if "causal" in case.features and kind is not None:
            features["causal"] = kind
        return CORE(case.but(features=features))

    return attend


def one_more(case: Case, found: Flags) -> Flags:
    """Show each row the key behind it."""
    return found | (np.arange(found.shape[-1]) == case.aligned[:, None] + 1)


def own_hidden(case: Case, found: Flags) -> Flags:
    """Hide from each row the key at its own place, if it sees another."""
    fewer = found & (np.arange(found.shape[-1]) != case.aligned[:, None])
    return np.where(fewer.any(axis=-1, keepdims=True), fewer, found)


def masked_after_softmax(case: Case) -> Trace:
    """Hide after the softmax, and leave the sum as it was."""
    trace, found = CORE.but(change=uncovered)(case), visible(case)
    weights = trace.weights if found is None else trace.weights * found
    return Trace(CORE.mix(case, weights), {**trace.inside, "weights": weights})


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="output_i(k_j, v_j for j > p_i) = output_i(any others), and output_i(v_p + Δ) − output_i(v_p) = p_ip·Δ",
    source="the definition of causality",
    needs=frozenset({"hidden keys have no weight"}),
    applies=applies,
    where="the case is causal, a row has a key behind it, and the case is not large",
    sides=sides,
    faults=(
        Fault("causality is measured from the upper left, whatever is declared", declared("upper-left")),
        Fault("causality is measured from the lower right, whatever is declared", declared("lower-right")),
        Fault("causality is dropped", declared(None)),
        Fault("one future key is visible", seeing(one_more)),
        Fault("the query's own key is hidden", seeing(own_hidden)),
        Fault("future weights are taken out after the softmax", masked_after_softmax),
    ),
)
