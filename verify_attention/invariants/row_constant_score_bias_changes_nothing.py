"""A score bias of one number for each row changes no weight, and moves the LSE by that number.

softmax(S_i· + c_i) = softmax(S_i·): nothing else takes a share that c_i does not move, and what is hidden stays
hidden. It is asked with numbers near ±30 beside the case's own values, and near ±768 with the identity for values,
whose output is the weights: exp(768) is infinite and exp(−768) is 0, so that code needs each row's own maximum, and
what rounding may do to a number of that size is the limit. (Not of sparsemax, which has no exponentials.)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import departures, mistakes, rounding, structure
from verify_attention.agreement import agreement
from verify_attention.model import Array, Case, Fault, Implementation, Invariant, Normalises, Sides, Trace
from verify_attention.pipeline import CORE


def shifted(case: Case, size: float) -> tuple[Case, Array]:
    """Return the case with a number near ±size added to all scores of each row, and those numbers, `[H, Tq, 1]`."""
    head, row, _ = np.indices((*case.scores_shape[:2], 1))
    numbers = np.where((head + row) % 2, size, -size) + head % 8 / 4 - row % 8 / 2
    bias = np.broadcast_to(case.features.get("score_bias", 0.0) + numbers, case.scores_shape)
    return case.but(features={**case.features, "score_bias": bias}), numbers


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare output, weights and LSE with and without the numbers, both biases in place."""
    given = case.under("qk")
    moved, numbers = shifted(given, 30.0)
    yield from agreement(given, moved, attend, of=", ±30", parts=("output",))
    identity = structure.showing_weights(given)
    far, _ = shifted(identity, 768.0)
    exponential = all(act.exponential(case) for act in departures.acts(case, Normalises))
    if exponential:
        yield from agreement(identity, far, attend, of=" with identity values, ±768", parts=("output",), far=True)
    yield from agreement(given, moved, attend, of=", ±30", parts=("weights",))
    if exponential:
        yield from agreement(identity, far, attend, of=", ±768", parts=("weights",), far=True)
    if not departures.has_lse(case):
        return
    yield Sides(
        "lse, ±30",
        attend(moved).lse - attend(given).lse,
        numbers[..., 0],
        rounding=rounding.lse(moved) + rounding.lse(given) + 2 * case.precision.unit * np.abs(numbers[..., 0]),
        moves=numbers[..., 0],
    )


def filled(case: Case) -> Trace:
    """Put −50 in the place of hidden scores."""
    if departures.visible(case) is None:
        return CORE(case)
    return CORE(case.but(features={"fill": -50.0, **case.features}))


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="softmax(S_i· + c_i) = softmax(S_i·) and LSE(S_i· + c_i) = LSE(S_i·) + c_i",
    source="article, sections 2 and 4",
    needs=frozenset({"shift-invariant softmax"}),
    applies=departures.one_key,
    own_limit=True,
    where="a row has at least two keys",
    on_request=True,
    whole=True,
    sides=sides,
    faults=(
        Fault("an undeclared key of zeros takes a share", CORE.but(softmax=mistakes.undeclared_zero_key)),
        Fault("hidden scores are filled with -50", filled),
        Fault("the running maximum starts at 0", CORE.but(softmax=mistakes.maximum_from_zero)),
        Fault("no maximum is taken off", CORE.but(softmax=mistakes.no_maximum)),
    ),
)
