"""Masking a key is deleting it, also when its score would be huge or its value is.

exp(−∞) = 0: a hidden key adds nothing to a row's sum of exponentials, and 0·v to its output. So the output, the other
keys' weights and the LSE are those of the case that never had the key. Where a key is hidden from some rows only, those
rows are as if it were not there, and the others as if there were no mask. A hidden key whose product is 1e4 and
whose value is 1e300 tells a weight of exactly 0 from one that is merely small, and a maximum over visible scores from
one over all. It enters no sum, so that the bound is that of the case without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from verify_attention import departures, formula, mistakes, rounding, selection
from verify_attention.departures import visible
from verify_attention.model import (
    EXACT,
    FLOAT64,
    Array,
    Case,
    Fault,
    Flags,
    Implementation,
    Invariant,
    Sides,
    Trace,
)
from verify_attention.pipeline import CORE, Pipeline, uncovered

LOUD_SCORE, LOUD_VALUE, FARTHEST = 1e4, 1e300, 1e100  # or what a coarser precision holds
NO_KEY = "no key can be hidden without leaving a row with none"


def applies(case: Case) -> str | None:
    """Ask for a key without which every row still sees one."""
    if (departures.kept(case) or 0) > case.keys.shape[1] - 1:
        return "more keys keep a weight than there are without one"
    return NO_KEY if spare_key(case) is None else None


def spare_key(case: Case) -> int | None:
    """Return a key that every row can do without: of those, one that most rows see."""
    flags = seen(case)
    spare = (flags.sum(axis=-1, keepdims=True) - flags > 0).all(axis=(0, 1))
    rows = np.where(spare, flags.sum(axis=(0, 1)), -1)
    return int(rows.argmax()) if spare.any() else None


def seen(case: Case) -> Flags:
    """Return which keys a row may attend to, `[H, Tq, Tk]`."""
    found = visible(case)
    return np.ones(case.scores_shape, dtype=bool) if found is None else found


def hidden_from(case: Case, key: int, rows: Flags) -> Case:
    """Return the case with one key hidden from some rows, `[H, Tq]`, on top of what it hides."""
    mask = np.broadcast_to(case.features.get("mask", np.True_), case.scores_shape).copy()
    mask[..., key] &= ~rows
    return case.but(features={**case.features, "mask": mask})


def loud(case: Case, key: int) -> Case:
    """Return the case with a key whose value is 1e300, and whose product is about 1e4 in some row of each KV head.

    It is the product, before a temperature or a cap acts on it: under a cap of 1 a score of 1e4 would ask for a key
    beyond all measure, beside which code that takes the keys' mean off all of them has no digits left. A norm may keep
    the product low.
    """
    groups, heads = len(case.keys), len(case.q) // len(case.keys)
    queries = (case.q + case.bQ[:, None])[::heads]
    longest = np.square(queries).sum(axis=-1).argmax(axis=-1)
    direction = np.take_along_axis(queries, longest[:, None, None], axis=1)[:, 0]
    size = np.abs(direction).max(axis=-1, keepdims=True)
    unit = np.where(size > 0, direction / np.where(size > 0, size, 1.0), 1.0)  # squares of tiny numbers would be 0
    own = FLOAT64 if case.precision == EXACT else case.precision  # the same question, however it is answered
    room = own.largest / 8
    quiet = 0.02 / (own.unit + own.storing)  # louder, rounding hides what code that centres keys makes of the others
    loud_score = min(LOUD_SCORE, room * min(1.0, case.scale), quiet)
    farthest = min(FARTHEST, room)
    values = selection.values(case).copy()
    values[:, key] = min(LOUD_VALUE, room)
    vectors = unit * (loud_score / np.maximum(case.scale * size * np.square(unit).sum(axis=-1, keepdims=True), 1e-100))
    posed = case
    for _ in range(2):  # the second time with what a rotation makes of it put right
        keys = case.keys.copy()
        keys[:, key] = np.clip(vectors, -farthest, farthest)
        posed = case.but(keys=keys, values=values)
        scores = formula.products(posed).value[..., key].reshape(groups, -1)
        highest, lowest = scores.max(axis=-1, keepdims=True), scores.min(axis=-1, keepdims=True)
        strongest = np.where(highest >= -lowest, highest, lowest)
        vectors = vectors * loud_score / np.where(np.abs(strongest) > 1, strongest, 1.0)
    return posed


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Hide a key from all rows, from every other row, and from all rows when it is loud; both biases are in place."""
    plain, key = case.under("qk"), spare_key(case)
    if key is None:
        return
    others = np.delete(np.arange(case.keys.shape[1]), key)
    everywhere = np.ones(case.scores_shape[:2], dtype=bool)
    alternating = (np.add.outer(np.arange(len(case.q)), np.arange(case.q.shape[1])) % 2).astype(bool)
    without = selection.keys(plain, others)
    masked, checkered = hidden_from(plain, key, everywhere), hidden_from(plain, key, alternating)
    silenced = hidden_from(loud(plain, key), key, everywhere)
    bound = rounding.output(without)
    yield Sides(
        "output with a key hidden",
        attend(masked).output,
        attend(without).output,
        rounding=rounding.output(masked) + bound,
        axis="channel",
    )
    yield Sides(
        "output with a loud key hidden",
        attend(silenced).output,
        attend(without).output,
        rounding=beside_a_loud_key(rounding.output, silenced, without),
        axis="channel",
    )
    yield Sides(
        "output with a key hidden from every other row",
        attend(checkered).output,
        np.where(alternating[..., None], attend(without).output, attend(plain).output),
        rounding=rounding.output(checkered) + np.where(alternating[..., None], bound, rounding.output(plain)),
        axis="channel",
    )
    left_out = np.insert(attend(without).weights, key, 0.0, axis=-1)
    bound = rounding.weights(without)
    yield Sides(
        "weights with a key hidden",
        attend(masked).weights,
        left_out,
        rounding=rounding.promising(rounding.weights(masked) + bound),
    )
    yield Sides(
        "weights with a loud key hidden",
        attend(silenced).weights,
        left_out,
        rounding=rounding.promising(beside_a_loud_key(rounding.weights, silenced, without)),
    )
    if departures.has_lse(case):
        bound = rounding.lse(without)
        yield Sides(
            "LSE with a key hidden", attend(masked).lse, attend(without).lse, rounding=rounding.lse(masked) + bound
        )
        yield Sides(
            "LSE with a loud key hidden",
            attend(silenced).lse,
            attend(without).lse,
            rounding=beside_a_loud_key(rounding.lse, silenced, without),
        )


