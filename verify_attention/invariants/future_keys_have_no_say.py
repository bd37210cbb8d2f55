"""What stands behind a query changes nothing for it, and its last visible key does.

Under causality the row of a query aligned at p sees the keys up to p: other keys and values behind p leave its output.
The contrast: a number Δ, as large as the values, added to the value of the last key that it sees moves its output by
that key's weight times Δ. It is the key at the row's own place, unless a mask hides it: then the last before it, of
those that any head sees. A row whose own key is hidden by mistake has no future either, but fails this. Keys and values
change, never the queries: in self-attention all three come from one input, of which the row's own token is part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from verify_attention import formula, mistakes, rounding, selection, structure
from verify_attention.departures import hidden_score, visible
from verify_attention.model import Array, Case, Fault, Flags, Implementation, Indices, Invariant, Sides, Trace
from verify_attention.pipeline import CORE, Pipeline, uncovered


def applies(case: Case) -> str | None:
    """Ask for causality, and for a row with a key behind it."""
    if "causal" not in case.features:
        return "the case is not causal"
    if not (case.aligned < case.keys.shape[1] - 1).any():
        return "no row has a key behind it"
    return None


def with_another_future(case: Case, place: int) -> Case:
    """Return the case with other keys and values behind a place: no number of few decimals stays as it is."""
    keys, values = case.keys.copy(), selection.values(case).copy()
    keys[:, place + 1 :] = 1.3 - 2 * keys[:, place + 1 :]
    values[:, place + 1 :] = 2.5 - 2 * values[:, place + 1 :]
    return case.but(keys=keys, values=values)


def with_another_value(case: Case, place: int, added: float) -> Case:
    """Return the case with a number added to the value of a key."""
    values = selection.values(case).copy()
    values[:, place] += added
    return case.but(values=values)


def as_large(case: Case) -> float:
    """Return the least power of two from 1 that no value exceeds: beside it rounding takes no more off than from 1."""
    largest = float(np.abs(selection.values(case)).max())
    return float(2.0 ** np.ceil(np.log2(min(max(largest, 1.0), 2.0**1000))))


def last_seen(case: Case) -> Indices:
    """Return the place of the last key that each row sees in any head, `[Tq]`."""
    found = visible(case)
    flags = np.ones(case.scores_shape, dtype=bool) if found is None else found
    places: Indices = np.where(flags.any(axis=0), np.arange(case.keys.shape[1]), -1).max(axis=-1)
    return places


def share_of_the_future(case: Case) -> Array:
    """Return what the keys behind each row would weigh if nothing were hidden, `[H, Tq, 1]`."""
    features = selection.spelled_out(case).features
    weights = formula.shares(case.but(features={name: own for name, own in features.items() if name != "mask"}))
    behind = np.arange(case.keys.shape[1]) > case.aligned[:, None]
    return (weights * behind).sum(axis=-1, keepdims=True)


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Change for each row what is behind it, and then the value of the last key it sees; both biases are in place."""
    plain = selection.with_values(case.under("qk"))
    heads, rows, count = case.scores_shape
    chosen = structure.some_rows(rows)
    own, last = np.minimum(case.aligned, count - 1), last_seen(plain)
    output, bound, added = attend(plain).output, rounding.output(plain), as_large(plain)
    future, moved = output.copy(), np.zeros_like(output)
    future_bound, moved_bound = bound.copy(), bound.copy()
    for row in chosen:
        other = with_another_future(plain, int(own[row]))
        future[:, row] = attend(other).output[:, row]
        future_bound[:, row] += rounding.output(other)[:, row]
        other = with_another_value(plain, int(last[row]), added)
        moved[:, row] = attend(other).output[:, row]
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
        moves=share_of_the_future(plain),
        counts=behind,
    )
    share = np.take_along_axis(formula.shares(plain), np.broadcast_to(last[:, None], (heads, rows, 1)), axis=-1)
    yield Sides(
        "output with another value of the last key that the query sees",
        moved,
        output + added * share,
        rounding=moved_bound + added * rounding.weights(plain) + 2 * case.precision.unit * (largest(plain) + added),
        axis="channel",
        moves=added * share,
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


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="output_i(k_j, v_j for j > p_i) = output_i(any others), and output_i(v_l + Δ) = output_i(v_l) + p_il·Δ",
    source="the definition of causality",
    needs=frozenset({"hidden keys have no weight"}),
    applies=applies,
    where="the case is causal, and a row has a key behind it",
    on_request=True,
    whole=True,
    vacuous="what stands behind a row would have no weight, and the last key that it sees has none",
    sides=sides,
    faults=(
        Fault("causality is measured from the upper left, whatever is declared", declared("upper-left")),
        Fault("causality is measured from the lower right, whatever is declared", declared("lower-right")),
        Fault("causality is dropped", declared(None)),
        Fault("one future key is visible", seeing(one_more)),
        Fault("the query's own key is hidden", seeing(own_hidden)),
        Fault("future weights are taken out after the softmax", mistakes.masked_after_softmax),
    ),
)