def beside_a_loud_key(bound: Callable[[Case], Array], silenced: Case, without: Case) -> Array:
    """Bound a difference from the case without the key.

    In float64 a loud key is far below what the others lose by it. In a coarse precision it counts, as code may take
    from every key what is common to all.
    """
    return 2 * bound(without) if without.precision == FLOAT64 else bound(silenced) + bound(without)


def filled(number: float) -> Pipeline:
    """Return a core that puts a number where a score is hidden."""
    return CORE.but(change=lambda case, scores: np.where(seen(case), uncovered(case, scores), number))


def transposed(case: Case, scores: Array) -> Array:
    """Read the mask with queries and keys exchanged, where there are as many."""
    flags = seen(case)
    flags = flags.swapaxes(-1, -2) if flags.shape[-1] == flags.shape[-2] else flags
    return np.where(flags, uncovered(case, scores), departures.hidden_score(case))


def capped_after_the_mask(case: Case, scores: Array) -> Array:
    """Hide first, and let features act on −∞."""
    return uncovered(case, np.where(seen(case), scores, departures.hidden_score(case)))


def maximum_of_all(case: Case) -> Trace:
    """Subtract the maximum over hidden scores too, and hide afterwards."""
    highest = CORE.but(change=uncovered)(case).scores.max(axis=-1, keepdims=True)
    trace = CORE(case)
    powers = np.exp(trace.scores - highest)
    weights = powers / np.exp(trace.lse[..., None] - highest) if "lse" in trace.inside else trace.weights
    return Trace(CORE.mix(case, weights), {**trace.inside, "weights": weights})


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="output(mask hides j) = output(keys without j), whatever k_j and v_j",
    source="the definition of a mask: a score of −∞",
    needs=frozenset({"hidden keys have no weight"}),
    applies=applies,
    where="every row can do without some key",
    on_request=True,
    whole=True,
    sides=sides,
    faults=(
        Fault("scores are multiplied by the mask", CORE.but(change=lambda c, s: uncovered(c, s) * seen(c))),
        Fault("the mask is added as 0 and 1", CORE.but(change=lambda c, s: uncovered(c, s) + seen(c))),
        Fault("true hides", CORE.but(change=lambda c, s: np.where(seen(c), -np.inf, uncovered(c, s)))),
        Fault("hidden scores are −1e4", filled(-1e4)),
        Fault("hidden scores are −1e-9", filled(-1e-9)),
        Fault("−1e4 is added to hidden scores", CORE.but(change=lambda c, s: uncovered(c, s) - 1e4 * ~seen(c))),
        Fault("the mask is read transposed where Tq = Tk", CORE.but(change=transposed)),
        Fault("the mask of head 0 is used for all heads", mistakes.mask_of_the_first_head),
        Fault("the cap comes after the mask", CORE.but(change=capped_after_the_mask)),
        Fault("weights are masked after the softmax", mistakes.masked_after_softmax),
        Fault("the maximum is taken before the mask", maximum_of_all),
    ),
)
